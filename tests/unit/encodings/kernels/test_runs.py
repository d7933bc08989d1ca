"""Expanding runs."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import runs


@pytest.mark.parametrize("width", [*range(1, 10), 15, 16, 17])
def test_each_value_is_repeated(width: int) -> None:
    values = np.arange(3 * width, dtype=np.uint8)
    found = runs.expand(values, width, np.array([2, 0, 3]))
    one, _, three = (values[i * width : (i + 1) * width].tobytes() for i in range(3))
    assert found.tobytes() == one * 2 + three * 3


def test_lengths_are_added_up_per_chunk() -> None:
    assert runs.sums(np.array([1, 2, 3, 4]), np.array([2, 0, 2])).tolist() == [3, 0, 7]
    assert runs.sums(np.array([], np.int64), np.array([0])).tolist() == [0]
