"""What users hand in to be written: anything that Arrow can stream.

Tables, record batches, readers, datasets and scanners of pyarrow, DataFrames of pandas and polars,
DuckDB relations, Hugging Face datasets (the rows that are selected, features as they are stored),
our own datasets and scanners, lists of dicts, dicts of lists, iterators of batches. What offers the
Arrow C stream is read as one, so that memory holds a batch, not the data.

DataFrames become the tables that their libraries make of them: an index of pandas that is more than
a range is stored as columns (``__index_level_0__`` if it has no name), and the metadata of pandas
with the schema, so that ``to_pandas`` restores index and dtypes. Texts, bytes and lists of polars
are the large types, not views.

Batches are cast to the schema that is given, or to that of the first batch, where Arrow can do so
safely: no integer overflows, no fraction or digit is cut off (doubles do become floats).

Not supported: that categories of pandas are ordered (the format has no place for it; values and
categories are stored).
Source: ``ReaderLike`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from lance_nb.arrow_casts import cast_array, cast_table
from lance_nb.errors import InvalidInputError, SchemaMismatchError


def reader_of(
    data: Any, schema: pa.Schema | None = None, *, partial: bool = False
) -> pa.RecordBatchReader:
    """Return a reader over ``data``, with the columns and types of ``schema`` if it is given.

    ``partial``: columns of the schema that may be null may be missing.
    Raises InvalidInputError for what cannot be streamed, SchemaMismatchError for another schema.
    """
    try:
        schema = None if schema is None else pa.schema(schema)  # resolves extension types
        reader = _with_extension_types(_reader(data, schema))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as exc:
        raise SchemaMismatchError(f"the data does not fit the schema: {exc}") from exc
    if schema is None:
        return reader
    if partial:
        schema = pa.schema(
            [field for field in schema if field.name in reader.schema.names or not field.nullable],
            schema.metadata,
        )
    return _checked(reader, schema)


def _with_extension_types(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Give fields that only carry the name of a registered extension type that type.

    They come from whoever did not know the type. pylance stores texts with the name of JSON as
    JSON, and cannot read them as texts.
    """
    try:
        schema = pa.schema(reader.schema)  # passes Arrow's C interface, which knows the names
    except (pa.ArrowException, TypeError, ValueError):  # raised by the class of another library
        return reader
    if schema.equals(reader.schema):
        return reader
    # Arrow imports an empty slice from the middle with an offset beyond its buffer.
    batches = (pa.record_batch(batch) for batch in reader if batch.num_rows)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _reader(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if is_frame(data, ("pandas",)):
        return _pandas_table(data, schema).to_reader()
    if is_frame(data, ("polars",)):
        return data.to_arrow().to_reader()  # its C stream has views of texts and bytes
    if type(data).__module__.split(".")[0] == "datasets":
        return _hugging_face_reader(data, schema)
    if hasattr(data, "to_reader"):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "to_batches") and hasattr(data, "schema"):
        return pa.RecordBatchReader.from_batches(data.schema, data.to_batches())
    if isinstance(data, Mapping):
        return _mapping_table(data, schema).to_reader()
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return pa.Table.from_pylist(data, schema=schema).to_reader()
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _from_batches(iter(data), schema)
    raise InvalidInputError(
        f"cannot read rows from {type(data).__name__}: pass a pyarrow Table, RecordBatch or "
        "RecordBatchReader, a DataFrame, or anything else with __arrow_c_stream__"
    )


def fitted(rows: Any, schema: pa.Schema) -> Any:
    """Give the columns of a DataFrame the types of a dataset, where no value is lost by it.

    Who has a DataFrame did not choose between string and large_string. What cannot be cast, and all
    that is no DataFrame of pandas or polars, is returned as it is: the writer says what is wrong.
    """
    if not is_frame(rows):
        return rows
    table = reader_of(rows).read_all()
    names = set(schema.names)
    fields = [schema.field(field.name) if field.name in names else field for field in table.schema]
    try:
        return cast_table(table, pa.schema([field.with_nullable(True) for field in fields]))
    except pa.ArrowException:
        return table


