"""Bitmap behaves as Python's set of integers does, within 64 bits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import ArgumentError, InvalidInputError
from lance_nb.format.bitmap import Bitmap

VALUES = st.sets(st.integers(0, 20) | st.integers(2**64 - 20, 2**64 - 1), max_size=12)
METHODS = ("intersection", "union", "difference", "symmetric_difference", "issubset", "issuperset")
OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.and_, operator.or_, operator.sub, operator.xor, operator.le, operator.ge, operator.eq,
]  # fmt: skip


@given(VALUES, VALUES)
def test_it_does_what_a_set_does(mine: set[int], other: set[int]) -> None:
    bitmap = Bitmap(mine)
    assert (len(bitmap), list(bitmap)) == (len(mine), sorted(mine))
    assert all((value in bitmap) is (value in mine) for value in other)
    for name in METHODS:
        expected = getattr(mine, name)(other)
        for given_as in (other, Bitmap(other), sorted(other)):
            found = getattr(bitmap, name)(given_as)
            assert found == expected
            assert isinstance(found, bool | Bitmap)
    for combine in OPERATORS:
        assert combine(bitmap, Bitmap(other)) == combine(mine, other)
        assert combine(bitmap, other) == combine(mine, other)


def test_a_copy_changes_by_itself() -> None:
    first = Bitmap([1, 2])
    second = first.copy()
    second.add(3)
    second.discard(1)
    second.discard(99)
    assert (first, second) == ({1, 2}, {2, 3})


@pytest.mark.parametrize(
    "values",
    [[3, 1, 3], (1, 3), range(1, 4, 2), np.array([1, 3], np.uint8), pa.array([3, 1], pa.uint32()),
     pa.chunked_array([[1], [3]], pa.int64()), Bitmap([1, 3])],
    ids=lambda values: type(values).__name__,
)  # fmt: skip
def test_values_come_from_any_collection_of_integers(values: Any) -> None:
    assert Bitmap(values) == {1, 3}
    bitmap = Bitmap([5])
    bitmap.update(values)
    assert list(bitmap) == [1, 3, 5]


@pytest.mark.parametrize("value", [0, 1, 2**32, 2**64 - 1])
def test_integers_of_64_bits_fit(value: int) -> None:
    bitmap = Bitmap([value])
    assert value in bitmap
    assert list(bitmap) == [value]
    bitmap.remove(value)
    assert len(bitmap) == 0


@pytest.mark.parametrize("value", [-1, 2**64])
def test_other_integers_are_refused_and_never_inside(value: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"not {value}"):
        Bitmap([value])
    assert value not in Bitmap([0, 2**64 - 1])


@pytest.mark.parametrize("value", ["1", 1.0, None, True, np.bool_(True)], ids=repr)
def test_what_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="holds integers, not"):
        Bitmap().add(value)
    assert "1" not in Bitmap([1])
    assert 1.5 not in Bitmap([1])


def test_it_shows_at_most_twenty_values_and_has_no_hash() -> None:
    assert repr(Bitmap()) == "Bitmap({})"
    assert repr(Bitmap([2, 1])) == "Bitmap({1, 2})"
    assert repr(Bitmap(range(20))).endswith("18, 19})")
    assert repr(Bitmap(range(21))).endswith("18, 19, ...})")
    with pytest.raises(TypeError, match="unhashable"):
        hash(Bitmap())
