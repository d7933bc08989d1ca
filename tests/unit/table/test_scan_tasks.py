"""The tasks of a scan: which live rows of which fragments, with limit and offset."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.storage.registry import open_store
from lance_nb.table.scan_tasks import (
    FragmentTask,
    first_rows,
    live_counts,
    num_live_rows,
    plan_tasks,
    skipped,
)
from tests.golden.opening import WatchedStore, open_over, snapshot_of


def plan(snapshot, **options):
    return [
        (task.fragment.id, task.start, task.stop, task.first_row)
        for task in plan_tasks(snapshot, **options)
    ]


def test_a_full_scan_has_a_task_per_fragment_in_order(at):
    assert plan(at(4)) == [(0, 0, 36, 0), (1, 0, 30, 36), (2, 0, 5060, 66)]


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({"limit": 0}, []),
        ({"limit": 36}, [(0, 0, 36, 0)]),
        ({"limit": 37}, [(0, 0, 36, 0), (1, 0, 1, 36)]),
        ({"offset": 36}, [(1, 0, 30, 36), (2, 0, 5060, 66)]),
        ({"offset": 35, "limit": 2}, [(0, 35, 36, 35), (1, 0, 1, 36)]),
        ({"offset": 40, "limit": 5}, [(1, 4, 9, 40)]),
        ({"offset": 66, "limit": 1}, [(2, 0, 1, 66)]),
        ({"offset": 5126}, []),
        ({"offset": 2**70, "limit": 2**70}, []),
    ],
)  # fmt: skip
def test_offset_and_limit_choose_fragments_and_rows(at, options, tasks):
    assert plan(at(4), **options) == tasks


@pytest.mark.parametrize(("name", "value"), [("limit", -1), ("offset", -1), ("offset", -(2**70))])
def test_negative_numbers_are_refused_when_the_scan_is_planned(at, name, value):
    with pytest.raises(InvalidInputError, match=f"{name} must not be negative, got {value}"):
        plan_tasks(at(2), **{name: value})


def test_planning_reads_no_file(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 9)
    store.forget()
    assert sum(stop - start for _, start, stop, _ in plan(snapshot)) == 107
    assert not store.reads


def test_planning_is_lazy(at):
    first = next(iter(plan_tasks(at(4))))
    assert isinstance(first, FragmentTask)
    assert (first.fragment.id, first.num_rows) == (0, 36)


def test_a_scan_may_be_kept_to_some_fragments(at):
    snapshot = at(4)
    only = [snapshot.manifest.fragments[2], snapshot.manifest.fragments[0]]
    assert [task[:3] for task in plan(snapshot, fragments=only)] == [(2, 0, 5060), (0, 0, 36)]
    assert [task[:3] for task in plan(snapshot, fragments=only, limit=5, offset=5058)] == [
        (2, 5058, 5060),
        (0, 0, 3),
    ]
    assert plan(snapshot, fragments=[]) == []


def test_fragments_of_one_id_are_read_in_the_order_of_the_manifest(at):
    snapshot = at(4)
    raw = [*snapshot.manifest.fragments.raw, snapshot.manifest.fragments.raw[0]]
    doubled = replace(
        snapshot, manifest=replace(snapshot.manifest, fragments=FragmentList(raw, "m"))
    )
    every = doubled.manifest.fragments
    tasks = list(plan_tasks(doubled))
    assert [one.fragment for one in tasks] == list(every)
    assert [one.fragment for one in plan_tasks(doubled, fragments=[every[-2]])] == [every[-2]]
    (last,) = plan_tasks(doubled, offset=sum(one.num_rows for one in tasks[:-1]))
    assert (last.fragment, last.num_rows) == (every[0], tasks[0].num_rows)


def test_live_rows_are_those_not_deleted(at):
    snapshot = at(5)
    assert [num_live_rows(snapshot, one) for one in snapshot.manifest.fragments] == [36, 30, 41]


def test_fragments_before_the_offset_are_not_decoded(monkeypatch):
    dataset = lance_nb.write_dataset(
        pa.table({"id": range(300)}), f"memory://skipped-{uuid4().hex}/d.lance", max_rows_per_file=2
    )
    dataset.delete("id % 50 < 3")
    ids = dataset.to_table()["id"].to_pylist()
    fresh = lance_nb.dataset(dataset.uri)
    decoded = []
    from_bytes = Fragment.from_bytes
    monkeypatch.setattr(
        Fragment, "from_bytes", lambda *args: decoded.append(args) or from_bytes(*args)
    )
    assert fresh.to_table(limit=5, offset=260)["id"].to_pylist() == ids[260:265]
    assert len(decoded) < 6
    for offset in range(0, len(ids) + 2, 7):
        assert fresh.to_table(limit=4, offset=offset)["id"].to_pylist() == ids[offset : offset + 4]


def test_rows_that_only_deletion_files_tell_are_counted_once():
    count = 300  # more than the cache keeps vectors
    uri = f"memory://counted-{uuid4().hex}/d.lance"
    table = pa.table({"id": range(2 * count), "x": [0] * (2 * count)})
    made = lance_nb.write_dataset(table, uri, max_rows_per_file=2, enable_stable_row_ids=True)
    made.update({"x": "1"}, where="id % 2 = 0")
    ids = made.to_table()["id"].to_pylist()
    store = WatchedStore(open_store(uri))
    dataset = open_over(store)
    store.forget()

    def read() -> int:
        return sum(times for path, times in store.reads.items() if path.startswith("_deletions"))

    assert dataset.to_table(limit=3, offset=290)["id"].to_pylist() == ids[290:293]
    first = read()
    for offset in (280, 270, 285, 10):
        found = dataset.to_table(limit=3, offset=offset)["id"].to_pylist()
        assert found == ids[offset : offset + 3]
    assert first <= count
    assert read() - first <= 4 * 4  # those of the rows that are shown
    for offset in (295, 2, 294):  # another version is counted by the same files
        other = dataset.checkout_version(2).to_table(limit=1, offset=offset)
        assert other["id"].to_pylist() == ids[offset : offset + 1]
    assert read() - first <= 7 * 4


def test_rows_that_the_manifest_does_not_tell_are_counted(at):
    """Old manifests have no numbers of rows; a fragment may have lost every row."""
    snapshot = at(4)
    first, second, third = snapshot.manifest.fragments
    empty = replace(second, deletion_file=DeletionFile(1, 7, DeletionFileType.ARROW, 30))
    untold = replace(first, physical_rows=0)
    for fragments, counts in (
        ([empty, first, empty, third], [0, 36, 0, 5060]),
        ([untold, second, untold], [36, 30, 36]),
        ([untold, empty, untold], [36, 0, 36]),
        ([replace(second, physical_rows=0), third, first], [30, 5060, 36]),
    ):
        raw = FragmentList([one.to_bytes() for one in fragments], "m")
        changed = replace(
            snapshot, manifest=replace(snapshot.manifest, fragments=raw), live_rows=[]
        )
        starts = [sum(counts[:number]) for number in range(len(counts))]
        assert live_counts(changed).tolist() == counts
        assert list(first_rows(changed)) == starts
        for offset in {0, *starts, *(one + 1 for one in starts), sum(counts) - 1, sum(counts)}:
            before = [end for end in np.cumsum(counts).tolist() if end <= offset]
            fresh = replace(changed, live_rows=[])
            if offset:
                assert skipped(fresh, offset) == (len(before), max(before, default=0))
            tasks = list(plan_tasks(fresh, offset=offset))
            assert sum(one.num_rows for one in tasks) == sum(counts) - offset
            assert [one.first_row for one in tasks[:1]] == [offset] * (offset < sum(counts))


def test_deletions_that_the_manifest_does_not_count_are_read(at):
    snapshot = at(5)
    first, _, third = snapshot.manifest.fragments
    uncounted = replace(third, deletion_file=replace(third.deletion_file, num_deleted_rows=0))
    raw = FragmentList([one.to_bytes() for one in (uncounted, first)], "m")
    changed = replace(snapshot, manifest=replace(snapshot.manifest, fragments=raw), live_rows=[])
    assert skipped(changed, 41) == (1, 41)


def test_counts_of_the_manifest_are_taken_where_rows_have_no_ids():
    for stable in (False, True):
        uri = f"memory://scan-plan-{uuid4().hex}/d.lance"
        made = lance_nb.write_dataset(
            pa.table({"id": range(30)}), uri, max_rows_per_file=10, enable_stable_row_ids=stable
        )
        made.delete("id in (3, 4, 25)")
        store = WatchedStore(open_store(uri))
        snapshot = snapshot_of(store)
        store.forget()
        assert skipped(snapshot, 9) == (1, 8)
        assert bool(store.reads) == stable
