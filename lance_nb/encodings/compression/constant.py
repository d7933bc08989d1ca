"""Constant: one value for all, kept in the page description, with no buffer at all.

Layout: ``value`` is the value's bytes, little endian; without it every value is null (that is how
a fixed-size list says that all its items are null).
Limits: the result repeats nothing: it is one value and a count.
Source: message ``Constant`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import AllNull, Chunks, Codecs, FixedWidth
from lance_nb.encodings.base import Constant as ConstantBlock
from lance_nb.encodings.codec import Codec


class Constant(Codec):
    """One value for all."""

    def num_buffers(self, encoding: encodings21.Constant, codecs: Codecs) -> int:
        """Return 0: nothing is stored."""
        return 0

    def decode_chunks(
        self, encoding: encodings21.Constant, chunks: Chunks, codecs: Codecs
    ) -> ConstantBlock | AllNull:
        """Count the values of all chunks."""
        num_values = int(chunks.num_values.sum())
        if not encoding.HasField("value"):
            return AllNull(num_values)
        data = np.frombuffer(encoding.value, np.uint8)
        return ConstantBlock(num_values, FixedWidth(8 * data.size, 1, data))

    def decode_blocks(
        self, encoding: encodings21.Constant, blocks: Chunks, codecs: Codecs
    ) -> ConstantBlock | AllNull:
        """Count the values of all blocks."""
        return self.decode_chunks(encoding, blocks, codecs)
