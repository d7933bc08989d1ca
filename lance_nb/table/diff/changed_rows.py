"""Match the rows of two versions by row id or key, and compare them window by window.

Stable row ids that both sides assigned after a fork mean different rows; older ones mean the same
row. Keys are compared by value: null equals null and NaN equals NaN. Comparing goes only as far as
it is asked for, and nothing is compared twice. For a changed row its position on both sides and one
bit per column are remembered.

Limits: memory holds the ids or keys of the rows that only one side has, if both have some. Keys are
columns of numbers, texts, bytes, times or booleans; a key occurs once among the rows that differ. A
window holds what a window of a scan holds, once per side.
Source: spec page "row id and row address".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError
from lance_nb.table.addresses import Addresses
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.compare_plan import Aligned, Identity, RowPlan
from lance_nb.table.diff.merge_base import Ends, ancestor_of
from lance_nb.table.diff.row_compare import Sides
from lance_nb.table.diff.row_locator import PlacedRows, in_fragment, read_window
from lance_nb.table.projection import project
from lance_nb.value_classes import dataclass

_NOBODY = np.zeros(0, np.int64)
_SHOWN_KEYS = 3


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows that are the same row in another place, side by side, in the order of ``b``."""

    a: Addresses
    b: Addresses

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.b.num_rows


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Rows only in ``a``, rows only in ``b``, and rows that moved (None: none)."""

    removed: PlacedRows
    added: PlacedRows
    moved: Moved | None

    def share(self, number: int, of: int) -> MatchedRows:
        """Return one of ``of`` shares: a run of the rows of each kind."""
        moved = self.moved
        if moved is not None:
            rows = np.arange(*_run(moved.num_rows, number, of), dtype=np.int64)
            moved = Moved(moved.a.take(rows), moved.b.take(rows)) if rows.size else None
        return MatchedRows(_share(self.removed, number, of), _share(self.added, number, of), moved)


def _run(count: int, number: int, of: int) -> tuple[int, int]:
    return count * number // of, count * (number + 1) // of


def _share(rows: PlacedRows, number: int, of: int) -> PlacedRows:
    start, stop = _run(rows.num_rows, number, of)
    outside = np.arange(start), np.arange(stop, rows.num_rows)
    return rows.without(np.concatenate(outside))


def match_rows(
    ends: Ends, plan: RowPlan, identity: Identity, pairs: tuple[ColumnPair, ...]
) -> MatchedRows:
    """Match the rows that are alone. Raises InvalidInputError for a key that is not unique."""
    a, b = plan.only_a, plan.only_b
    if not (a.num_rows and b.num_rows):
        return MatchedRows(a, b, None)
    if identity.is_row_id:
        at_a, at_b = _by_row_id(ends, a, b)
    elif identity.key:
        at_a, at_b = _by_key(identity, a, b, pairs)
    else:
        at_a, at_b = _NOBODY, _NOBODY
    if not at_a.size:
        return MatchedRows(a, b, None)
    order = np.argsort(at_b, kind="stable")
    moved = Moved(a.pick(at_a[order]), b.pick(at_b[order]))
    return MatchedRows(a.without(at_a), b.without(at_b), moved)


def _by_row_id(ends: Ends, a: PlacedRows, b: PlacedRows) -> tuple[Ints, Ints]:
    ids_a, ids_b = a.row_ids(), b.row_ids()
    sides = {stretch.side for stretch in ends.between}
    common_a = np.arange(ids_a.size, dtype=np.int64)
    common_b = np.arange(ids_b.size, dtype=np.int64)
    if len(sides) == 2:  # ids are given out on each side for itself
        ancestor = ancestor_of(ends)
        first = np.uint64(0 if ancestor is None else ancestor.manifest.next_row_id)
        common_a, common_b = common_a[ids_a < first], common_b[ids_b < first]
    _, at_a, at_b = np.intersect1d(ids_a[common_a], ids_b[common_b], return_indices=True)
    return common_a[at_a], common_b[at_b]


def _by_key(
    identity: Identity, a: PlacedRows, b: PlacedRows, pairs: tuple[ColumnPair, ...]
) -> tuple[Ints, Ints]:
    by_name = {pair.name: pair for pair in pairs}
    keys = [by_name[name] for name in identity.key]
    rows_a = _key_columns(a, [key.a.name for key in keys if key.a is not None])
    rows_b = _key_columns(b, [key.b.name for key in keys if key.b is not None])
    codes = np.zeros(a.num_rows + b.num_rows, np.int64)
    for pair, left, right in zip(keys, rows_a, rows_b, strict=True):
        codes = _combined(codes, _codes(pair, left, right))
    codes_a, codes_b = codes[: a.num_rows], codes[a.num_rows :]
    for direction, values, rows in (("from", codes_a, rows_a), ("to", codes_b, rows_b)):
        _check_unique(identity, direction, values, rows)
    _, at_a, at_b = np.intersect1d(codes_a, codes_b, assume_unique=True, return_indices=True)
    return at_a.astype(np.int64), at_b.astype(np.int64)


def _key_columns(rows: PlacedRows, names: list[str]) -> list[pa.ChunkedArray]:
    projection = project(rows.snapshot.manifest.schema, names)
    tables = [
        read_window(rows.snapshot, projection, fragment, physical)
        for fragment, physical in rows.windows(projection)
    ]
    table = pa.concat_tables(tables)
    return [table.column(name) for name in names]


def _codes(pair: ColumnPair, left: pa.ChunkedArray, right: pa.ChunkedArray) -> Ints:
    """Give the values of a key column on both sides numbers, equal ones equal numbers."""
    try:
        merged = pa.chunked_array([*cast_array(left, right.type).chunks, *right.chunks], right.type)
        coded = pc.dictionary_encode(merged, null_encoding="encode").combine_chunks()
    except (pa.ArrowException, NotImplementedError) as exc:
        raise InvalidInputError(
            f"rows cannot be identified by column {pair.name!r}, a {right.type}: {exc}"
        ) from exc
    chunks = coded.chunks if isinstance(coded, pa.ChunkedArray) else [coded]
    numbers = [np.asarray(chunk.indices.to_numpy(zero_copy_only=False)) for chunk in chunks]
    return np.concatenate(numbers).astype(np.int64)


def _combined(first: Ints, second: Ints) -> Ints:
    """Give pairs of numbers numbers of their own."""
    width = int(second.max(initial=0)) + 1
    _, numbers = np.unique(first * width + second, return_inverse=True)
    return np.asarray(numbers, np.int64)


def _check_unique(
    identity: Identity, direction: str, codes: Ints, rows: list[pa.ChunkedArray]
) -> None:
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    repeated = first[counts > 1]
    if not repeated.size:
        return
    shown = [
        ", ".join(str(column[position].as_py()) for column in rows)
        for position in repeated[:_SHOWN_KEYS].tolist()
    ]
    raise InvalidInputError(
        f"{identity.label} does not tell rows apart: {repeated.size} values occur more than once "
        f"among the rows that differ, in the version compared {direction}, for example "
        f"{'; '.join(shown)}; give other columns as key, or key='_rowaddr' to compare by address"
    )


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
        self._parts: list[ChangedRows] = []
        self._num_found = 0
        self._done = 0
        aligned, self._moved = units
        names = {pair.name for pair in self.pairs}
        self._aligned = [unit for unit in aligned if names.intersection(unit.columns)]
        moved = 0 if self._moved is None or not self.pairs else self._moved.num_rows
        self.num_rows = sum(unit.num_rows for unit in self._aligned) + moved
        self._steps = self._compare()
        self._lock = threading.Lock()

    def rows(
        self, start: int, stop: int | None, progress: Progress | None = None
    ) -> Iterator[ChangedRows]:
        """Yield the changed rows ``[start, stop)``, comparing as far as that needs."""
        position, number = 0, 0
        while stop is None or position < stop:
            if progress is not None and number >= len(self._parts):
                progress(self._done, self.num_rows)
            if not self._has(number):
                return
            part = self._parts[number]
            first, last = max(start - position, 0), part.num_rows
            if stop is not None:
                last = min(last, stop - position)
            if first < last:
                yield part if last - first == part.num_rows else part.part(first, last)
            position, number = position + part.num_rows, number + 1

    def finish(self, progress: Progress | None = None) -> None:
        """Compare everything."""
        number = len(self._parts)
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
        for part in self._parts:
            total += part.columns(len(self.pairs)).sum(axis=0)
        return total

    def _has(self, number: int) -> bool:
        """Compare until there are more parts than ``number``, or everything is compared."""
        with self._lock:
            while len(self._parts) <= number:
                part = next(self._steps, None)
                if part is None:
                    return False
                self._num_found += part.num_rows
                self._parts.append(part)
        return True

    def _compare(self) -> Iterator[ChangedRows]:
        for unit in self._aligned:
            yield from self._compare_aligned(unit)
        if self._moved is not None and self.pairs:
            yield from self._compare_moved(self._moved)

    def _compare_aligned(self, unit: Aligned) -> Iterator[ChangedRows]:
        chosen = [index for index, pair in enumerate(self.pairs) if pair.name in unit.columns]
        sides = Sides.of(self._ends, [self.pairs[index] for index in chosen])
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
        differs = np.zeros((b.num_rows, len(self.pairs)), np.bool_)
        differs[:, chosen] = sides.differing(a, b)
        changed = np.flatnonzero(differs.any(axis=1))
        self._done += b.num_rows
        masks = np.packbits(differs[changed], axis=1, bitorder="little")
        yield ChangedRows(a.take(changed), b.take(changed), masks)


def _windows(count: int, most: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut rows of some columns into windows that grow up to ``most`` rows."""
    few = max(_FEWEST_ROWS, FIRST_WINDOW_CELLS // max(1, columns))
    start, size = 0, min(FIRST_WINDOW_ROWS, few, most)
    while start < count:
        stop = min(start + size, count)
        yield start, stop
        start, size = stop, min(4 * size, most)
