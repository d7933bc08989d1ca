"""Pack and unpack blocks of 1024 integers of W bits in FastLanes order.

Layout: a block is ``1024 * W / T`` words of T bits (T = 8, 16, 32, 64; 0 <= W <= T). There are
``L = 1024 / T`` lanes; lane ``l`` is a stream of bits, least significant first, whose bit ``b``
lives in word ``(b // T) * L + l``, bit ``b % T``. Row ``r`` of lane ``l`` occupies the bits
``r * W .. r * W + W - 1`` and is value ``ORDER[r // 8] * 16 + (r % 8) * 128 + l`` of the block.

Unpacking: the blocks are transposed so that one row of up to ``BLOCKS`` blocks is one contiguous
vector; shift and mask then cost one call per row. Eight rows at a time, while they are still in the
cache, a strided copy puts them in order.

Packing: of narrow values, 2, 4 or 8 rows that follow each other are first merged into one of as
many times their bits, where they lie: neighbouring rows are 128 values apart. The rows of up to
``PACK_BLOCKS`` blocks are then transposed into contiguous vectors of ``LANES``. Each word's first
row is assigned and the others are or-ed, so nothing has to be cleared before.

Levels (T = 16) of 1, 2, 4 or 8 bits are unpacked to one byte each. These widths divide a byte, so
no level crosses one: byte ``t`` of a lane holds its rows ``8 / W * t`` and following. One 64-bit
word carries eight levels at once, a third of the time that words of 16 bits take.

Limits: the caller has checked widths and sizes. When packing every value fits W bits, the values of
a block lie side by side, and so do its words.
Source: FastLanes, "unified transposed layout", as written by pylance 14.0.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import compiled, memory
from lance_nb.encodings.kernels.ranges import concatenate, rows
from lance_nb.errors import InternalError

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.unsignedinteger[Any]]

VALUES = 1024  # in a block
LANES = np.dtype(("V", VALUES // 8))  # the bytes of one row: copied as one, twice as fast as words
ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
BLOCKS = 512  # at once: less scratch means more calls, more scratch leaves the cache
_APART = 128  # values between neighbouring rows
PACK_BLOCKS = 256  # at once: less scratch means more calls, more scratch leaves the cache
LEVEL_WIDTHS = (1, 2, 4, 8)
_LEVEL_LANES = 64
_EVERY_BYTE = 0x0101010101010101


def unpack(data: Bytes, starts: Ints, width: int, out: Words) -> None:
    """Unpack the blocks that begin at the bytes ``starts`` into the rows of ``out``.

    ``out`` has shape (number of blocks, 1024); its type is the unpacked word.
    """
    word_bits = out.dtype.itemsize * 8
    if width == 0:
        out[:] = 0
        return
    if _unpack_compiled(data, starts, width, out):
        return
    size = VALUES // 8 * width
    _check_blocks(data, starts, width)
    lanes = VALUES // word_bits
    scratch = np.empty((9, min(BLOCKS, starts.size) * lanes), out.dtype)
    for first in range(0, starts.size, BLOCKS):
        part = out[first : first + BLOCKS]
        packed = rows(data, starts[first : first + BLOCKS], size).view(LANES)
        words = np.array(packed.T, order="C").view(out.dtype)
        room = scratch[:, : words.shape[1]]
        target = part.view(LANES).reshape(len(part), 8, word_bits // 8)
        for group in range(word_bits // 8):
            _unpack_rows(words, width, group * 8, room)
            target[:, :, ORDER[group] * 16 // lanes] = room[:8].view(LANES).T


def _unpack_compiled(data: Bytes, starts: Ints, width: int, out: Words) -> bool:
    """Unpack with the compiled loop; tell whether it ran."""
    loops = compiled.loops
    if loops is None or not out.flags.c_contiguous:
        return False
    flat = out.reshape(-1).view(np.uint8)
    if not loops.unpack_bits(data, starts, width, out.itemsize, flat):
        raise _outside(data, width)
    return True


def _check_blocks(data: Bytes, starts: Ints, width: int) -> None:
    if bool(((starts < 0) | (starts > data.size - VALUES // 8 * width)).any()):
        raise _outside(data, width)


def _outside(data: Bytes, width: int) -> InternalError:
    return InternalError(f"blocks of {width} bits outside of {data.size} bytes")


def _unpack_rows(words: Words, width: int, first: int, room: Words) -> None:
    """Write 8 rows of every lane, from row ``first`` on, to ``room``, whose last row is scratch."""
    word_bits = words.dtype.itemsize * 8
    kind = words.dtype.type
    mask, spill = kind((1 << width) - 1), room[8]
    for row in range(first, first + 8):
        word, shift = divmod(row * width, word_bits)
        target = room[row - first]
        if shift == 0:
            np.bitwise_and(words[word], mask, out=target)
            continue
        np.right_shift(words[word], kind(shift), out=target)
        if shift + width > word_bits:
            np.left_shift(words[word + 1], kind(word_bits - shift), out=spill)
            np.bitwise_or(target, spill, out=target)
        if shift + width != word_bits:
            np.bitwise_and(target, mask, out=target)


def trim(blocks: Words, counts: Ints) -> Bytes:
    """Keep the first ``counts[i]`` values of each block, back to back, as bytes."""
    short = np.flatnonzero(counts != VALUES)
    if short.size == 0 or int(short[0]) == counts.size - 1:
        return blocks.ravel()[: int(counts.sum())].view(np.uint8)
    # A short block ends a run of bytes that are wanted, and the next block begins another.
    size = VALUES * blocks.itemsize
    starts = np.concatenate(([0], short + 1)) * size
    stops = np.append(short * size + counts[short] * blocks.itemsize, counts.size * size)
    return concatenate(blocks.ravel().view(np.uint8), starts, stops - starts)


def gather_alike(
    data: Bytes, starts: Ints, width: int, positions: Ints, kind: np.dtype[Any]
) -> Words:
    """Fetch value ``positions[i]`` of the block at ``starts[i]``; all have the same width."""
    if width == 0:
        return np.zeros(positions.size, kind)
    offsets, shifts, spilling = _places(width, kind)
    word_positions = offsets.take(positions)
    word_positions += starts
    words = words_at(data, word_positions, kind)
    words >>= shifts.take(positions)
    (spills,) = spilling.take(positions).nonzero()
    if spills.size:
        more = words_at(data, word_positions.take(spills) + VALUES // 8, kind)
        more <<= kind.type(kind.itemsize * 8) - shifts.take(positions.take(spills))
        words[spills] |= more
    words &= kind.type((1 << width) - 1)
    return words


@lru_cache(maxsize=32)
def _places(width: int, kind: np.dtype[Any]) -> tuple[Ints, Words, npt.NDArray[np.bool_]]:
    """Return of each value of a block: the byte of its first word, its shift, whether it spills."""
    word_bits = kind.itemsize * 8
    lanes = VALUES // word_bits
    value = np.arange(VALUES)
    bit = (_first_rows(lanes)[value & 127] + (value >> 7)) * width
    shift = bit % word_bits
    offset = (bit // word_bits * lanes + value % lanes) * kind.itemsize
    return offset, shift.astype(kind), shift + width > word_bits


def gather(data: Bytes, starts: Ints, widths: Ints, positions: Ints, kind: np.dtype[Any]) -> Words:
    """Fetch value ``positions[i]`` of the block at ``starts[i]``, packed to ``widths[i]`` bits."""
    word_bits = kind.itemsize * 8
    lanes = VALUES // word_bits
    bit = _first_rows(lanes)[positions & 127]
    bit += positions >> 7
    bit *= widths
    shift = bit & (word_bits - 1)
    place = bit // word_bits
    place *= lanes
    place += positions & (lanes - 1)
    if not np.logical_and.reduce(widths):  # no words at all: look at the width in front, the
        place[widths == 0] = -1  # mask hides it
    word_positions = starts + place * kind.itemsize
    words: Words = words_at(data, word_positions, kind)
    words >>= shift.astype(kind)
    (spills,) = (shift + widths > word_bits).nonzero()
    if spills.size:
        more = words_at(data, word_positions[spills] + lanes * kind.itemsize, kind)
        words[spills] |= more << (word_bits - shift[spills]).astype(kind)
    words &= _masks(kind)[widths]
    return words


@lru_cache(maxsize=4)
def _first_rows(lanes: int) -> Ints:
    """Return the row of each of the values 0..127 of a block, for so many lanes."""
    group = np.arange(128) // lanes
    first_rows: Ints = np.argsort(ORDER)[group * lanes // 16] * 8
    return first_rows


@lru_cache(maxsize=4)
def _masks(kind: np.dtype[Any]) -> Words:
    """Return the mask of every width from 0 to that of the word."""
    return np.array([(1 << width) - 1 for width in range(kind.itemsize * 8 + 1)], kind)


def words_at(data: Bytes, positions: Ints, kind: np.dtype[Any]) -> Words:
    """Copy the word at each byte position; fast where all of them are whole words apart."""
    size = kind.itemsize
    skip = int(positions[0]) % size if positions.size else 0
    place = positions - skip if skip else positions
    if np.bitwise_or.reduce(place) & (size - 1):
        return np.array(rows(data, positions, size), order="C").view(kind).ravel()
    words: Words = data[skip : data.size - (data.size - skip) % size].view(kind)
    words_read: Words = words.take(place // size)
    return words_read


def pack(blocks: Words, width: int, out: Words) -> None:
    """Pack the rows of ``blocks`` (shape (n, 1024)) into the rows of ``out`` (n, 1024 * W / T)."""
    word_bits = blocks.dtype.itemsize * 8
    lanes = VALUES // word_bits
    if width == 0 or _pack_compiled(blocks, width, out):
        return
    merged = 8
    while merged * width > word_bits:
        merged //= 2
    count, num_rows = min(PACK_BLOCKS, len(blocks)), 8 // merged
    room = np.empty((num_rows, count, _APART), blocks.dtype)
    scratch = np.empty((num_rows + width + 1, count * lanes), blocks.dtype)
    for first in range(0, len(blocks), PACK_BLOCKS):
        part = blocks[first : first + PACK_BLOCKS]
        source = _merged(part, width, room[:, : len(part)]).view(LANES)
        rows, words, spare = np.split(scratch[:, : len(part) * lanes], (num_rows, -1))
        for group in range(word_bits // 8):
            np.copyto(rows.view(LANES), source[:, :, ORDER[group] * 16 // lanes])
            _pack_rows(rows, width * merged, group * num_rows, words=words, spare=spare[0])
        np.copyto(out[first : first + PACK_BLOCKS].view(LANES), words.view(LANES).T)


def _merged(blocks: Words, width: int, out: Words) -> Words:
    """Put the rows of each group of 8 side by side, as many as ``out`` (shape (m, n, 128)) asks.

    Returns the blocks themselves, in that shape, if each row stays alone.
    """
    rows = blocks.reshape(len(blocks), 8, _APART).transpose(1, 0, 2)
    if len(out) == len(rows):
        return rows
    step, shift = len(rows) // len(out), blocks.dtype.type(width)
    for number, target in enumerate(out):
        first = number * step
        np.left_shift(rows[first + step - 1], shift, out=target)
        for row in range(first + step - 2, first, -1):
            np.bitwise_or(target, rows[row], out=target)
            np.left_shift(target, shift, out=target)
        np.bitwise_or(target, rows[first], out=target)
    return out


def _pack_compiled(blocks: Words, width: int, out: Words) -> bool:
    """Pack with the compiled loop; tell whether it ran."""
    loops = compiled.loops
    if loops is None or not blocks.flags.c_contiguous:
        return False
    packed: bool = loops.pack_bits(
        blocks.reshape(-1).view(np.uint8), width, blocks.itemsize, out.view(np.uint8)
    )
    return packed


def _pack_rows(rows: Words, width: int, first: int, words: Words, spare: Words) -> None:
    """Shift some rows of every lane, from row ``first`` on, into their words."""
    word_bits = rows.dtype.itemsize * 8
    kind = rows.dtype.type
    for number, source in enumerate(rows):
        word, shift = divmod((first + number) * width, word_bits)
        if shift == 0:
            words[word] = source
            continue
        np.left_shift(source, kind(shift), out=spare)
        np.bitwise_or(words[word], spare, out=words[word])
        if shift + width > word_bits:
            np.right_shift(source, kind(word_bits - shift), out=words[word + 1])


def unpack_levels(data: Bytes, starts: Ints, width: int, out: Bytes) -> None:
    """Unpack the blocks that begin at the bytes ``starts`` into the rows of ``out``.

    ``out`` has shape (number of blocks, 1024) and is contiguous.
    """
    loops = compiled.loops
    if loops is not None and out.flags.c_contiguous:
        if not loops.unpack_levels(data, starts, width, out.reshape(-1)):
            raise _outside(data, width)
        return
    size = VALUES // 8 * width
    _check_blocks(data, starts, width)
    per_byte = 8 // width
    mask = np.uint64(((1 << width) - 1) * _EVERY_BYTE)
    scratch = np.empty((8, min(BLOCKS, starts.size) * _LEVEL_LANES // 8), np.uint64)
    for first in range(0, starts.size, BLOCKS):
        packed = rows(data, starts[first : first + BLOCKS], size)
        count = len(packed)
        lanes = _bytes_of_lanes(packed, width)
        room = scratch[:, : count * _LEVEL_LANES // 8]
        # eight rows, a step of 128 levels apart, fill one half of every step
        target = out[first : first + count].view(np.uint64).reshape(count, 8, 2, _LEVEL_LANES // 8)
        for half in range(2):
            for row in range(8):
                byte, place = divmod(half * 8 + row, per_byte)
                np.right_shift(lanes[byte], np.uint64(place * width), out=room[row])
            np.bitwise_and(room, mask, out=room)
            target[:, :, half] = room.reshape(8, count, _LEVEL_LANES // 8).transpose(1, 0, 2)


def unpack_level_chunks(
    data: Bytes, starts: Ints, sizes: Ints, counts: Ints, width: int
) -> Bytes | None:
    """Unpack chunks of levels, back to back, by a compiled loop.

    None without one, for chunks that are damaged, and for levels that need more than a byte: the
    caller finds out which. ``counts`` are the levels of each chunk.
    """
    loops = compiled.loops
    if loops is None or not counts.size:
        return None
    if counts.size == 1:
        total, size = int(counts[0]), int(sizes[0])
    else:
        total, size = int(np.add.reduce(counts)), int(np.add.reduce(sizes))
    if not 0 <= total <= 8 * size:
        return None
    out = memory.allocate(total + VALUES)
    is_unpacked = loops.unpack_level_chunks(data, starts, sizes, counts, width, out)
    return out[:total] if is_unpacked else None


def _bytes_of_lanes(packed: Bytes, width: int) -> npt.NDArray[np.uint64]:
    """Turn blocks into one row per byte of a lane: the 64 lanes of every block, back to back."""
    count = len(packed)
    lanes_bytes = np.empty((2 * width, count, _LEVEL_LANES), np.uint8)
    lanes = np.ascontiguousarray(packed).reshape(count, width, _LEVEL_LANES, 2)
    lanes_bytes.reshape(width, 2, count, _LEVEL_LANES)[:] = lanes.transpose(1, 3, 0, 2)
    return lanes_bytes.reshape(2 * width, -1).view(np.uint64)
