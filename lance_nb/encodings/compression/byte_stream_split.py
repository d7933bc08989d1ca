"""Byte stream split: all first bytes of the values, then all second bytes, and so on.

Layout: byte ``j`` of value ``i`` lies at ``j * n + i`` of a chunk of ``n`` values.
Limits: values of 32 or 64 bits, in practice below a general compression. It is written when the
field asks for it (``bss`` = on), or by default when it makes a compressed sample a tenth smaller.
Source: message ``ByteStreamSplit`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import ChunkBuffer, Chunks, Codecs, FixedWidth, corrupt
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    Compressors,
    Parts,
    power_of_two_below,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import compiled, lz4_zstd, memory, ranges
from lance_nb.encodings.statistics import WRAPPER, Measured
from lance_nb.errors import InternalError, NotSupportedError

_SAMPLE = 2048  # values
_PACKED_SHARE = 0.75  # of the bits: narrower values are packed instead
_SPLIT_SHARE = 0.9  # of the size of the plain sample
_PRIORITY = WRAPPER - 1  # below the compression that it prepares for, above all else


class ByteStreamSplit(Codec):
    """The bytes of values, split below a general compression."""

    def decode_chunks(
        self, encoding: encodings21.ByteStreamSplit, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Turn all chunks, those with equally many values together."""
        width = _checked_bits(encoding) // 8
        buffer = chunks.buffers[0]
        short = np.flatnonzero(buffer.sizes // width < chunks.num_values)
        if short.size:
            first = int(short[0])
            raise corrupt(
                f"{int(chunks.num_values[first])} values of {width} bytes",
                f"{int(buffer.sizes[first])} bytes",
            )
        ends = ranges.starts_of(chunks.num_values)
        total = int(ends[-1])
        out = memory.allocate(total * width).reshape(total, width)
        loops = compiled.loops
        if loops is not None and loops.join_bytes(
            buffer.data, buffer.starts, chunks.num_values, width, out.reshape(-1)
        ):
            return FixedWidth(width * 8, total, out.reshape(-1))
        for count in np.unique(chunks.num_values).tolist():
            group = np.flatnonzero(chunks.num_values == count)
            split = ranges.rows(buffer.data, buffer.starts[group], count * width)
            values = split.reshape(group.size, width, count).transpose(0, 2, 1)
            if int(group[-1]) - int(group[0]) + 1 == group.size:
                target = out[ends[group[0]] : ends[group[-1] + 1]]
                target.reshape(group.size, count, width)[:] = values
            else:
                positions = ranges.ragged_indices(ends[group], chunks.num_values[group])
                out[positions] = values.reshape(-1, width)
        return FixedWidth(width * 8, total, out.ravel())

    def decode_blocks(
        self, encoding: encodings21.ByteStreamSplit, blocks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Turn all blocks."""
        return self.decode_chunks(encoding, blocks, codecs)

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take values of 32 or 64 bits below a general compression, when told to or if it helps."""
        block = measured.block
        if not isinstance(block, FixedWidth) or block.bits_per_value not in {32, 64}:
            return 0
        if not options.is_wrapped or options.bss == "off":
            return 0
        return _PRIORITY * (options.bss == "on" or _helps(measured, block))

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
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
        turned[full * width :] = rows[full:].T.ravel()
        sizes = counts * width
        part = ChunkBuffer(turned, ranges.starts_of(sizes)[:-1], sizes)
        flat = encodings21.Flat(bits_per_value=block.bits_per_value)
        split = encodings21.ByteStreamSplit(values=encodings21.CompressiveEncoding(flat=flat))
        encoding = encodings21.CompressiveEncoding(byte_stream_split=split)
        return CompressedChunks(encoding, (Parts((part,)),), counts)


def _checked_bits(encoding: encodings21.ByteStreamSplit) -> int:
    arm = encoding.values.WhichOneof("compression")
    if arm != "flat":
        raise NotSupportedError(f"byte stream split over {arm!r} is not supported")
    bits = encoding.values.flat.bits_per_value
    if bits not in {32, 64}:
        raise corrupt("byte stream split of 32 or 64 bit values", f"{bits} bits")
    return bits


def _helps(measured: Measured, block: FixedWidth) -> bool:
    """Tell whether a sample compresses better split, and bit packing would not help more."""
    widths = measured.block_widths
    if widths is None or not widths.size or block.num_values < _SAMPLE:
        return False
    if float(widths.mean()) < _PACKED_SHARE * block.bits_per_value:
        return False
    width = block.bits_per_value // 8
    start = (block.num_values - _SAMPLE) // 2
    plain = block.data[start * width : (start + _SAMPLE) * width]
    split = np.ascontiguousarray(plain.reshape(-1, width).T).ravel()
    whole = np.zeros(1, np.int64), np.array([plain.size], np.int64)
    _, plain_size = lz4_zstd.compress_zstd(plain, *whole, 1)
    _, split_size = lz4_zstd.compress_zstd(split, *whole, 1)
    return int(split_size[0]) < _SPLIT_SHARE * int(plain_size[0])
