"""Type coercion: the common type of two operands, and literals in the type of their column.

Two integer types meet in the narrowest that holds both (uint64 with a signed type: a decimal);
integer and float meet in the float; decimal and integer in a decimal, decimal and float in float64;
date and timestamp in the timestamp; timestamps of two units in the coarser one, which holds the
times of both, and the digits that it lacks are cut off; naive and zoned timestamps in the zone, the
naive one being that zone's local time; text and anything else in the other type. This is what
DataFusion does.

On purpose unlike pylance, which refuses a literal of another kind than its column (``i > 1.5``,
``date_column = '2021-01-01'``): the same rules hold for literals, and a literal that names a zone
is the moment that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import cast_kernel, cast_value
from lance_nb.table.predicate.expression import Call, Column, Expression, Literal, call

_INTEGERS = {
    (True, 8): pa.int8(), (True, 16): pa.int16(), (True, 32): pa.int32(), (True, 64): pa.int64(),
    (False, 8): pa.uint8(), (False, 16): pa.uint16(), (False, 32): pa.uint32(),
    (False, 64): pa.uint64(),
}  # fmt: skip
_INT_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS = ("s", "ms", "us", "ns")
_BEYOND_INT64 = pa.decimal128(20, 0)
_DECIMAL_DIGITS_MAX = 38
_STORAGE = "storage"  # names the call that takes the values of an extension type
_JSON_WORDS = {"int64": "int", "bool": "bool"}


def plain(expression: Expression) -> Expression:
    """Give an operand a form that every kernel takes: no dictionary, view, extension or float16."""
    type_ = expression.type
    if isinstance(type_, pa.BaseExtensionType):
        storage = type_.storage_type
        stored = call(_STORAGE, lambda value: pc.cast(value, storage), expression)
        return plain(stored)
    plain_type = _plain_type(type_)
    return expression if plain_type == type_ else cast(expression, plain_type)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(type_):
        return _plain_type(type_.value_type)
    if pt.is_float16(type_):
        return pa.float32()
    if type_ == pa.string_view():
        return pa.string()
    if type_ == pa.binary_view() or pt.is_fixed_size_binary(type_):
        return pa.binary()
    return type_


def plain_for_cast(expression: Expression, type_: pa.DataType) -> Expression:
    """Give the operand of a cast its plain form, but leave a float16 that becomes text.

    Its text has the digits of a float16, and no ``.0`` behind whole numbers.
    """
    is_text = _is_text(type_) or type_ == pa.string_view()
    return expression if is_text and pt.is_float16(expression.type) else plain(expression)


def text(expression: Expression, *, name: str) -> Expression:
    """Return the operand as text. Raises PredicateError for another type."""
    expression = plain(expression)
    if pt.is_null(expression.type):
        return cast(expression, pa.string())
    if not (pt.is_string(expression.type) or pt.is_large_string(expression.type)):
        raise PredicateError(f"{name} needs text, not {expression.type}; write a cast")
    return expression


def as_float16(result: Expression, operands: Sequence[Expression]) -> Expression:
    """Return what was computed of float16 and integers in float16, as pylance does.

    Arrow has no kernels of float16, so that they are computed in float32, which rounds the same.
    """
    kinds = [operand.type for operand in operands if not pt.is_null(operand.type)]
    other_types = [type_ for type_ in kinds if not pt.is_float16(type_)]
    if len(other_types) < len(kinds) and all(map(pt.is_integer, other_types)):
        return cast(result, pa.float16())
    return result


def fit_float16(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Round integers, and a number beside a column, to float16 where the other operand is that."""
    return _as_float16_beside(left, right), _as_float16_beside(right, left)


def _as_float16_beside(operand: Expression, other: Expression) -> Expression:
    if not pt.is_float16(other.type):
        return operand
    is_number = isinstance(operand, Literal) and pt.is_float64(operand.type)
    if pt.is_integer(operand.type) or (is_number and isinstance(other, Column)):
        return cast(cast(operand, pa.float32()), pa.float16())
    return operand


