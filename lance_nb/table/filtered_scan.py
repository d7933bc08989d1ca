"""Filtered scans with late materialization: a filter's columns are decoded before the others.

Every fragment is read in windows: runs of rows that are decoded at a time. In a window the filter's
columns are decoded and the mask is computed; columns that the result needs too are reused, the
others are read for the selected rows only: as ranges if they are few, as one range that is filtered
if they are many. Windows without a selected row cost nothing more, and a limit ends the scan with
the window that reaches it. In files of version 0.1, rows that the page statistics rule out are not
decoded at all.

``include_deleted`` also returns rows that are deleted but still stored, with a null
``_rowid`` and ``_rowaddr``.

Limits: memory holds one window, sized by ``scan.window_rows``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import taken
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers, from_mask
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.threads import run_side_by_side
from lance_nb.table.deletions import fragment_deletions, with_deletions
from lance_nb.table.fragment_group import GROUP_ROWS, grouped
from lance_nb.table.fragment_reader import Column, confirmed_rows, read_rows, reads_at_a_time
from lance_nb.table.index_search import IndexAnswer
from lance_nb.table.live_rows import LiveRows, one_range, wanted_rows
from lance_nb.table.predicate import Columns, Filter
from lance_nb.table.projection import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    ROW_OFFSET,
    Projection,
    project,
    result_table,
)
from lance_nb.table.scan import read_live_group, row_columns, threads_for, window_rows
from lance_nb.table.scan_tasks import FragmentTask, first_rows, num_live_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import ranges_of
from lance_nb.value_classes import dataclass

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

    @property
    def read(self) -> LiveRows:
        """The rows to read."""
        return self.rows or LiveRows(one_range(self.start, self.stop))

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
    for fragment in with_deletions(snapshot, fragments):
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
            yield Window(fragment, start, stop, first=first, rows=live)


def promising(snapshot: Snapshot, windows: Iterable[Window], condition: Filter) -> Iterator[Window]:
    """Yield windows without the rows that statistics rule out."""
    last_read: tuple[Fragment | None, np.ndarray | None] = (None, None)
    for window in windows:
        fragment = window.fragment
        if not any(file.is_legacy for file in fragment.files):
            yield window
            continue
        from lance_nb.table.page_pruning import rows_that_may_pass  # needed for 0.1 only

        if last_read[0] is not fragment:  # ids may repeat
            last_read = (fragment, rows_that_may_pass(
                snapshot, fragment, condition))  # fmt: skip
        may_pass = last_read[1]
        physical = window.physical()
        if may_pass is None or may_pass.size <= int(physical[-1]):
            yield window
            continue
        is_promising = may_pass[physical]
        edges = np.flatnonzero(np.diff(is_promising, prepend=False, append=False))
        for start, stop in (edges.reshape(-1, 2) + window.start).tolist():
            yield _part(snapshot, window, start, stop)


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
    deleted_before = np.searchsorted(_deleted_offsets(snapshot, window.fragment), physical)
    return physical - deleted_before + window.first


def _deleted_offsets(snapshot: Snapshot, fragment: Fragment) -> Ints:
    vector = fragment_deletions(snapshot, fragment)
    return np.zeros(0, np.int64) if vector is None else vector.offsets().astype(np.int64)


def side_by_side(
    snapshot: Snapshot,
    columns: Projection,
    windows: Iterator[Window],
    work: Callable[[Sequence[Window]], T],
) -> Iterator[T]:
    """Do the work of every group of windows, in threads where there is much; results in order."""
    groups = grouped(snapshot, windows, columns.row_bytes)
    first = next(groups, None)
    if first is None:
        return
    threads = threads_for(
        snapshot,
        columns,
        [FragmentTask(window.fragment, window.start, window.stop, 0) for window in first],
    )
    tasks = (partial(work, group) for group in chain([first], groups))
    yield from run_side_by_side(tasks, threads)


# From this share of surviving rows on, reading a whole range and thinning it out is faster than
# reading the rows one by one. Measured on a million rows, with numpy: both cost the same at 5 % for
# flat numbers, 8 % for packed ones, 11 % for short vectors, 13 % for text.
DENSE_SHARE = 0.06
_FIRST_ROWS = 1 << 13


# A field and the form (with some of its children, perhaps) in which it was decoded, as text: types
# that others register with Arrow need not be hashable.
ColumnKey = tuple[int, str]


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which rows a scan may return, before limit and offset. ``fragments`` None means all.

    ``answer`` is what indices say of the filter, None where none was asked or none helps.
    """

    filter: Filter | None = None
    fragments: tuple[Fragment, ...] | None = None
    include_deleted: bool = False
    answer: IndexAnswer | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """Rows of one window that survive: where they are, and columns of them that are decoded.

    ``physical`` are offsets in the fragment, ascending; ``positions`` the rows' places among the
    live rows; ``deleted`` marks those that are deleted (None: none is).
    """

    fragment: Fragment
    physical: Ints
    positions: Ints
    decoded: Mapping[ColumnKey, pa.ChunkedArray]
    deleted: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """Rows that survive."""
        return int(self.physical.size)

    def part(self, start: int, stop: int) -> Selected:
        """Return some of the rows."""
        if start == 0 and stop >= self.num_rows:
            return self
        columns = {
            column: values.slice(start, stop - start) for column, values in self.decoded.items()
        }
        deleted = None if self.deleted is None else self.deleted[start:stop]
        return Selected(
            self.fragment,
            self.physical[start:stop],
            self.positions[start:stop],
            decoded=columns,
            deleted=deleted,
        )


