"""Rounding of float32 bits to bfloat16, NaN among them."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.format import bfloat16


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0x7F800001, 0x7FC0),  # a signalling NaN becomes quiet
        (0xFF800001, 0xFFC0),
        (0x7FFFFFFF, 0x7FFF),
        (0x7F800000, 0x7F80),
        (0x3F808000, 0x3F80),  # ties go to even
        (0x3F818000, 0x3F82),
        (0x3F808001, 0x3F81),
    ],
)
def test_bits_are_rounded_to_nearest_even_and_nan_stays_nan(bits: int, expected: int) -> None:
    values = np.array([bits], np.uint32).view(np.float32)
    assert bfloat16._rounded(values).tolist() == [expected]
