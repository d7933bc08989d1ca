"""General: a buffer compressed as a whole by LZ4 or Zstandard, over any other encoding.

Layout: mini-block: only the first value buffer of each chunk is compressed. Block: the one buffer.
Per value (full-zip): each value on its own; an empty value (a null) stays empty. The framing is
that of ``kernels.inflate``.
Limits: a claimed size is checked against what the format can expand to before room is made.
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
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.kernels import inflate, ranges
from lance_nb.errors import NotSupportedError

_SCHEMES = {
    encodings21.COMPRESSION_ALGORITHM_LZ4: inflate.inflate_lz4,
    encodings21.COMPRESSION_ALGORITHM_ZSTD: inflate.inflate_zstd,
}


class General:
    """Decompress, then hand on to the encoding below."""

    def num_buffers(self, encoding: encodings21.General, codecs: Codecs) -> int:
        """Return the number of buffers of the encoding below."""
        return codecs.num_buffers(encoding.values)

    def decode_chunks(
        self, encoding: encodings21.General, chunks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Decompress the first buffer of every chunk."""
        first = _inflated(encoding, chunks.buffers[0])
        return codecs.decode_chunks(
            encoding.values, Chunks((first, *chunks.buffers[1:]), chunks.num_values)
        )

    def decode_blocks(
        self, encoding: encodings21.General, blocks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Decompress every block."""
        whole = _inflated(encoding, blocks.buffers[0])
        return codecs.decode_blocks(encoding.values, Chunks((whole,), blocks.num_values))

    def decode_values(
        self, encoding: encodings21.General, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> DataBlock:
        """Decompress every value."""
        if not isinstance(values, VariableWidth):
            raise corrupt("compressed values of variable width", "values of fixed width")
        offsets = values.offsets.astype(np.int64)
        each = ChunkBuffer(values.data, offsets[:-1], np.diff(offsets))
        whole = _inflated(encoding, each)
        # All contents together are below 2**31 bytes, so 32-bit offsets stay 32 bits wide.
        ends = np.empty_like(values.offsets)
        ends[:] = ranges.starts_of(whole.sizes)
        inner = VariableWidth(values.num_values, ends, whole.data)
        return codecs.decode_values(encoding.values, inner)


def _inflated(encoding: encodings21.General, buffer: ChunkBuffer) -> ChunkBuffer:
    scheme = encoding.compression.scheme
    if scheme not in _SCHEMES:
        raise NotSupportedError(f"buffer compression scheme {scheme} is not supported")
    data, sizes = _SCHEMES[scheme](buffer.data, buffer.starts, buffer.sizes)
    return ChunkBuffer(data, ranges.starts_of(sizes)[:-1], sizes)
