"""Levels of a few bits, unpacked to bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.kernels import bitpack, level_bits
from tests.property.encodings.reference_encoders import pack_block


def test_the_first_bits_of_a_block_by_hand() -> None:
    block = bytearray(128)
    block[0] = 0b11  # lane 0, rows 0 and 1: levels 0 and 128
    block[1] = 0b1  # lane 0, row 8: level 64
    block[2] = 0b1000_0000  # lane 1, row 7: level 1 + 7 * 128
    out = np.empty((1, 1024), np.uint8)
    level_bits.unpack_levels(np.frombuffer(block, np.uint8), np.zeros(1, np.int64), 1, out)
    assert np.flatnonzero(out[0]).tolist() == [0, 64, 128, 897]
    assert set(out[0].tolist()) == {0, 1}


@pytest.mark.parametrize("width", level_bits.WIDTHS)
def test_levels_come_back_as_a_plain_loop_packed_them(width: int) -> None:
    values = [(7 * i + i // 100) % (1 << width) for i in range(1024)]
    raw = b"head" + pack_block(values, 16, width)
    out = np.empty((1, 1024), np.uint8)
    level_bits.unpack_levels(np.frombuffer(raw, np.uint8), np.array([4]), width, out)
    assert out[0].tolist() == values


@given(
    st.sampled_from(level_bits.WIDTHS),
    st.integers(0, 1100),
    st.integers(0, 9),
    st.integers(0, 2**32 - 1),
)
def test_any_bytes_read_as_those_of_words_of_16_bits(
    width: int, count: int, gap: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    size = 128 * width + gap
    data = rng.integers(0, 256, count * size + 1, np.uint8)
    starts = np.arange(count, dtype=np.int64) * size
    if seed % 2:
        rng.shuffle(starts)
    wide = np.empty((count, 1024), np.uint16)
    bitpack.unpack(data, starts, width, wide)
    narrow = np.empty((count, 1024), np.uint8)
    level_bits.unpack_levels(data, starts, width, narrow)
    assert np.array_equal(wide, narrow)
