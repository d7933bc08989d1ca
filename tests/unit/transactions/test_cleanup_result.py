"""What a clean-up tells: counts, lists, text."""

from __future__ import annotations

from lance_nb.storage.memory import MemoryStore
from lance_nb.table.cleanup_plan import Candidate, CleanupPlan
from lance_nb.table.stored_files import StoredFile
from lance_nb.table.survey import LineOfVersions, Survey
from lance_nb.transactions.cleanup_result import explanation_of, stats_of


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