def _windows(snapshot: Snapshot, choice: RowChoice, columns: Projection) -> Iterator[Window]:
    return windows_of(snapshot, choice.fragments, columns, include_deleted=choice.include_deleted)


def plain_selections(
    snapshot: Snapshot, choice: RowChoice, projection: Projection, most: int | None
) -> Iterator[Selected]:
    """Yield the rows that pass the filter, window by window: at most the first ``most`` of them.

    Without a filter, or with None, all rows.
    """
    condition = choice.filter
    if condition is None:
        for window in _windows(snapshot, choice, projection):
            yield _whole(snapshot, window, {})
        return
    columns = filter_projection(snapshot.manifest.schema, condition)
    reused = {column_key(column) for column in projection.columns}
    windows = promising(snapshot, _windows(snapshot, choice, columns), condition)
    if most is not None:
        windows = _growing(snapshot, windows, most)
    groups = grouped(snapshot, windows, columns.row_bytes, GROUP_ROWS if most is None else most)
    for group, stored, values in _ahead(
        snapshot,
        groups,
        lambda group: (group, *_decoded(snapshot, columns, condition, group)),
        is_limited=most is not None,
    ):
        total = sum(window.num_rows for window in group)
        passing = condition.mask(values, total)
        decoded = {
            column_key(column): values
            for column, values in zip(columns.columns, stored, strict=True)
            if column_key(column) in reused
        }
        start = 0
        for window in group:
            mask = passing[start : start + window.num_rows]
            places = np.flatnonzero(mask)
            if most is not None:
                if places.size > most:
                    places = places[:most]
                    mask = mask[: int(places[-1]) + 1]
                most -= places.size
            if places.size:
                decoded_columns = decoded
                if mask.size < total:
                    decoded_columns = {
                        key: values.slice(start, mask.size) for key, values in decoded.items()
                    }
                if places.size == window.num_rows:
                    yield _whole(snapshot, window, decoded_columns)
                else:
                    yield _thinned(snapshot, window, decoded_columns, (mask, places))
            start += window.num_rows


def _growing(snapshot: Snapshot, windows: Iterable[Window], most: int) -> Iterator[Window]:
    """Cut windows so that the first ones are small: ``most`` rows may be found there already."""
    step = max(most, _FIRST_ROWS)
    for window in windows:
        start = window.start
        while window.stop - start > 2 * step:
            yield _part(snapshot, window, start, start + step)
            start += step
            step *= 2
        yield window if start == window.start else _part(snapshot, window, start, window.stop)


