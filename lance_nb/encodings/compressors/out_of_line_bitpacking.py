"""Write levels and dictionary items packed to one width for all blocks.

Layout: see ``compression.out_of_line_bitpacking``; the tail of a block is packed where that is
smaller.
Limits: blocks only; a width of 0 or of the whole word is left to others.
Source: message ``OutOfLineBitpacking`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import ChunkBuffer, Ints
from lance_nb.encodings.compress_base import CompressedBlocks, Compressors, Parts
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import bitpack, memory, pack, scatter
from lance_nb.encodings.statistics import Measured, saving
from lance_nb.errors import InternalError


class OutOfLineBitpackingCompressor:
    """Compress; see the module."""

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, _options: EncodingOptions
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
        _options: EncodingOptions,
        _compressors: Compressors,
    ) -> CompressedBlocks:
        """Pack the blocks of 1024 values, with one width for all; short tails stay raw."""
        words, widths = measured.words, measured.block_widths
        if words is None or widths is None:
            raise InternalError(f"bit packing of a {type(measured.block).__name__} block")
        word, width = words.dtype.itemsize, int(widths.max())
        cut = _cut(num_values, 8 * word, width)
        raw = words.view(np.uint8)
        starts = (np.cumsum(num_values) - num_values) * word
        kept = np.minimum(cut.packed * bitpack.VALUES, num_values) * word
        total = int(cut.packed.sum())
        if bool((kept == cut.packed * bitpack.VALUES * word).all()) and not cut.has_tails:
            grid = words.reshape(-1, bitpack.VALUES)
        else:
            grid = np.zeros((total, bitpack.VALUES), words.dtype)
            places = (np.cumsum(cut.packed) - cut.packed) * bitpack.VALUES * word
            scatter.scatter(raw, starts, kept, grid.ravel().view(np.uint8), places)
        out = memory.allocate(total * bitpack.VALUES // 8 * width).view(words.dtype)
        pack.pack(grid, width, out.reshape(total, -1) if total else out.reshape(0, 1))
        before = np.cumsum(cut.packed_bytes) - cut.packed_bytes
        parts = [ChunkBuffer(out.view(np.uint8), before, cut.packed_bytes)]
        if cut.has_tails:
            parts.append(ChunkBuffer(raw, starts + kept, cut.raw_bytes))
        return CompressedBlocks(_message(8 * word, width), Parts(tuple(parts)))


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
