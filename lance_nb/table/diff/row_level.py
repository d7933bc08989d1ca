"""Rows and cells of a diff as Arrow batches, computed lazily.

Rows: ``_change`` ("changed", "added", "removed"), ``_rowid`` (where row ids are stable),
``_rowaddr``, ``_changed`` (the names of the columns that differ), then the columns of ``b`` and
after them those that only ``a`` has. Changed and added rows show the values of ``b``, removed ones
those of ``a``. Cells: where the row is, then per column ``struct<old, new>``, null where that cell
has not changed.

Limits: a batch holds at most the rows asked for; values of ``a`` that do not fit into the type of
``b`` show as null.
Source: our own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError
from lance_nb.table.diff.changed_rows import ChangedRows, Comparison, MatchedRows, match_rows
from lance_nb.table.diff.columns import ColumnPair, choose_columns
from lance_nb.table.diff.compare_plan import Identity, RowPlan, has_row_ids, plan_rows
from lance_nb.table.diff.fragments import FragmentMatch
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.diff.row_locator import PlacedRows, read_window
from lance_nb.table.ordering import fetch_rows
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, Projection, project
from lance_nb.value_classes import dataclass

CHANGE, CHANGED_COLUMNS = "_change", "_changed"
CHANGED, ADDED, REMOVED = "changed", "added", "removed"
KINDS = (CHANGED, ADDED, REMOVED)


@dataclass(frozen=True, slots=True)
class RowView:
    """What of the rows is shown: columns, and the row columns that say where they are."""

    ends: Ends
    pairs: tuple[ColumnPair, ...]
    with_ids: bool

    @property
    def row_columns(self) -> tuple[str, ...]:
        """Names of the row columns."""
        return (ROW_ID, ROW_ADDRESS) if self.with_ids else (ROW_ADDRESS,)

    @property
    def rows_schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        places = [pa.field(name, pa.uint64()) for name in self.row_columns]
        changed = pa.field(CHANGED_COLUMNS, pa.list_(pa.string()))
        values = [pair.arrow for pair in self.pairs]
        return pa.schema([pa.field(CHANGE, pa.string()), *places, changed, *values])

    def projection(self, side: str) -> Projection:
        """Return the stored columns and row columns of one side."""
        snapshot = self.ends.a if side == "a" else self.ends.b
        fields = [pair.a if side == "a" else pair.b for pair in self.pairs]
        names = [field.name for field in fields if field is not None]
        return project(snapshot.manifest.schema, names, self.row_columns)

    def shown(
        self, kind: str, table: pa.Table, side: str, names: pa.Array | None = None
    ) -> pa.RecordBatch:
        """Put a batch of rows of one kind together."""
        count = table.num_rows
        arrays = [pa.repeat(kind, count)]
        arrays += [_one(table.column(name)) for name in self.row_columns]
        arrays.append(pa.nulls(count, pa.list_(pa.string())) if names is None else names)
        arrays += [_value(pair, side, table) for pair in self.pairs]
        return pa.RecordBatch.from_arrays(arrays, schema=self.rows_schema)


def placed_batches(
    view: RowView, kind: str, rows: PlacedRows, span: tuple[int, int], size: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows ``span`` that are on one side only."""
    side = "a" if kind == REMOVED else "b"
    projection = view.projection(side)
    for fragment, physical in rows.windows(projection, *span):
        for start in range(0, physical.size, size):
            part = physical[start : start + size]
            table = read_window(rows.snapshot, projection, fragment, part)
            yield view.shown(kind, table, side)


