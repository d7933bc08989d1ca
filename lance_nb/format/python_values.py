"""Convert Arrow values to Python values, including those that Python cannot represent.

pyarrow raises for a year after 9999, a time of day after midnight, or a time zone that is not
installed, but a file may hold them. All dates, times and durations of such a column are converted
to the numbers that are stored. A column of points in time with nanoseconds, for which pyarrow needs
pandas, becomes text in ISO 8601 where pandas is not installed.

Not supported: maps with such values; the error of pyarrow is raised.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc

_MICROSECONDS_END = len("2026-01-02T03:04:05.000000")


def to_python(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as a list; see the module for values that Python cannot represent.

    >>> to_python(pa.array([2**62, None], pa.timestamp("s")))
    [4611686018427387904, None]
    """
    result: list[Any]
    try:
        result = values.to_pylist()
    except (ValueError, OverflowError, KeyError):  # KeyError: a time zone, before pyarrow 25
        result = _nanosecond_texts(values) or pc.cast(values, _stored_type(values.type)).to_pylist()
    return result


def _nanosecond_texts(values: pa.Array | pa.ChunkedArray) -> list[str | None] | None:
    """Write points in time with nanoseconds; None for other types and unknown time zones."""
    kind = values.type
    if not pt.is_timestamp(kind) or kind.unit != "ns":
        return None
    try:
        numbers = pc.cast(values, pa.int64()).to_pylist()
        whole = pa.array(
            [None if number is None else number // 1000 for number in numbers], pa.int64()
        )
        moments = pc.cast(whole, pa.timestamp("us", kind.tz)).to_pylist()
    except (ValueError, OverflowError, KeyError):
        return None
    return [
        None if moment is None else _with_nanoseconds(moment, number % 1000)
        for moment, number in zip(moments, numbers, strict=True)
    ]


def _with_nanoseconds(moment: datetime, nanoseconds: int) -> str:
    written = moment.isoformat(timespec="microseconds")
    end = _MICROSECONDS_END
    return f"{written[:end]}{nanoseconds:03d}{written[end:]}"


def rows_to_python(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts, as ``Table.to_pylist`` does."""
    names = table.schema.names
    columns = [to_python(column) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with numbers in the place of dates, times and durations."""
    if pt.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pt.is_dictionary(kind):
        return _stored_type(kind.value_type)
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_stored_type(field.type)) for field in kind])
    if pt.is_fixed_size_list(kind):
        return pa.list_(_stored_field(kind), kind.list_size)
    if pt.is_list(kind):
        return pa.list_(_stored_field(kind))
    if pt.is_large_list(kind):
        return pa.large_list(_stored_field(kind))
    return kind


def _stored_field(kind: Any) -> pa.Field:
    field: pa.Field = kind.value_field
    return field.with_type(_stored_type(field.type))
