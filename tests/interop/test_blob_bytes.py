"""Reads that return the bytes of blobs: LanceFileReader and LanceFragment.take, as in pylance.

pylance 14.0.2 can read neither data files nor fragments with blobs of the second generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
PAYLOADS = [b"abc", None, b"", b"x" * 70_000, b"y" * 5_000_000, *(b"%d" % n for n in range(95))]
OLD = ("2.0", "2.1")


def tables(version: str) -> Iterator[tuple[str, pa.Table]]:
    """Build tables with blobs at the top, in structs and, where pylance reads them, in lists."""
    blobs, ids = pa.array(PAYLOADS, pa.large_binary()), pa.array(range(100))
    yield "top", pa.table([blobs, ids], schema=pa.schema([BLOB, ("id", pa.int64())]))
    fields = [BLOB, pa.field("n", pa.int64())]
    yield "struct", pa.table({"s": pa.StructArray.from_arrays([blobs, ids], fields=fields)})
    if version == "2.0":
        item = BLOB.with_name("item")
        mask = pa.array([number % 7 == 6 for number in range(50)])
        lists = pa.ListArray.from_arrays(range(0, 101, 2), blobs, pa.list_(item), mask=mask)
        yield "list", pa.table({"l": lists})


def reads(reader: Any) -> Iterator[pa.Table]:
    """Read a file in every way."""
    count = reader.num_rows()
    yield reader.read_all().to_table()
    yield reader.read_all(batch_size=3).to_table()
    yield pa.Table.from_batches(reader.read_range(1, count - 2, batch_size=7).to_batches())
    yield reader.take_rows([0, 1, 2, 4, count - 1]).to_table()


def file_readers(path: Path, columns: list[str] | None = None) -> tuple[Any, Any]:
    from lance.file import LanceFileReader

    ours = lance_nb.LanceFileReader(path, columns=columns)
    return ours, LanceFileReader(str(path), columns=columns)


def check_file(path: Path, columns: list[str] | None = None) -> None:
    ours, theirs = file_readers(path, columns)
    assert ours.metadata().schema.equals(theirs.metadata().schema, check_metadata=True)
    for found, expected in zip(reads(ours), reads(theirs), strict=True):
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.equals(expected)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", ["pylance", "lance_nb"])
def test_files_read_as_by_pylance(version: str, writer: str, tmp_path: Path) -> None:
    lance = require_pylance()
    kind = lance_nb.LanceFileWriter if writer == "lance_nb" else lance.file.LanceFileWriter
    for name, table in tables(version):
        path = tmp_path / f"{name}.lance"
        with kind(str(path), table.schema, version=version) as file:
            file.write_batch(table)
        check_file(path)
        check_file(path, table.column_names[:1])
        assert lance_nb.LanceFileReader(path).read_all().to_table().equals(table)
    assert len(list(tmp_path.iterdir())) == (3 if version == "2.0" else 2)


@pytest.mark.parametrize("version", OLD)
def test_data_files_and_fragments_read_as_by_pylance(version: str, tmp_path: Path) -> None:
    lance = require_pylance()
    for name, table in tables(version):
        path = tmp_path / name
        lance.write_dataset(table, path, data_storage_version=version, max_rows_per_file=40)
        for file in sorted((path / "data").glob("*.lance")):
            check_file(file)
        data = lance.dataset(path)
        if name == "top":
            data.delete("id = 1 or id = 70")
        for number in (0, 1):
            ours, theirs = (one.dataset(path).get_fragments()[number] for one in (lance_nb, lance))
            for columns in (None, table.column_names[-1:], table.column_names[:1]):
                found, expected = (one.take([0, 2, 4, 7], columns) for one in (ours, theirs))
                assert found.schema.equals(expected.schema, check_metadata=True)
                assert found.equals(expected)
    assert ours.take([], ["l" if version == "2.0" else "s"]).num_rows == 0


@pytest.mark.parametrize("writer", ["pylance", "lance_nb"])
@pytest.mark.parametrize("place", ["top", "struct"])
def test_blobs_of_the_second_generation_are_read_too(
    writer: str, place: str, tmp_path: Path
) -> None:
    lance = require_pylance()
    table = dict(tables("2.2"))[place]
    library = lance_nb if writer == "lance_nb" else lance
    library.write_dataset(table, str(tmp_path / "d"), data_storage_version="2.2")
    (path,) = (tmp_path / "d/data").glob("*.lance")
    ours, theirs = file_readers(path)
    assert ours.metadata().schema.equals(theirs.metadata().schema, check_metadata=True)
    with pytest.raises(ValueError, match="column index"):
        theirs.read_all()
    for found, expected in zip(reads(ours), (table, table, table[1:-1]), strict=False):
        assert found.to_pylist() == expected.to_pylist()
    picked = [0, 1, 2, 4, 99]
    assert ours.take_rows(picked).to_table().to_pylist() == table.take(picked).to_pylist()
    (fragment,) = lance_nb.dataset(tmp_path / "d").get_fragments()
    assert fragment.take(picked).to_pylist() == table.take(picked).to_pylist()
    if place == "top":
        ids = lance_nb.LanceFileReader(path, columns=["id"]).read_all().to_table()
        assert ids.equals(table.select(["id"]))


@pytest.mark.parametrize("is_link", [False, True])
def test_external_blobs_are_not_followed(is_link: bool, tmp_path: Path) -> None:
    lance = require_pylance()
    (tmp_path / "outside").write_bytes(b"secret")
    blobs = lance.blob_array([b"own", lance.Blob.from_uri((tmp_path / "outside").as_uri())])
    table = pa.table([blobs], schema=pa.schema([lance.blob_field("b")]))
    lance.write_dataset(
        table, tmp_path / "d", data_storage_version="2.2", allow_external_blob_outside_bases=True
    )
    (path,) = (tmp_path / "d/data").glob("*.lance")
    if is_link:
        (tmp_path / "link.lance").symlink_to(path)
        path = tmp_path / "link.lance"
    reader = lance_nb.LanceFileReader(path)
    assert reader.read_range(0, 1).to_table().to_pylist() == [{"b": b"own"}]
    with pytest.raises(NotSupportedError, match="outside of the data file"):
        reader.read_all().to_table()
