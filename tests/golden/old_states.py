"""Write datasets in the odd states that old releases of pylance leave, and random histories.

Run it inside an environment that has one of the releases (pyarrow 12 for releases up to 0.7, 14 up
to 0.10, 15 up to 0.25 and 21 after; numpy below 2 up to 0.25). It needs nothing but ``tests`` on
the path, neither lance_nb nor pytest:

    PYTHONPATH=. python tests/golden/old_states.py [STATE...]  # all states of this release
    PYTHONPATH=. python tests/golden/old_states.py walk OUT 7 20 [BASE]

The first form writes ``tests/golden/pylance_<release>`` as ``old_releases.py`` does; a release that
continues the dataset of another one needs that one's folder. The second writes ``OUT/<n>.lance``
with random histories from seed 7 (20 of them), or continues copies of the datasets in ``BASE``, and
beside each its ``log.json``. Compare what pylance and lance_nb make of them with

    python -m tests.interop.old_states OUT/*.lance
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.golden.old_releases import attempt, file_options, write_expected

HOME = Path(__file__).parent
LETTERS = pa.array(["x", "y", "z"])


def numbers(start: int, stop: int) -> pa.Table:
    """Return one column of numbers."""
    return pa.table({"x": pa.array(range(start, stop), pa.int64())})


def letters(start: int, stop: int) -> pa.Table:
    """Return numbers and a dictionary column."""
    codes = pa.array([one % 3 for one in range(start, stop)], pa.int8())
    return numbers(start, stop).append_column("c", pa.DictionaryArray.from_arrays(codes, LETTERS))


# --- states ---------------------------------------------------------------------------------------


def deletions(lance: Any, path: str) -> None:
    """Delete rows of two fragments; 0.7.5 counts neither rows nor deleted rows."""
    lance.write_dataset(numbers(0, 100), path)
    lance.write_dataset(numbers(100, 116), path, mode="append")
    lance.dataset(path).delete("(x >= 10 and x < 20) or (x >= 102 and x < 114)")


def vector_index(lance: Any, path: str) -> None:
    """Index vectors; 0.7.5 does not record which fragments an index covers."""
    lance.write_dataset(pa.table({"v": vectors()}), path)
    lance.dataset(path).create_index("v", index_type="IVF_PQ", num_partitions=1, num_sub_vectors=1)


def vectors() -> pa.Array:
    """Return as many vectors as an index needs."""
    values = [float(i * 7 % 31) for i in range(256 * 4)]
    return pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 4)


def compacted(lance: Any, path: str) -> None:
    """Compact the first of three fragments: the new one stands before fragments of lower ids."""
    for start in (0, 4, 40):
        mode = "append" if start else "create"
        rows = numbers(start, start + (4 if start < 40 else 30))
        lance.write_dataset(rows, path, mode=mode)
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=20)


def dropped_columns(lance: Any, path: str) -> None:
    """Drop all columns of a data file, which stays."""
    lance.write_dataset(numbers(0, 3), path)
    lance.dataset(path).add_columns({"y": "x * 2"})
    lance.dataset(path).drop_columns(["y"])


def mixed_files(lance: Any, path: str) -> None:
    """Append a 2.0 file to a dataset of 0.1 files."""
    lance.write_dataset(numbers(0, 4), path, **legacy(lance))
    _commit_fragment(lance, path, numbers(4, 6), 1, **file_options(lance, "stable"))


def wrong_counts(lance: Any, path: str) -> None:
    """Continue the dataset of 0.7.5: 0.8.0 counts 90 of 100 rows, and 4 of 16 with 12 deleted."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(HOME / "pylance_0_7_5" / "deletions.lance", path)
    lance.write_dataset(numbers(200, 202), path, mode="append")


