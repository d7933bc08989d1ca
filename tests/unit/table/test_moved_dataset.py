"""Datasets with branches that were moved or copied: everything is read where they are now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, LanceError, ObjectNotFoundError
from lance_nb.format.manifest import BasePath
from lance_nb.format.refs import Branch
from lance_nb.magic.command_line import main
from lance_nb.storage.memory import MemoryStore
from lance_nb.table import moved_dataset
from tests.support.moved_datasets import LINES, at, contents, ids, relocate, repair, rows, write


@pytest.fixture(params=["moved", "copied"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, as_another_process: Callable[[], None]
) -> Path:
    """The dataset somewhere else. Where it was is nothing, or files that are damaged since."""
    there = relocate(tmp_path, is_copy=request.param == "copied")
    as_another_process()
    return there


def test_every_branch_is_read_where_it_is_now(place: Path):
    assert contents(place) == LINES
    for branch, expected in LINES.items():
        dataset = at(place, branch)
        assert dataset.count_rows("id > 2") == len([one for one in expected if one > 2])
        assert sorted(dataset.take([0, 1])["id"].to_pylist()) == expected[:2]
        dataset.validate()
        for one in dataset.versions():
            at(place, branch, one["version"]).to_table()
    found = lance_nb.dataset(place).verify()
    assert {one.code for one in found.findings} == {"base-moved"}
    assert {one.branch for one in found.findings} == set(LINES)


def test_what_a_copy_lacks_is_not_read_from_the_original(tmp_path: Path, as_another_process):
    first, copy = tmp_path / "first", tmp_path / "copy"
    write(first)
    shutil.copytree(first, copy)
    victim = next((copy / "data").glob("*.lance"))
    lost = [one for one in ("dev", "merged") if victim.name in _files(copy, one)]
    victim.unlink()
    for allowed in ((), [str(first)]):
        with pytest.raises(ObjectNotFoundError, match=str(copy / "data" / victim.name)):
            at(copy, lost[0], allow_bases=allowed).to_table()
    as_another_process()
    with pytest.raises(ObjectNotFoundError, match=str(copy / "data" / victim.name)):
        at(copy, lost[0]).to_table()


def _files(place: Path, branch: str) -> set[str]:
    fragments = at(place, branch).get_fragments()
    return {file.path for one in fragments for file in one.data_files()}


def test_the_doctor_says_from_where_a_dataset_was_moved(
    place: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["doctor", str(place), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    first = place.parent.parent / "first"
    assert f"moved from '{first}'; these files are read at '{place}' now" in {
        one["message"] for one in found
    }
    repair(place)
    assert main(["doctor", str(place)]) == 0


def test_a_dataset_that_is_moved_again_is_read_and_repaired_again(place: Path):
    repair(place)
    third = place.parent / place.name[:-1]  # its path begins as the former one does
    place.rename(third)
    assert contents(third) == LINES
    for branch in LINES:
        for one in at(third, branch).versions():
            at(third, branch, one["version"]).to_table()
    assert len(repair(third)) == len(LINES)
    assert contents(third) == LINES


@pytest.fixture
def clone(tmp_path: Path, as_another_process: Callable[[], None]) -> Path:
    """A shallow clone of another dataset's branch, with a branch of the same name, moved."""
    write(tmp_path / "source")
    made = at(tmp_path / "source", "dev").shallow_clone(tmp_path / "clone")
    made.insert(rows(40))
    made.create_branch("dev").insert(rows(50))
    (tmp_path / "clone").rename(tmp_path / "there")
    as_another_process()
    return tmp_path / "there"


@pytest.mark.parametrize("branch", [None, "dev"])
def test_the_source_of_a_clone_is_no_former_place_of_it(clone: Path, branch: str | None):
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(clone, branch).to_table()
    source = str(clone.parent / "source")
    expected = [2, 3, 10, 40] + [50] * (branch == "dev")
    assert ids(at(clone, branch, allow_bases=[source])) == expected
    found = lance_nb.dataset(clone).repair_moved(dry_run=True)
    assert [(one.branch, len(one.bases)) for one in found] == [("dev", 1)]
    repair(clone)
    assert ids(at(clone, branch, allow_bases=[source])) == expected


def test_a_branch_that_names_another_dataset_stays_refused(tmp_path: Path, as_another_process):
    """A hostile branch: its first version was cloned from the root, and names a foreign base."""
    for name in ("other", "mine"):
        lance_nb.write_dataset(rows(1, 2), tmp_path / name)
    mine = lance_nb.dataset(tmp_path / "mine")
    dev = mine.create_branch("dev")
    dev.add_bases([lance_nb.DatasetBasePath(str(tmp_path / "other"), is_dataset_root=True)])
    base = next(one for one in at(tmp_path / "mine", "dev").base_paths().values() if one.id)
    as_another_process()
    locations = at(tmp_path / "mine", "dev").opened[1].locations
    assert locations.base(base.id) == base
    with pytest.raises(InvalidInputError, match="under another base path"):
        locations.locate("data/x.lance", base.id)


def test_without_its_first_version_a_branch_has_one_candidate_or_none(tmp_path: Path):
    """The Clone is gone: the only unnamed base is the fork; of two nobody can tell."""
    first, there = tmp_path / "first", tmp_path / "there"
    made = lance_nb.write_dataset(rows(1, 2), first)
    for name in ("one", "two"):
        branch = made.create_branch(name)
        if name == "two":
            base = lance_nb.DatasetBasePath(str(tmp_path / "more"), is_dataset_root=True)
            branch.add_bases([base])
        branch.insert(rows(3))
        oldest = max((first / "tree" / name / "_versions").glob("*.manifest"))
        oldest.unlink()
    first.rename(there)
    assert ids(at(there, "one")) == [1, 2, 3]
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(there, "two").to_table()


def test_a_named_base_at_the_own_root_is_not_taken_for_the_fork(tmp_path: Path):
    first, there = tmp_path / "first", tmp_path / "there"
    made = lance_nb.write_dataset(rows(1, 2), first)
    made.add_bases([lance_nb.DatasetBasePath(str(first), name="own", is_dataset_root=True)])
    made.create_branch("dev").insert(rows(3))

    first.rename(there)

    assert ids(at(there, "dev")) == [1, 2, 3]


@pytest.mark.parametrize("damage", ["record", "first version"])
def test_what_cannot_be_read_decides_nothing(tmp_path: Path, damage: str):
    first, there = tmp_path / "first", tmp_path / "there"
    branch = lance_nb.write_dataset(rows(1, 2), first).create_branch("dev")
    branch.insert(rows(3))
    first.rename(there)
    if damage == "record":
        (there / "_refs" / "branches" / "dev.json").write_bytes(b"{")
    else:
        max((there / "tree" / "dev" / "_versions").glob("*.manifest")).write_bytes(b"no manifest")
    with pytest.raises(LanceError):
        at(there, "dev").to_table()


def test_records_that_name_each_other_in_a_circle_end(place: Path):
    record = Branch("dev", 3, ((1, "0" * 32),))
    (place / "_refs" / "branches" / "dev.json").write_bytes(record.to_bytes())
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(place, "dev").to_table()


def test_a_branch_began_at_the_only_root_without_a_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(moved_dataset, "_fork_base", lambda _home: (False, None))
    bases = [
        BasePath(1, "/elsewhere/data"),
        BasePath(2, "/named", is_dataset_root=True, name="named"),
        BasePath(3, "/root", is_dataset_root=True),
    ]

    assert moved_dataset._fork_root(MemoryStore("fork-root"), None, bases) == "/root"
