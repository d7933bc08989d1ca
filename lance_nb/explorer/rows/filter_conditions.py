"""Write the SQL conditions that a range of a histogram, or the value of a cell, stands for.

A range of a histogram is ``low <= x < high``; its last bar includes the maximum, so there it is
``x <= high``. Bounds are rounded to what a person would write, as long as that moves them by less
than a hundredth of the range; the ends of the histogram are left open where rounding could exclude
the minimum or maximum.

Limits: a value of more than ``VALUE_CHARS`` characters has no condition; ``MAX_INNER`` fields of
structs are found.
Not supported: conditions on nested columns (their fields can be named), and on binary ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lance_nb.errors import NotSupportedError
from lance_nb.explorer import cells

VALUE_CHARS = 300
MAX_INNER = 50
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset({
    "and", "or", "not", "in", "is", "null", "like", "ilike", "between", "true", "false", "case",
    "when", "then", "else", "end", "cast", "as", "date", "timestamp", "interval", "select", "from",
    "where", "order", "by", "exists", "any", "all", "some", "asc", "desc", "distinct", "for",
    "isnull", "notnull", "trim", "current_date", "current_time", "current_timestamp",
})  # fmt: skip
_START = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def column_sql(name: str) -> str:
    """Write a column's name as a filter has it: quoted where it must be."""
    if _PLAIN.fullmatch(name) and name.casefold() not in _WORDS:
        return name
    return f"`{name.replace('`', '``')}`"


def path_sql(path: Sequence[str]) -> str:
    """Write a field within a struct column as a filter has it."""
    return ".".join(column_sql(name) for name in path)


def nested_fields(schema: pa.Schema, needle: str) -> list[tuple[tuple[str, ...], pa.DataType]]:
    """Find the fields of struct columns whose path contains ``needle``, in small letters."""
    fields: list[tuple[tuple[str, ...], pa.DataType]] = []
    left: list[tuple[tuple[str, ...], pa.DataType]]
    left = [((field.name,), field.type) for field in reversed(schema)]
    while left and len(fields) < MAX_INNER:
        path, kind = left.pop()
        if len(path) > 1 and needle in ".".join(path).casefold():
            fields.append((path, kind))
        if pa.types.is_struct(kind):
            left += [((*path, field.name), field.type) for field in reversed(list(kind))]
    return fields


def null_condition(name: str) -> str:
    """Write the condition that a column is null."""
    return f"{column_sql(name)} IS NULL"


def value_condition(name: str, scalar: pa.Scalar) -> str:
    """Write the condition that a column has a value; empty where that cannot be written."""
    column, kind = column_sql(name), scalar.type
    if not scalar.is_valid:
        return null_condition(name)
    if pa.types.is_boolean(kind):
        return column if scalar.as_py() else f"NOT {column}"
    if cells.is_text(kind):
        if len(scalar.as_buffer()) > 4 * VALUE_CHARS:
            return ""
        try:
            shown = scalar.as_py()
        except UnicodeDecodeError:
            return ""
        quoted = "'" + shown.replace("'", "''") + "'"
        return f"{column} = {quoted}" if len(shown) <= VALUE_CHARS and "\0" not in shown else ""
    if pa.types.is_integer(kind):
        return f"{column} = {scalar.as_py()}"
    return ""


def other_values_condition(name: str, scalar: pa.Scalar) -> str:
    """Write the condition that a column has another value or none; empty where it has no name."""
    where = value_condition(name, scalar)
    if not scalar.is_valid or not where:
        return where and f"{column_sql(name)} IS NOT NULL"
    return f"(NOT ({where}) OR {null_condition(name)})"


