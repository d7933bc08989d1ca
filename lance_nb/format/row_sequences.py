"""Per-row sequences of a fragment: its stable row ids, and the versions of its rows.

Layout: message ``RowIdSequence`` is a list of segments; ``RowDatasetVersionSequence`` is a list of
runs (span, version), of whose span only the number of values counts: after a compaction spans look
like the row ids they came from. Both cover the *physical* rows of the fragment, including deleted
ones.

A segment (message ``U64Segment``) is a run of unsigned 64-bit numbers in one of five forms::

    Range            [start, end)
    RangeWithHoles   [start, end) without the sorted ``holes``
    RangeWithBitmap  [start, end) where bit i % 8 of byte i // 8 is set, least significant bit first
    SortedArray      ascending values with gaps
    Array            any values

Arrays are stored as base + u16 or u32 offsets, or as plain u64 values, little endian.

Worked example: {5, 7, 1001} is two segments, range [5, 8) with bitmap ``05``, and range
[1001, 1002).

Limits: a length is known without expanding the values; the caller expands them after it has
compared the length with the rows that it expects. pylance parses ``RowIdSequence`` strictly and
refuses unknown fields, so none may be added.
Source: lance-table ``rowids`` and ``rowids::version``; message ``U64Segment`` of lance.table, whose
comment says that bitmaps are most significant bit first; the files are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lance_nb._pb import rowids as pb
from lance_nb.errors import CorruptFileError, describe_order
from lance_nb.format.wire import U64_MAX, parse
from lance_nb.value_classes import dataclass

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowIdSegments:
    """Stable row ids in row order, one segment after the other."""

    segments: tuple[Segment, ...]

    @property
    def num_rows(self) -> int:
        """Number of row ids, without expanding them (``len`` cannot return 2**63 and more)."""
        return sum(len(segment) for segment in self.segments)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Bounds [low, high) of all row ids, without expanding them; None without any."""
        lows, highs = [], []
        for segment in self.segments:
            if not len(segment):
                continue
            if isinstance(segment, Values):
                lows.append(int(segment.values.min()))
                highs.append(int(segment.values.max()) + 1)
            else:
                lows.append(segment.start)
                highs.append(segment.end)
        return (min(lows), max(highs)) if lows else None

    def to_numpy(self) -> U64s:
        """Return all row ids; compare ``num_rows`` with the fragment's rows first."""
        if not self.segments:
            return np.empty(0, np.uint64)
        return np.concatenate([segment.to_numpy() for segment in self.segments])

    @classmethod
    def from_numpy(cls, row_ids: U64s) -> RowIdSegments:
        """Build the smallest list of segments that holds the ids in their order."""
        return cls(tuple(choose_segments(np.asarray(row_ids, np.uint64))))

    @classmethod
    def from_bytes(
        cls, data: bytes, path: str = "", *, physical_rows: int | None = None
    ) -> RowIdSegments:
        """Parse. Raises CorruptFileError, also when there are not ``physical_rows`` ids."""
        message = parse(pb.RowIdSequence, data, path)
        sequence = cls(tuple(segment_from_pb(segment, path) for segment in message.segments))
        if physical_rows is not None and sequence.num_rows != physical_rows:
            raise CorruptFileError(path, None, f"{physical_rows} row ids", f"{sequence.num_rows}")
        return sequence

    def to_bytes(self) -> bytes:
        """Serialize."""
        message = pb.RowIdSequence(segments=[segment_to_pb(segment) for segment in self.segments])
        return message.SerializeToString()


