"""Write all first bytes of the values, then all second bytes, and so on.

Layout: see ``compression.byte_stream_split``.
Limits: 32 and 64 bits, below a general compression, and only when the field asks for it.
Source: message ``ByteStreamSplit`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import ChunkBuffer, FixedWidth
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    Compressors,
    Parts,
    power_of_two_below,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.statistics import WRAPPER, Measured
from lance_nb.errors import InternalError

_PRIORITY = WRAPPER - 1  # below the compression that it prepares for, above all else


class ByteStreamSplitCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take values of 32 or 64 bits below a general compression, when told to."""
        block = measured.block
        wide = isinstance(block, FixedWidth) and block.bits_per_value in {32, 64}
        return _PRIORITY * (options.is_wrapped and options.bss == "on" and wide)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, _compressors: Compressors
    ) -> CompressedChunks:
        """Turn the bytes of every chunk."""
        block = measured.block
        if not isinstance(block, FixedWidth):
            raise InternalError(f"byte stream split of a {type(block).__name__} block")
        width = block.bits_per_value // 8
        per_chunk = power_of_two_below(options.chunk_bytes // width)
        counts = uniform_counts(block.num_values, per_chunk)
        full = block.num_values // per_chunk * per_chunk
        rows = block.data.reshape(-1, width)
        turned = memory.allocate(block.data.size)
        head = rows[:full].reshape(-1, per_chunk, width).transpose(0, 2, 1)
        np.copyto(turned[: full * width].reshape(-1, width, per_chunk), head)
        turned[full * width :] = rows[full:].T.reshape(-1)
        sizes = counts * width
        part = ChunkBuffer(turned, ranges.starts_of(sizes)[:-1], sizes)
        flat = encodings21.Flat(bits_per_value=block.bits_per_value)
        split = encodings21.ByteStreamSplit(values=encodings21.CompressiveEncoding(flat=flat))
        encoding = encodings21.CompressiveEncoding(byte_stream_split=split)
        return CompressedChunks(encoding, (Parts((part,)),), counts)
