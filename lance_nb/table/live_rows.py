"""Live rows of a fragment: positions among the rows that are not deleted, as physical ranges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import Ints, Rows
from lance_nb.encodings.kernels.memory import from_mask
from lance_nb.format.fragment import Fragment
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LiveRows:
    """ValuePlaces rows of one fragment: the physical ranges to read, and what to keep of them.

    ``mask`` marks the rows that are kept of those that are read, None for all. ``listed`` are the
    physical offsets of the kept rows where they are known already.
    """

    rows: Rows
    mask: Mask | None = None
    listed: Ints | None = None

    @property
    def span(self) -> range:
        """The physical offsets from the first row to the last."""
        return range(int(self.rows.starts[0]), int(self.rows.stops[-1]))

    @property
    def physical(self) -> Ints:
        """The physical offset of every kept row."""
        if self.listed is not None:
            return self.listed
        if self.mask is None:
            return np.arange(self.span.start, self.span.stop, dtype=np.int64)
        offsets: Ints = np.flatnonzero(self.mask)
        offsets += self.span.start
        return offsets

    def filter(self, columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
        """Drop the rows that were read with the others but are not wanted."""
        if self.mask is None or not columns:
            return columns
        mask = from_mask(self.mask)
        return [pc.filter(column, mask) for column in columns]


def wanted_rows(snapshot: Snapshot, fragment: Fragment, start: int, stop: int) -> LiveRows:
    """Turn live positions into physical ranges, given the fragment's deletions; start < stop."""
    if fragment.deletion_file is None:
        return LiveRows(one_range(start, stop))
    from lance_nb.table.deletions import fragment_deletions, live_span

    vector = fragment_deletions(snapshot, fragment)
    if vector is None:
        return LiveRows(one_range(start, stop))
    span = live_span(vector, start, stop, num_physical_rows(snapshot, fragment))
    return LiveRows(one_range(span.start, span.stop), span.mask)


def one_range(start: int, stop: int) -> Rows:
    """Return rows ``[start, stop)``, start < stop."""
    return Rows(np.array([start], np.int64), np.array([stop], np.int64))
