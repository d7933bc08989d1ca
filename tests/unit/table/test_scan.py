from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.table import scan
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, ROW_OFFSET, project
from lance_nb.table.scan import cut, scan_batches, scan_table
from lance_nb.table.scan_tasks import plan_tasks
from tests.golden.copies import NAMES, expected, expected_versions
from tests.golden.opening import WatchedStore, snapshot_of

VERSIONS = [
    (name, branch, version) for name in NAMES for branch, version in expected_versions(name)
]
OFFSETS = (None, 0, 1, 35, 36, 37, 60, 66, 67, 99, 106, 107, 108, 5000)
LIMITS = (None, 0, 1, 2, 31, 40, 106, 107, 108, 10_000)


def rows_of(snapshot, columns=None, row_columns=(), **window):
    projection = project(snapshot.manifest.schema, columns, row_columns)
    return scan_table(snapshot, projection, plan_tasks(snapshot, **window))


def batches_of(snapshot, columns=None, size=None, row_columns=(), **window):
    projection = project(snapshot.manifest.schema, columns, row_columns)
    return list(scan_batches(snapshot, projection, plan_tasks(snapshot, **window), size))


@pytest.mark.parametrize(("name", "branch", "version"), VERSIONS)
@pytest.mark.parametrize("remote", [False, True], ids=["mapped", "ranges"])
def test_every_version_reads_as_pylance_read_it(stores, name, branch, version, remote):
    snapshot = snapshot_of(WatchedStore(stores[name], remote=remote), (branch, version))
    wanted = expected(name, version, branch)
    row_columns = [column for column in (ROW_ID, ROW_ADDRESS) if column in wanted.column_names]
    found = rows_of(snapshot, None, row_columns)
    assert found.schema.equals(wanted.schema, check_metadata=False)
    assert found.equals(wanted)


@pytest.mark.parametrize("threads", [2, 5])
def test_fragments_read_side_by_side_stay_in_order(at, threads, monkeypatch):
    snapshot = at(9)
    monkeypatch.setattr(scan, "PARALLEL_BYTES", 1)
    monkeypatch.setattr(scan, "cpu_count", lambda: threads)
    row_columns = [ROW_ID, ROW_ADDRESS, ROW_OFFSET]
    together = rows_of(snapshot, None, row_columns)
    assert rows_of(snapshot, ["id"], limit=70, offset=3).equals(together.select(["id"])[3:73])
    monkeypatch.setattr(scan, "PARALLEL_BYTES", 1 << 60)
    assert together.equals(rows_of(snapshot, None, row_columns))


@pytest.mark.parametrize("offset", OFFSETS)
def test_limit_and_offset_cut_the_live_rows(at, offset):
    snapshot = at(9)  # four fragments, deletions of both kinds
    ids = expected("history", 9)["id"].to_pylist()
    for limit in LIMITS:
        start = offset or 0
        stop = None if limit is None else start + limit
        found = rows_of(snapshot, ["id"], limit=limit, offset=offset)
        assert found["id"].to_pylist() == ids[start:stop], (limit, offset)


@pytest.mark.parametrize("size", [1, 2, 7, 36, 100, 8192])
def test_batches_hold_the_same_rows_in_the_same_order(at, size):
    snapshot = at(9)
    whole = rows_of(snapshot)
    for limit, offset in itertools.product((None, 0, 5, 80), (None, 3, 66, 107)):
        batches = batches_of(snapshot, None, size, limit=limit, offset=offset)
        assert all(0 < batch.num_rows <= size for batch in batches)
        joined = pa.Table.from_batches(batches, whole.schema)
        assert joined.equals(whole.slice(offset or 0, limit))


def test_small_windows_give_the_same_rows(at, monkeypatch):
    snapshot = at(4)  # a fragment of 5,060 rows
    whole = rows_of(snapshot)
    monkeypatch.setattr("lance_nb.table.scan.WINDOW_BYTES", 1)
    monkeypatch.setattr("lance_nb.table.scan.WINDOW_ROWS_MIN", 100)
    batches = batches_of(snapshot, None, 64)
    assert max(batch.num_rows for batch in batches) == 64
    assert pa.Table.from_batches(batches).equals(whole)


@pytest.mark.parametrize(("size", "parts"), [(30, {90}), (64, {64}), (100, {100}), (150, {150})])
def test_as_many_rows_are_decoded_as_fit_a_window_or_one_batch(at, monkeypatch, size, parts):
    snapshot = at(4)
    monkeypatch.setattr(scan, "window_rows", lambda *_: 100)
    seen, real = [], scan.read_task

    def noted(snapshot, projection, task):
        seen.append(task.num_rows)
        return real(snapshot, projection, task)

    monkeypatch.setattr(scan, "read_task", noted)
    assert sum(batch.num_rows for batch in batches_of(snapshot, ["id"], size)) == 5126
    assert set(seen) - {36, 30, 5060 % max(parts)} == parts


