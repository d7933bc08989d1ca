"""Convert between the Arrow types of a dataset and those that Spark uses.

Read: Spark compares the first batch with its own schema exactly: names, order, types, and every
field nullable.

=======================================  =======================================
in the dataset                           in Spark
=======================================  =======================================
fixed-size list, large list              list, its values named ``element``
large and view forms of string, binary   string, binary
fixed-size binary                        binary
uint8, uint16, uint32                    int16, int32, int64
uint64                                   decimal(20, 0)
float16                                  float32
timestamp of any unit                    timestamp in microseconds, truncated;
                                         with a time zone: in UTC
date64                                   date32
time32, time64                           int32, int64, in the unit of the column
dictionary                               its value type
=======================================  =======================================

Write: batches are cast back to the schema of the dataset, so a list of the right length becomes a
fixed-size list again. For a new dataset, hints in ``StructField.metadata`` choose the types:
``{"lance_nb.dimension": 64}`` makes an array of floats a vector, and ``lance-encoding:*`` keys are
copied to the field (``{"lance-encoding:blob": "true"}`` makes bytes a blob).

Source: ``pyspark.sql.pandas.types`` of PySpark 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.format.blob_fields import BLOB_KEY, is_blob
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DIMENSION = "lance_nb.dimension"
_SAME_FOR_ALL: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_date64, pa.date32()),
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
    (pa.types.is_duration, pa.duration("us")),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
)
_REFUSED = (pa.types.is_interval, pa.types.is_union, pa.types.is_decimal256)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def readable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that Spark sees. Raises NotSupportedError for an unsupported type."""
    return pa.schema([pa.field(one.name, readable_type(one.type, one.name)) for one in schema])


def readable_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Return the type that Spark reads a type as. Raises NotSupportedError."""
    for fits, found in _SAME_FOR_ALL:
        if fits(kind):
            return found
    if any(fits(kind) for fits in _REFUSED):
        raise NotSupportedError(
            f"column {column!r}: Spark has no type for {kind}; leave the column out with "
            "columns=..."
        )
    if pa.types.is_dictionary(kind):
        return readable_type(kind.value_type, column)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if any(fits(kind) for fits in _LISTS):
        return pa.list_(pa.field("element", readable_type(kind.value_type, column)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, readable_type(one.type, column)) for one in kind])
    if pa.types.is_map(kind):
        key, item = readable_type(kind.key_type, column), readable_type(kind.item_type, column)
        return pa.map_(key, item)
    return kind


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch of the dataset to the types of ``readable_schema``.

    Raises NotSupportedError for a value out of range in Spark, such as a time in the year 300,000.
    """
    columns = [
        _readable(column, field) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _readable(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    from pyarrow.compute import CastOptions

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(options=CastOptions(field.type, allow_time_truncate=True))
    except pa.ArrowInvalid as error:
        raise NotSupportedError(
            f"column {field.name!r}: a value of type {column.type} is out of range in Spark: "
            f"{error}; leave the column out with columns=..."
        ) from error


def from_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch of Spark to the schema of a dataset; columns are matched by name.

    Raises SchemaMismatchError with the column that does not fit.
    """
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            if not field.nullable:
                raise SchemaMismatchError(
                    f"column {field.name!r} is missing, and it is not nullable"
                )
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        columns.append(_cast(batch.column(at), field))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        found = _as_blob(column, field.type) if _is_blob(field.type) else column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r}: cannot cast values of type {column.type} to {field.type}: "
            f"{error}"
        ) from error
    if found.null_count and not field.nullable:
        raise SchemaMismatchError(
            f"column {field.name!r} has {count_of(found.null_count, 'null')}, but it is not "
            "nullable"
        )
    return found


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the storage type; blobs have an extension type if it is registered."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_blob(kind: pa.DataType) -> bool:
    stored = _stored(kind)
    return pa.types.is_struct(stored) and [one.name for one in stored] == ["data", "uri"]


def _as_blob(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert bytes to blobs; cast a column of blobs."""
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return column.cast(kind)
    parts = [column.cast(pa.large_binary()), pa.nulls(len(column), pa.string())]
    blobs = pa.StructArray.from_arrays(parts, fields=list(_stored(kind)), mask=column.is_null())
    return blobs if blobs.type == kind else pa.ExtensionArray.from_storage(kind, blobs)


def bytes_as_blobs(rows: pa.RecordBatchReader, schema: Schema) -> pa.RecordBatchReader:
    """Mark bytes as blobs for blob columns: Parquet and Spark have no blob type."""
    blobs = {one.name: one.logical_type for one in schema if is_blob(one)}
    fields = []
    for one in rows.schema:
        is_bytes = pa.types.is_binary(one.type) or pa.types.is_large_binary(one.type)
        if is_bytes and one.name in blobs:
            kind = pa.binary() if blobs[one.name] == "binary" else pa.large_binary()
            mark = {**(one.metadata or {}), BLOB_KEY: "true"}
            fields.append(one.with_type(kind).with_metadata(mark))
        else:
            fields.append(one)
    wanted = pa.schema(fields, rows.schema.metadata)
    return rows if wanted.equals(rows.schema, check_metadata=True) else rows.cast(wanted)


def dataset_fields(names: Sequence[str], schema: pa.Schema) -> pa.Schema:
    """Return some fields of a dataset, nullable as in Spark. Raises SchemaMismatchError."""
    _check_known(names, schema)
    return pa.schema([schema.field(name).with_nullable(True) for name in names])


def cast_to_dataset(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast a table of Spark to the types of a dataset. Raises SchemaMismatchError."""
    wanted = dataset_fields(table.column_names, schema)
    batches = table.combine_chunks().to_batches()
    return pa.Table.from_batches([from_spark(one, wanted) for one in batches], wanted)


def check_names(given: pa.Schema, schema: pa.Schema) -> None:
    """Refuse columns that the dataset does not have. Raises SchemaMismatchError."""
    _check_known(given.names, schema)


def _check_known(names: Sequence[str], schema: pa.Schema) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise SchemaMismatchError(
            f"the dataset has no column {listed}; columns: {', '.join(map(repr, schema.names))}"
        )


def new_schema(schema: StructType) -> pa.Schema:
    """Return the schema of a new dataset for a DataFrame, with the hints in its metadata."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    fields = [
        _hinted(pa.field(one.name, _own(one.type), one.nullable), spark.metadata or {})
        for one, spark in zip(arrow, schema.fields, strict=True)
    ]
    return pa.schema(fields)


def _own(kind: pa.DataType) -> pa.DataType:
    """Name list values ``item``, as pylance does."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _own(kind.value_type), kind.value_field.nullable))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _own(one.type), one.nullable) for one in kind])
    return kind


def _hinted(field: pa.Field, hints: dict[str, object]) -> pa.Field:
    dimension = hints.get(DIMENSION)
    if isinstance(dimension, int) and pa.types.is_list(field.type):
        field = field.with_type(pa.list_(field.type.value_field, dimension))
    kept = {key: _plain(value) for key, value in hints.items() if key.startswith("lance-encoding:")}
    if kept.get(BLOB_KEY) == "true" and pa.types.is_binary(field.type):
        field = field.with_type(pa.large_binary())
    return field.with_metadata(kept) if kept else field.remove_metadata()


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
