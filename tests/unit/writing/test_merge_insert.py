"""Upserts, whole and in parts."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import MergeInsertError
from lance_nb.format.fragment import InlineSequence
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing import upsert_join
from lance_nb.writing.committing import commit_staged
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.staged import MergePlan, combine
from lance_nb.writing.upsert_source import MergeClauses, SourceRows, WhenMatched
from lance_nb.writing.upserting import (
    plan_bucket,
    plan_fragments,
    plan_inserts,
    plan_merge,
    united_plans,
    windows_of,
    without_rows,
)
from lance_nb.writing.writing import WriteRequest

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
        MergeClauses(("k",), deletes_unmatched=True),
        {0: [0], 1: [0], 2: [0, 1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 4},
    ),
    "delete all": (
        MergeClauses(("k",), matched=WhenMatched.DELETE, deletes_unmatched=True),
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
    monkeypatch.setattr(upsert_join, "_TOGETHER_ROWS", together)
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


OPTIONS = WriteRequest().write_options("2.2")
PART_TARGET = pa.table(
    {
        "id": pa.array([None, *range(59)], pa.int64()),
        "name": [f"t{one}" for one in range(60)],
        "price": pa.array(range(60), pa.int32()),
    }
)
PART_SOURCE = pa.table(
    {
        "id": pa.array([*range(10, 70, 4), None, 1000], pa.int64()),
        "name": [f"s{one}" for one in range(17)],
    }
)
CLAUSES: dict[str, Callable[[Any], Any]] = {
    "upsert": lambda it: it.when_matched_update_all().when_not_matched_insert_all(),
    "conditional": lambda it: it.when_matched_update_all("target.price > 30"),
    "insert": lambda it: it.when_not_matched_insert_all(),
    "delete": lambda it: it.when_matched_delete(),
    "replace": lambda it: (
        it.when_matched_update_all().when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
    ),
    "some unmatched": lambda it: it.when_not_matched_by_source_delete("price < 20"),
}  # fmt: skip


def dataset(tmp_path: Any, name: str, *, stable: bool = False) -> LanceDataset:
    made = lance_nb.write_dataset(
        PART_TARGET, str(tmp_path / name), max_rows_per_file=11, enable_stable_row_ids=stable
    )
    made.delete("id = 14")
    return made


def clauses_of(target: LanceDataset, name: str) -> MergeClauses:
    return CLAUSES[name](target.merge_insert("id"))._clauses


def source_rows(table: pa.Table) -> SourceRows:
    return SourceRows(table.to_reader(), None)


def travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def by_fragments(target: LanceDataset, clauses: MergeClauses, source: pa.Table) -> MergePlan:
    _, snapshot = target.opened
    with source_rows(source) as rows:
        parts = [
            travelled(plan_fragments(snapshot, rows, clauses, OPTIONS, [one]))
            for one in snapshot.manifest.fragments
        ]
        rest = plan_inserts(snapshot, rows, clauses, OPTIONS, parts)
    return united_plans([*(one.plan for one in parts), rest])


BUCKETS = 50  # so that some have rows of one side only


def by_keys(target: LanceDataset, clauses: MergeClauses, source: pa.Table) -> MergePlan:
    _, snapshot = target.opened
    keys = target.to_table(["id"], with_row_address=True)
    made = []
    for bucket in range(BUCKETS):
        mine = [in_bucket(one, bucket) for one in (keys, source)]
        addresses = mine[0]["_rowaddr"].to_numpy()[::-1].copy()  # Spark knows no order
        windows = list(windows_of(snapshot, addresses, mine[0].select(["id"])[::-1]))
        with source_rows(mine[1]) as rows:
            made.append(plan_bucket(snapshot, rows, clauses, OPTIONS, windows))
    return united_plans(travelled(made))


def in_bucket(table: pa.Table, bucket: int) -> pa.Table:
    ids: Iterable[int | None] = table["id"].to_pylist()
    return table.filter(pa.array([(one or 0) % BUCKETS == bucket for one in ids]))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("form", [by_fragments, by_keys])
@pytest.mark.parametrize("name", CLAUSES)
def test_parts_change_what_the_whole_does(tmp_path, name: str, form: Any, stable: bool) -> None:
    whole = dataset(tmp_path, "whole.lance", stable=stable)
    source = (
        PART_SOURCE
        if "replace" not in name
        else PART_SOURCE.append_column("price", PART_SOURCE["id"].cast(pa.int32()))
    )
    stats = CLAUSES[name](whole.merge_insert("id").write_mode("rewrite_rows")).execute(source)
    apart = dataset(tmp_path, "apart.lance", stable=stable)
    plan = form(apart, clauses_of(apart, name), source)
    assert plan.stats == stats
    session, snapshot = apart.opened
    commit_staged(session, None, combine(snapshot, [plan]))
    made = lance_nb.dataset(apart.uri)
    made.validate()
    assert in_order(made) == in_order(whole)
    assert made.version == whole.version


def in_order(one: LanceDataset) -> pa.Table:
    return one.to_table().sort_by([("name", "ascending"), ("id", "ascending")])


def test_a_part_counts_the_rows_that_change_or_go(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    _, snapshot = target.opened
    source = PART_SOURCE.append_column("price", PART_SOURCE["id"].cast(pa.int32()))
    with source_rows(source) as rows:
        parts = [
            plan_fragments(snapshot, rows, clauses_of(target, "replace"), OPTIONS, [one])
            for one in snapshot.manifest.fragments
        ]
    live = [one.num_rows for one in snapshot.manifest.fragments]
    assert [one.num_rows for one in parts] == live  # what has no partner goes
    assert sum(one.plan.num_updated_rows for one in parts) > 0


@pytest.mark.parametrize("form", [by_fragments, by_keys])
def test_two_rows_for_one_are_refused(tmp_path, form: Any) -> None:
    target = dataset(tmp_path, "rows.lance")
    twice = pa.concat_tables([PART_SOURCE, PART_SOURCE.slice(3, 1)])
    with pytest.raises(MergeInsertError, match="multiple source rows match"):
        form(target, clauses_of(target, "upsert"), twice)


def test_columns_alone_are_united_too(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    clauses = replace(
        CLAUSES["conditional"](target.merge_insert("id"))._clauses,
        write_mode="rewrite_columns", condition=None,
    )  # fmt: skip
    _, snapshot = target.opened
    with source_rows(PART_SOURCE) as rows:
        parts = [
            plan_fragments(snapshot, rows, clauses, OPTIONS, [one])
            for one in snapshot.manifest.fragments
        ]
    plan = united_plans([one.plan for one in parts])
    session, _ = target.opened
    commit_staged(session, None, combine(snapshot, [plan]))
    made = lance_nb.dataset(target.uri)
    expected = dataset(tmp_path, "whole.lance")
    expected.merge_insert("id").when_matched_update_all().execute(PART_SOURCE)
    assert in_order(made) == in_order(expected)
    assert len(made.get_fragments()) == len(target.get_fragments())


def test_nothing_is_a_plan_as_well(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    plan = without_rows(target.opened[1], clauses_of(target, "upsert"))
    assert set(plan.stats.values()) == {0}


def test_filters_of_keys_are_united() -> None:
    arrays = [pa.array(np.arange(start, start + 50)) for start in (0, 1000)]
    filters = [KeyFilter.of_keys([3], [one]) for one in arrays]
    both = KeyFilter.united(filters)
    assert both == KeyFilter.of_keys([3], [pa.concat_arrays(arrays)])
    assert all(both.may_overlap(one) for one in filters)
    assert not both.may_overlap(KeyFilter.of_keys([3], [pa.array([500_000])]))
    dates = [KeyFilter.of_keys([3], [one.cast(pa.time64("ns"))]) for one in arrays]
    assert KeyFilter.united(dates).may_overlap(dates[1])
    assert KeyFilter.united([filters[0], dates[0]]).hashes is None
