"""Functions of whole numbers and of null: abs, gcd, factorial, greatest, coalesce, nullif, ..."""

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
from lance_nb.table.predicate.coercion import as_float16, cast, plain, unify, unify_all
from lance_nb.table.predicate.comparison import extreme, identical
from lance_nb.table.predicate.expression import (
    Expression,
    Literal,
    Value,
    call,
)
from lance_nb.table.predicate.float_functions import Binder, numeric, numpy_kernel


def _abs(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        return pc.abs_checked(value)

    return as_float16(call(name, kernel, numeric(operands[0], name=name)), operands)


def _extreme(name: str, operands: Sequence[Expression]) -> Expression:
    kernel = partial(extreme, largest=name == "greatest")
    return as_float16(call(name, kernel, *unify_all([plain(one) for one in operands])), operands)


def _coalesce(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(*values: Value) -> Value:
        import pyarrow.compute as pc

        return pc.coalesce(*values)

    return as_float16(call(name, kernel, *unify_all([plain(one) for one in operands])), operands)


def _nvl(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind nvl, which knows neither decimals nor a type for both uint64 and signed integers."""
    bound = [plain(one) for one in operands]
    type_ = unify_all(bound)[0].type
    if pt.is_decimal(type_):
        is_whole = all(pt.is_integer(one.type) for one in bound)
        bound = [cast(one, pa.float32() if is_whole else pa.float64()) for one in bound]
    return _coalesce(name, bound)


def _nullif(name: str, operands: Sequence[Expression]) -> Expression:
    left, right = unify(*operands, fit=False)

    def kernel(value: Value, other: Value) -> Value:
        import pyarrow.compute as pc

        same = pc.fill_null(identical(value, other), False)
        return pc.if_else(same, pa.scalar(None, value.type), value)

    return as_float16(call(name, kernel, left, right), operands)


def _nvl2(name: str, operands: Sequence[Expression]) -> Expression:
    given, value, other = unify_all([plain(one) for one in operands])
    return choose(name, [(call(name, _is_valid, given), value)], other)


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
    return as_float16(found, [*(value for _, value in branches), otherwise])


def _whole(function: Callable[..., Any]) -> Binder:
    """Make a binder of a numpy function of int64."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        bound = [numeric(one, name=name) for one in operands]
        for given, one in zip(operands, bound, strict=True):
            if not pt.is_integer(one.type) and not pt.is_null(given.type):
                raise PredicateError(f"{name} needs whole numbers, not {given.type}; write a cast")
        wide = [cast(one, pa.int64()) for one in bound]
        return call(name, numpy_kernel(function, pa.int64()), *wide)

    return bind


def _magnitudes(*values: Any) -> list[Any]:
    return [np.abs(value).view(np.uint64) for value in values]


def _gcd(left: Any, right: Any) -> Any:
    return _as_signed("gcd", np.gcd(*_magnitudes(left, right)))


def _lcm(left: Any, right: Any) -> Any:
    one, other = _magnitudes(left, right)
    part = one // np.maximum(np.gcd(one, other), 1)
    if np.any((other > 0) & (part > _INT64_MAX // np.maximum(other, 1))):
        raise pa.ArrowInvalid("lcm: a result is outside of int64")
    return (part * other).view(np.int64)


def _as_signed(name: str, found: Any) -> Any:
    if found.size and int(found.max()) > _INT64_MAX:
        raise pa.ArrowInvalid(f"{name}: a result is outside of int64")
    return found.view(np.int64)


def _factorial(values: Any) -> Any:
    if values.size and int(values.max()) >= len(_FACTORIALS):
        raise pa.ArrowInvalid("factorial of at most 20")
    return _FACTORIALS[np.maximum(values, 0)]


def _mod(_name: str, operands: Sequence[Expression]) -> Expression:
    return arithmetic("%", operands[0], operands[1])


def _pi(_name: str, _operands: Sequence[Expression]) -> Expression:
    return Literal(pa.scalar(math.pi))


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
}
