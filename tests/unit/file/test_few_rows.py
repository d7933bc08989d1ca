"""Files of few rows: columns of a type are encoded together, and all come back as they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.file import few_rows
from lance_nb.file.few_rows import ROWS_MAX, is_plain
from lance_nb.file.reader import FileReader
from lance_nb.file.writer import FileOptions, FileWriter
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.support.reading import Columns, rows_of
from tests.support.wide_tables import mixed_table


@pytest.fixture
def store() -> MemoryStore:
    clear("few-rows")
    return MemoryStore("few-rows")


def write(store: MemoryStore, *batches: pa.RecordBatch, **options) -> FileReader:
    schema = Schema.from_arrow(batches[0].schema)
    with FileWriter(store, "x", schema, **options) as writer:
        for batch in batches:
            writer.write(batch)
        writer.finish()
    return FileReader(store, "x")


def read(reader: FileReader, schema: pa.Schema) -> pa.Table:
    columns = Columns(schema)
    rows = rows_of((0, reader.num_rows))
    return pa.table([columns.read(reader, name, rows) for name in schema.names], schema=schema)


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
@pytest.mark.parametrize("rows", [1, 10, 63, 64, 1025, ROWS_MAX, ROWS_MAX + 1])
def test_mixed_columns_read_back(store, rows, version):
    table = mixed_table(rows, 3)
    (batch,) = table.combine_chunks().to_batches()
    reader = write(store, batch, file_version=version)
    assert read(reader, table.schema).equals(table)


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_slices_and_more_batches_read_back(store, version):
    table = mixed_table(500, 2)
    (batch,) = table.combine_chunks().to_batches()
    reader = write(
        store, batch.slice(0, 7), batch.slice(7, 1), batch.slice(8), file_version=version
    )
    assert read(reader, table.schema).equals(table)
    reader = write(store, batch.slice(123, 77), file_version=version)
    assert read(reader, table.schema).equals(table.slice(123, 77))


def test_columns_of_a_type_share_one_description(store):
    rows = np.arange(50)
    table = pa.table({f"c{number}": rows * number % 97 for number in range(1, 21)})
    reader = write(store, *table.to_batches())
    layouts = {reader.column_metadata(number).pages[0].encoding for number in range(20)}
    assert len(layouts) == 1
    places = [reader.column_metadata(number).pages[0].buffer_offsets for number in range(20)]
    assert all(place % 64 == 0 for pair in places for place in pair)
    assert len({place for pair in places for place in pair}) == 40


def test_pages_of_a_size_that_was_asked_for_are_kept(store):
    table = pa.table({f"c{number}": np.arange(4000) for number in range(10)})
    options = FileOptions(page_bytes=8000)
    reader = write(store, *table.to_batches(), options=options)
    assert all(len(reader.column_metadata(number).pages) > 2 for number in range(10))
    assert read(reader, table.schema).equals(table)


def test_few_columns_are_encoded_one_by_one(store, monkeypatch):
    stacks = []
    monkeypatch.setattr(
        few_rows, "encode_stack", lambda leaves, *_: stacks.append(len(leaves)) or []
    )
    table = pa.table({f"c{number}": [number, number + 1] for number in range(8)})
    write(store, *table.select(range(7)).to_batches())
    assert not stacks
    reader = write(store, *table.to_batches())
    assert stacks == [8]
    assert read(reader, table.schema).equals(table)  # what no stack takes


@pytest.mark.parametrize(
    ("field", "answer"),
    [
        (pa.field("x", pa.int32()), True),
        (pa.field("x", pa.int32(), metadata={"unit": "mm"}), True),
        (pa.field("x", pa.string(), nullable=False), True),
        (pa.field("x", pa.bool_()), True),
        (pa.field("x", pa.timestamp("us", "UTC")), True),
        (pa.field("x", pa.int32(), metadata={"lance-encoding:compression": "zstd"}), False),
        (pa.field("x", pa.large_string()), False),
        (pa.field("x", pa.decimal128(9, 2)), False),
        (pa.field("x", pa.list_(pa.int32())), False),
        (pa.field("x", pa.list_(pa.int32(), 3)), False),
        (pa.field("x", pa.struct([("a", pa.int32())])), False),
        (pa.field("x", pa.dictionary(pa.int8(), pa.string())), False),
        (pa.field("x", pa.null()), False),
        (pa.field("x", pa.json_()), False),
    ],
)
def test_plain_fields_are_leaves_without_encoding_keys(field, answer):
    (only,) = Schema.from_arrow(pa.schema([field]))
    assert is_plain(only) == answer
