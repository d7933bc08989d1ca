"""The rows and columns selected in a grid, and reading them as Arrow.

Limits: ``MAX_SELECTED`` rows in at most ``MAX_RANGES`` ranges. With columns selected and no rows,
the first ``MAX_SELECTED`` rows of these columns are meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.messages import integer
from lance_nb.explorer.models.row_query import RowQuery
from lance_nb.explorer.models.source import Source

MAX_SELECTED = 100_000
MAX_RANGES = 1000
MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class Selection:
    """Ranges of positions in the grid that ``lens`` shows, and places of columns (none: all)."""

    ranges: tuple[tuple[int, int], ...] = ()
    columns: tuple[int, ...] = ()
    lens: RowQuery = field(default_factory=RowQuery)

    @property
    def num_rows(self) -> int:
        """Rows selected."""
        return sum(stop - first for first, stop in self.ranges)

    def table(self, dataset: Source) -> pa.Table:
        """Read the selection, in row order, the columns in the order of the grid."""
        known = self.lens.names(dataset)
        names = [known[at] for at in self.columns if at < len(known)] or known
        ranges = sorted(self.ranges) or ([(0, MAX_SELECTED)] if self.columns else [(0, 0)])
        if self.lens.filter is None and self.lens.arranged is None and self.ranges:
            rows = [row for first, stop in ranges for row in range(first, stop)]
            return dataset.take(rows, names)
        return pa.concat_tables(
            self.lens.rows(dataset, names, first, stop - first) for first, stop in ranges
        )


def selection_of(args: Mapping[str, Any], lens: RowQuery) -> Selection:
    """Take a selection from the arguments of a request. Raises InvalidInputError."""
    ranges, columns = args.get("ranges"), args.get("columns", [])
    if not isinstance(ranges, list) or len(ranges) > MAX_RANGES:
        raise InvalidInputError(f"ranges must be a list of up to {MAX_RANGES} pairs")
    if not isinstance(columns, list) or len(columns) > MAX_RANGES:
        raise InvalidInputError(f"columns must be a list of up to {MAX_RANGES} places")
    places = sorted({integer({"column": at}, "column", low=0, high=MAX_COUNT) for at in columns})
    found = Selection(tuple(map(_range, ranges)), tuple(places), lens)
    if found.num_rows > MAX_SELECTED:
        raise InvalidInputError(f"at most {MAX_SELECTED:,} rows can be selected")
    return found


def _range(pair: object) -> tuple[int, int]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InvalidInputError("a range must be a pair [first, stop]")
    first, stop = (integer({"row": n}, "row", low=0, high=MAX_COUNT) for n in pair)
    return first, max(first, stop)
