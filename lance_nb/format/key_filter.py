"""The keys that a merge-insert added because nobody had them, as a set of hashes or a bloom filter.

Two writers that both insert key 7 would leave it twice. Each records the keys it inserted; whoever
commits second compares.

Layout: message ``KeyExistenceFilter``: the field ids of the key, and either exact 64-bit hashes or
a split-block bloom filter: blocks of eight little-endian 32-bit words, where a key sets one bit in
each word of one block. Its parameters are the number of bits, the number of items it was made for,
and the probability of a false positive.

Limits: filters are comparable only when their fields, and for bloom filters also their parameters,
are equal; others count as overlapping.
Source: ``Transaction.Update.inserted_rows`` as written by pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import transaction as pb
from lance_nb.format.wire import unknown_bytes

_BLOCK_WORDS = 8


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Keys of inserted rows. One of ``hashes`` and ``bitmap`` is set, or none if it does not say.

    ``parameters`` of a bloom filter: number of bits, number of items, probability.
    """

    field_ids: tuple[int, ...]
    hashes: tuple[int, ...] | None = None
    bitmap: bytes | None = None
    parameters: tuple[int, int, float] = (0, 0, 0.0)
    unknown: bytes = b""

    def may_overlap(self, other: KeyFilter) -> bool:
        """Tell whether a key may be in both; True as well when that cannot be found out."""
        if self.field_ids != other.field_ids:
            return True
        if self.hashes is not None and other.hashes is not None:
            return not set(self.hashes).isdisjoint(other.hashes)
        if self.bitmap is None or other.bitmap is None:
            return True
        comparable = self.parameters == other.parameters and len(self.bitmap) == len(other.bitmap)
        if not comparable or len(self.bitmap) % (4 * _BLOCK_WORDS):
            return True
        mine = np.frombuffer(self.bitmap, "<u4").reshape(-1, _BLOCK_WORDS)
        both = mine & np.frombuffer(other.bitmap, "<u4").reshape(-1, _BLOCK_WORDS)
        return bool((both != 0).all(axis=1).any())

    @classmethod
    def from_pb(cls, message: pb.KeyExistenceFilter) -> KeyFilter:
        """Read the message."""
        arm = message.WhichOneof("filter")
        bloom = message.bloom
        return cls(
            tuple(message.field_ids),
            tuple(message.exact.key_hashes) if arm == "exact" else None,
            bloom.bitmap if arm == "bloom" else None,
            (bloom.num_bits, bloom.number_of_items, bloom.probability),
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.KeyExistenceFilter:
        """Return the message."""
        message = pb.KeyExistenceFilter(field_ids=self.field_ids)
        if self.hashes is not None:
            message.exact.key_hashes.extend(self.hashes)
            message.exact.SetInParent()
        elif self.bitmap is not None:
            bits, items, probability = self.parameters
            message.bloom.bitmap = self.bitmap
            message.bloom.num_bits, message.bloom.number_of_items = bits, items
            message.bloom.probability = probability
            message.bloom.SetInParent()
        message.MergeFromString(self.unknown)
        return message
