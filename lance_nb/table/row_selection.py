"""Select rows: those of a scan, by its filter alone or by what indices answer, and their number.

What searches indices is loaded by the first scan that has an answer of one.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_nb.table.filtered_scan import RowChoice, Selected, count_plain, plain_selections
from lance_nb.table.projection import Projection
from lance_nb.table.snapshot import Snapshot


def select_rows(
    snapshot: Snapshot,
    choice: RowChoice,
    projection: Projection,
    limit: int | None = None,
    offset: int = 0,
) -> Iterator[Selected]:
    """Yield the rows of a scan in order, window by window; ``projection`` sizes the windows."""
    skip, left = offset, limit
    if left == 0:
        return
    selections = plain_selections
    if choice.answer is not None:
        from lance_nb.table.indexed_scan import indexed_selections

        selections = indexed_selections
    for selection in selections(
        snapshot, choice, projection, None if left is None else offset + left
    ):
        start = min(skip, selection.num_rows)
        skip -= start
        stop = selection.num_rows if left is None else min(selection.num_rows, start + left)
        if start < stop:
            yield selection.part(start, stop)
            if left is not None:
                left -= stop - start
                if not left:
                    return


def count_selected(snapshot: Snapshot, choice: RowChoice) -> int:
    """Count the rows of a scan, decoding the filter's columns only."""
    if choice.answer is None:
        return count_plain(snapshot, choice)
    from lance_nb.table.indexed_scan import count_indexed

    return count_indexed(snapshot, choice)
