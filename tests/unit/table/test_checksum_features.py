"""Checksums where they meet other features: every file has one, and every flipped bit is found.

Each scene makes a dataset that asked for checksums and writes files of its kinds; in each of them
one bit is flipped, then ``verify`` must name the file, and reading with ``check=True`` must raise.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import lance_nb
from lance_nb import spark
from lance_nb.errors import CorruptFileError
from lance_nb.file.reader import FileReader
from lance_nb.table import checksums
from lance_nb.table.indices import read_indices

pytestmark = [pytest.mark.slow, pytest.mark.mutants]

FOLDERS = ("data", "_deletions", "_indices", "hot")
ROWS = 40
BLOBS = [b"in the page", b"p" * 90, None, b"d" * 4000]


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"name {n}" for n in numbers]})


@pytest.fixture(autouse=True)
def _own_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    checksums._digests.clear()
    yield
    checksums._digests.clear()


# --- scenes: each returns the URI of the dataset --------------------------------------------------


def new(root: Path, data: pa.Table | None = None, **options: Any) -> str:
    uri = str(root / "scene.lance")
    data = rows() if data is None else data
    lance_nb.write_dataset(data, uri, checksums=True, max_rows_per_file=ROWS // 2, **options)
    return uri


def appended(root: Path) -> str:
    uri = new(root)
    lance_nb.write_dataset(rows(ROWS, 3), uri, mode="append")
    return uri


def deleted(root: Path) -> str:
    uri = new(root)
    lance_nb.dataset(uri).delete("id = 3")
    lance_nb.dataset(uri).delete(f"id % 2 = 1 and id >= {ROWS // 2}")
    return uri


def updated(root: Path) -> str:
    uri = new(root)
    lance_nb.dataset(uri).update({"name": "'new'"}, where="id = 7")
    return uri


def merged(root: Path) -> str:
    uri = new(root)
    keys = lance_nb.dataset(uri).merge_insert("id").when_matched_update_all()
    keys.when_not_matched_insert_all().execute(rows(ROWS - 2, 5))
    return uri


def with_columns(root: Path) -> str:
    uri = new(root)
    ds = lance_nb.dataset(uri)
    ds.add_columns({"twice": "id * 2"})
    ds.alter_columns({"path": "twice", "data_type": pa.int32()})
    return uri


def indexed(root: Path) -> str:
    uri = new(root)
    lance_nb.dataset(uri).create_scalar_index("id", "BTREE")
    return uri


def compacted(root: Path) -> str:
    uri = deleted(root)
    ds = lance_nb.dataset(uri)
    ds.create_scalar_index("id", "BTREE")
    ds.optimize.compact_files()
    return uri


def blobs_v1(root: Path) -> str:
    field = pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("id", pa.int64()), field])
    data = pa.table([range(len(BLOBS)), BLOBS], schema=schema)
    return new(root, data, data_storage_version="2.1")


def blobs_v2(root: Path) -> str:
    """Inline, packed and dedicated payloads, then rows that were copied with theirs."""
    field = lance_nb.blob_field(
        "image", inline_size_threshold=20, dedicated_size_threshold=1000,
        pack_file_size_threshold=100,
    )  # fmt: skip
    columns = [pa.array(range(len(BLOBS)), pa.int64()), lance_nb.blob_array(BLOBS)]
    data = pa.table(columns, schema=pa.schema([("id", pa.int64()), field]))
    uri = new(root, data)
    lance_nb.write_dataset(data, uri, mode="append")
    lance_nb.dataset(uri).delete("id = 0")
    lance_nb.dataset(uri).optimize.compact_files()
    return uri


def other_bases(root: Path) -> str:
    base = lance_nb.DatasetBasePath(str(root / "hot"), "hot")
    uri = new(root, initial_bases=[base], target_bases=["hot"])
    lance_nb.write_dataset(rows(ROWS), uri, mode="append")
    lance_nb.dataset(uri).delete("id in (3, 50)")
    return uri


def branch_merged(root: Path) -> str:
    uri = new(root)
    branch = lance_nb.dataset(uri).create_branch("dev")
    branch.delete("id = 11")
    branch.update({"name": "'dev'"}, where="id = 30")
    branch.insert(rows(2 * ROWS, 5))
    lance_nb.dataset(uri).update({"name": "'main'"}, where="id = 1")
    lance_nb.dataset(uri).branches.merge("dev", key="id")
    return uri


def branch_copied(root: Path) -> str:
    uri = new(root)
    branch = lance_nb.dataset(uri).create_branch("dev")
    branch.insert(rows(2 * ROWS, 5))
    branch.add_columns({"twice": "id * 2"})
    lance_nb.dataset(uri).branches.merge("dev")
    return uri


def shallow_cloned(root: Path) -> str:
    uri = deleted(root)
    copy = lance_nb.dataset(uri).shallow_clone(str(root / "clone.lance"))
    copy.delete("id = 20")
    copy.insert(rows(3 * ROWS, 4))
    return str(copy.uri)


def deep_cloned(root: Path) -> str:
    uri = compacted(root)
    copy = lance_nb.dataset(uri).deep_clone(str(root / "clone.lance"))
    shutil.rmtree(uri)
    return str(copy.uri)


def staged(root: Path) -> str:
    uri = new(root)
    lance_nb.dataset(uri).stage().append(rows(ROWS, 3)).delete("id = 2").commit("both")
    return uri


def on_spark(root: Path) -> str:
    """Every verb whose tasks write files, each task by itself."""
    uri = new(root)
    how: dict[str, Any] = {"engine": "local"}
    other = lance_nb.write_dataset(rows(ROWS, 9), str(root / "elsewhere.lance"))
    pq.write_table(rows(2 * ROWS, 9), root / "more.parquet")
    spark.append(uri, other, **how)
    spark.append(uri, str(root / "more.parquet"), **how)
    spark.delete(uri, "id = 3", **how)
    spark.update(uri, {"name": "'new'"}, "id = 30", **how)
    spark.create_scalar_index(uri, "id", **how)
    spark.backfill(uri, {"twice": "id * 2"}, **how)
    spark.write(str(root / "more.parquet"), uri, "overwrite", **how)
    lance_nb.dataset(uri, version=7).restore()
    spark.delete(uri, "id = 4", **how)
    spark.compact(uri, **how)
    spark.delete(uri, "id = 5", **how)
    shutil.rmtree(other.uri)
    return uri


def cloned_on_spark(root: Path) -> str:
    uri = on_spark(root)
    copy = spark.clone(uri, root / "clone.lance", engine="local")
    copy.insert(copy.to_table().slice(0, 2))
    shutil.rmtree(uri)
    return str(copy.uri)


Scene = Callable[[Path], str]
SCENES: Sequence[Scene] = (
    appended, deleted, updated, merged, with_columns, indexed, compacted, blobs_v1, blobs_v2,
    other_bases, branch_merged, branch_copied, shallow_cloned, deep_cloned, staged, on_spark,
    cloned_on_spark,
)  # fmt: skip


# --- the files and the damage ---------------------------------------------------------------------


def stored(root: Path) -> list[Path]:
    """Return the data files, blobs, deletion files and index files of all datasets and bases."""
    found = [one for one in root.rglob("*") if one.is_file()]
    parts = {one: one.relative_to(root).parts[:-1] for one in found}
    return [one for one in sorted(found)
            if set(FOLDERS) & set(parts[one]) and "_checksums" not in parts[one]]  # fmt: skip


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def allowed(root: Path) -> list[str]:
    return [str(root / "hot"), str(root / "scene.lance")]


def short(path: Path | str) -> tuple[str, str]:
    """Return the name of a file, with the folder of an index, whose files all have one name."""
    folder, name = ("", *Path(path).parts)[-2:]
    return (folder if "-" in folder else ""), name


@pytest.mark.parametrize("scene", SCENES, ids=lambda one: one.__name__)
def test_every_file_has_a_checksum_and_every_flipped_bit_is_found(
    tmp_path: Path, scene: Scene
) -> None:
    scene(tmp_path)
    uris = sorted(map(str, tmp_path.glob("*.lance")))
    files = stored(tmp_path)
    chance = random.Random(scene.__name__)
    for uri in uris:
        whole = lance_nb.verify(uri, allow_bases=allowed(tmp_path))
        assert whole.ok, whole
        assert whole.num_files_without_checksum == 0, whole

    for path in files:
        flip(path, chance.randrange(path.stat().st_size * 8))
    options: dict[str, Any] = {"values": False, "checksums": True, "allow_bases": allowed(tmp_path)}
    reports = [lance_nb.verify(uri, **options) for uri in uris]

    found = {short(one.path) for report in reports for one in report.findings
             if one.code == "checksum-wrong"}  # fmt: skip
    assert found == {short(path) for path in files}
    assert sum(one.num_files_checked for one in reports) >= len(files)


# --- reading --------------------------------------------------------------------------------------


def read_all(uri: str, root: Path) -> None:
    """Read every row, payload, deletion file and index of every version and branch."""
    home = lance_nb.dataset(uri, check=True, allow_bases=allowed(root))
    for branch in (None, *home.branches.list()):
        line = home.checkout_version((branch, None))
        for one in line.versions():
            opened = line.checkout_version((branch, one["version"]))
            table = opened.to_table()
            if "image" in table.schema.names:
                for blob in opened.take_blobs("image", indices=list(range(table.num_rows))):
                    if blob is not None:
                        blob.read()
            snapshot = opened._snapshot  # no verb looks into an index that only searches need
            for index in read_indices(snapshot):
                for file in index.files:
                    place = f"_indices/{index.uuid}/{file.path}"
                    store, path = snapshot.locations.locate(place, index.base_id)
                    for _ in FileReader(store, path).list_pages():
                        pass


@pytest.mark.parametrize("scene", SCENES, ids=lambda one: one.__name__)
def test_every_flipped_bit_is_an_error_when_its_file_is_read(tmp_path: Path, scene: Scene) -> None:
    uri = scene(tmp_path)
    files = stored(tmp_path)
    chance = random.Random(scene.__name__)
    read_all(uri, tmp_path)

    for path in files:
        whole = path.read_bytes()
        flip(path, chance.randrange(len(whole) * 8))
        checksums._digests.clear()
        with pytest.raises(CorruptFileError, match="expected xxh128") as error:
            read_all(uri, tmp_path)
        assert path.name in error.value.path
        path.write_bytes(whole)


# --- stores that are no folders -------------------------------------------------------------------


class Kept(MemoryFileSystem):  # type: ignore[misc]
    """A file system of fsspec, which a dataset reaches through FsspecStore."""

    protocol = ("sumsfs",)
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("sumsfs://", "memory://")))


@pytest.fixture
def _fsspec() -> Iterator[None]:
    fsspec.register_implementation("sumsfs", Kept, clobber=True)
    yield
    Kept.store.clear()


@pytest.mark.usefixtures("_fsspec")
@pytest.mark.parametrize("scheme", ["memory", "sumsfs"])
def test_files_of_other_stores_have_checksums(scheme: str, tmp_path: Path) -> None:
    uri = f"{scheme}://sums-{uuid4().hex}/scene.lance"
    manifests = {"manifest_store": f"sqlite:///{tmp_path}/manifests.db"}
    how: dict[str, Any] = {"storage_options": {} if scheme == "memory" else manifests}
    ds = lance_nb.write_dataset(rows(), uri, checksums=True, **how)
    ds.delete("id = 3")
    ds.create_scalar_index("id", "BTREE")
    ds.insert(rows(ROWS, 3))
    store = ds._session.root
    files = [one for one in store.list_recursive("") if one.name.split("/")[0] in FOLDERS]
    report = lance_nb.verify(uri, **how)
    assert (report.num_files_checked, report.num_files_without_checksum) == (5, 0)

    for one in files:
        data = bytearray(store.read(one.name))
        data[len(data) // 2] ^= 4
        store.write(one.name, bytes(data))
    report = lance_nb.verify(uri, values=False, checksums=True, **how)

    found = [one.path for one in report.findings if one.code == "checksum-wrong"]
    assert sorted(found) == sorted(one.name for one in files)
    assert len(found) == 5
    with pytest.raises(CorruptFileError, match="expected xxh128"):
        lance_nb.dataset(uri, check=True, **how).to_table()
