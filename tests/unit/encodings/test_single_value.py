"""Pages of one value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.single_value import inline_bytes, scalar_buffer, single_value


@pytest.mark.parametrize(
    ("values", "type_", "inline"),
    [
        ([7] * 20, pa.int16(), b"\x07\x00"),
        ([True] * 20, pa.bool_(), b"\x01"),
        ([False] * 20, pa.bool_(), b"\x00"),
        ([b"abc"] * 20, pa.binary(3), b"abc"),
    ],
)
def test_the_value_goes_into_the_description(
    values: list[object], type_: pa.DataType, inline: bytes
) -> None:
    value = single_value(from_arrow(pa.array(values, type_)), None)
    assert value is not None
    assert inline_bytes(value) == inline


@pytest.mark.parametrize("at", [0, 5, 19])
@pytest.mark.parametrize(
    ("same", "other", "type_"),
    [
        (7, 8, pa.int64()),
        ("aa", "ab", pa.string()),
        ("a", "bc", pa.string()),
        (True, False, pa.bool_()),
        (b"abc", b"abd", pa.binary(3)),
    ],
)
def test_one_other_value_is_noticed(
    at: int, same: object, other: object, type_: pa.DataType
) -> None:
    values = [same] * 20
    values[at] = other
    assert single_value(from_arrow(pa.array(values, type_)), None) is None


def test_null_slots_do_not_count() -> None:
    valid = np.array([False, True, True, False])
    number = single_value(from_arrow(pa.array([9, 7, 7, 1], pa.int8())), valid)
    assert number is not None
    assert inline_bytes(number) == b"\x07"
    text = single_value(from_arrow(pa.array([None, "ab", "ab", None])), valid)
    assert text is not None
    assert scalar_buffer(text).tobytes()[-2:] == b"ab"
    assert single_value(from_arrow(pa.array(["x", "ab", "ab", "y"])), valid) is None


def test_long_values_need_a_buffer() -> None:
    value = single_value(from_arrow(pa.array([b"x" * 33] * 3, pa.binary(33))), None)
    assert value is not None
    assert inline_bytes(value) is None


def test_lists_are_not_looked_at() -> None:
    assert single_value(from_arrow(pa.array([[1], [1]], pa.list_(pa.int8(), 1))), None) is None
