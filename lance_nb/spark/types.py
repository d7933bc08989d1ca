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

==========================  ====================================================================
key                         meaning
==========================  ====================================================================
``lance_nb.field``          the Arrow field that the column was read from (base64 of an Arrow
                            schema message with this one field): its type and its metadata are
                            restored, unless the column has another type by now. Reads set it.
``lance_nb.dimension``      an array of numbers is a vector of so many
``lance-encoding:*``        copied to the field: ``{"lance-encoding:blob": "true"}`` makes bytes a
                            blob
==========================  ====================================================================

Spark keeps the metadata of a column through filters, joins, sorts and renames, and drops it where
an expression makes a new column.

Source: ``pyspark.sql.pandas.types`` of PySpark 4.3.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_nb.arrow_casts import cast_array, with_items
from lance_nb.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_nb.format.arrow_schema import PRIMARY_KEY
from lance_nb.format.blob_fields import BLOB_KEY, is_blob
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

DIMENSION = "lance_nb.dimension"
FIELD = "lance_nb.field"
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
    return pa.schema(
        [pa.field(field.name, readable_type(field.type, field.name)) for field in schema]
    )


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema of a DataFrame of these columns; its metadata keeps the Arrow fields.

    Raises NotSupportedError for an unsupported type.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructField, StructType

    readable = readable_schema(schema)
    fields: list[StructField] = []
    for stored, read, spark_field in zip(
        schema, readable, from_arrow_schema(readable), strict=True
    ):
        is_plain = stored.type == _own(read.type) and not stored.metadata
        hint = {} if is_plain else {FIELD: _encoded(stored)}
        fields.append(
            StructField(spark_field.name, spark_field.dataType, spark_field.nullable, hint)
        )
    return StructType(fields)


def _encoded(field: pa.Field) -> str:
    return base64.b64encode(pa.schema([field]).serialize()).decode("ascii")


