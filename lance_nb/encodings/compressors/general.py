"""Write buffers compressed as a whole, where the field asks for LZ4 or Zstandard.

Layout: see ``compression.general``; what does not become smaller stays as it is.
Limits: values of less than 4 KiB together stay as they are.
Source: messages ``General`` and ``BufferCompression`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    FixedWidth,
    Ints,
    VariableWidth,
)
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import deflate, ranges
from lance_nb.encodings.statistics import WRAPPER, Measured

_LEAST_BYTES = 4096  # of content; less stays as it is
_DEFLATE = {
    "lz4": (encodings21.COMPRESSION_ALGORITHM_LZ4, deflate.deflate_lz4),
    "zstd": (encodings21.COMPRESSION_ALGORITHM_ZSTD, deflate.deflate_zstd),
}


class GeneralCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take integers and strings where a compression was asked for."""
        enough = isinstance(measured.block, FixedWidth | VariableWidth) and (
            measured.size_bytes >= _LEAST_BYTES
        )
        return WRAPPER * (options.compression in _DEFLATE and not options.is_wrapped and enough)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Compress the first buffer of every chunk of the encoding below."""
        inner = compressors.compress_chunks(measured, options.wrapped)
        first = _deflated(inner.buffers[0].joined(), options)
        if int(first.sizes.sum()) >= int(inner.buffers[0].sizes.sum()):
            return inner
        encoding = _message(inner.encoding, options)
        return CompressedChunks(encoding, (Parts((first,)), *inner.buffers[1:]), inner.num_values)

    def nominate_blocks(
        self, measured: Measured, _num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take blocks where a compression was asked for."""
        return WRAPPER * (options.compression in _DEFLATE and not options.is_wrapped)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Compress every block, if that makes them smaller."""
        inner = compressors.compress_blocks(measured.block, num_values, options.wrapped)
        whole = _deflated(inner.blocks.joined(), options)
        if int(whole.sizes.sum()) >= int(inner.blocks.sizes.sum()):
            return inner
        return CompressedBlocks(_message(inner.encoding, options), Parts((whole,)))

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take strings where a compression was asked for."""
        is_text = isinstance(measured.block, VariableWidth)
        return WRAPPER * (options.compression in _DEFLATE and not options.is_wrapped and is_text)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Compress every value on its own, empty ones too; nulls are left out later."""
        inner = compressors.compress_values(measured, options.wrapped)
        values = inner.values
        if not isinstance(values, VariableWidth):
            return inner
        offsets = values.offsets.astype(np.int64)
        each = _deflated(ChunkBuffer(values.data, offsets[:-1], np.diff(offsets)), options)
        ends = np.empty_like(values.offsets)
        ends[:] = ranges.starts_of(each.sizes)
        packed = VariableWidth(values.num_values, ends, each.data)
        return CompressedValues(_message(inner.encoding, options), packed)


def _message(
    inner: encodings21.CompressiveEncoding, options: EncodingOptions
) -> encodings21.CompressiveEncoding:
    scheme, _ = _DEFLATE[str(options.compression)]
    compression = encodings21.BufferCompression(scheme=scheme, level=options.compression_level)
    return encodings21.CompressiveEncoding(
        general=encodings21.General(compression=compression, values=inner)
    )


def _deflated(buffer: ChunkBuffer, options: EncodingOptions) -> ChunkBuffer:
    _, compress = _DEFLATE[str(options.compression)]
    data, sizes = compress(buffer.data, buffer.starts, buffer.sizes, options.compression_level)
    return ChunkBuffer(data, ranges.starts_of(sizes)[:-1], sizes)
