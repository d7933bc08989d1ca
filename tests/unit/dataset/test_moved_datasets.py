"""Datasets with branches that were moved or copied: everything is read where they are now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, LanceError, ObjectNotFoundError, RefConflictError
from lance_nb.format.refs import Branch
from lance_nb.magic.command_line import main
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.moved_bases import moved_branches, repair_moved

LINES = {  # branch -> the ids that its newest version has
    None: [2, 3, 4, 5, 20],
    "dev": [2, 3, 10],
    "team/sub": [2, 3, 10, 30],
    "merged": [1, 2, 3, 4, 5, 20],
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def write(place: Path) -> None:
    """Branches of main and of a branch, with deletions of shared rows; one is merged into main."""
    main = lance_nb.write_dataset(rows(1, 2, 3), place)
    dev = main.create_branch("dev")
    dev.insert(rows(10))
    dev.delete("id = 1")
    dev.create_branch("team/sub").insert(rows(30))
    main.insert(rows(4, 5))
    main.create_branch("merged").insert(rows(20))
    main.branches.merge("merged")
    lance_nb.dataset(place).delete("id = 1")


@pytest.fixture(params=["moved", "copied"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, as_another_process: Callable[[], None]
) -> Path:
    """The dataset somewhere else. Where it was is nothing, or files that are damaged since."""
    first, there = tmp_path / "first", tmp_path / "elsewhere" / "second"
    write(first)
    if request.param == "moved":
        there.parent.mkdir()
        first.rename(there)
    else:
        shutil.copytree(first, there)
        for file in first.rglob("*.*"):
            file.write_bytes(b"not what was copied")
    as_another_process()
    return there


def at(place: Path, branch: str | None, version: int | None = None, **options: Any) -> Any:
    return lance_nb.dataset(place, (branch, version), **options)


def ids(dataset: Any) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def contents(place: Path) -> dict[str | None, list[int]]:
    return {branch: ids(at(place, branch)) for branch in LINES}


def repair(place: Path) -> list[str]:
    return [str(one) for one in lance_nb.dataset(place).repair_moved()]


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


def test_a_dataset_that_was_not_moved_needs_no_repair(tmp_path: Path):
    write(tmp_path / "first")
    assert repair(tmp_path / "first") == []


def test_a_repair_meets_a_commit_in_between(place: Path, monkeypatch: pytest.MonkeyPatch):
    from lance_nb.transactions import moved_bases

    real, left = moved_bases.commit, [at(place, "dev")]

    def overtaken(*arguments: Any) -> Any:
        if left:
            left.pop().insert(rows(99))
        return real(*arguments)

    monkeypatch.setattr(moved_bases, "commit", overtaken)
    repair(place)
    assert ids(at(place, "dev")) == [2, 3, 10, 99]
    assert {one.path for one in at(place, "dev").base_paths().values()} == {str(place)}


# --- what is not a former place of the dataset ----------------------------------------------------


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


def test_an_unfinished_branch_is_passed_over(place: Path):
    record = Branch(None, 1, ((1, "0" * 32),))
    (place / "_refs" / "branches" / "half.json").write_bytes(record.to_bytes())
    root = lance_nb.dataset(place).opened[0].root
    found = moved_branches(root, lambda branch: CommitPlace.of(root, branch))
    assert "half" not in {one.branch for one in found}
    assert repair_moved(CommitPlace.of(root, "half")) is None


def test_records_that_name_each_other_in_a_circle_end(place: Path):
    record = Branch("dev", 3, ((1, "0" * 32),))
    (place / "_refs" / "branches" / "dev.json").write_bytes(record.to_bytes())
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(place, "dev").to_table()
