"""Upserts as they are planned: which rows go, what is written, with which row ids."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import MergeInsertError
from lance_nb.format.fragment import InlineSequence
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions import merge_insert_join
from lance_nb.transactions.fragment_writer import WriteOptions
from lance_nb.transactions.merge_insert import plan_merge
from lance_nb.transactions.merge_insert_clauses import MergeClauses, WhenMatched
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_source import SourceRows

_NUMBERS = count()
UPSERT = MergeClauses(("k",), matched=WhenMatched.UPDATE, inserts=True, write_mode="rewrite_rows")


def snapshot_of(rows: pa.Table, **options: Any) -> Snapshot:
    """Return the first version of a dataset with two rows per fragment."""
    made = lance_nb.write_dataset(
        rows, f"memory://upserts/{next(_NUMBERS)}", max_rows_per_file=2, **options
    )
    return made._snapshot


def plan(
    snapshot: Snapshot,
    source: pa.Table,
    clauses: MergeClauses,
    rows_per_file: int = 1000,
    progress: Callable[[int, int], object] | None = None,
) -> MergePlan:
    with SourceRows(source.to_reader()) as rows:
        options = WriteOptions(max_rows_per_file=rows_per_file)
        return plan_merge(snapshot, rows, clauses, options, progress)


def rows_of(keys: list[int | None], first: int = 0) -> pa.Table:
    values = pa.array(range(first, first + len(keys)), pa.int64())
    return pa.table({"k": pa.array(keys, pa.int64()), "v": values})


def deleted(found: MergePlan) -> dict[int, list[int]]:
    """Return the offsets that go, by fragment."""
    return {key: one.offsets().tolist() for key, one in found.deletion.affected_rows.items()}


CASES: dict[str, tuple[MergeClauses, dict[int, list[int]], dict[str, int]]] = {
    "update": (
        MergeClauses(("k",), matched=WhenMatched.UPDATE, write_mode="rewrite_rows"),
        {0: [1], 1: [1]},
        {"num_inserted_rows": 0, "num_updated_rows": 2, "num_deleted_rows": 0},
    ),
    "update and insert": (
        UPSERT,
        {0: [1], 1: [1]},
        {"num_inserted_rows": 2, "num_updated_rows": 2, "num_deleted_rows": 0},
    ),
    "update where a condition holds": (
        MergeClauses(
            ("k",), matched=WhenMatched.UPDATE, condition="source.v > 100", inserts=True,
            write_mode="rewrite_rows",
        ),
        {1: [1]},
        {"num_inserted_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0},
    ),
    "insert": (
        MergeClauses(("k",), inserts=True),
        {},
        {"num_inserted_rows": 2, "num_updated_rows": 0, "num_deleted_rows": 0},
    ),
    "delete": (
        MergeClauses(("k",), matched=WhenMatched.DELETE),
        {0: [1], 1: [1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 2},
    ),
    "delete rows without a partner": (
        MergeClauses(("k",), deletes_lonely=True),
        {0: [0], 1: [0], 2: [0, 1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 4},
    ),
    "delete all": (
        MergeClauses(("k",), matched=WhenMatched.DELETE, deletes_lonely=True),
        {0: [0, 1], 1: [0, 1], 2: [0, 1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 6},
    ),
}  # fmt: skip
TARGET = rows_of([10, 11, 12, 13, 14, None])
SOURCE = rows_of([11, 77, 13, None], first=100)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_rows_go_and_come_as_the_clauses_say(name: str, stable: bool) -> None:
    clauses, gone, stats = CASES[name]

    found = plan(snapshot_of(TARGET, enable_stable_row_ids=stable), SOURCE, clauses)

    assert deleted(found) == gone
    assert found.stats == stats
    written = sum(one.physical_rows for one in found.fragments)
    assert written == found.num_updated_rows + found.num_inserted_rows
    assert found.fields == (0, 1)


@pytest.mark.parametrize(
    ("together", "expected"), [(1 << 17, [6, 10]), (5, [6, 10]), (4, [4, 6, 10]), (1, [4, 6, 10])]
)
def test_progress_counts_rows_as_windows_are_looked_up(
    monkeypatch: pytest.MonkeyPatch, together: int, expected: list[int]
) -> None:
    """At least as many rows together as the source has: 4; its rows count as well, at the end."""
    monkeypatch.setattr(merge_insert_join, "_TOGETHER_ROWS", together)
    seen: list[tuple[int, int]] = []

    found = plan(snapshot_of(TARGET), SOURCE, UPSERT, progress=lambda *one: seen.append(one))

    assert deleted(found) == {0: [1], 1: [1]}
    assert seen == [(done, 10) for done in expected]


@pytest.mark.parametrize("rows_per_file", [1, 2, 3, 1000])
def test_rows_that_move_keep_their_ids_and_new_ones_get_theirs_later(rows_per_file: int) -> None:
    snapshot = snapshot_of(TARGET, enable_stable_row_ids=True)

    found = plan(snapshot, SOURCE, UPSERT, rows_per_file)

    known = [
        RowIdSegments.from_bytes(one.row_ids.data).to_numpy().tolist()
        if isinstance(one.row_ids, InlineSequence)
        else None
        for one in found.fragments
    ]
    assert (
        known
        == {
            1: [[1], [3], None, None],
            2: [[1, 3], None],
            3: [[1, 3], None],
            1000: [[1, 3]],
        }[rows_per_file]
    )


def test_without_stable_row_ids_no_row_has_one() -> None:
    found = plan(snapshot_of(TARGET), SOURCE, UPSERT)

    assert [one.row_ids for one in found.fragments] == [None]


@pytest.mark.parametrize(
    ("matched", "keys", "text"),
    [
        (WhenMatched.FAIL, [77, 13], "found matching row with key values: k = 13"),
        (WhenMatched.UPDATE, [12, 77, 12], r"multiple source rows.*\(k = 12\)"),
        (WhenMatched.DELETE, [12, 77, 12], r"multiple source rows.*\(k = 12\)"),
    ],
)
def test_matches_that_are_not_allowed_are_named(
    matched: WhenMatched, keys: list[int], text: str
) -> None:
    snapshot = snapshot_of(TARGET)
    before = snapshot.locations.home.list_recursive("")

    with pytest.raises(MergeInsertError, match=text):
        plan(snapshot, rows_of(keys), MergeClauses(("k",), matched=matched))

    assert snapshot.locations.home.list_recursive("") == before


def test_new_keys_are_recorded_only_for_the_primary_key() -> None:
    snapshot = snapshot_of(TARGET)

    assert plan(snapshot, SOURCE, UPSERT).inserted_keys is None
