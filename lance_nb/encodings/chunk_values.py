"""Values of the chunks of a mini-block page: all, those of some ranges, or single ones.

Source: message MiniBlockLayout of lance.encodings21 (``value_compression``, ``dictionary``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    Dictionary,
    FixedWidth,
    Ints,
    Wanted,
    corrupt,
)
from lance_nb.encodings.slicing import expand_ranges, gather_ranges

SPARSE_SHARE = 8  # values are fetched one by one when at most one in eight is wanted


@dataclass(frozen=True, slots=True)
class ChunkValues:
    """How the values of a page are decoded; ``items`` are what they number, if they are numbers."""

    encoding: encodings21.CompressiveEncoding
    codecs: Codecs
    items: DataBlock | None

    def whole(self, chunks: Chunks) -> DataBlock:
        """Decode all values of the chunks."""
        values = self.codecs.decode_chunks(self.encoding, chunks)
        total = int(np.add.reduce(chunks.num_values))
        if values.num_values != total:
            raise corrupt(f"{total} values", str(values.num_values))
        return self._looked_up(values)

    def ranges(self, chunks: Chunks, starts: Ints, stops: Ints) -> DataBlock:
        """Decode the values at these positions of the chunks, counted through all of them.

        Few values are fetched one by one where the encoding allows it; else whole chunks are
        decoded and cut.
        """
        ends = np.cumsum(chunks.num_values)
        wanted = int((stops - starts).sum())
        if wanted * SPARSE_SHARE <= int(ends[-1]) and self.codecs.can_gather(self.encoding):
            positions = expand_ranges(starts, stops)
            owner = np.searchsorted(ends, positions, side="right")
            inside = positions - (ends - chunks.num_values)[owner]
            return self.single(chunks, Wanted(owner, inside))
        return gather_ranges(self.whole(chunks), starts, stops)

    def single(self, chunks: Chunks, wanted: Wanted) -> DataBlock:
        """Fetch single values without decoding their chunks."""
        return self._looked_up(self.codecs.gather(self.encoding, chunks, wanted))

    def _looked_up(self, values: DataBlock) -> DataBlock:
        if self.items is None:
            return values
        if not isinstance(values, FixedWidth):
            raise corrupt("fixed-width dictionary indices", type(values).__name__)
        return Dictionary(values.num_values, values, self.items)
