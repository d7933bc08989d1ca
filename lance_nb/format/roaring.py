"""The portable 32-bit Roaring bitmap: its frame checked before use, and a fast writer.

pyroaring reads and writes the format; two things are added here. Its reader trusts counts inside
the bytes, so they are checked first. And ``BitMap(array)`` costs 50 ns per value, while the bytes
can be built from a boolean mask in a tenth of that.

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

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError

_COOKIE = 12346
_COOKIE_RUNS = 12347
_CONTAINER_ROWS = 1 << 16
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_NO_OFFSETS_BELOW = 4
_HEADER = struct.Struct("<II")


def bitmap_from_mask(mask: npt.NDArray[np.bool_]) -> bytes:
    """Return the portable bytes of the positions where ``mask`` is True."""
    num_blocks = -(-len(mask) // _CONTAINER_ROWS)
    padded = np.zeros(num_blocks * _CONTAINER_ROWS, np.bool_)
    padded[: len(mask)] = mask
    blocks = padded.reshape(num_blocks, _CONTAINER_ROWS)
    cardinality = np.count_nonzero(blocks, axis=1) if num_blocks else np.zeros(0, np.int64)
    keys = np.flatnonzero(cardinality)
    containers = []
    for key in keys:
        if cardinality[key] <= _ARRAY_MAX:
            containers.append(np.flatnonzero(blocks[key]).astype("<u2").tobytes())
        else:
            containers.append(np.packbits(blocks[key], bitorder="little").tobytes())
    descriptive = np.empty((len(keys), 2), "<u2")
    descriptive[:, 0], descriptive[:, 1] = keys, cardinality[keys] - 1
    first = _HEADER.size + 8 * len(keys)
    sizes = np.array([0, *(len(one) for one in containers[:-1])], np.int64)[: len(keys)]
    offsets = (first + np.cumsum(sizes)).astype("<u4")
    header = _HEADER.pack(_COOKIE, len(keys))
    return b"".join([header, descriptive.tobytes(), offsets.tobytes(), *containers])


def check_portable(data: bytes | memoryview, path: str = "") -> int:
    """Check the frame of a serialized bitmap and return how many values it holds.

    Raises CorruptFileError when a container lies outside ``data``, bytes are left over, or keys do
    not ascend. Container contents are the business of the reader.
    """
    view = memoryview(data)
    flags, number, position = _header(view, path)
    if position + 4 * number > len(view):
        raise _corrupt(path, position, f"{number} containers", f"{len(view)} bytes in all")
    table = np.frombuffer(view, "<u2", 2 * number, position).reshape(number, 2).astype(np.int64)
    position += 4 * number
    keys, cardinality = table[:, 0], table[:, 1] + 1
    if (keys[1:] <= keys[:-1]).any():
        raise _corrupt(path, position, "ascending container keys", "others")
    if flags is None or number >= _NO_OFFSETS_BELOW:
        position += 4 * number
    for index in range(number):
        if flags is not None and flags[index]:
            position = _check_runs(view, position, path)
        elif cardinality[index] <= _ARRAY_MAX:
            position = _check_array(view, position, int(cardinality[index]), path)
        else:
            position = _check_bitmap(view, position, int(cardinality[index]), path)
    if position != len(view):
        raise _corrupt(path, position, "the end of the bitmap", f"{len(view) - position} bytes")
    return int(cardinality.sum())


def _header(view: memoryview, path: str) -> tuple[npt.NDArray[np.bool_] | None, int, int]:
    """Return (run flags or None, number of containers, position behind)."""
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


def _check_runs(view: memoryview, position: int, path: str) -> int:
    if position + 2 > len(view):
        raise _corrupt(path, position, "a run container", "the end of the file")
    runs: int = struct.unpack_from("<H", view, position)[0]
    stop = position + 2 + 4 * runs
    if stop > len(view):
        raise _corrupt(path, position, f"{runs} runs", "the end of the file")
    table = np.frombuffer(view, "<u2", 2 * runs, position + 2).reshape(runs, 2).astype(np.int64)
    last = table[:, 0] + table[:, 1]
    if not runs or (last >= _CONTAINER_ROWS).any() or (table[1:, 0] <= last[:-1]).any():
        raise _corrupt(path, position, "ascending runs inside the container", "others")
    return stop


def _check_array(view: memoryview, position: int, cardinality: int, path: str) -> int:
    stop = position + 2 * cardinality
    if stop > len(view):
        raise _corrupt(path, position, f"{cardinality} values", "the end of the file")
    values = np.frombuffer(view, "<u2", cardinality, position)
    if (values[1:] <= values[:-1]).any():
        raise _corrupt(path, position, "ascending values", "others")
    return stop


def _check_bitmap(view: memoryview, position: int, cardinality: int, path: str) -> int:
    stop = position + _BITMAP_BYTES
    if stop > len(view):
        raise _corrupt(path, position, "a bitmap container", "the end of the file")
    words = np.frombuffer(view, "u1", _BITMAP_BYTES, position)
    found = int(np.unpackbits(words).sum(dtype=np.int64))
    if found != cardinality:
        raise _corrupt(path, position, f"{cardinality} values", f"{found}")
    return stop


def _corrupt(path: str, offset: int, expected: str, found: str) -> CorruptFileError:
    return CorruptFileError(path, offset, expected, found)
