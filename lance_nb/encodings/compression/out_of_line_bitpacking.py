"""Out-of-line bit packing: the width W stands in the page description, not in the data.

Layout: ``n // 1024`` blocks of ``1024 * W / T`` words of T bits in FastLanes order
(``kernels.bitpack``), then the tail of ``n % 1024`` values: either one more packed block, filled
with zeros, or raw words of T bits. It is raw exactly when the buffer has the size of the raw form.
The tail is written packed where that is smaller.
Limits: T is 8, 16, 32 or 64; 0 <= W <= T; with W = 0 the bytes do not bound the count, so it is
bounded here. Only blocks (levels, dictionary items) with 0 < W < T are written.
Source: message ``OutOfLineBitpacking`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import ChunkBuffer, Chunks, Codecs, FixedWidth, Ints
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import CompressedBlocks, Compressors, Parts
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import bitpack, memory, ranges
from lance_nb.encodings.packed_blocks import PackedBlocks, plan_blocks
from lance_nb.encodings.statistics import Measured, saving
from lance_nb.errors import InternalError
from lance_nb.value_classes import dataclass

Words = npt.NDArray[np.unsignedinteger[Any]]


class OutOfLineBitpacking(Codec):
    """Blocks of integers, packed to one width that the page description says."""

    def decode_chunks(
        self, encoding: encodings21.OutOfLineBitpacking, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Unpack mini-block chunks, which look exactly like blocks."""
        return self.decode_blocks(encoding, chunks, codecs)

    def decode_blocks(
        self, encoding: encodings21.OutOfLineBitpacking, blocks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Unpack all blocks in one go: first the packed parts, then the raw tails."""
        plan = plan_blocks(encoding, blocks)
        out = memory.allocate(plan.counts.size * bitpack.VALUES * (plan.word_bits // 8))
        grid = out.view(f"u{plan.word_bits // 8}").reshape(-1, bitpack.VALUES)
        buffer = blocks.buffers[0]
        _unpack(buffer.data, plan.packed_at, plan.width, grid=grid, positions=plan.packed_rows)
        _copy_tails(buffer, plan, grid)
        total = int(blocks.num_values.sum())
        return FixedWidth(plan.word_bits, total, bitpack.trim(grid, plan.counts))

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take integers that leave some of their bits unused, but not all of them."""
        if measured.words is None or measured.block_widths is None:
            return 0
        width = int(measured.block_widths.max(initial=0))
        word_bits = 8 * measured.words.dtype.itemsize
        if not 0 < width < word_bits:
            return 0
        cut = _cut(num_values, word_bits, width)
        return saving(measured.words.nbytes, int((cut.packed_bytes + cut.raw_bytes).sum()))

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Pack the blocks of 1024 values, with one width for all; short tails stay raw."""
        words, widths = measured.words, measured.block_widths
        if words is None or widths is None:
            raise InternalError(f"bit packing of a {type(measured.block).__name__} block")
        word, width = words.dtype.itemsize, int(widths.max())
        cut = _cut(num_values, 8 * word, width)
        raw = words.view(np.uint8)
        starts = (np.cumsum(num_values) - num_values) * word
        num_bytes = np.minimum(cut.packed * bitpack.VALUES, num_values) * word
        total = int(cut.packed.sum())
        if bool((num_bytes == cut.packed * bitpack.VALUES * word).all()) and not cut.has_tails:
            grid = words.reshape(-1, bitpack.VALUES)
        else:
            grid = np.zeros((total, bitpack.VALUES), words.dtype)
            places = (np.cumsum(cut.packed) - cut.packed) * bitpack.VALUES * word
            ranges.scatter(raw, starts, num_bytes, grid.ravel().view(np.uint8), places)
        out = memory.allocate(total * bitpack.VALUES // 8 * width).view(words.dtype)
        bitpack.pack(grid, width, out.reshape(total, -1) if total else out.reshape(0, 1))
        before = np.cumsum(cut.packed_bytes) - cut.packed_bytes
        parts = [ChunkBuffer(out.view(np.uint8), before, cut.packed_bytes)]
        if cut.has_tails:
            parts.append(ChunkBuffer(raw, starts + num_bytes, cut.raw_bytes))
        return CompressedBlocks(_message(8 * word, width), Parts(tuple(parts)))


def _unpack(
    data: npt.NDArray[np.uint8], starts: Ints, width: int, grid: Words, positions: Ints
) -> None:
    """Unpack the blocks at ``starts`` into the rows ``positions`` of ``grid``."""
    if positions.size == len(grid):
        bitpack.unpack(data, starts, width, grid)
    elif positions.size:
        target = np.empty((positions.size, bitpack.VALUES), grid.dtype)
        bitpack.unpack(data, starts, width, target)
        grid[positions] = target


def _copy_tails(buffer: ChunkBuffer, plan: PackedBlocks, grid: Words) -> None:
    """Copy raw tails, one per block at most, to their rows of ``grid``."""
    rows = grid.view(np.uint8)
    places = zip(
        plan.raw_rows.tolist(), plan.raw_starts.tolist(), plan.raw_stops.tolist(), strict=True
    )
    for row, start, stop in places:
        rows[row, : stop - start] = buffer.data[start:stop]


@dataclass(frozen=True, slots=True)
class _Cut:
    """For each block: packed blocks of 1024 values, their bytes, and those of a raw tail."""

    packed: Ints
    packed_bytes: Ints
    raw_bytes: Ints

    @property
    def has_tails(self) -> bool:
        return bool(self.raw_bytes.any())


def _cut(num_values: Ints, word_bits: int, width: int) -> _Cut:
    """Pack a tail where that is smaller; where both sizes are equal readers take it as raw."""
    block_bytes = bitpack.VALUES // 8 * width
    full, tails = num_values // bitpack.VALUES, num_values % bitpack.VALUES
    tail_bytes = tails * (word_bits // 8)
    is_raw = tail_bytes <= block_bytes
    packed = full + ~is_raw
    return _Cut(packed, packed * block_bytes, np.where(is_raw, tail_bytes, 0))


def _message(word_bits: int, width: int) -> encodings21.CompressiveEncoding:
    flat = encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=width))
    message = encodings21.OutOfLineBitpacking(uncompressed_bits_per_value=word_bits, values=flat)
    return encodings21.CompressiveEncoding(out_of_line_bitpacking=message)