def _decoded(text: object, column: str) -> pa.Field:
    """Return the field of a hint. Raises InvalidInputError."""
    try:
        encoded = base64.b64decode(str(text), validate=True)
        (field,) = pa.ipc.read_schema(pa.py_buffer(encoded))
    except (binascii.Error, pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInputError(
            f"column {column!r}: its metadata {FIELD!r} is not an Arrow field: {error}; remove it "
            "with df.withMetadata(column, {})"
        ) from error
    return field


def readable_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Return the type that Spark reads a type as. Raises NotSupportedError."""
    kind = _stored(kind)
    for fits, spark_type in _SAME_FOR_ALL:
        if fits(kind):
            return spark_type
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
        return pa.struct(
            [pa.field(field.name, readable_type(field.type, column)) for field in kind]
        )
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

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        options = CastOptions(field.type, allow_time_truncate=True)
        return with_items(column, field.type).cast(options=options)
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
        position = batch.schema.get_field_index(field.name)
        if position < 0:
            if not field.nullable:
                raise SchemaMismatchError(
                    f"column {field.name!r} is missing, and it is not nullable"
                )
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        columns.append(_cast(batch.column(position), field))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    check_assignable(column.type, field)
    try:
        if _is_blob(field.type):
            array = _as_blob(column, field.type)
        elif isinstance(field.type, pa.BaseExtensionType):
            storage = cast_array(column, field.type.storage_type)
            array = pa.ExtensionArray.from_storage(field.type, storage)
        else:
            array = cast_array(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r}: cannot cast values of type {column.type} to {field.type}: "
            f"{error}"
        ) from error
    if array.null_count and not field.nullable:
        raise SchemaMismatchError(
            f"column {field.name!r} has {count_of(array.null_count, 'null')}, but it is not "
            "nullable"
        )
    return array


def check_assignable(given_type: pa.DataType, field: pa.Field) -> None:
    """Refuse to store values of another kind, such as text in a column of numbers.

    As Spark's own tables do (``spark.sql.storeAssignmentPolicy=ANSI``): numbers become wider or
    narrower as long as no value changes, dates become timestamps, and nothing else is converted.
    Raises SchemaMismatchError.
    """
    if not _is_assignable(given_type, field.type):
        raise SchemaMismatchError(
            f"column {field.name!r}: the DataFrame has {given_type}, the dataset {field.type}, "
            "which "
            f"are not converted into each other: cast the column in Spark before it is written, "
            f"such as df.withColumn({field.name!r}, df[{field.name!r}].cast(...))"
        )


def _is_assignable(given_type: pa.DataType, column_type: pa.DataType) -> bool:
    kinds = pa.types
    if given_type == column_type or kinds.is_null(given_type):
        return True
    if _is_blob(column_type) and _is_binary(given_type):
        return True
    given_type, column_type = (
        type_.value_type if kinds.is_dictionary(type_) else type_
        for type_ in (_stored(given_type), _stored(column_type))
    )
    if given_type == column_type:
        return True
    if kinds.is_time(column_type):
        return bool(
            kinds.is_integer(given_type) or kinds.is_time(given_type)
        )  # Spark reads them as integers
    if kinds.is_timestamp(column_type):
        return bool(kinds.is_timestamp(given_type) or kinds.is_date(given_type))
    for is_kind in (_is_number, _is_text, _is_binary, kinds.is_date, kinds.is_duration):
        if is_kind(column_type):
            return bool(is_kind(given_type))
    if any(fits(column_type) for fits in _LISTS):
        is_list = any(fits(given_type) for fits in _LISTS)
        return bool(is_list) and _is_assignable(given_type.value_type, column_type.value_type)
    if kinds.is_map(column_type):
        return bool(kinds.is_map(given_type)) and all(
            _is_assignable(*pair)
            for pair in (
                (given_type.key_type, column_type.key_type),
                (given_type.item_type, column_type.item_type),
            )
        )
    if kinds.is_struct(column_type):
        return bool(kinds.is_struct(given_type)) and all(
            _is_assignable(given_type.field(field.name).type, field.type)
            for field in column_type
            if given_type.get_field_index(field.name) >= 0
        )
    return False


def _is_number(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    kinds = pa.types
    return any(
        fits(kind) for fits in (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    )


def _is_binary(kind: pa.DataType) -> bool:
    kinds = pa.types
    return any(
        fits(kind)
        for fits in (
            kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view,
            kinds.is_fixed_size_binary,
        )
    )  # fmt: skip


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the storage type; blobs have an extension type if it is registered."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_blob(kind: pa.DataType) -> bool:
    stored = _stored(kind)
    return pa.types.is_struct(stored) and [field.name for field in stored] == ["data", "uri"]


def _as_blob(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert bytes to blobs; cast a column of blobs."""
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return cast_array(column, kind)
    parts = [column.cast(pa.large_binary()), pa.nulls(len(column), pa.string())]
    blobs = pa.StructArray.from_arrays(parts, fields=list(_stored(kind)), mask=column.is_null())
    return blobs if blobs.type == kind else pa.ExtensionArray.from_storage(kind, blobs)


def bytes_as_blobs(rows: pa.RecordBatchReader, schema: Schema) -> pa.RecordBatchReader:
    """Mark bytes as blobs for blob columns: Parquet and Spark have no blob type."""
    blobs = {field.name: field.logical_type for field in schema if is_blob(field)}
    fields = []
    for field in rows.schema:
        is_bytes = pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)
        if is_bytes and field.name in blobs:
            kind = pa.binary() if blobs[field.name] == "binary" else pa.large_binary()
            mark = {**(field.metadata or {}), BLOB_KEY: "true"}
            fields.append(field.with_type(kind).with_metadata(mark))
        else:
            fields.append(field)
    blob_schema = pa.schema(fields, rows.schema.metadata)
    return rows if blob_schema.equals(rows.schema, check_metadata=True) else rows.cast(blob_schema)


