from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_column

NAN, NAN_BELOW = math.nan, math.copysign(math.nan, -1)
VALUES = [-1.0, 0.0, -0.0, 0.5, 4.0, NAN, NAN_BELOW, None]
KINDS = {"f": pa.float64(), "g": pa.float32(), "h": pa.float16(), "i": pa.int8()}


def computed(expression: str, **columns: list[object]) -> pa.Array:
    arrays = {name: pa.array(values, KINDS[name]) for name, values in columns.items()}
    schema = pa.schema([(name, array.type) for name, array in arrays.items()])
    values = {(name,): pa.chunked_array([array]) for name, array in arrays.items()}
    return compile_column("v", expression, schema).values(values, len(next(iter(arrays.values()))))


def shown(values: pa.Array) -> list[object]:
    """Tell NaNs and zeros apart by their signs."""
    return [None if one is None else f"{math.copysign(1, one):+.0f}{abs(one):g}"
            for one in values.to_pylist()]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "column", "outside", "sign"),
    [
        ("sqrt", "f", -1, "-"), ("sqrt", "g", -1, "-"), ("ln", "f", -1, "+"), ("ln", "g", -1, "-"),
        ("log2", "f", -1, "+"), ("log2", "g", -1, "-"), ("log10", "f", -1, "+"),
        ("log10", "g", -1, "+"), ("log", "f", -1, "+"), ("asin", "f", 2, "+"),
        ("acos", "f", 2, "+"), ("acosh", "f", 0, "-"), ("atanh", "f", 2, "-"),
    ],
)  # fmt: skip
def test_outside_of_its_domain_a_function_is_nan_of_a_fixed_sign(name, column, outside, sign):
    found = computed(f"{name}({column})", **{column: [outside, NAN, NAN_BELOW, None]})

    assert found.type == KINDS[column]
    assert shown(found) == [f"{sign}1nan", "+1nan", "-1nan", None]


def test_a_fraction_below_zero_is_cut_to_minus_zero_and_a_zero_loses_its_sign():
    assert shown(computed("trunc(f)", f=[-0.5, -0.0, 0.0, -1.5])) == ["-10", "+10", "+10", "-11"]
    assert shown(computed("signum(f)", f=[-0.5, NAN_BELOW, 3.0])) == ["-11", "+1nan", "+11"]


def test_rounding_takes_digits_from_a_column_and_ties_away_from_zero():
    values = [2.5, -2.5, 0.49999999999999994, 4503599627370497.0]
    assert computed("round(f)", f=values).to_pylist() == [3.0, -3.0, 0.0, 4503599627370497.0]
    found = computed("round(f, i)", f=[1.255, 1255.0, 7.0, None], i=[1, -2, None, 0])
    assert found.to_pylist() == [1.3, 1300.0, None, None]
    assert computed("trunc(f, i)", f=[1.99, -1.99], i=[1, 1]).to_pylist() == [1.9, -1.9]


def test_a_zero_has_no_negative_power():
    assert computed("power(f, 2)", f=[0.0, -0.0, 3.0]).to_pylist() == [0.0, 0.0, 9.0]
    with pytest.raises(PredicateError, match="zero has no negative power"):
        computed("power(f, -1)", f=[0.0])


@pytest.mark.parametrize("expression", ["h + 1", "h * 0.1", "-h", "abs(h)", "coalesce(h, 1)"])
def test_float16_stays_float16(expression):
    assert computed(expression, h=[1.0, None]).type == pa.float16()


@pytest.mark.parametrize("name", ["sinh", "atan2", "exp"])
def test_numpy_stands_in_for_a_kernel_that_arrow_lacks(name, monkeypatch):
    expression = f"{name}(f, f)" if name == "atan2" else f"{name}(f)"
    expected = computed(expression, f=[0.5, -3.0, None]).to_pylist()
    monkeypatch.delattr(pc, name)

    found = computed(expression, f=[0.5, -3.0, None]).to_pylist()
    assert found[:2] == pytest.approx(expected[:2])
    assert found[2] is None
