"""Columns of 2.0 files: which there are, where their pages end, what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import NotSupportedError
from lance_nb.file.reader import FileReader
from lance_nb.file.writer import FileOptions, FileWriter, WrittenFile
from lance_nb.format.blob_fields import with_blobs
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.support.reading import Columns, rows_of


@pytest.fixture
def store() -> MemoryStore:
    clear("array-writer")
    return MemoryStore("array-writer")


def write(store: MemoryStore, table: pa.Table, page_bytes: int = 1 << 20) -> WrittenFile:
    schema = Schema.from_arrow(table.schema)
    options = FileOptions(page_bytes=page_bytes)
    with FileWriter(store, "x", schema, file_version=(2, 0), options=options) as writer:
        for batch in table.to_batches(max_chunksize=100):
            writer.write(batch)
        return writer.finish()


def page_rows(store: MemoryStore) -> list[list[int]]:
    reader = FileReader(store, "x")
    columns = range(reader.num_columns)
    return [[page.num_rows for page in reader.column_metadata(one).pages] for one in columns]


def check(store: MemoryStore, table: pa.Table) -> None:
    reader = FileReader(store, "x")
    columns = Columns(table.schema, old=True)
    for name in table.column_names:
        found = columns.read(reader, name, rows_of((0, table.num_rows)))
        assert found.to_pylist() == table.column(name).to_pylist()


def test_every_field_owns_a_column(store: MemoryStore):
    rows = [{"a": k, "b": [{"c": str(k)}] * (k % 3)} for k in range(250)]
    table = pa.table({"s": pa.array(rows), "z": range(250)})
    written = write(store, table)
    assert written.fields == (0, 1, 2, 3, 4, 5)
    assert written.column_indices == (0, 1, 2, 3, 4, 5)
    items = sum(k % 3 for k in range(250))
    assert page_rows(store) == [[250], [250], [250], [items], [items], [250]]
    check(store, table)


def test_pages_end_when_enough_has_come(store: MemoryStore):
    lists = [None if k % 7 == 0 else [k] * (k % 4) for k in range(1000)]
    table = pa.table({"l": pa.array(lists, pa.list_(pa.int32())), "a": range(1000)})
    write(store, table, 2000)
    ends, items, plain = page_rows(store)
    assert len(ends) > 1
    assert len(items) > 1
    assert len(plain) > 1
    assert sum(ends) == sum(plain) == 1000
    check(store, table)


@pytest.mark.parametrize(("page_bytes", "rows"), [(1600, [200, 200, 100]), (1601, [300, 200])])
def test_a_page_ends_at_its_last_byte(store: MemoryStore, page_bytes: int, rows: list[int]):
    empty = pa.array([[]] * 500, pa.list_(pa.int8()))
    table = pa.table({"a": pa.array(range(500)), "l": empty})
    write(store, table, page_bytes)
    assert page_rows(store) == [rows, rows, [0]]
    check(store, table)


def test_places_of_blobs_fill_pages_too(store: MemoryStore):
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [None if k % 3 == 0 else b"x" * (k % 5) for k in range(500)]
    table = pa.table([pa.array(values, field.type)], schema=pa.schema([field]))
    for page_bytes, rows in ((3200, [200, 200, 100]), (3201, [300, 200])):
        clear("array-writer")
        schema = Schema.from_arrow(with_blobs(table.schema, (2, 0)))
        options = FileOptions(page_bytes=page_bytes)
        with FileWriter(store, "x", schema, file_version=(2, 0), options=options) as writer:
            for batch in table.to_batches(max_chunksize=100):
                writer.write(batch)
            writer.finish()
        assert page_rows(store) == [rows]
        columns = Columns(pa.schema([pa.field("b", pa.large_binary())]), old=True)
        found = columns.read(FileReader(store, "x"), "b", rows_of((0, 500)))
        assert found.to_pylist() == values


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.list_(pa.struct([("x", pa.list_(pa.string()))]))]
)
def test_lists_without_items_have_pages_without_values(store: MemoryStore, kind: pa.DataType):
    table = pa.table({"l": pa.array([None, [], None], kind)})
    write(store, table)
    assert [sum(rows) for rows in page_rows(store)] == [3] + [0] * (len(page_rows(store)) - 1)
    assert all(len(rows) == 1 for rows in page_rows(store))
    check(store, table)


def test_no_rows_have_no_pages(store: MemoryStore):
    write(store, pa.table({"l": pa.array([], pa.list_(pa.int8()))}))
    assert page_rows(store) == [[], []]


def test_null_structs_are_refused_with_their_row(store: MemoryStore):
    with pytest.raises(NotSupportedError, match=r"'s' has a null struct in row 101.*2\.1"):
        write(store, pa.table({"s": pa.array([{"a": 1}] * 101 + [None])}))
    assert not store.exists("x")


@pytest.mark.parametrize(
    "kind",
    [pa.map_(pa.string(), pa.int8()), pa.list_(pa.struct([("x", pa.int8())]), 2)],
    ids=["map", "fixed-size list of structs"],
)
def test_what_2_0_cannot_hold_is_refused_before_a_file_is_begun(
    store: MemoryStore, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
):
    schema = Schema.from_arrow(pa.schema([("s", pa.struct([("m", kind)]))]))
    monkeypatch.setattr(store, "create", lambda _path: pytest.fail("a file was begun"))
    with pytest.raises(NotSupportedError, match=r"'s\.m'.*2\.2 can"):
        FileWriter(store, "x", schema, file_version=(2, 0))


def test_packed_structs_own_one_column(store: MemoryStore):
    field = pa.field("s", pa.struct([("a", pa.int8()), ("b", pa.int16())]))
    schema = pa.schema([field.with_metadata({"packed": "true"})])
    table = pa.table([pa.array([{"a": k, "b": -k} for k in range(5)], field.type)], schema=schema)
    assert write(store, table).fields == (0,)
    assert page_rows(store) == [[5]]
