"""Merged deletions: what is written, and when nothing is."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, DeletionFileType
from lance_nb.transactions.deletion_merging import DeletionMerge, merge_deletions
from lance_nb.transactions.operations.delete import Delete
from tests.support.versions import Versions, deleted


def test_no_file_is_written_unless_all_fragments_can_be_merged() -> None:
    versions = Versions(2)
    ours = Delete(tuple(deleted(versions.fragment(one), 1) for one in (0, 1)))
    written = []

    def write(fragment_id: int, version: int, vector: DeletionVector) -> DeletionFile:
        written.append((fragment_id, version, vector.offsets().tolist()))
        return DeletionFile(version, 1, DeletionFileType.BITMAP, len(vector))

    def merge(*rows: int) -> DeletionMerge:
        return DeletionMerge(
            versions.manifest,
            lambda one: DeletionVector.of([5 + one.id]),
            write,
            {0: DeletionVector.of([1]), 1: DeletionVector.of(rows)},
        )

    unchanged, problem = merge_deletions(ours, [0, 1], merge(6))
    assert unchanged is ours
    assert (problem.fragment_id, problem.text) == (1, "fragment 1: both change row 6")
    assert written == []
    merged, problem = merge_deletions(ours, [0, 1], merge(2))
    assert problem is None
    assert written == [(0, 1, [1, 5]), (1, 1, [2, 6])]
    assert [one.num_deleted_rows for one in merged.updated_fragments] == [2, 2]


def test_a_fragment_that_is_gone_is_a_problem() -> None:
    versions = Versions(1)
    ours = Delete((replace(deleted(versions.fragment(0), 1), id=9),))
    merge = DeletionMerge(versions.manifest, DeletionVector.of, DeletionVector.of, {})
    _, problem = merge_deletions(ours, [9], merge)
    assert "no longer exists" in problem.text
