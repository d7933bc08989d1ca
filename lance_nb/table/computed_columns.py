"""The columns of a result: stored columns by name, SQL expressions, row columns and score columns.

``columns`` is None (all), a list of names, or a dict of name to SQL expression; row columns and the
columns that a search adds (``_distance``) come last unless they are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema
from lance_nb.table.blob_columns import payload_form
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.predicate import Computed, compile_column, needed_paths
from lance_nb.table.projection import (
    ColumnsArgument,
    Projection,
    project,
    project_nested,
    remembered,
)
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """How result rows are made: ``source`` is read, ``extras`` are handed in, ``names`` ordered.

    ``computed`` is None when the result holds stored columns only. ``handed_in`` is the schema of
    what ``table`` is given for the source, where that is not as it is read: blobs as bytes.
    """

    source: Projection
    computed: tuple[Computed, ...] | None
    extras: tuple[pa.Field, ...]
    names: tuple[str, ...]
    handed_in: pa.Schema | None = None

    @property
    def _source_schema(self) -> pa.Schema:
        return self.source.schema if self.handed_in is None else self.handed_in

    @property
    def reads_payloads(self) -> bool:
        """Whether blobs of the source are to be handed in as bytes."""
        return not self._source_schema.equals(self.source.schema)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        fields = {field.name: field for field in (*self._source_schema, *self.extras)}
        for computed_column in self.computed or ():
            fields[computed_column.name] = self._computed_field(computed_column)
        return pa.schema([fields[name] for name in self.names], self.source.metadata)

    def _computed_field(self, computed_column: Computed) -> pa.Field:
        """Return the field; a column that is only renamed or cast keeps its metadata."""
        path = computed_column.source_path
        name = None if path is None else _output_name(path)
        if name is None or name not in self._source_schema.names:
            return computed_column.field
        return computed_column.field.with_metadata(self._source_schema.field(name).metadata)

    def table(self, read: pa.Table, extras: Mapping[str, pa.Array] | None = None) -> pa.Table:
        """Make the result of what was read for ``source`` and of the extra columns."""
        if self.computed is None and not self.extras:
            return read
        sources: dict[str, pa.ChunkedArray | pa.Array] = dict(extras or {})
        sources |= dict(zip(read.column_names, read.columns, strict=True))
        columns = dict(sources)
        for computed_column in self.computed or ():
            paths = needed_paths(computed_column)
            values = {path: _chunked(sources[_output_name(path)]) for path in paths}
            columns[computed_column.name] = computed_column.values(values, read.num_rows)
        if not self.names:
            return read.select([])
        return pa.Table.from_arrays([columns[name] for name in self.names], schema=self.schema)


def shape_of(
    schema: Schema,
    columns: ColumnsArgument,
    row_columns: Sequence[str] = (),
    extras: Sequence[pa.Field] = (),
    *,
    add_extras: bool = True,
    payloads: bool = False,
) -> Shape:
    """Plan the result. Raises ColumnNotFoundError, PredicateError, InvalidInputError.

    ``payloads``: expressions see the bytes of blobs, not their descriptions; whoever reads the
    source puts them in (blob_scan.with_payloads).
    """
    extra_names = [field.name for field in extras]
    if isinstance(columns, Mapping):
        shape = _computed_shape(
            schema, columns, row_columns, extras=(extras, add_extras), payloads=payloads
        )
        if payloads:
            fields = [payload_form(schema, field) for field in shape.source.schema]
            shape = replace(shape, handed_in=pa.schema(fields, shape.source.metadata))
        return shape
    if columns is None:
        source = project(schema, None, row_columns)
        stored = [name for name in source.schema.names if name not in row_columns]
    else:
        requested = [columns] if isinstance(columns, str) else list(columns)
        source = project(
            schema, [name for name in requested if name not in extra_names], row_columns
        )
        # A name that was asked for in quotes comes without them.
        names = iter(source.schema.names)
        stored = [
            name if name in extra_names else next(names)
            for name in requested
            if name not in row_columns
        ]
    added = [name for name in extra_names if name not in stored and add_extras]
    used = tuple(field for field in extras if field.name in (*stored, *added))
    return Shape(source, None, used, (*stored, *added, *row_columns))


def _computed_shape(
    schema: Schema,
    columns: Mapping[str, str],
    row_columns: Sequence[str],
    extras: tuple[Sequence[pa.Field], bool],
    payloads: bool,
) -> Shape:
    fields, add = extras
    stored = project(schema, None).schema
    if payloads:
        stored = pa.schema([payload_form(schema, field) for field in stored])
    arrow = pa.schema([*stored, *fields])
    computed = []
    for name, text in columns.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidInputError("columns as a dict maps names to SQL expressions, both text")
        computed.append(compile_column(name, text, arrow))
    extra_names = [field.name for field in fields]
    needed = dict.fromkeys(
        path for computed_column in computed for path in needed_paths(computed_column)
    )
    paths = [quoted(path) for path in needed if path[0] not in extra_names]
    added = [name for name in extra_names if name not in columns and add]
    names = (*columns, *added, *(name for name in row_columns if name not in columns))
    source = project(schema, paths, row_columns)
    return Shape(source, tuple(computed), tuple(fields), names)


def take_columns(
    snapshot: Snapshot, columns: ColumnsArgument, positions: Sequence[int] | pa.Array | np.ndarray
) -> pa.Table:
    """Take rows by position; nested columns that are named stay inside their structs.

    Raises InvalidInputError, ColumnNotFoundError, PredicateError.
    """
    schema = snapshot.manifest.schema
    if isinstance(columns, Mapping):
        shape = shape_of(schema, columns)
        return shape.table(take_rows(snapshot, shape.source, positions))
    projection = remembered(
        snapshot.projections, columns, ("nested",), lambda: project_nested(schema, columns)
    )
    return take_rows(snapshot, projection, positions)


def _output_name(path: Sequence[str]) -> str:
    """Return the name that ``project`` gives to the column of a path."""
    return path[0] if len(path) == 1 else quoted(path)


def _chunked(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
