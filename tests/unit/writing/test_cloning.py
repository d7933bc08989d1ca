from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import (
    DatasetAlreadyExistsError,
    InvalidInputError,
    RefConflictError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.refs import Branch
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.versions import load_latest
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.writing import cloning
from lance_nb.writing.cloning import commit_clone, copy_version, find_moved_branches, repair_moved
from tests.support.committing import Table, file_names
from tests.support.faulty_store import Fault, FaultyStore, on
from tests.support.moved_datasets import LINES, at, contents, ids, relocate, repair, rows, write

DATA = bytes(range(256)) * 10
shallow_clone = partial(commit_clone, is_shallow=True)


def _source() -> Table:
    """A dataset of two versions whose data files are there, one with a blob file beside it."""
    table = Table()
    first = table.create()
    second = table.append(1, "blobs")
    for name in {*file_names(first), *file_names(second)}:
        table.inner.write(f"data/{name}", DATA)
    table.inner.write("data/blobs/0101.blob", b"blob")
    table.inner.write("data/unrelated.lance", b"no")
    table.inner.write("data/unrelated/1.blob", b"no")
    return table


def _target() -> CommitPlace:
    return CommitPlace.of(MemoryStore(uuid.uuid4().hex))


def test_a_shallow_clone_refers_to_its_source():
    source, target = _source(), _target()
    made = shallow_clone(source.place, 2, target, source.options())
    found = load_latest(target.root)
    assert made.manifest == found
    assert (found.version, found.branch) == (2, None)
    assert [(one.id, one.path) for one in found.base_paths] == [(0, source.inner.uri)]
    assert {file.base_id for one in found.fragments for file in one.files} == {0}
    assert target.root.list_names("data") == []


def test_a_deep_clone_has_every_file_it_needs_and_no_other(monkeypatch):
    monkeypatch.setattr(cloning, "PIECE_BYTES", 1000)
    source, target = _source(), _target()
    seen = []
    made = copy_version(source.place, 2, target, source.options(), seen.append)
    found = load_latest(target.root)
    assert made.manifest == found
    assert found.base_paths == ()
    assert {file.base_id for one in found.fragments for file in one.files} == {None}
    names = {one.name for one in target.root.list_recursive("data")}
    assert names == {*file_names(made), "blobs/0101.blob"}
    assert bytes(target.root.read("data/blobs.lance")) == DATA
    assert (seen[-1].num_files, seen[-1].num_files_copied) == (3, 3)
    assert seen[-1].bytes_copied == 2 * len(DATA) + 4


def test_a_deep_clone_of_a_shallow_clone_fetches_the_files_from_where_they_are():
    source, middle, target = _source(), _target(), _target()
    shallow_clone(source.place, 2, middle, source.options())
    with pytest.raises(InvalidInputError, match="allow_bases"):
        copy_version(middle, 2, target, source.options())
    allowed = CommitPlace.of(middle.root, allow_bases=(source.inner.uri,))
    copy_version(allowed, 2, target, source.options())
    assert load_latest(target.root).base_paths == ()
    assert bytes(target.root.read("data/blobs.lance")) == DATA


@pytest.mark.parametrize("clone", [shallow_clone, copy_version])
def test_a_dataset_that_is_there_is_not_overwritten(clone):
    source, target = _source(), _source()
    before = {one.name: one.size_bytes for one in target.inner.list_recursive("")}
    with pytest.raises(DatasetAlreadyExistsError):
        clone(source.place, 1, target.sound, source.options())
    assert {one.name: one.size_bytes for one in target.inner.list_recursive("")} == before


@pytest.mark.parametrize("clone", [shallow_clone, copy_version])
def test_a_version_that_is_not_there_is_reported(clone):
    source, target = _source(), _target()
    with pytest.raises(VersionNotFoundError):
        clone(source.place, 9, target, source.options())
    assert target.root.list_recursive("") == []


def test_a_deep_clone_that_failed_is_no_dataset_and_can_be_repeated():
    source = _source()
    inner = MemoryStore(uuid.uuid4().hex)
    failing = CommitPlace.of(FaultyStore(inner, on("create", "blobs", Fault.NO_SPACE)))
    with pytest.raises(StorageError):
        copy_version(source.place, 2, failing, source.options())
    assert inner.list_names("_versions") == []
    assert copy_version(source.place, 2, failing, source.options()).version == 2


def test_a_file_that_two_fragments_share_is_copied_once():
    source, target = _source(), _target()
    shared = Fragment(0, (DataFile("blobs.lance", (0, 1), (0, 1), 2, 2, 100),), 10)
    source.commit(source.transaction(2, Append((shared,))))
    seen = []
    copy_version(source.place, 3, target, source.options(), seen.append)
    assert len(seen) == 3


def test_writing_on_a_clone_goes_on_behind_the_number_of_its_source():
    source, target = _source(), _target()
    shallow_clone(source.place, 2, target, source.options())
    clone = Table(inner=target.root)
    made = clone.commit(clone.appending(2, "new"))
    assert made.version == 3
    assert load_latest(source.inner).version == 2


def test_deletion_files_and_indices_are_copied_too():
    source, target = _source(), _target()
    index = IndexMetadata("0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11", "i", (0,), 2, b"")
    fragment = load_latest(source.inner).fragments[0]
    deletion = DeletionFile(2, 7, DeletionFileType.ARROW, 1)
    changed = replace(fragment, deletion_file=deletion)
    commit(source.place, source.transaction(2, Delete((changed,))), source.options())
    commit(source.place, source.transaction(3, CreateIndex((index,))), source.options())
    source.inner.write(deletion.location(fragment.id), b"deleted")
    for name in ("page_data.lance", "deep/x.bin"):
        source.inner.write(f"_indices/{index.uuid}/{name}", name.encode())

    copy_version(source.place, 4, target, source.options())

    for path in (
        deletion.location(fragment.id), f"_indices/{index.uuid}/page_data.lance",
        f"_indices/{index.uuid}/deep/x.bin",
    ):  # fmt: skip
        assert bytes(target.root.read(path)) == bytes(source.inner.read(path))


def test_a_copy_that_fails_leaves_no_part_of_its_file():
    source = MemoryStore(uuid.uuid4().hex)
    source.write("data/x.lance", DATA)
    target = MemoryStore(uuid.uuid4().hex)
    failing = FaultyStore(source, on("read_range", "", Fault.ERROR_BEFORE))
    with pytest.raises(StorageError):
        cloning.copy_file(failing, "data/x.lance", target, "data/y.lance")
    assert target.list_recursive("") == []


@pytest.mark.parametrize("piece_bytes", [1, 7, len(DATA), 1 << 20])
def test_a_file_is_copied_in_pieces(piece_bytes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cloning, "PIECE_BYTES", piece_bytes)
    source, target = (MemoryStore(uuid.uuid4().hex) for _ in range(2))
    for data in (DATA[:50], b""):
        source.write("x", data)
        assert cloning.copy_file(source, "x", target, "y") == len(data)
        assert bytes(target.read("y")) == data


@pytest.fixture(params=["moved", "copied"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, as_another_process: Callable[[], None]
) -> Path:
    """The dataset somewhere else. Where it was is nothing, or files that are damaged since."""
    there = relocate(tmp_path, is_copy=request.param == "copied")
    as_another_process()
    return there


def test_a_moved_dataset_is_written_and_branched_as_ever(place: Path):
    at(place, "dev").insert(rows(11))
    at(place, "dev").delete("id = 2")
    at(place, "team/sub").update({"id": "id + 100"}, where="id = 3")
    assert ids(at(place, "dev")) == [3, 10, 11]
    assert ids(at(place, "team/sub")) == [2, 10, 30, 103]
    at(place, "dev").create_branch("dev2").insert(rows(12))
    assert ids(at(place, "dev2")) == [3, 10, 11, 12]
    at(place, "dev").checkout_version(2).restore()
    assert ids(at(place, "dev")) == [1, 2, 3, 10]
    at(place, "dev").optimize.compact_files()
    assert ids(at(place, "dev")) == [1, 2, 3, 10]


def test_branches_of_a_moved_dataset_name_where_it_is_now(place: Path):
    made = at(place, "dev").create_branch("dev2")
    paths = {one.path for one in made.base_paths().values()}
    assert paths == {str(place), str(place / "tree" / "dev")}
    clone = at(place, "dev").shallow_clone(place.parent / "clone")
    assert {one.path for one in clone.base_paths().values()} == paths
    assert ids(clone) == LINES["dev"]


def test_branches_of_a_moved_dataset_are_merged(place: Path):
    lance_nb.dataset(place).branches.merge("dev", key="id")
    assert ids(at(place, None)) == [2, 3, 4, 5, 10, 20]
    lance_nb.dataset(place).branches.merge("merged", into="dev", key="id")
    assert ids(at(place, "dev")) == [2, 3, 4, 5, 10, 20]
    recorded = [one.path for one in at(place, "dev").base_paths().values()]
    first = str(place.parent.parent / "first")  # main's files have their base already
    assert recorded == [first, str(place / "tree" / "merged")]


def test_a_branch_that_main_has_merged_is_still_needed(place: Path):
    dataset = lance_nb.dataset(place)
    for tag in dataset.tags.names():
        dataset.tags.delete(tag)
    with pytest.raises(
        RefConflictError, match=r"main \(version 4 reads files that it has merged\)"
    ):
        dataset.branches.delete("merged")


def test_a_clean_up_keeps_what_branches_read(place: Path):
    for branch in LINES:
        at(place, branch).cleanup_old_versions(
            timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
        )
    assert contents(place) == LINES


def test_the_repair_makes_one_version_of_each_branch_that_needs_it(place: Path):
    first = place.parent.parent / "first"
    found = lance_nb.dataset(place).repair_moved(dry_run=True)
    assert {one.branch: one.version for one in found} == {
        None: 4, "dev": 3, "merged": 3, "team/sub": 4,
    }  # fmt: skip
    assert f"dev:3 was moved from {first} (now {place})" in map(str, found)
    before = {branch: at(place, branch) for branch in LINES}
    assert repair(place) == [str(one) for one in found]
    assert repair(place) == []
    assert contents(place) == LINES
    for branch, old in before.items():
        new = at(place, branch)
        assert new.version == old.version + 1
        assert "moved from" in new.history(1)[0].message
        recorded = [one.path for one in new.base_paths().values()]
        assert all(one.startswith(f"{place}") for one in recorded)
        assert [one.id for one in old.base_paths().values()] == [
            one.id for one in new.base_paths().values()
        ]
        match = new.diff(old).match
        assert (len(match.only_a), len(match.only_b), match.changed) == (0, 0, ())


def test_a_dataset_that_was_not_moved_needs_no_repair(tmp_path: Path):
    write(tmp_path / "first")
    assert repair(tmp_path / "first") == []


def test_a_repair_meets_a_commit_in_between(place: Path, monkeypatch: pytest.MonkeyPatch):
    from lance_nb.writing import cloning

    real, left = cloning.commit, [at(place, "dev")]

    def overtaken(*arguments: Any) -> Any:
        if left:
            left.pop().insert(rows(99))
        return real(*arguments)

    monkeypatch.setattr(cloning, "commit", overtaken)
    repair(place)
    assert ids(at(place, "dev")) == [2, 3, 10, 99]
    assert {one.path for one in at(place, "dev").base_paths().values()} == {str(place)}


def test_an_unfinished_branch_is_passed_over(place: Path):
    record = Branch(None, 1, ((1, "0" * 32),))
    (place / "_refs" / "branches" / "half.json").write_bytes(record.to_bytes())
    root = lance_nb.dataset(place).opened[0].root
    found = find_moved_branches(root, lambda branch: CommitPlace.of(root, branch))
    assert "half" not in {one.branch for one in found}
    assert repair_moved(CommitPlace.of(root, "half")) is None
