"""Rows and cells of a diff as Arrow batches.

Rows: ``_change`` ("changed", "added", "removed"), ``_rowid`` (where row ids are stable),
``_rowaddr``, ``_changed`` (the names of the columns that differ), then the columns of ``b`` and,
behind them, those that only ``a`` has. Changed and added rows show the values of ``b``, removed
ones those of ``a``. Cells: where the row is, then per column ``struct<old, new>``, null where that
cell has not changed.

Limits: a batch holds at most the rows asked for; values of ``a`` that do not fit into the type of
``b`` show as null.
Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.table.diff.changed import ChangedRows, Comparison
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.placed import PlacedRows, read_window
from lance_nb.table.ordering import fetch_rows
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, Projection, project

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
        values = [one.arrow for one in self.pairs]
        return pa.schema([pa.field(CHANGE, pa.string()), *places, changed, *values])

    def projection(self, side: str) -> Projection:
        """Return the stored columns and row columns of one side."""
        snapshot = self.ends.a if side == "a" else self.ends.b
        fields = [one.a if side == "a" else one.b for one in self.pairs]
        names = [one.name for one in fields if one is not None]
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
    wanted = view.projection(side)
    for fragment, physical in rows.windows(wanted, *span):
        for start in range(0, physical.size, size):
            part = physical[start : start + size]
            table = read_window(rows.snapshot, wanted, fragment, part)
            yield view.shown(kind, table, side)


def changed_batches(
    view: RowView, comparison: Comparison, span: tuple[int, int | None], size: int
) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows ``span`` as they are in ``b``."""
    wanted = view.projection("b")
    for part in _cut(comparison.rows(*span), size):
        table = fetch_rows(view.ends.b, wanted, part.b)
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
    names = pa.array([one.name for one in pairs], pa.string())
    chosen = names.take(from_integers(np.nonzero(mask)[1].astype(np.int64)))
    return pa.ListArray.from_arrays(from_integers(ends), chosen)


def _value(pair: ColumnPair, side: str, table: pa.Table) -> pa.Array:
    """Return a column of one side in the type in which it is shown."""
    field = pair.a if side == "a" else pair.b
    type_ = pair.arrow.type
    if field is None or (side == "a" and not pair.castable):
        return pa.nulls(table.num_rows, type_)
    found = table.column(field.name)
    if found.type != type_:
        try:
            found = found.cast(type_)
        except pa.ArrowException:
            return pa.nulls(table.num_rows, type_)
    return _one(found)


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


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
        fields += [one.arrow for one in self.key]
        fields += [pa.field(one.name, _cell_type(one)) for one in self._valued]
        return pa.schema(fields)

    @property
    def _valued(self) -> tuple[ColumnPair, ...]:
        keys = {one.name for one in self.key}
        return tuple(one for one in self.pairs if one.name not in keys)

    def batches(
        self, comparison: Comparison, span: tuple[int, int | None], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the cells of the changed rows ``span``."""
        a, b = self.ends.a.manifest.schema, self.ends.b.manifest.schema
        names_a = [one.a.name for one in self._valued if one.a is not None]
        names_b = [one.b.name for one in (*self.key, *self._valued) if one.b is not None]
        old, new = project(a, names_a), project(b, names_b, self.row_columns)
        for part in _cut(comparison.rows(*span), size):
            before = fetch_rows(self.ends.a, old, part.a)
            after = fetch_rows(self.ends.b, new, part.b)
            yield self._batch(comparison, part, before, after)

    def _batch(
        self, comparison: Comparison, part: ChangedRows, before: pa.Table, after: pa.Table
    ) -> pa.RecordBatch:
        mask = part.columns(len(comparison.pairs))
        place = {one.name: number for number, one in enumerate(comparison.pairs)}
        arrays = [_one(after.column(name)) for name in self.row_columns]
        arrays += [_one(after.column(one.name)) for one in self.key]
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
