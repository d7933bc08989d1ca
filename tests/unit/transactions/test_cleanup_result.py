"""What a clean-up tells: counts, lists, text."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from lance_nb.storage.memory import MemoryStore
from lance_nb.table.cleanup_plan import Candidate, CleanupPlan
from lance_nb.table.survey import LineOfVersions, StoredFile, Survey
from lance_nb.transactions.cleanup import (
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupReferencedBranch,
    CleanupStats,
    explanation_of,
    stats_of,
)


def candidates() -> list[Candidate]:
    kinds = ("manifest", "data", "data", "transaction", "index", "deletion", "temporary_manifest")
    return [
        Candidate(
            StoredFile(f"x/{number}", 10, None, "", kind), number > 4, 3 if number < 5 else None
        )
        for number, kind in enumerate(kinds)
    ]


def plan() -> tuple[CleanupPlan, Survey]:
    found = candidates()
    survey = Survey(MemoryStore("r"), (), {"": LineOfVersions("", None, (), ())}, {}, {}, {})
    return CleanupPlan("", (), tuple(found[:1]), tuple(found[1:])), survey


def test_files_are_counted_by_kind():
    stats = stats_of(candidates(), 2)
    assert stats.bytes_removed == 70
    assert stats.old_versions == 1
    assert stats.data_files_removed == 2
    assert stats.transaction_files_removed == 1
    assert stats.index_files_removed == 1
    assert stats.deletion_files_removed == 1
    assert stats.failed_deletes == 2


def test_a_list_that_is_cut_says_so_and_counts_everything():
    found = explanation_of(*plan(), 9, max_files=2)
    assert (found.read_version, len(found.candidate_files)) == (9, 2)
    assert found.candidate_files_truncated
    assert found.warnings == ["candidate_files truncated to 2 entries"]
    assert found.stats.bytes_removed == 70


def test_a_list_that_is_not_wanted_is_empty_and_not_cut():
    found = explanation_of(*plan(), 9, max_files=5, include_files=False)
    assert found.candidate_files == []
    assert not found.candidate_files_truncated


def test_every_file_has_a_reason():
    found = explanation_of(*plan(), 9)
    reasons = found.to_table()["reason"].to_pylist()
    assert reasons[0] == "version 3 is deleted"
    assert reasons[1] == "only deleted versions refer to it, the newest is 3"
    assert reasons[5] == "no version refers to it"
    assert reasons[6] == "left behind by a commit that was interrupted"
    assert "70 bytes" in str(found)
    assert "x/0" in str(found)


@pytest.mark.parametrize("count", [0, 8, 9, 12])
def test_at_most_eight_files_are_shown(count: int):
    files = [CleanupCandidateFile(f"x/{n}", "data", False, 1000 + n, 3, "r") for n in range(count)]
    shown = str(CleanupExplanation(9, CleanupStats(5000, 2, 3, 4, 5, 6), files))
    lines = shown.splitlines()
    assert lines[0] == (
        "cleanup seen from version 9 would free 5,000 bytes: 2 versions and 18 files"
    )
    assert [line.split()[1] for line in lines[1:9]] == [f"x/{n}" for n in range(min(count, 8))]
    assert lines[9:] == (
        [f"  ... and {count - 8} more: to_table() lists them"] if count > 8 else []
    )


def test_branches_that_stay_and_warnings_are_shown():
    found = CleanupExplanation(
        9, CleanupStats(),
        referenced_branches=[CleanupReferencedBranch("dev", 4, False)], warnings=["careful"],
    )  # fmt: skip
    assert str(found).splitlines()[1:] == [
        "  version 4 stays: branch 'dev' started from it", "  careful",
    ]  # fmt: skip


def test_branches_that_start_from_versions_are_listed_in_order():
    forks = {7: ("b",), 3: ("a", "c")}
    survey = SimpleNamespace(
        lines={"": SimpleNamespace(branch=None)}, fork_versions=lambda _: forks
    )
    found = explanation_of(plan()[0], survey, 9)
    assert [(one.name, one.referenced_version) for one in found.referenced_branches] == [
        ("a", 3), ("c", 3), ("b", 7),
    ]  # fmt: skip
    assert not found.candidate_files_truncated
    assert explanation_of(plan()[0], survey, 9, max_files=7).warnings == []


def test_nothing_deleted_is_all_zeros():
    assert set(dataclasses.astuple(CleanupStats())) == {0}


def test_a_clean_up_of_nothing_counts_nothing() -> None:
    assert dataclasses.astuple(CleanupStats()) == (0,) * 7
