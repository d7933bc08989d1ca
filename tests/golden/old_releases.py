"""Write small datasets with an old release of pylance, and what that release read back of them.

Run it as a script inside an environment that has one of the releases of ``RELEASES`` (it needs
neither lance_nb nor the other tests; pyarrow 14 for releases below 1.0, 21 after):

    python tests/golden/old_releases.py

It writes ``tests/golden/pylance_<release>``: datasets ``<name>.lance`` and, beside each,
``<name>.expected`` with one Arrow file per version, as that release read it (row ids included).
Columns that the release could not store or read are left out.
"""

from __future__ import annotations

import inspect
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

# Release, and what it writes: kind of dataset and file version, as ``write_dataset`` names it.
RELEASES: dict[str, tuple[tuple[str, str], ...]] = {
    "0.4.21": (("history", "legacy"),),  # needs pandas, too
    "0.5.10": (("types", "legacy"), ("history", "legacy")),
    "0.8.21": (("types", "legacy"), ("history", "legacy")),
    "0.12.3": (("types", "2.0"), ("history", "2.0"), ("history", "legacy")),
    "0.19.2": (("types", "2.0"), ("history", "2.0")),
    "0.26.1": (("types", "2.0"), ("stable_ids", "2.0")),
    "0.34.0": (("history", "legacy"), ("types", "2.1"), ("many", "2.1"), ("stable_ids", "2.1")),
    "1.0.4": (("history", "2.1"), ("types", "2.2"), ("many", "2.2")),
    "4.0.2": (("types", "legacy"), ("types", "2.2"), ("many", "2.1"), ("stable_ids", "2.2")),
}
WORDS = ("", "a", "lance", "naïve", "データ")
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
LINE = pa.struct([("l", pa.list_(pa.int64())), ("s", pa.struct([("z", pa.float64())]))])


def with_nulls(values: list[Any]) -> list[Any]:
    """Make every fifth value null."""
    return [None if i % 5 == 2 else value for i, value in enumerate(values)]


