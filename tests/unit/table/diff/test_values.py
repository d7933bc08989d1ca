"""Values compared place by place, against plain Python."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.table.diff.values import differing

NAN = float("nan")
CASES = [
    (pa.int32(), [1, None, 3, None, 5], [1, None, 4, 0, None]),
    (pa.float64(), [0.0, NAN, 1.5, None, -0.0], [-0.0, NAN, 1.5, NAN, -0.0]),
    (pa.float16(), [np.float16(1), np.float16(NAN)], [np.float16(2), np.float16(NAN)]),
    (pa.bool_(), [True, False, None, True], [True, True, None, None]),
    (pa.string(), ["a", "", None, "b"], ["a", None, None, "c"]),
    (pa.large_binary(), [b"a", b"", None], [b"a", b"b", b""]),
    (pa.binary(2), [b"ab", None, b"cd"], [b"ab", b"xx", b"ce"]),
    (pa.decimal128(10, 2), [Decimal("1.20"), None], [Decimal("1.30"), None]),
    (pa.timestamp("us", "UTC"), [1, 2, None], [1, 3, None]),
    (pa.month_day_nano_interval(), [(1, 2, 3), None], [(1, 2, 4), None]),
    (pa.null(), [None, None], [None, None]),
    (pa.list_(pa.int64()), [[1, 2], [], None, [1], [None]], [[1, 3], None, None, [1, 1], [None]]),
    (pa.large_list(pa.string()), [["a"], ["b", None], []], [["a"], ["b", ""], []]),
    (pa.list_(pa.float32(), 2), [[1, 2], None, [3, NAN]], [[1, 2], [0, 0], [3, NAN]]),
    (
        pa.map_(pa.string(), pa.int32()),
        [[("a", 1)], [("a", 1)], None],
        [[("a", 1)], [("b", 1)], []],
    ),
    (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
        [{"x": 1, "y": ["a"]}, None, {"x": None, "y": []}, {"x": 2, "y": ["q"]}],
        [
            {"x": 1, "y": ["a"]},
            {"x": None, "y": None},
            {"x": None, "y": None},
            {"x": 3, "y": ["q"]},
        ],
    ),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None], ["a", "c", None]),
]  # fmt: skip


def _alike(one: object, other: object) -> bool:
    """Compare as the module says: NaN with NaN, and zeros by their sign."""
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_alike(one[key], other[key]) for key in one)
    return one == other


@pytest.mark.parametrize(("type_", "one", "other"), CASES, ids=[str(case[0]) for case in CASES])
def test_values_differ_where_python_says_so(type_: pa.DataType, one: list, other: list) -> None:
    a, b = pa.array(one, type_), pa.array(other, type_)
    expected = [not _alike(x, y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)]

    assert differing(a, b).tolist() == expected


@pytest.mark.parametrize(("type_", "one", "other"), CASES, ids=[str(case[0]) for case in CASES])
def test_slices_are_compared_where_they_begin(type_: pa.DataType, one: list, other: list) -> None:
    a, b = pa.array(one * 5, type_), pa.array([other[-1], *other * 5], type_)
    whole = differing(pa.array(one * 5, type_), pa.array(other * 5, type_))

    assert differing(a.slice(3), b.slice(4)).tolist() == whole[3:].tolist()


def test_extension_types_are_compared_by_their_storage() -> None:
    one = pa.array([b"0" * 16, None], pa.uuid())
    other = pa.array([b"1" * 16, None], pa.uuid())

    assert differing(one, other).tolist() == [True, False]


def test_nothing_is_compared_of_nothing() -> None:
    assert differing(pa.array([], pa.int8()), pa.array([], pa.int8())).tolist() == []