def changed_batches(
    view: RowView, comparison: Comparison, span: tuple[int, int | None], size: int
) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows ``span`` as they are in ``b``."""
    projection = view.projection("b")
    for part in _cut(comparison.rows(*span), size):
        table = fetch_rows(view.ends.b, projection, part.b)
        names = changed_names(comparison.pairs, part)
        yield view.shown(CHANGED, table, "b", names)


def changed_sides(
    view: RowView, comparison: Comparison, size: int
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield changed rows as they are in ``a`` and in ``b``, side by side."""
    old, new = view.projection("a"), view.projection("b")
    for part in _cut(comparison.rows(0, None), size):
        names = changed_names(comparison.pairs, part)
        before = fetch_rows(view.ends.a, old, part.a)
        after = fetch_rows(view.ends.b, new, part.b)
        yield view.shown(CHANGED, before, "a", names), view.shown(CHANGED, after, "b", names)


def _cut(parts: Iterator[ChangedRows], size: int) -> Iterator[ChangedRows]:
    for part in parts:
        for start in range(0, part.num_rows, size):
            yield part.part(start, start + size)


def changed_names(pairs: Sequence[ColumnPair], part: ChangedRows) -> pa.Array:
    """Return the list of the names of the columns that differ, row by row."""
    mask = part.columns(len(pairs))
    ends = np.concatenate(([0], np.cumsum(mask.sum(axis=1)))).astype(np.int32)
    names = pa.array([pair.name for pair in pairs], pa.string())
    chosen = names.take(from_integers(np.nonzero(mask)[1].astype(np.int64)))
    return pa.ListArray.from_arrays(from_integers(ends), chosen)


def _value(pair: ColumnPair, side: str, table: pa.Table) -> pa.Array:
    """Return a column of one side in the type in which it is shown."""
    field = pair.a if side == "a" else pair.b
    type_ = pair.arrow.type
    if field is None or (side == "a" and not pair.castable):
        return pa.nulls(table.num_rows, type_)
    values = table.column(field.name)
    if values.type != type_:
        try:
            values = cast_array(values, type_)
        except pa.ArrowException:
            return pa.nulls(table.num_rows, type_)
    return _one(values)


