"""Rows that are on both sides, compared column by column, window by window; what is found is kept.

Comparing goes on only as far as somebody asks, and nothing is compared twice. Of a changed row the
place on both sides and one bit per column are remembered.

Limits: a window holds what a window of a scan holds, once per side.
Source: our own; values.py says when two values differ.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.matching import Moved
from lance_nb.table.diff.placed import in_fragment
from lance_nb.table.diff.plan import Aligned
from lance_nb.table.diff.sides import Sides
from lance_nb.table.ordering import Addresses

# A first page is there sooner than all that one window could hold: of many columns, few rows.
FIRST_WINDOW_ROWS = 4096
FIRST_WINDOW_CELLS = 256 * 1024
_FEWEST_ROWS = 256
Mask = npt.NDArray[np.bool_]
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Some rows that changed: where they lie on both sides, and which columns differ.

    ``masks`` has a row of packed bits per changed row, one bit for each column compared.
    """

    a: Addresses
    b: Addresses
    masks: npt.NDArray[np.uint8]

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.b.num_rows

    def part(self, start: int, stop: int) -> ChangedRows:
        """Return rows ``[start, stop)``."""
        numbers = np.arange(start, min(stop, self.num_rows), dtype=np.int64)
        return ChangedRows(self.a.take(numbers), self.b.take(numbers), self.masks[start:stop])

    def columns(self, count: int) -> Mask:
        """Return for each row and each of ``count`` columns whether it differs."""
        bits = np.unpackbits(self.masks, axis=1, count=count, bitorder="little")
        return bits.astype(np.bool_)


class Comparison:
    """The rows to compare and what has been found of them so far. Safe for several threads."""

    def __init__(
        self,
        ends: Ends,
        pairs: Sequence[ColumnPair],
        units: tuple[Sequence[Aligned], Moved | None],
    ) -> None:
        self.pairs = tuple(pairs)
        self._ends = ends
        self._found: list[ChangedRows] = []
        self._num_found = 0
        self._done = 0
        aligned, self._moved = units
        names = {one.name for one in self.pairs}
        self._aligned = [one for one in aligned if names.intersection(one.columns)]
        moved = 0 if self._moved is None or not self.pairs else self._moved.num_rows
        self.num_rows = sum(one.num_rows for one in self._aligned) + moved
        self._steps = self._compare()
        self._lock = threading.Lock()

    def rows(
        self, start: int, stop: int | None, progress: Progress | None = None
    ) -> Iterator[ChangedRows]:
        """Yield the changed rows ``[start, stop)``, comparing as far as that needs."""
        position, number = 0, 0
        while stop is None or position < stop:
            if progress is not None and number >= len(self._found):
                progress(self._done, self.num_rows)
            if not self._has(number):
                return
            part = self._found[number]
            first, last = max(start - position, 0), part.num_rows
            if stop is not None:
                last = min(last, stop - position)
            if first < last:
                yield part if last - first == part.num_rows else part.part(first, last)
            position, number = position + part.num_rows, number + 1

    def finish(self, progress: Progress | None = None) -> None:
        """Compare everything."""
        number = len(self._found)
        while self._has(number):
            number += 1
            if progress is not None:
                progress(self._done, self.num_rows)
        if progress is not None:
            progress(self.num_rows, self.num_rows)

    @property
    def is_finished(self) -> bool:
        """Whether everything is compared."""
        return self._done >= self.num_rows

    @property
    def num_compared(self) -> int:
        """Rows compared so far."""
        return self._done

    @property
    def num_changed(self) -> int:
        """Changed rows found so far."""
        return self._num_found

    def changed_cells(self) -> Ints:
        """Count the changed cells of each column found so far."""
        total = np.zeros(len(self.pairs), np.int64)
        for part in self._found:
            total += part.columns(len(self.pairs)).sum(axis=0)
        return total

    def _has(self, number: int) -> bool:
        """Compare until there are more parts than ``number``, or everything is compared."""
        with self._lock:
            while len(self._found) <= number:
                part = next(self._steps, None)
                if part is None:
                    return False
                self._num_found += part.num_rows
                self._found.append(part)
        return True

    def _compare(self) -> Iterator[ChangedRows]:
        for unit in self._aligned:
            yield from self._compare_aligned(unit)
        if self._moved is not None and self.pairs:
            yield from self._compare_moved(self._moved)

    def _compare_aligned(self, unit: Aligned) -> Iterator[ChangedRows]:
        chosen = [at for at, one in enumerate(self.pairs) if one.name in unit.columns]
        sides = Sides.of(self._ends, [self.pairs[at] for at in chosen])
        rows_a, rows_b = unit.offsets(self._ends)
        step = sides.window_rows(unit.b)
        for start, stop in _windows(rows_b.size, step, len(chosen)):
            a = in_fragment(unit.a, rows_a[start:stop])
            b = in_fragment(unit.b, rows_b[start:stop])
            yield from self._compared(sides, chosen, a, b)

    def _compare_moved(self, moved: Moved) -> Iterator[ChangedRows]:
        sides = Sides.of(self._ends, self.pairs)
        every = list(range(len(self.pairs)))
        step = sides.window_rows(moved.b.fragments[0])
        for start, stop in _windows(moved.num_rows, step, len(every)):
            numbers = np.arange(start, stop, dtype=np.int64)
            a, b = moved.a.take(numbers), moved.b.take(numbers)
            yield from self._compared(sides, every, a, b)

    def _compared(
        self, sides: Sides, chosen: list[int], a: Addresses, b: Addresses
    ) -> Iterator[ChangedRows]:
        found = np.zeros((b.num_rows, len(self.pairs)), np.bool_)
        found[:, chosen] = sides.differing(a, b)
        changed = np.flatnonzero(found.any(axis=1))
        self._done += b.num_rows
        masks = np.packbits(found[changed], axis=1, bitorder="little")
        yield ChangedRows(a.take(changed), b.take(changed), masks)


def _windows(count: int, most: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut rows of some columns into windows that grow up to ``most`` rows."""
    few = max(_FEWEST_ROWS, FIRST_WINDOW_CELLS // max(1, columns))
    start, size = 0, min(FIRST_WINDOW_ROWS, few, most)
    while start < count:
        stop = min(start + size, count)
        yield start, stop
        start, size = stop, min(4 * size, most)