def plain_columns(n: int) -> dict[str, pa.Array]:
    """Build one column per type that is not nested."""
    found: dict[str, pa.Array] = {}
    for sign in ("", "u"):
        for bits in (8, 16, 32, 64):
            kind = f"{sign}int{bits}"
            low = 0 if sign else -50
            found[kind] = pa.array(with_nulls([low + i * 7 % 100 for i in range(n)]), kind)
    found["float16"] = pa.array(with_nulls([float(i) for i in range(n)]), pa.float32())
    for kind in ("float32", "float64"):
        found[kind] = pa.array(with_nulls([i / 8 - 3 for i in range(n)]), kind)
    found["bool"] = pa.array(with_nulls([i % 3 == 0 for i in range(n)]))
    texts = pa.array(with_nulls([f"{WORDS[i % 5]} {i}" for i in range(n)]))
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        found[str(kind)] = texts.cast(kind)
    found["few"] = pa.array(with_nulls([WORDS[i % 5] for i in range(n)]))
    found["category"] = pa.array(with_nulls([WORDS[i % 3] for i in range(n)])).dictionary_encode()
    found["bytes"] = pa.array(with_nulls([bytes([i % 256] * 5) for i in range(n)]), pa.binary(5))
    found["nothing"] = pa.nulls(n)
    found["no number"] = pa.nulls(n, pa.int32())
    found["constant"] = pa.array([7] * n, pa.int64())
    found["runs"] = pa.array([i // 40 for i in range(n)], pa.int32())
    found["days"] = pa.array(with_nulls(list(range(n))), pa.int32()).view(pa.date32())
    for kind in (pa.time64("us"), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("ms")):
        found[str(kind)] = pa.array(with_nulls([i * 1000 for i in range(n)]), "int64").view(kind)
    for kind in (pa.decimal128(20, 0), pa.decimal256(40, 0)):
        found[str(kind)] = pa.array(with_nulls([i - 20 for i in range(n)]), "int64").cast(kind)
    return found


def nested_columns(n: int) -> dict[str, pa.Array]:
    """Build lists and structs, null here and there."""
    counts = [i % 4 for i in range(n)]
    lists: dict[str, tuple[list[Any], pa.DataType]] = {
        "vector": ([[float(i), 1.5, -2.0] for i in range(n)], pa.list_(pa.float32(), 3)),
        "numbers": ([list(range(k)) for k in counts], pa.list_(pa.int32())),
        "holes": ([[None if j % 2 else j for j in range(k)] for k in counts], pa.list_(pa.int32())),
        "tags": ([[WORDS[j + 1] for j in range(k)] for k in counts], pa.list_(pa.string())),
        "large": ([list(range(k)) for k in counts], pa.large_list(pa.int64())),
        "deep": ([[[j, j + 1] for j in range(k)] for k in counts], pa.list_(pa.list_(pa.int32()))),
        "points": ([[{"x": j, "y": f"t{j}"} for j in range(k)] for k in counts], pa.list_(POINT)),
        "point": ([{"x": i, "y": f"s{i}"} for i in range(n)], POINT),
        "map": ([[("k", i), ("m", None)][:k] for i, k in enumerate(counts)],
                pa.map_(pa.string(), pa.int32())),
    }  # fmt: skip
    found = {name: pa.array(with_nulls(values), kind) for name, (values, kind) in lists.items()}
    found["point full"] = pa.array(lists["point"][0], POINT)
    found["numbers full"] = pa.array(lists["numbers"][0], pa.list_(pa.int32()))
    lines = [{"l": list(range(k)), "s": {"z": i * 0.5}} for i, k in enumerate(counts)]
    found["line"] = pa.array(lines, LINE)
    return found


def many_rows(n: int) -> pa.Table:
    """Build columns that compress: dictionaries, runs, narrow numbers, texts alike."""
    return pa.table(
        {
            "few": pa.array(with_nulls([WORDS[i % 5] for i in range(n)])),
            "alike": pa.array([f"items/{i % 400}/view" for i in range(n)]),
            "narrow": pa.array([i * 7 % 11 for i in range(n)], pa.int32()),
            "runs": pa.array([i // 90 for i in range(n)], pa.int64()),
            "tags": pa.array([[WORDS[j + 1] for j in range(i % 3)] for i in range(n)]),
        }
    )


def file_options(lance: Any, version: str) -> dict[str, Any]:
    """Say ``version`` the way this release wants to hear it."""
    known = inspect.signature(lance.write_dataset).parameters
    if "data_storage_version" in known:
        return {"data_storage_version": version}
    if "use_legacy_format" in known:
        return {"use_legacy_format": version == "legacy"}
    return {}


def attempt(action: Callable[[], Any]) -> bool:
    """Do something that an old release may not know or may fail at."""
    try:
        action()
    except BaseException as error:  # noqa: BLE001  (panics of Rust derive from BaseException)
        sys.stderr.write(f"  left out: {type(error).__name__}: {str(error)[:90]}\n")
        return False
    return True


def types(lance: Any, path: str, options: dict[str, Any]) -> None:
    """Write one column per type, those that the release reads back."""
    kept = {}
    for name, column in {**plain_columns(60), **nested_columns(60)}.items():
        with tempfile.TemporaryDirectory() as scratch:
            table = pa.table({name: column})

            def both(table: pa.Table = table, scratch: str = scratch) -> None:
                lance.write_dataset(table, f"{scratch}/one", **options)
                lance.dataset(f"{scratch}/one").to_table()

            if attempt(both):
                kept[name] = column
    lance.write_dataset(pa.table(kept), path, max_rows_per_file=35, **options)


def rows(start: int, count: int) -> pa.Table:
    """Build rows whose values follow from their ``id``."""
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "word": pa.array([f"w{i % 7}" for i in ids]),
            "value": pa.array([i / 4 for i in ids]),
        }
    )


def steps(lance: Any, path: str, options: dict[str, Any]) -> Iterator[Callable[[], Any]]:
    """Yield what happens to a dataset after it was written; not every release knows all of it."""

    def now() -> Any:
        return lance.dataset(path)

    extra = pa.table({"id": pa.array(range(0, 70, 2), pa.int32()),
                      "extra": [f"x{i}" for i in range(0, 70, 2)]})  # fmt: skip
    yield lambda: lance.write_dataset(rows(40, 30), path, mode="append", **options)
    yield lambda: now().tags.create("first", 1)
    yield lambda: now().delete("id % 9 = 4 and id < 40")
    yield lambda: now().merge(extra, "id")
    yield lambda: now().add_columns({"double": "id * 2"})
    yield lambda: now().alter_columns({"path": "value", "name": "amount"})
    yield lambda: now().alter_columns({"path": "id", "data_type": pa.int64()})
    yield lambda: now().drop_columns(["word"])
    yield lambda: now().update({"extra": "'u'"}, where="id % 10 = 0 and id < 70")
    yield (
        lambda: (
            now()
            .merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(now().to_table(limit=5))
        )
    )
    yield lambda: now().create_scalar_index("id", "BTREE")
    yield lambda: now().optimize.compact_files(target_rows_per_fragment=50)
    yield lambda: lance.write_dataset(now().to_table().slice(0, 3), path, mode="append")
    yield lambda: now().update_config({"a.b": "20"})
    yield lambda: lance.dataset(path, version=2).restore()


def history(lance: Any, path: str, options: dict[str, Any]) -> None:
    """Write a dataset with a past."""
    lance.write_dataset(rows(0, 40), path, **options)
    for step in steps(lance, path, options):
        attempt(step)


def many(lance: Any, path: str, options: dict[str, Any]) -> None:
    """Write enough rows of few columns for the encodings that need them."""
    lance.write_dataset(many_rows(2000), path, **options)


def stable_ids(lance: Any, path: str, options: dict[str, Any]) -> None:
    """Write a dataset with a past and with stable row ids."""
    known = inspect.signature(lance.write_dataset).parameters
    names = ("enable_move_stable_row_ids", "enable_stable_row_ids")
    history(lance, path, {**options, **{name: True for name in names if name in known}})


def write_expected(lance: Any, path: str, folder: Path) -> None:
    """Write the rows of every version that the release can read itself."""
    folder.mkdir()
    options = pa.ipc.IpcWriteOptions(compression="zstd")

    def one(version: int) -> None:
        dataset = lance.dataset(path, version=version)
        known = inspect.signature(dataset.scanner).parameters
        ids = {"with_row_id": True} if "with_row_id" in known else {}
        table = dataset.scanner(**ids).to_table().combine_chunks()
        with pa.ipc.new_file(
            str(folder / f"{version}.arrow"), table.schema, options=options
        ) as out:
            out.write_table(table)

    for found in lance.dataset(path).versions():
        attempt(lambda found=found: one(found["version"]))


KINDS = {"types": types, "history": history, "many": many, "stable_ids": stable_ids}


def main() -> None:
    """Write the datasets of the installed release again."""
    import lance

    release = lance.__version__
    if release not in RELEASES:
        raise SystemExit(f"golden data is written by {', '.join(RELEASES)}; this is {release}")
    home = Path(__file__).parent / f"pylance_{release.replace('.', '_')}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for kind, version in RELEASES[release]:
        name = f"{kind}_{version.replace('.', '_')}"
        sys.stderr.write(f"{release} {name}\n")
        path = home / f"{name}.lance"
        KINDS[kind](lance, str(path), file_options(lance, version))
        write_expected(lance, str(path), home / f"{name}.expected")


if __name__ == "__main__":
    main()