@pytest.mark.parametrize("size", [1, 3, 9_000, 20_000, 30_001])
def test_what_is_cut_into_batches_is_the_same_rows(size):
    pages = [range(10_000), range(10_000, 10_003), range(10_003, 30_000)]
    found = pa.table({
        "text": pa.chunked_array([pa.array(map(str, one)) for one in pages]),
        "id": pa.chunked_array([pa.array(range(15_000)), pa.array(range(15_000, 30_000))]),
    })  # fmt: skip
    batches = list(cut(found, size))
    wanted = found.combine_chunks().to_batches(max_chunksize=size)
    assert [one.num_rows for one in batches] == [one.num_rows for one in wanted]
    assert all(one.equals(other) for one, other in zip(batches, wanted, strict=True))


def test_of_large_batches_only_those_that_span_pages_are_copied():
    chunks = [pa.array(range(start, start + 25_000)) for start in (0, 25_000)]
    found = pa.table({"id": pa.chunked_array(chunks)})
    held = {one.buffers()[1].address for one in chunks}
    batches = list(cut(found, 10_000))
    assert [one.column(0).buffers()[1].address in held for one in batches] == [
        True, True, False, True, True
    ]  # fmt: skip
    assert not list(cut(found.slice(0, 0), 10_000))


def test_a_batch_never_spans_two_fragments(at):
    sizes = [batch.num_rows for batch in batches_of(at(2))]
    assert sizes == [40, 30]


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_size_that_is_not_positive_is_refused(at, size):
    with pytest.raises(InvalidInputError, match="batch_size must be positive"):
        batches_of(at(2), None, size)


def test_row_columns_follow_the_rows(at):
    snapshot = at(9)
    found = rows_of(snapshot, ["id"], [ROW_ADDRESS, ROW_ID, ROW_OFFSET])
    assert found.column_names == ["id", ROW_ADDRESS, ROW_ID, ROW_OFFSET]
    assert found[ROW_OFFSET].to_pylist() == list(range(107))
    assert found[ROW_ID].equals(found[ROW_ADDRESS])
    assert found[ROW_ADDRESS].type == pa.uint64()
    parts = [rows_of(snapshot, ["id"], [ROW_ADDRESS, ROW_ID, ROW_OFFSET], offset=at_row, limit=1)
             for at_row in range(107)]  # fmt: skip
    assert pa.concat_tables(parts).equals(found)


def test_row_addresses_name_fragment_and_offset(at):
    addresses = rows_of(at(3), ["id"], [ROW_ADDRESS])
    pairs = [
        (address >> 32, address & 0xFFFFFFFF) for address in addresses[ROW_ADDRESS].to_pylist()
    ]
    ids = addresses["id"].to_pylist()
    assert [fragment * 40 + offset for fragment, offset in pairs] == ids


def test_a_scan_of_row_columns_only_reads_no_page(at, history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 2)
    store.forget()
    assert rows_of(snapshot, [], [ROW_ADDRESS]).num_rows == 70
    assert store.num_bytes < 10_000


def test_a_table_without_columns_still_counts_its_rows(at):
    found = rows_of(at(9), [], limit=50, offset=3)
    assert (found.num_rows, found.num_columns) == (50, 0)
    assert sum(batch.num_rows for batch in batches_of(at(9), [], 20)) == 107


def test_an_empty_scan_has_the_schema_of_a_full_one(at, stores):
    assert rows_of(at(9), limit=0).schema == rows_of(at(9)).schema
    assert (
        rows_of(at(9), ["point.x"], [ROW_ID], offset=999).schema
        == rows_of(at(9), ["point.x"], [ROW_ID]).schema
    )
    empty = snapshot_of(stores["empty"])
    assert rows_of(empty).num_rows == 0
    assert rows_of(empty).schema.names == ["id", "word", "value", "point"]
    assert batches_of(empty) == []


def test_a_limited_scan_opens_only_the_fragments_it_needs(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 2)
    store.forget()
    assert rows_of(snapshot, limit=40).num_rows == 40
    assert len({path for path in store.reads if path.startswith("data/")}) == 1
    store.forget()
    assert rows_of(snapshot, offset=40).num_rows == 30
    assert len({path for path in store.reads if path.startswith("data/")}) == 1


def test_only_the_files_of_wanted_columns_are_opened(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 6)  # column "double" lies in files of its own
    store.forget()
    rows_of(snapshot, ["double"], limit=10)
    double = {path for path in store.reads if path.startswith("data/")}
    store.forget()
    rows_of(snapshot, ["id"], limit=10)
    assert len(double) <= 2
    assert {path for path in store.reads if path.startswith("data/")} != double


def test_pages_of_one_handle_are_not_opened_twice(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 9)
    first = rows_of(snapshot)
    store.forget()
    assert rows_of(snapshot).equals(first)
    # Small files lie within the tail that was read when they were opened.
    assert store.num_bytes == 0


@pytest.mark.parametrize("size", [1, 7, 100, 150, 8192])
def test_dictionaries_with_too_many_values_for_their_keys_are_cut_at_chunks(size):
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), pa.array([f"{start + n}" for n in range(100)])
        )
        for start in (0, 100, 200)
    ]
    table = pa.table({"n": pa.chunked_array([range(250), range(250, 300)]),
                      "d": pa.chunked_array(chunks)})  # fmt: skip
    found = list(cut(table, size))
    assert all(0 < batch.num_rows <= size for batch in found)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert rows == [{"n": n, "d": f"{n}"} for n in range(300)]
    assert len(found) <= -(-300 // size) + 3