def cast(expression: Expression, type_: pa.DataType) -> Expression:
    """Convert an expression, without a call when it has the type already."""
    if expression.type == type_:
        return expression
    return call(f"a cast to {type_}", cast_kernel(type_), expression)


def unify(
    left: Expression, right: Expression, *, fit: bool = True
) -> tuple[Expression, Expression]:
    """Bring two operands to one type. Raises PredicateError when there is none.

    ``fit``: a literal takes the column's type if it keeps its value so.
    """
    if fit:
        left, right = fit_float16(left, right)
    columns = isinstance(left, Column), isinstance(right, Column)
    left, right = plain(left), plain(right)
    if not fit:
        pass
    elif isinstance(right, Literal) and not isinstance(left, Literal):
        right = _fit_beside(right, left, is_column=columns[0])
    elif isinstance(left, Literal) and not isinstance(right, Literal):
        left = _fit_beside(left, right, is_column=columns[1])
    type_ = common_type(left.type, right.type)
    if type_ is None:
        raise _mismatch(left, right)
    return cast(left, type_), cast(right, type_)


def rounds_beside(literal: Literal, other: pa.DataType) -> bool:
    """Tell whether a fraction would be rounded in the type of what it is compared with.

    Beside a column it is; the result of a function is compared in the type of the fraction, as in
    pylance.
    """
    return bool(pt.is_float64(literal.type) and pt.is_float32(other))


def _fit_beside(literal: Literal, other: Expression, *, is_column: bool) -> Literal:
    """Bring a literal to the type of what it is compared with. Raises PredicateError."""
    if not is_column and rounds_beside(literal, other.type):
        return literal
    own, type_ = literal.type, other.type
    is_number = _is_number(own) or pt.is_boolean(own)
    if (_is_text(type_) or pt.is_date(type_)) and is_number and literal.scalar.is_valid:
        raise _mismatch(other, literal)  # not the other way round: a column is not converted
    try:
        return fit_literal(literal, type_)
    except PredicateError as exc:
        raise PredicateError(f"{_described(other)}, and {exc}; {_advice(other, literal)}") from exc


