"""Bitpacked for non-negative numbers: blocks of 1024 values in FastLanes order.

Layout: ``ceil(num_values / 1024)`` blocks of ``128 * W`` bytes (W = ``compressed_bits_per_value``),
packed as in ``kernels.bitpack``; the last block is filled up with zeros.
Limits: 1 <= W <= T; T = ``uncompressed_bits_per_value`` is 8, 16, 32 or 64.
Source: message ``BitpackedForNonNeg`` of lance.encodings (unstable writers of 2024).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import FixedWidth, Rows, corrupt
from lance_nb.encodings.kernels import bitpack
from lance_nb.encodings.row_ranges import merged
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.encodings.steps import Steps, aligned, read_ranges
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values


class BitpackedForNonNeg:
    """Unpack blocks of 1024 values."""

    def decode(
        self, encoding: encodings.BitpackedForNonNeg, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read the blocks that hold the rows and pick the rows out of them."""
        width, word = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
        if word not in {8, 16, 32, 64} or not 1 <= width <= word:
            raise corrupt("1 to T bits per value, T = 8, 16, 32 or 64", f"{width} of {word} bits")
        count = rows.num_rows
        if not count:
            return Values(FixedWidth(word, 0, np.zeros(0, np.uint8)))
        blocks = merged(rows.starts // bitpack.VALUES, -(-rows.stops // bitpack.VALUES))
        size = bitpack.VALUES // 8 * width
        packed = yield from read_ranges(
            page.region(encoding.buffer), blocks.starts * size, blocks.stops * size
        )
        grid = np.empty((blocks.num_rows, bitpack.VALUES), f"<u{word // 8}")
        starts = np.arange(blocks.num_rows, dtype=np.int64) * size
        bitpack.unpack(aligned(packed, word // 8), starts, width, grid)
        positions = expand_ranges(rows.starts, rows.stops)
        numbers = expand_ranges(blocks.starts, blocks.stops)
        place = np.searchsorted(numbers, positions // bitpack.VALUES)
        values = grid[place, positions % bitpack.VALUES]
        return Values(FixedWidth(word, count, values.view(np.uint8)))
