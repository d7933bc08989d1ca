"""Scans that choose rows: a filter's columns are decoded first, the others for rows that survive.

Every fragment is read in windows of rows. In a window the filter's columns are decoded and the mask
is computed; columns that the result needs too are reused, the others are read for the surviving
rows alone: as ranges when few survive, as one range that is thinned out when many do. Windows
without a survivor cost nothing more, and a limit ends the scan with the window that fulfils it.

``include_deleted`` also returns rows that are deleted but still stored, with a null
``_rowid`` and ``_rowaddr``.

Limits: memory holds one window (see scan.WINDOW_BYTES).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import Column, num_physical_rows, read_rows
from lance_nb.table.predicate import Filter
from lance_nb.table.projection import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    ROW_OFFSET,
    Projection,
    project,
    result_table,
)
from lance_nb.table.scan import LiveRows, one_range, row_columns, wanted_rows, window_rows
from lance_nb.table.scan_plan import first_rows, num_live_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import ranges_of

# From this share of surviving rows on, reading a whole range and thinning it out is faster than
# reading the rows one by one (measured on bit-packed integers and on strings).
DENSE_SHARE = 0.02

# A field and the form (with some of its children, perhaps) in which it was decoded.
ColumnKey = tuple[int, pa.DataType]


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which rows a scan may return, before limit and offset. ``fragments`` None means all."""

    filter: Filter | None = None
    fragments: tuple[Fragment, ...] | None = None
    include_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """Rows of one window that survive: where they are, and columns of them that are decoded.

    ``physical`` are offsets in the fragment, ascending; ``positions`` the rows' places in the
    dataset; ``deleted`` marks those that are deleted (None: none is).
    """

    fragment: Fragment
    physical: Ints
    positions: Ints
    known: Mapping[ColumnKey, pa.ChunkedArray]
    deleted: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """Rows that survive."""
        return int(self.physical.size)

    def part(self, start: int, stop: int) -> Selected:
        """Return some of the rows."""
        if start == 0 and stop >= self.num_rows:
            return self
        known = {column: values.slice(start, stop - start) for column, values in self.known.items()}
        deleted = None if self.deleted is None else self.deleted[start:stop]
        return Selected(
            self.fragment, self.physical[start:stop], self.positions[start:stop], known, deleted
        )


def select_rows(
    snapshot: Snapshot,
    choice: RowChoice,
    wanted: Projection,
    limit: int | None = None,
    offset: int = 0,
) -> Iterator[Selected]:
    """Yield the rows of a scan in order, window by window; ``wanted`` sizes the windows."""
    skip, left = offset, limit
    for found in _windows(snapshot, choice, wanted):
        if left == 0:
            return
        start = min(skip, found.num_rows)
        skip -= start
        stop = found.num_rows if left is None else min(found.num_rows, start + left)
        if start < stop:
            if left is not None:
                left -= stop - start
            yield found.part(start, stop)


def _windows(snapshot: Snapshot, choice: RowChoice, wanted: Projection) -> Iterator[Selected]:
    condition = choice.filter
    columns = (
        wanted if condition is None else filter_projection(snapshot.manifest.schema, condition)
    )
    fragments = snapshot.manifest.fragments if choice.fragments is None else choice.fragments
    starts = first_rows(snapshot, choice.fragments)
    for fragment in fragments:
        count = num_live_rows(snapshot, fragment)
        first = next(starts)
        if choice.include_deleted:
            count = num_physical_rows(snapshot, fragment)
        step = window_rows(snapshot, columns, fragment)
        for start in range(0, count, step):
            rows = _rows_of(snapshot, choice, fragment, (start, min(start + step, count), first))
            yield rows if condition is None else _survivors(snapshot, columns, condition, rows)


def _rows_of(
    snapshot: Snapshot, choice: RowChoice, fragment: Fragment, window: tuple[int, int, int]
) -> Selected:
    """List the rows of a window: ``(start, stop)`` of the fragment, and its first position."""
    start, stop, first = window
    positions = np.arange(first + start, first + stop, dtype=np.int64)
    if not choice.include_deleted:
        physical = wanted_rows(snapshot, fragment, start, stop).physical
        if physical is None:
            physical = np.arange(start, stop, dtype=np.int64)
        return Selected(fragment, physical, positions, {})
    physical = np.arange(start, stop, dtype=np.int64)
    vector = read_deletions(
        snapshot.locations, snapshot.deletions, fragment, num_physical_rows(snapshot, fragment)
    )
    deleted = np.ones(stop - start, np.bool_)
    live = (
        physical if vector is None else vector.live_offsets(num_physical_rows(snapshot, fragment))
    )
    mine = live[np.searchsorted(live, start) : np.searchsorted(live, stop)]
    deleted[mine - start] = False
    return Selected(fragment, physical, positions, {}, deleted)


def _survivors(
    snapshot: Snapshot, columns: Projection, condition: Filter, rows: Selected
) -> Selected:
    """Decode the filter's columns and keep the rows that it wants."""
    stored = read_columns(snapshot, columns.columns, rows)
    table = selected_table(snapshot, columns, rows, stored)
    values = {path: table.column(place) for place, path in enumerate(condition.paths)}
    mask = condition.mask(values, rows.num_rows)
    if mask.all():
        return Selected(
            rows.fragment, rows.physical, rows.positions,
            dict(zip(map(_key, columns.columns), stored, strict=True)), rows.deleted,
        )  # fmt: skip
    places = np.flatnonzero(mask)
    known = {}
    if places.size:
        chosen = pa.array(mask) if places.size * 8 > mask.size else pa.array(places)
        thin = "filter" if places.size * 8 > mask.size else "take"
        known = {
            _key(column): getattr(values, thin)(chosen)
            for column, values in zip(columns.columns, stored, strict=True)
        }
    deleted = None if rows.deleted is None else rows.deleted[places]
    return Selected(rows.fragment, rows.physical[places], rows.positions[places], known, deleted)


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
    missing = [column for column in columns if _key(column) not in rows.known]
    found = dict(rows.known)
    if missing and rows.num_rows:
        physical = rows.physical
        first, last = int(physical[0]), int(physical[-1]) + 1
        if physical.size == last - first:
            stored = read_rows(snapshot, rows.fragment, missing, one_range(first, last))
        elif physical.size >= (last - first) * DENSE_SHARE:
            stored = read_rows(snapshot, rows.fragment, missing, one_range(first, last))
            keep = pa.array(physical - first)
            stored = [values.take(keep) for values in stored]
        else:
            stored = read_rows(snapshot, rows.fragment, missing, ranges_of(physical))
        found |= zip(map(_key, missing), stored, strict=True)
    elif missing:
        found |= {_key(one): pa.chunked_array([], one.arrow.type) for one in missing}
    return [found[_key(column)] for column in columns]


def _key(column: Column) -> ColumnKey:
    return column.field.id, column.arrow.type


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
    found = row_columns(snapshot, projection, rows.fragment, place, 0)
    if ROW_OFFSET in found:
        found[ROW_OFFSET] = pa.array(rows.positions.astype(np.uint64))
    for name in (ROW_ID, ROW_ADDRESS):
        if name in found and rows.deleted is not None:
            values = found[name].to_numpy(zero_copy_only=False)
            found[name] = pa.array(values, pa.uint64(), mask=rows.deleted)
    return result_table(projection, stored, found, rows.num_rows)


def count_selected(snapshot: Snapshot, choice: RowChoice) -> int:
    """Count the rows of a scan, decoding the filter's columns only."""
    nothing = project(snapshot.manifest.schema, [])
    return sum(found.num_rows for found in select_rows(snapshot, choice, nothing))
