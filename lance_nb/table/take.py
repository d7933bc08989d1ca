"""Take rows by position: any order, repeats allowed, each fragment read once.

Positions count live rows in scan order. The rows of a fragment are read sorted and without repeats,
then put into the order asked for. Fragments on a far store are read side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints, Rows
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import ArgumentError, InvalidInputError, RowRangeError
from lance_nb.format.fragment import Fragment
from lance_nb.storage.threads import run_side_by_side
from lance_nb.table.deletions import fragment_deletions, physical_rows
from lance_nb.table.fragment_reader import read_rows, reads_at_a_time
from lance_nb.table.live_rows import LiveRows
from lance_nb.table.projection import ROW_OFFSET, Projection, result_table
from lance_nb.table.scan import empty_table, row_columns
from lance_nb.table.scan_tasks import row_ends
from lance_nb.table.snapshot import Snapshot

_FAR_APART = 16  # rows, on average: hardly any are neighbours, and looking for them costs more


def take_rows(
    snapshot: Snapshot, projection: Projection, positions: Sequence[int] | pa.Array | np.ndarray
) -> pa.Table:
    """Return the rows at ``positions``, in that order. Raises InvalidInputError out of range."""
    row_positions = _positions(positions)
    if not row_positions.size:
        return empty_table(projection.schema)
    ends = row_ends(snapshot)
    total = int(ends[-1]) if ends.size else 0
    if int(row_positions.min()) < 0:
        raise ArgumentError(
            f"row {row_positions.min()} does not exist; the dataset has {total} rows"
        )
    if int(row_positions.max()) >= total:
        raise RowRangeError(
            f"row {row_positions.max()} does not exist; the dataset has {total} rows"
        )
    unique, inverse = np.unique(row_positions, return_inverse=True)
    tasks = []
    first, threads = 0, 1
    # np.unique without counts would import numpy.ma: 10 ms.
    for number in np.flatnonzero(np.bincount(ends.searchsorted(unique, side="right"))).tolist():
        begin = int(ends[number - 1]) if number else 0
        stop = int(unique.searchsorted(ends[number]))
        fragment = snapshot.manifest.fragments[number]
        place = unique[first:stop] - begin, begin
        tasks.append(partial(_take_fragment, snapshot, projection, fragment, place))
        if len(tasks) == 2:
            threads = reads_at_a_time(snapshot, fragment)
        first = stop
    tables = list(run_side_by_side(tasks, threads))
    if not projection.outputs:  # Arrow would forget how many rows the tables have
        return result_table(projection, [], {}, int(row_positions.size))
    table = pa.concat_tables(tables)
    if np.array_equal(inverse, np.arange(unique.size)):
        return table
    return taken_rows(table, from_integers(inverse))


def _take_fragment(
    snapshot: Snapshot, projection: Projection, fragment: Fragment, place: tuple[Ints, int]
) -> pa.Table:
    """Take sorted, distinct live positions; ``place`` also has the fragment's first position."""
    positions, begin = place
    physical = positions
    if fragment.deletion_file is not None:
        vector = fragment_deletions(snapshot, fragment)
        if vector is not None:
            physical = physical_rows(vector, positions)
    rows = ranges_of(physical)
    stored = read_rows(snapshot, fragment, projection.columns, rows)
    row_arrays = row_columns(
        snapshot, projection, fragment, live=LiveRows(rows, None, physical), first_row=0
    )
    if ROW_OFFSET in row_arrays:
        row_arrays[ROW_OFFSET] = from_integers((positions + begin).astype(np.uint64))
    return result_table(projection, stored, row_arrays, int(physical.size))


def ranges_of(offsets: Ints) -> Rows:
    """Join sorted, distinct offsets into ranges; those that lie far apart stay single."""
    if int(offsets[-1]) - int(offsets[0]) >= _FAR_APART * offsets.size:
        return Rows(offsets, offsets + 1)
    breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
    firsts = np.concatenate(([0], breaks))
    lasts = np.concatenate((breaks, [offsets.size])) - 1
    return Rows(offsets[firsts], offsets[lasts] + 1)


def _positions(positions: Sequence[int] | pa.Array | np.ndarray) -> Ints:
    array = positions
    if isinstance(array, (pa.Array, pa.ChunkedArray)):
        if array.null_count:
            raise InvalidInputError("row positions must not be null")
        array = array.to_numpy(zero_copy_only=False)
    values = np.asarray(array)
    if not values.size:
        return np.zeros(0, np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ArgumentError(
            f"row positions are a list of whole numbers, not {values.dtype} with {values.ndim} axes"
        )
    return values.astype(np.int64)
