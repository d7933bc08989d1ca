"""Out-of-line bit packing: the width W stands in the page description, not in the data.

Layout: ``n // 1024`` blocks of ``1024 * W / T`` words of T bits in FastLanes order
(``kernels.bitpack``), then the tail of ``n % 1024`` values: either one more packed block, filled
with zeros, or raw words of T bits. It is raw exactly when the buffer has the size of the raw form.
Limits: T is 8, 16, 32 or 64; 0 <= W <= T; with W = 0 the bytes do not bound the count, so it is
bounded here.
Source: message ``OutOfLineBitpacking`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import ChunkBuffer, Chunks, Codecs, FixedWidth, Ints
from lance_nb.encodings.kernels import bitpack, memory
from lance_nb.encodings.packed_blocks import PackedBlocks, plan_blocks

Words = npt.NDArray[np.unsignedinteger[Any]]


class OutOfLineBitpacking:
    """Decode blocks whose bit width is known from the page description."""

    def num_buffers(self, _encoding: encodings21.OutOfLineBitpacking, _codecs: Codecs) -> int:
        """Return 1: the packed words."""
        return 1

    def decode_chunks(
        self, encoding: encodings21.OutOfLineBitpacking, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Unpack mini-block chunks, which look exactly like blocks."""
        return self.decode_blocks(encoding, chunks, codecs)

    def decode_blocks(
        self, encoding: encodings21.OutOfLineBitpacking, blocks: Chunks, _codecs: Codecs
    ) -> FixedWidth:
        """Unpack all blocks in one go: first the packed parts, then the raw tails."""
        plan = plan_blocks(encoding, blocks)
        out = memory.allocate(plan.counts.size * bitpack.VALUES * (plan.word_bits // 8))
        grid = out.view(f"u{plan.word_bits // 8}").reshape(-1, bitpack.VALUES)
        buffer = blocks.buffers[0]
        _unpack(buffer.data, plan.packed_at, plan.width, grid, plan.packed_rows)
        _copy_tails(buffer, plan, grid)
        total = int(blocks.num_values.sum())
        return FixedWidth(plan.word_bits, total, bitpack.trim(grid, plan.counts))


def _unpack(data: npt.NDArray[np.uint8], starts: Ints, width: int, grid: Words, at: Ints) -> None:
    """Unpack the blocks at ``starts`` into the rows ``at`` of ``grid``."""
    if at.size == len(grid):
        bitpack.unpack(data, starts, width, grid)
    elif at.size:
        target = np.empty((at.size, bitpack.VALUES), grid.dtype)
        bitpack.unpack(data, starts, width, target)
        grid[at] = target


def _copy_tails(buffer: ChunkBuffer, plan: PackedBlocks, grid: Words) -> None:
    """Copy raw tails, one per block at most, to their rows of ``grid``."""
    rows = grid.view(np.uint8)
    places = zip(
        plan.raw_rows.tolist(), plan.raw_starts.tolist(), plan.raw_stops.tolist(), strict=True
    )
    for row, start, stop in places:
        rows[row, : stop - start] = buffer.data[start:stop]
