"""Data files: what is written is read back, whatever the batches; failures leave nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.repdef import Shape, stripe
from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    NotSupportedError,
    SchemaMismatchError,
)
from lance_nb.file.blob_writer import BlobLeafWriter, BlobV2LeafWriter
from lance_nb.file.column_writer import EmptyStructWriter, LeafWriter, plan_column
from lance_nb.file.reader import FileReader
from lance_nb.file.sidecars import Sidecars
from lance_nb.file.sink import FileSink
from lance_nb.file.writer import FileOptions, FileWriter, WrittenFile, leaf_writer
from lance_nb.format.blob_fields import with_blobs
from lance_nb.format.checksums import FileSum, digest_of
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.support.reading import Columns, positions_of, rows_of


@pytest.fixture
def store() -> MemoryStore:
    clear("writer")
    return MemoryStore("writer")


def table_of(n: int) -> pa.Table:
    rng = np.random.default_rng(n)
    return pa.table(
        {
            "i": rng.integers(0, 100, n),
            "s": pa.array([None if k % 5 == 0 else f"row {k}" for k in range(n)], pa.string()),
            "l": pa.array([[k] * (k % 4) for k in range(n)], pa.list_(pa.int32())),
            "t": pa.array(
                [None if k % 7 == 0 else {"a": k, "b": str(k)} for k in range(n)],
                pa.struct([("a", pa.int64()), ("b", pa.string())]),
            ),
        }
    )


def write(store: MemoryStore, table: pa.Table, batch_rows: int = 1000, **kwargs) -> WrittenFile:
    with FileWriter(store, "x", Schema.from_arrow(table.schema), **kwargs) as writer:
        for batch in table.to_batches(max_chunksize=batch_rows):
            writer.write(batch)
        return writer.finish()


def read_back(store: MemoryStore, schema: pa.Schema) -> pa.Table:
    reader = FileReader(store, "x")
    rows = rows_of((0, reader.num_rows)) if reader.num_rows else rows_of()
    columns = Columns(schema)
    return pa.table([columns.read(reader, name, rows) for name in schema.names], schema=schema)


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
@pytest.mark.parametrize("rows", [0, 1, 1024, 5000])
def test_rows_read_back(store: MemoryStore, version: tuple[int, int], rows: int):
    table = table_of(rows)
    written = write(store, table, file_version=version)
    assert written.num_rows == rows
    assert written.size_bytes == store.size("x")
    assert written.file_version == version
    assert (written.fields, written.column_indices) == ((0, 1, 3, 5, 6), (0, 1, 2, 3, 4))
    assert read_back(store, table.schema).equals(table)


def test_pages_of_a_file_read_back(store: MemoryStore):
    table = table_of(5000)
    write(store, table, 333, options=FileOptions(page_bytes=4096))
    reader = FileReader(store, "x")
    assert len(reader.column_metadata(0).pages) > 5
    assert read_back(store, table.schema).equals(table)


def test_many_columns_share_what_may_wait(store: MemoryStore):
    table = pa.table({f"c{k}": np.arange(20_000) for k in range(10)})
    write(store, table, 1000, options=FileOptions(waiting_bytes_max=640 * 1024))
    assert len(FileReader(store, "x").column_metadata(0).pages) > 1


@pytest.mark.parametrize(
    ("columns", "waiting_kib", "page_kib"),
    [(1, 256, 256), (2, 512, 256), (4, 1024, 256), (4, 16, 64), (1, 2048, 512)],
)
def test_a_page_has_at_most_its_share_but_64_kib(
    store: MemoryStore, columns: int, waiting_kib: int, page_kib: int
):
    numbers = np.random.default_rng(1).integers(0, 2**62, 128 * 1024)  # 1 MiB
    table = pa.table({f"c{k}": numbers for k in range(columns)})
    options = FileOptions(page_bytes=512 * 1024, waiting_bytes_max=waiting_kib * 1024)
    write(store, table, 1024, options=options)
    pages = FileReader(store, "x").column_metadata(columns - 1).pages
    assert [page.num_rows for page in pages] == [page_kib * 128] * (1024 // page_kib)


def test_pages_end_at_8_mib_unless_asked(store: MemoryStore):
    table = pa.table({"a": np.random.default_rng(1).integers(0, 2**62, 9 * 128 * 1024)})
    write(store, table, 128 * 1024)
    pages = FileReader(store, "x").column_metadata(0).pages
    assert [page.num_rows for page in pages] == [8 * 128 * 1024, 128 * 1024]


@pytest.mark.parametrize("nullable", [True, False])
def test_rows_of_fixed_size_lists_of_structs_are_found(store: MemoryStore, nullable: bool):
    kind = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]), 3)
    rows = [[{"x": 3 * k + j, "y": f"{k}.{j}"} for j in range(3)] for k in range(50)]
    if nullable:
        rows[4] = None
    table = pa.table({"v": pa.array(rows, kind)})
    write(store, table, 7, file_version=(2, 2), options=FileOptions(page_bytes=100))
    reader = FileReader(store, "x")
    columns = Columns(table.schema)
    for wanted in (rows_of((0, 50)), rows_of((1, 3)), rows_of((3, 6), (10, 11), (48, 50))):
        found = columns.read(reader, "v", wanted).to_pylist()
        assert found == [rows[k] for k in positions_of(wanted)]
    with pytest.raises(CorruptFileError, match="153 rows"):
        columns.read(reader, "v", rows_of((0, 51)))


def test_metadata_and_buffers_of_the_caller_are_kept(store: MemoryStore):
    schema = Schema.from_arrow(pa.schema([("a", pa.int8())], {"one": "1"}))
    writer = FileWriter(store, "x", schema)
    writer.add_schema_metadata({"two": b"2"})
    number = writer.add_global_buffer(b"mine")
    writer.finish()
    reader = FileReader(store, "x")
    assert bytes(reader.global_buffer(number)) == b"mine"
    assert reader.schema.metadata == {"one": b"1", "two": b"2"}


def test_columns_are_found_by_name(store: MemoryStore):
    table = table_of(10)
    with FileWriter(store, "x", Schema.from_arrow(table.schema)) as writer:
        writer.write(table.select(["t", "s", "l", "i"]).to_batches()[0])
        writer.finish()
    assert read_back(store, table.schema).equals(table)


def test_a_missing_column_is_named_and_nothing_remains(store: MemoryStore):
    table = table_of(10)
    with (
        pytest.raises(SchemaMismatchError, match="'l'"),
        FileWriter(store, "x", Schema.from_arrow(table.schema)) as writer,
    ):
        writer.write(table.select(["t", "s", "i"]).to_batches()[0])
    assert store.list_recursive("") == []


def test_a_null_names_its_row_in_the_file(store: MemoryStore):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    writer = FileWriter(store, "x", Schema.from_arrow(schema))
    writer.write(pa.record_batch({"a": [1, 2]}))
    with pytest.raises(SchemaMismatchError, match="row 3"):
        writer.write(pa.record_batch({"a": [1, None]}))


def test_a_batch_that_does_not_fit_leaves_the_file_as_it_was(store: MemoryStore):
    table = table_of(10)
    writer = FileWriter(store, "x", Schema.from_arrow(table.schema))
    writer.write(table.to_batches()[0])
    with pytest.raises(SchemaMismatchError, match="'s'"):
        writer.write(table.set_column(1, "s", [pa.nulls(10, pa.int8())]).to_batches()[0])
    writer.finish()
    assert read_back(store, table.schema).equals(table)


def test_a_file_that_failed_half_way_cannot_be_finished(store: MemoryStore):
    schema = pa.schema([("a", pa.int8()), ("s", pa.struct([("x", pa.int8())]))])
    writer = FileWriter(store, "x", Schema.from_arrow(schema), file_version=(2, 0))
    rows = pa.RecordBatch.from_pylist([{"a": 1, "s": None}], schema=schema)
    with pytest.raises(NotSupportedError, match="null struct"):
        writer.write(rows)
    with pytest.raises(InvalidInputError, match="half-way"):
        writer.finish()
    writer.abort()
    assert store.list_recursive("") == []


def test_unknown_versions_are_refused(store: MemoryStore):
    with pytest.raises(NotSupportedError, match=r"2\.3"):
        FileWriter(store, "x", Schema.from_arrow(pa.schema([])), file_version=(2, 3))


@pytest.mark.parametrize("name", ["page_bytes", "waiting_bytes_max", "blob_pack_bytes"])
def test_sizes_are_positive(name: str):
    with pytest.raises(InvalidInputError, match=f"{name} must be positive, not 0"):
        FileOptions(**{name: 0})
    assert getattr(FileOptions(**{name: 1}), name) == 1


@pytest.mark.parametrize("version", [(2, 0), (2, 1), (2, 2)])
def test_extension_types_are_stored_as_their_storage(store: MemoryStore, version: tuple[int, int]):
    ids = pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), ids)
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[2]"]))
    table = pa.table(
        {
            "u": uuids,
            "j": texts,
            "s": pa.StructArray.from_arrays([uuids, texts], ["u", "j"]),
            "l": pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), uuids),
        }
    )
    write(store, table, 2, file_version=version)
    reader = FileReader(store, "x")
    columns = Columns(table.schema, old=version == (2, 0))
    for name in table.column_names:
        found = columns.read(reader, name, rows_of((0, 3)))
        assert found.type == table.schema.field(name).type
        assert found.to_pylist() == table.column(name).to_pylist()


def test_sums_are_taken_of_every_file_that_is_written(store: MemoryStore):
    kind = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"x" * 70_000, b"y"], kind.type)], schema=pa.schema([kind]))
    schema = Schema.from_arrow(with_blobs(table.schema, (2, 2)))
    with FileWriter(store, "x", schema, options=FileOptions(checksums=True)) as writer:
        assert writer.size_bytes == 0
        writer.write(*table.to_batches())
        assert writer.size_bytes > 0
        written = writer.finish()
        assert writer.size_bytes == written.size_bytes
    paths = ["x", *written.sidecars]
    assert len(paths) == 2
    assert written.sums == tuple(
        FileSum(path, digest_of(store.read(path)), store.size(path)) for path in paths
    )
    with FileWriter(store, "y", schema) as writer:
        assert writer.finish().sums == ()


MARK = {"lance-encoding:blob": "true"}


def writer_of(field: pa.Field, version: tuple[int, int] = (2, 2)) -> LeafWriter:
    store = MemoryStore("leaf-writers")
    schema = Schema.from_arrow(with_blobs(pa.schema([field]), version))
    (leaf,) = plan_column(schema.fields[0], version).leaves
    return leaf_writer(leaf, FileSink(store.create("x"), Sidecars(store, "x")), 100)


@pytest.mark.parametrize(
    ("field", "version", "kind"),
    [
        (pa.field("a", pa.int8()), (2, 2), LeafWriter),
        (pa.field("a", pa.struct([])), (2, 2), EmptyStructWriter),
        (pa.field("a", pa.large_binary(), metadata=MARK), (2, 1), BlobLeafWriter),
        (pa.field("a", pa.large_binary(), metadata=MARK), (2, 2), BlobV2LeafWriter),
    ],
)
def test_kinds(field: pa.Field, version: tuple[int, int], kind: type):
    assert type(writer_of(field, version)) is kind


def test_blobs_are_large_binary():
    with pytest.raises(NotSupportedError, match="large_binary, not binary"):
        writer_of(pa.field("a", pa.binary(), metadata=MARK), (2, 1))


def test_null_structs_without_fields_are_refused():
    writer = writer_of(pa.field("a", pa.struct([])))
    rows = pa.array([{}, None], pa.struct([]))
    (leaf,) = stripe(rows, Shape())
    with pytest.raises(NotSupportedError, match="'a' has null structs"):
        writer.add(leaf, 2)
