"""Reading in steps: decoders are generators that yield byte ranges and receive the bytes.

A *step* is one yield: the byte ranges of the file that the decoder needs next; it receives one
array per range. Decoders written this way do no I/O, follow offsets from buffer to buffer as often
as they need to, and still share rounds of reading: ``together`` runs many of them side by side and
yields the ranges of all of them at once.

Worked example: the strings of ten columns take two rounds, one for offsets, one for bytes.

Limits: ranges are checked against their region before they are yielded.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from lance_nb.encodings.base import Bytes, Ints, corrupt
from lance_nb.encodings.kernels import ranges
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.value_classes import dataclass

T = TypeVar("T")
FileRange: TypeAlias = tuple[int, int]  # [start, stop), bytes from the start of the file
Steps: TypeAlias = Generator[Sequence[FileRange], Sequence[Bytes], T]

_NOTHING = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes ``[start, stop)`` of the file: a buffer, or the rest of a file from a position on.

    ``is_mapped`` tells that asking for all of it costs nothing.
    """

    start: int
    stop: int
    is_mapped: bool

    @property
    def size_bytes(self) -> int:
        """Bytes in the region."""
        return self.stop - self.start


def together(decoders: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run decoders side by side; return their results in order."""
    results: dict[int, T] = {}
    waiting: dict[int, Sequence[FileRange]] = {}
    for number, decoder in enumerate(decoders):
        _advance(number, decoder, None, waiting=waiting, results=results)
    while waiting:
        requests = list(waiting.items())
        arrays = yield [file_range for _, ranges_ in requests for file_range in ranges_]
        waiting = {}
        position = 0
        for number, ranges_of_request in requests:
            mine = arrays[position : position + len(ranges_of_request)]
            position += len(ranges_of_request)
            _advance(number, decoders[number], mine, waiting=waiting, results=results)
    return [results[number] for number in range(len(decoders))]


def _advance(
    number: int,
    decoder: Steps[T],
    arrays: Sequence[Bytes] | None,
    waiting: dict[int, Sequence[FileRange]],
    results: dict[int, T],
) -> None:
    """Let one decoder take its next step, and note what it wants or what it found."""
    try:
        waiting[number] = next(decoder) if arrays is None else decoder.send(arrays)
    except StopIteration as end:
        results[number] = end.value


def read_all(region: Region) -> Steps[Bytes]:
    """Read a whole region."""
    (data,) = yield [(region.start, region.stop)]
    return data


def read_ranges(region: Region, starts: Ints, stops: Ints) -> Steps[Bytes]:
    """Read byte ranges of a region (ascending, not empty), back to back.

    A view where one range, or a mapped region, allows it. Raises CorruptFileError.
    """
    if not starts.size:
        return _NOTHING
    last = int(stops[-1])
    if last > region.size_bytes:
        raise corrupt(f"a buffer of at least {last} bytes", f"{region.size_bytes} bytes")
    if starts.size == 1:
        (data,) = yield [(region.start + int(starts[0]), region.start + last)]
        return data
    if region.is_mapped:
        first = int(starts[0])
        (whole,) = yield [(region.start + first, region.start + last)]
        joined: Bytes = ranges.concatenate(whole, starts - first, stops - starts)
        return joined
    pairs = zip((starts + region.start).tolist(), (stops + region.start).tolist(), strict=True)
    pieces = yield list(pairs)
    return np.concatenate(pieces)


def read_bits(region: Region, starts: Ints, stops: Ints) -> Steps[Bytes]:
    """Read ranges of bits (ascending, not empty) as one bitmap, least significant bit first."""
    if not starts.size:
        return _NOTHING
    first_bytes, last_bytes = starts // 8, (stops + 7) // 8
    # Ranges may share a byte: read each byte once.
    breaks = np.flatnonzero(first_bytes[1:] > last_bytes[:-1]) + 1
    group_starts = first_bytes[np.concatenate(([0], breaks))]
    group_stops = last_bytes[np.concatenate((breaks - 1, [starts.size - 1]))]
    data = yield from read_ranges(region, group_starts, group_stops)
    if starts.size == 1 and int(starts[0]) % 8 == 0:
        return data
    sizes = group_stops - group_starts
    group = np.searchsorted(group_starts, first_bytes, side="right") - 1
    shift = 8 * (np.cumsum(sizes) - sizes - group_starts)[group]
    bits = np.unpackbits(data, bitorder="little")
    return np.packbits(bits[expand_ranges(starts + shift, stops + shift)], bitorder="little")


def aligned(data: Bytes, width_bytes: int) -> Bytes:
    """Return the bytes at an address that whole values may have, copied if need be.

    Old files put buffers anywhere; Arrow wants values of up to 8 bytes aligned.
    """
    step = width_bytes & -width_bytes if width_bytes else 1
    if data.ctypes.data % min(step, 8):
        return data.copy()
    return data
