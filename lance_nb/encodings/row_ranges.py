"""Ranges of rows: join them, cut them at borders, find rows among the ones that were read."""

from __future__ import annotations

import numpy as np

from lance_nb.encodings.base import Ints, Rows


def merged(starts: Ints, stops: Ints) -> Rows:
    """Join ascending ranges that touch or overlap; empty ones vanish."""
    if starts.size and bool((starts[1:] == stops[:-1]).all()):  # back to back, as values are
        starts, stops = starts[:1], stops[-1:]
    some = stops > starts
    starts, stops = starts[some], stops[some]
    if not starts.size:
        return Rows(starts, stops)
    breaks = np.flatnonzero(starts[1:] > stops[:-1]) + 1
    firsts = np.concatenate(([0], breaks))
    lasts = np.concatenate((breaks - 1, [starts.size - 1]))
    return Rows(starts[firsts], stops[lasts])


def places_in(rows: Rows, positions: Ints) -> Ints:
    """Return where each of ``positions`` (all of them in ``rows``) stands when rows are joined."""
    lengths = rows.stops - rows.starts
    shift = np.cumsum(lengths) - lengths - rows.starts
    group = np.searchsorted(rows.starts, positions, side="right") - 1
    places: Ints = positions + shift[group]
    return places


def split_at(rows: Rows, ends: Ints) -> list[tuple[int, Rows]]:
    """Cut rows at the borders of pages that end at ``ends`` (cumulative, the last beyond all rows).

    Returns page number and rows of the page, counted from its start; pages without rows are left
    out.
    """
    if not rows.starts.size:
        return []
    if ends.size == 1:
        return [(0, rows)]
    first = int(ends.searchsorted(rows.starts[0], side="right"))
    last = int(ends.searchsorted(rows.stops[-1] - 1, side="right"))
    if first == last:
        begin = int(ends[first - 1]) if first else 0
        return [(first, Rows(rows.starts - begin, rows.stops - begin) if begin else rows)]
    parts = []
    for page in range(first, last + 1):
        begin = int(ends[page - 1]) if page else 0
        end = int(ends[page])
        low = int(np.searchsorted(rows.stops, begin, side="right"))
        high = int(np.searchsorted(rows.starts, end, side="left"))
        if low < high and begin < end:
            starts = np.maximum(rows.starts[low:high], begin) - begin
            stops = np.minimum(rows.stops[low:high], end) - begin
            parts.append((page, Rows(starts, stops)))
    return parts