def range_condition(field: pa.Field, low: float | None, high: float | None, *, closed: bool) -> str:
    """Write the condition that a column lies between two places of its histogram.

    ``None`` leaves an end open; ``closed``: ``high`` belongs to the range. The places are in the
    units in which the column is stored. NaN, which is above all numbers in comparisons, is in no
    range. Raises NotSupportedError.
    """
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    column = column_sql(field.name)
    width = abs(high - low) if low is not None and high is not None else 0.0
    parts = []
    if low is not None:
        parts.append(f"{column} >= {_literal(kind, low, width, up=False)}")
    if high is not None:
        parts.append(f"{column} {'<=' if closed else '<'} {_literal(kind, high, width, up=closed)}")
    if high is None and pa.types.is_floating(kind):
        parts.append(f"NOT isnan({column})")
    return " AND ".join(parts) or f"{column} IS NOT NULL"


def odd_condition(field: pa.Field, odd: str, place: float | None) -> str:
    """Write the condition of values that are outside of a histogram.

    ``odd`` is null, nan, inf, -inf, or below or above with the ``place`` where the histogram ends.
    Raises NotSupportedError.
    """
    column = column_sql(field.name)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if odd == "null":
        return null_condition(field.name)
    if odd in ("below", "above") and place is not None:
        if odd == "below":
            return f"{column} < {_literal(kind, place, 0.0, up=False)}"
        more = f"{column} > {_literal(kind, place, 0.0, up=True)}"
        return f"{more} AND NOT isnan({column})" if pa.types.is_floating(kind) else more
    if odd in ("nan", "inf", "-inf") and pa.types.is_floating(kind):
        return f"isnan({column})" if odd == "nan" else f"{column} = CAST('{odd}' AS DOUBLE)"
    raise NotSupportedError(f"{odd[:20]!r} is no group of values of {kind}")


def stored_time(kind: pa.DataType, milliseconds: float | None) -> float | None:
    """Turn milliseconds since 1970 into the unit of a column of times. Raises NotSupportedError."""
    if milliseconds is None or pa.types.is_date64(kind):
        return milliseconds
    if pa.types.is_date32(kind):
        return milliseconds / 86_400_000
    if pa.types.is_timestamp(kind):
        return milliseconds * _PER_SECOND[kind.unit] / 1000
    raise NotSupportedError(f"values of {kind} are not timestamps")


def _literal(kind: pa.DataType, place: float, width: float, *, up: bool) -> str:
    if not math.isfinite(place):
        raise NotSupportedError("a range needs finite bounds")
    if pa.types.is_integer(kind):
        return str(math.floor(place) if up else math.ceil(place))
    if pa.types.is_date(kind):
        days = place if pa.types.is_date32(kind) else place / 86_400_000
        day = _moment((math.floor(days) if up else math.ceil(days)) * 86_400)
        return f"date '{day:%Y-%m-%d}'"
    if pa.types.is_timestamp(kind):
        return _time_literal(place / _PER_SECOND[kind.unit], width / _PER_SECOND[kind.unit])
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _rounded(place, width)
    raise NotSupportedError(f"a range of {kind} cannot be written as a filter")


def _rounded(place: float, width: float) -> str:
    """Return the shortest number within a hundredth of ``width``, else the exact one."""
    for digits in range(1, 17):
        shown = float(f"{place:.{digits}g}")
        if abs(shown - place) <= width / 100:
            return str(int(shown)) if shown.is_integer() and abs(shown) < 1e15 else repr(shown)
    return repr(place)


def _moment(seconds: float) -> datetime:
    try:
        return _START + timedelta(seconds=seconds)
    except OverflowError as error:
        raise NotSupportedError("the timestamp is outside the years 1 to 9999") from error


def _time_literal(seconds: float, width: float) -> str:
    step = next((unit for unit in (86_400, 3600, 60, 1) if unit <= width / 100), 0)
    moment = _moment(round(seconds / step) * step if step else seconds)
    shown = f"{moment:%Y-%m-%d %H:%M:%S}"
    return f"timestamp '{shown}{f'.{moment.microsecond:06d}' if moment.microsecond else ''}'"
