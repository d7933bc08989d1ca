"""Scalars and arrays that are built from buffers are those that pyarrow would make."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.kernels.memory import from_mask
from lance_nb.table.predicate.comparison import array_of, as_bits, as_mask
from lance_nb.table.predicate.expression import scalar_of

VALUES = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.5, float("inf"), "", "abc",
    "δelta", "a\0b", b"", b"\xff\0",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_scalar_is_the_one_of_pyarrow(value: object) -> None:
    found, expected = scalar_of(value), pa.scalar(value)
    assert found.type == expected.type
    assert str(found) == str(expected)  # as text: -0.0 counts
    assert found.equals(expected)
    found.validate(full=True)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (5, pa.uint64()), (2**64 - 1, pa.uint64()), (5, pa.int8()), (5, pa.float64()),
        (None, pa.string()), (None, pa.list_(pa.int8())), ("x", pa.large_string()),
        (True, pa.bool_()),
    ],
    ids=str,
)  # fmt: skip
def test_a_scalar_of_a_type_is_the_one_of_pyarrow(value: object, type_: pa.DataType) -> None:
    assert scalar_of(value, type_).equals(pa.scalar(value, type_))


@pytest.mark.parametrize(("value", "type_"), [(2**63, None), (-1, pa.uint64()), (300, pa.int8())])
def test_a_number_that_does_not_fit_is_refused_as_by_pyarrow(
    value: int, type_: pa.DataType | None
) -> None:
    with pytest.raises((OverflowError, pa.ArrowInvalid)) as expected:
        pa.scalar(value, type_)
    with pytest.raises(type(expected.value)):
        scalar_of(value, type_)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, -2, 3], pa.int64()), ([1, 2**32 - 1], pa.uint32()), ([], pa.int32()),
        ([2**64 - 1], pa.uint64()), (["a", "", "δ"], pa.string()), ([], pa.string()),
        ([1, 2], pa.int8()), ([0.5], pa.float32()), ([b"x"], pa.binary()),
    ],
    ids=str,
)  # fmt: skip
def test_an_array_is_the_one_of_pyarrow(values: list[object], type_: pa.DataType) -> None:
    found = array_of(values, type_)
    found.validate(full=True)
    assert found.equals(pa.array(values, type_))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
def test_masks_come_and_go_bit_by_bit(size: int) -> None:
    mask = np.random.default_rng(size).random(size) < 0.5
    bits = from_mask(mask)
    bits.validate(full=True)
    assert bits.to_pylist() == mask.tolist()
    for start in range(min(size, 11)):  # a slice begins inside a byte
        found = as_mask(bits.slice(start), size - start)
        assert found.dtype == np.bool_
        assert found.tolist() == mask[start:].tolist()


def test_null_counts_as_false() -> None:
    values = pa.array([True, None, False, True])
    assert as_mask(values, 4).tolist() == [True, False, False, True]
    assert as_bits(values, 4).to_pylist() == [True, False, False, True]
    assert as_mask(pa.chunked_array([values, values.slice(1)]), 7).tolist() == [
        True, False, False, True, False, False, True,
    ]  # fmt: skip
