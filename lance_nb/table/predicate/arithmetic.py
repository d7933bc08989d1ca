"""Arithmetic: + - * / % and the sign, in the type where both operands meet.

Integers wrap around, ``/`` of integers drops the fraction and both ``/`` and ``%`` by zero are
errors; floats follow IEEE. Decimals keep their exact digits (``/`` has four more than the
dividend, as in DataFusion, at most 38 in all). A timestamp less a timestamp is a duration; a date
and a whole number of days give a date, a date less a date the days between; an interval can be
added to or taken from both.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.encodings.kernels.memory import allocate, to_integers
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import as_float16, cast, fit_float16, plain, unify
from lance_nb.table.predicate.expression import (
    Expression,
    Literal,
    Value,
    aligned,
    call,
    null_of_null,
    only_value,
    per_row,
    to_numpy,
    with_nulls_of,
)

_DIVISION_DIGITS = 4
_DECIMAL256_DIGITS = 76
_DECIMAL128_DIGITS = 38
_BLOCK_ROWS = 1 << 14
_UINT32_SIZE = 1 << 32


def arithmetic(sign: str, left: Expression, right: Expression) -> Expression:
    """Bind ``left sign right``. Raises PredicateError for types without arithmetic."""
    left, right = fit_float16(left, right)
    return as_float16(_arithmetic(sign, plain(left), plain(right)), (left, right))


def _arithmetic(sign: str, left: Expression, right: Expression) -> Expression:
    if pt.is_temporal(left.type) or pt.is_temporal(right.type):
        return _time_arithmetic(sign, left, right)
    if pt.is_decimal(left.type) or pt.is_decimal(right.type):
        result = _decimal_arithmetic(sign, left, right)
        if result is not None:
            return result
    left, right = unify(left, right, fit=False)
    if not (pt.is_integer(left.type) or pt.is_floating(left.type) or pt.is_decimal(left.type)):
        raise PredicateError(f"{sign} needs numbers, not {left.type}")
    if pt.is_decimal(left.type):
        return arithmetic(sign, left, right)
    return null_of_null(call(f"operator {sign}", _KERNELS[sign], left, right))


def negative(operand: Expression) -> Expression:
    """Bind ``- operand``."""
    original, operand = operand, plain(operand)
    if isinstance(operand, Literal) and operand.digits:
        text = "-" + operand.digits if operand.digits[0] != "-" else operand.digits[1:]
        return number(text)
    if pt.is_unsigned_integer(operand.type):
        raise PredicateError(f"{operand.type} has no negative numbers; write a cast")
    return as_float16(call("operator -", _negate, operand), [original])


def shift(function: str, left: Expression, right: Expression) -> Expression:
    """Shift bits by ``shift_left`` or ``shift_right`` of Arrow."""

    def kernel(left: Value, right: Value) -> Value:
        return getattr(pc, function)(left, right)

    return call(function, kernel, *unify(left, right))


def number(digits: str) -> Literal:
    """Read a number as SQL writes it: int64 where it fits, uint64, else float64."""
    try:
        whole = int(digits)
    except ValueError:
        return Literal(scalar_of(float(digits)), digits)
    if -(1 << 63) <= whole < 1 << 63:
        return Literal(scalar_of(whole), digits)
    if 0 <= whole < 1 << 64:
        return Literal(scalar_of(whole, pa.uint64()), digits)
    return Literal(scalar_of(float(digits)), digits)


def _negate(value: Value) -> Value:
    return pc.negate(value)


def _add(left: Value, right: Value) -> Value:
    return pc.add(left, right)


def _subtract(left: Value, right: Value) -> Value:
    return pc.subtract(left, right)


def _multiply(left: Value, right: Value) -> Value:
    return pc.multiply(left, right)


def _divide(left: Value, right: Value) -> Value:
    return pc.divide(left, right)


def modulo(left: Value, right: Value) -> Value:
    """Compute the remainder, with the dividend's sign."""
    if pt.is_integer(left.type):
        divisor = right.as_py() if isinstance(right, pa.Scalar) else None
        if divisor is not None and divisor > 0 and not isinstance(left, pa.Scalar):
            chunks = left.chunks if isinstance(left, pa.ChunkedArray) else [left]
            return pa.chunked_array([_remainders(chunk, divisor) for chunk in chunks], left.type)
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    dividends, divisors = aligned(left, right)
    with np.errstate(all="ignore"):
        remainders = np.fmod(to_numpy(dividends), to_numpy(divisors))
    result = pc.cast(with_nulls_of(remainders, dividends, divisors), left.type)
    scalars = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    return only_value(result) if scalars else result


