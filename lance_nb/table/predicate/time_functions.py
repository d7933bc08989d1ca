"""Functions of time: date_part, date_trunc, to_timestamp, to_char, make_date, date_bin, now, ...

A zoned timestamp is split into its parts in its zone's local time. ``now()`` is the moment at which
the filter was bound, the same for every row, in UTC without a zone, as in pylance. ``INTERVAL '2
days 3 hours'`` is a length of time and can be added to or subtracted from timestamps and dates
(pylance refuses that). Units: weeks to nanoseconds.

Not supported: intervals of months and years, which have no fixed length; formats of ``to_char``
that are not those of strftime (``%.6f`` is a fraction of six digits).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import with_zone
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import Expression, Literal, Value, aligned, call
from lance_nb.table.predicate.lists import arrays_kernel
from lance_nb.table.predicate.string_functions import literal_of

_NS = {
    "nanosecond": 1, "microsecond": 1_000, "millisecond": 1_000_000, "second": 10**9,
    "minute": 60 * 10**9, "hour": 3_600 * 10**9, "day": 86_400 * 10**9, "week": 604_800 * 10**9,
}  # fmt: skip
_SHORT = {
    "ns": "nanosecond",
    "us": "microsecond",
    "ms": "millisecond",
    "min": "minute",
    "sec": "second",
    "h": "hour",
    "d": "day",
    "m": "minute",
    "s": "second",
}
_PIECE = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*,?")
_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def interval(written: str, unit: str = "") -> Literal:
    """Read INTERVAL as a duration. Raises PredicateError for months, years and other words."""
    text = f"{written} {unit}".strip().lower()
    total, end = 0, 0
    for match in _PIECE.finditer(text):
        name = _SHORT.get(match[2], match[2].rstrip("s"))
        if match.start() != end or name not in _NS:
            break
        total += (
            round(float(match[1]) * _NS[name]) if "." in match[1] else int(match[1]) * _NS[name]
        )
        end = match.end()
    if end != len(text) or not text or abs(total) >= 1 << 63:
        units = ", ".join(_NS)
        raise PredicateError(f"INTERVAL {text!r}: expected a number and a unit out of {units}")
    return Literal(pa.scalar(total, pa.duration("ns")))


def _time(expression: Expression, *, name: str) -> Expression:
    value = plain(expression)
    if pt.is_date(value.type):
        return cast(value, pa.timestamp("s"))
    if pt.is_string(value.type):
        return cast(value, pa.timestamp("ns"))
    if not pt.is_timestamp(value.type):
        raise PredicateError(f"{name} needs a time or a date, not {value.type}")
    return value


def _to_char(name: str, operands: Sequence[Expression]) -> Expression:
    value = _time(operands[0], name=name)
    form = literal_of(operands[1], name=name)
    if not isinstance(form, str):
        raise PredicateError(f"{name} needs a format in quotes")
    # Arrow writes %S with the digits of its type; in Rust %S has none, and %.6f is the fraction.
    digits = re.search(r"%\.(\d)?f", form)
    if digits and form[max(digits.start() - 2, 0) : digits.start()] not in {"%S", "%T"}:
        raise PredicateError(f"{name}: {digits[0]} must follow %S or %T")
    unit = {"3": "ms", "6": "us", "9": "ns"}.get(digits[1] or "", "") if digits else "s"
    if not unit:
        raise PredicateError(f"{name} writes fractions as %.3f, %.6f or %.9f")
    form = form.replace(digits[0], "") if digits else form
    if value.type.tz is None and re.search(r"(?<!%)(%%)*%:?[zZ]", form):
        raise PredicateError(f"{name}: {form!r} writes a time zone, and {value.type} has none")
    # Rust writes every zone as its offset.
    pieces = re.split(r"(%:z|%Z|%.)", form, flags=re.DOTALL)
    marks = {"%:z": _OFFSET_MARK + "%z", "%Z": _OFFSET_MARK + "%z", "%%": _PERCENT_MARK}
    form = "".join(marks.get(piece, piece) for piece in pieces)
    timestamp_type = pa.timestamp(unit, value.type.tz)

    def kernel(rows: Value) -> Value:
        finer = _PER_UNIT[unit] < _PER_UNIT[rows.type.unit]
        cut = rows if finer else pc.floor_temporal(rows, unit=_WORDS[unit])
        texts = pc.strftime(pc.cast(cut, timestamp_type), format=form)
        if _PERCENT_MARK in form:
            texts = pc.replace_substring(texts, _PERCENT_MARK, "%")
        if _OFFSET_MARK not in form:
            return texts
        return pc.replace_substring_regex(texts, _OFFSET_MARK + r"([+-]\d\d)(\d\d)", r"\1:\2")

    return call(name, kernel, value)


_OFFSET_MARK = "\x01"  # before an offset that is written with a colon
_PERCENT_MARK = "\x02"  # Arrow takes the Z of %%Z for a zone
_WORDS = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


def _to_unixtime(name: str, operands: Sequence[Expression]) -> Expression:
    value = plain(operands[0])
    if pt.is_integer(value.type):
        return cast(value, pa.int64())

    def kernel(rows: Value) -> Value:
        per_second = 10**9 // _PER_UNIT[rows.type.unit]
        return pc.divide(pc.cast(rows, pa.int64()), pa.scalar(per_second))

    return call(name, kernel, _time(value, name=name))


def _from_unixtime(_name: str, operands: Sequence[Expression]) -> Expression:
    return cast(cast(plain(operands[0]), pa.int64()), pa.timestamp("s"))


def _to_local_time(name: str, operands: Sequence[Expression]) -> Expression:
    value = _time(operands[0], name=name)

    def kernel(rows: Value) -> Value:
        return pc.local_timestamp(rows)

    return call(name, kernel, value) if value.type.tz else value


def _make_date(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(*parts: pa.Array) -> pa.Array:
        rows = aligned(*parts)
        lost = np.zeros(len(rows[0]), np.bool_)
        for part in rows:
            lost |= np.asarray(pc.is_null(part).to_numpy(zero_copy_only=False))
        year, month, day = (pc.fill_null(part, 1).to_numpy(zero_copy_only=False) for part in rows)
        wrong = (month < 1) | (month > 12) | (abs(year) > 9999) | (day < 1)
        months = np.where(wrong, 0, (year - 1970) * 12 + month - 1).astype("datetime64[M]")
        dates = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
        wrong |= dates.astype("datetime64[M]") != months
        if bool((wrong & ~lost).any()):
            position = int(np.flatnonzero(wrong & ~lost)[0])
            raise pa.ArrowInvalid(f"{year[position]}-{month[position]}-{day[position]} is no date")
        return pa.array(dates, pa.date32(), mask=lost)

    numbers = [cast(plain(operand), pa.int64()) for operand in operands]
    return call(name, arrays_kernel(kernel), *numbers)


def _date_bin(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind date_bin(interval, time, origin): the begin of the bin, counted from the origin."""
    first = operands[0]
    if isinstance(first, Literal) and pt.is_string(first.type):
        first = interval(str(literal_of(first, name=name)))
    is_length = isinstance(first, Literal) and pt.is_duration(first.type) and first.scalar.is_valid
    if not isinstance(first, Literal) or not is_length or first.scalar.value <= 0:
        raise PredicateError(f"{name} needs an interval longer than nothing, of weeks or less")
    value = _time(operands[1], name=name)
    if value.type.tz or pt.is_date(plain(operands[1]).type):
        value = cast(value, pa.timestamp("ns", value.type.tz))
    step = int(first.scalar.value)
    per_tick = _PER_UNIT[value.type.unit]
    if step % per_tick:
        raise PredicateError(f"{name}: an interval finer than the times, {value.type}")
    origin = 0
    if len(operands) == 3:
        start = cast(_time(operands[2], name=name), pa.timestamp("ns"))
        if not isinstance(start, Literal) or not start.scalar.is_valid:
            raise PredicateError(f"{name} needs its origin as a literal")
        origin = int(start.scalar.value)

    def kernel(rows: pa.Array) -> pa.Array:
        ticks = pc.cast(rows, pa.int64())
        numbers = pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False)
        width_ticks, begin = step // per_tick, origin // per_tick
        starts = (numbers - begin) // width_ticks * width_ticks + begin
        mask = np.asarray(pc.is_null(ticks).to_numpy(zero_copy_only=False))
        return pc.cast(pa.array(starts, mask=mask), rows.type)

    return call(name, arrays_kernel(kernel), value)


