"""Arithmetic, functions and comparisons of numbers at the edges: bits, types and rows of pylance.

The table holds NaNs of both signs, zeros of both signs, infinities, subnormals, the ends of every
type, and nulls, for each width of float and integer.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

_NAN_BELOW, _OTHER_NAN = (
    struct.unpack("<d", struct.pack("<Q", bits))[0]
    for bits in (0xFFF8000000000000, 0x7FF8000000000001)
)
_FLOATS = [
    math.nan, _NAN_BELOW, _OTHER_NAN, 0.0, -0.0, math.inf, -math.inf, 5e-324, -5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1.0, -1.0, 0.5, -0.5,
    2.5, -2.5, 1.5, 100.0, -100.0, 3.0, 10.0, 1e10, 1e19, -1e19, 2.0**53, 0.1, None, 1000.0, 8.0,
    0.3, 1e-3, 0.49999999999999994, 4503599627370497.0, 7.7,
]  # fmt: skip


def _table() -> pa.Table:
    count = len(_FLOATS)

    def turned(values: list[Any], by: int) -> list[Any]:
        return values[by:] + values[:by]

    with np.errstate(over="ignore"):
        singles = [None if one is None else np.float32(one) for one in _FLOATS]
        halves = [None if one is None else np.float16(one) for one in _FLOATS]
    columns: dict[str, pa.Array] = {
        "id": pa.array(range(count)),
        "f": pa.array(_FLOATS, pa.float64()), "f2": pa.array(turned(_FLOATS, 1), pa.float64()),
        "f3": pa.array(turned(_FLOATS, 5), pa.float64()), "g": pa.array(singles, pa.float32()),
        "g2": pa.array(turned(singles, 3), pa.float32()), "h": pa.array(halves, pa.float16()),
        "d": pa.array(
            [None if k % 7 == 3 else Decimal(k - 10) / 4 for k in range(count)],
            pa.decimal128(10, 2),
        ),
    }  # fmt: skip
    for bits in (8, 16, 32, 64):
        top, largest = 1 << (bits - 1), (1 << bits) - 1
        signed = [-top, 1 - top, top - 1, top - 2, 0, 1, 2, 3, 7, 10, 100, None, -1, -2, -10]
        unsigned = [0, 1, largest, largest - 1, 2, 3, 7, 10, 100, None]
        for name, values, kind in (
            (f"i{bits}", signed, f"int{bits}"), (f"j{bits}", turned(signed, 4), f"int{bits}"),
            (f"u{bits}", unsigned, f"uint{bits}"),
        ):  # fmt: skip
            whole = [values[k % len(values)] for k in range(count)]
            columns[name] = pa.array(whole, getattr(pa, kind)())
    return pa.table(columns)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same dataset in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("numbers") / "data")
    theirs = require_pylance().write_dataset(_table(), path)
    return lance_nb.dataset(path), theirs


def _bits(values: pa.ChunkedArray) -> list[Any]:
    """Make values comparable: floats by their bits, all NaNs of a sign as one."""
    found = []
    for value in values.to_pylist():
        if isinstance(value, float):
            found.append(("nan" if math.isnan(value) else value, math.copysign(1, value)))
        else:
            found.append(value)
    return found


def _value(dataset: Any, expression: str) -> Any:
    try:
        column = dataset.to_table(columns={"v": expression})["v"]
    except (ValueError, pa.ArrowException):
        return "refused"
    return column.type, _bits(column)


def _rows(dataset: Any, condition: str) -> Any:
    try:
        return dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
    except (ValueError, OSError, pa.ArrowException):
        return "refused"


ONE = (
    "abs", "sqrt", "cbrt", "exp", "ln", "log", "log10", "log2", "signum", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cot", "degrees",
    "radians", "round", "trunc", "isnan", "iszero",
)  # fmt: skip
TWO = (
    "power", "atan2", "log", "gcd", "lcm", "nanvl", "greatest", "least", "coalesce", "nvl",
    "nullif", "round", "trunc",
)  # fmt: skip
PAIRS = (
    "f, f2", "f, f3", "g, g2", "f, g", "i8, j8", "i64, j64", "i32, f", "f, i32", "f, 2", "i64, 2",
    "g, 0.5", "u8, 3", "u64, i64", "d, 2", "f, 0", "f, -1", "i64, 0", "i64, -1", "h, 1", "h, h",
    "u8, i8", "d, d",
)  # fmt: skip
# A value of pylance that is the same in every row is refused by its scan; powers of a decimal to a
# fraction are refused here.
ASKED_OF_ROWS = {"power(f, 0)", "power(i64, 0)", "log(h, 1)", "log(h, h)"}
REFUSED_HERE = {"power(d, d)"}


@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_number_gives_the_bits_of_pylance(both: Any, name: str) -> None:
    ours, theirs = both
    for column in ("f", "g", "h", "i8", "i64", "u8", "u64", "d"):
        expression = f"{name}({column})"
        assert _value(ours, expression) == _value(theirs, expression), expression


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_numbers_gives_the_bits_of_pylance(both: Any, name: str) -> None:
    ours, theirs = both
    for operands in PAIRS:
        expression = f"{name}({operands})"
        if expression not in ASKED_OF_ROWS | REFUSED_HERE:
            assert _value(ours, expression) == _value(theirs, expression), expression


SIGNS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


@pytest.mark.parametrize("sign", SIGNS)
def test_floats_are_compared_in_the_order_of_pylance(both: Any, sign: str) -> None:
    ours, theirs = both
    literals = (
        "0", "-0.0", "1.0", "0.1", "1e4", "1e-7", "CAST('NaN' AS double)", "sqrt(-1.0)",
        "CAST('-inf' AS double)", "NULL", "CAST(0.1 AS float)",
    )  # fmt: skip
    columns = ("f2", "f3", "g", "g2", "i64", "u64", "h", "-f2", "f2 * 0", "nanvl(f, f2)")
    for column in ("f", "g", "h"):
        for other in (*literals, *columns):
            for condition in (f"{column} {sign} {other}", f"{other} {sign} {column}"):
                assert _rows(ours, condition) == _rows(theirs, condition), condition


@pytest.mark.parametrize("name", ["sqrt", "ln", "log2", "log10", "log", "asin", "acos", "acosh",
                                  "atanh", "cot", "signum"])  # fmt: skip
def test_a_function_outside_of_its_domain_chooses_the_rows_of_pylance(both: Any, name: str) -> None:
    ours, theirs = both
    for column in ("f", "g", "i8", "h"):
        for rest in ("> 1", "< 1", ">= 0.0", "= 0.0", "<> 0.0", f"< {column}", "IS NULL"):
            condition = f"{name}({column}) {rest}"
            assert _rows(ours, condition) == _rows(theirs, condition), condition


ARITHMETIC = (
    "f / 0", "f / f2", "f % f2", "f % 0", "g % g2", "g * 2", "g + 0.1", "g * g2", "f * 0",
    "f + i64", "g + i64", "i8 / j8", "i8 / 0", "i8 % 0", "i8 + i8", "i8 * i8", "i8 + 1", "1 + i8",
    "i64 * 2", "i64 + 1", "i64 - 1", "i64 * i64", "u8 - 1", "2 - u8", "u8 - i8", "u64 - 1",
    "u64 + i64", "i32 / 2", "i32 % -3", "d + 1", "d * d", "d / 3", "d % 2", "d * f", "h + 1",
    "h * h", "h / 2", "h + 0.1", "h + i8", "h + g", "h + f", "-f", "-h", "-d", "-i64", "-u8",
    "abs(h) + 1", "h + 1 + 1", "nvl2(f, i8, g)", "nvl2(f, 1, 2)", "nvl2(f, i8, i8)",
    "round(f, i8)", "trunc(g, i8)", "power(d, 3)", "power(f, 1)", "log(2, f)", "log(h, 2)",
    "i64 & 3", "i64 | 3", "i64 << 2", "CAST(f AS float)", "CAST(h AS double)",
)  # fmt: skip


@pytest.mark.parametrize("expression", ARITHMETIC)
def test_arithmetic_gives_the_bits_of_pylance(both: Any, expression: str) -> None:
    ours, theirs = both
    assert _value(ours, expression) == _value(theirs, expression)
    condition = f"({expression}) > 1"
    expected = _rows(theirs, condition)
    if expected != "refused":
        assert _rows(ours, condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "f IN (0.0, 1.0)", "f IN (-0.0, 1.0, 2.5, 3.0, 4.0)", "f NOT IN (-0.0, 1)",
        "g IN (0.1, 1)", "NOT (f < 1)", "array_has([0.0], f)",
        "f IN (CAST('NaN' AS double), 1.0)", "f IN (CAST('NaN' AS double), 1.0, 2.0, 3.0)",
        "f BETWEEN -0.0 AND 10", "f BETWEEN f2 AND f3", "f IN (f2, 1.0)", "NOT f > 1",
        "f = 0.0 OR f = 1.0 OR f = -1.5 OR f = 7.0", "nullif(f, 0.0) IS NULL",
        "array_has([f], 0.0)", "array_has([f, f2], 1.0)", "f32 > 1", "i64 > date '1970-01-03'",
        "i32 = date '1970-01-03'",
    ],
)  # fmt: skip
def test_sets_and_ranges_of_numbers_choose_the_rows_of_pylance(both: Any, condition: str) -> None:
    ours, theirs = both
    assert _rows(ours, condition) == _rows(theirs, condition)


def test_a_fraction_is_not_cut_off_where_pylance_refuses_it(both: Any) -> None:
    ours, theirs = both
    assert _value(theirs, "i8 / 2.5") == "refused"
    kind, values = _value(ours, "i8 / 2.5")
    assert (kind, values[8]) == (pa.float64(), (2.8, 1.0))


def test_a_power_of_a_decimal_to_a_fraction_is_refused(both: Any) -> None:
    with pytest.raises(PredicateError, match="cast it to double"):
        both[0].count_rows("power(d, 0.5) > 1")
