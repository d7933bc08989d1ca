"""A data file by itself: its fields, its columns and its rows are those of its dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError, ObjectNotFoundError
from lance_nb.format.blob_fields import is_blob
from lance_nb.table.projection import project
from lance_nb.table.scan import scan_table
from lance_nb.table.scan_tasks import plan_tasks
from lance_nb.table.single_file import data_file, open_single_file

PACKED = {"packed": "true"}
BLOB = {"lance-encoding:blob": "true"}
POINT = pa.struct(
    [("x", pa.int32()), ("deep", pa.struct([("s", pa.string()), ("f", pa.float32())]))]
)
FIELDS = [
    pa.field("id", pa.int64()), pa.field("p", POINT), pa.field("l", pa.list_(pa.int16())),
    pa.field("ls", pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())]))),
    pa.field("v", pa.list_(pa.float32(), 2)),
    pa.field("packed", pa.struct([("a", pa.int32()), ("b", pa.float64())]), metadata=PACKED),
    pa.field("blob", pa.large_binary(), metadata=BLOB), pa.field("last", pa.string()),
]  # fmt: skip


def _row(n: int) -> dict[str, Any]:
    return {
        "id": n, "p": {"x": n, "deep": {"s": f"s{n}", "f": n / 2}}, "l": list(range(n % 3)),
        "ls": [{"a": n, "b": "q"}] * (n % 2), "v": [n, -n], "packed": {"a": n, "b": n * 1.5},
        "blob": b"b" * n, "last": f"z{n}",
    }  # fmt: skip


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_file_shows_the_fields_columns_and_rows_of_its_dataset(
    tmp_path: Path, version: str
) -> None:
    table = pa.Table.from_pylist([_row(n) for n in range(7)], pa.schema(FIELDS))
    ds = lance_nb.write_dataset(table, tmp_path / "d", data_storage_version=version)
    manifest = ds.opened[1].manifest
    (fragment,) = manifest.fragments
    (file,) = fragment.files
    opened = open_single_file(tmp_path / "d" / "data" / file.path)
    schema = opened.snapshot.manifest.schema
    (mine,) = opened.snapshot.manifest.fragments

    described = {one.id for field in manifest.schema if is_blob(field) for one in field.children}
    assert [(one.id, one.name) for one in schema.walk()] == [
        (one.id, one.name) for one in manifest.schema.walk() if one.id not in described
    ]
    assert (mine.id, mine.physical_rows, opened.snapshot.version) == (0, 7, 1)
    (own,) = mine.files
    assert (own.path, own.fields, own.column_indices) == (
        file.path, file.fields, file.column_indices,
    )  # fmt: skip
    assert own.file_version == file.file_version
    assert data_file(opened.reader, schema, file.path, None, file.size_bytes) == file
    names = [name for name in table.column_names if name != "blob"]
    wanted = project(schema, names)
    rows = scan_table(opened.snapshot, wanted, plan_tasks(opened.snapshot))
    assert rows.to_pylist() == table.select(names).to_pylist()
    blobs = project(schema, ["blob"])
    sizes = scan_table(opened.snapshot, blobs, plan_tasks(opened.snapshot))["blob"]
    assert [one["size"] for one in sizes.to_pylist()] == list(range(7))


def test_json_is_shown_as_the_bytes_that_are_stored(tmp_path: Path) -> None:
    table = pa.table({"j": pa.array(['{"a": 1}', None], pa.json_())})
    ds = lance_nb.write_dataset(table, tmp_path / "d", data_storage_version="2.2")
    (file,) = ds.opened[1].manifest.fragments[0].files
    opened = open_single_file(tmp_path / "d" / "data" / file.path)
    rows = scan_table(opened.snapshot, project(opened.schema, None), plan_tasks(opened.snapshot))

    assert rows.schema.field("j").type == pa.large_binary()
    assert opened.schema.field("j").logical_type == "large_binary"
    assert [one is None for one in rows["j"].to_pylist()] == [False, True]


def test_what_is_no_file_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="does not name a file"):
        open_single_file(f"{tmp_path}/")
    with pytest.raises(ObjectNotFoundError):
        open_single_file(tmp_path / "none.lance")
    golden = Path(__file__).parents[2] / "golden" / "pylance_0_5_10" / "history_legacy.lance"
    old = next((golden / "data").glob("*.lance"))
    with pytest.raises(NotSupportedError, match=r"0\.1 file"):
        open_single_file(old)


def test_blobs_outside_of_the_file_are_refused(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(pa.table({"n": [1]}), tmp_path / "d")
    (file,) = ds.opened[1].manifest.fragments[0].files
    (tmp_path / "d" / "data" / "secret").write_bytes(b"secret")
    locations = open_single_file(tmp_path / "d" / "data" / file.path).snapshot.locations
    for uri, base_id in ((f"{tmp_path}/d/data/secret", None), ("secret", 0)):
        with pytest.raises(NotSupportedError, match="outside of the data file"):
            locations.external(uri, base_id)