def is_frame(data: object, kinds: tuple[str, ...] = ("pandas", "polars")) -> bool:
    """Return whether a value is a DataFrame of these libraries, without importing them."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] in kinds


def _pandas_table(frame: Any, schema: pa.Schema | None) -> pa.Table:
    """Return the table of a DataFrame, with its index unless the schema leaves it out."""
    if schema is None:
        return _from_pandas(frame, None)
    index = frame.index
    names = {*frame.columns, *index.names, *(f"__index_level_{n}__" for n in range(index.nlevels))}
    fields = [field for field in schema if field.name in names]
    stored = [  # columns that pandas holds as Arrow arrays are cast here, not by pandas
        field.with_type(getattr(frame.dtypes.get(field.name), "pyarrow_dtype", field.type))
        for field in fields
    ]
    table = _from_pandas(frame, pa.schema(stored, schema.metadata))
    return cast_table(table, pa.schema(fields, table.schema.metadata))


def _from_pandas(frame: Any, schema: pa.Schema | None) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, schema)
    except ValueError as exc:  # for two columns of one name, a forbidden null, or a lossy cast
        problem = "cannot be converted" if schema is None else "does not fit the schema"
        reason = "; ".join(map(str, exc.args))
        raise SchemaMismatchError(f"the DataFrame {problem}: {reason}") from exc


def _mapping_table(columns: Mapping[str, Any], schema: pa.Schema | None) -> pa.Table:
    """Return the table of columns by name; those that are Arrow arrays are cast here."""
    if schema is None:
        return pa.table(columns)
    fields = [field for field in schema if field.name in columns]
    arrays = {
        field.name: cast_array(columns[field.name], field.type)
        for field in fields
        if isinstance(columns[field.name], pa.Array | pa.ChunkedArray)
    }
    return pa.table({**columns, **arrays}, schema=pa.schema(fields, schema.metadata))


def _hugging_face_reader(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """Read a dataset of Hugging Face: only the rows that are selected, in their order."""
    if isinstance(data, Mapping):
        raise InvalidInputError(
            f"a {type(data).__name__} has several datasets ({', '.join(data)}): pass one of them"
        )
    stored = schema
    if hasattr(data, "data"):  # a table in memory or in files, with the metadata of its fields
        stored = data.data.schema
    elif stored is None and data.features is not None:
        stored = data.features.arrow_schema
    if stored is None:
        raise InvalidInputError(
            f"the columns of this {type(data).__name__} are not known: pass schema=..."
        )
    return _from_batches(data.with_format("arrow").iter(_HUGGING_FACE_ROWS), stored)


_HUGGING_FACE_ROWS = 8192  # of a batch; pylance takes 1,000


def _from_batches(batches: Iterator[Any], schema: pa.Schema | None) -> pa.RecordBatchReader:
    first = next(batches, None)
    if first is None and schema is None:
        raise InvalidInputError("the columns are not known: no batch and no schema was given")
    if first is not None and not isinstance(first, pa.RecordBatch | pa.Table):
        raise InvalidInputError(
            f"an iterator of rows must yield record batches, not {type(first).__name__}"
        )
    expected_schema = schema if first is None or schema is not None else first.schema

    def flow() -> Iterator[pa.RecordBatch]:
        for batch in () if first is None else _chain(first, batches):
            if not isinstance(batch, pa.RecordBatch | pa.Table):
                raise InvalidInputError(
                    f"an iterator of rows must yield record batches, not {type(batch).__name__}"
                )
            yield from batch.to_batches() if isinstance(batch, pa.Table) else [batch]

    return pa.RecordBatchReader.from_batches(expected_schema, _conformed(flow(), expected_schema))


def _chain(first: Any, batches: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from batches


def _checked(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    if reader.schema.equals(schema):
        return reader
    _check_names(reader.schema, schema, "the data")
    return pa.RecordBatchReader.from_batches(schema, _conformed(iter(reader), schema))


def without_views(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return rows whose views of texts and bytes are plain arrays, which can be joined."""
    fields = [field.with_type(_without_views(field.type)) for field in reader.schema]
    schema = pa.schema(fields, reader.schema.metadata)
    return reader if schema.equals(reader.schema) else _checked(reader, schema)


def _without_views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_map(kind):
        parts = [kind.key_field, kind.item_field]
        parts = [field.with_type(_without_views(field.type)) for field in parts]
        return pa.map_(*parts, keys_sorted=kind.keys_sorted)
    for is_kind, builder in _LISTS:
        if is_kind(kind):
            item = kind.value_field
            return builder(item.with_type(_without_views(item.type)))
    if pa.types.is_fixed_size_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(_without_views(item.type)), kind.list_size)
    return kind


_LISTS = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
)


def _conformed(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield batches with the columns, order and types of a schema.

    Values are cast where Arrow can do so safely. Raises SchemaMismatchError for other columns, and
    where a cast would lose a value.
    """
    for number, batch in enumerate(batches):
        yield batch if batch.schema.equals(schema) else _cast(batch, schema, f"batch {number}")


def _cast(batch: pa.RecordBatch, schema: pa.Schema, subject: str) -> pa.RecordBatch:
    _check_names(batch.schema, schema, subject)
    columns = [_cast_column(batch.column(field.name), field, subject) for field in schema]
    kinds = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(kinds, schema.metadata))


def _check_names(given_schema: pa.Schema, schema: pa.Schema, subject: str) -> None:
    for name in schema.names:
        if len(given_schema.get_all_field_indices(name)) != 1:
            count = "no" if name not in given_schema.names else "more than one"
            raise SchemaMismatchError(
                f"{subject} has {count} column {name!r}, which the schema requires"
            )
    more = [name for name in given_schema.names if name not in schema.names]
    if more:
        raise SchemaMismatchError(
            f"{subject} has a column {more[0]!r} that is not in the schema: leave it out, or add "
            "it to the schema"
        )


def _cast_column(column: pa.Array, field: pa.Field, subject: str) -> pa.Array:
    if column.type == field.type:
        return column
    try:
        return cast_array(column, field.type)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as exc:
        if isinstance(field.type, pa.BaseExtensionType):
            return column  # the writer knows what can become JSON or a blob
        raise SchemaMismatchError(
            f"column {field.name!r} of {subject} cannot be cast from {column.type} to {field.type}"
        ) from exc
    except pa.ArrowInvalid as exc:
        raise SchemaMismatchError(
            f"column {field.name!r} of {subject} cannot be cast from {column.type} to {field.type} "
            f"without losing values: {exc}; give the column another type in the schema, or convert "
            "it first"
        ) from exc
