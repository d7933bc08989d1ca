"""The hot loops in plain Python, written for numba: ``kernels.compiled`` compiles them on demand.

They take arrays and numbers only, allocate nothing and raise nothing: a result tells what is wrong.
Without numba they would be far too slow; the numpy forms beside them give identical results.

Limits: the caller has checked every size; ``measure_fsst`` checks what depends on the codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_ESCAPE = 255


def measure_fsst(
    codes: Array, offsets: Array, lengths: Array, num_symbols: int, out_offsets: Array
) -> int:
    """Write where each decoded value begins and ends; return -1, or the first broken value."""
    total = 0
    out_offsets[0] = 0
    for value in range(offsets.size - 1):
        position = offsets[value]
        end = offsets[value + 1]
        while position < end:
            code = codes[position]
            if code == _ESCAPE:
                position += 2
                total += 1
                if position > end:
                    return value
            elif code >= num_symbols:
                return value
            else:
                position += 1
                total += lengths[code]
        out_offsets[value + 1] = total
    return -1


def decode_fsst(codes: Array, symbols: Array, lengths: Array, out: Array) -> None:
    """Write the symbol of each code; ``out`` sees 8 bytes from every byte position on.

    Values need no boundaries here: an escape never crosses one, which ``measure_fsst`` checked.
    """
    position = 0
    size = codes.size
    target = 0
    while position < size:
        code = codes[position]
        if code == _ESCAPE:
            out[target] = np.uint64(codes[position + 1])
            position += 2
            target += 1
        else:
            out[target] = symbols[code]
            position += 1
            target += lengths[code]


def unpack_bits(words: Array, starts: Array, width: int, order: Array, out: Array) -> None:
    """Unpack blocks of 1024 values; ``starts`` are word numbers, ``order`` the first value of rows.

    ``out`` has shape (blocks, 1024). Words, masks and ``out`` have the same unsigned type.
    """
    bits = order.size
    lanes = out.shape[1] // bits
    kind = out.dtype.type
    mask = kind((1 << width) - 1) if width < bits else ~kind(0)
    for block in range(starts.size):
        begin = starts[block]
        for row in range(bits):
            word = begin + (row * width // bits) * lanes
            shift = kind(row * width % bits)
            left = kind(bits) - shift
            first = order[row]
            if shift + kind(width) > kind(bits):
                for lane in range(lanes):
                    low = words[word + lane] >> shift
                    high = words[word + lanes + lane] << left
                    out[block, first + lane] = (low | high) & mask
            else:
                for lane in range(lanes):
                    out[block, first + lane] = (words[word + lane] >> shift) & mask
