"""The hot loops in plain Python, written for numba: ``kernels.compiled`` compiles them on demand.

They take arrays and numbers only, allocate nothing and raise nothing: a result tells what is wrong.
Without numba they would be far too slow; the numpy forms beside them give identical results.

Limits: the caller has checked every size and index that does not depend on the loop's own work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_ESCAPE = 255


def measure_fsst(
    codes: Array, offsets: Array, lengths: Array, scratch: Array, out_offsets: Array
) -> bool:
    """Write where each decoded value begins and ends, for codes without escapes; return False.

    Running lengths go to ``scratch`` first, a stretch of codes at a time, and are looked up for
    the values after that: a loop per value would guess its end wrongly each time.
    """
    one = np.uint64(1)
    size = np.uint64(codes.size)
    room = np.uint64(scratch.size - 1)
    total = np.uint64(0)
    value = 0
    start = np.uint64(0)
    while start < size:
        stop = min(start + room, size)
        place = np.uint64(0)
        scratch[0] = total
        for position in range(start, stop):
            total += np.uint64(lengths[codes[position]])
            place += one
            scratch[place] = total
        while value < offsets.size and np.uint64(offsets[value]) <= stop:
            out_offsets[value] = scratch[np.uint64(offsets[value]) - start]
            value += 1
        start = stop
    return False


def measure_escaped_fsst(
    codes: Array, offsets: Array, lengths: Array, scratch: Array, out_offsets: Array
) -> bool:
    """Do the same for codes with escapes; tell whether one is broken.

    ``lengths`` is 0 for a code without a symbol. The lowest bit of ``scratch`` says that the byte
    that follows is a literal: no value may begin or end there.
    """
    one = np.uint64(1)
    size = np.uint64(codes.size)
    room = np.uint64(scratch.size - 1)
    total = np.uint64(0)
    value = 0
    start = np.uint64(0)
    literal = False
    broken = False
    while start < size:
        stop = min(start + room, size)
        place = np.uint64(0)
        scratch[0] = total + total + np.uint64(literal)
        for position in range(start, stop):
            code = codes[position]
            length = one if literal else np.uint64(lengths[code])
            literal = code == _ESCAPE and not literal
            if literal:
                length = np.uint64(0)
            elif length == 0:
                broken = True
            total += length
            place += one
            scratch[place] = total + total + np.uint64(literal)
        while value < offsets.size and np.uint64(offsets[value]) <= stop:
            found = scratch[np.uint64(offsets[value]) - start]
            if found & one:
                broken = True
            out_offsets[value] = found >> one
            value += 1
        start = stop
    return broken


def decode_fsst(codes: Array, symbols: Array, lengths: Array, out: Array) -> None:
    """Write the symbol of each code; ``out`` sees 8 bytes from every byte position on.

    ``symbols`` and ``lengths`` have 256 entries. Values need no boundaries here: an escape never
    crosses one, which ``measure_escaped_fsst`` checked.
    """
    one = np.uint64(1)
    position = np.uint64(0)
    size = np.uint64(codes.size)
    target = np.uint64(0)
    while position < size:
        code = codes[position]
        position += one
        if code == _ESCAPE:
            out[target] = np.uint64(codes[position])
            position += one
        else:
            out[target] = symbols[code]
        target += np.uint64(lengths[code])


def unpack_bits(words: Array, starts: Array, width: Any, order: Array, out: Array) -> None:
    """Unpack blocks of 1024 values; ``starts`` are word numbers, ``order`` the first value of rows.

    ``out`` is one-dimensional, the blocks back to back; words and ``out`` have the same type.
    Every index and ``width`` is a 64-bit unsigned number: an index that may be negative would be
    checked for each value, and the loops over lanes would not be vectorised.
    """
    bits = np.uint64(order.size)
    block_values = np.uint64(1024)
    lanes = block_values // bits
    kind = out.dtype.type
    mask = kind((np.uint64(1) << width) - np.uint64(1)) if width < bits else ~kind(0)
    base = np.uint64(0)
    for block in range(starts.size):
        place = np.uint64(0)
        begin = starts[block]
        for row in range(order.size):
            low = begin + place // bits * lanes
            high = low + lanes
            first = base + order[row]
            shift = kind(place % bits)
            if place % bits + width > bits:
                left = kind(bits) - shift
                for lane in range(lanes):
                    spread = (words[low + lane] >> shift) | (words[high + lane] << left)
                    out[first + lane] = spread & mask
            else:
                for lane in range(lanes):
                    out[first + lane] = (words[low + lane] >> shift) & mask
            place += width
        base += block_values


def pack_bits(values: Array, width: Any, order: Array, out: Array, stride: Any) -> None:
    """Pack blocks of 1024 values; each block of ``out`` begins ``stride`` words after the last.

    Both arrays are one-dimensional and of one type; numbers are as for ``unpack_bits``. The first
    row of a word is assigned to it, so that nothing has to be cleared.
    """
    bits = np.uint64(order.size)
    block_values = np.uint64(1024)
    lanes = block_values // bits
    kind = out.dtype.type
    base = np.uint64(0)
    begin = np.uint64(0)
    for _ in range(values.size // 1024):
        place = np.uint64(0)
        for row in range(order.size):
            low = begin + place // bits * lanes
            first = base + order[row]
            shift = kind(place % bits)
            if shift == kind(0):
                for lane in range(lanes):
                    out[low + lane] = values[first + lane]
            else:
                for lane in range(lanes):
                    out[low + lane] |= values[first + lane] << shift
            if place % bits + width > bits:
                high = low + lanes
                left = kind(bits) - shift
                for lane in range(lanes):
                    out[high + lane] = values[first + lane] >> left
            place += width
        base += block_values
        begin += stride


def encode_fsst(windows: Array, pieces: Any, tables: Any, codes: Array, ends: Array) -> int:
    """Encode the bytes of every piece, the longest symbol first; return the number of codes.

    ``windows`` has the 8 bytes from each position on, ``pieces`` where each begins and ends.
    ``tables`` are the entries of one and of two bytes, and words, masks and entries of longer
    symbols by their hash; an entry has the code, and the length from bit 12 on. ``codes`` of 16
    bits have literals as 256 + byte; codes of 8 bits have an escape, 255, and the byte.
    """
    starts, stops = pieces
    singles, pairs, hash_words, hash_masks, hash_entries = tables
    one = np.uint64(1)
    used = np.uint64(0)
    literal = np.uint64(0) if codes.itemsize > 1 else np.uint64(0x100)
    mask = np.uint64(0x1FF) - literal
    for piece in range(starts.size):
        position = np.uint64(starts[piece])
        stop = np.uint64(stops[piece])
        while position < stop:
            word = windows[position]
            slot = ((word & np.uint64(0xFFFFFF)) * np.uint64(2971215073) >> np.uint64(15)) & (
                np.uint64(4095)
            )
            room = stop - position
            entry = np.uint64(hash_entries[slot])
            if (word & hash_masks[slot]) != hash_words[slot] or entry >> np.uint64(12) > room:
                if room > one:
                    entry = np.uint64(pairs[word & np.uint64(0xFFFF)])
                else:
                    entry = np.uint64(singles[word & np.uint64(0xFF)])
            if entry & literal:
                codes[used] = 255
                used += one
            codes[used] = entry & mask
            used += one
            position += entry >> np.uint64(12)
        ends[piece + 1] = used
    return int(used)
