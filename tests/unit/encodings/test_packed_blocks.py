"""Where the pieces of out-of-line bit-packed blocks lie."""

from __future__ import annotations

import numpy as np

from lance_nb.encodings.base import ChunkBuffer, Chunks
from lance_nb.encodings.packed_blocks import plan_blocks
from tests.property.encodings.reference_encoders import out_of_line_bitpacking


def test_packed_pieces_and_raw_tails_are_listed_row_by_row() -> None:
    # 1024 packed; 1024 packed and 3 raw words; 1024 packed and 100 packed; nothing
    sizes = np.array([128, 134, 256, 0])
    starts = np.array([0, 1000, 2000, 3000])
    blocks = Chunks(
        (ChunkBuffer(np.zeros(4000, np.uint8), starts, sizes),), np.array([1024, 1027, 1124, 0])
    )
    plan = plan_blocks(out_of_line_bitpacking(16, 1).out_of_line_bitpacking, blocks)
    assert (plan.word_bits, plan.width) == (16, 1)
    assert plan.counts.tolist() == [1024, 1024, 3, 1024, 100]
    assert plan.packed_at.tolist() == [0, 1000, 2000, 2128]
    assert plan.packed_rows.tolist() == [0, 1, 3, 4]
    assert plan.raw_starts.tolist() == [1128]
    assert plan.raw_stops.tolist() == [1134]
    assert plan.raw_rows.tolist() == [2]
