"""Pages of several files decoded together: the same values, or left to be read one by one."""

from __future__ import annotations

import random
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings, encodings21
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file import whole_files
from lance_nb.file.columns import Leaf, assemble, leaves_of
from lance_nb.file.metadata import PAGE_LAYOUT_URL, page_layout
from lance_nb.file.reader import FileReader
from lance_nb.file.whole_files import WholeFile, read_files
from lance_nb.file.writer import FileWriter
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.faults.damage.golden.generate import tables
from tests.support.reading import BytesStore, Columns, rows_of, same

GOLDEN = Path(__file__).parents[2] / "faults" / "damage" / "golden"
CASES = [(name, version) for name in tables() for version in ("2.1", "2.2")]
FLIPS = 60


class Fields(Columns):
    """The columns of files that were written with exactly this Arrow schema, by number."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.fields = self.schema.fields
        self.arrow = [self.types[field.name] for field in self.fields]

    def leaves(self, number: int) -> list[Leaf]:
        return list(leaves_of(self.fields[number], self.arrow[number], self.owners))

    def together(self, files: list[WholeFile], number: int) -> list[pa.Array] | None:
        """Return the rows of a column in all files, as chunks; None if it was not read."""
        found = read_files(files, [self.leaves(number)], self.owners)
        if found is None:
            return None
        field, type_ = self.fields[number], self.arrow[number]
        (column,) = found
        parts = [assemble(field, type_, part.leaves, part.num_rows) for part in column.parts]
        return [
            chunk
            for part, start, count in column.places
            for chunk in parts[part].slice(start, count).chunks
        ]

    def alone(self, file: WholeFile, number: int) -> pa.ChunkedArray:
        """Read all rows of a column of one file."""
        reader = FileReader(BytesStore(bytes(file.data)), "a.lance")
        rows = rows_of((0, file.num_rows))
        found = reader.read_leaves(self.leaves(number), self.owners, rows, file.num_rows)
        field, type_ = self.fields[number], self.arrow[number]
        return assemble(field, type_, found, file.num_rows)


def golden(name: str, version: str) -> WholeFile:
    data = (GOLDEN / f"{name}-{version}.lance").read_bytes()
    return WholeFile(memoryview(data), tables()[name].num_rows)


def written(table: pa.Table) -> WholeFile:
    clear("whole-files")
    store = MemoryStore("whole-files")
    with FileWriter(store, "f", Schema.from_arrow(table.schema)) as writer:
        writer.write(*table.to_batches())
        writer.finish()
    return WholeFile(memoryview(bytes(store.read("f"))), table.num_rows)


def is_same(chunks: list[pa.Array], expected: list[pa.ChunkedArray]) -> bool:
    found = pa.chunked_array(chunks, expected[0].type)
    found.validate(full=True)
    whole = [chunk for one in expected for chunk in one.chunks]
    return same(found, pa.chunked_array(whole, expected[0].type))


@pytest.mark.parametrize(("name", "version"), CASES)
def test_files_are_read_as_one_by_one(name: str, version: str) -> None:
    table, file = tables()[name], golden(name, version)
    fields = Fields(table.schema)
    read = 0
    for number in range(table.num_columns):
        chunks = fields.together([file, file, file], number)
        if chunks is not None:
            read += 1
            assert is_same(chunks, [fields.alone(file, number)] * 3), table.column_names[number]
    assert read or name in {"dictionaries", "packed"}, table.column_names


@pytest.mark.parametrize(("name", "version"), CASES)
def test_damage_is_never_hidden_by_the_other_files(name: str, version: str) -> None:
    """Whatever a damaged file gives by itself, an error or values, is what it gives with others."""
    table, file = tables()[name], golden(name, version)
    fields = Fields(table.schema)
    seed = 7
    rng = random.Random(seed)
    for _ in range(FLIPS):
        data = bytearray(file.data)
        for _ in range(rng.choice([1, 1, 4])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        damaged = WholeFile(memoryview(bytes(data)), file.num_rows)
        number = rng.randrange(table.num_columns)
        chunks = fields.together([file, damaged, file], number)
        if chunks is None:
            continue
        try:
            own = fields.alone(damaged, number)
        except (CorruptFileError, NotSupportedError) as error:
            pytest.fail(f"seed {seed}: column {number} was read in spite of {error}")
        whole = fields.alone(file, number)
        assert is_same(chunks, [whole, own, whole]), (seed, number)


def test_pages_of_one_kind_become_one_array() -> None:
    files = [written(pa.table({"n": pa.array(range(at, at + 30))})) for at in range(0, 300, 30)]
    fields = Fields(pa.schema([("n", pa.int64())]))
    chunks = fields.together(files, 0)
    assert chunks is not None
    assert len(chunks) == 1
    assert chunks[0].to_pylist() == list(range(300))


def test_pages_of_two_kinds_keep_the_order_of_their_files() -> None:
    rows = [[1, 2, 3], [None, 5, 6], [7, 8, 9], [10, None, 12], [13, None, None], [16, 17, 18]]
    files = [written(pa.table({"n": pa.array(some, pa.int64())})) for some in rows]
    fields = Fields(pa.schema([("n", pa.int64())]))
    chunks = fields.together(files, 0)
    assert chunks is not None
    assert [value for chunk in chunks for value in chunk.to_pylist()] == list(chain(*rows))


def test_every_description_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    original = whole_files.PageKinds._parsed

    def noting(self: whole_files.PageKinds, encoding: bytes) -> whole_files.PageKind | None:
        parsed.append(encoding)
        return original(self, encoding)

    monkeypatch.setattr(whole_files.PageKinds, "_parsed", noting)
    files = [written(pa.table({"n": [at, at + 1, at * 7]})) for at in range(20)]
    assert Fields(pa.schema([("n", pa.int64())])).together(files, 0) is not None
    assert len(parsed) == 1


def test_an_index_outside_its_own_dictionary_is_no_word_of_another_file() -> None:
    words = [f"word {number % 8:04d}" for number in range(4000)]
    more = [f"term {number % 200:04d}" for number in range(4000)]
    table, other = pa.table({"w": words}), pa.table({"w": more})
    fields = Fields(table.schema)
    data = bytearray(written(table).data)
    good = written(other)
    column = FileReader(BytesStore(bytes(data)), "f").column_metadata(0)
    page = column.pages[0]
    assert page.layout().mini_block_layout.HasField("dictionary")
    start, size = page.buffer_offsets[1], page.buffer_sizes[1]
    refused = 0
    for position in range(start + 8, start + size, 7):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        file = WholeFile(memoryview(bytes(damaged)), 4000)
        chunks = fields.together([file, good], 0)
        if chunks is None:
            refused += 1
            continue
        found = pa.chunked_array(chunks).to_pylist()
        assert set(found[:4000]) <= set(words)
        assert found[4000:] == more
    assert refused


@pytest.mark.parametrize(
    "change",
    ["rows", "cut", "version", "no column", "metadata outside", "no encoding"],
)
def test_an_unusual_file_is_left_to_its_reader(change: str) -> None:
    table = pa.table({"n": pa.array(range(40)), "m": pa.array(range(40))})
    file = written(table)
    fields = Fields(table.schema)
    data, rows = bytearray(file.data), file.num_rows
    owners = fields.owners
    match change:
        case "rows":
            rows += 1
        case "cut":
            data = data[:20]
        case "version":
            data[-8:-4] = b"\0\0\3\0"
        case "no column":
            owners[fields.fields[1].id] = 2
        case "metadata outside":
            table_start = int(np.frombuffer(bytes(data[-32:-24]), "<u8")[0])
            data[table_start + 16 : table_start + 24] = (2**40).to_bytes(8, "little")
        case _:
            reader = FileReader(BytesStore(bytes(data)), "f")
            position, size = reader._column_table[1]
            data[position : position + size] = b"\x08" * size
    other = WholeFile(memoryview(bytes(data)), rows)
    assert fields.together([file, other], 1) is None
    assert fields.together([other, file], 1) is None


def test_a_description_that_is_no_layout_is_left_to_the_reader() -> None:
    kinds = whole_files.PageKinds(page_layout)
    array = encodings.Any(type_url="/lance.encodings.ArrayEncoding", value=b"")
    assert kinds.get(array.SerializeToString()) is None
    empty = encodings21.PageLayout().SerializeToString()
    layout = encodings.Any(type_url=PAGE_LAYOUT_URL, value=empty)
    assert kinds.get(layout.SerializeToString()) is None


def test_packed_structs_and_dictionaries_are_left_to_the_reader() -> None:
    leaf = Leaf(0, "d", pa.dictionary(pa.int8(), pa.string()), 1)
    assert read_files([], [[leaf]], {0: 0}) is None
    assert read_files([], [[Leaf(0, "s", pa.string(), 1, encoded=True)]], {0: 0}) is None
