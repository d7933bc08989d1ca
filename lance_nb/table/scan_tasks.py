"""The tasks of a scan: which fragments are read, in order, and which live rows of each.

Offset and limit are applied to the manifest's counts: fragments before the offset or after the
limit are never opened, and a fragment without deletions needs no file to be planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class FragmentTask:
    """Live rows ``[start, stop)`` of one fragment.

    ``first_row`` is the position of ``start`` in the dataset.
    """

    fragment: Fragment
    start: int
    stop: int
    first_row: int

    @property
    def num_rows(self) -> int:
        """Rows that the task returns."""
        return self.stop - self.start


def plan_tasks(
    snapshot: Snapshot,
    limit: int | None = None,
    offset: int | None = None,
    fragments: Sequence[Fragment] | None = None,
) -> Iterator[FragmentTask]:
    """Yield the tasks of a scan in order; lazily, so that a limit stops early.

    Raises InvalidInputError for a negative limit or offset; the first step raises CorruptFileError
    when the manifest's counts cannot be true.
    """
    for name, value in (("limit", limit), ("offset", offset)):
        if value is not None and value < 0:
            raise InvalidInputError(f"{name} must not be negative, got {value}")
    return _tasks(snapshot, limit, offset or 0, fragments)


def _tasks(
    snapshot: Snapshot, limit: int | None, offset: int, fragments: Sequence[Fragment] | None
) -> Iterator[FragmentTask]:
    whole = snapshot.manifest.fragments
    whole.counts()  # refuses impossible numbers
    fragment_index, position = skipped(snapshot, offset) if fragments is None else (0, 0)
    left = limit
    firsts = None if fragments is None else first_rows(snapshot, fragments)
    chosen = whole if fragments is None else fragments
    ahead: Iterator[Fragment] = (chosen[n] for n in range(fragment_index, len(chosen)))
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:  # see ``num_live_rows``
        from lance_nb.table.deletions import with_deletions

        ahead = with_deletions(snapshot, ahead)
    for fragment in ahead:
        if left == 0:
            return
        count = num_live_rows(snapshot, fragment)
        first = position if firsts is None else next(firsts)
        start = min(max(offset - position, 0), count)
        stop = count if left is None else min(count, start + left)
        if start < stop:
            yield FragmentTask(fragment, start, stop, first + start)
            if left is not None:
                left -= stop - start
        position += count


def skipped(snapshot: Snapshot, offset: int) -> tuple[int, int]:
    """Return how many fragments lie before ``offset`` live rows, and the live rows of these.

    They are not decoded, but for those whose rows the manifest alone does not tell: these once.
    """
    if not offset:
        return 0, 0
    if not snapshot.live_rows:
        snapshot.live_rows.append(_counted(snapshot))
    live, done, before = snapshot.live_rows[0], 0, 0
    for number in np.flatnonzero(live < 0).tolist():
        before += int(live[done:number].sum())
        if before > offset:
            break
        live[number] = num_live_rows(snapshot, snapshot.manifest.fragments[number])
        done = number
    ends = np.cumsum(np.maximum(live, 0))
    total = int(ends[-1]) if len(ends) else 0
    fragment_index = (
        int(np.searchsorted(ends, offset, side="right")) if offset < total else len(ends)
    )
    return fragment_index, int(ends[fragment_index - 1]) if fragment_index else 0


def _counted(snapshot: Snapshot) -> Ints:
    """Return the live rows of every fragment as ``num_live_rows`` does, -1 where it must look."""
    counts = snapshot.manifest.fragments.counts()
    live: Ints = counts.num_rows.astype(np.int64)
    deleted = counts.num_deletion_files > 0
    unknown = counts.physical_rows == 0
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        unknown |= deleted
    live[unknown | (deleted & (counts.num_deleted_rows == 0))] = -1
    return live


def num_live_rows(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return the fragment's rows that are not deleted.

    The manifest's count of deleted rows cannot be trusted where row ids are stable (see
    ``read_deletions``), and releases of 2023 left it out.
    """
    count = num_physical_rows(snapshot, fragment)
    if fragment.deletion_file is None:
        return count
    if fragment.row_ids is None and fragment.num_deleted_rows:
        return count - fragment.num_deleted_rows
    from lance_nb.table import deletions

    num_deleted = snapshot.deletions.length(
        deletions.key_of(snapshot.locations, fragment.deletion_file, fragment.id)
    )
    if num_deleted is not None:
        return count - num_deleted
    vector = deletions.fragment_deletions(snapshot, fragment)
    return count - (0 if vector is None else len(vector))


def first_rows(snapshot: Snapshot, fragments: Sequence[Fragment] | None = None) -> Iterator[int]:
    """Yield the position in the dataset of each fragment's first live row.

    A fragment that the version does not have starts at 0.
    """
    if fragments is None:
        position = 0
        for fragment in snapshot.manifest.fragments:
            yield position
            position += num_live_rows(snapshot, fragment)
        return
    ends = row_ends(snapshot)
    for place in snapshot.manifest.fragments.places_of(fragments):
        yield int(ends[place - 1]) if place else 0


def row_ends(snapshot: Snapshot) -> Ints:
    """Return the live rows up to the end of every fragment, in scan order; added up once."""
    if not snapshot.row_ends:
        snapshot.row_ends.append(np.cumsum(live_counts(snapshot)))
    ends: Ints = snapshot.row_ends[0]
    return ends


def live_counts(snapshot: Snapshot) -> Ints:
    """Return the live rows of every fragment, in scan order."""
    live: Ints = counts_of(snapshot).num_rows.astype(np.int64)
    return live


def counts_of(snapshot: Snapshot) -> FragmentCounts:
    """Return the numbers of every fragment, in scan order.

    Row counts that the manifest does not have are taken from the files.
    """
    counts = snapshot.manifest.fragments.counts()
    unknown = np.flatnonzero(counts.is_unknown).tolist()
    if not unknown:
        return counts
    physical, deleted = counts.physical_rows.copy(), counts.num_deleted_rows.copy()
    for number in unknown:
        fragment = snapshot.manifest.fragments[number]
        physical[number] = num_physical_rows(snapshot, fragment)
        deleted[number] = physical[number] - num_live_rows(snapshot, fragment)
    return replace(counts, physical_rows=physical, num_deleted_rows=deleted)
