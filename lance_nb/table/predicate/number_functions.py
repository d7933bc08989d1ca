"""Functions of numbers and of null: sqrt, power, log, round, abs, gcd, greatest, coalesce, ...

A float32 is computed in float32, every other fraction in float64. Arrow's kernels are used where
they exist: like pylance they call the C library, so that results agree to the last bit, which
numpy's vectorized ones do not. Outside of a function's domain the result is NaN; its sign, which
decides where comparisons place it, is that of pylance on x86-64.

``log`` is to base 10, ``log(base, x)`` to another. A zero has no negative power (an error).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.arithmetic import arithmetic
from lance_nb.table.predicate.coercion import as_float16, cast, plain, unify, unify_all
from lance_nb.table.predicate.comparison import extreme, identical, less
from lance_nb.table.predicate.expression import (
    Expression,
    Kernel,
    Literal,
    Value,
    aligned,
    call,
    only_value,
    per_row,
    to_numpy,
    with_nulls_of,
)

Binder = Callable[[str, Sequence[Expression]], Expression]
_DIGITS_MAX = 400  # more make every factor zero or infinite


def numeric(expression: Expression, *, name: str) -> Expression:
    """Return a number operand. Raises PredicateError for another type."""
    type_ = expression.type
    expression = plain(expression)
    if pt.is_null(expression.type) or pt.is_float16(type_):
        return cast(expression, pa.float64())
    type_ = expression.type
    if not (pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_)):
        raise PredicateError(f"{name} needs a number, not {type_}; write a cast")
    return expression


def floating(expression: Expression, *, name: str) -> Expression:
    """Return a number operand as a float."""
    expression = numeric(expression, name=name)
    return expression if pt.is_floating(expression.type) else cast(expression, pa.float64())


def numpy_kernel(function: Callable[..., Any], type_: pa.DataType | None = None) -> Kernel:
    """Make a kernel of a numpy function; a null operand gives null."""

    def kernel(*values: Value) -> Value:
        arrays = aligned(*values)
        with np.errstate(all="ignore"):
            result = with_nulls_of(function(*map(to_numpy, arrays)), *arrays)
        result = pc.cast(result, type_ or values[0].type)
        return (
            only_value(result) if all(isinstance(value, pa.Scalar) for value in values) else result
        )

    return kernel


def _arrow(name: str, fallback: Callable[..., Any]) -> Kernel:
    """Return the kernel of Arrow; older releases lack some of them."""

    def kernel(*values: Value) -> Value:
        function = getattr(pc, name, None)
        return function(*values) if function is not None else numpy_kernel(fallback)(*values)

    return kernel


def _with_nan(kernel: Kernel, sign32: int, sign64: int) -> Kernel:
    """Give NaNs of operands that are no NaN a sign; a NaN operand stays what it is."""

    def signed(value: Value) -> Value:
        result = kernel(value)
        sign = sign32 if pt.is_float32(value.type) else sign64
        infinity = scalar_of(np.inf, result.type)
        # In the total order, only NaNs of the other sign lie beyond an infinity.
        is_outside = less(infinity, result) if sign < 0 else less(result, pc.negate(infinity))
        if not pc.any(is_outside).as_py():
            return result
        wrong = pc.fill_null(pc.and_not(is_outside, pc.is_nan(value)), False)
        return pc.if_else(wrong, scalar_of(np.copysign(np.nan, sign), result.type), result)

    return signed


def _of_one(kernel: Kernel) -> Binder:
    """Make a binder of a kernel of one float."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        return call(name, kernel, floating(operands[0], name=name))

    return bind


def _cbrt(value: Any) -> Any:
    # The root is rounded once, from more digits than the result has.
    wide = np.longdouble if value.dtype == np.float64 else np.float64
    return np.cbrt(value.astype(wide)).astype(value.dtype)


def _log1p(value: Any) -> Any:
    return to_numpy(_arrow("log1p", np.log1p)(pa.array(value)))


def _atanh(value: Any) -> Any:
    half, two = value.dtype.type(0.5), value.dtype.type(2)
    return half * _log1p((two * value) / (value.dtype.type(1) - value))


def _signum(value: Any) -> Any:
    signs = np.sign(value)
    return np.where(np.isnan(value), value.dtype.type(np.nan), signs)


def _degrees(value: Any) -> Any:
    return value * value.dtype.type(180 / np.pi)


def _round_half_away(values: Value) -> Value:
    return pc.round(values, 0, "half_towards_infinity")


_ln = _with_nan(_arrow("ln", np.log), -1, 1)


def _cot(value: Value) -> Value:
    return pc.divide(scalar_of(1, value.type), pc.tan(value))


