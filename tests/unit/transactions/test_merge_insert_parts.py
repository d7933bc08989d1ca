from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import upserting
from lance_nb.dataset.verbs.committing import commit_staged
from lance_nb.dataset.verbs.writing import WriteRequest
from lance_nb.errors import MergeInsertError
from lance_nb.format.key_filter import KeyFilter
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_parts import (
    plan_bucket,
    plan_fragments,
    plan_inserts,
    united,
    windows_of,
    without_rows,
)
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_source import SourceRows
from lance_nb.transactions.staged import combine

OPTIONS = WriteRequest().write_options("2.2")
TARGET = pa.table(
    {
        "id": pa.array([None, *range(59)], pa.int64()),
        "name": [f"t{one}" for one in range(60)],
        "price": pa.array(range(60), pa.int32()),
    }
)
SOURCE = pa.table(
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
    "some lonely": lambda it: it.when_not_matched_by_source_delete("price < 20"),
}  # fmt: skip


def dataset(tmp_path: Any, name: str, *, stable: bool = False) -> LanceDataset:
    made = lance_nb.write_dataset(
        TARGET, str(tmp_path / name), max_rows_per_file=11, enable_stable_row_ids=stable
    )
    made.delete("id = 14")
    return made


def clauses_of(target: LanceDataset, name: str) -> MergeClauses:
    return CLAUSES[name](target.merge_insert("id"))._clauses


def rows_of(table: pa.Table) -> SourceRows:
    return SourceRows(table.to_reader(), None)


def travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def by_fragments(target: LanceDataset, clauses: MergeClauses, source: pa.Table) -> MergePlan:
    _, snapshot = target.opened
    with rows_of(source) as rows:
        parts = [
            travelled(plan_fragments(snapshot, rows, clauses, OPTIONS, [one]))
            for one in snapshot.manifest.fragments
        ]
        rest = plan_inserts(snapshot, rows, clauses, OPTIONS, parts)
    return united([*(one.plan for one in parts), rest])


BUCKETS = 50  # so that some have rows of one side only


def by_keys(target: LanceDataset, clauses: MergeClauses, source: pa.Table) -> MergePlan:
    _, snapshot = target.opened
    keys = target.to_table(["id"], with_row_address=True)
    made = []
    for bucket in range(BUCKETS):
        mine = [in_bucket(one, bucket) for one in (keys, source)]
        addresses = mine[0]["_rowaddr"].to_numpy()[::-1].copy()  # Spark knows no order
        windows = list(windows_of(snapshot, addresses, mine[0].select(["id"])[::-1]))
        with rows_of(mine[1]) as rows:
            made.append(plan_bucket(snapshot, rows, clauses, OPTIONS, windows))
    return united(travelled(made))


def in_bucket(table: pa.Table, bucket: int) -> pa.Table:
    ids: Iterable[int | None] = table["id"].to_pylist()
    return table.filter(pa.array([(one or 0) % BUCKETS == bucket for one in ids]))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("form", [by_fragments, by_keys])
@pytest.mark.parametrize("name", CLAUSES)
def test_parts_change_what_the_whole_does(tmp_path, name: str, form: Any, stable: bool) -> None:
    whole = dataset(tmp_path, "whole.lance", stable=stable)
    source = (
        SOURCE
        if "replace" not in name
        else SOURCE.append_column("price", SOURCE["id"].cast(pa.int32()))
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
    source = SOURCE.append_column("price", SOURCE["id"].cast(pa.int32()))
    with rows_of(source) as rows:
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
    twice = pa.concat_tables([SOURCE, SOURCE.slice(3, 1)])
    with pytest.raises(MergeInsertError, match="multiple source rows match"):
        form(target, clauses_of(target, "upsert"), twice)


def test_columns_alone_are_united_too(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    clauses = upserting.with_clause(
        CLAUSES["conditional"](target.merge_insert("id"))._clauses,
        write_mode="rewrite_columns", condition=None,
    )  # fmt: skip
    _, snapshot = target.opened
    with rows_of(SOURCE) as rows:
        parts = [
            plan_fragments(snapshot, rows, clauses, OPTIONS, [one])
            for one in snapshot.manifest.fragments
        ]
    plan = united([one.plan for one in parts])
    session, _ = target.opened
    commit_staged(session, None, combine(snapshot, [plan]))
    made = lance_nb.dataset(target.uri)
    expected = dataset(tmp_path, "whole.lance")
    expected.merge_insert("id").when_matched_update_all().execute(SOURCE)
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
