"""Blobs written by us are opened by pylance: every generation, kind and threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.file.writer import FileOptions
from lance_nb.storage.local import LocalStore
from lance_nb.transactions.schema_change import new_schema
from lance_nb.writing.fragment_writer import WriteOptions, write_fragments
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

MARK = {"lance-encoding:blob": "true"}
ROWS = [
    b"abc",
    None,
    b"",
    b"x" * 100_000,
    b"y" * 70_000,
    b"z" * 5_000_000,
    *(f"payload {k}".encode() for k in range(200)),
]
THRESHOLDS = {
    "lance-encoding:blob-inline-size-threshold": "5",
    "lance-encoding:blob-dedicated-size-threshold": "1000",
    "lance-encoding:blob-pack-file-size-threshold": "60",
}


def commit(root: Path, table: pa.Table, version: str, *, external: bool = False) -> Any:
    """Write with our fragment writer, commit with pylance, return its dataset."""
    lance = require_pylance()
    numbers = (int(version[0]), int(version[2]))
    schema = new_schema(table.schema, numbers)
    options = WriteOptions(
        file_version=numbers,
        file=FileOptions(allows_external_blobs=external),
        max_rows_per_file=100,
    )
    written = write_fragments(table.to_reader(), schema, LocalStore(str(root)), options)
    fragments = [
        lance.fragment.FragmentMetadata(
            number,
            [
                lance.fragment.DataFile(
                    file.path, list(file.fields), list(file.column_indices), *file.file_version,
                    file.size_bytes,
                )
                for file in one.files
            ],
            one.physical_rows,
        )
        for number, one in enumerate(written)
    ]  # fmt: skip
    arrow = schema.to_arrow()
    return lance.LanceDataset.commit(str(root), lance.LanceOperation.Overwrite(arrow, fragments))


def payloads(dataset: Any, column: str, count: int) -> list[bytes | None]:
    found = dataset.take_blobs(column, indices=list(range(count)))
    return [None if one is None else one.readall() for one in found]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("marks", [{}, THRESHOLDS], ids=["defaults", "thresholds"])
def test_payloads_read_back(version: str, marks: dict[str, str], tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={**MARK, **marks})
    table = pa.table(
        [pa.array(ROWS, pa.large_binary()), range(len(ROWS))],
        schema=pa.schema([field, ("i", pa.int64())]),
    )
    dataset = commit(tmp_path, table, version)
    assert dataset.to_table(["i"]).column(0).to_pylist() == list(range(len(ROWS)))
    expected = [row for row in ROWS if version != "2.0" or row is not None]
    found = payloads(dataset, "b", len(ROWS))
    assert [one for one in found if version != "2.0" or one is not None] == expected
    ours = payloads(lance_nb.dataset(str(tmp_path)), "b", len(ROWS))
    assert ours == ROWS
    dataset.validate()


def test_references_read_back(tmp_path: Path) -> None:
    lance = require_pylance()
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"0123456789")
    uri = f"file://{outside}"
    values = [uri, lance.Blob.from_uri(uri, 2, 3), b"inline", None]
    table = pa.table({"b": lance.blob_array(values)})
    dataset = commit(tmp_path / "data", table, "2.2", external=True)
    kinds = [row and row["kind"] for row in dataset.to_table().column(0).to_pylist()]
    assert kinds == [3, 3, 0, None]
    assert payloads(dataset, "b", 4) == [b"0123456789", b"234", b"inline", None]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_inside_structs_are_described(version: str, tmp_path: Path) -> None:
    item = pa.field("b", pa.large_binary(), metadata=MARK)
    rows = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3]), pa.array([b"x", None, b"hidden"], pa.large_binary())],
        fields=[pa.field("a", pa.int64()), item],
        mask=pa.array([False, False, True]),
    )
    dataset = commit(tmp_path, pa.table({"s": rows}), version)
    first, second, third = dataset.to_table().column(0).to_pylist()
    assert (first["a"], first["b"]["size"]) == (1, 1)
    assert second == {"a": 2, "b": None}
    assert third is None


def test_marked_columns_become_blobs_of_a_new_dataset(tmp_path: Path) -> None:
    lance = require_pylance()
    field = pa.field("b", pa.large_binary(), metadata=MARK)
    table = pa.table([pa.array(ROWS, pa.large_binary())], schema=pa.schema([field]))
    lance_nb.write_dataset(table, str(tmp_path / "x"))
    lance_nb.write_dataset(table.slice(0, 3), str(tmp_path / "x"), mode="append")
    dataset = lance.dataset(str(tmp_path / "x"))
    assert dataset.schema.field("b").type.extension_name == "lance.blob.v2"
    assert payloads(dataset, "b", len(ROWS) + 3) == ROWS + ROWS[:3]
    dataset.insert(table.slice(3, 2))
    ours = lance_nb.dataset(str(tmp_path / "x"))
    assert payloads(ours, "b", len(ROWS) + 5) == ROWS + ROWS[:5]


def test_references_outside_are_refused_unless_allowed(tmp_path: Path) -> None:
    lance = require_pylance()
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"0123456789")
    table = pa.table({"b": lance.blob_array([f"file://{outside}", b"x"])})
    with pytest.raises(InvalidInputError, match="allow_external_blob_outside_bases"):
        lance_nb.write_dataset(table, str(tmp_path / "x"))
    lance_nb.write_dataset(table, str(tmp_path / "x"), allow_external_blob_outside_bases=True)
    dataset = lance.dataset(str(tmp_path / "x"))
    assert payloads(dataset, "b", 2) == [b"0123456789", b"x"]


@pytest.mark.parametrize("name", ["outside.bin", "a b.bin", "100%25.bin", "link.bin"])
def test_references_of_this_process_are_read_as_pylance_reads_them(
    name: str, tmp_path: Path
) -> None:
    lance, uri = require_pylance(), str(tmp_path / "x")
    outside = tmp_path / "media" / name
    outside.parent.mkdir()
    if name == "link.bin":
        (tmp_path / "elsewhere.bin").write_bytes(b"0123456789")
        outside.symlink_to(tmp_path / "elsewhere.bin")
    else:
        outside.write_bytes(b"0123456789")
    part = lance.Blob.from_uri(outside.as_uri(), 2, 3)
    table = pa.table({"b": lance.blob_array([outside.as_uri(), b"x", part])})
    handle = lance_nb.write_dataset(table, uri, allow_external_blob_outside_bases=True)
    handle.insert(table, allow_external_blob_outside_bases=True)

    expected = [b"0123456789", b"x", b"234"] * 2
    for dataset in (lance.dataset(uri), handle, lance_nb.dataset(uri)):
        assert payloads(dataset, "b", 6) == expected
        assert dataset.to_table(blob_handling="all_binary")["b"].to_pylist() == expected

    neighbour = outside.with_name("neighbour.bin")
    neighbour.write_bytes(b"neighbour")
    more = pa.table({"b": lance.blob_array([neighbour.as_uri()])})
    lance.write_dataset(more, uri, mode="append", allow_external_blob_outside_bases=True)
    assert payloads(lance.dataset(uri), "b", 7) == [*expected, b"neighbour"]
    ours = lance_nb.dataset(uri)
    assert payloads(ours, "b", 6) == expected
    with pytest.raises(InvalidInputError, match="under another base path"):
        ours.take_blobs("b", indices=[6])


def test_references_below_base_paths_are_stored_as_pylance_stores_them(tmp_path: Path) -> None:
    lance = require_pylance()
    media = tmp_path / "media"
    (media / "sub").mkdir(parents=True)
    (media / "sub" / "a.bin").write_bytes(b"0123456789")
    uri = f"file://{media}/sub/a.bin"
    blobs = [uri, None, lance.Blob.from_uri(uri, position=2, size=3), b"inline"]
    table = pa.table([lance.blob_array(blobs)], schema=pa.schema([lance.blob_field("b")]))
    bases = [("media", f"file://{media}"), ("sub", str(media / "sub"))]
    found = []
    for module, name in ((lance, "theirs"), (lance_nb, "ours")):
        made = [module.DatasetBasePath(path, name=one) for one, path in bases]
        module.write_dataset(table, tmp_path / name, initial_bases=made[:1])
        dataset = module.write_dataset(table, tmp_path / name, mode="append")
        found.append(dataset.to_table()["b"].to_pylist())
        with pytest.raises((InvalidInputError, OSError), match="allow_external_blob"):
            outside = pa.table([lance.blob_array([f"{uri[:-9]}/../../x"])], schema=table.schema)
            module.write_dataset(outside, tmp_path / name, mode="append")
    assert found[0] == found[1]
    assert found[1][0] == found[0][0] | {"blob_id": 1, "blob_uri": "sub/a.bin"}
    ours = lance_nb.dataset(tmp_path / "ours", allow_bases=[f"file://{media}"])
    for dataset in (ours, lance.dataset(tmp_path / "ours")):
        wanted = [b"0123456789", None, b"234", b"inline"] * 2
        assert payloads(dataset, "b", len(wanted)) == wanted


def test_external_blobs_are_taken_in_as_pylance_does(tmp_path: Path) -> None:
    lance = require_pylance()
    sizes = {"none": 0, "small": 700, "middling": 90_000, "other": 80_000, "large": 5_000_000}
    files = {name: np.random.default_rng(1).bytes(size) for name, size in sizes.items()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    uris = [f"file://{tmp_path}/{name}" for name in files]
    blobs = [*uris, b"inline", None, lance.Blob.from_uri(uris[2], position=10, size=20)]
    table = pa.table([lance.blob_array(blobs)], schema=pa.schema([lance.blob_field("b")]))
    how: dict[str, Any] = {"external_blob_mode": "ingest"}
    how["blob_pack_file_size_threshold"] = 100_000
    ours = lance_nb.write_dataset(table, tmp_path / "ours", **how)
    theirs = lance.write_dataset(table, tmp_path / "theirs", **how)

    def described(dataset: Any) -> list[Any]:
        rows = dataset.to_table()["b"].to_pylist()
        return [row and (row["kind"], row["size"], row["blob_id"], row["blob_uri"]) for row in rows]

    assert described(ours) == described(theirs)
    for name in files:
        (tmp_path / name).unlink()
    wanted = [*files.values(), b"inline", None, files["middling"][10:30]]
    assert payloads(lance.dataset(tmp_path / "ours"), "b", len(wanted)) == wanted
    assert payloads(lance_nb.dataset(str(tmp_path / "ours")), "b", len(wanted)) == wanted


@pytest.mark.parametrize("what", ["missing", "range", "both"])
def test_external_blobs_that_cannot_be_taken_in_leave_nothing(what: str, tmp_path: Path) -> None:
    lance = require_pylance()
    (tmp_path / "there").write_bytes(b"x" * 200_000)
    uri = f"file://{tmp_path}/there"
    bad = lance.Blob.from_uri(uri, position=0, size=200_001) if what == "range" else f"{uri}x"
    values = [uri, b"y" * 100_000, uri if what == "both" else bad]
    table = pa.table([lance.blob_array(values)], schema=pa.schema([lance.blob_field("b")]))
    how: dict[str, Any] = {"external_blob_mode": "ingest"}
    how["allow_external_blob_outside_bases"] = what == "both"
    with pytest.raises((InvalidInputError, FileNotFoundError)):
        lance_nb.write_dataset(table, tmp_path / "d", **how)
    assert not [path for path in (tmp_path / "d").rglob("*") if path.is_file()]


def test_lists_of_structs_with_blobs_are_written_and_read_by_both(tmp_path: Path) -> None:
    lance = require_pylance()
    rows = [[{"b": b"ab", "n": 1}, {"b": None, "n": 2}, None], [], None, [{"b": b"c" * 70_000}]]
    blob = pa.field("b", pa.large_binary(), metadata=MARK)
    kind = pa.list_(pa.struct([blob, pa.field("n", pa.int8())]))
    table = pa.table({"l": pa.array(rows, kind)}, schema=pa.schema([pa.field("l", kind)]))
    for module in (lance, lance_nb):
        path = str(tmp_path / module.__name__)
        module.write_dataset(table.slice(1), path)
        lance_nb.write_dataset(table, path, mode="append")
        theirs, ours = lance.dataset(path), lance_nb.dataset(path)
        assert ours.to_table() == theirs.to_table()
        found = [
            one.scanner(blob_handling="all_binary").to_table().to_pylist() for one in (theirs, ours)
        ]
        assert found[0] == found[1]
        assert [one["l"] for one in found[1]] == table.slice(1)["l"].to_pylist() + table[
            "l"
        ].to_pylist()


LISTS = [[b"ab", None], [], None, [b"", b"z" * 100_000], [b"y" * 5_000_000], [b"x"] * 300]


@pytest.mark.parametrize("writer", ["lance", "lance_nb"])
@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "second generation"])
def test_lists_of_blobs_are_written_and_read_by_both(
    tmp_path: Path, writer: str, is_marked: bool
) -> None:
    lance = require_pylance()
    values = pa.array(LISTS, pa.large_list(pa.large_binary()))
    item = pa.field("item", pa.large_binary(), metadata=MARK)
    if not is_marked:
        item = lance.blob_field("item")
        blobs = lance.blob_array(values.flatten().to_pylist())
        offsets = pa.array([0, 2, 2, 2, 4, 5, 305], pa.int64())
        values = pa.LargeListArray.from_arrays(offsets, blobs, mask=values.is_null())
    table = pa.table([values], schema=pa.schema([pa.field("l", pa.large_list(item))]))
    module = {"lance": lance, "lance_nb": lance_nb}[writer]
    module.write_dataset(table, str(tmp_path / "d"))
    lance_nb.write_dataset(table, str(tmp_path / "d"), mode="append")
    theirs, ours = (one.dataset(str(tmp_path / "d")) for one in (lance, lance_nb))
    assert ours.to_table() == theirs.to_table()
    for dataset in (theirs, ours):
        found = dataset.scanner(blob_handling="all_binary").to_table()
        assert found["l"].to_pylist() == LISTS * 2
    theirs.validate()


@pytest.mark.parametrize("verb", ["add_columns", "merge"])
def test_marked_bytes_added_to_a_2_2_dataset_become_blobs_that_both_read(
    verb: str, tmp_path: Path
) -> None:
    lance, uri, clone = require_pylance(), str(tmp_path / "d"), str(tmp_path / "clone")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table(
        [pa.array(range(3), pa.int64()), pa.array([b"x" * 70_000, None, b""], field.type)],
        schema=pa.schema([pa.field("id", pa.int64()), field]),
    )
    lance.write_dataset(rows.select(["id"]), uri, data_storage_version="2.2")

    if verb == "merge":
        lance_nb.dataset(uri).merge(rows, "id")
    else:
        lance_nb.dataset(uri).add_columns(rows.select(["b"]).to_reader())

    assert lance.dataset(uri).schema.field("b").type.extension_name == "lance.blob.v2"
    lance.dataset(uri).shallow_clone(clone, lance.dataset(uri).version)
    lance.dataset(clone).delete("id = 9")  # it writes the schema again, as it takes it to be
    for made in (
        lance.dataset(uri),
        lance_nb.dataset(uri),
        lance.dataset(clone),
        lance_nb.dataset(clone, allow_bases=[uri]),
    ):
        got = made.to_table(blob_handling="all_binary")["b"]
        assert got.to_pylist() == rows["b"].to_pylist()