def _log(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind log(value) and log(base, value), in the type of the value."""
    half = pt.is_float16(operands[-1].type)
    value = floating(operands[-1], name=name)
    if half:
        value = cast(value, pa.float32())
    base_operand = operands[0] if len(operands) == 2 else Literal(scalar_of(10.0))
    base = cast(floating(base_operand, name=name), value.type)

    def kernel(base: Value, value: Value) -> Value:
        return pc.divide(_ln(value), _ln(base))

    logarithm = call(name, kernel, base, value)
    return cast(logarithm, pa.float16()) if half else logarithm


def _power(name: str, operands: Sequence[Expression]) -> Expression:
    base, exponent = (numeric(operand, name=name) for operand in operands)
    if pt.is_decimal(base.type) and pt.is_integer(exponent.type):
        return call(name, per_row(_decimal_power(base.type), base.type), base, exponent)
    if pt.is_decimal(base.type):
        raise PredicateError(f"{name} of a decimal needs a whole exponent; cast it to double")

    def kernel(base: Value, exponent: Value) -> Value:
        zeros = pc.and_(pc.equal(base, 0.0), pc.less(exponent, 0.0))
        if pc.any(zeros).as_py():
            raise pa.ArrowInvalid("zero has no negative power")
        return pc.power(base, exponent)

    if isinstance(exponent, Literal) and exponent.scalar.is_valid and exponent.scalar.as_py() == 1:
        return cast(base, pa.float64())  # a NaN keeps its sign
    return call(name, kernel, *(cast(operand, pa.float64()) for operand in (base, exponent)))


def _decimal_power(type_: pa.DataType) -> Callable[[Decimal, int], Decimal]:
    """Raise a decimal to a whole power; digits that its type lacks are cut off."""
    unit = 10**type_.scale

    def power(base: Decimal, exponent: int) -> Decimal:
        whole = int(base.scaleb(type_.scale))
        if exponent < 0 or abs(whole).bit_length() * exponent > _DECIMAL_BITS_MAX:
            raise pa.ArrowInvalid(f"power: {base} ** {exponent} does not fit {type_}")
        result = unit if exponent == 0 else _cut(whole**exponent, unit ** (exponent - 1))
        return Decimal(result).scaleb(-type_.scale)

    return power


_DECIMAL_BITS_MAX = 1024


def _cut(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


def _alike(operands: Sequence[Expression], *, name: str) -> list[Expression]:
    """Return operands in one float type: float64 where one is that or a decimal, else float32."""
    wide = any(pt.is_float64(operand.type) or pt.is_decimal(operand.type) for operand in operands)
    bound = [numeric(operand, name=name) for operand in operands]
    return [cast(operand, pa.float64() if wide else pa.float32()) for operand in bound]


def _atan2(name: str, operands: Sequence[Expression]) -> Expression:
    return call(name, _arrow("atan2", np.arctan2), *_alike(operands, name=name))


def _nanvl(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(value: Value, other: Value) -> Value:
        return pc.if_else(pc.is_nan(value), other, value)

    result = call(name, kernel, *_alike(operands, name=name))
    return cast(result, pa.float16()) if all(map(_fits_float16, operands)) else result


def _fits_float16(operand: Expression) -> bool:
    type_ = operand.type
    return bool(pt.is_int8(type_) or pt.is_uint8(type_) or pt.is_float16(type_))


def _digits(operand: Expression, *, name: str) -> Expression:
    """Return the operand that counts digits. Raises PredicateError."""
    bound = plain(operand)
    if not pt.is_integer(bound.type) and not pt.is_null(bound.type):
        raise PredicateError(f"{name} needs a whole number of digits, not {bound.type}")
    return cast(bound, pa.int64())


@cache
def _powers_of_ten(dtype: type[np.floating[Any]]) -> Any:
    """Return 10 to each power from -_DIGITS_MAX, multiplied as the C runtime's powi does it."""
    powers = []
    with np.errstate(over="ignore"):
        for count in range(_DIGITS_MAX + 1):
            power, factor, exponent = dtype(1), dtype(10), count
            while exponent:
                power = power * factor if exponent & 1 else power
                factor, exponent = factor * factor, exponent >> 1
            powers.append(power)
        whole = np.array(powers, dtype)
        return np.concatenate([dtype(1) / whole[:0:-1], whole])


def _scaled(rounding: Kernel, *, wraps: bool) -> Kernel:
    """Make a kernel that rounds at a number of decimal digits, which is an int32.

    ``wraps``: a larger number of digits is taken modulo 2**32, as pylance does in trunc.
    """

    def kernel(value: Value, digits: Value) -> Value:
        arrays = aligned(digits)
        wide = to_numpy(arrays[0])
        counts = wide.astype(np.int32)
        if not wraps and not np.array_equal(counts, wide):
            raise pa.ArrowInvalid("the number of digits is outside of int32")
        counts = counts.clip(-_DIGITS_MAX, _DIGITS_MAX)
        powers = _powers_of_ten(np.float32 if pt.is_float32(value.type) else np.float64)
        factors = with_nulls_of(powers[counts + _DIGITS_MAX], *arrays)
        factor = factors[0] if isinstance(digits, pa.Scalar) else factors
        return pc.divide(rounding(pc.multiply(value, factor)), factor)

    return kernel


def _round(name: str, operands: Sequence[Expression]) -> Expression:
    value = plain(operands[0])
    if pt.is_decimal(value.type):
        return _rounded_decimal(name, value, operands[1:])
    value = floating(operands[0], name=name)
    if len(operands) == 1:
        return call(name, _round_half_away, value)
    return call(
        name, _scaled(_round_half_away, wraps=False), value, _digits(operands[1], name=name)
    )


def _rounded_decimal(name: str, value: Expression, operands: Sequence[Expression]) -> Expression:
    digits = 0
    if operands:
        bound = _digits(operands[0], name=name)
        if not isinstance(bound, Literal) or not bound.scalar.is_valid:
            raise PredicateError(f"{name} of a decimal needs its number of digits as a literal")
        digits = bound.scalar.as_py()
    scale = min(max(digits, 0), value.type.scale)
    make = pa.decimal128 if pt.is_decimal128(value.type) else pa.decimal256

    def kernel(rows: Value) -> Value:
        rounded = pc.round(rows, ndigits=digits, round_mode="half_towards_infinity")
        return pc.cast(rounded, make(value.type.precision, scale))

    return call(name, kernel, value)


def _trunc(name: str, operands: Sequence[Expression]) -> Expression:
    if len(operands) == 1:
        return call(name, _truncated, floating(operands[0], name=name))
    value = _alike(operands[:1], name=name)[0]
    return call(name, _scaled(_towards_zero, wraps=True), value, _digits(operands[1], name=name))


def _towards_zero(value: Value) -> Value:
    return pc.trunc(value)


def _truncated(value: Value) -> Value:
    """Cut the fraction off: a zero loses its sign, a fraction below zero keeps it."""
    return pc.if_else(pc.equal(value, 0.0), scalar_of(0, value.type), pc.trunc(value))


_KERNELS: dict[str, Kernel] = {
    "ceil": numpy_kernel(np.ceil), "floor": numpy_kernel(np.floor),
    "sqrt": _with_nan(numpy_kernel(np.sqrt), -1, -1), "cbrt": numpy_kernel(_cbrt),
    "exp": _arrow("exp", np.exp), "ln": _ln, "log10": _with_nan(_arrow("log10", np.log10), 1, 1),
    "log2": _with_nan(_arrow("log2", np.log2), -1, 1), "signum": numpy_kernel(_signum),
    "sin": _arrow("sin", np.sin), "cos": _arrow("cos", np.cos), "tan": _arrow("tan", np.tan),
    "asin": _with_nan(_arrow("asin", np.arcsin), 1, 1),
    "acos": _with_nan(_arrow("acos", np.arccos), 1, 1), "atan": _arrow("atan", np.arctan),
    "sinh": _arrow("sinh", np.sinh), "cosh": _arrow("cosh", np.cosh),
    "tanh": _arrow("tanh", np.tanh), "asinh": _arrow("asinh", np.arcsinh),
    "acosh": _with_nan(_arrow("acosh", np.arccosh), -1, -1),
    "atanh": _with_nan(numpy_kernel(_atanh), -1, -1), "cot": _cot,
    "degrees": numpy_kernel(_degrees), "radians": numpy_kernel(np.radians),
    "isnan": numpy_kernel(np.isnan, pa.bool_()),
    "iszero": numpy_kernel(lambda value: value == 0, pa.bool_()),
}  # fmt: skip

# name -> (binder, fewest operands, most operands)


def _abs(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(value: Value) -> Value:
        return pc.abs_checked(value)

    return as_float16(call(name, kernel, numeric(operands[0], name=name)), operands)


def _extreme(name: str, operands: Sequence[Expression]) -> Expression:
    kernel = partial(extreme, largest=name == "greatest")
    return as_float16(
        call(name, kernel, *unify_all([plain(operand) for operand in operands])), operands
    )


def _coalesce(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(*values: Value) -> Value:
        return pc.coalesce(*values)

    return as_float16(
        call(name, kernel, *unify_all([plain(operand) for operand in operands])), operands
    )


def _nvl(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind nvl, which knows neither decimals nor a type for both uint64 and signed integers."""
    bound = [plain(operand) for operand in operands]
    type_ = unify_all(bound)[0].type
    if pt.is_decimal(type_):
        is_whole = all(pt.is_integer(operand.type) for operand in bound)
        bound = [cast(operand, pa.float32() if is_whole else pa.float64()) for operand in bound]
    return _coalesce(name, bound)


def _nullif(name: str, operands: Sequence[Expression]) -> Expression:
    left, right = unify(*operands, fit=False)

    def kernel(value: Value, other: Value) -> Value:
        same = pc.fill_null(identical(value, other), False)
        return pc.if_else(same, scalar_of(None, value.type), value)

    return as_float16(call(name, kernel, left, right), operands)


def _nvl2(name: str, operands: Sequence[Expression]) -> Expression:
    test, value, other = unify_all([plain(operand) for operand in operands])
    return choose(name, [(call(name, _is_valid, test), value)], other)


def _is_valid(value: Value) -> Value:
    return pc.is_valid(value)


def choose(
    name: str, branches: Sequence[tuple[Expression, Expression]], otherwise: Expression
) -> Expression:
    """Bind CASE: the value of the first branch whose test is true."""
    values = unify_all([*(plain(value) for _, value in branches), plain(otherwise)])
    result = values[-1]

    def kernel(test: Value, value: Value, default: Value) -> Value:
        return pc.if_else(pc.fill_null(test, False), value, default)

    for (test, _), value in zip(reversed(branches), reversed(values[:-1]), strict=True):
        result = call(name, kernel, test, value, result)
    return as_float16(result, [*(value for _, value in branches), otherwise])


def _whole(function: Callable[..., Any]) -> Binder:
    """Make a binder of a numpy function of int64."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        bound = [numeric(operand, name=name) for operand in operands]
        for operand, bound_operand in zip(operands, bound, strict=True):
            if not pt.is_integer(bound_operand.type) and not pt.is_null(operand.type):
                raise PredicateError(
                    f"{name} needs whole numbers, not {operand.type}; write a cast"
                )
        wide = [cast(operand, pa.int64()) for operand in bound]
        return call(name, numpy_kernel(function, pa.int64()), *wide)

    return bind


def _magnitudes(*values: Any) -> list[Any]:
    return [np.abs(value).view(np.uint64) for value in values]


def _gcd(left: Any, right: Any) -> Any:
    return _as_signed("gcd", np.gcd(*_magnitudes(left, right)))


def _lcm(left: Any, right: Any) -> Any:
    left_magnitudes, other = _magnitudes(left, right)
    part = left_magnitudes // np.maximum(np.gcd(left_magnitudes, other), 1)
    if np.any((other > 0) & (part > _INT64_MAX // np.maximum(other, 1))):
        raise pa.ArrowInvalid("lcm: a result is outside of int64")
    return (part * other).view(np.int64)


def _as_signed(name: str, result: Any) -> Any:
    if result.size and int(result.max()) > _INT64_MAX:
        raise pa.ArrowInvalid(f"{name}: a result is outside of int64")
    return result.view(np.int64)


def _factorial(values: Any) -> Any:
    if values.size and int(values.max()) >= len(_FACTORIALS):
        raise pa.ArrowInvalid("factorial of at most 20")
    return _FACTORIALS[np.maximum(values, 0)]


def _mod(_name: str, operands: Sequence[Expression]) -> Expression:
    return arithmetic("%", operands[0], operands[1])


def _pi(_name: str, _operands: Sequence[Expression]) -> Expression:
    return Literal(scalar_of(math.pi))


_INT64_MAX = np.uint64((1 << 63) - 1)
_FACTORIALS = np.array([math.factorial(number) for number in range(21)], np.int64)
# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "abs": (_abs, 1, 1),
    "gcd": (_whole(_gcd), 2, 2),
    "lcm": (_whole(_lcm), 2, 2),
    "factorial": (_whole(_factorial), 1, 1),
    "mod": (_mod, 2, 2),
    "pi": (_pi, 0, 0),
    **dict.fromkeys(("greatest", "least"), (_extreme, 1, 64)),
    "coalesce": (_coalesce, 1, 64),
    **dict.fromkeys(("nvl", "ifnull"), (_nvl, 2, 2)),
    "nullif": (_nullif, 2, 2),
    "nvl2": (_nvl2, 3, 3),
    **{name: (_of_one(kernel), 1, 1) for name, kernel in _KERNELS.items()},
    "atan2": (_atan2, 2, 2),
    "log": (_log, 1, 2),
    **dict.fromkeys(("power", "pow"), (_power, 2, 2)),
    "round": (_round, 1, 2),
    "trunc": (_trunc, 1, 2),
    "nanvl": (_nanvl, 2, 2),
}
