"""General: a buffer compressed as a whole by LZ4 or Zstandard, over any other encoding.

Layout: mini-block: only the first value buffer of each chunk is compressed. Block: the one buffer.
Per value (full-zip): each value on its own; an empty value (a null) stays empty. The framing is
that of ``kernels.lz4_zstd``.
Limits: a claimed size is checked against what the format can expand to before room is made. It is
written where the field asks for it, unless the values take less than 4 KiB or do not get smaller.
Source: messages ``General`` and ``BufferCompression`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    Ints,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import lz4_zstd, ranges
from lance_nb.encodings.statistics import WRAPPER, Measured
from lance_nb.errors import NotSupportedError

_SCHEMES = {
    encodings21.COMPRESSION_ALGORITHM_LZ4: lz4_zstd.decompress_lz4,
    encodings21.COMPRESSION_ALGORITHM_ZSTD: lz4_zstd.decompress_zstd,
}
_LEAST_BYTES = 4096  # of content; less stays as it is
_COMPRESS = {
    "lz4": (encodings21.COMPRESSION_ALGORITHM_LZ4, lz4_zstd.compress_lz4),
    "zstd": (encodings21.COMPRESSION_ALGORITHM_ZSTD, lz4_zstd.compress_zstd),
}


class General(Codec):
    """What another codec has encoded, compressed."""

    def num_buffers(self, encoding: encodings21.General, codecs: Codecs) -> int:
        """Return the number of buffers of the encoding below."""
        return codecs.num_buffers(encoding.values)

    def decode_chunks(
        self, encoding: encodings21.General, chunks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Decompress the first buffer of every chunk."""
        first = _decompressed(encoding, chunks.buffers[0])
        return codecs.decode_chunks(
            encoding.values, Chunks((first, *chunks.buffers[1:]), chunks.num_values)
        )

    def decode_blocks(
        self, encoding: encodings21.General, blocks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Decompress every block."""
        whole = _decompressed(encoding, blocks.buffers[0])
        return codecs.decode_blocks(encoding.values, Chunks((whole,), blocks.num_values))

    def decode_values(
        self, encoding: encodings21.General, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> DataBlock:
        """Decompress every value."""
        if not isinstance(values, VariableWidth):
            raise corrupt("compressed values of variable width", "values of fixed width")
        offsets = values.offsets.astype(np.int64)
        each = ChunkBuffer(values.data, offsets[:-1], np.diff(offsets))
        whole = _decompressed(encoding, each)
        # All contents together are below 2**31 bytes, so 32-bit offsets stay 32 bits wide.
        ends = np.empty_like(values.offsets)
        ends[:] = ranges.starts_of(whole.sizes)
        inner = VariableWidth(values.num_values, ends, whole.data)
        return codecs.decode_values(encoding.values, inner)

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take integers and strings where a compression was asked for."""
        enough = isinstance(measured.block, FixedWidth | VariableWidth) and (
            measured.size_bytes >= _LEAST_BYTES
        )
        return WRAPPER * (options.compression in _COMPRESS and not options.is_wrapped and enough)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Compress the first buffer of every chunk of the encoding below."""
        inner = compressors.compress_chunks(measured, options.wrapped)
        first = _compressed(inner.buffers[0].joined(), options)
        if int(first.sizes.sum()) >= int(inner.buffers[0].sizes.sum()):
            return inner
        encoding = _message(inner.encoding, options)
        return CompressedChunks(encoding, (Parts((first,)), *inner.buffers[1:]), inner.num_values)

    def nominate_blocks(
        self, measured: Measured, _num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take blocks where a compression was asked for."""
        return WRAPPER * (options.compression in _COMPRESS and not options.is_wrapped)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Compress every block, if that makes them smaller."""
        inner = compressors.compress_blocks(measured.block, num_values, options.wrapped)
        whole = _compressed(inner.blocks.joined(), options)
        if int(whole.sizes.sum()) >= int(inner.blocks.sizes.sum()):
            return inner
        return CompressedBlocks(_message(inner.encoding, options), Parts((whole,)))

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take strings where a compression was asked for."""
        is_text = isinstance(measured.block, VariableWidth)
        return WRAPPER * (options.compression in _COMPRESS and not options.is_wrapped and is_text)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Compress every value on its own, empty ones too; nulls are left out later."""
        inner = compressors.compress_values(measured, options.wrapped)
        values = inner.values
        if not isinstance(values, VariableWidth):
            return inner
        offsets = values.offsets.astype(np.int64)
        each = _compressed(ChunkBuffer(values.data, offsets[:-1], np.diff(offsets)), options)
        ends = np.empty_like(values.offsets)
        ends[:] = ranges.starts_of(each.sizes)
        packed = VariableWidth(values.num_values, ends, each.data)
        return CompressedValues(_message(inner.encoding, options), packed)


def _decompressed(encoding: encodings21.General, buffer: ChunkBuffer) -> ChunkBuffer:
    scheme = encoding.compression.scheme
    if scheme not in _SCHEMES:
        raise NotSupportedError(f"buffer compression scheme {scheme} is not supported")
    data, sizes = _SCHEMES[scheme](buffer.data, buffer.starts, buffer.sizes)
    return ChunkBuffer(data, ranges.starts_of(sizes)[:-1], sizes)


def _message(
    inner: encodings21.CompressiveEncoding, options: EncodingOptions
) -> encodings21.CompressiveEncoding:
    scheme, _ = _COMPRESS[str(options.compression)]
    compression = encodings21.BufferCompression(scheme=scheme, level=options.compression_level)
    return encodings21.CompressiveEncoding(
        general=encodings21.General(compression=compression, values=inner)
    )


def _compressed(buffer: ChunkBuffer, options: EncodingOptions) -> ChunkBuffer:
    _, compress = _COMPRESS[str(options.compression)]
    data, sizes = compress(buffer.data, buffer.starts, buffer.sizes, options.compression_level)
    return ChunkBuffer(data, ranges.starts_of(sizes)[:-1], sizes)
