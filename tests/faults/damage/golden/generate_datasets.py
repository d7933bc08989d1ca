"""Write the datasets that ``tests.faults datasets`` damages, one archive each. Run it with pylance
14.0.2 only, from the root of the repository:

    python -m tests.faults.damage.golden.generate_datasets

Every archive holds a folder ``d.lance``, and what that refers to beside it. Those that we write lie
at ``memory://hostile-NAME`` and are opened there, so that base paths fit; pylance's may be opened
anywhere.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.storage.registry import open_store

HERE = Path(__file__).parent / "datasets"
MARKUP = "<img src=x onerror=window.__x=1>"
BLOB = {"lance-encoding:blob": "true"}


def rows(first: int, count: int) -> pa.Table:
    """Rows with a primary key, a text, numbers, a list, a struct and a vector."""
    ids = range(first, first + count)
    vectors = pa.array([[one % 5, 1.5] * 4 for one in ids], pa.list_(pa.float32(), 8))
    key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    fields = [
        key,
        pa.field("text", pa.string()),
        pa.field("n", pa.int32(), metadata={"note": MARKUP}),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("point", pa.struct([("x", pa.float64()), ("y", pa.int8())])),
        pa.field("vector", vectors.type),
    ]
    columns = [
        list(ids),
        [None if one % 7 == 3 else f"text {one % 9}" for one in ids],
        [one % 11 for one in ids],
        [[f"t{one % 3}", "u"][: one % 3] for one in ids],
        [{"x": one / 2, "y": one % 100} for one in ids],
        vectors,
    ]
    schema = pa.schema(fields, {MARKUP: MARKUP})
    return pa.table(
        [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def blob_rows(first: int, count: int, kind: str) -> pa.Table:
    """Rows with a blob column of either kind: empty, null, small and larger payloads."""
    payloads: list[bytes | None] = [
        [b"abc", None, b"", b"x" * (70_000 if one == 8 else 900), b"\x89PNG\r\n\x1a\n" + b"p" * 40][
            one % 5
        ]
        for one in range(first, first + count)
    ]
    ids = pa.array(range(first, first + count), pa.int64())
    if kind == "v2":
        schema = pa.schema([("id", pa.int64()), lance_nb.blob_field("blob")])
        return pa.table([ids, lance_nb.blob_array(payloads)], schema=schema)
    field = pa.field("blob", pa.large_binary(), metadata=BLOB)
    schema = pa.schema([pa.field("id", pa.int64()), field])
    return pa.table([ids, pa.array(payloads, pa.large_binary())], schema=schema)


# --- pylance's ------------------------------------------------------------------------------------


def indexed(lance: Any, place: str) -> None:
    """An index of every kind, over the first fragments only, some rows deleted later."""
    dataset = lance.write_dataset(rows(0, 300), place, max_rows_per_file=150)
    for column, kind in (
        ("id", "BTREE"), ("n", "BITMAP"), ("tags", "LABEL_LIST"), ("text", "INVERTED"),
        ("point.x", "ZONEMAP"),
    ):  # fmt: skip
        dataset.create_scalar_index(column, kind, name=f"{kind} of {column}")
    dataset.create_scalar_index("text", "NGRAM", name="ngram")
    dataset.create_scalar_index("n", "BLOOMFILTER", name="bloom")
    dataset.create_index("vector", "IVF_PQ", num_partitions=2, num_sub_vectors=2, name="pq")
    dataset.insert(rows(400, 20))
    dataset.delete("id % 10 = 4")


def reused(lance: Any, place: str) -> None:
    """Compactions that an index of moved rows remembers."""
    dataset = lance.write_dataset(rows(0, 40), place, max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id in (3, 15)")
    dataset.optimize.compact_files(target_rows_per_fragment=20, defer_index_remap=True)
    dataset.insert(rows(50, 5))


def blobs_v1(lance: Any, place: str) -> None:
    """Blobs whose bytes lie in the data file."""
    lance.write_dataset(blob_rows(0, 15, "v1"), place, data_storage_version="2.1")
    lance.write_dataset(blob_rows(20, 10, "v1"), place, mode="append").delete("id in (3, 22)")


def blobs_v2(lance: Any, place: str) -> None:
    """Blobs in files of their own."""
    table = pa.table(blob_rows(0, 15, "v1").columns, schema=blob_rows(0, 15, "v1").schema)
    dataset = lance.write_dataset(table, place, data_storage_version="2.2", max_rows_per_file=8)
    dataset.delete("id = 3")


# --- ours -----------------------------------------------------------------------------------------


def _written(uri: str, version: str, *, stable: bool) -> None:
    """Every kind of file that we write: tags, a branch with a merge, deletions of both kinds."""
    lance_nb.write_dataset(
        rows(0, 30),
        uri,
        max_rows_per_file=15,
        data_storage_version=version,
        enable_stable_row_ids=stable,
        commit_message=f"first {MARKUP}",
        transaction_properties={MARKUP: MARKUP},
    )
    dataset = lance_nb.dataset(uri)
    dataset.delete("id in (3, 20)")
    dataset.create_scalar_index("id", "BTREE", name=f"by_id {MARKUP}")
    dataset.update({"n": "n + 100"}, where="id < 5")
    dataset.insert(rows(1000, 6000).select(["id"]))
    dataset.delete("id >= 1000 and id < 6500")  # 5,000 and more are stored as a bitmap
    dataset.create_branch("side/deep", 2).insert(rows(100, 5))
    dataset.branches.merge("side/deep")
    dataset.branches.replace_metadata("side/deep", {"note": MARKUP})
    dataset.add_columns({"twice": "id * 2"})
    dataset.drop_columns(["point"])
    dataset.update_config({MARKUP: MARKUP, "lance.auto_cleanup.interval": "20"})
    dataset.add_checksums()
    for name, version_ in (("first", 1), ("newest", dataset.latest_version)):
        dataset.tags.create(name, version_)
    dataset.tags.replace_metadata("first", {MARKUP: MARKUP})


def clone(root: str) -> None:
    """A shallow clone with rows of its own, and rows in a second base."""
    source, here = f"{root}/source.lance", f"{root}/d.lance"
    lance_nb.write_dataset(rows(0, 20), source, max_rows_per_file=10)
    lance_nb.dataset(source).delete("id = 4")
    lance_nb.dataset(source).shallow_clone(here, 2)
    dataset = lance_nb.dataset(here, allow_bases=[root])
    dataset.insert(rows(30, 5))
    dataset.add_bases([lance_nb.DatasetBasePath(f"{root}/base", "more")])
    lance_nb.write_dataset(
        rows(40, 5),
        lance_nb.dataset(here, allow_bases=[root]),
        mode="append",
        target_bases=["more"],
    )
    lance_nb.dataset(here, allow_bases=[root]).tags.create("kept", 2)


PYLANCE: dict[str, Callable[[Any, str], None]] = {
    "indexed": indexed, "reused": reused, "blobs_v1": blobs_v1, "blobs_v2": blobs_v2,
}  # fmt: skip
OURS: dict[str, Callable[[str], object]] = {
    "ours_2_0": lambda root: _written(f"{root}/d.lance", "2.0", stable=False),
    "ours_2_1": lambda root: _written(f"{root}/d.lance", "2.1", stable=False),
    "ours_2_2": lambda root: _written(f"{root}/d.lance", "2.2", stable=True),
    "ours_blobs": lambda root: lance_nb.write_dataset(
        blob_rows(0, 15, "v2"), f"{root}/d.lance", data_storage_version="2.2", max_rows_per_file=8
    ).delete("id = 3"),
    "clone": clone,
}


def _store(name: str, files: dict[str, bytes]) -> None:
    HERE.mkdir(exist_ok=True)
    with zipfile.ZipFile(HERE / f"{name}.zip", "w") as out:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0))
            out.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    """Write every archive again."""
    if importlib.metadata.version("pylance") != "14.0.2":
        raise SystemExit("these datasets are defined as what pylance 14.0.2 writes")
    import lance

    with tempfile.TemporaryDirectory() as scratch:
        for name, write in PYLANCE.items():
            folder = Path(scratch) / name
            write(lance, str(folder / "d.lance"))
            found = [one for one in folder.rglob("*") if one.is_file()]
            _store(name, {one.relative_to(folder).as_posix(): one.read_bytes() for one in found})
    for name, make in OURS.items():
        make(f"memory://hostile-{name}")
        store = open_store(f"memory://hostile-{name}")
        _store(name, {one.name: bytes(store.read(one.name)) for one in store.list_recursive("")})


if __name__ == "__main__":
    main()
