"""Values that a person gives for single cells, in the types of their columns and without loss.

Two sources: Python values (``given_values``), as code has them, and text (``hand_value``), as it is
typed into an editor or pasted. A value that the column's type cannot hold as it is given is
refused: a fraction in a column of whole numbers, a number that is too large, a time finer than the
unit, a key that a struct does not have, a null where the column takes none.

Text is read as the type has it: ``2024-05-01`` is a date, ``[1, 2]`` a list, ``true`` a boolean. A
time without an offset in a column with a time zone is local time there.

Limits: nested text is JSON with at most ``MAX_DEPTH`` levels. Not supported: text for binary
columns, durations, intervals and extension types that Arrow does not cast text to.
Source: our own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError

MAX_DEPTH = 64
_SHOWN = 80
_OFFSET = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$", re.IGNORECASE)
_OUTSIDE = (ArithmeticError, RecursionError, TypeError, ValueError, pa.ArrowException)


def given_values(values: Sequence[object], column: pa.Field) -> pa.Array:
    """Return Python values or Arrow scalars of a column as one array in its type.

    Raises InvalidInputError for a value that the column cannot hold as it is.
    """
    plain = [_plain(value, column.type) for value in values]
    if not column.nullable and any(value is None or _is_null(value) for value in plain):
        raise InvalidInputError(f"column {column.name!r} takes no nulls")
    try:
        array = pa.array(plain, column.type)
        for value, stored in zip(plain, array, strict=True):
            if not isinstance(value, pa.Scalar):
                _check_kept(value, stored.as_py(), column.type)
    except _OUTSIDE as exc:
        bad = next((value for value in plain if not _fits(value, column.type)), plain[0])
        raise _refusal(bad, column, exc) from exc
    return array


def given_rows(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    """Return rows that are given as mappings as a table; columns that they leave out are null.

    Raises InvalidInputError as ``given_values`` does, and for a name that is no column.
    """
    for row in rows:
        unknown = [name for name in row if name not in schema.names]
        if unknown:
            raise InvalidInputError(f"there is no column {str(unknown[0])[:_SHOWN]!r}")
    columns = [given_values([row.get(column.name) for row in rows], column) for column in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(value: object, kind: pa.DataType) -> object:
    """Return a scalar of another type as a Python value."""
    return value.as_py() if isinstance(value, pa.Scalar) and value.type != kind else value


def _is_null(value: object) -> bool:
    return isinstance(value, pa.Scalar) and not value.is_valid


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        array = pa.array([value], kind)
        if not isinstance(value, pa.Scalar):
            _check_kept(value, array[0].as_py(), kind)
    except _OUTSIDE:
        return False
    return True


def _check_kept(value: Any, stored: Any, kind: pa.DataType, depth: int = 0) -> None:
    """Raise InvalidInputError where Arrow took a value and stored another one."""
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"more than {MAX_DEPTH} levels")
    kinds = pa.types
    if value is None or stored is None:
        return
    if kinds.is_struct(kind) and isinstance(value, Mapping):
        names = {kind.field(index).name for index in range(kind.num_fields)}
        unknown = [key for key in value if key not in names]
        if unknown:
            raise InvalidInputError(f"there is no field {unknown[0]!r}")
        for index in range(kind.num_fields):
            part = kind.field(index)
            _check_kept(value.get(part.name), stored[part.name], part.type, depth + 1)
    elif (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)) and (
        not isinstance(value, str | bytes)
    ):
        for element, other in zip(value, stored, strict=True):
            _check_kept(element, other, kind.value_type, depth + 1)
    elif kinds.is_integer(kind) and not isinstance(value, pa.Scalar):
        if isinstance(value, float) and value != stored:
            raise InvalidInputError("a fraction would be cut off")
    elif kinds.is_floating(kind):
        if math.isinf(float(stored)) and not math.isinf(float(value)):
            raise InvalidInputError("the number is too large")
    elif kinds.is_timestamp(kind) and isinstance(value, datetime):
        if (value.tzinfo is None) != (kind.tz is None):
            missing = "a time zone is missing" if kind.tz else "the column has no time zone"
            raise InvalidInputError(missing)
        if value != stored:
            raise InvalidInputError("the time is finer than the column's unit")


def hand_value(value: object, column: pa.Field) -> pa.Array:
    """Return a value that a person wrote for a column as an array of one, in the column's type.

    A text is read as the type has it. Raises InvalidInputError for what is no such value, and for a
    null where the column takes none.
    """
    kind = column.type
    stored = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = pa.types.is_string(stored) or pa.types.is_large_string(stored)
    if not isinstance(value, str) or is_text or stored == pa.string_view():
        return given_values([value], column)
    if pa.types.is_binary(stored) or pa.types.is_large_binary(stored):
        raise InvalidInputError(f"column {column.name!r} is {kind}: its values cannot be typed")
    try:
        if pa.types.is_nested(stored):
            parsed = json.loads(value)
            array = pa.array([parsed], kind)
            _check_kept(parsed, array[0].as_py(), kind)
            return array
        array = _from_text(value.strip(), stored)
        return array if stored == kind else pa.array(array.to_pylist(), kind)
    except _OUTSIDE as exc:
        raise _refusal(value, column, exc) from exc


def _from_text(written: str, kind: pa.DataType) -> pa.Array:
    """Read the text of one value. Raises InvalidInputError, pyarrow.ArrowException."""
    kinds = pa.types
    if kinds.is_timestamp(kind) and kind.tz is not None and not _has_offset(written):
        import pyarrow.compute as pc

        return pc.assume_timezone(pa.array([written]).cast(pa.timestamp(kind.unit)), kind.tz)
    if kinds.is_time(kind):
        # Arrow reads no time of day from text; that of a day is its time.
        moment = pa.array([f"1970-01-01T{written}"]).cast(pa.timestamp(kind.unit))
        return moment.cast(kind)
    array = pa.array([written]).cast(kind)
    if kinds.is_floating(kind) and math.isinf(array[0].as_py()) and "inf" not in written.lower():
        raise InvalidInputError("the number is too large")
    return array


def _has_offset(written: str) -> bool:
    clock = written[10:]  # behind the date, whose dashes look like an offset
    return _OFFSET.search(clock) is not None


def _refusal(value: object, column: pa.Field, exc: BaseException) -> InvalidInputError:
    shown = value if isinstance(value, str) else repr(value)
    reason = f": {exc}" if isinstance(exc, InvalidInputError) else ""
    return InvalidInputError(
        f"{shown[:_SHOWN]!r} is no value of column {column.name!r}, which is {column.type}{reason}"
    )
