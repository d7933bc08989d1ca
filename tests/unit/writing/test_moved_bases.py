"""Datasets with branches that were moved or copied: what is written there, and the repair."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import RefConflictError
from lance_nb.format.refs import Branch
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.writing.cloning import find_moved_branches, repair_moved
from tests.support.moved_datasets import LINES, at, contents, ids, relocate, repair, rows, write


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
