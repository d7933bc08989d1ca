"""Bloom filter: for each zone of rows, a filter that says which values cannot be there.

``bloomfilter.lance`` has a row per zone: ``bloom_filter_data``, ``has_null`` and where the zone is
(``zones``). A filter is a split-block Bloom filter as in Parquet: blocks of eight u32; the upper
half of the xxHash64 of the value's bytes chooses the block, the lower half times eight odd numbers
a bit of each word. What is found may pass and is computed again.

Only texts, bytes and whole numbers are looked up, and few of them at a time.
Source: files that pylance 14.0.2 writes; https://parquet.apache.org/docs/file-format/bloomfilter
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from xxhash import xxh64_intdigest

from lance_nb.errors import CorruptFileError
from lance_nb.indices.index_file import IndexFile
from lance_nb.indices.leaf import IsNull, Leaf, OneOf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS
from lance_nb.indices.zones import Zones
from lance_nb.table.predicate.comparison import as_mask

FILES = ("bloomfilter.lance",)
_MEMBERS_MAX = 64
_BLOCK_BYTES = 32
_SALT = np.array(
    [
        0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
    ],
    np.uint32,
)  # fmt: skip
Mask = npt.NDArray[np.bool_]


class BloomFilter:
    """One segment of Bloom filters."""

    def __init__(self, file: IndexFile) -> None:
        self._zones = Zones(file)
        data, has_null = file.read_all("bloom_filter_data", "has_null")
        if data.null_count or not (pt.is_binary(data.type) or pt.is_large_binary(data.type)):
            raise CorruptFileError(file.path, None, "a filter for each zone", str(data.type))
        self._has_null: Mask = as_mask(has_null, file.num_rows)
        by_size: dict[int, list[tuple[int, pa.Buffer]]] = {}
        for place, one in enumerate(data):
            buffer = one.as_buffer()
            if not buffer.size or buffer.size % _BLOCK_BYTES:
                found = f"{buffer.size} bytes"
                raise CorruptFileError(file.path, None, "a filter of whole blocks", found)
            by_size.setdefault(buffer.size, []).append((place, buffer))
        self._count = file.num_rows
        self._filters = [
            (
                np.array([place for place, _ in found], np.int64),
                np.stack([np.frombuffer(one, "<u4").reshape(-1, 8) for _, one in found]),
            )
            for found in by_size.values()
        ]

    def understands(self, leaf: Leaf) -> bool:
        """``=`` and IN with few members, and IS NULL."""
        asked = leaf.asks(OneOf, IsNull)
        if isinstance(asked, OneOf):
            return len(asked.members) <= _MEMBERS_MAX and _has_bytes(leaf.column.type)
        return asked is not None

    def estimate(self, leaf: Leaf) -> int:
        """Count the rows of the zones."""
        return self._zones.count(self._matching(leaf))

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Return all rows of the zones that may hold a value."""
        if isinstance(leaf.asks(OneOf, IsNull), IsNull) and self._zones.nulls is not None:
            return Found(self._zones.nulls, NO_ROWS)
        return Found(self._zones.rows(self._matching(leaf)), is_exact=False)

    def _matching(self, leaf: Leaf) -> Mask:
        asked = leaf.asks(OneOf, IsNull)
        if not isinstance(asked, OneOf):
            return self._has_null
        found = np.zeros(self._count, np.bool_)
        for one in _bytes_of(asked.members):
            number = xxh64_intdigest(one, 0)
            bits = np.uint32(1) << ((np.uint32(number & 0xFFFFFFFF) * _SALT) >> np.uint32(27))
            for places, filters in self._filters:
                block = ((number >> 32) * filters.shape[1]) >> 32
                found[places] |= ((filters[:, block] & bits) != 0).all(axis=1)
        return found


def _has_bytes(kind: pa.DataType) -> bool:
    is_text = pt.is_string(kind) or pt.is_large_string(kind)
    return bool(is_text or pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_integer(kind))


def _bytes_of(members: pa.Array) -> Iterable[bytes]:
    """Yield the bytes of which the filters are made."""
    for one in members.to_pylist():
        if isinstance(one, int):
            width = members.type.bit_width // 8
            yield one.to_bytes(width, "little", signed=pt.is_signed_integer(members.type))
        else:
            yield one.encode() if isinstance(one, str) else one
