"""Blob columns: where payloads go, and that failures leave nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError, ObjectNotFoundError
from lance_nb.file.blob_values import StoredPayloads
from lance_nb.file.columns import Leaf
from lance_nb.file.external_blobs import ExternalBlobs
from lance_nb.file.reader import FileReader
from lance_nb.file.writer import FileOptions, FileWriter
from lance_nb.format.blob_fields import BLOB_VALUES, DESCRIPTION_V2, with_blobs
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.support.reading import rows_of

MARK = {"lance-encoding:blob": "true"}
SMALL = {
    "lance-encoding:blob-inline-size-threshold": "10",
    "lance-encoding:blob-dedicated-size-threshold": "100",
}


@pytest.fixture
def store() -> MemoryStore:
    clear("blobs")
    return MemoryStore("blobs")


def write(store: MemoryStore, table: pa.Table, version: tuple[int, int], **options: object):
    schema = Schema.from_arrow(with_blobs(table.schema, version))
    made = FileOptions(**options)  # type: ignore[arg-type]
    with FileWriter(store, "x.lance", schema, file_version=version, options=made) as writer:
        for batch in table.to_batches(max_chunksize=50):
            writer.write(batch)
        return writer.finish()


def table_of(rows: list[bytes | None], **marks: str) -> pa.Table:
    field = pa.field("b", pa.large_binary(), metadata={**MARK, **marks})
    return pa.table([pa.array(rows, pa.large_binary())], schema=pa.schema([field]))


@pytest.mark.parametrize("version", [(2, 0), (2, 1), (2, 2)])
def test_payloads_are_written_when_they_come(store: MemoryStore, version: tuple[int, int]):
    rows = [None if k % 7 == 0 else bytes([k % 256]) * k for k in range(300)]
    written = write(store, table_of(rows), version)
    assert written.num_rows == 300
    raw = bytes(store.read("x.lance"))
    for row in rows:
        assert row is None or row in raw
    assert FileReader(store, "x.lance").num_columns == 1


def test_sizes_choose_the_place(store: MemoryStore):
    rows = [b"a" * 5, b"b" * 50, b"c" * 500, None, b"d" * 60]
    written = write(store, table_of(rows, **SMALL), (2, 2))
    assert len(written.sidecars) == 2
    shared, own = (bytes(store.read(path)) for path in written.sidecars)
    assert shared == b"b" * 50 + b"d" * 60
    assert own == b"c" * 500
    assert b"a" * 5 in bytes(store.read("x.lance"))


def test_payloads_go_beside_the_file_from_64_kib_and_alone_from_4_mib_on(store: MemoryStore):
    sizes = [1 << 16, (1 << 16) + 1, 1 << 22, (1 << 22) + 1]
    written = write(store, table_of([bytes([k]) * size for k, size in enumerate(sizes)]), (2, 2))
    beside = [bytes(store.read(path)) for path in written.sidecars]
    assert [len(one) for one in beside] == [sizes[1] + sizes[2], sizes[3]]
    assert bytes(sizes[0]) in bytes(store.read("x.lance"))


def test_references_must_be_allowed(store: MemoryStore):
    kind = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    marks = {"ARROW:extension:name": "lance.blob.v2"}
    rows = pa.array([{"data": b"x"}, {"uri": "s3://other/y"}, None], kind)
    table = pa.table([rows], schema=pa.schema([pa.field("b", kind, metadata=marks)]))
    with pytest.raises(InvalidInputError, match="'s3://other/y' is outside"):
        write(store, table, (2, 2))
    assert store.list_recursive("") == []
    write(store, table, (2, 2), allows_external_blobs=True)
    assert b"s3://other/y" in bytes(store.read("x.lance"))


def test_failures_remove_sidecars(store: MemoryStore):
    table = table_of([b"b" * 50, b"c" * 500], **SMALL)
    schema = Schema.from_arrow(with_blobs(table.schema, (2, 2)))
    writer = FileWriter(store, "x.lance", schema)
    writer.write(table.to_batches()[0])
    writer.abort()
    assert store.list_recursive("") == []


def test_many_small_payloads_are_put_side_by_side(store: MemoryStore):
    rows = [f"payload {k}".encode() for k in range(5000)]
    write(store, table_of(rows), (2, 2))
    raw = np.frombuffer(store.read("x.lance"), np.uint8)
    assert bytes(raw[64 * 49 : 64 * 49 + 10]) == b"payload 49"


def test_lists_of_blobs_are_refused(store: MemoryStore):
    item = pa.field("item", pa.large_binary(), metadata=MARK)
    table = pa.table(
        [pa.array([[b"a"]], pa.list_(item))], schema=pa.schema([("l", pa.list_(item))])
    )
    with pytest.raises(NotSupportedError, match="lists of blobs"):
        write(store, table, (2, 1))


def test_blobs_are_large_binary(store: MemoryStore):
    field = pa.field("b", pa.binary(), metadata=MARK)
    table = pa.table([pa.array([b"a"])], schema=pa.schema([field]))
    with pytest.raises(NotSupportedError, match="'b': blobs are large_binary"):
        write(store, table, (2, 1))
    assert store.list_recursive("") == []
    write(store, table, (2, 2))


URIS = pa.struct(
    [("data", pa.large_binary()), ("uri", pa.string()), ("position", pa.uint64()),
     ("size", pa.uint64())]
)  # fmt: skip


def references(*rows: dict[str, object] | None) -> pa.Table:
    marks = {"ARROW:extension:name": "lance.blob.v2", **SMALL}
    field = pa.field("b", URIS, metadata=marks)
    return pa.table([pa.array(rows, URIS)], schema=pa.schema([field]))


def test_what_lies_elsewhere_is_stored_here(store: MemoryStore, tmp_path: Path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"0123456789")
    large.write_bytes(b"L" * 500)
    table = references(
        {"uri": str(small)},
        {"uri": str(small), "position": 2, "size": 3},
        None,
        {"data": b"D" * 60},
        {"uri": str(large)},
        {"uri": str(large), "position": 1, "size": 70},
    )
    written = write(store, table, (2, 2), ingests=ExternalBlobs(), stored=StoredPayloads())
    raw = bytes(store.read("x.lance"))
    assert b"0123456789" in raw
    assert b"234" + bytes(61) in raw
    assert str(tmp_path).encode() not in raw
    beside = [bytes(store.read(path)) for path in written.sidecars]
    assert beside == [b"D" * 60 + b"L" * 70, b"L" * 500]


def test_what_is_not_there_is_named_with_its_column(store: MemoryStore, tmp_path: Path):
    table = references({"uri": str(tmp_path / "nope")})
    with pytest.raises(ObjectNotFoundError) as caught:
        write(store, table, (2, 2), ingests=ExternalBlobs(), stored=StoredPayloads())
    assert caught.value.__notes__ == [f"column 'b': {str(tmp_path / 'nope')!r}"]
    assert store.list_recursive("") == []


def based(*rows: dict[str, object]) -> pa.Table:
    field = pa.field("b", BLOB_VALUES, metadata={"ARROW:extension:name": "lance.blob.v2"})
    return pa.table([pa.array(rows, BLOB_VALUES)], schema=pa.schema([field]))


def test_references_of_stored_rows_are_taken_over_with_their_base(store: MemoryStore):
    table = based(
        {"uri": "folder/a", "base": 7, "position": 3, "size": 5},
        {"uri": "folder/b", "base": 0},
        {"uri": "s3://other/c"},
    )
    write(store, table, (2, 2), stored=StoredPayloads(), allows_external_blobs=True)
    assert [
        tuple(row[key] for key in ("kind", "blob_uri", "blob_id", "position", "size"))
        for row in descriptions(store)
    ] == [(3, "folder/a", 7, 3, 5), (3, "folder/b", 0, 0, 0), (3, "s3://other/c", 0, 0, 0)]


def test_a_base_means_nothing_where_no_rows_are_stored(store: MemoryStore):
    row = {"uri": "folder/a", "base": 7}
    with pytest.raises(InvalidInputError, match="'folder/a' is outside"):
        write(store, based(row), (2, 2))
    write(store, based(row), (2, 2), allows_external_blobs=True)
    assert [one["blob_id"] for one in descriptions(store)] == [0]


def descriptions(store: MemoryStore) -> list[dict[str, object]]:
    """Return what the file says of its blobs."""
    reader = FileReader(store, "x.lance")
    kind = pa.struct(list(DESCRIPTION_V2))
    leaf = Leaf(0, "b", kind, 1)
    (part,) = reader.read_leaves([leaf], {0: 0}, rows_of((0, reader.num_rows)))[0]
    return part.values.to_pylist()


def test_a_file_beside_is_full_at_its_size(store: MemoryStore):
    marks = SMALL | {"lance-encoding:blob-pack-file-size-threshold": "100"}
    written = write(store, table_of([bytes([k]) * 50 for k in range(5)], **marks), (2, 2))
    beside = [bytes(store.read(path)) for path in written.sidecars]
    assert [len(one) for one in beside] == [100, 100, 50]
    assert b"".join(beside) == b"".join(bytes([k]) * 50 for k in range(5))
