"""Portable 32-bit Roaring bitmaps: validation before use, and conversion from and to masks.

pyroaring reads and writes the format, but its reader trusts counts inside the bytes, so they are
checked first. ``BitMap(array)`` costs 50 ns per value, while the bytes can be built from a boolean
mask in a tenth of that.

Layout (little endian)::

    u32 cookie = 12346, u32 n          or   u16 cookie = 12347, u16 n - 1, run flags ceil(n/8)
    n times: u16 key, u16 cardinality - 1
    n times: u32 offset from the start (left out with 12347 and n < 4)
    n containers: runs (u16 count, then u16 start, u16 length - 1 each) if flagged,
                  sorted u16 values if cardinality <= 4096, else 8192 bytes, LSB first

Limits: a container covers 65,536 values; keys ascend.
Source: https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError, describe_order

_COOKIE = 12346
_COOKIE_RUNS = 12347
_CONTAINER_ROWS = 1 << 16
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_NO_OFFSETS_BELOW = 4
_HEADER = struct.Struct("<II")
_U64 = np.uint64


def bitmap_from_mask(mask: npt.NDArray[np.bool_]) -> bytes:
    """Return the portable bytes of the positions where ``mask`` is True."""
    return bitmap_from_bits(np.packbits(mask, bitorder="little"))


def bitmap_from_bits(bits: npt.NDArray[np.uint8]) -> bytes:
    """Return the portable bytes of the positions of the bits that are set, lowest bit first.

    That is how dense containers hold them, so their bytes are copied as they are.
    """
    padded = np.zeros(-(-len(bits) // _BITMAP_BYTES) * _BITMAP_BYTES, np.uint8)
    padded[: len(bits)] = bits
    blocks = padded.reshape(-1, _BITMAP_BYTES)
    cardinality = _bits_set(blocks)
    keys = np.flatnonzero(cardinality)
    is_array = cardinality[keys] <= _ARRAY_MAX
    arrays = iter(_arrays(blocks[keys[is_array]], cardinality[keys[is_array]]))
    containers = [
        next(arrays) if few else blocks[key].tobytes()
        for key, few in zip(keys.tolist(), is_array.tolist(), strict=True)
    ]
    descriptive = np.empty((len(keys), 2), "<u2")
    descriptive[:, 0], descriptive[:, 1] = keys, cardinality[keys] - 1
    first = _HEADER.size + 8 * len(keys)
    sizes = np.array([0, *(len(container) for container in containers[:-1])], np.int64)[: len(keys)]
    offsets = (first + np.cumsum(sizes)).astype("<u4")
    header = _HEADER.pack(_COOKIE, len(keys))
    return b"".join([header, descriptive.tobytes(), offsets.tobytes(), *containers])


def _bits_set(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Count the bits that are set in each block, 64 at a time."""
    words = blocks.view(np.uint64)
    counts = words - (words >> _U64(1) & _U64(0x5555555555555555))  # of 2 bits each
    pairs = _U64(0x3333333333333333)
    counts = (counts & pairs) + (counts >> _U64(2) & pairs)
    counts = counts + (counts >> _U64(4)) & _U64(0x0F0F0F0F0F0F0F0F)
    every = counts * _U64(0x0101010101010101) >> _U64(56)
    totals: npt.NDArray[np.int64] = every.sum(axis=1, dtype=np.int64)
    return totals


def _arrays(blocks: npt.NDArray[np.uint8], cardinality: npt.NDArray[np.int64]) -> list[bytes]:
    """Return the bits that are set in each block as sorted values of 16 bits."""
    every = blocks.ravel()
    filled = np.flatnonzero(every != 0)
    places = np.flatnonzero(np.unpackbits(every[filled], bitorder="little").view(np.bool_))
    values = (filled[places >> 3] << 3 | places & 7).astype("<u2")  # cut to those of the container
    ends = np.cumsum(cardinality).tolist()
    return [values[start:end].tobytes() for start, end in pairwise([0, *ends])]


