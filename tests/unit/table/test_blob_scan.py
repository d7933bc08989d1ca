"""Blob columns in scans, reads and statistics: forms of payloads and the bytes written."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.blob_columns import DESCRIPTION, binary_form, scanned_form
from lance_nb.table.blob_scan import fragment_addresses, with_files
from lance_nb.table.data_statistics import data_statistics, payload_bytes, payload_rows
from lance_nb.table.scan import DEFAULT_BATCH_ROWS
from lance_nb.table.scan_plan import ScanOptions

BLOB = {"lance-encoding:blob": "true", "made": "here"}


def form(arrow: pa.Field) -> pa.Field:
    field = Schema.from_arrow(pa.schema([arrow])).field(arrow.name)
    return binary_form(field, scanned_form(field, arrow))


def test_descriptions_become_bytes_and_keep_the_metadata_of_the_column() -> None:
    arrow = pa.field("blob", pa.large_binary(), nullable=False, metadata=BLOB)

    assert form(arrow).equals(arrow, check_metadata=True)


def test_descriptions_inside_structs_become_bytes() -> None:
    inner = pa.field("data", pa.large_binary(), metadata=BLOB)
    arrow = pa.field("s", pa.struct([inner, pa.field("n", pa.int8())]))

    assert form(arrow).equals(arrow, check_metadata=True)


def test_columns_that_look_like_descriptions_stay_as_they_are() -> None:
    arrow = pa.field("pair", DESCRIPTION)

    assert form(arrow).equals(arrow, check_metadata=True)


def test_the_address_of_a_row_has_its_fragment_in_the_upper_half() -> None:
    assert fragment_addresses(Fragment(3, (), 5), 2) == [3 << 32, 3 << 32]


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_deleted_rows_have_their_payloads_too(kind: str) -> None:
    """They had no address, which ended in a TypeError; pylance returns them."""
    payloads = [b"a", None, b"ccc", b"d"]
    ids = pa.array(range(4))
    if kind == "v2":
        schema = pa.schema([("id", pa.int64()), lance_nb.blob_field("blob")])
        rows = pa.table([ids, lance_nb.blob_array(payloads)], schema=schema)
    else:
        field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        schema = pa.schema([("id", pa.int64()), field])
        rows = pa.table([ids, pa.array(payloads, pa.large_binary())], schema=schema)
    uri = f"memory://unit-deleted-blobs/{kind}.lance"
    dataset = lance_nb.write_dataset(rows, uri, data_storage_version="2.2", max_rows_per_file=2)
    dataset.delete("id in (2)")
    options = {"blob_handling": "all_binary", "with_row_id": True, "include_deleted_rows": True}
    found = dataset.scanner(with_row_address=True, **options).to_table()
    assert found["blob"].to_pylist() == payloads
    assert found["_rowid"].to_pylist() == [0, 1, None, (1 << 32) + 1]
    assert found["_rowaddr"].to_pylist() == found["_rowid"].to_pylist()


_NUMBERS = count()
NUM_ROWS = 12
GONE = (2, 7)


def rows_of(version: str) -> list[dict[str, Any]]:
    """Null, empty, short and long payloads; 2.0 has no null structs."""
    found = []
    for n in range(NUM_ROWS):
        blob = [b"abc", None, b"", b"x" * 5000][n % 4]
        inside = {"data": b"n%d" % n if n % 3 else None, "k": n}
        items = [b"i" * k for k in range(n % 4)]
        found.append({
            "id": n, "blob": blob, "inside": None if n == 5 and version != "2.0" else inside,
            "items": None if n == 6 else items, "plain": b"p%d" % n,
        })  # fmt: skip
    return found


def schema_of(version: str) -> pa.Schema:
    inner = pa.field("data", pa.large_binary(), metadata=BLOB)
    fields = [
        pa.field("id", pa.int64()),
        pa.field("blob", pa.large_binary(), metadata=BLOB),
        pa.field("inside", pa.struct([inner, pa.field("k", pa.int32())])),
        pa.field("plain", pa.binary()),
    ]
    if version == "2.2":
        item = pa.field("item", pa.large_binary(), metadata=BLOB)
        fields.insert(3, pa.field("items", pa.list_(item)))
    return pa.schema(fields)


def written(version: str) -> LanceDataset:
    schema = schema_of(version)
    rows = [{name: row[name] for name in schema.names} for row in rows_of(version)]
    ds = lance_nb.write_dataset(
        pa.Table.from_pylist(rows, schema), f"memory://payloads/{next(_NUMBERS)}.lance",
        data_storage_version=version, max_rows_per_file=5,
    )  # fmt: skip
    ds.delete(f"id IN {GONE}")
    return lance_nb.dataset(ds.uri)


def live(version: str) -> list[dict[str, Any]]:
    names = schema_of(version).names
    rows = [row for row in rows_of(version) if row["id"] not in GONE]
    return [{name: row[name] for name in names} for row in rows]


VERSIONS = ("2.0", "2.1", "2.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_scan_returns_the_bytes_that_were_written(version: str) -> None:
    ds, rows = written(version), live(version)
    scanner = ds.scanner(blob_handling="all_binary")

    assert scanner.to_table().to_pylist() == rows
    assert scanner.projected_schema == scanner.to_table().schema
    metadata = {"made": "here"} if version == "2.2" else BLOB
    form = pa.field("blob", pa.large_binary(), metadata=metadata)
    assert scanner.projected_schema.field("blob").equals(form, check_metadata=True)
    assert scanner.count_rows() == len(rows)
    assert "payloads" in scanner.explain_plan()
    batches = list(ds.scanner(blob_handling="all_binary", batch_size=3).to_batches())
    assert [one.num_rows <= 3 for one in batches] == [True] * len(batches)
    assert pa.Table.from_batches(batches).to_pylist() == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_a_scan_of_bytes_takes_the_options_of_every_scan(version: str) -> None:
    ds, rows = written(version), live(version)

    found = ds.to_table(["inside", "id"], "id > 3", limit=4, offset=1, blob_handling="all_binary")
    wanted = [row for row in rows if row["id"] > 3][1:5]
    assert found.to_pylist() == [{"inside": row["inside"], "id": row["id"]} for row in wanted]
    computed = {"same": "blob", "short": "blob < x'62'", "id": "id"}
    found = ds.to_table(computed, blob_handling="all_binary")
    assert found.to_pylist() == [
        {"same": one, "short": None if one is None else one < b"b", "id": row["id"]}
        for row in rows
        for one in [row["blob"]]
    ]
    with_places = ds.scanner(
        ["blob"], with_row_id=True, with_row_address=True, blob_handling="all_binary"
    ).to_table()
    assert with_places.column_names == ["blob", "_rowid", "_rowaddr"]
    assert with_places["blob"].to_pylist() == [row["blob"] for row in rows]
    places = [n // 5 << 32 | n % 5 for n in range(NUM_ROWS) if n not in GONE]
    assert with_places["_rowaddr"].to_pylist() == places
    assert ds.to_table(["id"], blob_handling="all_binary") == ds.to_table(["id"])
    described = ds.to_table(["blob"])["blob"].type
    assert pa.types.is_struct(described)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_a_fragment_hold_payloads_beside_row_columns(version: str) -> None:
    ds, rows = written(version), live(version)
    found = []
    for fragment in ds.get_fragments():
        session = fragment.open_session(["blob", "inside"], with_row_address=True)
        found += session.take(range(fragment.count_rows())).to_pylist()
    places = [n // 5 << 32 | n % 5 for n in range(NUM_ROWS) if n not in GONE]
    assert found == [
        {"blob": row["blob"], "inside": row["inside"], "_rowaddr": place}
        for row, place in zip(rows, places, strict=True)
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("column", ["blob", "inside.data"])
def test_blobs_are_opened_and_read_by_row(version: str, column: str) -> None:
    ds, rows = written(version), live(version)
    values = [
        row["blob"] if column == "blob" else row["inside"] and row["inside"]["data"] for row in rows
    ]
    wanted = [4, 0, 9, 4, 1]
    addresses = ds.to_table(["_rowaddr"])["_rowaddr"].to_pylist()

    files = ds.take_blobs(column, indices=wanted)
    assert [one and one.read() for one in files] == [values[at] for at in wanted]
    by_address = ds.read_blobs(column, addresses=[addresses[at] for at in wanted])
    assert by_address == [(addresses[at], values[at]) for at in wanted]


@pytest.mark.parametrize("version", VERSIONS)
def test_payloads_are_added_up_by_field_and_by_fragment(version: str) -> None:
    ds = written(version)
    snapshot = ds.opened[1]
    schema = snapshot.manifest.schema
    sizes = {}
    for row in rows_of(version):  # those of deleted rows are still stored
        part = sizes.setdefault(row["id"] // 5, {"blob": 0, "data": 0, "item": 0})
        part["blob"] += len(row["blob"] or b"")
        part["data"] += len((row["inside"] or {}).get("data") or b"")
        part["item"] += sum(map(len, row["items"] or ()))
    names = {one.id: one.name for one in schema.walk() if is_blob(one)}

    for fragment in snapshot.manifest.fragments:
        found = payload_bytes(snapshot, fragment)
        assert {names[key]: size for key, size in found.items()} == {
            name: sizes[fragment.id][name] for name in names.values()
        }
    by_field = {one.id: one for one in data_statistics(snapshot).fields}
    for key, name in names.items():
        assert by_field[key].payload_bytes == sum(part[name] for part in sizes.values())
        assert by_field[key].bytes_on_disk > by_field[key].payload_bytes
    others = [one.payload_bytes for key, one in by_field.items() if key not in names]
    assert set(others) == {0}
    (first, *_) = snapshot.manifest.fragments
    among = data_statistics(snapshot, among=[first])
    assert sum(one.payload_bytes for one in among.fields) == sum(
        sizes[0][name] for name in names.values()
    )


def test_rows_with_blobs_are_read_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = written("2.2")
    snapshot = ds.opened[1]
    (first, *_) = snapshot.manifest.fragments
    size = sum(len(row["blob"] or b"") for row in rows_of("2.2")[:5])

    assert payload_rows(snapshot, first, ["id", "blob"], 77) == 77
    assert payload_rows(snapshot, first, ["id", "plain"], None) is None
    assert payload_rows(snapshot, first, ["blob"], None) == DEFAULT_BATCH_ROWS
    monkeypatch.setattr("lance_nb.table.data_statistics.WINDOW_BYTES", size)
    assert payload_rows(snapshot, first, ["blob", "id"], None) == 5
    monkeypatch.setattr("lance_nb.table.data_statistics.WINDOW_BYTES", 2 * size // 5 + 1)
    assert payload_rows(snapshot, first, ["blob"], None) == 2
    monkeypatch.setattr("lance_nb.table.data_statistics.WINDOW_BYTES", 1)
    assert payload_rows(snapshot, first, ["blob"], None) == 1


def test_external_blobs_are_no_bytes_of_the_dataset(tmp_path: Any) -> None:
    (tmp_path / "one.bin").write_bytes(b"outside")
    values = lance_nb.blob_array([b"inside", f"file://{tmp_path}/one.bin", None])
    table = pa.table({"b": values})
    ds = lance_nb.write_dataset(
        table, tmp_path / "d", data_storage_version="2.2", allow_external_blob_outside_bases=True
    )
    (column,) = ds.stats.data_stats().fields[:1]

    assert column.payload_bytes == len(b"inside")


@pytest.mark.parametrize("version", VERSIONS)
def test_payloads_are_the_same_after_their_rows_were_copied(version: str) -> None:
    ds, rows = written(version), live(version)
    ds.optimize.compact_files()
    ds = lance_nb.dataset(ds.uri)

    assert len(ds.get_fragments()) == 1
    assert ds.to_table(blob_handling="all_binary").to_pylist() == rows
    ds.update({"id": "id + 100"}, where="id >= 8")
    ds = lance_nb.dataset(ds.uri)
    found = ds.to_table(blob_handling="all_binary").to_pylist()
    changed = [{**row, "id": row["id"] + 100 * (row["id"] >= 8)} for row in rows]
    assert sorted(found, key=lambda row: row["id"]) == changed


def test_an_external_blob_stays_a_reference_when_its_row_is_copied(tmp_path: Any) -> None:
    (tmp_path / "one.bin").write_bytes(b"0123456789")
    uri = f"file://{tmp_path}/one.bin"
    part = lance_nb.Blob.from_uri(uri, position=2, size=3)
    values = lance_nb.blob_array([b"inside", uri, None, part])
    options = {"data_storage_version": "2.2", "allow_external_blob_outside_bases": True}
    table = pa.table({"b": values, "id": range(4)})
    ds = lance_nb.write_dataset(table, tmp_path / "d", max_rows_per_file=2, **options)
    payloads = [b"inside", b"0123456789", None, b"234"]
    before = ds.to_table(["b"])["b"].to_pylist()

    ds.optimize.compact_files()
    ds = lance_nb.dataset(ds.uri)
    assert len(ds.get_fragments()) == 1
    after = ds.to_table(["b"])["b"].to_pylist()
    for at in (1, 3):
        assert {name: after[at][name] for name in ("kind", "blob_uri", "size", "position")} == {
            name: before[at][name] for name in ("kind", "blob_uri", "size", "position")
        }
    ds = lance_nb.dataset(ds.uri, allow_bases=[f"file://{tmp_path}"])
    assert [data for _, data in ds.read_blobs("b", indices=range(4))] == payloads


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_of_the_rows_of_a_scan_are_opened_as_files(version: str) -> None:
    ds, rows = written(version), live(version)
    wanted = [row for row in rows if row["id"] > 3]
    options = ScanOptions({"id": "id", "picture": "blob"}, "id > 3")
    found, files = with_files(ds.opened[1], options)
    assert found.column_names == ["id", "picture"]
    assert found["id"].to_pylist() == [row["id"] for row in wanted]
    assert list(files) == ["picture"]
    assert [one and one.read() for one in files["picture"]] == [row["blob"] for row in wanted]
    found, files = with_files(ds.opened[1], ScanOptions(["blob", "inside", "plain"], limit=2))
    assert found.column_names == ["blob", "inside", "plain"]
    assert [one and one.read() for one in files["blob"]] == [row["blob"] for row in rows[:2]]
    assert list(files) == ["blob"]
