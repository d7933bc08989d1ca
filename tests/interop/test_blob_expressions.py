"""Blobs in expressions, filters, projections and new columns: bytes or descriptions, as pylance."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, PredicateError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

BLOB = pa.field(
    "b",
    pa.large_binary(),
    metadata={
        "lance-encoding:blob": "true",
        "lance-encoding:blob-inline-size-threshold": "10",
        "lance-encoding:blob-dedicated-size-threshold": "1000",
    },
)
INNER = pa.struct([pa.field("n", pa.int64()), BLOB])
PAYLOADS = [b"abc", None, b"", b"p" * 300, b"d" * 2000, b"zz"]
VERSIONS = ["2.0", "2.1", "2.2"]


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str, str]:
    """Return two copies of a dataset of pylance, with a deleted row, and their file version."""
    lance = require_pylance()
    version: str = request.param
    structs = [{"n": at, "b": one} for at, one in enumerate(reversed(PAYLOADS))]
    fields = [("id", pa.int64()), pa.field("x", pa.int64()), BLOB, pa.field("s", INNER)]
    columns = [
        pa.array(range(6)), pa.array([1] * 6), pa.array(PAYLOADS, pa.large_binary()),
        pa.array(structs, INNER),
    ]  # fmt: skip
    table = pa.table(columns, schema=pa.schema(fields))
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    lance.write_dataset(table, theirs, data_storage_version=version, max_rows_per_file=4)
    lance.dataset(theirs).delete("id = 5")
    shutil.copytree(theirs, ours)
    return theirs, ours, version


def content(dataset: Any) -> list[dict[str, Any]]:
    found = dataset.scanner(blob_handling="all_binary").to_table()
    rows: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return rows


def test_new_columns_are_computed_from_payloads(pair: tuple[str, str, str]) -> None:
    """pylance does so for the first generation; of the second it reads no blobs there."""
    theirs, ours, version = pair
    lance = require_pylance()
    expressions = {"n": "b", "m": "CASE WHEN id = 0 THEN X'00' ELSE b END"}

    def sizes(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column("b").to_pylist()
        assert batch.schema.field("b").type == pa.large_binary()
        return pa.record_batch({"z": [None if one is None else len(one) for one in values]})

    lance_nb.dataset(ours).add_columns(expressions)
    lance_nb.dataset(ours).add_columns(sizes, read_columns=["b", "id"])
    found = lance.dataset(ours).to_table(["id", "n", "m", "z"])
    assert found["n"].to_pylist() == PAYLOADS[:5]
    assert found["m"].to_pylist() == [b"\0", *PAYLOADS[1:5]]
    assert found["z"].to_pylist() == [None if one is None else len(one) for one in PAYLOADS[:5]]
    assert found.schema.field("n").metadata is None
    if version != "2.2":
        lance.dataset(theirs).add_columns({"n": "b"})
        assert lance.dataset(theirs).to_table(["n"])["n"].to_pylist() == PAYLOADS[:5]
        assert lance.dataset(theirs).schema.field("n") == found.schema.field("n")


def test_updates_take_values_from_payloads(pair: tuple[str, str, str]) -> None:
    theirs, ours, version = pair
    lance = require_pylance()
    expected = content(lance.dataset(theirs))
    updates = {"b": "s.b"}
    lance_nb.dataset(ours).update(updates, where="id < 3")
    for row in expected[:3]:
        row["b"] = row["s"]["b"]
    assert content(lance.dataset(ours)) == expected
    if version != "2.2":
        lance.dataset(theirs).update(updates, where="id < 3")
        assert content(lance.dataset(theirs)) == expected


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_blobs_become_plain_columns(pair: tuple[str, str, str], kind: pa.DataType) -> None:
    theirs, ours, version = pair
    lance = require_pylance()
    change = {"path": "b", "data_type": kind}
    if version == "2.2":
        for module, uri in ((lance, theirs), (lance_nb, ours)):
            with pytest.raises((OSError, ValueError), match=r"(?i)cannot"):
                module.dataset(uri).alter_columns(change)
        return
    lance.dataset(theirs).alter_columns(change)
    lance_nb.dataset(ours).alter_columns(change)
    found = lance.dataset(ours).to_table(["id", "b"])
    assert found == lance.dataset(theirs).to_table(["id", "b"])
    assert found.schema.equals(lance.dataset(theirs).to_table(["id", "b"]).schema, True)
    assert found["b"].to_pylist() == PAYLOADS[:5]


def test_fragments_get_new_blobs(pair: tuple[str, str, str]) -> None:
    theirs, ours, version = pair
    lance = require_pylance()
    schema = pa.schema([pa.field("id", pa.int64()), BLOB])
    table = pa.table([[0, 3], pa.array([b"new", b"v" * 3000], pa.large_binary())], schema=schema)
    expected = content(lance.dataset(ours))
    expected[0]["b"], expected[3]["b"] = b"new", b"v" * 3000
    for module, uri in ((lance, theirs), (lance_nb, ours)):
        if module is lance and version == "2.2":
            continue  # it refuses blobs of the second generation there
        dataset = module.dataset(uri)
        made, fields = dataset.get_fragments()[0].update_columns(table, left_on="id")
        operation = module.LanceOperation.Update(updated_fragments=[made], fields_modified=fields)
        module.LanceDataset.commit(uri, operation, read_version=dataset.version)
        assert content(lance.dataset(uri)) == expected


@pytest.mark.parametrize(
    "scan",
    [
        {"columns": {"s": "b"}, "blob_handling": "all_binary"},
        {"columns": {"b": "x"}, "blob_handling": "all_binary"},
        {"columns": {"b": "x", "c": "s.b"}, "blob_handling": "all_binary"},
        {"columns": {"y": "x + 1"}, "blob_handling": "all_binary", "with_row_id": True},
        {"columns": {"b": "x"}},
        {"columns": ["id", "b"], "blob_handling": "all_binary", "limit": 2, "offset": 1},
        {"columns": ["b", "_rowid"], "limit": 2, "offset": 3},
    ],
    ids=str,
)
def test_scans_agree(pair: tuple[str, str, str], scan: dict[str, Any]) -> None:
    theirs, ours, _ = pair
    wanted = require_pylance().dataset(theirs).scanner(**scan).to_table()
    found = lance_nb.dataset(ours).scanner(**scan).to_table()
    assert found.to_pylist() == wanted.to_pylist()
    assert found.schema.types == wanted.schema.types


@pytest.mark.parametrize(
    "scan",
    [
        {"columns": ["b.size", "id"]},
        {"columns": ["id", "b.kind", "b"], "filter": "b.kind = 1"},
        {"columns": ["id"], "filter": "b.size > 2 AND b.blob_uri = ''"},
        {"columns": {"n": "b.size + 1"}},
        {"columns": ["s.b.size"], "filter": "s.b.kind = 2"},
    ],
    ids=str,
)
def test_descriptions_are_structs_to_scans(tmp_path: Path, scan: dict[str, Any]) -> None:
    """Of blobs of the second generation; those of the first have no fields in either library."""
    lance = require_pylance()
    for version in VERSIONS:
        uri = str(tmp_path / version)
        structs = pa.array([{"n": 1, "b": one} for one in PAYLOADS], INNER)
        fields = [pa.field("id", pa.int64()), BLOB, pa.field("s", INNER)]
        columns = [pa.array(range(6)), pa.array(PAYLOADS, pa.large_binary()), structs]
        table = pa.table(columns, schema=pa.schema(fields))
        lance.write_dataset(table, uri, data_storage_version=version)
        theirs, ours = lance.dataset(uri), lance_nb.dataset(uri)
        if version != "2.2":
            with pytest.raises((ValueError, OSError)):
                theirs.to_table(**scan)
            with pytest.raises((ColumnNotFoundError, PredicateError)):
                ours.to_table(**scan)
            continue
        wanted, found = theirs.to_table(**scan), ours.to_table(**scan)
        assert found.schema.names == wanted.schema.names
        assert [row.values() for row in found.drop_columns(_places(found)).to_pylist()] == [
            row.values() for row in wanted.drop_columns(_places(wanted)).to_pylist()
        ] or found.num_rows == wanted.num_rows
        assert found.drop_columns(_places(found)) == wanted.drop_columns(_places(wanted))
        assert ours.take([3], ["b.size"]).to_pylist() == theirs.take([3], ["b.size"]).to_pylist()
        with pytest.raises(ColumnNotFoundError, match=r"b\.kind"):
            ours.to_table(["b.data"])


def _places(table: pa.Table) -> list[str]:
    """Name the columns of whole descriptions: empty blobs have other positions there."""
    return [name for name in ("b",) if name in table.column_names]


def test_a_renamed_and_a_dropped_column(pair: tuple[str, str, str]) -> None:
    theirs, ours, _ = pair
    lance = require_pylance()
    for module, uri in ((lance, theirs), (lance_nb, ours)):
        dataset = module.dataset(uri)
        dataset.alter_columns({"path": "b", "name": "image"}, {"path": "s.b", "name": "c"})
        dataset.optimize.compact_files()
        dataset.drop_columns(["s"])
    expected = content(lance.dataset(theirs))
    assert content(lance.dataset(ours)) == content(lance_nb.dataset(ours)) == expected
    assert [row["image"] for row in expected] == PAYLOADS[:5]


def test_blob_files_in_use_outlive_a_cleanup(pair: tuple[str, str, str]) -> None:
    _, ours, version = pair
    lance = require_pylance()
    expected = content(lance.dataset(ours))
    dataset = lance_nb.dataset(ours)
    dataset.optimize.compact_files()
    before = sum(one.stat().st_size for one in Path(ours).rglob("*") if one.is_file())
    removed = dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    after = sum(one.stat().st_size for one in Path(ours).rglob("*") if one.is_file())
    assert removed.bytes_removed == before - after
    assert content(lance.dataset(ours)) == content(lance_nb.dataset(ours)) == expected
    assert len(list(Path(ours).rglob("*.blob"))) == (3 if version == "2.2" else 0)
    assert lance_nb.dataset(ours).space().orphan_bytes == 0
