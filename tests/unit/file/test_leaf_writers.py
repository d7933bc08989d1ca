"""Every column gets the writer of its kind."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings.repdef import Shape, stripe
from lance_nb.errors import NotSupportedError
from lance_nb.file.blob_writer import BlobLeafWriter, BlobV2LeafWriter
from lance_nb.file.column_writer import EmptyStructWriter, LeafWriter
from lance_nb.file.leaf_writers import leaf_writer
from lance_nb.file.sidecars import Sidecars
from lance_nb.file.sink import FileSink
from lance_nb.file.write_plan import plan_column
from lance_nb.format.blob_fields import with_blobs
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore

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
