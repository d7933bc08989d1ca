"""Rows with blobs are written again by every verb that moves rows, as pylance does it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset.optimize import Compaction
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

MARK = {"lance-encoding:blob": "true"}
SMALL = {  # inline up to 10 bytes, shared blob files up to 1,000, above that one file each
    "lance-encoding:blob-inline-size-threshold": "10",
    "lance-encoding:blob-dedicated-size-threshold": "1000",
    "lance-encoding:blob-pack-file-size-threshold": "400",
}
BLOB = pa.field("b", pa.large_binary(), metadata=MARK | SMALL)
PAYLOADS = [b"abc", None, b"", b"p" * 300, b"d" * 2000, b"q" * 200, b"zz"]
VERSIONS = ["2.0", "2.1", "2.2"]


def rows_of(first: int, version: str) -> pa.Table:
    """Return seven rows: blobs at the top, two of them, in a struct, and in a list if possible."""
    count = len(PAYLOADS)
    inner = pa.struct([pa.field("n", pa.int64()), BLOB])
    structs: list[Any] = [{"n": at, "b": one} for at, one in enumerate(reversed(PAYLOADS))]
    if version != "2.0":
        structs[2] = None
    fields = [
        pa.field("id", pa.int64()),
        pa.field("x", pa.int64()),
        BLOB,
        BLOB.with_name("c"),
        pa.field("s", inner),
    ]
    columns = [
        pa.array(range(first, first + count)),
        pa.array([1] * count),
        pa.array(PAYLOADS, pa.large_binary()),
        pa.array([f"{first} {at}".encode() * at for at in range(count)], pa.large_binary()),
        pa.array(structs, inner),
    ]
    if version != "2.1":  # pylance cannot read its own lists of blobs of that version
        items = pa.list_(BLOB.with_name("item"))
        lists = [[one, b"i" * 50] for one in PAYLOADS[:-2]] + [[], None]
        fields.append(pa.field("l", items))
        columns.append(pa.array(lists, items))
    return pa.table(columns, schema=pa.schema(fields))


def write(path: Path, version: str, *, stable: bool = False) -> str:
    """Let pylance write two fragments, of which the first has a deleted row."""
    lance = require_pylance()
    for first in (0, 10):
        lance.write_dataset(
            rows_of(first, version),
            str(path),
            mode="append" if first else "create",
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
    lance.dataset(str(path)).delete("id = 2")
    return str(path)


def content(dataset: Any) -> list[dict[str, Any]]:
    found = dataset.scanner(blob_handling="all_binary").to_table()
    rows: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return rows


Verb = Callable[[Any], object]


def patch(**columns: Any) -> pa.Table:
    """Return the source of an upsert; ``b`` is marked."""
    fields = {"id": pa.field("id", pa.int64()), "x": pa.field("x", pa.int64()), "b": BLOB}
    wanted = [fields[name] for name in columns]
    arrays = [pa.array(columns[one.name], one.type) for one in wanted]
    return pa.table(arrays, schema=pa.schema(wanted))


def upsert_blobs(dataset: Any) -> object:
    new = patch(id=[1, 3, 14, 99], x=[5, 6, 7, 8], b=[b"new", None, b"n" * 500, b"m" * 3000])
    if version_of(dataset) == (2, 0):  # an inserted row has a null struct, which 2.0 cannot store
        new = new.slice(0, 3)
    merge = dataset.merge_insert("id").when_matched_update_all()
    return merge.when_not_matched_insert_all().execute(new)


def upsert(dataset: Any) -> object:
    whole = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    new = rows_of(3, {(2, 0): "2.0", (2, 1): "2.1"}.get(version_of(dataset), "2.2"))
    return whole.execute(new)


def version_of(dataset: Any) -> tuple[int, int]:
    major, minor = dataset.data_storage_version.split(".")
    return int(major), int(minor)


VERBS: dict[str, Verb] = {
    "compact": lambda ds: ds.optimize.compact_files(),
    "update": lambda ds: ds.update({"x": "x + id"}, where="id % 2 = 1"),
    "update all": lambda ds: ds.update({"x": "7"}),
    "upsert": upsert,
    "upsert of a part": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().execute(patch(id=[1, 3, 14], x=[5, 6, 7]))
    ),
    "upsert of blobs": upsert_blobs,
    "delete what is not in the source": lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_by_source_delete()
        .execute(patch(id=[1, 3, 14], x=[5, 6, 7]))
    ),
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_come_out_as_pylance_leaves_them(
    version: str, verb: str, stable: bool, tmp_path: Path
) -> None:
    lance = require_pylance()
    theirs = write(tmp_path / "theirs", version, stable=stable)
    ours = shutil.copytree(theirs, str(tmp_path / "ours"))
    VERBS[verb](lance.dataset(theirs))
    VERBS[verb](lance_nb.dataset(ours))
    expected = content(lance.dataset(theirs))
    read = lance.dataset(ours)
    assert content(read) == expected
    assert content(lance_nb.dataset(ours)) == expected
    assert len(read.get_fragments()) == len(lance.dataset(theirs).get_fragments())
    found = read.take_blobs("b", indices=list(range(read.count_rows())))
    by_id = {row["id"]: row["b"] for row in expected}
    ids = read.to_table(["id"])["id"].to_pylist()
    assert [None if one is None else one.readall() for one in found] == [by_id[one] for one in ids]
    read.validate()


@pytest.mark.parametrize("mode", ["rows", "columns", "auto"])
@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_get_new_bytes(version: str, mode: str, tmp_path: Path) -> None:
    """pylance updates blobs of the first generation; of the second it refuses them."""
    lance = require_pylance()
    uri = write(tmp_path / "ours", version)
    expected = content(lance.dataset(uri))
    if version != "2.2":
        theirs = shutil.copytree(uri, str(tmp_path / "theirs"))
        lance.dataset(theirs).update({"b": "X'616263646566'"}, where="id > 0 AND id < 4")
        lance.dataset(theirs).update({"b": "NULL"}, where="id > 3 AND id < 12")
    updates = {"b": "CASE WHEN id < 4 THEN X'616263646566' ELSE NULL END"}
    lance_nb.dataset(uri).update(updates, where="id > 0 AND id < 12", mode=mode)
    for row in expected:
        if 0 < row["id"] < 12:
            row["b"] = b"abcdef" if row["id"] < 4 else None
    assert content(lance.dataset(uri)) == expected
    if version != "2.2":
        assert content(lance.dataset(theirs)) == expected
    lance.dataset(uri).validate()


@pytest.mark.parametrize("version", VERSIONS)
def test_upserts_of_blobs_as_columns(version: str, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = write(tmp_path / "d", version, stable=True)
    expected = content(lance.dataset(uri))
    new = patch(id=[1, 3, 14], b=[b"new", None, b"n" * 5000])
    dataset = lance_nb.dataset(uri)
    merge = dataset.merge_insert("id").write_mode("rewrite_columns")
    merge.when_matched_update_all().execute(new)
    by_id = dict(zip(new["id"].to_pylist(), new["b"].to_pylist(), strict=True))
    for row in expected:
        row["b"] = by_id.get(row["id"], row["b"])
    assert content(lance.dataset(uri)) == expected
    assert len(lance.dataset(uri).get_fragments()) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_structs_with_blobs_are_completed_from_the_target(version: str, tmp_path: Path) -> None:
    """What the source lacks of a struct stays: the blob, or what lies beside it."""
    lance = require_pylance()
    uri = write(tmp_path / "d", version)
    expected = content(lance.dataset(uri))
    numbers = pa.table({"id": [0, 3, 13], "s": [{"n": 70}, {"n": 71}, {"n": 72}]})
    kind = pa.struct([BLOB])
    blobs = pa.table(
        [pa.array([1, 3]), pa.array([{"b": b"new"}, {"b": b"v" * 5000}], kind)],
        schema=pa.schema([pa.field("id", pa.int64()), pa.field("s", kind)]),
    )
    dataset = lance_nb.dataset(uri)
    for source in (numbers, blobs):
        merge = dataset.merge_insert("id").write_mode("rewrite_rows")
        merge.when_matched_update_all().execute(source)
    by_id = {row["id"]: row["s"] for row in expected}
    for at, number in ((0, 70), (3, 71), (13, 72)):
        by_id[at]["n"] = number
    by_id[1]["b"], by_id[3]["b"] = b"new", b"v" * 5000
    assert content(lance.dataset(uri)) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_in_steps(version: str, tmp_path: Path) -> None:
    """Either library commits the tasks that the other ran."""
    lance = require_pylance()
    optimize = pytest.importorskip("lance.optimize")
    uri = write(tmp_path / "ours", version)
    expected = content(lance.dataset(uri))
    plan = Compaction.plan(lance_nb.dataset(uri), {"target_rows_per_fragment": 100})
    results = [task.execute(lance_nb.dataset(uri)) for task in plan.tasks]
    made = [optimize.RewriteResult.from_json(one.json()) for one in results]
    optimize.Compaction.commit(lance.dataset(uri), made)
    assert content(lance.dataset(uri)) == expected
    assert content(lance_nb.dataset(uri)) == expected
    assert len(lance_nb.dataset(uri).get_fragments()) == 1


def test_files_of_a_compaction_end_where_they_are_full(tmp_path: Path) -> None:
    """The payloads count, although a batch holds none of them."""
    field = pa.field("b", pa.large_binary(), metadata=MARK)
    table = pa.table(
        [pa.array([bytes(40_000)] * 400, pa.large_binary())], schema=pa.schema([field])
    )
    uri = str(tmp_path / "d")
    lance_nb.write_dataset(table, uri, data_storage_version="2.1", max_rows_per_file=200)
    dataset = lance_nb.dataset(uri)
    dataset.optimize.compact_files(max_bytes_per_file=5_000_000)
    sizes = [one.metadata.files[0].file_size_bytes for one in dataset.get_fragments()]
    assert len(sizes) > 3
    assert max(sizes) < 5_500_000
    found = require_pylance().dataset(uri).take_blobs("b", indices=[0, 124, 399])
    assert [one.readall() for one in found] == [bytes(40_000)] * 3


@pytest.mark.parametrize("is_below_a_base", [False, True], ids=["uri", "base path"])
def test_references_stay_references(is_below_a_base: bool, tmp_path: Path) -> None:
    lance = require_pylance()
    media = tmp_path / "media"
    media.mkdir()
    (media / "a.bin").write_bytes(b"0123456789" * 9000)
    uri = f"file://{media}/a.bin"
    blobs = [uri, lance.Blob.from_uri(uri, 2, 3), b"inline", None, b"p" * 90_000]
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
    table = pa.table([pa.array(range(5)), lance.blob_array(blobs)], schema=schema)
    options: dict[str, Any] = {"allow_external_blob_outside_bases": True}
    if is_below_a_base:
        options = {"initial_bases": [lance.DatasetBasePath(f"file://{media}", name="media")]}
    path = str(tmp_path / "theirs")
    lance.write_dataset(table, path, **options)
    options.pop("initial_bases", None)
    lance.write_dataset(table, path, mode="append", **options)
    for number, verb in enumerate(
        (
            lambda ds: ds.optimize.compact_files(),
            lambda ds: ds.update({"id": "id + 10"}, where="id < 3"),
            lambda ds: (
                ds.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [1, 4]}))
            ),
        )
    ):
        places = [shutil.copytree(path, str(tmp_path / f"{side}{number}")) for side in "ab"]
        verb(lance.dataset(places[0]))
        verb(lance_nb.dataset(places[1], allow_bases=[f"file://{media}"]))
        theirs, ours = (
            [
                row["b"] and tuple(row["b"][key] for key in ("kind", "size", "blob_id", "blob_uri"))
                for row in lance.dataset(one).to_table().to_pylist()
            ]
            for one in places
        )
        assert ours == theirs
        assert content(lance.dataset(places[1])) == content(lance.dataset(places[0]))


@pytest.mark.parametrize("version", VERSIONS)
def test_clones_and_branches_copy_what_their_source_stores(version: str, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = write(tmp_path / "source", version)
    expected = content(lance.dataset(uri))
    clone = str(tmp_path / "clone")
    lance.dataset(uri).shallow_clone(clone, reference=lance.dataset(uri).version)
    ours = lance_nb.dataset(clone, allow_bases=[uri])
    ours.update({"x": "x + 1"}, where="id = 3", mode="rows")
    ours.optimize.compact_files()
    for row in expected:
        row["x"] += row["id"] == 3
    assert content(lance.dataset(clone)) == expected
    assert all(file.base_id is None for one in ours.get_fragments() for file in one.metadata.files)
    main = lance_nb.dataset(uri)
    branch = main.create_branch("dev")
    branch.update({"x": "x + 1"}, where="id = 3", mode="rows")
    branch.optimize.compact_files()
    assert content(lance.dataset(uri).checkout_version(("dev", None))) == expected
    main.branches.merge("dev")
    assert content(lance.dataset(uri)) == expected
    lance_nb.dataset(uri, version=2).restore()
    assert len(content(lance.dataset(uri))) == 14
    main = lance_nb.dataset(uri)
    main.optimize.compact_files()
    deep = str(tmp_path / "deep")
    lance_nb.dataset(clone, allow_bases=[uri]).deep_clone(deep)
    shutil.rmtree(uri)
    assert content(lance.dataset(deep)) == expected