def _remainders(dividends: pa.Array, divisor: int) -> pa.Array:
    """Divide integers by a positive one; numpy multiplies instead, where Arrow divides.

    In blocks that stay in the cache. Small values of 64 bits are divided as 32 bits.
    """
    values = to_integers(dividends)
    out = allocate(values.nbytes).view(values.dtype)
    by = values.dtype.type(divisor)
    small = np.uint32(divisor) if values.itemsize == 8 and divisor < _UINT32_SIZE else None
    for start in range(0, len(values), _BLOCK_ROWS):
        part, remainders = values[start : start + _BLOCK_ROWS], out[start : start + _BLOCK_ROWS]
        if small is not None and part.view(np.uint64).max() < _UINT32_SIZE:
            narrow = part.astype(np.uint32)
            quotients = narrow // small
            np.multiply(quotients, small, out=quotients)
            np.subtract(narrow, quotients, out=remainders, casting="unsafe")
            continue
        np.floor_divide(part, by, out=remainders)
        np.multiply(remainders, by, out=remainders)
        np.subtract(part, remainders, out=remainders)
        if values.dtype.kind == "i" and part.min() < 0:
            # Those were the remainders of floor division.
            remainders -= by * ((part < 0) & (remainders != 0))
    result = pa.Array.from_buffers(dividends.type, len(values), [None, pa.py_buffer(out)])
    if not dividends.null_count:
        return result
    return pc.if_else(pc.is_valid(dividends), result, pa.scalar(None, dividends.type))


_KERNELS: dict[str, Callable[[Value, Value], Value]] = {
    "+": _add, "-": _subtract, "*": _multiply, "/": _divide, "%": modulo,
}  # fmt: skip


def _decimal_arithmetic(sign: str, left: Expression, right: Expression) -> Expression | None:
    """Bind arithmetic of decimals and integers, None when another type takes part."""
    operands = []
    for operand in (left, right):
        if pt.is_integer(operand.type):
            operands.append(cast(operand, pa.decimal128(_digits(operand), 0)))
        elif pt.is_decimal(operand.type):
            operands.append(operand)
        else:
            return None
    if sign == "%":
        return call("operator %", *_decimal_remainder(*operands))
    types = [operand.type for operand in operands]
    kernel = _KERNELS[sign]
    if sign == "/":
        kernel = _decimal_quotient(*types)
    elif sign == "*" and sum(type_.precision for type_ in types) >= _DECIMAL128_DIGITS:
        kernel = _wide_product(*types)
    return call(f"operator {sign}", kernel, *operands)


def _wide_product(left: pa.DataType, right: pa.DataType) -> Callable[[Value, Value], Value]:
    """Return the kernel of a product that may need more digits than a decimal has.

    Its type has as many as there are; a product that needs more is an error.
    """
    is_wide = pt.is_decimal256(left) or pt.is_decimal256(right)
    digits = _DECIMAL256_DIGITS if is_wide else _DECIMAL128_DIGITS
    precision = min(left.precision + right.precision + 1, digits)
    scale = min(left.scale + right.scale, precision)
    type_ = (pa.decimal256 if is_wide else pa.decimal128)(precision, scale)
    return per_row(Context(prec=2 * _DECIMAL256_DIGITS).multiply, type_)


