"""Dictionary: indices into the few different values of a page.

Layout: ``items`` are ``num_dictionary_items`` values, ``indices`` one unsigned number per row.
A column of an Arrow dictionary type counts items from 0 and stores a null as the index of a null
item. Any other column (strings with few different values) keeps index 0 for null: index ``k`` is
item ``k - 1``.
Limits: indices are 8 to 64 bits wide; the items are read whole.
Source: message ``Dictionary`` of lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings import base
from lance_nb.encodings.base import AllNull, FixedWidth, Ints, Rows, corrupt
from lance_nb.encodings.steps import Steps, together
from lance_nb.encodings.v2_0.base import ArrayCodecs, ItemRanges, Mask, Page, Values

Indices = np.ndarray[tuple[int], np.dtype[np.unsignedinteger[Any]]]


class Dictionary:
    """Decode indices and items."""

    def decode(
        self, encoding: encodings.Dictionary, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode both side by side; a null item makes its rows null."""
        count = encoding.num_dictionary_items
        zero: Ints = np.zeros(min(count, 1), np.int64)
        every = Rows(zero, zero + count)
        found, items = yield from together(
            [
                codecs.decode(encoding.indices, rows, page),
                codecs.decode(encoding.items, every, page),
            ]
        )
        if isinstance(items.block, ItemRanges):
            raise corrupt("plain items in a dictionary", "lists")
        indices = _unsigned(found)
        validity = found.validity
        if not page.keeps_dictionary:
            validity = _both(validity, indices != 0)
            indices = np.where(indices == 0, indices, indices - indices.dtype.type(1))
        if validity is not None and not bool(validity.any()):
            return Values(AllNull(rows.num_rows))
        if validity is not None:
            indices = np.where(validity, indices, indices.dtype.type(0))
        if indices.size and int(indices.max()) >= count:
            raise corrupt(f"dictionary indices below {count}", str(int(indices.max())))
        validity = _both(validity, _valid_items(items, indices))
        bits = indices.dtype.itemsize * 8
        block = base.Dictionary(
            rows.num_rows,
            FixedWidth(bits, rows.num_rows, np.ascontiguousarray(indices).view(np.uint8)),
            items.block,
        )
        return Values(block, validity)


def _unsigned(values: Values) -> Indices:
    block = values.block
    if not isinstance(block, FixedWidth) or block.bits_per_value not in {8, 16, 32, 64}:
        raise corrupt("dictionary indices of 8, 16, 32 or 64 bits", type(block).__name__)
    return block.data.view(f"<u{block.bits_per_value // 8}")


def _valid_items(items: Values, indices: Indices) -> Mask | None:
    if isinstance(items.block, AllNull):
        return np.zeros(indices.size, bool)
    return None if items.validity is None else items.validity[indices]


def _both(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right
