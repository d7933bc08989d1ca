"""Small files that pylance wrote, read without pylance; and what a reader refuses."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.columns import Leaf, PackedField, leaves_of
from lance_nb.file.reader import FileReader
from lance_nb.file.writer import FileOptions, FileWriter
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.faults.damage.golden.generate import tables
from tests.support.reading import BytesStore, Columns, positions_of, rows_of, same, single_rows

GOLDEN = Path(__file__).parents[2] / "faults" / "damage" / "golden"
CASES = [(name, version) for name in tables() for version in ("2.1", "2.2")]


def golden(name: str, version: str) -> bytes:
    return (GOLDEN / f"{name}-{version}.lance").read_bytes()


@pytest.mark.parametrize(("name", "version"), CASES)
@pytest.mark.parametrize("mapped", [True, False])
def test_the_golden_files_hold_their_tables(name: str, version: str, mapped: bool) -> None:
    table = tables()[name]
    reader = FileReader(BytesStore(golden(name, version), mapped=mapped), "a.lance")
    columns = Columns(table.schema)
    assert reader.num_rows == table.num_rows
    assert reader.num_columns == len(columns.owners)
    n = table.num_rows
    for rows in (rows_of((0, n)), rows_of(), single_rows([0, 3, n - 1]), rows_of((2, 5), (7, n))):
        wanted = table.take(pa.array(positions_of(rows)))
        for column in table.column_names:
            assert same(columns.read(reader, column, rows), wanted.column(column)), column


def test_nothing_but_the_wanted_columns_is_read() -> None:
    data = golden("numbers", "2.2")
    reader = FileReader(BytesStore(data, mapped=False, tail_bytes=40), "a.lance")
    columns = Columns(tables()["numbers"].schema)
    columns.read(reader, "full", rows_of((0, 3)))
    assert list(reader._columns) == [1]


def test_the_held_metadata_grows_with_the_columns_that_were_read() -> None:
    reader = FileReader(BytesStore(golden("numbers", "2.2")), "a.lance")
    table = 16 * reader.num_columns  # position and size of every column's metadata
    assert reader.metadata_bytes == table
    sizes = [size for _, size in reader._table(reader.footer.column_table_start, 2)]
    for column, size in enumerate(sizes):
        assert size > 0
        assert reader.metadata_bytes == table + sum(sizes[:column])
        reader.column_metadata(column)
    reader.column_metadata(0)
    assert reader.metadata_bytes == table + sum(sizes)


def test_a_wrong_size_in_the_manifest_is_refused() -> None:
    data = golden("numbers", "2.2")
    assert FileReader(BytesStore(data), "a.lance", len(data)).size_bytes == len(data)
    with pytest.raises(CorruptFileError, match="as the manifest says"):
        FileReader(BytesStore(data), "a.lance", len(data) + 1)


def test_another_number_of_rows_than_the_manifest_says_is_refused() -> None:
    reader = FileReader(BytesStore(golden("numbers", "2.2")), "a.lance")
    columns = Columns(tables()["numbers"].schema)
    leaves = list(leaves_of(columns.schema.field("full"), columns.types["full"], columns.owners))
    assert reader.read_leaves(leaves, columns.owners, rows_of((0, 3)), 300)
    for number in (299, 301):
        with pytest.raises(CorruptFileError, match=f"{number} rows, as the manifest says"):
            reader.read_leaves(leaves, columns.owners, rows_of((0, 3)), number)


WIDE = pa.struct([("a", pa.int8()), ("b", pa.int16()), ("c", pa.int32())])
PACKED = pa.schema([pa.field("s", WIDE, metadata={"packed": "true"}), pa.field("n", pa.int8())])


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_some_fields_of_a_packed_struct_are_read(version: tuple[int, int]) -> None:
    clear("reader")
    store = MemoryStore("reader")
    rows = [{"a": k, "b": -k, "c": 7 * k} for k in range(50)]
    batch = pa.record_batch([pa.array(rows, WIDE), pa.array(range(50), pa.int8())], schema=PACKED)
    schema = Schema.from_arrow(PACKED)
    with FileWriter(store, "x", schema, file_version=version) as writer:
        writer.write(batch)
        writer.finish()
    reader = FileReader(store, "x")
    packed, plain = Leaf(0, "s", WIDE, 1), Leaf(4, "n", pa.int8(), 1)
    ids = {"a": PackedField(1), "b": PackedField(2), "c": PackedField(3), "new": PackedField(9)}
    for names in (["a", "b", "c"], ["c"], ["c", "a"], ["b", "new"], ["new", "a"]):
        kinds = [pa.field(name, WIDE.field(name).type if name in WIDE.names else pa.string())
                 for name in names]  # fmt: skip
        leaf = Leaf(0, "s", pa.struct(kinds), 1, children=tuple(ids[name] for name in names))
        found = reader.read_leaves([leaf, plain], {0: 0, 4: 1}, rows_of((3, 5)))
        wanted = [{name: row.get(name) for name in names} for row in rows[3:5]]
        assert found[0][0].values.to_pylist() == wanted
        assert found[4][0].values.to_pylist() == [3, 4]
    found = reader.read_leaves([packed], {0: 0}, rows_of((0, 50)))
    assert found[0][0].values.to_pylist() == rows


def test_more_rows_than_the_file_has_are_refused() -> None:
    reader = FileReader(BytesStore(golden("numbers", "2.2")), "a.lance")
    columns = Columns(tables()["numbers"].schema)
    with pytest.raises(CorruptFileError, match="301 rows"):
        columns.read(reader, "full", rows_of((0, 301)))


@pytest.mark.parametrize("number", [-1, 9, 2**31])
def test_a_column_that_is_not_there_is_refused(number: int) -> None:
    reader = FileReader(BytesStore(golden("numbers", "2.2")), "a.lance")
    with pytest.raises(CorruptFileError, match="a column number below 9"):
        reader.column_metadata(number)


@pytest.mark.parametrize("size", [0, 1, 39, 40, 200])
def test_a_file_that_was_cut_off_is_refused(size: int) -> None:
    data = golden("numbers", "2.2")[:size]
    with pytest.raises(CorruptFileError, match=r"a\.lance"):
        FileReader(BytesStore(data), "a.lance")


def test_a_version_that_cannot_be_read_is_named() -> None:
    data = golden("numbers", "2.2")
    newer = data[:-8] + struct.pack("<HH", 2, 3) + data[-4:]
    with pytest.raises(NotSupportedError, match=r"2\.3"):
        FileReader(BytesStore(newer), "a.lance")


def test_a_file_without_descriptor_has_no_row_count() -> None:
    data = golden("numbers", "2.2")
    without = data[:-16] + struct.pack("<I", 0) + data[-12:]
    with pytest.raises(CorruptFileError, match="global buffers"):
        _ = FileReader(BytesStore(without), "a.lance").num_rows


def test_an_error_names_file_column_page_and_offset() -> None:
    data = bytearray(golden("numbers", "2.2"))
    page = FileReader(BytesStore(bytes(data)), "a.lance").column_metadata(0).pages[0]
    data[page.buffer_offsets[0]] ^= 0xFF
    reader = FileReader(BytesStore(bytes(data)), "a.lance")
    with pytest.raises(CorruptFileError) as caught:
        Columns(tables()["numbers"].schema).read(reader, "small", rows_of((0, 300)))
    assert caught.value.path == "bytes://a.lance"
    assert caught.value.place == "column 'small', page 0"
    assert caught.value.offset_bytes == page.buffer_offsets[0]


@pytest.mark.parametrize("mapped", [True, False])
def test_pages_that_are_open_already_do_not_hide_others(mapped: bool) -> None:
    clear("reader")
    store = MemoryStore("reader")
    values = [str(k) for k in range(600)]
    table = pa.table({"t": pa.array(values), "n": pa.array(range(600), pa.int16())})
    options = FileOptions(page_bytes=400)
    schema = Schema.from_arrow(table.schema)
    with FileWriter(store, "x", schema, options=options) as writer:
        writer.write(*table.to_batches())
        writer.finish()
    reader = FileReader(BytesStore(bytes(store.read("x")), mapped=mapped), "x")
    assert len(reader.column_metadata(0).pages) > 2
    columns = Columns(table.schema)
    for rows in ((0, 3), (0, 600), (200, 400)):
        for name in ("t", "n"):
            found = columns.read(reader, name, rows_of(rows))
            assert found.to_pylist() == table.column(name).to_pylist()[slice(*rows)]