def mask_from_bitmap(data: bytes | memoryview, num_rows: int) -> npt.NDArray[np.bool_]:
    """Return ``num_rows`` booleans, True at the positions that a serialized bitmap holds.

    Positions of ``num_rows`` and above are left out. Raises CorruptFileError.
    """
    num_blocks = -(-num_rows // _CONTAINER_ROWS)
    mask = np.zeros((num_blocks, _CONTAINER_ROWS), np.bool_)
    for key, kind, content in _containers(memoryview(data), ""):
        if key >= num_blocks:
            break
        if kind is _Kind.ARRAY:
            mask[key, content] = True
        elif kind is _Kind.BITMAP:
            mask[key] = np.unpackbits(content, bitorder="little").view(np.bool_)
        else:
            for first, more in content.reshape(-1, 2).tolist():
                mask[key, first : first + more + 1] = True
    return mask.ravel()[:num_rows]


def check_portable(data: bytes | memoryview, path: str = "") -> None:
    """Check a serialized bitmap before a reader that trusts it sees it.

    Raises CorruptFileError when a container lies outside ``data``, bytes are left over, or keys or
    values do not ascend.
    """
    for _ in _containers(memoryview(data), path):
        pass


def portable_bytes(data: bytes | memoryview, path: str = "") -> int:
    """Return how many bytes the serialized bitmap at the start of ``data`` has.

    Raises CorruptFileError as ``check_portable``, but for bytes that are left over.
    """
    return max(stop for *_, stop in _content(memoryview(data), path))


class _Kind(Enum):
    ARRAY = "array"
    BITMAP = "bitmap"
    RUNS = "runs"


_Content = npt.NDArray[Any]


def _containers(view: memoryview, path: str) -> Iterator[tuple[int, _Kind, _Content]]:
    """Yield (key, kind, content) of every container of a view that ends with the last one."""
    position = 0
    for key, kind, content, stop in _content(view, path):
        position = stop
        if kind is not None:
            yield key, kind, content
    if position != len(view):
        raise _corrupt(path, position, "the end of the bitmap", f"{len(view) - position} bytes")


def _content(view: memoryview, path: str) -> Iterator[tuple[int, _Kind | None, _Content, int]]:
    """Yield (key, kind, content, where it ends) of every container, each checked before.

    The first is no container, and tells where the header ends.
    """
    flags, number, position = _header(view, path)
    if position + 4 * number > len(view):
        raise _corrupt(path, position, f"{number} containers", f"{len(view)} bytes in all")
    table = np.frombuffer(view, "<u2", 2 * number, position).reshape(number, 2).astype(np.int64)
    position += 4 * number
    keys, cardinalities = table[:, 0], table[:, 1] + 1
    if (keys[1:] <= keys[:-1]).any():
        raise _corrupt(path, position, "ascending container keys", describe_order(keys))
    if flags is None or number >= _NO_OFFSETS_BELOW:
        position += 4 * number
    yield 0, None, keys, position
    for index, (key, cardinality) in enumerate(
        zip(keys.tolist(), cardinalities.tolist(), strict=True)
    ):
        if flags is not None and flags[index]:
            kind, content, position = _Kind.RUNS, *_runs(view, position, path)
        elif cardinality <= _ARRAY_MAX:
            kind, content, position = _Kind.ARRAY, *_array(view, position, cardinality, path)
        else:
            kind, content, position = _Kind.BITMAP, *_bitmap(view, position, cardinality, path)
        yield key, kind, content, position


def _header(view: memoryview, path: str) -> tuple[npt.NDArray[np.bool_] | None, int, int]:
    """Return (run flags or None, number of containers, position after the header)."""
    if len(view) < 4:
        raise _corrupt(path, 0, "a Roaring bitmap", f"{len(view)} bytes")
    cookie: int = struct.unpack_from("<I", view)[0]
    if cookie == _COOKIE and len(view) >= _HEADER.size:
        number: int = struct.unpack_from("<I", view, 4)[0]
        if number > _CONTAINER_ROWS:
            raise _corrupt(path, 4, f"at most {_CONTAINER_ROWS} containers", f"{number}")
        return None, number, _HEADER.size
    if cookie & 0xFFFF != _COOKIE_RUNS:
        raise _corrupt(path, 0, "the cookie of a Roaring bitmap", f"{cookie:#x}")
    number = (cookie >> 16) + 1
    num_bytes = -(-number // 8)
    if 4 + num_bytes > len(view):
        raise _corrupt(path, 4, f"{num_bytes} bytes of run flags", f"{len(view) - 4}")
    packed = np.frombuffer(view, np.uint8, num_bytes, 4)
    flags = np.unpackbits(packed, bitorder="little")[:number].astype(np.bool_)
    return flags, number, 4 + num_bytes


def _runs(view: memoryview, position: int, path: str) -> tuple[_Content, int]:
    if position + 2 > len(view):
        raise _corrupt(path, position, "a run container", "the end of the file")
    runs: int = struct.unpack_from("<H", view, position)[0]
    stop = position + 2 + 4 * runs
    if stop > len(view):
        raise _corrupt(path, position, f"{runs} runs", "the end of the file")
    content = np.frombuffer(view, "<u2", 2 * runs, position + 2)
    first, more = content[0::2].astype(np.int64), content[1::2]
    last = first + more
    if not runs or (last >= _CONTAINER_ROWS).any() or (first[1:] <= last[:-1]).any():
        bounds = [f"{start} to {end}" for start, end in zip(first[:4], last[:4], strict=True)]
        expected = f"runs in ascending order below {_CONTAINER_ROWS}"
        raise _corrupt(path, position, expected, f"{runs} runs: {', '.join(bounds)}")
    return content, stop


def _array(view: memoryview, position: int, cardinality: int, path: str) -> tuple[_Content, int]:
    stop = position + 2 * cardinality
    if stop > len(view):
        raise _corrupt(path, position, f"{cardinality} values", "the end of the file")
    values = np.frombuffer(view, "<u2", cardinality, position)
    if (values[1:] <= values[:-1]).any():
        raise _corrupt(path, position, "ascending values", describe_order(values))
    return values, stop


def _bitmap(view: memoryview, position: int, cardinality: int, path: str) -> tuple[_Content, int]:
    stop = position + _BITMAP_BYTES
    if stop > len(view):
        raise _corrupt(path, position, "a bitmap container", "the end of the file")
    content = np.frombuffer(view, np.uint8, _BITMAP_BYTES, position)
    stored_count = int(np.count_nonzero(np.unpackbits(content)))
    if stored_count != cardinality:
        raise _corrupt(path, position, f"{cardinality} values", f"{stored_count}")
    return content, stop


def _corrupt(path: str, offset: int, expected: str, actual: str) -> CorruptFileError:
    return CorruptFileError(path, offset, expected, actual)
