"""Bloom filter: for each zone of rows, a filter that says which values cannot be there.

``bloomfilter.lance`` has a row per zone: ``bloom_filter_data``, ``has_null`` and where the zone is
(``zones``). A filter is a split-block Bloom filter as in Parquet: blocks of eight u32; the upper
half of the xxHash64 of the value's bytes chooses the block, the lower half times eight odd numbers
a bit of each word. What is found may pass and is computed again.

Only texts, bytes and whole numbers are looked up, and few of them at a time. A filter has the
smallest power of two of bytes at which a full zone gives wrong hits with the probability asked for.
Source: files that pylance 14.0.2 writes; https://parquet.apache.org/docs/file-format/bloomfilter
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import exp, lgamma, log
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from xxhash import xxh64_intdigest

from lance_nb import arrow_compute as pc
from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import IndexFile, open_file
from lance_nb.indices.leaf import IsNull, Leaf, OneOf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS
from lance_nb.indices.zones import (
    ZONE_FIELDS,
    ZONE_ROWS,
    NullRows,
    Zones,
    checked_zone_rows,
    write_zones,
    zones_of,
)
from lance_nb.table.predicate.comparison import as_mask
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows

FILES = ("bloomfilter.lance",)
DETAILS_URL = "/lance.index.pb.BloomFilterIndexDetails"
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


def statistics(file: IndexFile) -> dict[str, Any]:
    """Return pylance's statistics of a segment. Raises CorruptFileError."""
    return {"num_blocks": file.num_rows, **_settings(file)}


