"""The keys that a merge-insert added because nobody had them, as a set of hashes or a bloom filter.

Two writers that both insert key 7 would leave it twice. Each records the keys it inserted; whoever
commits second compares.

Layout: message ``KeyExistenceFilter``: the field ids of the key, and either exact 64-bit hashes or
a split-block bloom filter: blocks of eight little-endian 32-bit words, where a key sets one bit in
each word of one block. Its parameters are the number of bits, the number of items it was made for,
and the probability of a false positive.

Written here: the bloom filter that pylance writes, with its parameters, for keys of the types that
it hashes; for others, whose keys it leaves out of its filters, exact hashes, which it takes for an
overlap with every filter of its own. Beyond ``EXACT_MAX`` such keys, and for
nested ones, the filter says nothing: that overlaps with everything.

Limits: filters are comparable only when their fields, and for bloom filters also their parameters,
are equal; others count as overlapping.
Source: ``Transaction.Update.inserted_rows`` as written by pylance 14.0.2; block and bits of a hash
as in Parquet's split-block bloom filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb._pb import transaction as pb
from lance_nb.format.key_hashes import hash_keys, is_shared
from lance_nb.format.wire import unknown_bytes

EXACT_MAX = 100_000

_BLOCK_WORDS = 8
_NUM_BITS = 262144
_PARAMETERS = (_NUM_BITS, 8192, 0.00057)
_SALTS = np.array(
    [
        0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
    ],
    np.uint32,
)  # fmt: skip


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

    @classmethod
    def of_keys(cls, field_ids: Sequence[int], columns: Sequence[pa.Array]) -> KeyFilter:
        """Return the filter of keys, given as one array per column of the key, without nulls."""
        fields = tuple(field_ids)
        if all(is_shared(one.type) for one in columns):
            return cls(fields, bitmap=_bloom(hash_keys(columns)), parameters=_PARAMETERS)
        if len(columns[0]) > EXACT_MAX or any(pa.types.is_nested(one.type) for one in columns):
            return cls(fields)
        plain = [_plain(one) for one in columns]
        return cls(fields, hashes=tuple(np.unique(hash_keys(plain)).tolist()))

    @classmethod
    def united(cls, filters: Sequence[KeyFilter]) -> KeyFilter:
        """Return the filter of all keys of some filters, of which there is one at least."""
        first = filters[0]
        same = all(
            (one.field_ids, one.parameters) == (first.field_ids, first.parameters)
            for one in filters
        )
        bitmaps = [one.bitmap for one in filters if one.bitmap is not None]
        if same and len(bitmaps) == len(filters) and len({len(one) for one in bitmaps}) == 1:
            bits = [np.frombuffer(one, np.uint8) for one in bitmaps]
            return replace(first, bitmap=np.bitwise_or.reduce(bits).tobytes())
        hashes = [one.hashes for one in filters if one.hashes is not None]
        if same and len(hashes) == len(filters) and sum(map(len, hashes)) <= EXACT_MAX:
            return replace(first, hashes=tuple(sorted({key for one in hashes for key in one})))
        return cls(first.field_ids)

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


def _plain(values: pa.Array) -> pa.Array:
    """Return the values behind a dictionary or an extension type."""
    if isinstance(values.type, pa.BaseExtensionType):
        return values.storage
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _bloom(hashes: npt.NDArray[np.uint64]) -> bytes:
    """Return the blocks of a filter with these hashes."""
    num_blocks = _NUM_BITS // (32 * _BLOCK_WORDS)
    words = np.zeros((num_blocks, _BLOCK_WORDS), "<u4")
    block = ((hashes >> np.uint64(32)) * np.uint64(num_blocks)) >> np.uint64(32)
    low = hashes.astype(np.uint32)
    bits = np.uint32(1) << ((low[:, None] * _SALTS) >> np.uint32(27))
    np.bitwise_or.at(words, block.astype(np.int64), bits)
    return words.tobytes()
