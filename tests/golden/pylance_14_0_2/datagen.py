"""Write the golden datasets. Run it with pylance 14.0.2 only, from the root of the repository:

    python -m tests.golden.pylance_14_0_2.datagen

Beside every dataset lies ``<name>.expected``: what pylance read back of each version,
as Arrow files
named ``<branch>@<version>.arrow``, and ``refs.json`` (versions, tags, branches,
where it was written).
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.datasets import everything_table

HERE = Path(__file__).parent
PYLANCE = "14.0.2"
SEED = 20_260_801
VECTOR = pa.list_(pa.float32(), 3)
WORDS = ("", "a", "lance", "naïve", "データ")


def rows(start: int, count: int) -> pa.Table:
    """Build rows whose values follow from their ``id``, nulls here and there."""
    ids = range(start, start + count)
    point = pa.struct([("x", pa.float32()), ("tags", pa.list_(pa.string()))])
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "word": pa.array([None if i % 7 == 3 else WORDS[i % 5] for i in ids], pa.string()),
            "value": pa.array([None if i % 11 == 5 else i / 4 for i in ids], pa.float64()),
            "point": pa.array([_point(i) for i in ids], point),
        }
    )


def _point(i: int) -> dict[str, Any] | None:
    return None if i % 13 == 2 else {"x": i * 0.5, "tags": [None, "t", "u"][: i % 4]}


def history(lance: Any, path: str) -> None:
    """Write a dataset with a past: most operations, both deletion file kinds, tags, branches."""
    dataset = lance.write_dataset(rows(0, 40), path, commit_message="the first rows")
    dataset.insert(rows(40, 30))
    side = dataset.create_branch("side", 2)
    side.insert(rows(1000, 5))
    deep = side.create_branch("team/deep", ("side", side.version))
    deep.delete("id < 20")
    dataset.tags.create("first", 1)
    dataset.tags.create("on-side", ("side", side.version))
    dataset.delete("value is not null and id % 9 = 4 and id < 40")
    dataset.insert(rows(0, 5060).select(["id"]))
    # pylance stores 5,000 deleted rows of a fragment and more as a bitmap.
    dataset.delete("point is null and value is null and word is null and id > 40")
    dataset.add_columns({"double": "id * 2"})
    dataset.alter_columns({"path": "value", "name": "amount"})
    dataset.drop_columns(["word"])
    dataset.update({"amount": "-1.0"}, where="id % 10 = 0 and id < 70")
    dataset.optimize.compact_files(target_rows_per_fragment=100)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(dataset.to_table().slice(0, 3))
    dataset.update_config({"lance.auto_cleanup.interval": "20"})


def types(lance: Any, path: str, file_version: str) -> None:
    """Write one column per type."""
    table = everything_table(24, SEED).drop_columns(["embedding_64", "embedding_768"])
    rng = np.random.default_rng(SEED)
    size = table.num_rows
    more = {
        "time32": pa.array(rng.integers(0, 86_400, size), pa.int32()).cast(pa.time32("s")),
        "time64": pa.array(rng.integers(0, 86_400_000_000, size)).cast(pa.time64("us")),
        "fixed_binary": pa.array([rng.bytes(5) for _ in range(size)], pa.binary(5)),
        "decimal256": pa.array(range(size), pa.int64()).cast(pa.decimal256(40, 2)),
        "category": pa.array([WORDS[i % 3] for i in range(size)]).dictionary_encode(),
        "large_list": pa.array(
            [[i, None][: i % 3] for i in range(size)], pa.large_list(pa.int16())
        ),
        "deep_list": pa.array([[[i], None, []][: i % 4] for i in range(size)]),
        "nothing": pa.nulls(size),
        "vector": pa.array([[i, None, 2.5] if i % 4 else None for i in range(size)], VECTOR),
    }
    if file_version >= "2.2":
        pairs = [None if i % 5 == 1 else [("k", i), ("m", None)][: i % 3] for i in range(size)]
        more["map"] = pa.array(pairs, pa.map_(pa.string(), pa.int32()))
    for name, column in more.items():
        table = table.append_column(name, column)
    lance.write_dataset(table, path, data_storage_version=file_version)


def stable_ids(lance: Any, path: str) -> None:
    """Write a dataset with stable row ids, moved about."""
    dataset = lance.write_dataset(rows(0, 30), path, enable_stable_row_ids=True)
    dataset.insert(rows(30, 30))
    dataset.delete("id % 5 = 1")
    dataset.update({"word": "'changed'"}, where="id % 7 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)


def empty(lance: Any, path: str) -> None:
    """Write a dataset without rows."""
    lance.write_dataset(rows(0, 0), path)


def v1_names(lance: Any, path: str) -> None:
    """Write twelve versions under the old manifest names, so that 10 must sort after 9."""
    ids = rows(0, 12).select(["id"])
    dataset = lance.write_dataset(ids.slice(0, 1), path, enable_v2_manifest_paths=False)
    for start in range(1, 12):
        dataset.insert(ids.slice(start, 1))


WRITERS = {
    "history": history,
    "types_2_1": lambda lance, path: types(lance, path, "2.1"),
    "types_2_2": lambda lance, path: types(lance, path, "2.2"),
    "stable_ids": stable_ids,
    "empty": empty,
    "v1_names": v1_names,
}


def describe(dataset: Any, branches: Iterable[str | None]) -> dict[str, Any]:
    """Return what pylance says about versions, tags and branches."""
    found: dict[str, Any] = {"versions": {}}
    for branch in branches:
        here = dataset.checkout_version((branch, None))
        found["versions"][branch or "main"] = [
            {"version": one["version"], "metadata": one["metadata"]} for one in here.versions()
        ]
    found["tags"] = {
        name: {"branch": tag["branch"], "version": tag["version"]}
        for name, tag in dataset.tags.list().items()
    }
    found["branches"] = {
        name: {"parent_branch": one["parent_branch"], "parent_version": one["parent_version"]}
        for name, one in dataset.branches.list().items()
    }
    return found


def write_expected(lance: Any, path: str, folder: Path) -> None:
    """Write every version's rows and the refs, as pylance reads them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    dataset = lance.dataset(path)
    branches = [None, *dataset.branches.list()]
    found = describe(dataset, branches)
    found["origin"] = path
    with (folder / "refs.json").open("w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for branch in branches:
        for one in dataset.checkout_version((branch, None)).versions():
            here = dataset.checkout_version((branch, one["version"]))
            # Only ids that were stored are kept: they hardly compress.
            stable = dataset.has_stable_row_ids
            table = here.to_table(with_row_id=stable, with_row_address=stable).combine_chunks()
            name = f"{(branch or 'main').replace('/', '%2F')}@{one['version']}.arrow"
            target = str(folder / name)
            with pa.ipc.new_file(target, table.schema, options=options) as writer:
                writer.write_table(table)


def main() -> None:
    """Write every dataset again."""
    found = importlib.metadata.version("pylance")
    if found != PYLANCE:
        raise SystemExit(f"golden data is written by pylance {PYLANCE}, this is {found}")
    import lance

    with tempfile.TemporaryDirectory(prefix="golden-", dir="/tmp") as scratch:
        for name, write in WRITERS.items():
            path = f"{scratch}/{name}.lance"
            write(lance, path)
            write_expected(lance, path, HERE / f"{name}.expected")
            shutil.rmtree(HERE / f"{name}.lance", ignore_errors=True)
            shutil.copytree(path, HERE / f"{name}.lance")


if __name__ == "__main__":
    main()
