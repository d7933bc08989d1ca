"""Packing levels and dictionaries to one width."""

from __future__ import annotations

import numpy as np
import pytest

from tests.property.encodings.reference_encoders import out_of_line_block
from tests.support.compressing import COMPRESSORS, V2_2, in_blocks, measured

PACKING = COMPRESSORS["out_of_line_bitpacking"]


@pytest.mark.parametrize(
    "counts", [[1024, 1024], [1024, 1], [3000], [64, 65, 63], [1, 0, 5], [1100, 900, 48]]
)
@pytest.mark.parametrize("most", [1, 2, 6])
def test_blocks_are_what_the_format_says(counts: list[int], most: int) -> None:
    values = (np.arange(sum(counts)) * 5 % (most + 1)).astype(np.uint16)
    encoding, blocks = in_blocks("out_of_line_bitpacking", measured(values), counts)
    width = most.bit_length()
    assert encoding.out_of_line_bitpacking.values.flat.bits_per_value == width
    at = 0
    for count, block in zip(counts, blocks, strict=True):
        mine = values[at : at + count].tolist()
        raw_tail = count % 1024 * 2 <= 128 * width
        assert block == out_of_line_block(mine, 16, width, raw_tail=raw_tail)
        at += count


def test_levels_without_any_or_with_all_bits_are_left_to_others() -> None:
    for values in (np.zeros(2000, np.uint16), np.full(2000, 65_535, np.uint16)):
        assert not PACKING.nominate_blocks(measured(values), np.array([2000]), V2_2)