# name -> (binder, fewest operands, most operands)


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
        return pc.cast(getattr(pc, function)(value), pa.int32())

    return kernel


def _day_of_week(first: int) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        # dow counts from Sunday, from 0; isodow from Monday, from 1.
        start = 7 if first else 1
        days = pc.day_of_week(value, count_from_zero=bool(first), week_start=start)
        return pc.cast(days, pa.int32())

    return kernel


def _epoch(value: Value) -> Value:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[value.type.unit]
    ticks = pc.cast(value, pa.int64()) if value.type.bit_width == 64 else pc.cast(value, pa.int32())
    return pc.divide(pc.cast(ticks, pa.float64(), safe=False), float(per_second))


def _seconds(per_second: int) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        part = pc.multiply(pc.second(value), pa.scalar(per_second))
        nanoseconds = pc.cast(pc.round(pc.multiply(pc.subsecond(value), 1e9)), pa.int64())
        seconds = pc.add(part, pc.divide(nanoseconds, _PER_SECOND["nanosecond"] // per_second))
        return seconds if per_second == _PER_SECOND["nanosecond"] else pc.cast(seconds, pa.int32())

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
        local = pc.local_timestamp(rows) if zone else rows
        floored = pc.floor_temporal(local, unit=unit)
        return with_zone(floored, zone) if zone else floored

    return call(name, kernel, value)


def _from_seconds(value: Value) -> Value:
    ticks = pc.multiply(value, 1e9)
    return pc.cast(pc.cast(pc.trunc(ticks), pa.int64()), pa.timestamp("ns"))


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
    **dict.fromkeys(("to_char", "date_format"), (_to_char, 2, 2)),
    "to_unixtime": (_to_unixtime, 1, 1),
    "from_unixtime": (_from_unixtime, 1, 1),
    "to_local_time": (_to_local_time, 1, 1),
    "make_date": (_make_date, 3, 3),
    "date_bin": (_date_bin, 2, 3),
}
