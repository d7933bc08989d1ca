"""The keys that a merge-insert inserted, as a set of hashes or a bloom filter.

Two writers that both insert key 7 would leave it twice. Each records the keys it inserted; the one
that commits second compares.

Layout: message ``KeyExistenceFilter``: the field ids of the key, and either exact 64-bit hashes or
a split-block bloom filter: blocks of eight little-endian 32-bit words, where a key sets one bit in
each word of one block. Its parameters are the number of bits, the number of items it was made for,
and the probability of a false positive.

A hash is the XXH64, with seed 0, of the key's bytes: texts and bytes unchanged; integers of 32 and
64 bits as 8 bytes, little endian; a key of several columns is each part's bytes followed by a zero
byte.

Written here: the bloom filter that pylance writes, with its parameters, for keys of the types that
it hashes. For other types, whose keys it leaves out of its filters, exact hashes of their
fixed-width bytes, which it treats as an overlap with every filter of its own. Beyond ``EXACT_MAX``
such keys, and for nested ones, the filter is empty and overlaps with everything.

Limits: filters are comparable only when their fields, and for bloom filters also their parameters,
are equal; others count as overlapping.
Not supported: hashes of nested types.
Source: ``Transaction.Update.inserted_rows`` as written by pylance 14.0.2, hashes compared key by
key; block and bits of a hash as in Parquet's split-block bloom filters; the xxHash specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb._pb import transaction as pb
from lance_nb.errors import NotSupportedError
from lance_nb.format.wire import unknown_bytes
from lance_nb.value_classes import dataclass

U64s = npt.NDArray[np.uint64]

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
# The constants of XXH64.
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(constant)
    for constant in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32
_PADDING = bytes(_STRIPE)


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Keys of inserted rows. One of ``hashes`` and ``bitmap`` is set, or none if keys are unknown.

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
        if all(is_shared(column.type) for column in columns):
            return cls(fields, bitmap=_bloom(hash_keys(columns)), parameters=_PARAMETERS)
        if len(columns[0]) > EXACT_MAX or any(
            pa.types.is_nested(column.type) for column in columns
        ):
            return cls(fields)
        plain = [_plain(column) for column in columns]
        return cls(fields, hashes=tuple(np.unique(hash_keys(plain)).tolist()))

    @classmethod
    def united(cls, filters: Sequence[KeyFilter]) -> KeyFilter:
        """Return the filter of all keys of one or more filters."""
        first = filters[0]
        same = all(
            (filter_.field_ids, filter_.parameters) == (first.field_ids, first.parameters)
            for filter_ in filters
        )
        bitmaps = [filter_.bitmap for filter_ in filters if filter_.bitmap is not None]
        if same and len(bitmaps) == len(filters) and len({len(bitmap) for bitmap in bitmaps}) == 1:
            bits = [np.frombuffer(bitmap, np.uint8) for bitmap in bitmaps]
            return replace(first, bitmap=np.bitwise_or.reduce(bits).tobytes())
        hashes = [filter_.hashes for filter_ in filters if filter_.hashes is not None]
        if same and len(hashes) == len(filters) and sum(map(len, hashes)) <= EXACT_MAX:
            return replace(first, hashes=tuple(sorted({key for keys in hashes for key in keys})))
        return cls(first.field_ids)

    def may_overlap(self, other: KeyFilter) -> bool:
        """Return whether a key may be in both; True as well when that cannot be found out."""
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
        shared_bits = mine & np.frombuffer(other.bitmap, "<u4").reshape(-1, _BLOCK_WORDS)
        return bool((shared_bits != 0).all(axis=1).any())

    @classmethod
    def from_pb(cls, message: pb.KeyExistenceFilter) -> KeyFilter:
        """Read the message."""
        arm = message.WhichOneof("filter")
        bloom = message.bloom
        return cls(
            tuple(message.field_ids),
            tuple(message.exact.key_hashes) if arm == "exact" else None,
            bloom.bitmap if arm == "bloom" else None,
            parameters=(bloom.num_bits, bloom.number_of_items, bloom.probability),
            unknown=unknown_bytes(message),
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


# --- hashes ---------------------------------------------------------------------------------------


def is_shared(type_: pa.DataType) -> bool:
    """Whether pylance hashes keys of this type too."""
    if pt.is_integer(type_):
        return bool(type_.bit_width >= 32)
    return _is_text(type_)


def hash_keys(columns: Sequence[pa.Array]) -> U64s:
    """Return one hash per row; no value may be null. Raises NotSupportedError for nested types."""
    if len(columns) == 1 and not _is_text(columns[0].type):
        fixed = _fixed_bytes(columns[0])
        if fixed.shape[1] == 8:
            return _hash_words(fixed.view("<u8").ravel())
        return hash_bytes(*_joined([columns[0]], separated=False))
    return hash_bytes(*_joined(columns, separated=len(columns) > 1))


def hash_bytes(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> U64s:
    """Return the XXH64 of every item ``data[offsets[i]:offsets[i + 1]]``, all at once."""
    padded = np.concatenate([data, np.frombuffer(_PADDING, np.uint8)])
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = _P5 + lengths.astype(np.uint64)
    long = np.flatnonzero(lengths >= _STRIPE)
    if long.size:
        hashes[long] = _stripes(padded, starts[long], lengths[long])
        hashes[long] += lengths[long].astype(np.uint64)
    positions = starts + lengths // _STRIPE * _STRIPE
    return _finish(_tail(padded, hashes, positions, offsets[1:]))


def _hash_words(words: U64s) -> U64s:
    """Return the XXH64 of items of 8 bytes."""
    hashes = np.full(words.shape, _P5 + np.uint64(8))
    hashes ^= _rotate(words * _P2, 31) * _P1
    return _finish(_rotate(hashes, 27) * _P1 + _P4)


def _stripes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> U64s:
    """Hash all whole stripes of 32 bytes of the items."""
    with np.errstate(over="ignore"):
        first = (_P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1)
    lanes = [np.full(starts.shape, seed) for seed in first]
    counts = lengths // _STRIPE
    for stripe in range(int(counts.max())):
        live = np.flatnonzero(counts > stripe)
        for number, lane in enumerate(lanes):
            word = _words(data, starts[live] + stripe * _STRIPE + number * 8)
            lane[live] = _rotate(lane[live] + word * _P2, 31) * _P1
    merged = sum(
        (_rotate(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)),
        np.zeros(starts.shape, np.uint64),
    )
    for lane in lanes:
        merged = (merged ^ (_rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
    return merged


def _tail(
    data: npt.NDArray[np.uint8],
    hashes: U64s,
    positions: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> U64s:
    """Hash the rest of the items: words of 8 bytes, one of 4, single bytes."""
    positions = positions.copy()
    while (live := np.flatnonzero(ends - positions >= 8)).size:
        mixed = hashes[live] ^ (_rotate(_words(data, positions[live]) * _P2, 31) * _P1)
        hashes[live] = _rotate(mixed, 27) * _P1 + _P4
        positions[live] += 8
    live = np.flatnonzero(ends - positions >= 4)
    if live.size:
        half = _words(data, positions[live]) & np.uint64(0xFFFFFFFF)
        hashes[live] = _rotate(hashes[live] ^ (half * _P1), 23) * _P2 + _P3
        positions[live] += 4
    while (live := np.flatnonzero(ends > positions)).size:
        mixed = hashes[live] ^ (data[positions[live]].astype(np.uint64) * _P5)
        hashes[live] = _rotate(mixed, 11) * _P1
        positions[live] += 1
    return hashes


def _finish(hashes: U64s) -> U64s:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _rotate(values: U64s, bits: int) -> U64s:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _words(data: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64]) -> U64s:
    """Read 8 bytes, little endian, at each place."""
    words: U64s = data[positions[:, None] + np.arange(8)].view("<u8").ravel()
    return words


# --- values to bytes ------------------------------------------------------------------------------


def _is_text(type_: pa.DataType) -> bool:
    tests = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)
    return any(test(type_) for test in tests)


def _joined(
    columns: Sequence[pa.Array], *, separated: bool
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of every row's parts, one after the other, and where each row begins."""
    parts = [_bytes_of(column) for column in columns]
    sizes = [np.diff(offsets) for _, offsets in parts]
    extra = 1 if separated else 0
    offsets = np.zeros(len(columns[0]) + 1, np.int64)
    np.cumsum(sum(size + extra for size in sizes), out=offsets[1:])
    joined = np.zeros(int(offsets[-1]), np.uint8)
    positions = offsets[:-1].copy()
    for (data, starts), size in zip(parts, sizes, strict=True):
        shift = np.repeat(positions - starts[:-1], size)
        joined[np.arange(int(starts[0]), int(starts[-1])) + shift] = data[starts[0] : starts[-1]]
        positions += size + extra
    return joined, offsets


def _bytes_of(values: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    if not _is_text(values.type):
        fixed = _fixed_bytes(values)
        offsets = np.arange(len(values) + 1, dtype=np.int64) * fixed.shape[1]
        return fixed.ravel(), offsets
    _, offset_buffer, data = values.buffers()
    is_large = pt.is_large_string(values.type) or pt.is_large_binary(values.type)
    kind = np.dtype("<i8" if is_large else "<i4")
    if not len(values) or offset_buffer is None:
        return np.zeros(0, np.uint8), np.zeros(len(values) + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, kind)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64)


def _fixed_bytes(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return one row of bytes per value; 32-bit integers are widened to 64 bits."""
    if pt.is_int32(values.type):
        values = pc.cast(values, pa.int64())
    elif pt.is_uint32(values.type):
        values = pc.cast(values, pa.uint64())
    elif pt.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    try:
        width = values.type.bit_width // 8
    except ValueError as error:
        raise NotSupportedError(f"keys of type {values.type} are not supported") from error
    if pt.is_nested(values.type):
        raise NotSupportedError(f"keys of type {values.type} are not supported")
    data = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    start = values.offset * width
    return data[start : start + len(values) * width].reshape(-1, width)
