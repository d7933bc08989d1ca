"""CAST: convert values of one Arrow type to another, as SQL (Arrow's Rust kernels) does.

Where pyarrow's own cast differs: of a float or decimal that becomes an integer the fraction is cut
off; a float is written ``1.0``, a timestamp ``2021-01-01T00:00:00+02:00``, a time with a fraction
of as many groups of three digits as it needs, and text is read as a time; an integer fits any
decimal that has room for its value; a naive timestamp is local time where a zone is asked for, and
UTC where a zone is dropped (a date is the local one); text may have a zone of its own, which
decides the moment.

A value that does not fit is an error (pyarrow.ArrowInvalid here, PredicateError above), with
``try_`` null.
Source: behaviour of pylance 14.0.2 and of the arrow-rs cast kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array
from lance_nb.arrow_compute import scalar_of
from lance_nb.table.predicate.expression import Kernel, Value, one_array

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_FRACTION = re.compile(r"(?<=:\d\d)\.(\d{1,9})")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_OFFSET = re.compile(r"([+-]\d\d)(\d\d)$")
_WIDE_DECIMAL_DIGITS = 38
_HALF_BITS, _DOUBLE_BITS = 16, 64
_GREATEST_POWERS = {16: 10, 32: 13, 64: 16}


def cast_kernel(type_: pa.DataType) -> Kernel:
    """Make the kernel that casts to a type."""
    return partial(cast_value, type_=type_)


def try_cast_kernel(type_: pa.DataType) -> Kernel:
    """Make the kernel that casts to a type and gives null for what does not fit."""

    def kernel(value: Value) -> Value:
        try:
            return cast_value(value, type_)
        except (pa.ArrowException, ValueError):
            if isinstance(value, pa.Scalar):
                return scalar_of(None, type_)
            rows = [kernel(row_value) for row_value in one_array(value)]
            return pa.array([row.as_py() for row in rows], type_)

    return kernel


def cast_value(value: Value, type_: pa.DataType) -> Value:
    """Cast a value. Raises pyarrow.ArrowInvalid for a row that does not fit."""
    own = value.type
    if own == type_:
        return value
    if pt.is_null(own):
        return _all_null(value, type_)
    if pt.is_dictionary(type_):
        result = _by_array(cast_value(value, type_.value_type), pc.dictionary_encode)
        return pc.cast(result, type_)
    if is_any_list(type_):
        return _to_list(value, type_)
    if pt.is_floating(own) and (pt.is_integer(type_) or pt.is_boolean(type_)):
        return pc.cast(pc.trunc(value), type_) if pt.is_integer(type_) else pc.not_equal(value, 0.0)
    if pt.is_decimal(own) and pt.is_integer(type_):
        return pc.cast(pc.trunc(value), type_)
    if pt.is_integer(own) and pt.is_decimal(type_):
        digits = max(_WIDE_DECIMAL_DIGITS, type_.precision)
        wide = pa.decimal128 if digits == _WIDE_DECIMAL_DIGITS else pa.decimal256
        return pc.cast(pc.cast(value, wide(digits, type_.scale)), type_)
    if pt.is_string(type_) or pt.is_large_string(type_) or type_ == pa.string_view():
        return _to_text(value, type_)
    if pt.is_decimal(type_) and (pt.is_string(own) or pt.is_large_string(own)):
        value = pc.if_else(pc.equal(value, scalar_of("", own)), scalar_of("0", own), value)
    has_ticks = pt.is_timestamp(type_) or pt.is_duration(type_)
    is_number = pt.is_floating(own) or pt.is_decimal(own) or pt.is_integer(own)
    if is_number and own != pa.int64() and has_ticks:
        return cast_value(cast_value(value, pa.int64()), type_)
    if pt.is_timestamp(own) and (pt.is_integer(type_) or pt.is_floating(type_)):
        return (
            cast_value(pc.cast(value, pa.int64()), type_)
            if type_ != pa.int64()
            else pc.cast(value, type_)
        )
    if pt.is_timestamp(own) and pt.is_time(type_):
        return pc.cast(value, type_, safe=False)
    if pt.is_integer(own) and pt.is_date32(type_):
        return pc.cast(pc.cast(value, pa.int32()), type_)
    if pt.is_timestamp(type_) or pt.is_date(type_):
        return _to_time(value, type_)
    if pt.is_time(type_) and (pt.is_string(own) or pt.is_large_string(own)):
        return _by_array(value, partial(_parse_time_of_day, type_=type_))
    if pt.is_date32(own) and pt.is_integer(type_):
        return pc.cast(pc.cast(value, pa.int32()), type_)
    if pt.is_integer(own) and pt.is_floating(type_):
        return pc.cast(value, type_, safe=False)
    if pt.is_floating(own) and pt.is_floating(type_):
        return pc.cast(value, type_, safe=False)
    if pt.is_boolean(own) and pt.is_float16(type_):
        return pc.cast(pc.cast(value, pa.float32()), type_)
    return cast_array(value, type_)


def null_of(type_: pa.DataType) -> pa.Scalar:
    """Return the null of a type; pyarrow makes none of some nested types itself."""
    return pa.nulls(1, type_)[0]


def _all_null(value: Value, type_: pa.DataType) -> Value:
    if isinstance(value, pa.Scalar):
        return null_of(type_)
    nulls = pa.nulls(len(value), type_)
    return pa.chunked_array([nulls]) if isinstance(value, pa.ChunkedArray) else nulls


def is_any_list(type_: pa.DataType) -> bool:
    """Tell whether a type is one of the list types."""
    return bool(pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_))


def _by_array(value: Value, function: Callable[[pa.Array], pa.Array]) -> Value:
    """Apply a function of arrays to a value."""
    if isinstance(value, pa.Scalar):
        return function(one_array(value))[0]
    return function(one_array(value))


def _to_list(value: Value, type_: pa.DataType) -> Value:
    """Cast lists, or put each other value into a list of its own, as arrow-rs does."""
    if is_any_list(value.type):
        items = (value.type.value_type, type_.value_type)
        becomes_lists = is_any_list(items[1]) and not is_any_list(items[0])
        # Arrow refuses to cut digits off of moments inside of lists.
        if not becomes_lists and not all(map(pt.is_timestamp, items)):
            return cast_array(value, type_)
        return _by_array(value, lambda rows: _nested(rows, type_))
    if pt.is_fixed_size_list(type_) or pt.is_nested(value.type):
        return cast_array(value, type_)  # an error of Arrow's, except for views

    def single(rows: pa.Array) -> pa.Array:
        items = cast_value(rows, type_.value_type)
        kind = pa.LargeListArray if pt.is_large_list(type_) else pa.ListArray
        return pc.cast(kind.from_arrays(list(range(len(rows) + 1)), one_array(items)), type_)

    return _by_array(value, single)


def _nested(rows: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast the elements of lists as values by themselves are cast."""
    kind = pa.LargeListArray if pt.is_large_list(rows.type) else pa.ListArray
    if pt.is_fixed_size_list(rows.type):
        rows = pc.cast(rows, pa.list_(rows.type.value_field))
    items = one_array(cast_value(rows.flatten(), type_.value_type))
    lengths = pc.fill_null(rows.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = kind.from_arrays(pa.array(offsets), items, mask=pc.is_null(rows))
    return cast_array(lists, type_)


def _to_text(value: Value, type_: pa.DataType) -> Value:
    own = value.type
    if pt.is_floating(own):
        return pc.cast(_by_array(value, _float_text), type_)
    if pt.is_timestamp(own):
        return _map_text(pc.cast(value, pa.string()), _moment_text, type_)
    if pt.is_time(own):
        return pc.cast(_by_array(value, _time_text), type_)
    if pt.is_duration(own):
        text = partial(_duration_text, per_second=10**9 // _NANOSECONDS[own.unit])
        return _map_text(pc.cast(value, pa.int64()), text, type_)
    return pc.cast(value, type_)


def _time_text(rows: pa.Array) -> pa.Array:
    """Write times with no fraction, or with one of 3, 6 or 9 digits: as few as keep the value."""
    text = pc.cast(rows, pa.string())
    for _ in range(3):
        text = pc.replace_substring_regex(text, r"(\.(?:\d{3})*?)000$", r"\1")
    return pc.replace_substring_regex(text, r"\.$", "")


def _duration_text(ticks: int, *, per_second: int) -> str:
    """Write a duration as arrow-rs does: each part that is not 0 has the sign."""
    sign = "-" if ticks < 0 else ""
    seconds, fraction = divmod(abs(ticks), per_second)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [
        f"{sign if number else ''}{number} {unit}"
        for number, unit in ((days, "days"), (hours, "hours"), (minutes, "mins"))
    ]
    digits = f".{str(per_second + fraction)[1:]}" if per_second > 1 else ""
    return " ".join([*parts, f"{sign if seconds or fraction else ''}{seconds}{digits} secs"])


def _map_text(value: Value, function: Any, type_: pa.DataType) -> Value:
    if isinstance(value, pa.Scalar):
        return scalar_of(function(value.as_py()) if value.is_valid else None, type_)
    rows = one_array(value).to_pylist()
    return pa.array([None if row is None else function(row) for row in rows], type_)


def _float_text(rows: pa.Array) -> pa.Array:
    """Write floats as arrow-rs does: the shortest digits that are the same float.

    Arrow has these digits too, and changes to powers of ten at 1e10 and 1e-7. arrow-rs does so at
    1e16 and 1e-5 for float64, at 1e13 and 1e-6 for float32, and never for float16.
    """
    width = rows.type.bit_width
    wide = pc.cast(rows, pa.float32()) if width == _HALF_BITS else rows
    text = pc.cast(wide, pa.string())
    has_powers = pc.any(pc.match_substring(text, "e+1")).as_py()
    for power in range(10, _GREATEST_POWERS[width] if has_powers else 0):
        text = _positional(text, rf"e\+{power}$", rf"^(-?\d{{{power + 1}}})(\d*?)0*$", power)
    if width == _HALF_BITS:
        return pc.replace_substring(_half_text(text, wide), "nan", "NaN")
    if width == _DOUBLE_BITS:
        text = pc.replace_substring_regex(text, r"^(-?)0\.00000([1-9])(\d+)$", r"\1\2.\3e-6")
        text = pc.replace_substring_regex(text, r"^(-?)0\.00000([1-9])$", r"\1\2e-6")
    text = pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")
    return pc.replace_substring(pc.replace_substring(text, "e+", "e"), "nan", "NaN")


def _half_text(text: pa.Array, values: pa.Array) -> pa.Array:
    """Write float16 in full; a value just between two texts gets the greater, not the even one."""
    exact = pc.cast(pc.cast(values, pa.float64()), pa.string())
    tied = pc.fill_null(pc.equal(exact, pc.binary_join_element_wise(text, "5", "")), False)
    if pc.any(tied).as_py():
        odd = pc.filter(text, tied)
        for digit in range(0, 10, 2):
            odd = pc.replace_substring_regex(odd, f"{digit}$", str(digit + 1))
        text = pc.replace_with_mask(text, tied, odd)
    for power in (7, 8):
        small = partial(_small, zeros=r"\1" + "0." + "0" * (power - 1))
        text = _where(text, f"e-{power}$", small)
    return text


def _small(text: pa.Array, *, zeros: str) -> pa.Array:
    return pc.replace_substring_regex(_digits(text), r"^(-?)", zeros)


def _digits(text: pa.Array) -> pa.Array:
    """Leave the digits of the mantissa."""
    return pc.replace_substring_regex(text, r"\.|e.*$", "")


def _positional(text: pa.Array, exponent: str, digits: str, power: int) -> pa.Array:
    """Write numbers with this power of ten in full."""

    def write(array: pa.Array) -> pa.Array:
        padded = pc.binary_join_element_wise(_digits(array), "0" * power, "")
        placed = pc.replace_substring_regex(padded, digits, r"\1.\2")
        return pc.replace_substring_regex(placed, r"\.$", ".0")

    return _where(text, exponent, write)


def _where(text: pa.Array, pattern: str, write: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Write the rows that match a pattern anew."""
    matches = pc.fill_null(pc.match_substring_regex(text, pattern), False)
    if not pc.any(matches).as_py():
        return text
    return pc.replace_with_mask(text, matches, write(pc.filter(text, matches)))


def _moment_text(text: str) -> str:
    iso = text.replace(" ", "T", 1)
    short = re.sub(r"\.(\d{3}|\d{6}|\d{9})(?=Z|[+-]|$)", _short_fraction, iso)
    return _OFFSET.sub(
        lambda match: "Z" if match[0] == "+0000" else f"{match[1]}:{match[2]}", short
    )


def _short_fraction(match: re.Match[str]) -> str:
    digits = match[1]
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}" if digits else ""


def _to_time(value: Value, type_: pa.DataType) -> Value:
    own = value.type
    if pt.is_string(own) or pt.is_large_string(own):
        return _parse_time(value, type_)
    if pt.is_timestamp(own) and own.tz and pt.is_date(type_):
        value = pc.local_timestamp(value)
    if pt.is_timestamp(type_) and type_.tz and pt.is_integer(own):
        # A number is a moment, not a local time.
        return pc.cast(_moment(value, pa.timestamp(type_.unit)), type_)
    if pt.is_timestamp(type_) and type_.tz and not getattr(own, "tz", None):
        return with_zone(_moment(value, pa.timestamp(type_.unit)), type_.tz)
    if pt.is_date(type_):
        # Arrow keeps only whole days; SQL drops the time of day.
        return (
            pc.cast(pc.floor_temporal(value, unit="day"), type_)
            if pt.is_timestamp(own)
            else (pc.cast(value, type_))
        )
    return _moment(value, type_)


def _moment(value: Value, type_: pa.DataType) -> Value:
    """Cast to a timestamp: digits behind the unit are cut off, what it cannot hold is an error."""
    own = value.type
    if pt.is_date64(own):
        value = pc.cast(value, pa.timestamp("ms"))  # to seconds Arrow takes whole days only
        own = value.type
    cuts = pt.is_timestamp(own) and _NANOSECONDS[own.unit] < _NANOSECONDS[type_.unit]
    return pc.cast(value, type_, safe=not cuts)


def with_zone(value: Value, zone: str) -> Value:
    """Read naive timestamps as local times of a zone."""
    return pc.assume_timezone(value, zone, ambiguous="earliest", nonexistent="latest")


def _parse_time(value: Value, type_: pa.DataType) -> Value:
    """Parse timestamps and dates; text with a zone is that moment, without one a local time."""
    if isinstance(value, pa.Scalar):
        return _parse_one(value.as_py(), type_) if value.is_valid else scalar_of(None, type_)
    ticks = [_parse_one(row, type_).value for row in one_array(value).to_pylist()]
    whole = pa.int32() if pt.is_date32(type_) else pa.int64()
    return pc.cast(pa.array(ticks, whole), type_)


def _parse_time_of_day(rows: pa.Array, *, type_: pa.DataType) -> pa.Array:
    """Parse times like 04:05, 04:05:06 and 04:05:06.789; digits behind the unit are dropped."""
    day = scalar_of("1970-01-01T", rows.type)
    moments = pc.binary_join_element_wise(day, rows, scalar_of("", rows.type))
    return pc.cast(
        pc.cast(pc.cast(moments, pa.timestamp("ns")), pa.time64("ns")), type_, safe=False
    )


def _parse_one(text: str | None, type_: pa.DataType) -> pa.Scalar:
    if text is None:
        return scalar_of(None, type_)
    text = text.strip()
    if pt.is_date(type_):
        return pc.cast(pc.cast(scalar_of(text[:10]), pa.date32()), type_)
    if _ZONE.search(text):
        return _parse_moment(text, type_, "UTC")
    moment = _parse_moment(text, pa.timestamp(type_.unit), None)
    return with_zone(moment, type_.tz) if type_.tz else moment


def _parse_moment(text: str, type_: pa.DataType, zone: str | None) -> pa.Scalar:
    """Parse a moment, its second and its fraction apart: Arrow reads either only in one unit.

    Digits behind the unit are dropped, before 1970 as well; Arrow's cast rounds towards 1970.
    """
    fraction = _FRACTION.search(text)
    digits = fraction[1] if fraction else ""
    if fraction:
        text = text[: fraction.start()] + text[fraction.end() :]
    seconds = pc.cast(scalar_of(text), pa.timestamp("s", zone)).value
    nanoseconds = int(digits.ljust(9, "0"))
    ticks = (seconds * _NANOSECONDS["s"] + nanoseconds) // _NANOSECONDS[type_.unit]
    if not _INT64_MIN <= ticks <= _INT64_MAX:
        raise pa.ArrowInvalid(f"{text!r} is out of the range of {type_}")
    return pc.cast(scalar_of(ticks, pa.int64()), type_)
