"""Cuts a dataset's fragments into tasks of about the same size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lance_nb.format.fragment import Fragment
from lance_nb.table.snapshot import Snapshot

TASK_BYTES = 128 * 1024**2


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
