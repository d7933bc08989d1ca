"""Resolve the columns of a scan: names to stored fields, nested fields, row columns.

A dotted name (``meta.iso``) returns the nested field as a column of that name, null where a struct
around it is null, as pylance's scans do. Of blobs of the second generation it names a part of the
description (``image.size``). Row columns (uint64): ``_rowid`` is the stable row id
where the dataset has those, else the row address; ``_rowaddr`` is ``fragment id << 32 | offset in
the fragment``; ``_rowoffset`` is the row's position in the dataset, deleted rows not counted;
``_row_created_at_version`` and ``_row_last_updated_at_version`` are 1 without stable row ids.

Expressions as columns: see computed_columns.
Source: spec page "row id and row address"; behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import DESCRIPTION_V2, is_blob_v2
from lance_nb.format.schema import Schema, format_column_path, parse_column_path
from lance_nb.table.blob_columns import scanned_form
from lance_nb.table.fragment_reader import Column
from lance_nb.value_classes import dataclass

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
ROW_OFFSET = "_rowoffset"
CREATED_AT = "_row_created_at_version"
LAST_UPDATED_AT = "_row_last_updated_at_version"
ROW_COLUMNS = (ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT, LAST_UPDATED_AT)
ColumnsArgument = Sequence[str] | Mapping[str, str] | None
_KNOWN_MAX = 64


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result.

    ``source`` is the position in ``Projection.columns`` (-1 for a row column), ``path`` the child
    positions on the way down from there.
    """

    field: pa.Field
    source: int
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Projection:
    """The stored columns to read (each a pruned top-level field) and the result made of them.

    ``schema`` is the Arrow schema of the result, ``row_columns`` are the names of those wanted.
    ``addresses_of_deleted``: deleted rows that are read have their address, instead of null.
    ``row_bytes`` estimates the decoded bytes of a row from the types alone.
    """

    columns: tuple[Column, ...]
    outputs: tuple[Output, ...]
    metadata: dict[bytes, bytes] | None
    addresses_of_deleted: bool = False

    schema: pa.Schema = field(init=False, compare=False, repr=False)
    row_columns: frozenset[str] = field(init=False, compare=False, repr=False)
    row_bytes: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Make once what every fragment asks for."""
        fields = [output.field for output in self.outputs]
        rows = frozenset(output.field.name for output in self.outputs if output.source < 0)
        object.__setattr__(self, "schema", pa.schema(fields, self.metadata))
        object.__setattr__(self, "row_columns", rows)
        size = sum(_fixed_bytes(column.arrow.type) for column in self.columns)
        object.__setattr__(self, "row_bytes", size)


def _fixed_bytes(type_: pa.DataType) -> int:
    """Estimate the decoded bytes of one value from its type alone."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _fixed_bytes(type_.value_type)
    if pa.types.is_struct(type_):
        return sum(_fixed_bytes(type_.field(i).type) for i in range(type_.num_fields))
    if pa.types.is_nested(type_) or pa.types.is_dictionary(type_):
        return 16
    try:
        return max(int(type_.bit_width) // 8, 1)
    except ValueError:
        return 16


def project(
    schema: Schema,
    columns: Sequence[str] | None,
    row_columns: Sequence[str] = (),
    *,
    computed: Collection[str] = ROW_COLUMNS,
) -> Projection:
    """Resolve column names against the schema; None means every stored column.

    ``row_columns`` come last, also when ``columns`` names them. ``computed`` are the names of row
    columns: nothing for a single file, which may store columns of these names. Raises
    ColumnNotFoundError, InvalidInputError.
    """
    names = _check_names(schema.names if columns is None else columns)
    names = [name for name in names if name not in row_columns]
    stored = [name for name in names if name not in computed]
    parts = {name: part for name in stored if (part := _description_part(schema, name))}
    tops_of = dict.fromkeys(parts[name][0] if name in parts else name for name in stored)
    read_schema = schema if columns is None else schema.project(list(tops_of))
    arrow = read_schema.to_arrow()
    tops = [
        Column(field, scanned_form(field, arrow.field(position)))
        for position, field in enumerate(read_schema)
    ]
    position_of = {column.field.name: position for position, column in enumerate(tops)}
    outputs = []
    for name in [*names, *row_columns]:
        if name in computed:
            outputs.append(Output(pa.field(name, pa.uint64()), -1))
        elif name in parts:
            blob, place = parts[name]
            output = _stored_output(schema, blob, tops, position_of)
            part = pa.field(name, DESCRIPTION_V2.field(place).type)
            outputs.append(Output(part, output.source, (*output.path, place)))
        else:
            outputs.append(_stored_output(schema, name, tops, position_of))
    return Projection(tuple(tops), tuple(outputs), arrow.metadata)


def _description_part(schema: Schema, name: str) -> tuple[str, int] | None:
    """Return the blob column whose description a path leads into, and the position of the part.

    None for any other path. Raises ColumnNotFoundError for a part that descriptions do not have.
    """
    if "." not in name or name in schema.names:
        return None
    *above, last = parse_column_path(name)
    blob = format_column_path(above)
    try:
        field = schema.field(blob)
    except ColumnNotFoundError:
        return None
    if not is_blob_v2(field):
        return None
    place = DESCRIPTION_V2.get_field_index(last)
    if place < 0:
        raise ColumnNotFoundError(name, tuple(f"{blob}.{field.name}" for field in DESCRIPTION_V2))
    return blob, place


def with_dictionaries(projection: Projection) -> Projection:
    """Return top-level columns of strings and bytes as dictionaries with 32-bit indices."""
    columns = [
        _kept(column) if _is_text(column.arrow.type) else column for column in projection.columns
    ]
    outputs = [
        output
        if output.source < 0 or output.path
        else Output(columns[output.source].arrow, output.source)
        for output in projection.outputs
    ]
    return Projection(tuple(columns), tuple(outputs), projection.metadata)


def _kept(column: Column) -> Column:
    type_ = pa.dictionary(pa.int32(), column.arrow.type)
    return Column(column.field, column.arrow.with_type(type_), keeps_dictionary=True)


def _is_text(type_: pa.DataType) -> bool:
    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return any(test(type_) for test in tests)


def project_nested(
    schema: Schema,
    columns: Sequence[str] | None,
    row_columns: Sequence[str] = (),
    *,
    computed: Collection[str] = ROW_COLUMNS,
) -> Projection:
    """Do as ``project`` does, but leave nested fields inside their (pruned) structs.

    That is the form in which ``take`` returns them.
    """
    if columns is None:
        return project(schema, None, row_columns, computed=computed)
    names = _check_names(columns)
    names = [name for name in names if name not in row_columns]
    names = [name if name in computed else _without_part(schema, name) for name in names]
    names = list(dict.fromkeys(names))
    pruned = schema.project([name for name in names if name not in computed])
    rows = [name for name in names if name in computed]
    projection = project(pruned, None, [*rows, *row_columns], computed=computed)
    by_name = {output.field.name: output for output in projection.outputs}
    tops = [name if name in computed else schema.resolve(name)[0].name for name in names]
    order = [*dict.fromkeys(tops), *row_columns]
    return Projection(
        projection.columns, tuple(by_name[name] for name in order), projection.metadata
    )


def _without_part(schema: Schema, name: str) -> str:
    """Return the blob column instead of a path into its description: it is taken whole."""
    part = _description_part(schema, name)
    return name if part is None else part[0]


def remembered(
    projections: dict[Hashable, Projection],
    columns: object,
    options: tuple[Hashable, ...],
    make: Callable[[], Projection],
) -> Projection:
    """Return what was made for the same columns and options before, or make it now.

    A preview is asked for again and again, and finding its columns takes longer than its rows.
    """
    names = tuple(columns) if isinstance(columns, list | tuple) else None
    if names is None and columns is not None:
        return make()
    if names is not None and not all(isinstance(name, str) for name in names):
        return make()
    key = (names, *options)
    projection = projections.get(key)
    if projection is None:
        projection = make()
        if len(projections) >= _KNOWN_MAX:
            projections.clear()
        projections[key] = projection
    return projection


def _check_names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, dict):
        raise NotSupportedError(
            "columns as a dict of SQL expressions cannot be computed by this release; "
            "name columns in a list"
        )
    names = [columns] if isinstance(columns, str) else list(columns)
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidInputError(f"a column name is text, not {type(name).__name__}")
        if name in names[:position]:
            raise InvalidInputError(f"column {name!r} is asked for twice")
    return names