def ids_of_dropped_columns(lance: Any, path: str) -> None:
    """Add columns after others were dropped: they take over the ids, 2 and 3 are in two files."""
    lance.write_dataset(numbers(0, 3), path)
    lance.dataset(path).add_columns({"y": "x * 2", "z": "x * 3"})
    lance.dataset(path).add_columns({"a": "-x"})
    lance.dataset(path).drop_columns(["a", "z"])
    lance.dataset(path).add_columns({"b": "x * 4", "c": "x * 5"})


def id_of_a_dropped_column(lance: Any, path: str) -> None:
    """Add two columns after one was dropped: of the new file's ids, only 2 is in another file."""
    lance.write_dataset(numbers(0, 3), path)
    lance.dataset(path).add_columns({"y": "x * 2", "z": "x * 3"})
    lance.dataset(path).drop_columns(["z"])
    lance.dataset(path).add_columns({"b": "x * 4", "c": "x * 5"})


def id_of_a_dropped_column_appended(lance: Any, path: str) -> None:
    """Append to such a dataset: the ids of the new fragment's only file cannot change apart."""
    id_of_a_dropped_column(lance, path)
    row = pa.table({name: pa.array([7 * k]) for name, k in zip("xybc", (1, 2, 4, 5), strict=True)})
    lance.write_dataset(row, path, mode="append")


def fragment_id_twice(lance: Any, path: str) -> None:
    """Commit a fragment under an id that is taken, of a 2.0 file in a dataset of 0.1 files."""
    for start in (0, 4):
        mode = "append" if start else "create"
        lance.write_dataset(numbers(start, start + 4), path, mode=mode, **legacy(lance))
    lance.dataset(path).delete("x = 5")
    _commit_fragment(lance, path, numbers(8, 14), 1, **file_options(lance, "stable"))


def fragment_id_twice_in_one_version(lance: Any, path: str) -> None:
    """Commit a fragment under an id that is taken, all files alike."""
    lance.write_dataset(numbers(0, 4), path, **file_options(lance, "stable"))
    lance.dataset(path).delete("x = 1")
    _commit_fragment(lance, path, numbers(8, 14), 0, **file_options(lance, "stable"))


def dictionaries(lance: Any, path: str) -> None:
    """Store a dictionary column in 0.1 files: its values are in the manifest, too."""
    lance.write_dataset(letters(0, 8), path, **legacy(lance))
    lance.write_dataset(letters(8, 12), path, mode="append", **legacy(lance))
    attempt(lambda: lance.dataset(path).create_scalar_index("x", "BTREE"))
    lance.dataset(path).delete("x = 3")


def storage_class(lance: Any, path: str) -> None:
    """Write a plain dataset: this release says of each field that its storage class is default."""
    lance.write_dataset(numbers(0, 20), path, max_rows_per_file=10)
    lance.dataset(path).delete("x < 5")
    lance.dataset(path).create_scalar_index("x", "BTREE")
    lance.write_dataset(numbers(20, 25), path, mode="append")


def overlapping_segments(lance: Any, path: str) -> None:
    """Index a fragment, then another without merging: both segments say they cover the first."""
    rows = pa.table({"v": vectors()})
    lance.write_dataset(rows, path)
    lance.dataset(path).create_index("v", index_type="IVF_PQ", num_partitions=1, num_sub_vectors=1)
    lance.write_dataset(rows.slice(0, 20), path, mode="append")
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)


def legacy(lance: Any) -> dict[str, Any]:
    """Say the 0.1 file version the way this release wants to hear it."""
    return file_options(lance, "legacy")


def _commit_fragment(lance: Any, path: str, rows: pa.Table, number: int, **options: Any) -> None:
    known = [one.metadata for one in lance.dataset(path).get_fragments()]
    made = lance.fragment.LanceFragment.create(path, rows, fragment_id=number, **options)
    schema = lance.dataset(path).schema
    merge = lance.LanceOperation.Merge([*known, made], schema)
    lance.LanceDataset.commit(path, merge, read_version=lance.dataset(path).version)


