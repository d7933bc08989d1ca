"""Zones: runs of rows of a fragment, of which an index knows something together.

Columns: ``fragment_id``, ``zone_start``, ``zone_length``; the setting ``null_bitmap`` names a
global buffer with the set of rows that are null. Rows are named by address, whatever ids the
dataset has.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.indices.index_file import IndexFile, numbers
from lance_nb.indices.row_sets import NO_ROWS, ROWS_MAX, U64s, joined, tree_map_rows

ZONES_MAX = 1 << 22
_OFFSETS = 1 << 32
Mask = npt.NDArray[np.bool_]


class Zones:
    """The zones of one file."""

    def __init__(self, file: IndexFile) -> None:
        file.check_rows(ZONES_MAX)
        columns = file.read_all("fragment_id", "zone_start", "zone_length")
        fragments, starts, self._lengths = (numbers(one, file.path) for one in columns)
        ends = starts + self._lengths
        too_far = (starts >= _OFFSETS) | (self._lengths > _OFFSETS) | (ends > _OFFSETS)
        if bool((too_far | (fragments >= _OFFSETS)).any()):
            raise CorruptFileError(file.path, None, "zones inside of fragments", "others")
        self._starts = (fragments << np.uint64(32)) + starts
        self._path = file.path
        nulls = file.buffer("null_bitmap")
        self.nulls: U64s | None = None if nulls is None else tree_map_rows(nulls, file.path)

    def count(self, chosen: Mask) -> int:
        """Count the rows of some zones."""
        return int(np.minimum(self._lengths[chosen], ROWS_MAX).sum())

    def rows(self, chosen: Mask) -> U64s:
        """Return the addresses of all rows of some zones. Raises NotSupportedError."""
        if self.count(chosen) > ROWS_MAX:
            raise NotSupportedError(f"{self._path}: more than {ROWS_MAX:,} candidates")
        starts, lengths = self._starts[chosen], self._lengths[chosen].astype(np.int64)
        if not starts.size:
            return NO_ROWS
        before = np.cumsum(lengths) - lengths
        inside = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(before, lengths)
        return joined([np.repeat(starts, lengths) + inside.astype(np.uint64)])
