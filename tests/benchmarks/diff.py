"""How long a diff takes: manifests of many fragments, rows by the million. pylance has no diff.

Prints processor seconds, the best and the median of five; goals are those of the explorer.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.writing.committing import commit_operation
from tests.benchmarks.timing import best, median, timed

OPTIONS: dict[str, dict[str, object]] = {}

Case = tuple[str, float | None, Callable[[], object]]


def many_fragments(folder: Path, count: int) -> LanceDataset:
    """Write manifests of ``count`` fragments whose files are not there; some change."""
    path = str(folder / f"{count}.lance")
    ds = lance_nb.write_dataset(pa.table({"id": pa.array([1])}), path)
    made = [_fragment(number) for number in range(count)]
    ds = _committed(ds, Append(tuple(made)))
    ids = np.arange(2, count, max(count // 50, 1)).tolist()
    found = ds.opened[1].manifest.fragments.with_ids(ids)
    deleted = DeletionFile(2, 1, DeletionFileType.ARROW, 3)
    changed = tuple(replace(one, deletion_file=deleted) for one in found.values())
    ds = _committed(ds, Delete(changed, (), "id < 3"))
    more = tuple(_fragment(count + number) for number in range(100))
    return _committed(ds, Append(more))


def _committed(ds: LanceDataset, operation: Append | Delete) -> LanceDataset:
    """Commit fragments without files, which a commit by hand refuses."""
    session, snapshot = ds.opened
    return LanceDataset.from_opened(session, commit_operation(session, snapshot, operation))


def _fragment(number: int) -> Fragment:
    name = f"{number:024b}{number:026x}.lance"
    return Fragment(0, (DataFile(name, (0,), (0,), 2, 2, 1000),), 100)


def manifests(folder: Path) -> Iterator[Case]:
    """Compare manifests."""
    for count, goal in ((1_000, 0.1), (100_000, None)):
        ds = many_fragments(folder, count)
        older, newer = (ds.checkout_version(number) for number in (2, 4))
        yield f"counts, {count:,} fragments, both open", goal, _counts(older, newer)
        path = ds.uri
        yield f"counts, {count:,} fragments, from nothing", None, _from_nothing(path)
        ds.create_branch("dev", 4)
        other = lance_nb.dataset(path, ("dev", None))
        yield f"counts, {count:,} fragments, two branches", None, _counts(older, other)


def _counts(older: LanceDataset, newer: LanceDataset) -> Callable[[], object]:
    def run() -> object:
        for one in (older, newer):  # as if the manifests had just been read
            one.opened[1].manifest.fragments._counts = None
        return newer.diff(older).counts

    return run


def _from_nothing(path: str) -> Callable[[], object]:
    return lambda: lance_nb.diff(path, 2, 4).counts


def rows(folder: Path, count: int = 1_000_000) -> Iterator[Case]:
    """Compare rows: half of a table updated, all of it compacted, a column written anew."""
    for stable in (True, False):
        numbers = np.arange(count)
        table = pa.table(
            {
                "id": numbers,
                "v": numbers.astype(float),
                "t": pa.array(numbers % 1000).cast(pa.string()),
                "w": numbers * 2,
            }
        )
        path = str(folder / f"rows{stable}.lance")
        ds = lance_nb.write_dataset(
            table, path, enable_stable_row_ids=stable, max_rows_per_file=count // 8
        )
        ds.update({"v": "v + 1"}, where="id % 2 = 0")
        ds.optimize.compact_files(target_rows_per_fragment=2 * count)
        last = lance_nb.dataset(path).version
        kind = "row id" if stable else "address"
        key = None if stable else "id"
        by = kind if stable else "key"
        yield f"update of half, by {by}: first page", 1.0, _page(path, (1, 2), key)
        yield f"update of half, by {by}: summary", None, _summary(path, (1, 2), key)
        yield f"compaction, by {kind}: summary", 1.0, _summary(path, (2, last), None)
        yield f"update and compaction, by {by}: page", 1.0, _page(path, (1, last), key)


def _page(path: str, ends: tuple[int, int], key: str | None) -> Callable[[], object]:
    return lambda: lance_nb.diff(path, *ends, key=key).rows(limit=200).read_all()


def _summary(path: str, ends: tuple[int, int], key: str | None) -> Callable[[], object]:
    return lambda: lance_nb.diff(path, *ends, key=key).summary()


def run(_options: Namespace) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        for cases in (manifests(Path(folder)), rows(Path(folder))):
            for name, goal, action in cases:
                timings = [timed(action) for _ in range(5)]
                figures = f"{best(timings).cpu:7.3f} {median(timings).cpu:7.3f} s CPU"
                aim = "" if goal is None else f"  (goal {goal:.2f})"
                print(f"{name:52} {figures}{aim}", flush=True)