@dataclass(frozen=True, slots=True)
class RowVersionSequence:
    """The version that created, or last updated, each row: runs of (number of rows, version)."""

    runs: tuple[tuple[int, int], ...]

    @property
    def num_rows(self) -> int:
        """Number of rows covered."""
        return sum(count for count, _ in self.runs)

    def to_numpy(self) -> U64s:
        """Return one version per row; compare ``num_rows`` with the fragment's rows first."""
        counts = np.array([count for count, _ in self.runs], np.int64)
        return np.repeat(np.array([version for _, version in self.runs], np.uint64), counts)

    @classmethod
    def from_numpy(cls, versions: U64s) -> RowVersionSequence:
        """Build from one version per row."""
        versions = np.asarray(versions, np.uint64)
        if not len(versions):
            return cls(())
        starts = np.concatenate(([0], np.flatnonzero(versions[1:] != versions[:-1]) + 1))
        counts = np.diff(np.concatenate((starts, [len(versions)])))
        pairs = zip(counts.tolist(), versions[starts].tolist(), strict=True)
        return cls(tuple(pairs))

    @classmethod
    def from_bytes(
        cls, data: bytes, path: str = "", *, physical_rows: int | None = None
    ) -> RowVersionSequence:
        """Parse. Raises CorruptFileError, also when it does not cover ``physical_rows`` rows."""
        message = parse(pb.RowDatasetVersionSequence, data, path)
        runs = tuple((len(segment_from_pb(run.span, path)), run.version) for run in message.runs)
        sequence = cls(runs)
        if physical_rows is not None and sequence.num_rows != physical_rows:
            raise CorruptFileError(path, None, f"{physical_rows} versions", f"{sequence.num_rows}")
        return sequence

    def to_bytes(self) -> bytes:
        """Serialize; spans are the ranges of row offsets."""
        message = pb.RowDatasetVersionSequence()
        start = 0
        for count, version in self.runs:
            run = message.runs.add()
            run.version = version
            run.span.CopyFrom(segment_to_pb(Range(start, start + count)))
            start += count
        return message.SerializeToString()


# --- segments -------------------------------------------------------------------------------------


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
    """The values of [start, end) whose bit is set; bits after the end are zero."""

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


# --- reading segments -----------------------------------------------------------------------------


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
            bounds = f"holes from {holes[0]} to {holes[-1]}"
            raise CorruptFileError(path, None, f"holes inside [{start}, {end})", bounds)
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
    raise CorruptFileError(path, None, "a segment of row ids", f"the kind {arm!r}")


def _bounds(start: int, end: int, path: str) -> tuple[int, int]:
    if end < start or end - start >= 2**63:
        raise CorruptFileError(path, None, "a range of row ids", f"[{start}, {end})")
    return start, end


