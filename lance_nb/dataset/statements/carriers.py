"""How DuckDB carries Arrow's values: the type that a column has inside of a statement.

Half floats travel as FLOAT, durations as BIGINT, and moments in a zone as timestamps in UTC without
one, which hold the same values: DuckDB knows neither half floats nor zones of columns, and its
zoned timestamps depend on the zone of the session. The type of the result is restored from the type
that the translation found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.table.predicate.casts import cast_value

_TYPES = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER",
    pa.int64(): "BIGINT", pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER", pa.uint64(): "UBIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR", pa.binary(): "BLOB", pa.date32(): "DATE", pa.time64("us"): "TIME",
    pa.timestamp("s"): "TIMESTAMP_S", pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP", pa.timestamp("ns"): "TIMESTAMP_NS",
}  # fmt: skip
_TEXTS = (pa.large_string(), pa.string_view())
_BYTES = (pa.large_binary(), pa.binary_view())


def carrier_of(type_: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type in which a function of ours gives values to DuckDB.

    None where a value would be lost.
    """
    if type_ in _TYPES:
        return type_
    if pt.is_float16(type_):
        return pa.float32()
    if pt.is_duration(type_):
        return pa.int64()
    if type_ in _TEXTS:
        return pa.string()
    if type_ in _BYTES:
        return pa.binary()
    if pt.is_timestamp(type_):
        return pa.timestamp(type_.unit)
    if pt.is_decimal128(type_):
        return type_
    return _nested_carrier(type_)


def _nested_carrier(type_: pa.DataType) -> pa.DataType | None:
    if pt.is_list(type_) or pt.is_large_list(type_):
        item = carrier_of(type_.value_type)
        return None if item is None else pa.list_(item)
    if pt.is_struct(type_):
        fields = [(field.name, carrier_of(field.type)) for field in type_]
        return None if any(kind is None for _, kind in fields) else pa.struct(fields)
    return None


def duckdb_type(type_: pa.DataType) -> str:
    """Return the name that DuckDB has for a carrier."""
    if pt.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pt.is_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if pt.is_struct(type_):
        inner = ", ".join(f"{quoted(field.name)} {duckdb_type(field.type)}" for field in type_)
        return f"STRUCT({inner})"
    return _TYPES[type_]


def quoted(name: str) -> str:
    """Quote a name as DuckDB reads it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def converted(values: Any, type_: pa.DataType) -> Any:
    """Return values in another type that holds them. Raises ArrowInvalid where one does not fit."""
    if values.type.equals(type_, check_metadata=True):
        return values
    if pt.is_duration(type_) or pt.is_duration(values.type):
        return values.cast(pa.int64()).cast(type_)
    if pt.is_timestamp(type_) and pt.is_timestamp(values.type):
        return _moments(values, type_)
    if pt.is_nested(type_):
        return values.cast(type_)
    return cast_value(values, type_)


def _moments(values: Any, type_: pa.DataType) -> Any:
    """Return timestamps in another unit and zone; without a zone they are in UTC."""
    in_unit = values.cast(pa.timestamp(type_.unit, values.type.tz))
    return in_unit.cast(pa.int64()).cast(type_)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names that DuckDB tells apart; to it, those that differ only in case are the same."""
    taken = {name.lower() for name in names}
    seen: set[str] = set()
    result = []
    for name in names:
        new, number = name, 0
        while new.lower() in (taken if number else seen):
            number += 1
            new = f"{name}_{number}"
        seen.add(name.lower())
        taken.add(new.lower())
        result.append(new)
    return result


class ScanStream:
    """The rows of a scan as DuckDB can read them; each use of the name reads them anew."""

    def __init__(self, scan: Any) -> None:
        self._scan = scan

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer the rows as an Arrow stream."""
        reader = self._scan.to_reader()
        fields = [
            field.with_name(name).with_type(_readable(field.type))
            for field, name in zip(reader.schema, distinct_names(reader.schema.names), strict=True)
        ]
        schema = pa.schema(fields, reader.schema.metadata)
        if schema.equals(reader.schema):
            return reader.__arrow_c_stream__(requested_schema)
        batches = _restated(reader, schema)
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__()


def _readable(type_: pa.DataType) -> pa.DataType:
    """Return the type in which DuckDB reads a column that it cannot read as it is."""
    is_zoned = pt.is_timestamp(type_) and type_.tz is not None
    if pt.is_float16(type_) or pt.is_duration(type_) or is_zoned:
        return carrier_of(type_) or type_
    children = _children(type_) if pt.is_nested(type_) else []
    readable = [_readable(child) for child in children]
    if readable == children:
        return type_
    if pt.is_struct(type_):
        return pa.struct(
            [(field.name, child) for field, child in zip(type_, readable, strict=True)]
        )
    if pt.is_fixed_size_list(type_):
        return pa.list_(readable[0], type_.list_size)
    return pa.list_(readable[0]) if pt.is_list(type_) or pt.is_large_list(type_) else type_


def _children(type_: pa.DataType) -> list[pa.DataType]:
    return [type_.field(number).type for number in range(type_.num_fields)]


def _restated(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches in another schema."""
    for batch in reader:
        columns = [
            converted(column, field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def restored(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a result in the names and types that it has."""
    if schema.equals(reader.schema, check_metadata=True):
        yield from reader
        return
    yield from _restated(reader, schema)


def restored_schema(
    schema: pa.Schema, fields: Sequence[tuple[str, pa.DataType | None]]
) -> pa.Schema:
    """Return the schema of a result: what the translation found, else what DuckDB says."""
    if len(fields) != len(schema):
        return schema
    restored_fields = []
    for field, (name, type_) in zip(schema, fields, strict=True):
        is_known = type_ is not None and _can_restore(field.type, type_)
        restored_fields.append(pa.field(name, type_ if is_known else _with_items(field.type)))
    return pa.schema(restored_fields)


def _with_items(type_: pa.DataType) -> pa.DataType:
    """Return a type of DuckDB's with the name that Arrow gives the values of lists."""
    if pt.is_list(type_):
        return pa.list_(_with_items(type_.value_type))
    if pt.is_fixed_size_list(type_):
        return pa.list_(_with_items(type_.value_type), type_.list_size)
    return type_


def _can_restore(source: pa.DataType, target: pa.DataType) -> bool:
    if source == target or pt.is_null(target):
        return True
    try:
        converted(pa.nulls(0, source), target)
    except (pa.ArrowException, TypeError):
        return False
    return True