STATES: dict[str, tuple[Callable[[Any, str], None], ...]] = {
    "0.7.5": (deletions, vector_index),
    "0.8.0": (wrong_counts, compacted),
    "0.10.5": (
        ids_of_dropped_columns,
        id_of_a_dropped_column,
        id_of_a_dropped_column_appended,
        dictionaries,
        dropped_columns,
    ),
    "0.16.0": (fragment_id_twice, fragment_id_twice_in_one_version, mixed_files),
    "0.21.0": (storage_class, overlapping_segments),
}


# --- random histories -----------------------------------------------------------------------------


class Walk:
    """A dataset that verbs are done to at random; what the release does not know is left out."""

    def __init__(self, lance: Any, path: str, choose: random.Random, first: int) -> None:
        self._lance = lance
        self._path = path
        self._choose = choose
        self._next = first
        self._names = 0

    @property
    def _now(self) -> Any:
        return self._lance.dataset(self._path)

    def verbs(self) -> Iterator[Callable[[], Any]]:
        """Yield verbs, frequent ones several times."""
        yield from [self.append] * 4 + [self.add_columns] * 3 + [self.delete] * 3
        yield from [self.drop_added, self.update, self.compact, self.optimize] * 2
        yield from [self.drop, self.overwrite, self.upsert, self.index, self.text_index]
        yield from [self.tag, self.rename, self.cast, self.restore, self.commit, self.merge]

    def create(self) -> None:
        """Write the first rows."""
        rows = self._rows(self._choose.choice([4, 40]))
        options = self._choose.choice([{}, {"max_rows_per_file": 16, "max_rows_per_group": 8}])
        self._lance.write_dataset(rows, self._path, **self._version(), **options)

    def append(self) -> None:
        """Append rows, null where columns were added."""
        rows, schema = self._rows(self._choose.choice([1, 5, 30])), self._now.schema
        columns = [
            rows[one.name] if one.name in rows.column_names else pa.nulls(rows.num_rows, one.type)
            for one in schema
        ]
        table = pa.table(columns, names=schema.names).cast(schema)
        self._lance.write_dataset(table, self._path, mode="append", **self._version())

    def add_columns(self) -> None:
        """Add columns by expressions."""
        self._now.add_columns({self._name(): f"id * {self._names + 1}"})

    def merge(self) -> None:
        """Add a column by a join."""
        ids = self._now.to_table(columns=["id"])["id"][::2]
        self._now.merge(pa.table({"id": ids, self._name(): ids}), "id")

    def drop(self) -> None:
        """Drop any column but the key."""
        self._now.drop_columns([self._choose.choice(self._now.schema.names[1:])])

    def drop_added(self) -> None:
        """Drop the last column that was added."""
        self._now.drop_columns([one for one in self._now.schema.names if one[0] == "n"][-1:])

    def delete(self) -> None:
        """Delete some rows, or those of the first fragment."""
        self._now.delete(self._choose.choice(["id % 5 = 1", "id < 16", "id >= 20 and id < 30"]))

    def update(self) -> None:
        """Update some rows."""
        self._now.update({"s": "'new'"}, where="id % 4 = 0")

    def upsert(self) -> None:
        """Upsert rows that are there."""
        found = self._now.merge_insert("id").when_matched_update_all()
        found.when_not_matched_insert_all().execute(self._now.to_table(limit=3))

    def compact(self) -> None:
        """Compact into few or many fragments."""
        rows = self._choose.choice([20, 1000])
        self._now.optimize.compact_files(target_rows_per_fragment=rows)

    def overwrite(self) -> None:
        """Begin again."""
        self._lance.write_dataset(self._rows(20), self._path, mode="overwrite", **self._version())

    def index(self) -> None:
        """Index the key."""
        self._now.create_scalar_index("id", "BTREE")

    def text_index(self) -> None:
        """Index the text."""
        self._now.create_scalar_index("s", self._choose.choice(["INVERTED", "BITMAP"]))

    def optimize(self) -> None:
        """Extend indices, with or without merging their segments."""
        options = self._choose.choice([{}, {"num_indices_to_merge": 0}])
        self._now.optimize.optimize_indices(**options)

    def tag(self) -> None:
        """Tag this version."""
        self._now.tags.create(f"t{self._choose.randrange(1000)}", self._now.version)

    def rename(self) -> None:
        """Rename a column."""
        self._now.alter_columns({"path": self._now.schema.names[-1], "name": self._name()})

    def cast(self) -> None:
        """Cast a column."""
        self._now.alter_columns({"path": "f", "data_type": pa.float32()})

    def restore(self) -> None:
        """Go back to any version."""
        version = self._choose.choice(self._now.versions())["version"]
        self._lance.dataset(self._path, version=version).restore()

    def commit(self) -> None:
        """Commit a fragment, possibly under an id that is taken."""
        rows = self._rows(6).select(self._now.schema.names)
        _commit_fragment(self._lance, self._path, rows, self._choose.choice([0, 1, 9]))

    def _version(self) -> dict[str, Any]:
        version = self._choose.choice([None, "legacy", "stable"])
        return {} if version is None else file_options(self._lance, version)

    def _name(self) -> str:
        self._names += 1
        return f"n{self._next}_{self._names}"

    def _rows(self, count: int) -> pa.Table:
        ids = range(self._next, self._next + count)
        self._next += count
        points = [{"a": one, "b": f"b{one}"} for one in ids]
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "s": pa.array([f"word{one % 7} t{one % 3}" for one in ids]),
                "f": pa.array([one / 4 for one in ids]),
                "p": pa.array(points, pa.struct([("a", pa.int32()), ("b", pa.string())])),
                "c": letters(0, count)["c"],
            }
        )


