"""Cuts a dataset's fragments into tasks of about the same size, and tasks into Spark's partitions.

A partition costs Spark 10 to 50 ms beside its work, so small tasks share one, as small files do in
Spark's own scans: its limit of bytes (``spark.sql.files.maxPartitionBytes``) and what it reckons
for opening a file (``spark.sql.files.openCostInBytes``) are the ones used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lance_nb.format.fragment import Fragment
from lance_nb.table.snapshot import Snapshot

TASK_BYTES = 128 * 1024**2
OPEN_BYTES = 4 * 1024**2
_LEAST_BYTES = 2 * OPEN_BYTES  # of a partition, however many cores have nothing to do


def fragment_bytes(fragment: Fragment) -> int:
    """Bytes of the data files of a fragment, as far as recorded."""
    return sum(file.size_bytes or 0 for file in fragment.files)


def pack(snapshot: Snapshot, task_bytes: int = TASK_BYTES) -> Iterator[tuple[tuple[int, ...], int]]:
    """Group adjacent fragments: their ids, and their bytes together."""
    return pack_fragments(snapshot.manifest.fragments, task_bytes)


def pack_fragments(
    fragments: Iterable[Fragment], task_bytes: int
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Group neighbours: their ids, and their bytes together."""
    ids: list[int] = []
    size = 0
    for fragment in fragments:
        weight = fragment_bytes(fragment)
        if ids and size + weight > task_bytes:
            yield tuple(ids), size
            ids, size = [], 0
        ids.append(fragment.id)
        size += weight
    if ids:
        yield tuple(ids), size


def chosen(snapshot: Snapshot, ids: tuple[int, ...]) -> list[Fragment]:
    """Return the fragments of a task."""
    wanted = set(ids)
    return [one for one in snapshot.manifest.fragments if one.id in wanted]


def partitions(sizes: Sequence[int], num_cores: int) -> list[tuple[int, ...]]:
    """Group neighbouring tasks by their bytes: the places of the tasks of each partition.

    There are as many partitions as cores or a multiple of it, where there are tasks enough, none
    of much more than ``TASK_BYTES`` unless one task is.
    """
    weights = np.asarray(sizes, np.float64) + OPEN_BYTES
    total = weights.sum()
    rounds = max(-(-total // (TASK_BYTES * num_cores)), 1)
    count = int(min(rounds * num_cores, max(total // _LEAST_BYTES, 1), len(sizes)))
    middles = np.cumsum(weights) - weights / 2
    groups = (middles * (count / total)).astype(np.int64)
    ends = np.flatnonzero(np.diff(groups)) + 1
    return [tuple(one.tolist()) for one in np.split(np.arange(len(sizes)), ends)]