def _mismatch(left: Expression, right: Expression) -> PredicateError:
    """Return the error for operands without a common type: what is which, and what to write."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right = right, left
    return PredicateError(
        f"{_described(left)}, {_described(right)}: they cannot be compared; {_advice(left, right)}"
    )


def _as_written(operand: Expression) -> Expression:
    """Return an operand without the conversions that nobody wrote."""
    while isinstance(operand, Call) and (
        operand.name == _STORAGE or operand.name.startswith("a cast to")
    ):
        operand = operand.operands[0]
    return operand


def _is_json(operand: Expression) -> bool:
    return getattr(_as_written(operand).type, "extension_name", None) == "arrow.json"


def _shown_operand(operand: Expression) -> str:
    operand = _as_written(operand)
    if isinstance(operand, Column):
        return ".".join(operand.path)
    if isinstance(operand, Literal):
        value = operand.scalar.as_py()
        return str(value).lower() if isinstance(value, bool) else repr(value)
    return "the expression"


def _described(operand: Expression) -> str:
    shown, type_ = _shown_operand(operand), operand.type
    source = _as_written(operand).type
    if isinstance(source, pa.BaseExtensionType):
        type_ = "JSON" if _is_json(operand) else source
    if shown == "the expression":
        return f"{shown} is {type_}"
    if isinstance(operand, Literal):
        return f"{shown[:60]} is {type_}"
    return f"column {shown!r} is {type_}"


def _advice(operand: Expression, other: Expression) -> str:
    """Tell what to write where a literal, or another expression, does not fit an operand."""
    type_, name = operand.type, _shown_operand(operand)
    if _is_json(operand):
        word = _JSON_WORDS.get(str(other.type), "float" if _is_number(other.type) else "string")
        return f"write json_get_{word}({name}, 'key') for a value inside of it"
    if _is_text(type_) and isinstance(other, Literal):
        value = _shown_operand(other)
        return f"write {value!r} in quotes to compare text, or CAST({name} AS DOUBLE) for numbers"
    if pt.is_boolean(type_):
        return f"write true or false, or CAST({name} AS INT)"
    if pt.is_struct(type_):
        if not type_.num_fields:
            return "it has no fields"
        return f"name one of its fields, as in {name}.{type_.field(0).name}"
    if pt.is_nested(type_):
        return f"write array_has({name}, ...) or array_length({name})"
    if pt.is_date(type_):
        return "write date '2021-01-31'"
    if pt.is_time(type_):
        return "write time '12:00:00'"
    if pt.is_timestamp(type_):
        return "write timestamp '2021-01-31 12:00:00'"
    if _is_bytes(type_):
        return "write bytes as x'00ff'"
    if _is_number(type_) and isinstance(other, Literal):
        return f"write a number, or CAST({name} AS string) to compare text"
    return "write a cast"


def unify_all(operands: list[Expression]) -> list[Expression]:
    """Bring any number of operands to one type. Raises PredicateError when there is none."""
    first = next((operand for operand in operands if not isinstance(operand, Literal)), operands[0])
    for operand in operands:
        first, _ = unify(first, operand, fit=False)
    return [cast(plain(operand), first.type) for operand in operands]


def fit_literal(literal: Literal, type_: pa.DataType) -> Literal:
    """Return the literal in the column's type when that keeps its value, else as it is.

    Raises PredicateError for text that is no value of the type.
    """
    own = literal.type
    if own == type_ or pt.is_null(own) or pt.is_nested(type_):
        return literal
    if pt.is_string(own):
        return _fit_text(literal, type_)
    if pt.is_decimal(type_) and literal.digits:
        return _fit_digits(literal)
    if pt.is_integer(own) and (pt.is_integer(type_) or pt.is_floating(type_)):
        return _fitted(literal, type_)
    if pt.is_floating(own) and pt.is_floating(type_):
        return Literal(cast_value(literal.scalar, type_))
    if pt.is_timestamp(own) and pt.is_timestamp(type_) and (type_.tz or not own.tz):
        return _in_unit_of(literal, type_)
    if pt.is_floating(own) and pt.is_integer(type_) and literal.scalar.as_py().is_integer():
        return _fitted(literal, type_)
    return literal


def _in_unit_of(literal: Literal, type_: pa.DataType) -> Literal:
    """Bring a moment to the unit of a column, unless it is too far from 1970 for that."""
    try:
        return Literal(cast_value(literal.scalar, type_))
    except pa.ArrowInvalid:
        return literal


def _fitted(literal: Literal, type_: pa.DataType) -> Literal:
    try:
        return Literal(pc.cast(scalar_of(int(literal.scalar.as_py()), pa.int64()), type_))
    except (pa.ArrowException, OverflowError):
        try:
            return Literal(cast_value(literal.scalar, type_))
        except (pa.ArrowException, OverflowError):
            return literal


def _fit_digits(literal: Literal) -> Literal:
    try:
        return Literal(
            pc.cast(scalar_of(literal.digits), pa.decimal128(38, _scale(literal.digits)))
        )
    except pa.ArrowException:
        return literal


def _scale(digits: str) -> int:
    return len(digits.partition(".")[2]) if "e" not in digits.lower() else 0


def _fit_text(literal: Literal, type_: pa.DataType) -> Literal:
    if pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_large_string(type_):
        return Literal(pc.cast(literal.scalar, type_))
    if pt.is_string(type_):
        return literal
    if pt.is_time(type_):  # pylance refuses it too
        raise PredicateError(f"{literal.scalar.as_py()!r} is text, not a value of type {type_}")
    try:
        return Literal(cast_value(literal.scalar, type_))
    except (pa.ArrowException, ValueError) as exc:
        raise PredicateError(f"{literal.scalar.as_py()!r} is not a value of type {type_}") from exc


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which both are compared, None if there is none."""
    if left == right or pt.is_null(right):
        return left
    if pt.is_null(left):
        return right
    if _is_number(left) and _is_number(right):
        return _common_number(left, right)
    if pt.is_temporal(left) and pt.is_temporal(right):
        return _common_time(left, right)
    if {left, right} in ({pa.date32(), pa.int32()}, {pa.date32(), pa.int64()}):
        return pa.int64()  # the days since 1970
    texts = (_is_text(left), _is_text(right))
    if all(texts):
        return pa.large_string() if left != right else left
    bytes_ = (_is_bytes(left) or texts[0], _is_bytes(right) or texts[1])
    if all(bytes_):
        return pa.large_binary()
    if any(texts) and not pt.is_nested(left) and not pt.is_nested(right):
        return right if texts[0] else left
    if _is_list(left) and _is_list(right):
        item = common_type(left.value_type, right.value_type)
        return None if item is None else pa.list_(item)
    return None


