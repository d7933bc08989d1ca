"""Fixed-size list: the items of all lists back to back, ``dimension`` per list.

Layout: the items are an encoding of their own (with their own nulls), ``dimension`` times as long;
nulls of the lists themselves are a ``nullable`` outside.
Limits: ``dimension`` is at least 1.
Source: message ``FixedSizeList`` of lance.encodings.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings import base
from lance_nb.encodings.base import AllNull, Rows, corrupt
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, ItemRanges, Page, Values, scaled


class FixedSizeList:
    """Group values into lists."""

    def decode(
        self, encoding: encodings.FixedSizeList, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the items of the rows."""
        if not encoding.dimension:
            raise corrupt("a fixed-size list of at least one item", "dimension 0")
        items = yield from codecs.decode(encoding.items, scaled(rows, encoding.dimension), page)
        if isinstance(items.block, ItemRanges):
            raise corrupt("plain items in a fixed-size list", "lists")
        validity = None
        if items.validity is not None:
            validity = np.packbits(items.validity, bitorder="little")
        elif isinstance(items.block, AllNull):
            validity = np.zeros((items.block.num_values + 7) // 8, np.uint8)
        return Values(base.FixedSizeList(encoding.dimension, rows.num_rows, items.block, validity))
