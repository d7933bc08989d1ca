"""One run of a sequence of unsigned 64-bit numbers, in the five forms that the format stores.

Layout (message ``U64Segment``)::

    Range            [start, end)
    RangeWithHoles   [start, end) without the sorted ``holes``
    RangeWithBitmap  [start, end) where bit i % 8 of byte i // 8 is set, least significant bit first
    SortedArray      ascending values with gaps
    Array            any values

Arrays are stored as base + u16 or u32 offsets, or as plain u64 values, little endian.

Worked example: {5, 7} is a range with bitmap, start 5, end 8, bitmap ``05``.

Limits: a length is known without expanding the values; expanding is the caller's decision, after
it has compared the length with the rows it expects.
Source: message ``U64Segment`` of lance.table. Its comment says that bitmaps are most significant
bit first; the files are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_nb._pb import rowids as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.wire import U64_MAX

U64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Range:
    """All values of [start, end)."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def to_numpy(self) -> U64s:
        """Return the values."""
        return np.arange(len(self), dtype=np.uint64) + np.uint64(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class RangeWithHoles:
    """[start, end) without ``holes`` (ascending, inside the range)."""

    start: int
    end: int
    holes: U64s

    def __len__(self) -> int:
        return self.end - self.start - len(self.holes)

    def to_numpy(self) -> U64s:
        """Return the values."""
        keep = np.ones(self.end - self.start, np.bool_)
        keep[(self.holes - np.uint64(self.start)).astype(np.int64)] = False
        return np.flatnonzero(keep).astype(np.uint64) + np.uint64(self.start)


@dataclass(frozen=True, slots=True)
class RangeWithBitmap:
    """The values of [start, end) whose bit is set; bits behind the end are zero."""

    start: int
    end: int
    bitmap: bytes

    def __len__(self) -> int:
        return int(np.unpackbits(np.frombuffer(self.bitmap, np.uint8)).sum(dtype=np.int64))

    def to_numpy(self) -> U64s:
        """Return the values."""
        bits = np.unpackbits(np.frombuffer(self.bitmap, np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint64) + np.uint64(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Values one by one; ``is_sorted`` says whether they ascend."""

    values: U64s
    is_sorted: bool

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self) -> U64s:
        """Return the values."""
        return self.values


Segment = Range | RangeWithHoles | RangeWithBitmap | Values


# --- reading ------------------------------------------------------------------------------------


def segment_from_pb(message: pb.U64Segment, path: str) -> Segment:
    """Read the message. Raises CorruptFileError for bounds or lengths that do not fit together."""
    arm = message.WhichOneof("segment")
    if arm == "range":
        return Range(*_bounds(message.range.start, message.range.end, path))
    if arm == "range_with_holes":
        start, end = _bounds(message.range_with_holes.start, message.range_with_holes.end, path)
        holes = _values(message.range_with_holes.holes, path)
        _check_ascending(holes, path)
        if len(holes) and not (start <= int(holes[0]) and int(holes[-1]) < end):
            raise CorruptFileError(path, None, f"holes inside [{start}, {end})", "others")
        return RangeWithHoles(start, end, holes)
    if arm == "range_with_bitmap":
        start, end = _bounds(message.range_with_bitmap.start, message.range_with_bitmap.end, path)
        return RangeWithBitmap(start, end, _bitmap(message.range_with_bitmap, path))
    if arm == "sorted_array":
        values = _values(message.sorted_array, path)
        _check_ascending(values, path)
        return Values(values, True)
    if arm == "array":
        return Values(_values(message.array, path), False)
    raise CorruptFileError(path, None, "a segment of row ids", "an unknown kind")


def _bounds(start: int, end: int, path: str) -> tuple[int, int]:
    if end < start or end - start >= 2**63:
        raise CorruptFileError(path, None, "a range of row ids", f"[{start}, {end})")
    return start, end


def _bitmap(message: pb.U64Segment.RangeWithBitmap, path: str) -> bytes:
    num_bits, bitmap = message.end - message.start, message.bitmap
    if len(bitmap) != -(-num_bits // 8):
        found = f"{len(bitmap)} bytes"
        raise CorruptFileError(path, None, f"a bitmap of {num_bits} bits", found)
    if num_bits % 8 and bitmap[-1] >> num_bits % 8:
        raise CorruptFileError(path, None, "zero bits behind the end of the range", "others")
    return bitmap


def _values(message: pb.EncodedU64Array, path: str) -> U64s:
    arm = message.WhichOneof("array")
    if arm == "u64_array":
        return np.frombuffer(_whole(message.u64_array.values, 8, path), "<u8").astype(np.uint64)
    if arm == "u16_array":
        base, data, dtype = message.u16_array.base, message.u16_array.offsets, "<u2"
    elif arm == "u32_array":
        base, data, dtype = message.u32_array.base, message.u32_array.offsets, "<u4"
    else:
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(_whole(data, int(dtype[2]), path), dtype).astype(np.uint64)
    if len(offsets) and base + int(offsets.max()) > U64_MAX:
        raise CorruptFileError(path, None, "64-bit row ids", "larger ones")
    return offsets + np.uint64(base)


def _whole(data: bytes, width: int, path: str) -> bytes:
    if len(data) % width:
        raise CorruptFileError(path, None, f"values of {width} bytes", f"{len(data)} bytes")
    return data


def _check_ascending(values: U64s, path: str) -> None:
    if (values[1:] <= values[:-1]).any():
        raise CorruptFileError(path, None, "ascending row ids", "others")


# --- writing ------------------------------------------------------------------------------------


def choose_segment(values: U64s) -> Segment:
    """Return the smallest segment that holds ``values`` in their order.

    Contiguous values become a range; ascending ones with gaps the smallest of holes, bitmap and
    sorted array; all others an array.
    """
    if not len(values):
        return Range(0, 0)
    start, end = int(values[0]), int(values[-1]) + 1
    if (values[1:] <= values[:-1]).any() or end > U64_MAX:
        return Values(values, False)
    span = end - start
    if span == len(values):
        return Range(start, end)
    sizes = {
        "holes": _encoded_size(span, span - len(values)),
        "bitmap": -(-span // 8),
        "array": _encoded_size(span, len(values)),
    }
    smallest = min(sizes, key=lambda kind: sizes[kind])
    if smallest == "array":
        return Values(values, True)
    present = np.zeros(span, np.bool_)
    present[(values - np.uint64(start)).astype(np.int64)] = True
    if smallest == "bitmap":
        return RangeWithBitmap(start, end, np.packbits(present, bitorder="little").tobytes())
    holes = np.flatnonzero(~present).astype(np.uint64) + np.uint64(start)
    return RangeWithHoles(start, end, holes)


def _encoded_size(span: int, count: int) -> int:
    return count * _offset_width(span)


def _offset_width(span: int) -> int:
    return 2 if span <= 2**16 else 4 if span <= 2**32 else 8


def segment_to_pb(segment: Segment) -> pb.U64Segment:
    """Return the message."""
    message = pb.U64Segment()
    if isinstance(segment, Range):
        message.range.start, message.range.end = segment.start, segment.end
        message.range.SetInParent()
    elif isinstance(segment, RangeWithHoles):
        holes = message.range_with_holes
        holes.start, holes.end = segment.start, segment.end
        holes.holes.CopyFrom(_encode(segment.holes))
    elif isinstance(segment, RangeWithBitmap):
        bitmap = message.range_with_bitmap
        bitmap.start, bitmap.end, bitmap.bitmap = segment.start, segment.end, segment.bitmap
    elif segment.is_sorted:
        message.sorted_array.CopyFrom(_encode(segment.values))
    else:
        message.array.CopyFrom(_encode(segment.values))
    return message


def _encode(values: U64s) -> pb.EncodedU64Array:
    message = pb.EncodedU64Array()
    base = int(values.min()) if len(values) else 0
    width = _offset_width(int(values.max()) - base + 1) if len(values) else 2
    if width == 8:
        message.u64_array.values = values.astype("<u8").tobytes()
        return message
    offsets = (values - np.uint64(base)).astype(f"<u{width}").tobytes()
    target = message.u16_array if width == 2 else message.u32_array
    target.base, target.offsets = base, offsets
    target.SetInParent()
    return message
