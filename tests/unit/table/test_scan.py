"""Scans: tasks read in windows, batches, dictionaries, several searches, explained plans."""

from __future__ import annotations

import itertools
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb import ColumnOrdering
from lance_nb.errors import ColumnNotFoundError, InvalidInputError
from lance_nb.table import fragment_group, scan
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


def test_pages_of_one_handle_are_not_opened_twice(history, monkeypatch):
    monkeypatch.setattr(fragment_group, "FRAGMENT_ROWS_MAX", 0)  # groups keep nothing open
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


_NUMBERS = count()


def _written(table: pa.Table, **options: object) -> lance_nb.LanceDataset:
    uri = f"memory://forms/{next(_NUMBERS)}.lance"
    lance_nb.write_dataset(table, uri, **options)
    return lance_nb.dataset(uri)


WORDS = ["a", "bb", None, "a", "", "bb"] * 4
TABLE = pa.table({
    "s": WORDS, "t": pa.array(WORDS, pa.large_string()),
    "b": pa.array([w and w.encode() for w in WORDS], pa.binary()), "n": range(24),
    "l": [[w] for w in WORDS], "k": pa.array(WORDS).dictionary_encode(),
})  # fmt: skip


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("filter_", [None, "n % 2 = 0"], ids=str)
def test_texts_and_bytes_come_as_dictionaries_where_they_are_asked_for(
    version: str, filter_: str | None
) -> None:
    ds = _written(TABLE, data_storage_version=version, max_rows_per_file=10)
    table = TABLE if filter_ is None else TABLE.filter(np.arange(24) % 2 == 0)
    scanner = ds.scanner(filter=filter_, keep_dictionaries=True)
    found = scanner.to_table()

    assert scanner.projected_schema == found.schema
    for name, type_ in (("s", pa.string()), ("t", pa.large_string()), ("b", pa.binary())):
        assert found.schema.field(name).type == pa.dictionary(pa.int32(), type_)
        assert found[name].cast(type_).to_pylist() == table[name].to_pylist()
    for name in ("n", "l", "k"):
        assert found.schema.field(name).type == ds.schema.field(name).type
        assert found[name].to_pylist() == table[name].to_pylist()
    batches = ds.scanner(["s"], filter_, keep_dictionaries=True, batch_size=5).to_batches()
    assert [v for one in batches for v in one["s"].to_pylist()] == table["s"].to_pylist()


def test_parts_of_descriptions_of_blobs_are_columns() -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = [b"x" * size for size in (3, 0, 70_000, 5)]
    table = pa.table([pa.array(payloads, pa.large_binary()), pa.array(range(4))],
                     schema=pa.schema([field, ("id", pa.int64())]))  # fmt: skip
    ds = _written(table, data_storage_version="2.2")

    found = ds.to_table(["b.size", "id"])
    assert found.column_names == ["b.size", "id"]
    assert found["b.size"].to_pylist() == [3, 0, 70_000, 5]
    assert ds.to_table(["id"], "b.size > 3")["id"].to_pylist() == [2, 3]
    whole = ds.to_table(["b"])["b"].to_pylist()
    for part in ("kind", "position", "blob_id"):
        values = ds.to_table([f"b.{part}"])[f"b.{part}"].to_pylist()
        assert values == [one[part] for one in whole]
    with pytest.raises(ColumnNotFoundError, match=r"b\.size"):
        ds.to_table(["b.length"])


VECTORS = np.array([[0, 0], [3, 4], [1, 0], [0, 2], [1, 1], [6, 8], [0, 1]], np.float32)
SEARCHED = pa.table({
    "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 2),
    "id": range(7), "n": [3, 1, 2, 1, 2, 3, 1],
})  # fmt: skip


def test_several_queries_give_the_rows_of_each() -> None:
    ds = _written(SEARCHED, max_rows_per_file=3)
    queries = np.array([[0, 0], [3, 3]], np.float32)
    found = ds.to_table(["id"], nearest={"column": "v", "q": queries, "k": 3})
    expected = []
    for number, query in enumerate(queries):
        distances = ((VECTORS - query) ** 2).sum(axis=1)
        order = np.argsort(distances, kind="stable")[:3].tolist()
        expected += [(number, at, float(distances[at])) for at in order]

    assert found.column_names == ["query_index", "id", "_distance"]
    assert not found.schema.field("query_index").nullable
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    clash = SEARCHED.append_column("query_index", SEARCHED["id"])
    with pytest.raises(InvalidInputError, match="query_index"):
        _written(clash).to_table(nearest={"column": "v", "q": queries})


def test_found_rows_can_be_put_in_another_order() -> None:
    ds = _written(SEARCHED, max_rows_per_file=3)
    nearest = {"column": "v", "q": [0.0, 0.0], "k": 5}
    order = [ColumnOrdering("n", ascending=False), "id"]
    near = np.argsort((VECTORS**2).sum(axis=1), kind="stable")[:5].tolist()
    numbers = SEARCHED["n"].to_pylist()
    expected = sorted(near, key=lambda at: (-numbers[at], at))

    assert ds.to_table(["id"], nearest=nearest, order_by=order)["id"].to_pylist() == expected
    part = ds.to_table(["id"], nearest=nearest, order_by=order, offset=1, limit=2)
    assert part["id"].to_pylist() == expected[1:3]
    distances = (VECTORS**2).sum(axis=1)
    assert part["_distance"].to_pylist() == [float(distances[at]) for at in expected[1:3]]
    with pytest.raises(InvalidInputError, match="cannot be combined with nearest"):
        ds.to_table(nearest=nearest, include_deleted_rows=True, with_row_id=True)


def test_a_plan_tells_what_is_read_first() -> None:
    ds = _written(SEARCHED, max_rows_per_file=3)
    nearest = {"column": "v", "q": [0.0, 0.0], "k": 5}

    assert ds.scanner(["id"]).explain_plan().splitlines() == [
        "LanceScan: version 1, 3 fragments", "  decoded: id", "  result: id",
    ]  # fmt: skip
    plan = ds.scanner(["id"], "n > 1", nearest=nearest, order_by=["n"], limit=2).explain_plan()
    assert plan.splitlines() == [
        "LanceScan: version 1, 3 fragments", "  filter: n > 1",
        "  nearest: 5 by l2 of 'v', exact, before the filter", "  order by: n",
        "  decoded first, for every row: n, v", "  decoded for the rows that are left: id",
        "  offset 0, limit 2", "  result: id, _distance",
    ]  # fmt: skip
    after = ds.scanner(["n"], "n > 1", nearest=nearest, prefilter=True, offset=3).explain_plan()
    assert "exact, after the filter" in after
    assert "  decoded for the rows that are left: nothing" in after
    assert "  offset 3, limit None" in after
    few = ds.scanner([], fragments=ds.get_fragments()[:1]).explain_plan()
    assert few.splitlines() == [
        "LanceScan: version 1, 1 fragment", "  decoded: nothing", "  result: no columns",
    ]  # fmt: skip


def test_row_columns_and_fields_of_structs_stay_as_they_are_beside_dictionaries() -> None:
    table = pa.table({"p": [{"s": word} for word in WORDS], "s": WORDS})
    ds = _written(table, max_rows_per_file=20)
    scanner = ds.scanner(["p.s", "s"], with_row_address=True, keep_dictionaries=True)
    found = scanner.to_table()

    assert found.schema.types == [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.uint64()]
    assert found["p.s"].to_pylist() == found["s"].to_pylist() == WORDS
    assert found["_rowaddr"].to_pylist() == [n // 20 << 32 | n % 20 for n in range(24)]