def _is_list(type_: pa.DataType) -> bool:
    return bool(pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pt.is_string(type_) or pt.is_large_string(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pt.is_binary(type_) or pt.is_large_binary(type_))


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pt.is_floating(left) or pt.is_floating(right):
        if pt.is_decimal(left) or pt.is_decimal(right):
            return pa.float64()
        floats = [type_ for type_ in (left, right) if pt.is_floating(type_)]
        return max(floats, key=lambda type_: type_.bit_width)
    if pt.is_decimal(left) or pt.is_decimal(right):
        return _common_decimal(_as_decimal(left), _as_decimal(right))
    signed = (pt.is_signed_integer(left), pt.is_signed_integer(right))
    if signed[0] == signed[1]:
        return max(left, right, key=lambda type_: type_.bit_width)
    with_sign, without = (left, right) if signed[0] else (right, left)
    if with_sign.bit_width > without.bit_width:
        return with_sign
    return _INTEGERS.get((True, without.bit_width * 2), _BEYOND_INT64)


def _as_decimal(type_: pa.DataType) -> pa.DataType:
    if pt.is_decimal(type_):
        return type_
    return pa.decimal128(_INT_DIGITS[type_.bit_width], 0)


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= _DECIMAL_DIGITS_MAX:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal256(min(whole + scale, 76), scale)


def _common_time(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pt.is_timestamp(left) and pt.is_timestamp(right):
        unit = min(left.unit, right.unit, key=_UNITS.index)
        return pa.timestamp(unit, left.tz or right.tz)
    if pt.is_date(left) and pt.is_date(right):
        return pa.timestamp("ms")
    if pt.is_date(left) and pt.is_timestamp(right):
        return right
    if pt.is_timestamp(left) and pt.is_date(right):
        return left
    if pt.is_duration(left) and pt.is_duration(right):
        return pa.duration(max(left.unit, right.unit, key=_UNITS.index))
    if pt.is_time(left) and pt.is_time(right):
        unit = max(left.unit, right.unit, key=_UNITS.index)
        return pa.time64(unit) if unit in {"us", "ns"} else pa.time32(unit)
    return None


def uncast(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Compare an integer or decimal under a cast to an integer type as it is stored.

    So does DataFusion: values outside of the cast's type are no error, and the fraction of a
    decimal counts, though the cast by itself cuts it off.
    """
    if isinstance(left, Call) and left.name.startswith("a cast to") and isinstance(right, Literal):
        inner = left.operands[0]
        is_stored = pt.is_integer(inner.type) or pt.is_decimal(inner.type)
        is_whole = pt.is_integer(left.type) and pt.is_integer(right.type)
        if left.kernel.__class__ is partial and is_stored and is_whole:
            return inner, right
    if isinstance(left, Literal) and isinstance(right, Call):
        right, left = uncast(right, left)
    return left, right
