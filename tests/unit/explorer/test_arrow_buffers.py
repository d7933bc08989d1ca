from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.explorer.arrow_buffers import flags_of, heads_of, numbers_of, validity_of

BYTES = st.lists(st.none() | st.binary(max_size=20), max_size=20)


@given(st.lists(st.none() | st.booleans(), max_size=30), st.integers(0, 20), st.integers(0, 20))
def test_flags_and_validity_of_any_slice(
    values: list[bool | None], start: int, length: int
) -> None:
    column = pa.array(values, pa.bool_()).slice(start, length)
    shown = values[start : start + length]
    assert validity_of(column).tolist() == [value is not None for value in shown]
    valid = [bool(flag) for flag, value in zip(flags_of(column), shown, strict=True) if value]
    assert all(valid)


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string()], ids=str
)
@given(values=BYTES, start=st.integers(0, 9))
def test_heads_and_sizes_of_any_slice(
    kind: pa.DataType, values: list[bytes | None], start: int
) -> None:
    if pa.types.is_string(kind):
        values = [None if value is None else value.hex().encode() for value in values]
        column = pa.array([None if value is None else value.decode() for value in values], kind)
    else:
        column = pa.array(values, kind)
    expected = [None if value is None else (value[:4], len(value)) for value in values[start:]]
    assert list(heads_of(column.slice(start), 4)) == expected


def test_fixed_size_binary_and_numbers_of_a_slice() -> None:
    fixed = pa.array([b"ab", None, b"cd"], pa.binary(2)).slice(1)
    assert list(heads_of(fixed, 9)) == [None, (b"cd", 2)]
    assert numbers_of(pa.array([1, 2, 3], pa.uint16()).slice(1)).tolist() == [2, 3]
    assert numbers_of(pa.array([0.5, 1.5], pa.float16())).tolist() == [0.5, 1.5]


def test_empty_and_null_arrays_have_values_too() -> None:
    for kind in (pa.string(), pa.binary(3), pa.large_binary()):
        assert list(heads_of(pa.array([], kind), 4)) == []
        assert list(heads_of(pa.nulls(2, kind), 4)) == [None, None]
    assert numbers_of(pa.array([], pa.int8())).tolist() == []
    assert validity_of(pa.nulls(3)).tolist() == [0, 0, 0]
    assert flags_of(pa.array([], pa.bool_())).tolist() == []