def _one(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


# --- cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CellView:
    """What of changed rows is shown as cells: identity columns, then old and new by column.

    ``pairs`` are those that are shown of the columns compared.
    """

    ends: Ends
    pairs: tuple[ColumnPair, ...]
    key: tuple[ColumnPair, ...]
    with_ids: bool

    @property
    def row_columns(self) -> tuple[str, ...]:
        """Names of the row columns."""
        return (ROW_ID, ROW_ADDRESS) if self.with_ids else (ROW_ADDRESS,)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the cells."""
        fields = [pa.field(name, pa.uint64()) for name in self.row_columns]
        fields += [pair.arrow for pair in self.key]
        fields += [pa.field(pair.name, _cell_type(pair)) for pair in self._valued]
        return pa.schema(fields)

    @property
    def _valued(self) -> tuple[ColumnPair, ...]:
        keys = {pair.name for pair in self.key}
        return tuple(pair for pair in self.pairs if pair.name not in keys)

    def batches(
        self, comparison: Comparison, span: tuple[int, int | None], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the cells of the changed rows ``span``."""
        a, b = self.ends.a.manifest.schema, self.ends.b.manifest.schema
        names_a = [pair.a.name for pair in self._valued if pair.a is not None]
        names_b = [pair.b.name for pair in (*self.key, *self._valued) if pair.b is not None]
        old, new = project(a, names_a), project(b, names_b, self.row_columns)
        for part in _cut(comparison.rows(*span), size):
            before = fetch_rows(self.ends.a, old, part.a)
            after = fetch_rows(self.ends.b, new, part.b)
            yield self._batch(comparison, part, before, after)

    def _batch(
        self, comparison: Comparison, part: ChangedRows, before: pa.Table, after: pa.Table
    ) -> pa.RecordBatch:
        mask = part.columns(len(comparison.pairs))
        place = {pair.name: number for number, pair in enumerate(comparison.pairs)}
        arrays = [_one(after.column(name)) for name in self.row_columns]
        arrays += [_one(after.column(pair.name)) for pair in self.key]
        for pair in self._valued:
            old = None if pair.a is None else before.column(pair.a.name)
            new = None if pair.b is None else after.column(pair.b.name)
            arrays.append(_cells(pair, old, new, mask[:, place[pair.name]]))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _cell_type(pair: ColumnPair) -> pa.DataType:
    old = pair.type_a or pair.type_b
    new = pair.type_b or pair.type_a
    return pa.struct([pa.field("old", old.type), pa.field("new", new.type)])  # type: ignore[union-attr]


def _cells(
    pair: ColumnPair,
    old: pa.ChunkedArray | None,
    new: pa.ChunkedArray | None,
    changed: np.ndarray,
) -> pa.Array:
    type_ = _cell_type(pair)
    parts = []
    for values, place in ((old, 0), (new, 1)):
        kind = type_.field(place).type
        parts.append(pa.nulls(changed.size, kind) if values is None else _one(values))
    bits = pa.py_buffer(np.packbits(~changed, bitorder="little"))
    hidden = pa.Array.from_buffers(pa.bool_(), changed.size, [None, bits])
    return pa.StructArray.from_arrays(parts, fields=list(type_), mask=hidden)


DEFAULT_BATCH_ROWS = 8192
Columns = Sequence[str] | str | None
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class RowSummary:
    """Exact numbers of rows; ``cells`` counts the changed cells of each column that has some."""

    added: int
    removed: int
    changed: int
    cells: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RowsFound:
    """What is known of the rows so far: ``added`` and ``removed`` are exact.

    ``changed`` is final when ``is_finished``; ``compared`` of ``to_compare`` rows were looked at.
    """

    added: int
    removed: int
    changed: int
    is_finished: bool
    compared: int
    to_compare: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Which columns are compared: names (None: all), and whether new columns count."""

    columns: Columns
    new_columns: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows of a level are wanted. ``limit`` None: all that are left."""

    limit: int | None = None
    offset: int = 0
    batch_size: int = DEFAULT_BATCH_ROWS

    def check(self) -> None:
        """Raise InvalidInputError for numbers that make no sense."""
        for name, value in (("limit", self.limit), ("offset", self.offset)):
            if value is not None and value < 0:
                raise InvalidInputError(f"{name} must not be negative, got {value}")
        if self.batch_size <= 0:
            raise InvalidInputError(f"batch_size must be positive, got {self.batch_size}")


class RowLevel:
    """The rows of a diff. Made once per diff; safe for several threads."""

    def __init__(
        self, ends: Ends, match: FragmentMatch, pairs: tuple[ColumnPair, ...], identity: Identity
    ) -> None:
        self._ends = ends
        self._pairs = pairs
        self._identity = identity
        self._with_ids = has_row_ids(ends.a) and has_row_ids(ends.b)
        self._plan: RowPlan = plan_rows(ends, match, pairs, identity.key)
        self._rows: MatchedRows = match_rows(ends, self._plan, identity, pairs)
        self._compared: dict[tuple[str, ...], Comparison] = {}

    def share(self, number: int, of: int) -> RowLevel:
        """Return one of ``of`` shares of about the same size: together they are all the rows."""
        part = copy.copy(self)
        part._plan = replace(self._plan, aligned=self._plan.aligned[number::of])  # noqa: SLF001
        part._rows = self._rows.share(number, of)  # noqa: SLF001
        part._compared = {}  # noqa: SLF001
        return part

    def summary(self, columns: Columns, new_columns: bool, progress: Progress | None) -> RowSummary:
        """Compare everything and count."""
        comparison = self._comparison(columns, new_columns)
        comparison.finish(progress)
        counts = comparison.changed_cells().tolist()
        cells = {
            pair.name: count for pair, count in zip(comparison.pairs, counts, strict=True) if count
        }
        rows = self._rows
        return RowSummary(rows.added.num_rows, rows.removed.num_rows, comparison.num_changed, cells)

    def rows(
        self, compared: Compared, kinds: Sequence[str], page: Page, show: Columns = None
    ) -> pa.RecordBatchReader:
        """Return the rows of some kinds, one kind after the other."""
        page.check()
        chosen = [kinds] if isinstance(kinds, str) else list(kinds)
        if any(kind not in KINDS for kind in chosen) or len(set(chosen)) != len(chosen):
            raise InvalidInputError(f"kinds are among {', '.join(KINDS)}, once each; not {kinds!r}")
        shown = choose_columns(self._pairs, compared.columns if show is None else show)
        view = RowView(self._ends, shown, self._with_ids)
        comparison = self._comparison(compared.columns, compared.new_columns)
        batches = self._batches(view, comparison, chosen, page)
        return pa.RecordBatchReader.from_batches(view.rows_schema, batches)

    def cells(self, compared: Compared, page: Page, show: Columns = None) -> pa.RecordBatchReader:
        """Return the old and new values of changed rows."""
        page.check()
        comparison = self._comparison(compared.columns, compared.new_columns)
        keys = choose_columns(self._pairs, self._identity.key)
        names = {pair.name for pair in choose_columns(self._pairs, show)}
        pairs = tuple(pair for pair in comparison.pairs if pair.name in names)
        view = CellView(self._ends, pairs, keys, self._with_ids)
        stop = None if page.limit is None else page.offset + page.limit
        batches = view.batches(comparison, (page.offset, stop), page.batch_size)
        return pa.RecordBatchReader.from_batches(view.schema, batches)

    def both_sides(
        self, columns: Columns, page: Page
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield changed rows as they were and as they are."""
        page.check()
        view = RowView(self._ends, choose_columns(self._pairs, columns), self._with_ids)
        return changed_sides(view, self._comparison(columns, False), page.batch_size)

    def removed_row_ids(self) -> np.ndarray:
        """Return the stable ids of the rows that were removed."""
        return self._rows.removed.row_ids()

    def rows_found(self, compared: Compared) -> RowsFound:
        """Tell how far the rows are known, without comparing any."""
        comparison = self._comparison(compared.columns, compared.new_columns)
        return RowsFound(
            self._rows.added.num_rows,
            self._rows.removed.num_rows,
            comparison.num_changed,
            is_finished=comparison.is_finished,
            compared=comparison.num_compared,
            to_compare=comparison.num_rows,
        )

    def compare(self, compared: Compared, upto: int, progress: Progress | None) -> None:
        """Compare until ``upto`` changed rows are found, or all are."""
        for _ in self._comparison(compared.columns, compared.new_columns).rows(0, upto, progress):
            pass

    def _batches(
        self, view: RowView, comparison: Comparison, kinds: Sequence[str], page: Page
    ) -> Iterator[pa.RecordBatch]:
        start, left = page.offset, page.limit
        for kind in kinds:
            if left == 0:
                return
            shown = 0
            stop = None if left is None else start + left
            if kind == CHANGED:
                batches = changed_batches(view, comparison, (start, stop), page.batch_size)
            else:
                rows = self._rows.added if kind == ADDED else self._rows.removed
                last = rows.num_rows if stop is None else min(stop, rows.num_rows)
                batches = placed_batches(view, kind, rows, span=(start, last), size=page.batch_size)
            for batch in batches:
                shown += batch.num_rows
                yield batch
            left = None if left is None else left - shown
            total = self._total(kind, comparison) if start and not shown else 0
            start = max(start - total, 0) if not shown else 0

    def _total(self, kind: str, comparison: Comparison) -> int:
        if kind == CHANGED:
            return comparison.num_changed  # the span was not reached: all of them are known
        return (self._rows.added if kind == ADDED else self._rows.removed).num_rows

    def _comparison(self, columns: Columns, new_columns: bool) -> Comparison:
        chosen = choose_columns(self._pairs, columns)
        compared = [pair for pair in chosen if pair.is_shared or (new_columns and pair.a is None)]
        names = tuple(pair.name for pair in compared)
        if names not in self._compared:
            units = self._plan.aligned, self._rows.moved
            self._compared[names] = Comparison(self._ends, compared, units)
        return self._compared[names]