def _part(snapshot: Snapshot, window: Window, start: int, stop: int) -> Window:
    live = None if window.rows is None else wanted_rows(snapshot, window.fragment, start, stop)
    return Window(window.fragment, start, stop, first=window.first, rows=live)


def _ahead(
    snapshot: Snapshot,
    groups: Iterator[Sequence[Window]],
    work: Callable[[Sequence[Window]], T],
    *,
    is_limited: bool,
) -> Iterator[T]:
    """Do the work of groups in order; on a far store several at a time, unless few are wanted."""
    first = next(groups, None)
    if first is None:
        return
    threads = 1 if is_limited else reads_at_a_time(snapshot, first[0].fragment)
    yield from run_side_by_side((partial(work, group) for group in chain([first], groups)), threads)


def _whole(
    snapshot: Snapshot, window: Window, decoded: Mapping[ColumnKey, pa.ChunkedArray]
) -> Selected:
    deleted = deleted_rows(snapshot, window)
    positions = row_positions(snapshot, window)
    return Selected(window.fragment, window.physical(), positions, decoded=decoded, deleted=deleted)


def _thinned(
    snapshot: Snapshot,
    window: Window,
    decoded: Mapping[ColumnKey, pa.ChunkedArray],
    survivors: tuple[np.ndarray, Ints],
) -> Selected:
    mask, places = survivors
    # Arrow's filter costs by the row, its take by the survivor.
    dense = places.size * 8 > mask.size
    chosen = from_mask(mask) if dense else from_integers(places)
    thin = {
        key: pc.filter(values, chosen) if dense else taken(values, chosen)
        for key, values in decoded.items()
    }
    deleted = deleted_rows(snapshot, window)
    return Selected(
        window.fragment,
        window.physical(places),
        row_positions(snapshot, window, places),
        decoded=thin,
        deleted=None if deleted is None else deleted[places],
    )


def _decoded(
    snapshot: Snapshot, columns: Projection, condition: Filter, windows: Sequence[Window]
) -> tuple[list[pa.ChunkedArray], Columns]:
    """Decode the filter's columns of a group of windows; return them as stored and by path."""
    stored = None
    if len(windows) > 1 and not columns.row_columns:
        fragments = [window.fragment for window in windows]
        stored = read_live_group(
            snapshot, columns.columns, fragments, [window.read for window in windows]
        )
    if stored is not None:
        table = result_table(columns, stored, {}, sum(window.num_rows for window in windows))
    else:
        tables = [_decoded_window(snapshot, columns, window) for window in windows]
        table = tables[0][1] if len(tables) == 1 else pa.concat_tables([pair[1] for pair in tables])
        stored = [
            values[0]
            if len(values) == 1
            else pa.chunked_array(
                [chunk for column_values in values for chunk in column_values.chunks],
                values[0].type,
            )
            for values in zip(*[pair[0] for pair in tables], strict=True)
        ]
    return stored, {path: table.column(place) for place, path in enumerate(condition.paths)}


def _decoded_window(
    snapshot: Snapshot, columns: Projection, window: Window
) -> tuple[list[pa.ChunkedArray], pa.Table]:
    live = window.read
    stored = live.filter(read_rows(snapshot, window.fragment, columns.columns, live.rows))
    if columns.row_columns:
        return stored, selected_table(snapshot, columns, _whole(snapshot, window, {}), stored)
    return stored, result_table(columns, stored, {}, window.num_rows)


def filter_projection(schema: Schema, condition: Filter) -> Projection:
    """Return the columns that a filter reads, in the order of its paths."""
    return project(schema, [quoted(path) for path in condition.paths])


