"""Payloads of blobs by scan, by row and by range, external ones too, as pylance returns them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

BLOB = {"lance-encoding:blob": "true"}
VERSIONS = ("2.0", "2.1", "2.2")


def write(path: Path, version: str) -> Any:
    """Blobs at the top and in a struct, null, empty, small and large, some rows deleted."""
    lance = require_pylance()
    inner = pa.struct([pa.field("data", pa.large_binary(), metadata=BLOB), ("k", pa.int32())])
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("blob", pa.large_binary(), metadata=BLOB | {"made": "here"}),
            pa.field("inside", inner),
            pa.field("plain", pa.binary()),
        ]
    )
    empty = b"" if version == "2.0" else None
    blobs = [b"abc", empty, b"", b"x" * 100_000, b"y" * 70_000] * 4
    structs = [{"data": b"n%d" % k if k % 3 else empty, "k": k} for k in range(20)]
    if version != "2.0":
        structs[7] = None
    columns = [list(range(20)), blobs, structs, [b"p%d" % k for k in range(20)]]
    table = pa.table(
        [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
    dataset = lance.write_dataset(table, path, data_storage_version=version, max_rows_per_file=8)
    dataset.delete("id in (3, 9)")
    return lance.dataset(path)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("handling", [None, "all_binary", "all_descriptions", "blobs_descriptions"])
def test_blob_handling(tmp_path: Path, version: str, handling: str | None) -> None:
    theirs, ours = write(tmp_path / "d", version), lance_nb.dataset(tmp_path / "d")
    for options in (
        {},
        {"columns": ["blob"]},
        {"columns": ["id", "inside"], "filter": "id > 5"},
        {"columns": ["plain"]},
        {"limit": 4, "offset": 3, "with_row_id": True, "with_row_address": True},
    ):
        found = ours.to_table(blob_handling=handling, **options)
        expected = theirs.to_table(blob_handling=handling, **options)
        assert found.schema.equals(expected.schema, check_metadata=True), options
        assert found.equals(expected), options
    scanner = ours.scanner(blob_handling=handling, batch_size=3)
    assert pa.Table.from_batches(scanner.to_batches()).num_rows == 18
    assert scanner.projected_schema.equals(scanner.to_table().schema)
    assert ours.scanner(blob_handling=handling, filter="id > 5").count_rows() == 13


def test_another_blob_handling_is_refused(tmp_path: Path) -> None:
    theirs, ours = write(tmp_path / "d", "2.2"), lance_nb.dataset(tmp_path / "d")
    for dataset in (ours, theirs):
        with pytest.raises(ValueError, match="Invalid blob_handling: nonsense"):
            dataset.to_table(blob_handling="nonsense")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("column", ["blob", "inside.data"])
def test_blobs_are_read_by_every_selector(tmp_path: Path, version: str, column: str) -> None:
    theirs, ours = write(tmp_path / "d", version), lance_nb.dataset(tmp_path / "d")
    rows = [4, 0, 12, 4]
    for selector in (
        {"indices": rows},
        {"ids": [1 << 32 | 2, 0, 5]},
        {"addresses": pa.array([2, 1 << 32 | 3], pa.uint64())},
        {"indices": []},
    ):
        mine = ours.read_blobs(column, preserve_order=True, **selector)
        assert mine == theirs.read_blobs(column, preserve_order=True, **selector), selector
        files = ours.take_blobs(column, **selector)
        assert [one and one.readall() for one in files] == [data for _, data in mine]


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_read_by_range(tmp_path: Path, version: str) -> None:
    theirs, ours = write(tmp_path / "d", version), lance_nb.dataset(tmp_path / "d")
    requests = [(3, 10, 5), (0, 0, 2), (0, 3, 0), (3, 69_999, 1), (2, 0, 0)]
    for selector in ("indices", "addresses"):
        asked = [(row + (selector == "addresses" and row > 2), *part) for row, *part in requests]
        mine = ours.read_blob_ranges("blob", asked, selector=selector)
        assert mine == theirs.read_blob_ranges("blob", asked, selector=selector)
    assert ours.read_blob_ranges("blob", [], selector="ids") == []


BAD = {
    "two selectors": lambda one: one.read_blobs("blob", indices=[0], ids=[0]),
    "no selector": lambda one: one.read_blobs("blob"),
    "no such row": lambda one: one.read_blobs("blob", indices=[99]),
    "no blob": lambda one: one.read_blobs("plain", indices=[0]),
    "a range too long": lambda one: one.read_blob_ranges("blob", [(0, 1, 9)], selector="indices"),
    "a range too late": lambda one: one.read_blob_ranges("blob", [(0, 5, 0)], selector="indices"),
    "no such range row": lambda one: one.read_blob_ranges("blob", [(99, 0, 0)], selector="indices"),
    "a selector": lambda one: one.read_blob_ranges("blob", [(0, 0, 1)], selector="rows"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_pylance_refuses_is_refused(tmp_path: Path, bad: str) -> None:
    theirs, ours = write(tmp_path / "d", "2.1"), lance_nb.dataset(tmp_path / "d")
    with pytest.raises(ValueError):
        BAD[bad](theirs)
    with pytest.raises(InvalidInputError):
        BAD[bad](ours)


def external(folder: Path, **options: Any) -> tuple[Any, list[bytes | None]]:
    """Write blobs that lie in files of their own beside the dataset."""
    lance = require_pylance()
    media = folder / "media"
    media.mkdir()
    payloads = [b"first", b"second payload", b""]
    for number, data in enumerate(payloads):
        (media / f"{number}.bin").write_bytes(data)
    values: list[Any] = [f"file://{media}/{number}.bin" for number in range(2)]
    values += [b"inline", None, lance.Blob.from_uri(values[1], position=2, size=4)]
    schema = pa.schema([lance.blob_field("blob"), pa.field("id", pa.int64())])
    table = pa.table([lance.blob_array(values), pa.array(range(5))], schema=schema)
    dataset = lance.write_dataset(table, folder / "d", data_storage_version="2.2", **options)
    return dataset, [b"first", b"second payload", b"inline", None, b"cond"]


def test_external_blobs_are_read_where_they_lie(tmp_path: Path) -> None:
    theirs, payloads = external(tmp_path, allow_external_blob_outside_bases=True)
    ours = lance_nb.dataset(tmp_path / "d", allow_bases=[f"file://{tmp_path}/media"])

    assert ours.to_table().equals(theirs.to_table())
    assert [data for _, data in ours.read_blobs("blob", indices=range(5))] == payloads
    assert ours.to_table(blob_handling="all_binary")["blob"].to_pylist() == payloads
    assert theirs.to_table(blob_handling="all_binary")["blob"].to_pylist() == payloads


def test_external_blobs_below_a_base_path_are_read(tmp_path: Path) -> None:
    lance = require_pylance()
    base = lance.DatasetBasePath(f"file://{tmp_path}/media", name="media")
    _, payloads = external(tmp_path, initial_bases=[base])
    ours = lance_nb.dataset(tmp_path / "d", allow_bases=[f"file://{tmp_path}/media"])

    assert [data for _, data in ours.read_blobs("blob", indices=range(5))] == payloads


def test_external_blobs_must_be_allowed(tmp_path: Path) -> None:
    external(tmp_path, allow_external_blob_outside_bases=True)

    with pytest.raises(InvalidInputError, match="allow_bases"):
        lance_nb.dataset(tmp_path / "d").read_blobs("blob", indices=[0])


def test_ingested_blobs_need_no_leave(tmp_path: Path) -> None:
    _, payloads = external(tmp_path, external_blob_mode="ingest")
    ours = lance_nb.dataset(tmp_path / "d")

    assert [data for _, data in ours.read_blobs("blob", indices=range(5))] == payloads
