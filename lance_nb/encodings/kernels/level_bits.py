"""Unpack levels of 1, 2, 4 or 8 bits: blocks of 1024 in FastLanes order, into one byte each.

Layout: that of ``kernels.bitpack`` with words of 16 bits: 64 lanes, and the widths here divide a
byte, so that no level crosses one. Byte ``t`` of a lane holds its rows ``8 / W * t`` and following;
row ``r`` of lane ``l`` is level ``r // 8 * 64 + r % 8 * 128 + l``.

How: levels are so narrow that one 64-bit word carries eight of them at once: a shift and a mask
per row unpack eight lanes, a third of the time that words of 16 bits take.
Limits: the caller has checked sizes. Source: FastLanes, as written by pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels.bitpack import VALUES
from lance_nb.encodings.kernels.ranges import rows

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

WIDTHS = (1, 2, 4, 8)
_LANES = 64
_BLOCKS = 512  # at once, so that what is at work stays in the cache
_EVERY_BYTE = 0x0101010101010101


def unpack_levels(data: Bytes, starts: Ints, width: int, out: Bytes) -> None:
    """Unpack the blocks that begin at the bytes ``starts`` into the rows of ``out``.

    ``out`` has shape (number of blocks, 1024) and is contiguous.
    """
    size = VALUES // 8 * width
    per_byte = 8 // width
    mask = np.uint64(((1 << width) - 1) * _EVERY_BYTE)
    scratch = np.empty((8, min(_BLOCKS, starts.size) * _LANES // 8), np.uint64)
    for first in range(0, starts.size, _BLOCKS):
        packed = rows(data, starts[first : first + _BLOCKS], size)
        count = len(packed)
        lanes = _bytes_of_lanes(packed, width)
        room = scratch[:, : count * _LANES // 8]
        # eight rows, a step of 128 levels apart, fill one half of every step
        target = out[first : first + count].view(np.uint64).reshape(count, 8, 2, _LANES // 8)
        for half in range(2):
            for row in range(8):
                byte, place = divmod(half * 8 + row, per_byte)
                np.right_shift(lanes[byte], np.uint64(place * width), out=room[row])
            np.bitwise_and(room, mask, out=room)
            target[:, :, half] = room.reshape(8, count, _LANES // 8).transpose(1, 0, 2)


def _bytes_of_lanes(packed: Bytes, width: int) -> npt.NDArray[np.uint64]:
    """Turn blocks into one row per byte of a lane: the 64 lanes of every block, back to back."""
    count = len(packed)
    found = np.empty((2 * width, count, _LANES), np.uint8)
    lanes = np.ascontiguousarray(packed).reshape(count, width, _LANES, 2)
    found.reshape(width, 2, count, _LANES)[:] = lanes.transpose(1, 3, 0, 2)
    return found.reshape(2 * width, -1).view(np.uint64)