def quoted(path: Sequence[str]) -> str:
    """Write a path as a column name."""
    if path[0] in ROW_COLUMNS:
        return path[0]
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def read_columns(
    snapshot: Snapshot, columns: Sequence[Column], rows: Selected
) -> list[pa.ChunkedArray]:
    """Return the columns of the rows, decoding those that are not known yet."""
    missing = [column for column in columns if column_key(column) not in rows.decoded]
    values_by_key = dict(rows.decoded)
    if missing and rows.num_rows:
        physical = rows.physical
        first, last = int(physical[0]), int(physical[-1]) + 1
        if physical.size == last - first:
            stored = read_rows(snapshot, rows.fragment, missing, one_range(first, last))
        elif physical.size >= (last - first) * DENSE_SHARE:
            stored = read_rows(snapshot, rows.fragment, missing, one_range(first, last))
            keep = from_integers(physical - first)
            stored = [taken(values, keep) for values in stored]
        else:
            stored = read_rows(snapshot, rows.fragment, missing, ranges_of(physical))
        values_by_key |= zip(map(column_key, missing), stored, strict=True)
    elif missing:
        values_by_key |= {
            column_key(column): pa.chunked_array([], column.arrow.type) for column in missing
        }
    return [values_by_key[column_key(column)] for column in columns]


def column_key(column: Column) -> ColumnKey:
    """Return what decoded values of a column are known by."""
    return column.field.id, str(column.arrow.type)


def selected_table(
    snapshot: Snapshot,
    projection: Projection,
    rows: Selected,
    stored: Sequence[pa.ChunkedArray] | None = None,
) -> pa.Table:
    """Read what the projection wants of the rows."""
    if stored is None:
        stored = read_columns(snapshot, projection.columns, rows)
    place = LiveRows(one_range(0, 1), None, rows.physical)
    row_values = row_columns(snapshot, projection, rows.fragment, live=place, first_row=0)
    if ROW_OFFSET in row_values:
        row_values[ROW_OFFSET] = from_integers(rows.positions.astype(np.uint64))
    for name in (ROW_ID,) if projection.addresses_of_deleted else (ROW_ID, ROW_ADDRESS):
        if name in row_values and rows.deleted is not None:
            no_row = pc.scalar_of(None, pa.uint64())
            row_values[name] = pc.if_else(from_mask(rows.deleted), no_row, row_values[name])
    return result_table(projection, stored, row_values, rows.num_rows)


def passing_bits(
    snapshot: Snapshot, condition: Filter, fragments: Sequence[Fragment]
) -> Iterator[tuple[Fragment, pa.BooleanArray]]:
    """Yield fragments with a bit for each of their rows, set where it passes the filter.

    For fragments without deleted rows, and files younger than 0.1. Each comes in pieces, in order.
    """
    choice = RowChoice(condition, tuple(fragments))
    columns = filter_projection(snapshot.manifest.schema, condition)

    def passing(windows: Sequence[Window]) -> tuple[Sequence[Window], pa.BooleanArray]:
        _, values = _decoded(snapshot, columns, condition, windows)
        return windows, condition.bits(values, sum(window.num_rows for window in windows))

    for group, bits in side_by_side(
        snapshot, columns, _windows(snapshot, choice, columns), passing
    ):
        start = 0
        for window in group:
            yield window.fragment, bits.slice(start, window.num_rows)
            start += window.num_rows


def count_plain(snapshot: Snapshot, choice: RowChoice) -> int:
    """Count the rows that pass the filter, without indices; its columns alone are decoded."""
    condition = choice.filter
    if condition is None:
        nothing = project(snapshot.manifest.schema, [])
        return sum(window.num_rows for window in _windows(snapshot, choice, nothing))
    columns = filter_projection(snapshot.manifest.schema, condition)

    def count(windows: Sequence[Window]) -> int:
        _, values = _decoded(snapshot, columns, condition, windows)
        return condition.count(values, sum(window.num_rows for window in windows))

    windows = promising(snapshot, _windows(snapshot, choice, columns), condition)
    return sum(side_by_side(snapshot, columns, windows, count))
