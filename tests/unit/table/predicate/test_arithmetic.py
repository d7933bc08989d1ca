"""Arithmetic and numbers as SQL writes them (values beside pylance's: tests/interop)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_column
from lance_nb.table.predicate.arithmetic import modulo, number
from tests.support.expressions import values_of

TABLE = pa.table({
    "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    "e": pa.array([Decimal("0.4"), None], pa.decimal128(5, 1)),
    "i": pa.array([2, None], pa.int64()), "b": pa.array([2, None], pa.int8()),
    "u": pa.array([2, None], pa.uint8()), "f": pa.array([0.5, None]), "s": ["x", None],
    "l": [[1], None],
    "day": pa.array([date(2021, 1, 31), None], pa.date32()),
})  # fmt: skip


@pytest.mark.parametrize(
    ("digits", "type_"),
    [
        ("0", pa.int64()), (f"{2**63 - 1}", pa.int64()), (f"{-(2**63)}", pa.int64()),
        (f"{2**63}", pa.uint64()), (f"{2**64 - 1}", pa.uint64()), (f"{2**64}", pa.float64()),
        (f"{-(2**63) - 1}", pa.float64()), (f"{-(2**64)}", pa.float64()), ("1.5", pa.float64()),
        ("1e3", pa.float64()), (f"{10**30}", pa.float64()),
    ],
)  # fmt: skip
def test_a_number_has_the_first_type_that_holds_it(digits: str, type_: pa.DataType) -> None:
    found = number(digits)
    assert (found.type, found.digits) == (type_, digits)
    assert found.scalar.as_py() == (float(digits) if type_ == pa.float64() else int(digits))


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("d + i", "3.50", (23, 2)), ("i + d", "3.50", (23, 2)), ("d - 1", "0.50", (11, 2)),
        ("1 - d", "-0.50", (11, 2)), ("d * i", "3.00", (31, 2)), ("b * d", "3.00", (14, 2)),
        ("d + e", "1.90", (11, 2)), ("d * 12", "18.00", (21, 4)), ("d / i", "0.750000", (14, 6)),
        ("i / d", "1.3333", (26, 4)), ("d / e", "3.750000", (15, 6)), ("d % e", "0.30", (6, 2)),
        ("d % i", "1.50", (10, 2)), ("-d % e", "-0.30", (6, 2)),
    ],
)  # fmt: skip
def test_decimals_keep_their_digits(text: str, value: str, type_: tuple[int, int]) -> None:
    assert values_of(text, TABLE) == [Decimal(value), None]
    assert compile_column("x", text, TABLE.schema).expression.type == pa.decimal128(*type_)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i + 3", 5), ("i - 3", -1), ("i * 3", 6), ("i / 4", 0), ("7 / i", 3), ("-7 / i", -3),
        ("7 % i", 1), ("-7 % i", -1), ("f * i", 1.0), ("-3.5 % i", -1.5), ("d * f", 0.75),
        ("- i", -2), ("- -5 + i", 7), ("i << 2", 8), ("i >> 1", 1),
        ("day + 1", date(2021, 2, 1)), ("day - 31", date(2020, 12, 31)),
        ("day - date '2021-01-01'", 30),
    ],
)  # fmt: skip
def test_numbers_and_days_are_computed(text: str, value: object) -> None:
    assert values_of(text, TABLE) == [value, None]


@pytest.mark.parametrize("text", ["s + s", "- u", "- s", "l * 2", "day * 2", "day % 2"])
def test_operands_without_arithmetic_are_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)


@pytest.mark.parametrize("digits", ["5, 1", "25, 1"])
def test_booleans_are_no_decimals(digits: str) -> None:
    """As in pylance, whatever the width."""
    with pytest.raises(PredicateError, match="cannot be applied to"):
        values_of(f"CAST(i > 1 AS DECIMAL({digits}))", TABLE)


def test_the_remainder_of_decimals_of_256_bits_is_one():
    wide, narrow = pa.decimal256(40, 3), pa.decimal128(5, 1)
    table = pa.table({
        "a": pa.array([Decimal("7.500"), Decimal("-7.500"), None], wide),
        "b": pa.array([Decimal("2.0"), Decimal("2.0"), Decimal("2.0")], narrow),
    })  # fmt: skip

    assert values_of("a % a", table) == [0, 0, None]
    assert values_of("a % b", table) == [Decimal("1.500"), Decimal("-1.500"), None]
    assert compile_column("v", "a % b", table.schema).field.type == pa.decimal256(7, 3)
    assert compile_column("v", "b % b", table.schema).field.type == pa.decimal128(5, 1)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("prefix", ["int", "uint"])
def test_a_remainder_has_the_sign_of_the_dividend(prefix: str, bits: int) -> None:
    type_ = pa.type_for_alias(f"{prefix}{bits}")
    kind = np.iinfo(type_.to_pandas_dtype())
    low, high = int(kind.min), int(kind.max)
    random = np.random.default_rng(7)
    edges = [low, low + 1, high, high - 1, 0, 1, None, low // 2]
    many = random.integers(low, high, 20_000, type_.to_pandas_dtype(), endpoint=True).tolist()
    column = pa.chunked_array([edges, many, random.integers(0, 100, 20_000).tolist()], type_)
    for divisor in (1, 2, 7, 100, high):
        found = modulo(column.slice(1), pa.scalar(divisor, type_)).to_pylist()
        for value, remainder in zip(column.to_pylist()[1:], found, strict=True):
            if value is None:
                assert remainder is None
            else:
                assert remainder == (abs(value) % divisor) * (-1 if value < 0 else 1)
    with pytest.raises(pa.ArrowInvalid, match="divide by zero"):
        modulo(column, pa.scalar(0, type_))
