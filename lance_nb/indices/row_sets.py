"""Sets of rows in index files, read into ascending arrays of 64-bit numbers.

Layout (little endian)::

    tree map     u32 count; count times: u32 key, u32 size, ``size`` bytes of a portable 32-bit
                 Roaring bitmap. Size 0: every row of the fragment ``key``
    64-bit set   u64 count; count times: u32 key, a portable 32-bit Roaring bitmap

The key is the upper half of the numbers: of a row address the fragment.

Roaring is written without runs: u32 12346; u32 number of containers; per container u16 upper half
of the low word and u16 cardinality - 1; per container u32 offset; then the containers: up to 4,096
rows as u16, more as 65,536 bits. Many sets are written at once.

Source: files that pylance 14.0.2 writes; https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.roaring import check_portable, portable_bytes
from lance_nb.table.index_search import among, different

U64s = npt.NDArray[np.uint64]
ROWS_MAX = 1 << 26
"""Rows that are held for one question; a question that has more candidates is not answered."""

_COUNT, _ENTRY, _COUNT64, _KEY = (struct.Struct(form) for form in ("<I", "<II", "<Q", "<I"))
NO_ROWS: U64s = np.zeros(0, np.uint64)


def tree_map_rows(data: bytes | memoryview, path: str) -> U64s:
    """Read a tree map. Raises CorruptFileError, NotSupportedError (a whole fragment)."""
    return rows_of_bitmaps([tree_map_bitmaps(data, path)])


def tree_map_bitmaps(data: bytes | memoryview, path: str) -> dict[int, BitMap]:
    """Read a tree map into a bitmap of offsets for each key, such as a fragment.

    Raises CorruptFileError, NotSupportedError (a whole fragment).
    """
    view = memoryview(data)
    if len(view) < _COUNT.size:
        raise CorruptFileError(path, None, "a set of rows", f"{len(view)} bytes")
    (count,) = _COUNT.unpack_from(view)
    if count > len(view) // _ENTRY.size:
        raise CorruptFileError(path, None, f"{count} entries of a set", f"{len(view)} bytes")
    offset = _COUNT.size
    bitmaps: dict[int, BitMap] = {}
    for number in range(count):
        if offset + _ENTRY.size > len(view):
            raise CorruptFileError(path, None, f"{count} entries in a set of rows", f"{number}")
        key, size = _ENTRY.unpack_from(view, offset)
        offset += _ENTRY.size
        if not size:
            raise NotSupportedError(f"{path}: a set of all rows of a fragment is not read")
        if offset + size > len(view):
            raise CorruptFileError(path, None, f"a bitmap of {size} bytes", f"{len(view) - offset}")
        if key in bitmaps:
            raise CorruptFileError(path, None, "each key of a set of rows once", f"{key} twice")
        bitmaps[key] = _bitmap(view[offset : offset + size], path)
        offset += size
    if offset != len(view):
        raise CorruptFileError(
            path, None, "the end of a set of rows", f"{len(view) - offset} bytes"
        )
    return bitmaps


def rows_of_bitmaps(sets: Iterable[dict[int, BitMap]]) -> U64s:
    """Return the rows that are in some of the sets, ascending. Raises NotSupportedError."""
    by_key: dict[int, list[BitMap]] = {}
    for row_set in sets:
        for key, bitmap in row_set.items():
            by_key.setdefault(key, []).append(bitmap)
    united = {key: BitMap.union(*by_key[key]) for key in sorted(by_key)}
    if sum(len(bitmap) for bitmap in united.values()) > ROWS_MAX:
        raise NotSupportedError(f"more than {ROWS_MAX:,} candidates")
    parts = [_numbers(key, bitmap) for key, bitmap in united.items()]
    return np.concatenate(parts) if parts else NO_ROWS


def bitmaps_of_rows(rows: U64s) -> dict[int, BitMap]:
    """Return ascending rows as a bitmap of offsets for each key; the inverse of the above."""
    keys = (rows >> np.uint64(32)).astype(np.int64)
    starts = np.searchsorted(keys, different(keys))
    parts = np.split(rows.astype(np.uint32), starts[1:])
    return {int(keys[start]): BitMap(part) for start, part in zip(starts, parts, strict=False)}


def set64_rows(data: bytes | memoryview, path: str) -> U64s:
    """Read a portable 64-bit Roaring bitmap. Raises CorruptFileError."""
    view = memoryview(data)
    if len(view) < _COUNT64.size:
        raise CorruptFileError(
            path, None, "a 64-bit Roaring bitmap of 8 bytes or more", f"{len(view)} bytes"
        )
    (count,) = _COUNT64.unpack_from(view)
    if count > len(view) // _KEY.size:
        raise CorruptFileError(
            path, None, f"{count} entries of a 64-bit Roaring bitmap", f"{len(view)} bytes"
        )
    offset, parts = _COUNT64.size, []
    for number in range(count):
        if offset + _KEY.size > len(view):
            raise CorruptFileError(path, None, f"{count} entries in a 64-bit set", f"{number}")
        (key,) = _KEY.unpack_from(view, offset)
        offset += _KEY.size
        size = portable_bytes(view[offset:], path)
        parts.append(_numbers(key, _bitmap(view[offset : offset + size], path)))
        offset += size
    if offset != len(view):
        raise CorruptFileError(path, None, "the end of a 64-bit set", f"{len(view) - offset} bytes")
    return joined(parts)


def _bitmap(data: memoryview, path: str) -> BitMap:
    check_portable(data, path)
    try:
        bitmap = BitMap.deserialize(bytes(data))
    except ValueError as error:
        raise CorruptFileError(path, None, "a Roaring bitmap", str(error)) from error
    if len(bitmap) > ROWS_MAX:
        raise NotSupportedError(f"{path}: a set of {len(bitmap):,} rows is not read")
    return bitmap


def _numbers(key: int, offsets: BitMap) -> U64s:
    rows = np.frombuffer(offsets.to_array(), np.uint32).astype(np.uint64)
    rows |= np.uint64(key << 32)
    return rows


def joined(parts: Iterable[U64s]) -> U64s:
    """Return the numbers of all parts, ascending and different. Raises NotSupportedError."""
    listed = [part for part in parts if part.size]
    if sum(part.size for part in listed) > ROWS_MAX:
        raise NotSupportedError(f"more than {ROWS_MAX:,} candidates")
    if not listed:
        return NO_ROWS
    return ascending(listed[0] if len(listed) == 1 else np.concatenate(listed))


def ascending(rows: U64s) -> U64s:
    """Return the numbers ascending and different."""
    different_rows: U64s = different(rows)
    return different_rows


def common(rows: U64s, other: U64s) -> U64s:
    """Return the numbers in both; both ascending."""
    small, large = (rows, other) if rows.size <= other.size else (other, rows)
    return small[among(small, large)]


def without(rows: U64s, removed: U64s) -> U64s:
    """Return the numbers that are not ``removed``; both ascending."""
    return rows[~among(rows, removed)]


# --- writing --------------------------------------------------------------------------------------

_COOKIE = 12346
_ARRAY_MAX = 4096
_WORDS = 4096  # u16 in a container of bits
_BYTES_MAX = (1 << 31) - 1
Words = npt.NDArray[np.uint16]
Places = npt.NDArray[np.int64]


def tree_maps(sets: Places, rows: U64s, count: int) -> pa.BinaryArray:
    """Return ``count`` tree maps, together below 2 GB: row i is in set ``sets[i]``.

    ``sets`` are ascending, and the rows of a set ascending and different.
    """
    return _serialized(sets, rows, count, is_wide=False)


def sets_64(sets: Places, rows: U64s, count: int) -> pa.BinaryArray:
    """Return ``count`` 64-bit sets, like ``tree_maps``."""
    return _serialized(sets, rows, count, is_wide=True)


def _serialized(sets: Places, rows: U64s, count: int, *, is_wide: bool) -> pa.BinaryArray:
    """Compute all sizes, then the places of all words, in units of two bytes."""
    high = (rows >> np.uint64(16)).astype(np.int64)
    container_at = _starts((sets[1:] != sets[:-1]) | (high[1:] != high[:-1]), rows.size)
    cards = np.diff(np.append(container_at, rows.size))
    container_high, container_set = high[container_at], sets[container_at]
    entry_at = _starts(
        (container_set[1:] != container_set[:-1])
        | (container_high[1:] >> 16 != container_high[:-1] >> 16),
        container_at.size,
    )
    num_containers = np.diff(np.append(entry_at, container_at.size))
    entry_set = container_set[entry_at]
    sizes = np.where(cards <= _ARRAY_MAX, cards, _WORDS)
    payload = np.add.reduceat(sizes, entry_at) if entry_at.size else sizes[:0]
    bitmap_words = 4 + 4 * num_containers + payload
    head = 2 if is_wide else 4
    set_head = 4 if is_wide else 2
    entries = np.bincount(entry_set, minlength=count).astype(np.int64)
    set_words = set_head + np.bincount(entry_set, head + bitmap_words, count).astype(np.int64)
    set_start = _before(set_words)
    # An entry begins behind the entries before it, and the heads of the sets up to its own.
    entry_start = _before(head + bitmap_words) + set_head * (entry_set + 1)
    out = np.zeros(int(set_words.sum()), np.uint16)
    _put(out, set_start, entries)
    _put(out, entry_start, container_high[entry_at] >> 16)
    if not is_wide:
        _put(out, entry_start + 2, 2 * bitmap_words)
    bitmap_start = entry_start + head
    _put(out, bitmap_start, np.full(entry_at.size, _COOKIE, np.int64))
    _put(out, bitmap_start + 2, num_containers)
    entry_of = np.repeat(np.arange(entry_at.size), num_containers)
    inside = np.arange(container_at.size) - entry_at[entry_of]
    header = bitmap_start[entry_of] + 4 + 2 * inside
    out[header] = container_high & 0xFFFF
    out[header + 1] = cards - 1
    data = _before(sizes) - _before(payload)[entry_of]
    data += 4 + 4 * num_containers[entry_of]  # from the beginning of the bitmap
    _put(out, bitmap_start[entry_of] + 4 + 2 * num_containers[entry_of] + 2 * inside, 2 * data)
    data += bitmap_start[entry_of]
    low = (rows & np.uint64(0xFFFF)).astype(np.uint16)
    is_array = cards <= _ARRAY_MAX
    if is_array.all():
        out[np.repeat(data - container_at, cards) + np.arange(rows.size)] = low
    else:
        in_array = np.repeat(is_array, cards)
        out[(np.repeat(data - container_at, cards) + np.arange(rows.size))[in_array]] = low[
            in_array
        ]
        for place in np.flatnonzero(~is_array).tolist():
            first = int(container_at[place])
            bits = np.zeros(1 << 16, np.bool_)
            bits[low[first : first + int(cards[place])]] = True
            start = int(data[place])
            out[start : start + _WORDS] = np.packbits(bits, bitorder="little").view("<u2")
    offsets = 2 * np.append(set_start, out.size)
    if offsets[-1] > _BYTES_MAX:
        raise NotSupportedError(f"sets of rows of {offsets[-1]:,} bytes are not written at once")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _starts(differs: npt.NDArray[np.bool_], count: int) -> Places:
    """Return where runs begin, given where a value differs from the one before it."""
    if not count:
        return np.zeros(0, np.int64)
    return np.concatenate([[0], np.flatnonzero(differs) + 1]).astype(np.int64)


def _before(sizes: Places) -> Places:
    """Return for each size the sum of those before it."""
    return np.cumsum(sizes) - sizes


def _put(out: Words, places: Places, values: Places) -> None:
    """Write 32-bit numbers as two words each."""
    out[places] = values & 0xFFFF
    out[places + 1] = values >> 16