class BloomFilter:
    """One segment of Bloom filters."""

    def __init__(self, file: IndexFile) -> None:
        self._zones = Zones(file)
        data, has_null = file.read_all("bloom_filter_data", "has_null")
        if data.null_count or not (pt.is_binary(data.type) or pt.is_large_binary(data.type)):
            raise CorruptFileError(file.path, None, "a filter for each zone", str(data.type))
        self._has_null: Mask = as_mask(has_null, file.num_rows)
        by_size: dict[int, list[tuple[int, pa.Buffer]]] = {}
        for place, value in enumerate(data):
            buffer = value.as_buffer()
            if not buffer.size or buffer.size % _BLOCK_BYTES:
                actual = f"{buffer.size} bytes"
                raise CorruptFileError(file.path, None, "a filter of whole blocks", actual)
            by_size.setdefault(buffer.size, []).append((place, buffer))
        self._count = file.num_rows
        self._filters = [
            (
                np.array([place for place, _ in filters], np.int64),
                np.stack(
                    [np.frombuffer(filter_data, "<u4").reshape(-1, 8) for _, filter_data in filters]
                ),
            )
            for filters in by_size.values()
        ]

    def understands(self, leaf: Leaf) -> bool:
        """``=`` and IN with few members, and IS NULL."""
        question = leaf.asks(OneOf, IsNull)
        if isinstance(question, OneOf):
            return len(question.members) <= _MEMBERS_MAX and _has_bytes(leaf.column.type)
        return question is not None

    def estimate(self, leaf: Leaf) -> int:
        """Count the rows of the zones."""
        return self._zones.count(self._matching(leaf))

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Return all rows of the zones that may hold a value."""
        if isinstance(leaf.asks(OneOf, IsNull), IsNull) and self._zones.nulls is not None:
            return Found(self._zones.nulls, NO_ROWS)
        return Found(self._zones.rows(self._matching(leaf)), is_exact=False)

    def _matching(self, leaf: Leaf) -> Mask:
        question = leaf.asks(OneOf, IsNull)
        if not isinstance(question, OneOf):
            return self._has_null
        is_candidate = np.zeros(self._count, np.bool_)
        for key in _bytes_of(question.members):
            number = xxh64_intdigest(key, 0)
            bits = np.uint32(1) << ((np.uint32(number & 0xFFFFFFFF) * _SALT) >> np.uint32(27))
            for places, filters in self._filters:
                block = ((number >> 32) * filters.shape[1]) >> 32
                is_candidate[places] |= ((filters[:, block] & bits) != 0).all(axis=1)
        return is_candidate


def _has_bytes(kind: pa.DataType) -> bool:
    is_text = pt.is_string(kind) or pt.is_large_string(kind)
    return bool(is_text or pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_integer(kind))


def _bytes_of(members: pa.Array) -> Iterable[bytes]:
    """Yield the bytes of which the filters are made."""
    for member in members.to_pylist():
        if isinstance(member, int):
            width = members.type.bit_width // 8
            yield member.to_bytes(width, "little", signed=pt.is_signed_integer(members.type))
        else:
            yield member.encode() if isinstance(member, str) else member


# --- building -------------------------------------------------------------------------------------

PROBABILITY = 0.00057
_BYTES_MAX = 1 << 27  # of a filter
_BATCH_BYTES = 16 << 20
_FULL_BLOCK = 1000  # values of a block that has every bit set
_SHORT_LENGTHS = 64  # values of other lengths are hashed one by one
_PRIME1, _PRIME2, _PRIME3, _PRIME4, _PRIME5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
        0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip
Hashes = npt.NDArray[np.uint64]


def check(field: pa.Field, parameters: Parameters) -> Parameters:
    """Refuse a column without bytes to hash, and unknown parameters. Raises InvalidInputError."""
    if not _is_hashed(field.type):
        raise InvalidInputError(
            f"a BLOOMFILTER index holds whole and fractional numbers, texts, bytes, dates and "
            f"times: column {field.name!r} is {field.type}"
        )
    unknown_names = sorted(parameters.keys() - {"number_of_items", "probability"})
    if unknown_names:
        raise InvalidInputError(
            "a BLOOMFILTER index has the parameters 'number_of_items' and 'probability', not "
            f"{unknown_names[0]!r}"
        )
    items = parameters.get("number_of_items")
    rows = ZONE_ROWS if items is None else checked_zone_rows(items, "number_of_items")
    chance = parameters.get("probability", PROBABILITY)
    if not isinstance(chance, float) or not 0 < chance < 1:
        raise InvalidInputError(f"probability is a number between 0 and 1, not {chance!r}")
    if _filter_bytes(rows, chance) > _BYTES_MAX:
        raise InvalidInputError(
            f"filters of {rows} values and probability {chance} take more than {_BYTES_MAX:,} bytes"
        )
    return {"number_of_items": rows, "probability": chance}


def parameters_of(snapshot: Snapshot, index: IndexMetadata) -> Parameters:
    """Return the rows of a zone of a segment and its probability. Raises LanceError."""
    return _settings(open_file(snapshot, index, FILES[0]))


def _settings(file: IndexFile) -> dict[str, Any]:
    text = file.setting("bloomfilter_probability", str(PROBABILITY))
    try:
        chance = float(text)
    except ValueError:
        chance = 0.0
    if not 0 < chance < 1:
        raise CorruptFileError(file.path, None, "a probability between 0 and 1", text[:40])
    rows = file.number("bloomfilter_item", ZONE_ROWS, 1 << 24)
    return {"number_of_items": rows, "probability": chance}


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the filter of each zone."""
    from lance_nb.indices.building import SegmentDetails

    zone_rows, chance = parameters["number_of_items"], parameters["probability"]
    schema = pa.schema(
        [
            *ZONE_FIELDS,
            pa.field("has_null", pa.bool_(), nullable=False),
            pa.field("bloom_filter_data", pa.binary(), nullable=False),
        ],
        {"bloomfilter_item": str(zone_rows), "bloomfilter_probability": repr(chance)},
    )
    size, nulls = _filter_bytes(zone_rows, chance), NullRows()
    most = max(_BATCH_BYTES // size, 1)
    records = (
        (
            zone.fragment_id,
            zone.start,
            zone.length,
            bool(zone.values.null_count),
            _filter(pc.drop_null(zone.values), size),
        )
        for zone in zones_of(rows.batches(), zone_rows, nulls)
    )
    with files.create(FILES[0], schema) as file:
        write_zones(file, schema, records, nulls=nulls, batch_rows=most)
    return SegmentDetails()


def _filter_bytes(num_values: int, chance: float) -> int:
    """Return the size of a filter of so many values that is hit by chance with this probability.

    Values fall into blocks at random (a Poisson distribution); a block of k values has all eight
    bits of another one with the probability (1 - (31/32)^k)^8.
    """
    size = _BLOCK_BYTES
    while size < 2 * _BYTES_MAX:
        mean = num_values * _BLOCK_BYTES / size
        if mean > _FULL_BLOCK:
            size *= 2
            continue
        most = int(mean + 12 * mean**0.5 + 20)
        shares = (
            exp(k * log(mean) - mean - lgamma(k + 1)) * (1 - (31 / 32) ** k) ** 8
            for k in range(most)
        )
        if sum(shares) <= chance:
            break
        size *= 2
    return size


def _filter(values: pa.Array, size: int) -> bytes:
    """Return the filter of some values."""
    blocks = np.zeros((size // _BLOCK_BYTES, 8), np.uint32)
    for hashes in _hashes(values):
        low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        block = ((hashes >> np.uint64(32)) * np.uint64(len(blocks))) >> np.uint64(32)
        bits = np.uint32(1) << ((low[:, None] * _SALT) >> np.uint32(27))
        np.bitwise_or.at(blocks, block.astype(np.int64), bits)
    return blocks.astype("<u4").tobytes()


def _is_hashed(kind: pa.DataType) -> bool:
    is_number = pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind)
    is_time = pt.is_date(kind) or pt.is_time(kind) or pt.is_timestamp(kind)
    return bool(_has_bytes(kind) or is_number or is_time)


def _hashes(values: pa.Array) -> Iterator[Hashes]:
    """Yield the xxHash64 of all values, seed 0."""
    if not len(values):
        return
    kind = values.type
    if not _has_bytes(kind) or pt.is_integer(kind):
        width = kind.bit_width // 8
        data = np.frombuffer(values.buffers()[1], np.uint8)
        table = data[values.offset * width : (values.offset + len(values)) * width]
        table = table.reshape(-1, width)
        yield _xxh64(table)
        if pt.is_floating(kind):  # 0.0 and -0.0 are equal
            zero = np.zeros((1, width), np.uint8)
            zero_bits = table.view(f"<u{width}")
            if bool(((zero_bits << zero_bits.dtype.type(1)) == 0).any()):
                minus = zero.copy()
                minus[0, -1] = 0x80
                yield _xxh64(np.concatenate([zero, minus]))
        return
    width = 8 if pt.is_large_string(kind) or pt.is_large_binary(kind) else 4
    offsets = np.frombuffer(values.buffers()[1], f"<i{width}", len(values) + 1,
                            values.offset * width).astype(np.int64)  # fmt: skip
    content = values.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    lengths = np.diff(offsets)
    for length in np.flatnonzero(np.bincount(np.minimum(lengths, _SHORT_LENGTHS))).tolist():
        if length < _SHORT_LENGTHS:
            starts = offsets[:-1][lengths == length]
            yield _xxh64(data[starts[:, None] + np.arange(length)])
        else:
            starts, ends = offsets[:-1][lengths >= length], offsets[1:][lengths >= length]
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            yield np.array([xxh64_intdigest(data[a:b].tobytes(), 0) for a, b in spans], np.uint64)


def _rotated(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _round(acc: Hashes, lane: Hashes) -> Hashes:
    return _rotated(acc + lane * _PRIME2, 31) * _PRIME1


def _xxh64(table: npt.NDArray[np.uint8]) -> Hashes:
    """Return the hash of each row, all of one length."""
    count, length = table.shape
    position = 0
    zero = np.zeros(count, np.uint64)
    if length >= 32:
        accs = [zero + _PRIME1 + _PRIME2, zero + _PRIME2, zero, zero - _PRIME1]
        while position + 32 <= length:
            for lane in range(4):
                accs[lane] = _round(accs[lane], _lanes(table, position + 8 * lane, 8))
            position += 32
        turned = zip(accs, (1, 7, 12, 18), strict=True)
        hashes = sum((_rotated(acc, bits) for acc, bits in turned), zero)
        for acc in accs:
            hashes = (hashes ^ _round(zero, acc)) * _PRIME1 + _PRIME4
    else:
        hashes = zero + _PRIME5
    hashes = hashes + np.uint64(length)
    while position + 8 <= length:
        hashes = _rotated(hashes ^ _round(zero, _lanes(table, position, 8)), 27) * _PRIME1 + _PRIME4
        position += 8
    if position + 4 <= length:
        hashes = _rotated(hashes ^ (_lanes(table, position, 4) * _PRIME1), 23) * _PRIME2 + _PRIME3
        position += 4
    while position < length:
        hashes = _rotated(hashes ^ (table[:, position].astype(np.uint64) * _PRIME5), 11) * _PRIME1
        position += 1
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _PRIME2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _PRIME3
    return hashes ^ (hashes >> np.uint64(32))


def _lanes(table: npt.NDArray[np.uint8], position: int, width: int) -> Hashes:
    part = np.ascontiguousarray(table[:, position : position + width])
    return part.view(f"<u{width}").reshape(-1).astype(np.uint64)
