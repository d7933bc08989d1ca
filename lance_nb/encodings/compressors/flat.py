"""Write flat values: they are viewed, not copied.

Layout: see ``compression.flat``. Chunks aim at 8 KiB and hold at most 4096 values, a power of two.
Limits: per value (full-zip) only whole bytes.
Source: message ``Flat`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    FixedWidth,
    Ints,
)
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
    power_of_two_below,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.statistics import LAST_RESORT, Measured
from lance_nb.errors import InternalError

_CHUNK_VALUES = 4096


class FlatCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, _options: EncodingOptions) -> int:
        """Take all values of fixed width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, FixedWidth)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, _compressors: Compressors
    ) -> CompressedChunks:
        """View runs of values as chunks."""
        block = _fixed(measured)
        bits = block.bits_per_value
        fitting = power_of_two_below(options.chunk_bytes * 8 // bits, 8 if bits % 8 else 2)
        counts = uniform_counts(block.num_values, min(fitting, _CHUNK_VALUES))
        return CompressedChunks(_message(bits), (_runs(block, counts),), counts)

    def nominate_blocks(
        self, measured: Measured, _num_values: Ints, _options: EncodingOptions
    ) -> int:
        """Take all values of fixed width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, FixedWidth)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        _options: EncodingOptions,
        _compressors: Compressors,
    ) -> CompressedBlocks:
        """View runs of values as blocks."""
        block = _fixed(measured)
        return CompressedBlocks(_message(block.bits_per_value), _runs(block, num_values))

    def nominate_values(self, measured: Measured, _options: EncodingOptions) -> int:
        """Take all values of fixed width that have whole bytes."""
        block = measured.block
        return LAST_RESORT * (isinstance(block, FixedWidth) and block.bits_per_value % 8 == 0)

    def compress_values(
        self, measured: Measured, _options: EncodingOptions, _compressors: Compressors
    ) -> CompressedValues:
        """Leave the values as they are."""
        block = _fixed(measured)
        return CompressedValues(_message(block.bits_per_value), block)


def _fixed(measured: Measured) -> FixedWidth:
    if not isinstance(measured.block, FixedWidth):
        raise InternalError(f"flat was asked to store a {type(measured.block).__name__} block")
    return measured.block


def _message(bits: int) -> encodings21.CompressiveEncoding:
    return encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=bits))


def _runs(block: FixedWidth, num_values: Ints) -> Parts:
    """View consecutive runs of values; all but the last must end on a byte."""
    ends = np.cumsum(num_values)
    starts = (ends - num_values) * block.bits_per_value // 8
    sizes = (num_values * block.bits_per_value + 7) // 8
    return Parts((ChunkBuffer(block.data, starts, sizes),))