def fixed_width(kind: pa.DataType) -> int | None:
    """Return the bytes of a value of an Arrow type, None if they vary."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_fixed_size_list(kind):
        width = fixed_width(kind.value_type)
        return None if width is None else width * int(kind.list_size)
    if pa.types.is_struct(kind):
        widths = [fixed_width(kind.field(index).type) for index in range(kind.num_fields)]
        return None if None in widths else sum(filter(None, widths))
    types = pa.types
    if types.is_primitive(kind) or types.is_fixed_size_binary(kind) or types.is_decimal(kind):
        return max(int(kind.bit_width) // 8, 1)
    return None


def dataset_fields(names: Sequence[str], schema: pa.Schema) -> pa.Schema:
    """Return some fields of a dataset, nullable as in Spark. Raises SchemaMismatchError."""
    check_names(names, schema)
    return pa.schema([schema.field(name).with_nullable(True) for name in names])


def cast_to_dataset(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast a table of Spark to the types of a dataset. Raises SchemaMismatchError."""
    target_schema = dataset_fields(table.column_names, schema)
    batches = table.combine_chunks().to_batches()
    return pa.Table.from_batches(
        [from_spark(batch, target_schema) for batch in batches], target_schema
    )


def check_names(names: Sequence[str], schema: pa.Schema) -> None:
    """Refuse columns that the dataset does not have. Raises SchemaMismatchError."""
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise SchemaMismatchError(
            f"the dataset has no column {listed}; columns: {', '.join(map(repr, schema.names))}"
        )


def new_schema(schema: StructType, dimensions: Mapping[str, int] | None = None) -> pa.Schema:
    """Return the schema of a new dataset for a DataFrame, with the hints in its metadata.

    Columns may be null, as in tables that Spark writes: it derives NOT NULL from the expressions of
    a query (a literal, ``range``), which says nothing about rows that come later. Fields that were
    read from a dataset where they are NOT NULL stay so while no row can be null.

    ``dimensions``: the length of vectors by column; overrides the hints. Raises InvalidInputError
    for a column that is not an array, and for metadata that is no hint.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    fields = [
        _hinted(pa.field(field.name, _own(field.type)), spark)
        for field, spark in zip(arrow, schema.fields, strict=True)
    ]
    arrow_schema = pa.schema(fields)
    for name, dimension in (dimensions or {}).items():
        arrow_schema = _with_dimension(arrow_schema, name, dimension)
    return arrow_schema


def _with_dimension(schema: pa.Schema, name: str, dimension: int) -> pa.Schema:
    position = schema.get_field_index(name)
    if position < 0:
        names = ", ".join(map(repr, schema.names))
        raise InvalidInputError(f"dimensions: no column {name!r}; columns: {names}")
    field = schema.field(position)
    if not any(fits(field.type) for fits in _LISTS):
        raise InvalidInputError(f"dimensions: column {name!r} is {field.type}, not an array")
    return schema.set(position, field.with_type(pa.list_(field.type.value_field, dimension)))


def _own(kind: pa.DataType) -> pa.DataType:
    """Name list values ``item``, as pylance does; nested fields may be null."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _own(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _own(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _own(kind.item_type))
    return kind


def _hinted(field: pa.Field, spark: StructField) -> pa.Field:
    hints = spark.metadata or {}
    if FIELD in hints:
        stored = _decoded(hints[FIELD], field.name)
        if _is_readable_as(stored, spark):
            # Values of any column become null in an outer join, but a key stays a key.
            is_key = any(key.startswith(PRIMARY_KEY.encode()) for key in stored.metadata or {})
            nullable = stored.nullable or (spark.nullable and not is_key)
            field = pa.field(field.name, stored.type, nullable, stored.metadata)
    dimension = hints.get(DIMENSION)
    if isinstance(dimension, int) and pa.types.is_list(field.type):
        field = field.with_type(pa.list_(field.type.value_field, dimension))
    hints_kept = {
        key: _plain(value) for key, value in hints.items() if key.startswith("lance-encoding:")
    }
    if hints_kept.get(BLOB_KEY) == "true" and pa.types.is_binary(field.type):
        field = field.with_type(pa.large_binary())
    if not hints_kept:
        return field
    return field.with_metadata({**(field.metadata or {}), **hints_kept})


def _is_readable_as(stored: pa.Field, spark: StructField) -> bool:
    """Whether a DataFrame of a stored field has the type that this column has now."""
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        return bool(from_arrow_type(readable_type(stored.type, stored.name)) == spark.dataType)
    except NotSupportedError:
        return False


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
