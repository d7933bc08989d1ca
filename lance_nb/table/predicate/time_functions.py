"""Functions of time: date_part, date_trunc, to_timestamp, to_date, now, current_date.

A zoned timestamp is taken apart in its zone's local time. ``now()`` is the moment at which the
filter was bound, the same for every row, in UTC without a zone, as pylance's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import with_zone
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import Expression, Literal, Value, call
from lance_nb.table.predicate.string_functions import literal_of

# Arrow's functions; the others are computed from ticks below.
_FIELDS = {
    "year": "year", "quarter": "quarter", "month": "month", "week": "iso_week", "day": "day",
    "hour": "hour", "minute": "minute", "doy": "day_of_year", "isoyear": "iso_year",
}  # fmt: skip
_TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second",
                "millisecond", "microsecond")  # fmt: skip
_PER_SECOND = {"second": 1, "millisecond": 1_000, "microsecond": 1_000_000,
               "nanosecond": 1_000_000_000}  # fmt: skip


def date_part(name: str, operands: Sequence[Expression]) -> Expression:
    """Take a field out of a time: int32, ``epoch`` as float64."""
    field = str(literal_of(operands[0], name=name)).lower().rstrip("s")
    value = plain(operands[1])
    if pt.is_string(value.type):
        value = cast(value, pa.timestamp("ns"))
    if not pt.is_temporal(value.type) or pt.is_duration(value.type):
        raise PredicateError(f"{name} needs a time or a date, not {value.type}")
    if pt.is_date(value.type):
        value = cast(value, pa.timestamp("s"))
    if field in _FIELDS:
        return call(name, _arrow_field(_FIELDS[field]), value)
    if field in {"dow", "isodow"}:
        return call(name, _day_of_week(0 if field == "isodow" else 1), value)
    if field == "epoch":
        return call(name, _epoch, value)
    if field in _PER_SECOND:
        return call(name, _seconds(_PER_SECOND[field]), value)
    raise PredicateError(f"{name} knows no field {field!r}; fields: {', '.join(_FIELDS)}, ...")


def _arrow_field(function: str) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        return getattr(pc, function)(value).cast(pa.int32())

    return kernel


def _day_of_week(first: int) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        # dow counts from Sunday, from 0; isodow from Monday, from 1.
        start = 7 if first else 1
        found = pc.day_of_week(value, count_from_zero=bool(first), week_start=start)
        return found.cast(pa.int32())

    return kernel


def _epoch(value: Value) -> Value:
    import pyarrow.compute as pc

    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[value.type.unit]
    ticks = value.cast(pa.int64()) if value.type.bit_width == 64 else value.cast(pa.int32())
    return pc.divide(ticks.cast(pa.float64(), safe=False), float(per_second))


def _seconds(per_second: int) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        part = pc.multiply(pc.second(value), pa.scalar(per_second))
        nanoseconds = pc.round(pc.multiply(pc.subsecond(value), 1e9)).cast(pa.int64())
        found = pc.add(part, pc.divide(nanoseconds, _PER_SECOND["nanosecond"] // per_second))
        return found if per_second == _PER_SECOND["nanosecond"] else found.cast(pa.int32())

    return kernel


def _date_trunc(name: str, operands: Sequence[Expression]) -> Expression:
    unit = str(literal_of(operands[0], name=name)).lower()
    value = plain(operands[1])
    if pt.is_date(value.type):
        value = cast(value, pa.timestamp("ns"))
    if not pt.is_timestamp(value.type) or unit not in _TRUNCATIONS:
        raise PredicateError(f"{name} cuts timestamps to {', '.join(_TRUNCATIONS)}")
    zone = value.type.tz

    def kernel(rows: Value) -> Value:
        import pyarrow.compute as pc

        local = pc.local_timestamp(rows) if zone else rows
        found = pc.floor_temporal(local, unit=unit)
        return with_zone(found, zone) if zone else found

    return call(name, kernel, value)


def _from_seconds(value: Value) -> Value:
    import pyarrow.compute as pc

    ticks = pc.multiply(value, 1e9)
    return pc.trunc(ticks).cast(pa.int64()).cast(pa.timestamp("ns"))


def _to_timestamp(unit: str) -> Callable[[str, Sequence[Expression]], Expression]:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        value = plain(operands[0])
        if len(operands) == 2:
            value = _read(name, value, operands[1], unit)
        if pt.is_floating(value.type) and name == "to_timestamp":
            return call(name, _from_seconds, value)
        if pt.is_integer(value.type):
            ticks = cast(cast(value, pa.int64()), pa.timestamp(unit))
            return cast(ticks, pa.timestamp("ns")) if name == "to_timestamp" else ticks
        return cast(value, pa.timestamp("ns" if name == "to_timestamp" else unit))

    return bind


def _to_date(name: str, operands: Sequence[Expression]) -> Expression:
    value = plain(operands[0])
    if len(operands) == 2:
        value = _read(name, value, operands[1], "s")
    if pt.is_integer(value.type):
        value = cast(value, pa.int32())
    return cast(value, pa.date32())


def _read(name: str, value: Expression, form: Expression, unit: str) -> Expression:
    """Read times out of text by a format of strftime."""
    written = literal_of(form, name=name)
    if not isinstance(written, str) or not pt.is_string(value.type):
        raise PredicateError(f"{name} with a format needs text, and the format in quotes")

    def kernel(rows: Value) -> Value:
        import pyarrow.compute as pc

        return pc.strptime(rows, format=written, unit=unit)

    return call(name, kernel, value)


def _now(_name: str, _operands: Sequence[Expression]) -> Expression:
    return Literal(pa.scalar(datetime.now(UTC).replace(tzinfo=None), pa.timestamp("ns")))


def today(_name: str, _operands: Sequence[Expression]) -> Expression:
    """Bind current_date: today in UTC."""
    return Literal(pa.scalar(datetime.now(UTC).date(), pa.date32()))


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Callable[[str, Sequence[Expression]], Expression], int, int]] = {
    **dict.fromkeys(("date_part", "datepart"), (date_part, 2, 2)),
    **dict.fromkeys(("date_trunc", "datetrunc"), (_date_trunc, 2, 2)),
    **dict.fromkeys(("to_timestamp", "to_timestamp_seconds"), (_to_timestamp("s"), 1, 2)),
    "to_timestamp_millis": (_to_timestamp("ms"), 1, 2),
    "to_timestamp_micros": (_to_timestamp("us"), 1, 2),
    "to_timestamp_nanos": (_to_timestamp("ns"), 1, 2),
    "to_date": (_to_date, 1, 2),
    **dict.fromkeys(("now", "current_timestamp"), (_now, 0, 0)),
    **dict.fromkeys(("current_date", "today"), (today, 0, 0)),
}
