"""Functions of numbers and of null: abs, round, sqrt, greatest, coalesce, nullif, ...

Roots, powers and logarithms are computed in float64, of a float32 in float32, and follow IEEE
(``sqrt(-1)`` is NaN). ``log`` is to base 10, ``log(base, x)`` to another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.arithmetic import arithmetic
from lance_nb.table.predicate.coercion import cast, plain, unify, unify_all
from lance_nb.table.predicate.comparison import equal, extreme
from lance_nb.table.predicate.expression import (
    Expression,
    Literal,
    Value,
    aligned,
    call,
    only_value,
    to_numpy,
    with_nulls_of,
)
from lance_nb.table.predicate.string_functions import literal_of

Binder = Callable[[str, Sequence[Expression]], Expression]


def numeric(expression: Expression, *, name: str) -> Expression:
    """Return a number operand. Raises PredicateError for another type."""
    expression = plain(expression)
    type_ = expression.type
    if pt.is_null(type_):
        return cast(expression, pa.float64())
    if not (pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_)):
        raise PredicateError(f"{name} needs a number, not {type_}; write a cast")
    return expression


def floating(expression: Expression, *, name: str) -> Expression:
    """Return a number operand as a float."""
    expression = numeric(expression, name=name)
    return expression if pt.is_floating(expression.type) else cast(expression, pa.float64())


def _numpy(function: Callable[..., Any], type_: pa.DataType | None = None) -> Binder:
    """Make a binder of a numpy function of floats."""

    def kernel(*values: Value) -> Value:
        arrays = aligned(*values)
        with np.errstate(all="ignore"):
            found = with_nulls_of(function(*map(to_numpy, arrays)), *arrays)
        found = found.cast(type_ or values[0].type)
        return only_value(found) if all(isinstance(one, pa.Scalar) for one in values) else found

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        bound = [floating(one, name=name) for one in operands]
        if len(bound) == 2:
            bound = list(unify(*bound))
        return call(name, kernel, *bound)

    return bind


def _abs(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        return pc.abs_checked(value)

    return call(name, kernel, numeric(operands[0], name=name))


def _half_away(value: Any) -> Any:
    return np.copysign(np.floor(np.abs(value) + 0.5), value)


def _round(name: str, operands: Sequence[Expression]) -> Expression:
    digits = (
        operands[1].scalar.as_py() if len(operands) == 2 and isinstance(operands[1], Literal) else 0
    )
    if len(operands) == 2 and not isinstance(operands[1], Literal):
        raise PredicateError("round needs its number of digits as a literal")

    value = plain(operands[0])
    if pt.is_decimal(value.type):
        return _rounded_decimal(name, value, digits)

    def scaled(value: Any) -> Any:
        factor = value.dtype.type(10.0**digits)
        return _half_away(value * factor) / factor

    return _numpy(scaled)(name, operands[:1])


def _rounded_decimal(name: str, value: Expression, digits: int) -> Expression:
    kept = min(max(digits, 0), value.type.scale)
    make = pa.decimal128 if pt.is_decimal128(value.type) else pa.decimal256

    def kernel(rows: Value) -> Value:
        import pyarrow.compute as pc

        found = pc.round(rows, ndigits=digits, round_mode="half_towards_infinity")
        return found.cast(make(value.type.precision, kept))

    return call(name, kernel, value)


def _exp(value: Any) -> Any:
    return np.exp(value.astype(np.float64))  # numpy's own exp of float32 is off by its last bit


def _power(name: str, operands: Sequence[Expression]) -> Expression:
    wide = [cast(floating(one, name=name), pa.float64()) for one in operands]
    return _numpy(np.power)(name, wide)


def _log(name: str, operands: Sequence[Expression]) -> Expression:
    if len(operands) == 1:
        return _numpy(np.log10)(name, operands)
    return _numpy(lambda base, value: np.log(value) / np.log(base))(name, operands)


def _extreme(name: str, operands: Sequence[Expression]) -> Expression:
    kernel = partial(extreme, largest=name == "greatest")
    return call(name, kernel, *unify_all([plain(one) for one in operands]))


def _coalesce(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(*values: Value) -> Value:
        import pyarrow.compute as pc

        return pc.coalesce(*values)

    return call(name, kernel, *unify_all([plain(one) for one in operands]))


def _nullif(name: str, operands: Sequence[Expression]) -> Expression:
    left, right = unify(*operands)

    def kernel(value: Value, other: Value) -> Value:
        import pyarrow.compute as pc

        same = pc.fill_null(equal(value, other), False)
        return pc.if_else(same, pa.scalar(None, value.type), value)

    return call(name, kernel, left, right)


def _nvl2(name: str, operands: Sequence[Expression]) -> Expression:
    test = call(name, _is_valid, plain(operands[0]))
    return choose(name, [(test, operands[1])], operands[2])


def _is_valid(value: Value) -> Value:
    import pyarrow.compute as pc

    return pc.is_valid(value)


def choose(
    name: str, branches: Sequence[tuple[Expression, Expression]], otherwise: Expression
) -> Expression:
    """Bind CASE: the value of the first branch whose test is true."""
    values = unify_all([*(plain(value) for _, value in branches), plain(otherwise)])
    found = values[-1]

    def kernel(test: Value, value: Value, rest: Value) -> Value:
        import pyarrow.compute as pc

        return pc.if_else(pc.fill_null(test, False), value, rest)

    for (test, _), value in zip(reversed(branches), reversed(values[:-1]), strict=True):
        found = call(name, kernel, test, value, found)
    return found


def _truncated(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind trunc(value, digits): towards zero."""
    if len(operands) == 1:
        return _numpy(lambda value: np.trunc(value) + 0)(name, operands)  # -0.5 becomes 0, not -0
    digits = literal_of(operands[1], name=name)
    if not isinstance(digits, int) or abs(digits) > _DIGITS_MAX:
        raise PredicateError(f"{name} needs its number of digits as a literal, at most 300")
    factor = 10.0**digits
    return _numpy(lambda value: np.trunc(value * factor) / factor)(name, operands[:1])