def _bitmap(message: pb.U64Segment.RangeWithBitmap, path: str) -> bytes:
    num_bits, bitmap = message.end - message.start, message.bitmap
    if len(bitmap) != -(-num_bits // 8):
        size_text = f"{len(bitmap)} bytes"
        raise CorruptFileError(path, None, f"a bitmap of {num_bits} bits", size_text)
    if num_bits % 8 and bitmap[-1] >> num_bits % 8:
        last = f"last byte {bitmap[-1]:#010b} of {num_bits} bits"
        raise CorruptFileError(path, None, "zero bits behind the end of the range", last)
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
        actual = str(base + int(offsets.max()))
        raise CorruptFileError(path, None, "row ids of 64 bits", actual)
    return offsets + np.uint64(base)


def _whole(data: bytes, width: int, path: str) -> bytes:
    if len(data) % width:
        raise CorruptFileError(path, None, f"values of {width} bytes", f"{len(data)} bytes")
    return data


def _check_ascending(values: U64s, path: str) -> None:
    if (values[1:] <= values[:-1]).any():
        raise CorruptFileError(path, None, "ascending row ids", describe_order(values))


# --- writing segments -----------------------------------------------------------------------------

_FORMS = RANGE, RANGE_WITH_HOLES, RANGE_WITH_BITMAP, SORTED_ARRAY, ARRAY = (
    "range", "range_with_holes", "range_with_bitmap", "sorted_array", "array",
)  # fmt: skip
_GAPS = (1, 16, 256, 4096, 1 << 62)
"""Gaps between ascending ids that are tried as the widest inside of a segment."""
_SEGMENT_BYTES = 12  # bounds, base and lengths of a segment, about
_FRAME_BYTES = 4  # tag and length of a segment in the list, at most
_VARINT_LIMITS = np.array([1 << bits for bits in range(7, 64, 7)], np.uint64)
_MANY = np.uint64(1 << 50)  # more bytes than any array


def choose_segments(values: U64s) -> list[Segment]:
    """Return few segments that hold ``values`` in their order in few bytes.

    Updated rows lie behind the rows that kept their place, and after a compaction in one fragment
    with them: as one segment such a sequence is an array of all its ids, as segments it is ranges
    with holes. Sequences are cut where ids descend and at gaps that are wide; what is too short to
    pay for a segment of its own is joined into an array. Several widths are tried. All parts
    between cuts are measured at once, and only those of the best width become segments.
    """
    whole = choose_segment(values)
    if isinstance(whole, Range) or len(values) < 2:
        return [whole]
    best: Parts | None = None
    # A few bytes less do not pay for more lookups.
    size = segment_to_pb(whole).ByteSize() + _FRAME_BYTES - _SEGMENT_BYTES
    is_descent = values[1:] <= values[:-1]
    gaps = values[1:] - values[:-1]  # without meaning where ids descend
    previous: U64s | None = None
    for gap in _GAPS:
        cuts = np.flatnonzero(is_descent | (gaps > np.uint64(gap))).astype(np.uint64) + np.uint64(1)
        if previous is not None and len(cuts) == len(previous):
            continue
        previous = cuts
        parts = Parts.between(values, _joined_small(values, cuts))
        num_bytes = int(parts.num_bytes().sum())
        if num_bytes < size:
            best, size = parts, num_bytes
    return [whole] if best is None else best.segments()


def _joined_small(values: U64s, cuts: U64s) -> Ints:
    """Return the cuts without those between neighbours that are smaller as values of one array."""
    starts = np.concatenate(([0], cuts)).astype(np.int64)
    stops = np.append(starts[1:], len(values))
    counts = stops - starts
    spans = (values[stops - 1] - values[starts]).astype(np.float64) + 1
    holes = spans - counts
    as_segment = _SEGMENT_BYTES + np.minimum(spans / 8, 2 * np.minimum(holes, counts))
    as_segment[holes == 0] = _SEGMENT_BYTES
    width = _offset_width(int(values.max() - values.min()) + 1)
    is_small = as_segment + _SEGMENT_BYTES >= counts * width
    cuts_left: Ints = starts[1:][~(is_small[1:] & is_small[:-1])]
    return cuts_left


class Parts(NamedTuple):
    """The parts of a sequence between cuts: where each starts and stops, and its form.

    ``forms`` are places in ``_FORMS``. ``lows`` and ``highs`` are the least and greatest value,
    ``jumps`` the places of the sequence behind which values are left out.
    """

    values: U64s
    starts: Ints
    stops: Ints
    forms: Ints
    lows: U64s
    highs: U64s
    jumps: Ints

    @classmethod
    def between(cls, values: U64s, cuts: Ints) -> Parts:
        """Choose the smallest form for each part, as ``choose_segment`` does for one."""
        starts = np.concatenate(([0], cuts)).astype(np.int64)
        stops = np.append(starts[1:], len(values))
        is_descent = values[1:] <= values[:-1]
        jumps = np.flatnonzero((values[1:] - values[:-1] > np.uint64(1)) & ~is_descent)
        descents = np.flatnonzero(is_descent)
        lows = np.minimum.reduceat(values, starts)
        highs = np.maximum.reduceat(values, starts)
        counts = stops - starts
        holes = highs - lows - (counts - 1).astype(np.uint64)  # wraps where values descend
        spans = highs - lows + np.uint64(1)
        widths = _offset_widths(spans)
        in_holes = np.minimum(holes, _MANY).astype(np.int64) * widths
        in_bits = np.minimum(spans // np.uint64(8), _MANY).astype(np.int64) + (spans % 8 > 0)
        in_array = counts * widths
        forms = np.argmin([in_holes, in_bits, in_array], axis=0) + _FORMS.index(RANGE_WITH_HOLES)
        forms[holes == 0] = _FORMS.index(RANGE)
        descends = np.searchsorted(descents, starts) < np.searchsorted(descents, stops - 1)
        forms[descends | (highs == np.uint64(U64_MAX))] = _FORMS.index(ARRAY)
        return cls(
            values=values,
            starts=starts,
            stops=stops,
            forms=forms,
            lows=lows,
            highs=highs,
            jumps=jumps,
        )

    def num_bytes(self) -> Ints:
        """Return the serialized size of each part, with what frames it in the list."""
        sizes = np.zeros(self.starts.size, np.int64)
        ends = self.highs + np.uint64(1)
        bounds = _field_bytes(self.lows) + _field_bytes(ends)
        spans, counts = ends - self.lows, self.stops - self.starts
        for number, form in enumerate(_FORMS):
            mine = self.forms == number
            if not mine.any():
                continue
            inner = bounds[mine]
            if form == RANGE_WITH_HOLES:
                inner += _message_bytes(self._holes_bytes(mine))
            elif form == RANGE_WITH_BITMAP:
                num_bytes = spans[mine] // np.uint64(8) + (spans[mine] % 8 > 0).astype(np.uint64)
                inner += _message_bytes(num_bytes.astype(np.int64))
            elif form in (SORTED_ARRAY, ARRAY):
                inner = _array_bytes(self.lows[mine], spans[mine], counts[mine])
            sizes[mine] = _message_bytes(inner) + _FRAME_BYTES
        return sizes

    def _holes_bytes(self, mine: Mask) -> Ints:
        """Return the serialized sizes of the holes of some parts."""
        starts, stops = self.starts[mine], self.stops[mine]
        first = self.values[self.jumps[np.searchsorted(self.jumps, starts)]] + np.uint64(1)
        last_jump = self.jumps[np.searchsorted(self.jumps, stops - 1) - 1]
        last = self.values[last_jump + 1] - np.uint64(1)
        holes = (
            self.highs[mine] - self.lows[mine] + np.uint64(1) - (stops - starts).astype(np.uint64)
        )
        return _array_bytes(first, last - first + np.uint64(1), holes.astype(np.int64))

    def segments(self) -> list[Segment]:
        """Return the segments; what they hold is computed for all parts of a form at once."""
        segments: list[Segment] = [Range(0, 0)] * self.starts.size
        for number, form in enumerate(_FORMS):
            mine = self.forms == number
            lows, ends = self.lows[mine].tolist(), (self.highs[mine] + np.uint64(1)).tolist()
            arrays = zip(self.starts[mine].tolist(), self.stops[mine].tolist(), strict=True)
            built: Iterable[Segment]
            if form == RANGE:
                built = map(Range, lows, ends)
            elif form == RANGE_WITH_HOLES:
                built = map(RangeWithHoles, lows, ends, self._holes(mine))
            elif form == RANGE_WITH_BITMAP:
                built = map(RangeWithBitmap, lows, ends, self._bitmaps(mine))
            else:
                is_sorted = form == SORTED_ARRAY
                built = (Values(self.values[start:stop], is_sorted) for start, stop in arrays)
            for place, segment in zip(np.flatnonzero(mine).tolist(), built, strict=True):
                segments[place] = segment
        return segments

    def _presence(self, mine: Mask, spans: Ints) -> tuple[Mask, Ints]:
        """Return for some parts which values of their spans they have, and where each begins."""
        firsts = np.cumsum(spans) - spans
        counts = (self.stops - self.starts)[mine]
        owners = np.repeat(np.arange(counts.size), counts)
        within = np.arange(owners.size) - (np.cumsum(counts) - counts)[owners]
        offsets = self.values[self.starts[mine][owners] + within] - self.lows[mine][owners]
        present = np.zeros(int(spans.sum()), np.bool_)
        present[firsts[owners] + offsets.astype(np.int64)] = True
        return present, firsts

    def _bitmaps(self, mine: Mask) -> Iterator[bytes]:
        spans = (self.highs[mine] - self.lows[mine]).astype(np.int64) + 1
        present, firsts = self._presence(mine, -(-spans // 8) * 8)
        data = np.packbits(present, bitorder="little").tobytes()
        bounds = [*(firsts // 8).tolist(), len(data)]
        return (data[start:stop] for start, stop in pairwise(bounds))

    def _holes(self, mine: Mask) -> list[U64s]:
        spans = (self.highs[mine] - self.lows[mine]).astype(np.int64) + 1
        present, firsts = self._presence(mine, spans)
        places = np.flatnonzero(~present)
        bounds = np.searchsorted(places, firsts)
        owners = np.repeat(np.arange(firsts.size), np.diff(np.append(bounds, places.size)))
        holes = (places - firsts[owners]).astype(np.uint64) + self.lows[mine][owners]
        return np.split(holes, bounds[1:])


def _varint_bytes(numbers: npt.NDArray[Any]) -> Ints:
    lengths: Ints = np.searchsorted(_VARINT_LIMITS, numbers.astype(np.uint64), "right") + 1
    return lengths


def _field_bytes(numbers: U64s) -> Ints:
    """Return the size of a field of a number, which is left out where it is 0."""
    return np.where(numbers == 0, 0, 1 + _varint_bytes(numbers))


def _message_bytes(sizes: Ints) -> Ints:
    """Return the size of a field of so many bytes, with its tag and length."""
    return 1 + _varint_bytes(sizes) + sizes


def _array_bytes(bases: U64s, spans: U64s, counts: Ints) -> Ints:
    """Return the sizes of ``EncodedU64Array`` messages of at least one value."""
    widths = _offset_widths(spans)
    return _message_bytes(
        _message_bytes(counts * widths) + np.where(widths == 8, 0, _field_bytes(bases))
    )


def _offset_widths(spans: U64s) -> Ints:
    """Return what ``_offset_width`` does; a span of 2**64 is 0 here."""
    is_wide = (spans > np.uint64(2**32)) | (spans == 0)
    return np.where(is_wide, 8, np.where(spans <= np.uint64(2**16), 2, 4))


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