def _stored_output(
    schema: Schema, name: str, tops: Sequence[Column], position_of: dict[str, int]
) -> Output:
    chain = schema.resolve(name)
    source = position_of[chain[0].name]
    field, arrow = tops[source].field, tops[source].arrow
    nullable = arrow.nullable
    path = []
    for node in chain[1:]:
        place = next(
            (place for place, child in enumerate(field.children) if child.id == node.id), None
        )
        if place is None or not pa.types.is_struct(arrow.type):
            raise InvalidInputError(
                f"column {name!r} goes through {field.name!r}, a {field.logical_type}; only fields "
                "of structs can be selected by a path"
            )
        path.append(place)
        field, arrow = field.children[place], arrow.type.field(place)
        nullable |= arrow.nullable
    if not path:
        return Output(arrow, source)
    return Output(arrow.with_name(name).with_nullable(nullable), source, tuple(path))


def result_table(
    projection: Projection,
    stored: Sequence[pa.ChunkedArray],
    rows: Mapping[str, pa.Array | pa.ChunkedArray],
    num_rows: int,
) -> pa.Table:
    """Put the result together from the columns that were read and the row columns."""
    arrays = []
    for output in projection.outputs:
        if output.source < 0:
            values = rows[output.field.name]
            is_array = isinstance(values, pa.Array)
            arrays.append(pa.chunked_array([values]) if is_array else values)
        else:
            arrays.append(_pull_up(stored[output.source], output))
    if not arrays:
        return bare_table(num_rows)
    return pa.Table.from_arrays(arrays, schema=projection.schema)


def bare_table(num_rows: int) -> pa.Table:
    """Return a table without columns, which still knows its number of rows."""
    return pa.table({"_": pa.nulls(num_rows)}).select([])


def _pull_up(column: pa.ChunkedArray, output: Output) -> pa.ChunkedArray:
    if not output.path and column.type == output.field.type:
        return column
    chunks = column.chunks
    for position in output.path:
        # flatten() folds the struct's own nulls into the child, field() would not.
        chunks = [chunk.flatten()[position] for chunk in chunks]
    if pa.types.is_null(output.field.type):  # flatten() gives such an array a bitmap of its own
        chunks = [pa.nulls(len(chunk)) for chunk in chunks]
    return pa.chunked_array(chunks, output.field.type)