def _whole(name: str, function: Callable[..., Any]) -> Binder:
    """Make a binder of a numpy function of int64."""

    def kernel(*values: Value) -> Value:
        arrays = aligned(*values)
        found = with_nulls_of(function(*map(to_numpy, arrays)), *arrays)
        return only_value(found) if all(isinstance(one, pa.Scalar) for one in values) else found

    def bind(_name: str, operands: Sequence[Expression]) -> Expression:
        return call(name, kernel, *(cast(numeric(one, name=name), pa.int64()) for one in operands))

    return bind


def _factorial(values: Any) -> Any:
    if values.size and int(values.max()) >= len(_FACTORIALS):
        raise pa.ArrowInvalid("factorial of at most 20")
    return _FACTORIALS[np.maximum(values, 0)]


def _mod(_name: str, operands: Sequence[Expression]) -> Expression:
    return arithmetic("%", operands[0], operands[1])


def _pi(_name: str, _operands: Sequence[Expression]) -> Expression:
    return Literal(pa.scalar(math.pi))


_DIGITS_MAX = 300
_FACTORIALS = np.array([math.factorial(number) for number in range(21)], np.int64)
_PLAIN: dict[str, Callable[..., Any]] = {
    "ceil": np.ceil, "floor": np.floor, "sqrt": np.sqrt, "cbrt": np.cbrt,
    "exp": _exp, "ln": np.log, "log10": np.log10, "log2": np.log2, "signum": np.sign,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "degrees": np.degrees,
    "radians": np.radians, "acosh": np.arccosh, "asinh": np.arcsinh, "atanh": np.arctanh,
    "cot": lambda value: 1 / np.tan(value),
}  # fmt: skip

# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **{name: (_numpy(function), 1, 1) for name, function in _PLAIN.items()},
    "abs": (_abs, 1, 1),
    "trunc": (_truncated, 1, 2),
    "gcd": (_whole("gcd", np.gcd), 2, 2),
    "lcm": (_whole("lcm", np.lcm), 2, 2),
    "factorial": (_whole("factorial", _factorial), 1, 1),
    "round": (_round, 1, 2),
    "atan2": (_numpy(np.arctan2), 2, 2),
    "log": (_log, 1, 2),
    **dict.fromkeys(("power", "pow"), (_power, 2, 2)),
    "mod": (_mod, 2, 2),
    "pi": (_pi, 0, 0),
    "isnan": (_numpy(np.isnan, pa.bool_()), 1, 1),
    "iszero": (_numpy(lambda value: value == 0, pa.bool_()), 1, 1),
    "nanvl": (_numpy(lambda value, other: np.where(np.isnan(value), other, value)), 2, 2),
    **dict.fromkeys(("greatest", "least"), (_extreme, 1, 64)),
    "coalesce": (_coalesce, 1, 64),
    **dict.fromkeys(("nvl", "ifnull"), (_coalesce, 2, 2)),
    "nullif": (_nullif, 2, 2),
    "nvl2": (_nvl2, 3, 3),
}