def walk(lance: Any, out: Path, seed: int, count: int, base: Path | None) -> None:
    """Write random histories, or continue those in ``base``."""
    choose = random.Random(seed)
    sources = sorted(base.glob("*.lance")) if base is not None else []
    for number in range(count if base is None else min(count, len(sources))):
        path = out / f"{seed}_{number}.lance"
        shutil.rmtree(path, ignore_errors=True)
        log: list[str] = []
        if base is not None:
            path = out / f"{sources[number].stem}+{lance.__version__}.lance"
            shutil.copytree(sources[number], path, dirs_exist_ok=True)
            log = json.loads((path / "log.json").read_text())
        log.append(lance.__version__)
        history = Walk(lance, str(path), choose, 1000 * len(log))
        if base is None:
            history.create()
        verbs = list(history.verbs())
        wanted = len(log) + choose.choice([2, 4, 7, 10])
        for _ in range(40):
            verb = choose.choice(verbs)
            if len(log) < wanted and attempt(verb):
                log.append(verb.__name__)
        (path / "log.json").write_text(json.dumps(log))


def main(arguments: list[str]) -> None:
    """Write the states of the installed release, or random histories."""
    import lance

    release = lance.__version__
    if arguments[:1] == ["walk"]:
        out, seed, count, *base = arguments[1:]
        walk(lance, Path(out), int(seed), int(count), Path(base[0]) if base else None)
        return
    if release not in STATES:
        raise SystemExit(f"states are written by {', '.join(STATES)}; this is {release}")
    home = HOME / f"pylance_{release.replace('.', '_')}"
    home.mkdir(exist_ok=True)
    for state in STATES[release]:
        path = home / f"{state.__name__}.lance"
        if arguments and state.__name__ not in arguments:
            continue
        for folder in (path, path.with_suffix(".expected")):
            shutil.rmtree(folder, ignore_errors=True)
        state(lance, str(path))
        write_expected(lance, str(path), home / f"{state.__name__}.expected")


if __name__ == "__main__":
    main(sys.argv[1:])
