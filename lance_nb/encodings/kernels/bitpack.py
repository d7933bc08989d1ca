"""Unpack blocks of 1024 integers that were packed to W bits in FastLanes order.

Layout: a block is ``1024 * W / T`` words of T bits (T = 8, 16, 32, 64; 0 <= W <= T). There are
``L = 1024 / T`` lanes; lane ``l`` is a stream of bits, least significant first, whose bit ``b``
lives in word ``(b // T) * L + l``, bit ``b % T``. Row ``r`` of lane ``l`` occupies the bits
``r * W .. r * W + W - 1`` and is value ``ORDER[r // 8] * 16 + (r % 8) * 128 + l`` of the block.

How: the blocks are turned so that one row of up to ``BLOCKS`` blocks is one contiguous vector;
shift and mask then cost one call per row. Eight rows at a time, while they are still in the cache,
a strided copy puts them in order.
Limits: the caller has checked widths and sizes.
Source: FastLanes, "unified transposed layout", as written by pylance 14.0.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.ranges import concatenate, rows

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.unsignedinteger[Any]]

VALUES = 1024  # in a block
LANES = np.dtype(("V", VALUES // 8))  # the bytes of one row: copied as one, twice as fast as words
ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
_SAVED_SECONDS = 3e-10  # per byte of output, by the compiled loop
BLOCKS = 512  # at once: less scratch means more calls, more scratch leaves the cache


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
    """Unpack with the compiled loop if it pays and the words are aligned; tell whether it ran."""
    word = out.dtype.itemsize
    if not compiled.pays(out.size * word * _SAVED_SECONDS):
        return False
    if data.ctypes.data % word or bool((starts % word).any()):
        return False
    words = data[: data.size // word * word].view(out.dtype)
    first = (starts // word).astype(np.uint64)
    order = _first_values(word * 8).astype(np.uint64)
    args = (words, first, np.uint64(width), order, out.ravel())
    loop = compiled.kernel("unpack_bits", args)
    if loop is None:
        return False
    loop(*args)
    return True


def _first_values(word_bits: int) -> Ints:
    """Return which value of a block is the first of each row."""
    row = np.arange(word_bits)
    return np.array(ORDER)[row // 8] * 16 + row % 8 * 128


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
    at = offsets.take(positions)
    at += starts
    found = words_at(data, at, kind)
    found >>= shifts.take(positions)
    (spills,) = spilling.take(positions).nonzero()
    if spills.size:
        more = words_at(data, at.take(spills) + VALUES // 8, kind)
        more <<= kind.type(kind.itemsize * 8) - shifts.take(positions.take(spills))
        found[spills] |= more
    found &= kind.type((1 << width) - 1)
    return found


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
    at = starts + place * kind.itemsize
    found: Words = words_at(data, at, kind)
    found >>= shift.astype(kind)
    (spills,) = (shift + widths > word_bits).nonzero()
    if spills.size:
        more = words_at(data, at[spills] + lanes * kind.itemsize, kind)
        found[spills] |= more << (word_bits - shift[spills]).astype(kind)
    found &= _masks(kind)[widths]
    return found


@lru_cache(maxsize=4)
def _first_rows(lanes: int) -> Ints:
    """Return the row of each of the values 0..127 of a block, for so many lanes."""
    group = np.arange(128) // lanes
    found: Ints = np.argsort(ORDER)[group * lanes // 16] * 8
    return found


@lru_cache(maxsize=4)
def _masks(kind: np.dtype[Any]) -> Words:
    """Return the mask of every width from 0 to that of the word."""
    return np.array([(1 << width) - 1 for width in range(kind.itemsize * 8 + 1)], kind)


def words_at(data: Bytes, at: Ints, kind: np.dtype[Any]) -> Words:
    """Copy the word at each byte position; fast where all of them are whole words apart."""
    size = kind.itemsize
    skip = int(at[0]) % size if at.size else 0
    place = at - skip if skip else at
    if np.bitwise_or.reduce(place) & (size - 1):
        return np.array(rows(data, at, size), order="C").view(kind).ravel()
    words: Words = data[skip : data.size - (data.size - skip) % size].view(kind)
    found: Words = words.take(place // size)
    return found
