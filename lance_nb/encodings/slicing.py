"""Cut and gather data blocks and ranges of rows: plain numpy work.

Ownership: ``slice_block`` returns views wherever bytes allow it; ``gather_ranges`` copies.
"""

from __future__ import annotations

import numpy as np

from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    Constant,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    Ints,
    PackedStruct,
    Rows,
    VariableWidth,
)
from lance_nb.encodings.kernels import ranges


def slice_block(block: DataBlock, start: int, stop: int) -> DataBlock:
    """Return values ``[start, stop)`` of the block."""
    count = stop - start
    if start == 0 and count == block.num_values:
        return block
    match block:
        case FixedWidth():
            return _slice_fixed(block, start, stop)
        case VariableWidth(_, offsets, data):
            first, last = int(offsets[start]), int(offsets[stop])
            return VariableWidth(
                count, offsets[start : stop + 1] - offsets[start], data[first:last]
            )
        case FixedSizeList(dimension, _, items, validity):
            first, last = start * dimension, stop * dimension
            cut = None if validity is None else _slice_bits(validity, first, last)
            return FixedSizeList(dimension, count, slice_block(items, first, last), cut)
        case PackedStruct(_, children):
            return PackedStruct(count, tuple(slice_block(child, start, stop) for child in children))
        case Dictionary(_, indices, items):
            return Dictionary(count, _slice_fixed(indices, start, stop), items)
        case Constant(_, value):
            return Constant(count, value)
        case AllNull():
            return AllNull(count)


def gather_ranges(block: DataBlock, starts: Ints, stops: Ints) -> DataBlock:
    """Return the values of the ranges ``[starts[i], stops[i])`` one after the other."""
    if starts.size == 1:
        return slice_block(block, int(starts[0]), int(stops[0]))
    return take_block(block, expand_ranges(starts, stops))


def take_block(block: DataBlock, positions: Ints) -> DataBlock:
    """Return the values at ``positions`` (int64, in range, any order)."""
    count = int(positions.size)
    match block:
        case FixedWidth():
            return _take_fixed(block, positions)
        case VariableWidth(_, offsets, data):
            return _take_variable(offsets, data, positions)
        case FixedSizeList(dimension, num_values, FixedWidth(bits, _, data), None) if bits % 8 == 0:
            # The items of a list are adjacent: move them as one wide value.
            wide = _take_fixed(FixedWidth(dimension * bits, num_values, data), positions)
            taken = FixedWidth(bits, count * dimension, wide.data)
            return FixedSizeList(dimension, count, taken, None)
        case FixedSizeList(dimension, _, items, validity):
            flat = (positions[:, None] * dimension + np.arange(dimension)).ravel()
            return FixedSizeList(
                dimension, count, take_block(items, flat), _take_bits(validity, flat)
            )
        case PackedStruct(_, children):
            return PackedStruct(count, tuple(take_block(child, positions) for child in children))
        case Dictionary(_, indices, items):
            return Dictionary(count, _take_fixed(indices, positions), items)
        case Constant(_, value):
            return Constant(count, value)
        case AllNull():
            return AllNull(count)


def expand_ranges(starts: Ints, stops: Ints) -> Ints:
    """List every integer of the ranges ``[starts[i], stops[i])``, in order."""
    lengths = stops - starts
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    expanded: Ints = np.arange(total, dtype=np.int64)
    expanded += np.repeat(starts - (ends - lengths), lengths)
    return expanded


def _slice_fixed(block: FixedWidth, start: int, stop: int) -> FixedWidth:
    bits = block.bits_per_value
    return FixedWidth(bits, stop - start, _slice_bits(block.data, start * bits, stop * bits))


def _take_fixed(block: FixedWidth, positions: Ints) -> FixedWidth:
    count = int(positions.size)
    if block.bits_per_value == 1:
        bits = np.unpackbits(block.data, count=block.num_values, bitorder="little")
        return FixedWidth(1, count, np.packbits(bits[positions], bitorder="little"))
    values = block.data.reshape(block.num_values, block.bits_per_value // 8)
    return FixedWidth(block.bits_per_value, count, values[positions].ravel())


def _slice_bits(data: Bytes, first_bit: int, last_bit: int) -> Bytes:
    if first_bit % 8 == 0:
        return data[first_bit // 8 : -(-last_bit // 8)]
    window = np.unpackbits(data[first_bit // 8 : -(-last_bit // 8)], bitorder="little")
    shift = first_bit % 8
    return np.packbits(window[shift : shift + last_bit - first_bit], bitorder="little")


def _take_bits(bitmap: Bytes | None, positions: Ints) -> Bytes | None:
    if bitmap is None:
        return None
    bits = np.unpackbits(bitmap, bitorder="little")
    return np.packbits(bits[positions], bitorder="little")


def _take_variable(offsets: np.ndarray, data: Bytes, positions: Ints) -> VariableWidth:
    starts = offsets[positions].astype(np.int64)
    stops = offsets[positions + 1].astype(np.int64)
    out = np.zeros(positions.size + 1, np.int64)
    np.cumsum(stops - starts, out=out[1:])
    taken = ranges.concatenate(data, starts, stops - starts)
    return VariableWidth(int(positions.size), out.astype(offsets.dtype), taken)


def merged(starts: Ints, stops: Ints) -> Rows:
    """Join ascending ranges that touch or overlap; empty ones vanish."""
    if starts.size and bool((starts[1:] == stops[:-1]).all()):  # back to back, as values are
        starts, stops = starts[:1], stops[-1:]
    some = stops > starts
    starts, stops = starts[some], stops[some]
    if not starts.size:
        return Rows(starts, stops)
    breaks = np.flatnonzero(starts[1:] > stops[:-1]) + 1
    firsts = np.concatenate(([0], breaks))
    lasts = np.concatenate((breaks - 1, [starts.size - 1]))
    return Rows(starts[firsts], stops[lasts])


def places_in(rows: Rows, positions: Ints) -> Ints:
    """Return where each of ``positions`` (all of them in ``rows``) stands when rows are joined."""
    lengths = rows.stops - rows.starts
    shift = np.cumsum(lengths) - lengths - rows.starts
    group = np.searchsorted(rows.starts, positions, side="right") - 1
    places: Ints = positions + shift[group]
    return places


def split_at(rows: Rows, ends: Ints) -> list[tuple[int, Rows]]:
    """Cut rows at the borders of pages that end at ``ends`` (cumulative, the last beyond all rows).

    Returns page number and rows of the page, counted from its start; pages without rows are left
    out.
    """
    if not rows.starts.size:
        return []
    if ends.size == 1:
        return [(0, rows)]
    first = int(ends.searchsorted(rows.starts[0], side="right"))
    last = int(ends.searchsorted(rows.stops[-1] - 1, side="right"))
    if first == last:
        begin = int(ends[first - 1]) if first else 0
        return [(first, Rows(rows.starts - begin, rows.stops - begin) if begin else rows)]
    parts = []
    for page in range(first, last + 1):
        begin = int(ends[page - 1]) if page else 0
        end = int(ends[page])
        low = int(np.searchsorted(rows.stops, begin, side="right"))
        high = int(np.searchsorted(rows.starts, end, side="left"))
        if low < high and begin < end:
            starts = np.maximum(rows.starts[low:high], begin) - begin
            stops = np.minimum(rows.stops[low:high], end) - begin
            parts.append((page, Rows(starts, stops)))
    return parts
