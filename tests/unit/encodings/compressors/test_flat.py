"""Writing flat values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.compressing import COMPRESSORS, V2_2, by_value, in_blocks, in_chunks, measured

FLAT = COMPRESSORS["flat"]


@pytest.mark.parametrize(
    ("type_", "counts"),
    [(pa.int8(), [4096, 904]), (pa.int64(), [512] * 9 + [392]), (pa.bool_(), [4096, 904])],
)
def test_chunks_hold_a_power_of_two(type_: pa.DataType, counts: list[int]) -> None:
    values = [i % 2 for i in range(5000)]
    encoding, found = in_chunks("flat", measured(pa.array(values).cast(type_)))
    assert found == counts
    assert encoding.flat.bits_per_value == type_.bit_width


def test_very_wide_values_go_two_by_two() -> None:
    assert in_chunks("flat", measured([b"x" * 9000] * 5, pa.binary(9000)))[1] == [2, 2, 1]


def test_blocks_are_the_values() -> None:
    _, blocks = in_blocks("flat", measured([1, 2, 3], pa.uint16()), [1, 2])
    assert blocks == [b"\1\0", b"\2\0\3\0"]


def test_single_values_are_not_copied() -> None:
    by_value("flat", measured([1, 2], pa.int32()))


def test_strings_are_for_others() -> None:
    assert not FLAT.nominate_chunks(measured(["a"]), V2_2)
    assert not FLAT.nominate_values(measured([True]), V2_2)
