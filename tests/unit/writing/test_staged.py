"""Edits that become one transaction: which operation, which counts, what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import Fragment
from lance_nb.format.merged_logs import MergedLog
from lance_nb.table.filtered_scan import RowChoice
from lance_nb.table.predicate import compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.writing.deleting import plan_deletion, plan_offsets
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.rewriting import find_rows, rewrite_rows, rewrite_values
from lance_nb.writing.staged import (
    Addition,
    ColumnRewrite,
    DeletionPlan,
    Edit,
    MergePlan,
    Replacement,
    RowRewrite,
    StagedWrite,
    columns_of,
    combine,
    files_of,
    united_deletions,
)
from lance_nb.writing.upsert_source import MergeClauses, SourceRows, WhenMatched
from lance_nb.writing.upserting import plan_merge
from tests.support.sample_operations import LOG
from tests.support.versions import new_fragment

_NUMBERS = count()
ADDED = Addition((new_fragment("a", 4), new_fragment("b", 3)))


@pytest.fixture
def snapshot() -> Snapshot:
    """Twelve rows in fragments of five; row 2 is deleted."""
    table = pa.table({"n": pa.array(range(12), pa.int64()), "v": pa.array(range(12), pa.int64())})
    uri = f"memory://staged/{next(_NUMBERS)}"
    made = lance_nb.write_dataset(table, uri, max_rows_per_file=5)
    made.delete("n = 2")
    return made._snapshot


def condition(snapshot: Snapshot, where: str) -> Any:
    return compile_filter(where, project(snapshot.manifest.schema, None).schema)


def deletion(snapshot: Snapshot, where: str) -> DeletionPlan:
    return plan_deletion(snapshot, condition(snapshot, where))


def update(snapshot: Snapshot, where: str) -> RowRewrite:
    choice = RowChoice(condition(snapshot, where))
    return rewrite_rows(snapshot, {"v": "v + 1"}, choice, WriteOptions())


def columns(snapshot: Snapshot, where: str) -> ColumnRewrite:
    found = find_rows(snapshot, RowChoice(condition(snapshot, where)))
    return rewrite_values(snapshot, {"v": "v + 1"}, found, WriteOptions())


def upsert(snapshot: Snapshot, keys: list[int], **clauses: Any) -> MergePlan:
    rows: dict[str, Any] = {"n": keys, "v": [0] * len(keys)}
    with SourceRows(pa.table(rows).to_reader()) as source:
        asked = MergeClauses(("n",), matched=WhenMatched.UPDATE, **clauses)
        return plan_merge(snapshot, source, asked, WriteOptions())


def offsets(rows: Any) -> dict[int, list[int]]:
    return {key: one.offsets().tolist() for key, one in rows.items()}


# --- one operation --------------------------------------------------------------------------------


def test_rows_to_add_are_one_append(snapshot: Snapshot) -> None:
    other = Addition((new_fragment("c", 2),))
    staged = combine(snapshot, [ADDED, other])
    assert ADDED.num_rows == 7
    assert staged.operation == Append((*ADDED.fragments, *other.fragments))
    assert (staged.read_version, staged.num_added_rows, staged.num_deleted_rows) == (2, 9, 0)
    assert staged.new_fragments == (*ADDED.fragments, *other.fragments)
    assert (staged.affected_rows, staged.touched_fragments) == (None, ())
    assert staged.data_files == ["data/a.lance", "data/b.lance", "data/c.lance"]
    assert staged.size_bytes == 300


def test_deletions_are_one_delete_of_what_any_of_them_deletes(snapshot: Snapshot) -> None:
    staged = combine(
        snapshot, [deletion(snapshot, "n < 4"), deletion(snapshot, "n in (3, 10, 11)")]
    )
    operation = staged.operation
    assert isinstance(operation, Delete)
    assert [one.id for one in operation.updated_fragments] == [0]
    assert operation.updated_fragments[0].num_deleted_rows == 4
    assert operation.deleted_fragment_ids == [2]
    assert operation.predicate == "(n < 4) OR (n in (3, 10, 11))"
    assert staged.affected_rows is not None
    assert offsets(staged.affected_rows) == {0: [0, 1, 3], 2: [0, 1]}
    assert (staged.num_added_rows, staged.num_deleted_rows, staged.num_updated_rows) == (0, 5, 0)
    assert staged.touched_fragments == (0, 2)
    assert [one.offsets().tolist() for one in staged.pending.vectors.values()] == [[0, 1, 2, 3]]
    assert staged.data_files == []


def test_deletions_and_additions_are_one_update(snapshot: Snapshot) -> None:
    staged = combine(snapshot, [deletion(snapshot, "n > 4"), ADDED])
    operation = staged.operation
    assert isinstance(operation, Update)
    assert operation.removed_fragment_ids == [1, 2]
    assert operation.updated_fragments == []
    assert operation.new_fragments == list(ADDED.fragments)
    assert operation.fields_for_preserving_frag_bitmap == []
    assert (staged.num_added_rows, staged.num_deleted_rows, staged.num_updated_rows) == (7, 7, 0)


def test_updates_deletions_and_additions_are_one_update(snapshot: Snapshot) -> None:
    first, second = update(snapshot, "n = 1"), update(snapshot, "n in (5, 6)")
    staged = combine(snapshot, [first, deletion(snapshot, "n = 0"), ADDED, second])
    operation = staged.operation
    assert isinstance(operation, Update)
    assert operation.new_fragments == [*first.fragments, *ADDED.fragments, *second.fragments]
    assert [one.id for one in operation.updated_fragments] == [0, 1]
    assert [one.num_deleted_rows for one in operation.updated_fragments] == [3, 2]
    assert operation.fields_for_preserving_frag_bitmap == [1]
    assert operation.update_mode is UpdateMode.REWRITE_ROWS
    assert (staged.num_added_rows, staged.num_deleted_rows, staged.num_updated_rows) == (10, 4, 3)
    assert staged.affected_rows is not None
    assert offsets(staged.affected_rows) == {0: [0, 1], 1: [0, 1]}
    assert operation.inserted_rows is None
    assert operation.compacted_sstables == ()


def test_an_update_of_no_row_is_an_update(snapshot: Snapshot) -> None:
    staged = combine(snapshot, [update(snapshot, "n = 99")])
    assert isinstance(staged.operation, Update)
    assert staged.operation.fields_for_preserving_frag_bitmap == [1]
    assert (staged.num_added_rows, staged.num_deleted_rows) == (0, 0)


def test_an_upsert_brings_its_keys_and_logs(snapshot: Snapshot) -> None:
    log = MergedLog("0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11", 3)
    plan = upsert(snapshot, [1, 77], inserts=True, key=("n",), logs=(log,))
    staged = combine(snapshot, [plan, deletion(snapshot, "n = 9")])
    operation = staged.operation
    assert isinstance(operation, Update)
    assert operation.inserted_rows == plan.inserted_keys
    assert operation.inserted_rows is not None
    assert operation.compacted_sstables == (log,)
    assert operation.fields_for_preserving_frag_bitmap == [0, 1]
    assert (staged.num_added_rows, staged.num_deleted_rows, staged.num_updated_rows) == (2, 2, 1)


def test_columns_written_anew_are_an_update_of_columns(snapshot: Snapshot) -> None:
    plan = columns(snapshot, "n in (1, 3, 7)")
    staged = combine(snapshot, [plan])
    operation = staged.operation
    assert isinstance(operation, Update)
    assert operation.update_mode is UpdateMode.REWRITE_COLUMNS
    assert operation.fields_modified == [1]
    assert operation.updated_fragments == list(plan.fragments)
    assert (staged.num_added_rows, staged.num_deleted_rows, staged.num_updated_rows) == (0, 0, 3)
    assert staged.touched_fragments == (0, 1)
    assert staged.column_files == plan.files
    assert staged.data_files == [one.location() for one in plan.files]
    assert staged.size_bytes == sum(one.size_bytes for one in plan.files) > 0
    assert (staged.new_fragments, staged.affected_rows) == ((), None)


def test_an_upsert_of_columns_brings_its_logs_too(snapshot: Snapshot) -> None:
    plan = replace(
        upsert(snapshot, [1]), columns=columns(snapshot, "n = 1"), logs=(LOG,), fragments=()
    )
    staged = combine(snapshot, [plan])
    assert isinstance(staged.operation, Update)
    assert staged.operation.compacted_sstables == (LOG,)
    assert staged.operation.update_mode is UpdateMode.REWRITE_COLUMNS
    assert (plan.num_deleted_rows, staged.num_updated_rows) == (1, 1)


def test_an_operation_of_its_own_stands_alone(snapshot: Snapshot) -> None:
    alone = Replacement(Restore(1), ADDED.fragments)
    assert alone.num_rows == 7
    assert combine(snapshot, [alone]) == StagedWrite(
        2, Restore(1), 7, new_fragments=ADDED.fragments, pending=combine(snapshot, [alone]).pending
    )
    assert Replacement(Restore(1)).num_rows == 0
    staged = combine(snapshot, [Replacement(Restore(1))])
    counts = (staged.num_added_rows, staged.num_deleted_rows, staged.num_updated_rows)
    assert counts == (0, 0, 0)


# --- what is refused ------------------------------------------------------------------------------


def test_an_empty_stage_is_refused(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidInputError, match="nothing is staged"):
        combine(snapshot, [])


def test_what_stands_alone_is_refused_beside_other_edits(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidInputError, match="Restore cannot be combined"):
        combine(snapshot, [ADDED, Replacement(Restore(1))])
    with pytest.raises(InvalidInputError, match="columns that are written anew stand alone"):
        combine(snapshot, [columns(snapshot, "n = 1"), ADDED])


def test_two_upserts_are_refused(snapshot: Snapshot) -> None:
    one, other = (upsert(snapshot, [key], inserts=True) for key in (1, 3))
    with pytest.raises(InvalidInputError, match="two upserts in one stage"):
        combine(snapshot, [one, other])


@pytest.mark.parametrize("place", [0, 1])
def test_edits_of_the_same_rows_are_refused(snapshot: Snapshot, place: int) -> None:
    other: list[Edit] = [deletion(snapshot, "n in (3, 8)"), update(snapshot, "n in (3, 8)")]
    with pytest.raises(InvalidInputError, match="change the same rows"):
        combine(snapshot, [update(snapshot, "n in (1, 3)"), other[place]])
    combine(snapshot, [update(snapshot, "n in (1, 4)"), other[place]])  # same fragment, other rows


# --- the files of an edit -------------------------------------------------------------------------


def test_the_files_of_every_kind_of_edit(snapshot: Snapshot) -> None:
    rows, anew = update(snapshot, "n = 1"), columns(snapshot, "n = 1")
    merge = upsert(snapshot, [1])
    assert [one.path for one in files_of(ADDED)] == ["a.lance", "b.lance"]
    assert files_of(deletion(snapshot, "n = 1")) == ()
    assert files_of(rows) == rows.fragments[0].files
    assert files_of(anew) == anew.files
    assert files_of(merge) == merge.fragments[0].files
    assert files_of(replace(merge, columns=anew, fragments=())) == anew.files
    assert files_of(Replacement(Restore(1), ADDED.fragments)) == files_of(ADDED)
    assert columns_of(anew) is anew
    assert columns_of(replace(merge, columns=anew)) is anew
    assert columns_of(merge) is columns_of(rows) is columns_of(ADDED) is None


# --- rows to delete -------------------------------------------------------------------------------


@pytest.mark.parametrize("only", [None, [1], [0, 2], []])
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n = 2", {}),
        ("n < 3", {0: [0, 1]}),
        ("n >= 4 and n < 11", {0: [4], 1: [0, 1, 2, 3, 4], 2: [0]}),
        ("true", {0: [0, 1, 3, 4], 1: [0, 1, 2, 3, 4], 2: [0, 1]}),
        ("v is null", {}),
    ],
)
def test_rows_that_pass_go(
    snapshot: Snapshot, where: str, rows: dict[int, list[int]], only: list[int] | None
) -> None:
    among = None if only is None else [snapshot.manifest.fragments[one] for one in only]
    plan = plan_deletion(snapshot, condition(snapshot, where), among)
    expected = {key: found for key, found in rows.items() if only is None or key in only}
    assert offsets(plan.affected_rows) == expected
    assert (plan.read_version, plan.predicate) == (2, where)
    assert plan.num_rows == sum(map(len, expected.values()))
    left = {0: 4, 1: 5, 2: 2}
    for one in plan.fragments:
        assert one.is_whole is (len(expected[one.fragment.id]) == left[one.fragment.id])
        before = {2} if one.fragment.id == 0 else set()
        assert set(one.merged.offsets().tolist()) == before | set(expected[one.fragment.id])


@pytest.mark.parametrize(("wanted", "gone"), [([1, 2], [1]), ([2], []), ([], []), ([4, 0], [0, 4])])
def test_rows_by_offset_go_once(snapshot: Snapshot, wanted: list[int], gone: list[int]) -> None:
    fragment = snapshot.manifest.fragments[0]
    plan = plan_offsets(snapshot, fragment, np.array(wanted, np.int64))
    assert offsets(plan.affected_rows) == ({0: gone} if gone else {})
    whole = snapshot.manifest.fragments[2]
    assert plan_offsets(snapshot, whole, np.array([0, 1])).fragments[0].is_whole


def test_one_plan_stays_as_it_is_and_equal_texts_are_said_once(snapshot: Snapshot) -> None:
    plan = deletion(snapshot, "n = 1")
    assert united_deletions([plan]) is plan
    assert united_deletions([plan, plan]).predicate == "n = 1"
    assert united_deletions([plan, plan]).num_rows == 1


def test_what_is_kept_and_what_goes(snapshot: Snapshot) -> None:
    staged = combine(snapshot, [deletion(snapshot, "n < 2 or n > 9")])
    (kept,) = staged.operation.updated_fragments  # type: ignore[attr-defined]
    assert isinstance(kept, Fragment)
    assert kept.deletion_file is not None
    assert kept.deletion_file.read_version == 2
    (path,) = staged.pending.vectors
    assert path == kept.deletion_file.location(0)
    assert staged.pending.vectors[path] == DeletionVector.of([0, 1, 2])
