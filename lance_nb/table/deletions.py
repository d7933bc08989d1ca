"""Read the deleted rows of fragments, once per deletion file.

Source: message DeletionFile of lance.table; see format/deletion_vector for the two stored forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.errors import ObjectNotFoundError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, Fragment
from lance_nb.storage.threads import run_all, run_reads
from lance_nb.table.file_cache import DeletionCache
from lance_nb.table.fragment_reader import confirmed_rows, reads_at_a_time
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

__all__ = [
    "LiveSpan", "fragment_deletions", "live_span", "load_deletions", "physical_rows",
    "read_deletions", "with_deletions",
]  # fmt: skip
_FEW_ROWS = 1 << 16  # what is allocated for them is small, whether they are there or not
_FRAGMENTS_AHEAD = 512


@dataclass(frozen=True, slots=True)
class LiveSpan:
    """Physical rows ``[start, stop)``; ``mask`` marks those that are live, None if all are."""

    start: int
    stop: int
    mask: npt.NDArray[np.bool_] | None


def key_of(locations: Locations, file: DeletionFile, fragment_id: int) -> tuple[str, str]:
    """Return what the cache knows a deletion file by."""
    store, path = locations.locate(file.location(fragment_id), file.base_id)
    return store.uri, path


def fragment_deletions(snapshot: Snapshot, fragment: Fragment) -> DeletionVector | None:
    """Return the deleted rows of a fragment of a version, None when there are none.

    A number of rows that much would be allocated by is confirmed by a data file first. Raises
    CorruptFileError, ObjectNotFoundError.
    """
    if fragment.deletion_file is None:
        return None
    num_rows = fragment.physical_rows
    if not 0 < num_rows <= _FEW_ROWS:
        num_rows = confirmed_rows(snapshot, fragment)
    return read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)


def load_deletions(snapshot: Snapshot, fragments: Iterable[Fragment]) -> None:
    """Read the deletion files of fragments that are not cached, together.

    Raises as ``fragment_deletions``.
    """
    locations, cache = snapshot.locations, snapshot.deletions
    missing = [
        fragment
        for fragment in fragments
        if fragment.deletion_file is not None
        and cache.get(key_of(locations, fragment.deletion_file, fragment.id)) is None
    ]
    is_near = not missing or reads_at_a_time(snapshot, missing[0]) == 1
    run = run_reads if is_near else run_all
    run([partial(fragment_deletions, snapshot, fragment) for fragment in missing])


def with_deletions(snapshot: Snapshot, fragments: Iterable[Fragment]) -> Iterator[Fragment]:
    """Yield fragments, with the deletion files of the next ones loaded: more and more of them."""
    iterator = iter(fragments)
    ahead = 1
    while block := list(islice(iterator, ahead)):
        load_deletions(snapshot, block)
        yield from block
        ahead = min(2 * ahead, _FRAGMENTS_AHEAD)


def read_deletions(
    locations: Locations, cache: DeletionCache, fragment: Fragment, num_rows: int
) -> DeletionVector | None:
    """Return the deleted rows of the fragment, None when there are none.

    ``num_rows`` is the number of physical rows. Raises CorruptFileError, ObjectNotFoundError.
    """
    file = fragment.deletion_file
    if file is None:
        return None
    store, path = locations.locate(file.location(fragment.id), file.base_id)
    key = (store.uri, path)
    cached = cache.get(key)
    if cached is not None:
        return cached
    try:
        data = store.read(path)
    except ObjectNotFoundError as exc:
        raise ObjectNotFoundError(f"{store.uri}/{path}", f"fragment {fragment.id}") from exc
    vector = DeletionVector.from_bytes(
        data,
        file.file_type,
        physical_rows=num_rows,
        num_deleted_rows=file.num_deleted_rows or None,  # releases of 2023 did not count them
        path=f"{store.uri}/{path}",
        # Updates by releases 0.23 to 0.33 put ids of rows here when row ids were stable.
        ignore_beyond=fragment.row_ids is not None,
    )
    cache.put(key, vector)
    return vector


def physical_rows(vector: DeletionVector, positions: Ints) -> Ints:
    """Turn positions among the live rows into physical offsets, in the same order."""
    return positions + np.searchsorted(_live_before(vector), positions, side="right")


def live_span(vector: DeletionVector, start: int, stop: int, num_rows: int) -> LiveSpan:
    """Return the rows from the first to the last of the live rows ``[start, stop)``, start < stop.

    Costs as much as the window and the deletions, not as the fragment, of which all ``num_rows``
    are returned where no live row is left out.
    """
    if stop - start + len(vector) == num_rows:
        return LiveSpan(0, num_rows, np.logical_not(vector.to_mask(num_rows)))
    first, last = physical_rows(vector, np.array([start, stop - 1], np.int64)).tolist()
    deleted = vector.offsets()
    inside = deleted[np.searchsorted(deleted, first) : np.searchsorted(deleted, last)]
    if not inside.size:
        return LiveSpan(first, last + 1, None)
    mask = np.ones(last + 1 - first, np.bool_)
    mask[inside.astype(np.int64) - first] = False
    return LiveSpan(first, last + 1, mask)


def _live_before(vector: DeletionVector) -> Ints:
    """Count, for each deleted row, the live rows before it."""
    deleted = vector.offsets().astype(np.int64)
    counts: Ints = deleted - np.arange(deleted.size)
    return counts
