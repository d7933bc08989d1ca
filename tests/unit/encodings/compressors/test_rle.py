"""Writing runs."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.encoding_options import EncodingOptions
from tests.property.encodings.reference_encoders import rle_block
from tests.support.compressing import COMPRESSORS, V2_1, V2_2, in_blocks, in_chunks, measured

RLE = COMPRESSORS["rle"]


@pytest.mark.parametrize("kind", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("length", [1, 3, 255, 256, 1000, 5000])
def test_runs_come_back(kind: str, length: int) -> None:
    values = np.repeat(np.arange(9), length)[:5000].astype(kind)
    _, counts = in_chunks("rle", measured(values))
    assert counts[:-1] == [2048] * (len(counts) - 1)


def test_blocks_are_what_the_format_says() -> None:
    levels = [0] * 300 + [1] + [0] * 99
    _, blocks = in_blocks("rle", measured(np.array(levels, np.uint16)), [100, 300])
    assert blocks == [rle_block(levels[:100], 16), rle_block(levels[100:], 16)]


def test_blocks_of_runs_are_for_2_2() -> None:
    levels, count = measured(np.zeros(500, np.uint16)), np.array([500])
    assert RLE.nominate_blocks(levels, count, V2_2)
    assert not RLE.nominate_blocks(levels, count, V2_1)


def test_the_threshold_of_the_field_bounds_it() -> None:
    runs = measured(np.repeat(np.arange(100), 10))
    assert RLE.nominate_chunks(runs, V2_2)
    low = EncodingOptions(file_version=(2, 2), rle_threshold=0.05)
    assert not RLE.nominate_chunks(runs, low)
    assert not RLE.nominate_chunks(measured(np.arange(1000)), V2_2)
    assert not RLE.nominate_chunks(measured(["a"]), V2_2)
