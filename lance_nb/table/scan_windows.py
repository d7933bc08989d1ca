"""The windows of a scan that chooses rows: runs of rows of one fragment, decoded at a time.

Windows of files of version 0.1 lose the rows that the statistics of their pages rule out.

Limits: a window is sized by scan.window_rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.storage.threads import cpu_count, run_side_by_side
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.predicate import Filter
from lance_nb.table.projection import Projection
from lance_nb.table.scan import LiveRows, is_large, wanted_rows, window_rows
from lance_nb.table.scan_plan import FragmentTask, first_rows, num_live_rows
from lance_nb.table.snapshot import Snapshot

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Window:
    """Rows ``[start, stop)`` of a fragment; ``rows`` is None when deleted rows count too."""

    fragment: Fragment
    start: int
    stop: int
    first: int
    rows: LiveRows | None

    @property
    def num_rows(self) -> int:
        """Rows of the window."""
        return self.stop - self.start

    def physical(self, places: Ints | None = None) -> Ints:
        """Return the offsets in the fragment of some (or all) rows of the window."""
        if self.rows is not None and self.rows.mask is not None:
            listed = self.rows.physical
            return listed if places is None else listed[places]
        begin = self.start if self.rows is None else int(self.rows.rows.starts[0])
        return self._counted(begin, places)

    def positions(self, places: Ints | None = None) -> Ints:
        """Return the places among the live rows of the dataset of some (or all) live rows."""
        return self._counted(self.first + self.start, places)

    def _counted(self, begin: int, places: Ints | None) -> Ints:
        if places is None:
            return np.arange(begin, begin + self.num_rows, dtype=np.int64)
        return places.astype(np.int64) + begin


def windows_of(
    snapshot: Snapshot,
    only: Sequence[Fragment] | None,
    columns: Projection,
    *,
    include_deleted: bool,
) -> Iterator[Window]:
    """Yield the windows of a scan in order; ``columns`` are those decoded for every row.

    ``only`` are the fragments to scan, None for all.
    """
    fragments = snapshot.manifest.fragments if only is None else only
    starts = first_rows(snapshot, only)
    for fragment in fragments:
        count = num_live_rows(snapshot, fragment)
        first = next(starts)
        if include_deleted:
            count = confirmed_rows(snapshot, fragment)
        step = window_rows(snapshot, columns, fragment)
        for start in range(0, count, step):
            stop = min(start + step, count)
            live = None
            if not include_deleted:
                live = wanted_rows(snapshot, fragment, start, stop)
            yield Window(fragment, start, stop, first, live)


def promising(snapshot: Snapshot, windows: Iterable[Window], condition: Filter) -> Iterator[Window]:
    """Yield windows without the rows that statistics rule out."""
    from lance_nb.table.page_pruning import rows_that_may_pass

    known: tuple[Fragment | None, np.ndarray | None] = (None, None)
    for window in windows:
        fragment = window.fragment
        if not any(file.is_legacy for file in fragment.files):
            yield window
            continue
        if known[0] is not fragment:  # ids may repeat
            known = (fragment, rows_that_may_pass(
                snapshot, fragment, condition))  # fmt: skip
        may_pass = known[1]
        physical = window.physical()
        if may_pass is None or may_pass.size <= int(physical[-1]):
            yield window
            continue
        kept = may_pass[physical]
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        for start, stop in (edges.reshape(-1, 2) + window.start).tolist():
            live = None
            if window.rows is not None:
                live = wanted_rows(snapshot, fragment, start, stop)
            yield Window(fragment, start, stop, window.first, live)


def deleted_rows(snapshot: Snapshot, window: Window) -> np.ndarray | None:
    """Mark the deleted rows of a window, None when it has none by its nature."""
    if window.rows is not None:
        return None
    every = _deleted_offsets(snapshot, window.fragment)
    deleted = np.zeros(window.num_rows, np.bool_)
    mine = every[np.searchsorted(every, window.start) : np.searchsorted(every, window.stop)]
    deleted[mine - window.start] = True
    return deleted


def row_positions(snapshot: Snapshot, window: Window, places: Ints | None = None) -> Ints:
    """Return for some (or all) rows of a window how many live rows of the scan are before them."""
    if window.rows is not None:
        return window.positions(places)
    physical = window.physical(places)
    gone = np.searchsorted(_deleted_offsets(snapshot, window.fragment), physical)
    return physical - gone + window.first


def _deleted_offsets(snapshot: Snapshot, fragment: Fragment) -> Ints:
    count = confirmed_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, count)
    return np.zeros(0, np.int64) if vector is None else vector.offsets().astype(np.int64)


def side_by_side(
    snapshot: Snapshot,
    columns: Projection,
    windows: Iterator[Window],
    work: Callable[[Window], T],
) -> Iterator[T]:
    """Do the work of every window, in threads where there is much of it; results in order."""
    first = next(windows, None)
    if first is None:
        return
    busy = is_large(snapshot, columns, FragmentTask(first.fragment, first.start, first.stop, 0))
    tasks = (partial(work, window) for window in chain([first], windows))
    yield from run_side_by_side(tasks, cpu_count() if busy else 1)
