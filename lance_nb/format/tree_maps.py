"""Many sets of rows of an index file at once: tree maps, decoded without a loop over sets.

Layout (little endian)::

    tree map    u32 count; count times: u32 key, u32 size, ``size`` bytes of a portable 32-bit
                Roaring bitmap (roaring.py). Size 0: every row of the fragment ``key``

The key is the upper half of the rows. An index has a set for each different value, most of them
small: a call for each set costs a hundred times what its bytes cost. So the entries of all sets are
found in rounds (the first entry of each set, then the second), the containers of all bitmaps from
the sums of their sizes, and the rows of all containers of one kind by one gather.

Limits: ``PIECE_ROWS`` rows, and those of one container more, are expanded at once, as a container
of four bytes may stand for 65,536 rows.
Source: files of Bitmap and LabelList indices that pylance 14.0.2 writes;
https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

PIECE_ROWS = 1 << 20
_ROUND_SETS = 32  # fewer sets than these are cheaper one after the other
_COOKIE, _COOKIE_RUNS = 12346, 12347
_CONTAINER_ROWS, _CONTAINERS_MAX = 1 << 16, 1 << 16
_ARRAY_MAX, _BITS_BYTES, _NO_OFFSETS_BELOW = 4096, 8192, 4
_COUNT_BYTES = 4
_ENTRY = struct.Struct("<II")
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class TreeMaps:
    """The sets of a column, an array item for each container of their bitmaps.

    ``sets`` are positions in the column, ``bases`` the rows at the start of the container, and
    ``starts`` places in ``data``. ``whole_sets`` and ``whole_keys`` are the entries that stand for
    all rows of a fragment.
    """

    data: Bytes
    path: str
    sets: Ints
    bases: U64s
    counts: Ints
    starts: Ints
    is_runs: Mask
    whole_sets: Ints
    whole_keys: Ints

    def rows(self, low: int = 0, high: int = (1 << 64) - 1) -> Iterator[tuple[Ints, U64s]]:
        """Yield the sets and rows of all containers that have rows from ``low`` to ``high``.

        In pieces, of which none is in the order of the file; rows beside these bounds may be among
        them. Raises CorruptFileError for a container that is damaged.
        """
        last = self.bases | np.uint64(_CONTAINER_ROWS - 1)
        chosen = np.flatnonzero((last >= np.uint64(low)) & (self.bases <= np.uint64(high)))
        before = _before(self.counts[chosen])
        limit = int(before[-1]) + 1 if before.size else 0
        ends = np.searchsorted(before, np.arange(PIECE_ROWS, limit, PIECE_ROWS))
        for piece in np.split(chosen, ends):
            is_runs = self.is_runs[piece]
            is_array = ~is_runs & (self.counts[piece] <= _ARRAY_MAX)
            for mask, expand in (
                (is_array, self._arrays),
                (~is_runs & ~is_array, self._bits),
                (is_runs, self._runs),
            ):
                containers = piece[mask]
                if containers.size:
                    owners, offsets = expand(containers)
                    rows = self.bases[containers][owners] | offsets.astype(np.uint64)
                    yield self.sets[containers][owners], rows

    def _arrays(self, containers: Ints) -> tuple[Ints, Ints]:
        """Expand containers of sorted offsets: which container, and the offset in it."""
        counts, starts = self.counts[containers], self.starts[containers]
        owners = np.repeat(np.arange(containers.size), counts)
        within = np.arange(owners.size) - _before(counts)[owners]
        offsets = _u16(self.data, starts[owners] + 2 * within)
        wrong = np.flatnonzero((owners[1:] == owners[:-1]) & (offsets[1:] <= offsets[:-1]))
        if wrong.size:
            values = f"{offsets[wrong[0]]} before {offsets[wrong[0] + 1]}"
            raise CorruptFileError(self.path, None, "ascending values in a bitmap", values)
        return owners, offsets

    def _bits(self, containers: Ints) -> tuple[Ints, Ints]:
        """Expand containers of 65,536 bits."""
        starts = self.starts[containers]
        blocks = self.data[starts[:, None] + np.arange(_BITS_BYTES)]
        owners, offsets = np.nonzero(np.unpackbits(blocks, axis=1, bitorder="little"))
        counts = np.bincount(owners, minlength=containers.size)
        wrong = np.flatnonzero(counts != self.counts[containers])
        if wrong.size:
            expected = f"{self.counts[containers[wrong[0]]]} values in a bitmap"
            raise CorruptFileError(self.path, None, expected, str(counts[wrong[0]]))
        return owners, offsets

    def _runs(self, containers: Ints) -> tuple[Ints, Ints]:
        """Expand containers of runs: of each the first offset, and how many follow."""
        starts = self.starts[containers]
        num_runs = _u16(self.data, starts)
        owners = np.repeat(np.arange(containers.size), num_runs)
        places = starts[owners] + 2 + 4 * (np.arange(owners.size) - _before(num_runs)[owners])
        first, lengths = _u16(self.data, places), _u16(self.data, places + 2) + 1
        last = first + lengths - 1
        touches = (owners[1:] == owners[:-1]) & (first[1:] <= last[:-1])
        if bool((last >= _CONTAINER_ROWS).any() or touches.any()):
            expected = f"runs in ascending order below {_CONTAINER_ROWS}"
            place = int(np.flatnonzero(np.append(touches, False) | (last >= _CONTAINER_ROWS))[0])
            bounds = f"{first[place]} to {last[place]}"
            raise CorruptFileError(self.path, None, expected, bounds)
        counts = np.bincount(owners, lengths, containers.size).astype(np.int64)
        wrong = np.flatnonzero(counts != self.counts[containers])
        if wrong.size:
            expected = f"{self.counts[containers[wrong[0]]]} values in a bitmap"
            raise CorruptFileError(self.path, None, expected, str(counts[wrong[0]]))
        runs = np.repeat(np.arange(owners.size), lengths)
        return owners[runs], first[runs] + np.arange(runs.size) - _before(lengths)[runs]


class _Pieces(NamedTuple):
    """Pieces of a buffer: sets, or the bitmaps in them."""

    data: Bytes
    starts: Ints
    stops: Ints
    path: str


class _Entries(NamedTuple):
    """Entries of sets: the position of the set, the key, and where its bitmap starts and stops."""

    sets: Ints
    keys: Ints
    starts: Ints
    stops: Ints


class _Headers(NamedTuple):
    """Of bitmaps: the number of containers, the position of the first, and where they start."""

    counts: Ints
    firsts: Ints
    contents: Ints


def parse_tree_maps(column: pa.Array, path: str) -> TreeMaps:
    """Find the containers of a column of tree maps, of type binary or large_binary.

    A null, and a set of no bytes, has no rows. Raises CorruptFileError where an entry or container
    lies outside of its set, bytes are left over, or keys do not ascend.
    """
    stored = _sets(column, path)
    entries = _entries(stored)
    is_whole = entries.starts == entries.stops
    filled = np.flatnonzero(~is_whole)
    bitmaps = _Pieces(stored.data, entries.starts[filled], entries.stops[filled], path)
    owners, high, counts, places, is_runs = _containers(bitmaps)
    bases = entries.keys[filled][owners].astype(np.uint64) << np.uint64(32)
    bases |= high.astype(np.uint64) << np.uint64(16)
    return TreeMaps(
        data=stored.data,
        path=path,
        sets=entries.sets[filled][owners],
        bases=bases,
        counts=counts,
        starts=places,
        is_runs=is_runs,
        whole_sets=entries.sets[is_whole],
        whole_keys=entries.keys[is_whole],
    )


def _sets(column: pa.Array, path: str) -> _Pieces:
    _, offsets_buffer, data_buffer = column.buffers()
    empty = np.zeros(0, np.int64)
    if not len(column) or offsets_buffer is None:
        return _Pieces(np.zeros(0, np.uint8), empty, empty, path)
    kind: Any = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    offsets = np.frombuffer(offsets_buffer, kind)
    bounds: Ints = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    starts, stops = bounds[:-1], bounds[1:]
    if column.null_count:
        stops = np.where(column.is_null().to_numpy(zero_copy_only=False), starts, stops)
    return _Pieces(data, starts, stops, path)


def _entries(sets: _Pieces) -> _Entries:
    data, starts, stops, path = sets
    sizes = stops - starts
    cut = np.flatnonzero((sizes > 0) & (sizes < _COUNT_BYTES))
    if cut.size:
        raise CorruptFileError(path, None, "a set of rows", f"{sizes[cut[0]]} bytes")
    filled = np.flatnonzero(sizes)
    counts, positions = np.zeros(starts.size, np.int64), starts.copy()
    counts[filled] = _u32(data, starts[filled])
    positions[filled] += _COUNT_BYTES
    left, active = counts.copy(), filled[counts[filled] > 0]
    parts = [_Entries(*(np.zeros(0, np.int64),) * 4)]
    while active.size > _ROUND_SETS:
        places = positions[active]
        short = np.flatnonzero(places + _ENTRY.size > stops[active])
        if short.size:
            number = active[short[0]]
            raise _too_few(int(counts[number]), int(counts[number] - left[number]), path)
        keys, lengths = _u32(data, places), _u32(data, places + 4)
        first = places + _ENTRY.size
        beyond = np.flatnonzero(first + lengths > stops[active])
        if beyond.size:
            place = beyond[0]
            raise _too_long(lengths[place], stops[active[place]] - first[place], path)
        parts.append(_Entries(active, keys, first, first + lengths))
        positions[active] = first + lengths
        left[active] -= 1
        active = active[left[active] > 0]
    for number in active.tolist():
        part = _entries_of(sets, number, int(positions[number]), int(left[number]))
        parts.append(part)
        positions[number] = part.stops[-1]
    wrong = np.flatnonzero(positions[filled] != stops[filled])
    if wrong.size:
        surplus = stops[filled[wrong[0]]] - positions[filled[wrong[0]]]
        raise CorruptFileError(path, None, "the end of a set of rows", f"{surplus} bytes")
    entries = _Entries(*map(np.concatenate, zip(*parts, strict=True)))
    codes = np.sort(entries.sets << 32 | entries.keys)
    twice = codes[1:][codes[1:] == codes[:-1]]
    if twice.size:
        repeated = f"{twice[0] & 0xFFFFFFFF} twice"
        raise CorruptFileError(path, None, "each key of a set of rows once", repeated)
    return entries


def _entries_of(sets: _Pieces, number: int, position: int, count: int) -> _Entries:
    """Return the last entries of one set, which may have any number of them."""
    stop = int(sets.stops[number])
    view = sets.data.data
    (total,) = _u32(sets.data, sets.starts[number : number + 1]).tolist()
    rows: list[tuple[int, int, int]] = []
    for _ in range(count):
        if position + _ENTRY.size > stop:
            raise _too_few(total, total - count + len(rows), sets.path)
        key, length = _ENTRY.unpack_from(view, position)
        first = position + _ENTRY.size
        position = first + length
        if position > stop:
            raise _too_long(length, stop - first, sets.path)
        rows.append((key, first, position))
    keys, firsts, stops = np.array(rows, np.int64).T
    return _Entries(np.full(keys.size, number), keys, firsts, stops)


def _too_few(count: int, num_read: int, path: str) -> CorruptFileError:
    return CorruptFileError(path, None, f"{count} entries in a set of rows", f"{num_read}")


def _too_long(size: int, left: int, path: str) -> CorruptFileError:
    return CorruptFileError(path, None, f"a bitmap of {size} bytes", f"{left} bytes")


def _containers(bitmaps: _Pieces) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """Return of each container its bitmap, key, number of values, place, and if it has runs."""
    data, starts, stops, path = bitmaps
    sizes = stops - starts
    _check(sizes >= 4, path, "a Roaring bitmap of at least 4 bytes", sizes)
    cookies = _u32(data, starts)
    has_flags = cookies & 0xFFFF == _COOKIE_RUNS
    is_plain = cookies == _COOKIE
    _check(has_flags | is_plain, path, "the cookie of a Roaring bitmap", cookies)
    _check(has_flags | (sizes >= 8), path, "a Roaring bitmap of at least 8 bytes", sizes)
    counts = (cookies >> 16) + 1
    counts[is_plain] = _u32(data, starts[is_plain] + 4)
    _check(counts <= _CONTAINERS_MAX, path, f"at most {_CONTAINERS_MAX} containers", counts)
    tables = starts + np.where(has_flags, 4 - (-counts // 8), 8)
    has_offsets = ~has_flags | (counts >= _NO_OFFSETS_BELOW)
    contents = tables + 4 * counts + np.where(has_offsets, 4 * counts, 0)
    _check(contents <= stops, path, "a header inside of its bitmap, in bytes", contents - starts)

    headers = _Headers(counts, _before(counts), contents)
    owners = np.repeat(np.arange(counts.size), counts)
    within = np.arange(owners.size) - headers.firsts[owners]
    table = tables[owners] + 4 * within
    keys, cardinalities = _u16(data, table), _u16(data, table + 2) + 1
    ascends = (owners[1:] != owners[:-1]) | (keys[1:] > keys[:-1])
    _check(ascends, path, "ascending container keys", keys[1:])
    is_runs = np.zeros(owners.size, np.bool_)
    flagged = np.flatnonzero(has_flags[owners])
    flags = data[starts[owners[flagged]] + 4 + (within[flagged] >> 3)]
    is_runs[flagged] = flags >> (within[flagged] & 7).astype(np.uint8) & 1
    lengths = np.where(cardinalities <= _ARRAY_MAX, 2 * cardinalities, _BITS_BYTES)
    lengths[is_runs] = _run_bytes(bitmaps, headers, lengths, is_runs)[is_runs]
    places = _before(lengths)
    places += (contents - np.append(places, lengths.sum())[headers.firsts])[owners]
    ends = places + lengths - starts[owners]
    _check(ends <= sizes[owners], path, "containers inside of their bitmap, in bytes", ends)
    totals = np.bincount(owners, lengths, counts.size).astype(np.int64)
    _check(contents + totals == stops, path, "the end of the bitmap", stops - contents - totals)
    return owners, keys, cardinalities, places, is_runs


def _run_bytes(bitmaps: _Pieces, headers: _Headers, lengths: Ints, is_runs: Mask) -> Ints:
    """Return the sizes of containers, of which those of runs are written at their starts."""
    lengths, positions = lengths.copy(), headers.contents.copy()
    owners = np.repeat(np.arange(headers.counts.size), headers.counts)
    active = np.flatnonzero(np.bincount(owners[is_runs], minlength=headers.counts.size))
    for number in range(int(headers.counts[active].max(initial=0))):
        active = active[headers.counts[active] > number]
        containers = headers.firsts[active] + number
        with_runs = active[is_runs[containers]]
        stops = bitmaps.stops[with_runs]
        _check(
            positions[with_runs] + 2 <= stops,
            bitmaps.path,
            "a run container inside of its bitmap",
            stops,
        )
        num_runs = _u16(bitmaps.data, positions[with_runs])
        _check(num_runs > 0, bitmaps.path, "a run in a run container", num_runs)
        lengths[containers[is_runs[containers]]] = 2 + 4 * num_runs
        positions[active] += lengths[containers]
    return lengths


def _check(holds: Mask, path: str, expected: str, values: Ints) -> None:
    """Raise CorruptFileError with the first value for which something does not hold."""
    if not holds.all():
        raise CorruptFileError(path, None, expected, f"{values[int(np.argmin(holds))]}")


def _before(sizes: Ints) -> Ints:
    """Return for each size the sum of those before it."""
    return np.cumsum(sizes) - sizes


def _u16(data: Bytes, places: Ints) -> Ints:
    """Return the 16-bit numbers at some places, which may be odd."""
    return data[places].astype(np.int64) | data[places + 1].astype(np.int64) << 8


def _u32(data: Bytes, places: Ints) -> Ints:
    return _u16(data, places) | _u16(data, places + 2) << 16
