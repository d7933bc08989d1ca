"""Write integers in blocks of 1024, each packed to its own width.

Layout: see ``compression.inline_bitpacking``; blocks of one width are packed together.
Limits: chosen when a tenth of all bits is saved.
Source: message ``InlineBitpacking`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import itertools

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Ints,
)
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    Compressors,
    Parts,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import bitpack, memory, pack, ranges, scatter
from lance_nb.encodings.statistics import Measured, Words, saving
from lance_nb.errors import InternalError

_HEADER_BYTES = 8  # of a mini-block chunk without levels
_MANY_WIDTHS = 64  # changes of width, from which on equal ones are gathered
_LEAST_SAVING = 100  # thousandths: less is not worth the time of unpacking


class InlineBitpackingCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take integers that leave a tenth of their bits unused."""
        if options.compression == "none" or measured.words is None or measured.is_wide:
            return 0
        widths = measured.block_widths
        if widths is None:
            return 0
        word = _word_bytes(measured)
        packed = int(widths.sum()) * (bitpack.VALUES // 8) + widths.size * word
        found = saving(measured.num_values * word, packed)
        return found if found > _LEAST_SAVING else 0

    def compress_chunks(
        self, measured: Measured, _options: EncodingOptions, _compressors: Compressors
    ) -> CompressedChunks:
        """Pack 1024 values per chunk."""
        counts = uniform_counts(measured.num_values, bitpack.VALUES)
        return CompressedChunks(_message(measured), (_packed(measured, _HEADER_BYTES),), counts)

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take one block of up to 1024 integers."""
        if num_values.size != 1 or not 0 < int(num_values[0]) <= bitpack.VALUES:
            return 0
        return self.nominate_chunks(measured, options)

    def compress_blocks(
        self,
        measured: Measured,
        _num_values: Ints,
        _options: EncodingOptions,
        _compressors: Compressors,
    ) -> CompressedBlocks:
        """Pack the block."""
        return CompressedBlocks(_message(measured), _packed(measured))


def _word_bytes(measured: Measured) -> int:
    if measured.words is None:
        raise InternalError(f"bit packing of a {type(measured.block).__name__} block")
    return measured.words.dtype.itemsize


def _message(measured: Measured) -> encodings21.CompressiveEncoding:
    packing = encodings21.InlineBitpacking(uncompressed_bits_per_value=8 * _word_bytes(measured))
    return encodings21.CompressiveEncoding(inline_bitpacking=packing)


def _packed(measured: Measured, spare_bytes: int = 0) -> Parts:
    """Pack blocks of 1024 values behind their width, blocks of equal width together.

    ``spare_bytes`` (a multiple of 8) are left free before each block, which is then padded to 8.
    """
    words, widths = measured.words, measured.block_widths
    if words is None or widths is None:
        raise InternalError(f"bit packing of a {type(measured.block).__name__} block")
    word = words.dtype.itemsize
    sizes = word + widths * (bitpack.VALUES // 8)
    starts = ranges.starts_of(spare_bytes + (sizes + 7 & -8 if spare_bytes else sizes))
    out = memory.allocate(int(starts[-1])).view(words.dtype)
    full = words.size // bitpack.VALUES
    grid = words[: full * bitpack.VALUES].reshape(full, bitpack.VALUES)
    breaks = np.flatnonzero(np.diff(widths[:full])) + 1
    if breaks.size <= _MANY_WIDTHS:
        bounds = [0, *breaks.tolist(), full]
        for first, last in itertools.pairwise(bounds):
            rows = out[starts[first] // word : starts[last] // word]
            _pack_rows(grid[first:last], int(widths[first]), rows, spare_bytes)
    else:
        for width in np.unique(widths[:full]).tolist():
            group = np.flatnonzero(widths[:full] == width)
            rows = np.empty((group.size, int(np.diff(starts)[group[0]]) // word), words.dtype)
            _pack_rows(grid[group], width, rows, spare_bytes)
            scatter.write_rows(out.view(np.uint8), starts[group], rows.view(np.uint8))
    if full < widths.size:
        tail = np.zeros((1, bitpack.VALUES), words.dtype)
        tail[0, : words.size - full * bitpack.VALUES] = words[full * bitpack.VALUES :]
        _pack_rows(tail, int(widths[full]), out[starts[full] // word :], spare_bytes)
    part = ChunkBuffer(out.view(np.uint8), starts[:-1] + spare_bytes, sizes, spare_bytes)
    return Parts((part,))


def _pack_rows(grid: Words, width: int, out: Words, spare_bytes: int) -> None:
    """Pack neighbouring blocks of one width; each row of ``out`` is room, width, bits, padding."""
    if not len(grid):
        return
    rows = out.reshape(len(grid), -1)
    first = spare_bytes // grid.itemsize
    last = first + 1 + width * bitpack.VALUES // (8 * grid.itemsize)
    rows[:, first] = width
    rows[:, last:] = 0
    pack.pack(grid, width, rows[:, first + 1 : last])
