"""Byte stream split: all first bytes of the values, then all second bytes, and so on.

Layout: byte ``j`` of value ``i`` lies at ``j * n + i`` of a chunk of ``n`` values.
Limits: values of 32 or 64 bits; in practice it only appears under a general compression.
Source: message ``ByteStreamSplit`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import Chunks, Codecs, FixedWidth, corrupt
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.errors import NotSupportedError


class ByteStreamSplit:
    """Bring the bytes of each value together again."""

    def num_buffers(self, _encoding: encodings21.ByteStreamSplit, _codecs: Codecs) -> int:
        """Return 1: the split bytes."""
        return 1

    def decode_chunks(
        self, encoding: encodings21.ByteStreamSplit, chunks: Chunks, _codecs: Codecs
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
        for count in np.unique(chunks.num_values).tolist():
            group = np.flatnonzero(chunks.num_values == count)
            split = ranges.rows(buffer.data, buffer.starts[group], count * width)
            values = split.reshape(group.size, width, count).transpose(0, 2, 1)
            if int(group[-1]) - int(group[0]) + 1 == group.size:
                target = out[ends[group[0]] : ends[group[-1] + 1]]
                target.reshape(group.size, count, width)[:] = values
            else:
                at = ranges.ragged_indices(ends[group], chunks.num_values[group])
                out[at] = values.reshape(-1, width)
        return FixedWidth(width * 8, total, out.ravel())

    def decode_blocks(
        self, encoding: encodings21.ByteStreamSplit, blocks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Turn all blocks."""
        return self.decode_chunks(encoding, blocks, codecs)


def _checked_bits(encoding: encodings21.ByteStreamSplit) -> int:
    arm = encoding.values.WhichOneof("compression")
    if arm != "flat":
        raise NotSupportedError(f"byte stream split over {arm!r} is not supported")
    bits = encoding.values.flat.bits_per_value
    if bits not in {32, 64}:
        raise corrupt("byte stream split of 32 or 64 bit values", f"{bits} bits")
    return bits