def _decimal_remainder(dividend: Expression, divisor: Expression) -> tuple[Any, ...]:
    """Return the kernel of ``%``, whose result has the sign of the dividend, and its operands."""
    left, right = dividend.type, divisor.type
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    digits = max(whole + scale, 1)
    is_wide = pt.is_decimal256(left) or pt.is_decimal256(right)
    type_ = (pa.decimal256 if is_wide else pa.decimal128)(digits, scale)
    context = Context(prec=_DECIMAL256_DIGITS)

    def remainder(number: Decimal, by: Decimal) -> Decimal:
        if not by:
            raise pa.ArrowInvalid("divide by zero")
        return context.remainder(number, by)

    return per_row(remainder, type_), dividend, divisor


def _digits(operand: Expression) -> int:
    if isinstance(operand, Literal) and operand.scalar.is_valid:
        return len(str(abs(operand.scalar.as_py())))
    return {8: 3, 16: 5, 32: 10, 64: 20}[int(operand.type.bit_width)]


def _decimal_quotient(
    dividend: pa.DataType, divisor: pa.DataType
) -> Callable[[Value, Value], Value]:
    scale = min(dividend.scale + _DIVISION_DIGITS, 38)
    precision = min(dividend.precision + divisor.scale + _DIVISION_DIGITS, 38)

    def divide(left: Value, right: Value) -> Value:
        # Arrow adds its own digits to the quotient; what is too much is cut off.
        quotient = pc.divide(pc.cast(left, pa.decimal256(38, dividend.scale)), right)
        cut = pc.round(quotient, scale, "towards_zero")
        return pc.cast(cut, pa.decimal128(precision, scale))

    return divide


def _time_arithmetic(sign: str, left: Expression, right: Expression) -> Expression:
    if sign not in {"+", "-"}:
        raise PredicateError(f"{left.type} {sign} {right.type} has no meaning")
    if pt.is_date(left.type) and pt.is_integer(right.type):
        days = cast(cast(right, pa.int64()), pa.duration("s"))
        return call(f"operator {sign}", _days_kernel(sign, left.type), left, days)
    if pt.is_date(left.type) and pt.is_date(right.type) and sign == "-":
        return call("operator -", _days_between, left, right)
    if pt.is_date(left.type) and pt.is_duration(right.type):
        left = cast(left, pa.timestamp("us"))
    if pt.is_duration(right.type) and pt.is_timestamp(left.type):
        right = _in_ticks_of(left, right)
    if pt.is_duration(left.type) and not pt.is_duration(right.type) and sign == "+":
        return _time_arithmetic(sign, right, left)
    if pt.is_timestamp(left.type) and pt.is_timestamp(right.type):
        left, right = unify(left, right)
    return call(f"operator {sign}", _KERNELS[sign], left, right)


def _in_ticks_of(times: Expression, length: Expression) -> Expression:
    """Bring a length of time to the unit of the times, where it fits; else both meet in Arrow."""
    tick_type = pa.duration(times.type.unit)
    if not isinstance(length, Literal) or length.type == tick_type:
        return length
    try:
        return Literal(pc.cast(length.scalar, tick_type))
    except pa.ArrowInvalid:
        return length


def _days_between(left: Value, right: Value) -> Value:
    days = [
        pc.cast(pc.cast(pc.cast(array, pa.date32()), pa.int32()), pa.int64())
        for array in (left, right)
    ]
    return _subtract(*days)


def _days_kernel(sign: str, type_: pa.DataType) -> Callable[[Value, Value], Value]:
    day_s = 86_400

    def kernel(date: Value, days: Value) -> Value:
        seconds = pc.multiply(days, scalar_of(day_s))
        return pc.cast(_KERNELS[sign](pc.cast(date, pa.timestamp("s")), seconds), type_)

    return kernel
