"""Rows with new values: written again at the end of the dataset, deleted where they were.

Matching rows are read in windows, the columns that change are computed, and the rows stream into
new data files. With stable row ids the new fragments bring the ids of their rows along.

Limits: memory holds one window. Columns of blobs hold descriptions when they are read, so that a
dataset with one is refused.
Source: message ``Transaction.Update`` of lance.table, mode REWRITE_ROWS; ``LanceDataset.update`` of
pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
    PredicateError,
)
from lance_nb.format.blob_fields import is_blob_v1, is_blob_v2
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, RowIdMeta
from lance_nb.format.row_id_sequence import RowIdSequence
from lance_nb.format.schema import Field, Schema
from lance_nb.table.computed_columns import Shape, shape_of
from lance_nb.table.filtered_scan import RowChoice, Selected, select_rows, selected_table
from lance_nb.table.projection import ROW_ID, Projection, project
from lance_nb.table.scan import window_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.column_rewrite import ColumnRewrite, Touched, rewrite_columns
from lance_nb.transactions.deletion_plan import DeletionPlan, deletion_of
from lance_nb.transactions.fragment_writer import FragmentWriter, WriteOptions

Updates = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowRewrite:
    """Rows that move: where they are deleted, and the fragments that hold them with new values.

    ``fields`` are the ids of the fields that got new values.
    """

    deletion: DeletionPlan
    fragments: tuple[Fragment, ...]
    fields: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """Rows that change."""
        return self.deletion.num_rows


def _nobody(num_rows: int) -> None:
    """Tell nobody how many rows are done."""


def rewrite_rows(
    snapshot: Snapshot,
    updates: Updates,
    choice: RowChoice,
    options: WriteOptions,
    found: Sequence[Touched] | None = None,
    *,
    told: Callable[[int], None] = _nobody,
) -> RowRewrite:
    """Write the chosen rows again, with values from SQL expressions.

    ``found``: the rows, if they have been looked for already. ``told`` is called with numbers of
    rows that have been written. Raises ColumnNotFoundError, InvalidInputError, PredicateError,
    NotSupportedError; no file remains then.
    """
    schema = snapshot.manifest.schema
    check_updates(schema, updates)
    change = _Change(snapshot, shape_of(schema, dict(updates)), project(schema, None, [ROW_ID]))
    deletions, ids = [], []
    condition = choice.filter
    if found is None:
        rows = select_rows(snapshot, choice, change.every)
    else:
        rows = _in_windows(snapshot, found, change.every)
    with FragmentWriter(schema, snapshot.locations.home, options) as writer:
        for fragment, windows in groupby(rows, key=lambda one: one.fragment):
            offsets = []
            for window in windows:
                table = change.table(window)
                ids.append(table.column(ROW_ID).to_numpy())
                for batch in table.drop_columns([ROW_ID]).to_batches():
                    writer.write(batch)
                offsets.append(window.physical)
                told(len(window.physical))
            deletions.append(deletion_of(snapshot, fragment, np.concatenate(offsets)))
        fragments = writer.finish()
    text = "" if condition is None else condition.text
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        fragments = list(with_row_ids(fragments, ids))
    return RowRewrite(
        DeletionPlan(snapshot.version, text, tuple(deletions)),
        tuple(fragments),
        tuple(one.id for name in updates for one in schema.field(name).walk()),
    )


def _in_windows(
    snapshot: Snapshot, found: Sequence[Touched], wanted: Projection
) -> Iterator[Selected]:
    for fragment, rows in found:
        step = window_rows(snapshot, wanted, fragment)
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            yield Selected(fragment, part, part, {})


def find_rows(snapshot: Snapshot, choice: RowChoice) -> list[Touched]:
    """Return the chosen rows of every fragment that has any. Raises PredicateError."""
    rows = select_rows(snapshot, choice, project(snapshot.manifest.schema, []))
    return [
        (fragment, np.concatenate([window.physical for window in windows]))
        for fragment, windows in groupby(rows, key=lambda one: one.fragment)
    ]


def rewrite_values(
    snapshot: Snapshot,
    updates: Updates,
    found: Sequence[Touched],
    options: WriteOptions,
    *,
    told: Callable[[int], None] = _nobody,
) -> ColumnRewrite:
    """Write the updated columns of all rows again, beside the others; rows stay where they are.

    Raises as ``rewrite_rows`` does; no file remains then.
    """
    schema = snapshot.manifest.schema
    check_updates(schema, updates, by_columns=True)
    part = updated_part(schema, updates)
    change = _Change(snapshot, shape_of(schema, dict(updates)), project(schema, []))
    rows_of = {fragment.id: rows for fragment, rows in found}

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        rows = rows_of[fragment.id][first:last]
        made = change.values(Selected(fragment, rows, rows, {}), part.to_arrow())
        told(len(rows))
        return made

    return rewrite_columns(snapshot, part, found, values, options)


def updated_part(schema: Schema, updates: Updates) -> Schema:
    """Return the columns that an update changes, in the order of the schema."""
    return Schema(tuple(one for one in schema if one.name in updates), schema.metadata)


def check_updates(schema: Schema, updates: Updates, *, by_columns: bool = False) -> None:
    """Check that columns exist and that values are text. Raises InvalidInputError.

    ``by_columns``: only the updated columns are written again.
    """
    if not updates:
        raise InvalidInputError(
            'no updates: give a column and an expression, {"price": "price * 2"}'
        )
    for name, text in updates.items():
        if name not in schema.names:
            raise ColumnNotFoundError(name, tuple(schema.names))
        if not isinstance(text, str):
            raise InvalidInputError(
                f"the new value of {name!r} is an SQL expression, text, not {type(text).__name__}; "
                f'write a string value in quotes: {{"{name}": "\'text\'"}}'
            )
    for top in schema:
        if not by_columns or top.name in updates:
            for field in top.walk():
                check_rewritable(field)


def has_blobs(schema: Schema) -> bool:
    """Tell whether rows of the schema cannot be rewritten as a whole."""
    return any(is_blob_v1(field) or is_blob_v2(field) for field in schema.walk())


def check_rewritable(field: Field) -> None:
    """Refuse fields whose rows cannot be read and written again."""
    if is_blob_v1(field) or is_blob_v2(field):
        raise NotSupportedError(
            f"rows with a blob column ({field.name!r}) cannot be rewritten: replace other columns "
            "with update_columns, or delete the rows and append new ones"
        )


@dataclass(frozen=True, slots=True)
class _Change:
    """How rows get their new values."""

    snapshot: Snapshot
    shape: Shape
    every: Projection

    def table(self, rows: Selected) -> pa.Table:
        """Read rows, with their new values and their row ids."""
        table = selected_table(self.snapshot, self.every, rows)
        made = self.shape.table(selected_table(self.snapshot, self.shape.source, rows))
        for name in made.schema.names:
            place = table.schema.get_field_index(name)
            field = table.schema.field(place)
            table = table.set_column(place, field, cast(made.column(name), field))
        return table

    def values(self, rows: Selected, wanted: pa.Schema) -> pa.Table:
        """Compute the new values of rows, in the types of ``wanted``."""
        made = self.shape.table(selected_table(self.snapshot, self.shape.source, rows))
        arrays = [cast(made.column(field.name), field) for field in wanted]
        return pa.Table.from_arrays(arrays, schema=wanted)


def cast(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return values in the type of a column; fractions are cut off. Raises PredicateError."""
    if values.type == field.type:
        return values
    import pyarrow.compute as pc

    options: Any = pc.CastOptions(
        field.type, allow_float_truncate=True, allow_time_truncate=True, allow_decimal_truncate=True
    )
    try:
        return pc.cast(values, options=options)
    except pa.ArrowException as exc:
        raise PredicateError(f"the new value of {field.name!r} is no {field.type}: {exc}") from exc


def with_row_ids(fragments: list[Fragment], ids: list[np.ndarray]) -> Iterator[Fragment]:
    """Give fragments the stable ids of their rows, which are in the order of the rows."""
    known = np.concatenate(ids) if ids else np.zeros(0, np.uint64)
    start = 0
    for one in fragments:
        mine = known[start : start + one.physical_rows].astype(np.uint64)
        sequence = RowIdSequence.from_numpy(mine)
        yield replace(one, row_id_meta=RowIdMeta.inline(sequence.to_bytes()))
        start += one.physical_rows
