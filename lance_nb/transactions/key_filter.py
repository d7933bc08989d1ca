"""The keys that a merge-insert added because nobody had them, as far as a set or filter tells.

Two writers that both insert key 7 would leave it twice. Each records the keys it inserted; whoever
commits second compares. Kept as bytes, decoded when compared.

Layout: message ``KeyExistenceFilter``: the field ids of the key, and either the exact 64-bit hashes
or a bloom filter (bitmap, number of bits, items it was made for, probability).
Limits: filters are comparable only when their fields, and for bloom filters also their sizes, are
equal; others count as overlapping.
Source: ``Transaction.Update.inserted_rows`` as written by pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

Parameters = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Keys of inserted rows. Exactly one of ``hashes`` and ``bitmap`` is set.

    ``parameters`` of a bloom filter: number of bits, number of items, probability.
    """

    field_ids: tuple[int, ...]
    hashes: tuple[int, ...] | None = None
    bitmap: bytes | None = None
    parameters: Parameters = (0, 0, 0.0)
    unknown: bytes = b""

    def may_overlap(self, other: KeyFilter) -> bool:
        """Tell whether a key may be in both; True as well when that cannot be found out."""
        if self.field_ids != other.field_ids:
            return True
        if self.hashes is not None and other.hashes is not None:
            return not set(self.hashes).isdisjoint(other.hashes)
        if self.bitmap is None or other.bitmap is None:
            return True
        if self.parameters != other.parameters or len(self.bitmap) != len(other.bitmap):
            return True
        both = int.from_bytes(self.bitmap, "little") & int.from_bytes(other.bitmap, "little")
        return both != 0
