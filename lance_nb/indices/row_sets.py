"""Sets of rows in index files, read into ascending arrays of 64-bit numbers.

Layout (little endian)::

    tree map     u32 count; count times: u32 key, u32 size, ``size`` bytes of a portable 32-bit
                 Roaring bitmap. Size 0: every row of the fragment ``key``
    64-bit set   u64 count; count times: u32 key, a portable 32-bit Roaring bitmap

The key is the upper half of the numbers: of a row address the fragment.

Source: files that pylance 14.0.2 writes; https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
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
    view = memoryview(data)
    if len(view) < _COUNT.size:
        raise CorruptFileError(path, None, "a set of rows", f"{len(view)} bytes")
    (count,) = _COUNT.unpack_from(view)
    if count > len(view) // _ENTRY.size:
        raise CorruptFileError(path, None, f"{count} entries in a set of rows", "fewer")
    at, parts = _COUNT.size, []
    for _ in range(count):
        if at + _ENTRY.size > len(view):
            raise CorruptFileError(path, None, f"{count} entries in a set of rows", "fewer")
        key, size = _ENTRY.unpack_from(view, at)
        at += _ENTRY.size
        if not size:
            raise NotSupportedError(f"{path}: a set of all rows of a fragment is not read")
        if at + size > len(view):
            raise CorruptFileError(path, None, f"a bitmap of {size} bytes", f"{len(view) - at}")
        parts.append(_rows(key, view[at : at + size], path))
        at += size
    if at != len(view):
        raise CorruptFileError(path, None, "the end of a set of rows", f"{len(view) - at} bytes")
    return joined(parts)


def set64_rows(data: bytes | memoryview, path: str) -> U64s:
    """Read a portable 64-bit Roaring bitmap. Raises CorruptFileError."""
    view = memoryview(data)
    if len(view) < _COUNT64.size:
        raise CorruptFileError(path, None, "a 64-bit set", f"{len(view)} bytes")
    (count,) = _COUNT64.unpack_from(view)
    if count > len(view) // _KEY.size:
        raise CorruptFileError(path, None, f"{count} entries in a 64-bit set", "fewer")
    at, parts = _COUNT64.size, []
    for _ in range(count):
        if at + _KEY.size > len(view):
            raise CorruptFileError(path, None, f"{count} entries in a 64-bit set", "fewer")
        (key,) = _KEY.unpack_from(view, at)
        at += _KEY.size
        size = portable_bytes(view[at:], path)
        parts.append(_rows(key, view[at : at + size], path))
        at += size
    if at != len(view):
        raise CorruptFileError(path, None, "the end of a 64-bit set", f"{len(view) - at} bytes")
    return joined(parts)


def _rows(key: int, data: memoryview, path: str) -> U64s:
    check_portable(data, path)
    try:
        found = BitMap.deserialize(bytes(data))
    except ValueError as error:
        raise CorruptFileError(path, None, "a Roaring bitmap", str(error)) from error
    if len(found) > ROWS_MAX:
        raise NotSupportedError(f"{path}: a set of {len(found):,} rows is not read")
    offsets = np.frombuffer(found.to_array(), np.uint32)
    return offsets.astype(np.uint64) | np.uint64(key << 32)


def joined(parts: Iterable[U64s]) -> U64s:
    """Return the numbers of all parts, ascending and different. Raises NotSupportedError."""
    listed = [one for one in parts if one.size]
    if sum(one.size for one in listed) > ROWS_MAX:
        raise NotSupportedError(f"more than {ROWS_MAX:,} candidates")
    if not listed:
        return NO_ROWS
    return ascending(listed[0] if len(listed) == 1 else np.concatenate(listed))


def ascending(rows: U64s) -> U64s:
    """Return the numbers ascending and different."""
    found: U64s = different(rows)
    return found


def common(one: U64s, other: U64s) -> U64s:
    """Return the numbers in both; both ascending."""
    small, large = (one, other) if one.size <= other.size else (other, one)
    return small[among(small, large)]


def without(rows: U64s, gone: U64s) -> U64s:
    """Return the numbers that are not ``gone``; both ascending."""
    return rows[~among(rows, gone)]
