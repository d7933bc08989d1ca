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
from lance_nb.encodings.base import ChunkBuffer, Chunks, Codecs, FixedWidth, Ints, corrupt
from lance_nb.encodings.kernels import bitpack, memory, ranges
from lance_nb.errors import NotSupportedError

_MOST_FREE_VALUES = 1 << 24  # that a width of 0 may claim in all blocks of a call

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
        word_bits, width = _checked_widths(encoding)
        buffer = blocks.buffers[0]
        raw_tail = _checked_tails(buffer, blocks.num_values, word_bits, width)
        total = int(blocks.num_values.sum())
        tails = blocks.num_values % bitpack.VALUES
        packed = blocks.num_values // bitpack.VALUES + ((tails > 0) & ~raw_tail)
        pieces = packed + raw_tail
        ends = ranges.starts_of(pieces)
        out = memory.allocate(int(ends[-1]) * bitpack.VALUES * (word_bits // 8))
        grid = out.view(f"u{word_bits // 8}").reshape(-1, bitpack.VALUES)
        counts = np.full(len(grid), bitpack.VALUES, np.int64)
        with_tail = np.flatnonzero(tails)
        counts[ends[with_tail + 1] - 1] = tails[with_tail]
        size = bitpack.VALUES // 8 * width
        where = np.repeat(buffer.starts, packed) + size * ranges.ragged_indices(
            np.zeros(packed.size, np.int64), packed
        )
        _unpack(buffer.data, where, width, grid, ranges.ragged_indices(ends[:-1], packed))
        raw = np.flatnonzero(raw_tail)
        _copy_tails(buffer, raw, packed[raw] * size, grid[:, : bitpack.VALUES], ends[raw + 1] - 1)
        return FixedWidth(word_bits, total, bitpack.trim(grid, counts))


def _checked_widths(encoding: encodings21.OutOfLineBitpacking) -> tuple[int, int]:
    """Return T and W."""
    word_bits = encoding.uncompressed_bits_per_value
    if word_bits not in {8, 16, 32, 64}:
        raise corrupt("bit packing of 8, 16, 32 or 64 bit words", f"{word_bits} bits")
    arm = encoding.values.WhichOneof("compression")
    if arm != "flat":
        raise NotSupportedError(f"out-of-line bit packing over {arm!r} is not supported")
    width = encoding.values.flat.bits_per_value
    if width > word_bits:
        raise corrupt(f"a bit width of at most {word_bits}", f"width {width}")
    return word_bits, width


def _checked_tails(
    buffer: ChunkBuffer, num_values: Ints, word_bits: int, width: int
) -> npt.NDArray[np.bool_]:
    """Tell which blocks end in a raw tail; refuse those whose size fits neither form."""
    most = int(num_values.max()) if num_values.size else 0
    if most >= 1 << 50:
        raise corrupt("a sane number of bit-packed values", f"{most} values")
    if width == 0 and int(num_values.sum()) > _MOST_FREE_VALUES:
        raise corrupt(f"at most {_MOST_FREE_VALUES} values of zero bits", f"{most} values")
    full, tails = num_values // bitpack.VALUES, num_values % bitpack.VALUES
    block_bytes = bitpack.VALUES // 8 * width
    raw_size = full * block_bytes + tails * (word_bits // 8)
    packed_size = (full + (tails > 0)) * block_bytes
    raw: npt.NDArray[np.bool_] = buffer.sizes == raw_size
    wrong = np.flatnonzero(~raw & (buffer.sizes != packed_size))
    if wrong.size:
        first = int(wrong[0])
        raise corrupt(
            f"{int(packed_size[first])} or {int(raw_size[first])} bytes for "
            f"{int(num_values[first])} values packed to {width} bits",
            f"{int(buffer.sizes[first])} bytes",
        )
    raw &= tails > 0
    return raw


def _unpack(data: npt.NDArray[np.uint8], starts: Ints, width: int, grid: Words, at: Ints) -> None:
    """Unpack the blocks at ``starts`` into the rows ``at`` of ``grid``."""
    if at.size == len(grid):
        bitpack.unpack(data, starts, width, grid)
    elif at.size:
        target = np.empty((at.size, bitpack.VALUES), grid.dtype)
        bitpack.unpack(data, starts, width, target)
        grid[at] = target


def _copy_tails(buffer: ChunkBuffer, blocks: Ints, skip: Ints, grid: Words, at: Ints) -> None:
    """Copy raw tails, one per block at most, to the rows ``at`` of ``grid``."""
    starts, ends = buffer.starts[blocks] + skip, buffer.starts[blocks] + buffer.sizes[blocks]
    rows = grid.view(np.uint8)
    for row, start, end in zip(at.tolist(), starts.tolist(), ends.tolist(), strict=True):
        rows[row, : end - start] = buffer.data[start:end]
