"""Descriptions become references to stored payloads, once these are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import BLOB_VALUES
from lance_nb.table.blob_copies import BlobCopies

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
PAYLOADS = [b"abc", None, b"", bytes(70_000)]
ADDRESSES = np.arange(4, dtype=np.uint64)


def written(path: Path, version: str) -> lance_nb.LanceDataset:
    table = pa.table([pa.array(PAYLOADS, pa.large_binary())], schema=pa.schema([BLOB]))
    return lance_nb.write_dataset(table, str(path), data_storage_version=version)


def described(rows: pa.Table, **fields: int) -> pa.Table:
    """Return rows whose first description has other numbers."""
    values = rows["b"].to_pylist()
    values[0] = values[0] | fields
    return pa.table([pa.array(values, rows["b"].type)], schema=rows.schema)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_payloads_are_named_by_their_place(tmp_path: Path, version: str) -> None:
    dataset = written(tmp_path, version)
    copies = BlobCopies(dataset.opened[1])
    rows = copies.table(dataset.to_table(), ADDRESSES)
    assert rows.schema.field("b").type == BLOB_VALUES
    first, second, third, fourth = rows["b"].to_pylist()
    assert second is None
    assert [one["size"] for one in (first, third, fourth)] == [3, 0, 70_000]
    assert all(one["data"] is one["uri"] is one["base"] is None for one in (first, third, fourth))
    assert (fourth["object"] != first["object"]) == (version == "2.2")
    place = [(fourth["position"], fourth["position"] + 70_000)]
    assert bytes(copies.payloads.read(fourth["object"], place)[0]) == PAYLOADS[3]
    alone = copies.table(dataset.to_table(), ADDRESSES, without=["b"])
    assert alone.equals(dataset.to_table())


@pytest.mark.parametrize(
    "fields", [{"size": 10**9}, {"position": 2**64 - 1}, {"size": 2**64 - 1}, {"position": 10**9}]
)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_ranges_outside_of_the_object_are_refused(
    tmp_path: Path, version: str, fields: dict[str, int]
) -> None:
    dataset = written(tmp_path, version)
    rows = described(dataset.to_table(), **fields)
    with pytest.raises(CorruptFileError, match="a blob of"):
        BlobCopies(dataset.opened[1]).table(rows, ADDRESSES)


def test_later_kinds_are_refused(tmp_path: Path) -> None:
    dataset = written(tmp_path, "2.2")
    rows = described(dataset.to_table(), kind=4)
    with pytest.raises(NotSupportedError, match="a blob of kind 4"):
        BlobCopies(dataset.opened[1]).table(rows, ADDRESSES)


def test_links_that_leave_the_dataset_are_not_followed(tmp_path: Path) -> None:
    dataset = written(tmp_path / "d", "2.2")
    (sidecar,) = (tmp_path / "d").rglob("*.blob")
    secret = tmp_path / "secret"
    sidecar.rename(secret)
    sidecar.symlink_to(secret)
    for read in (
        lambda: dataset.take_blobs("b", indices=[3]),
        lambda: BlobCopies(dataset.opened[1]).table(dataset.to_table(), ADDRESSES),
    ):
        with pytest.raises(InvalidInputError, match="symbolic link that leaves"):
            read()


def test_values_cannot_name_stored_objects_from_outside(tmp_path: Path) -> None:
    """What a caller hands in is no reference to an object of ours, nor to a base path."""
    dataset = written(tmp_path, "2.2")
    schema = pa.schema([pa.field("b", BLOB_VALUES, metadata=V2)])
    for value in ({"object": 0, "size": 3}, {"uri": "/etc/passwd", "base": 0}):
        table = pa.table([pa.array([value], BLOB_VALUES)], schema=schema)
        with pytest.raises(InvalidInputError, match=r"'object'|outside of the dataset"):
            lance_nb.write_dataset(table, dataset.uri, mode="append")


V2 = {"ARROW:extension:name": "lance.blob.v2"}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_fragments_without_the_column_have_null_blobs(tmp_path: Path, version: str) -> None:
    numbers = pa.table({"id": [1, 2]})
    dataset = lance_nb.write_dataset(numbers, str(tmp_path), data_storage_version=version)
    blob = BLOB if version == "2.1" else pa.field("b", *_second(BLOB))
    dataset.add_columns(pa.schema([blob]))
    schema = pa.schema([pa.field("id", pa.int64()), BLOB])
    row = pa.table([[3], pa.array([b"x"], pa.large_binary())], schema=schema)
    lance_nb.write_dataset(row, str(tmp_path), mode="append")
    dataset = lance_nb.dataset(str(tmp_path))
    for _ in range(2):
        files = dataset.take_blobs("b", indices=[0, 1, 2])
        assert [None if one is None else one.readall() for one in files] == [None, None, b"x"]
        dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1


def _second(field: pa.Field) -> tuple[pa.DataType, bool, dict[str, str]]:
    kind = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    return kind, field.nullable, V2
