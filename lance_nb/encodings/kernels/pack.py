"""Pack blocks of 1024 integers to W bits in FastLanes order: the mirror of ``kernels.bitpack``.

Layout: see ``kernels.bitpack``. A block becomes ``1024 * W / T`` words of T bits.

How: of narrow values, 2, 4 or 8 rows that follow each other are first merged into one of as many
times their bits, where they lie: neighbouring rows are 128 values apart. The rows of many blocks
are then turned into contiguous vectors, so that shifting one row into its word is one call for up
to ``BLOCKS`` blocks. Each word's first row is assigned and the others are or-ed, so nothing has to
be cleared before. What is turned are ``LANES``: whole rows of a block.
Limits: every value fits W bits (the caller knows from an or-reduction); the values of a block lie
side by side, and so do its words.
Source: FastLanes, "unified transposed layout", as written by pylance 14.0.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.bitpack import LANES, ORDER, VALUES

Words = npt.NDArray[np.unsignedinteger[Any]]

_SAVED_SECONDS = 4e-10  # per byte of input, by the compiled loop
_APART = 128  # values between neighbouring rows
BLOCKS = 256  # at once: less scratch means more calls, more scratch leaves the cache


def pack(blocks: Words, width: int, out: Words) -> None:
    """Pack the rows of ``blocks`` (shape (n, 1024)) into the rows of ``out`` (n, 1024 * W / T)."""
    word_bits = blocks.dtype.itemsize * 8
    lanes = VALUES // word_bits
    if width == 0 or _pack_compiled(blocks, width, out):
        return
    merged = 8
    while merged * width > word_bits:
        merged //= 2
    count, num_rows = min(BLOCKS, len(blocks)), 8 // merged
    room = np.empty((num_rows, count, _APART), blocks.dtype)
    scratch = np.empty((num_rows + width + 1, count * lanes), blocks.dtype)
    for first in range(0, len(blocks), BLOCKS):
        part = blocks[first : first + BLOCKS]
        source = _merged(part, width, room[:, : len(part)]).view(LANES)
        rows, words, spare = np.split(scratch[:, : len(part) * lanes], (num_rows, -1))
        for group in range(word_bits // 8):
            np.copyto(rows.view(LANES), source[:, :, ORDER[group] * 16 // lanes])
            _pack_rows(rows, width * merged, group * num_rows, words, spare[0])
        np.copyto(out[first : first + BLOCKS].view(LANES), words.view(LANES).T)


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
    """Pack with the compiled loop if it pays; tell whether it ran."""
    if not compiled.pays(blocks.nbytes * _SAVED_SECONDS):
        return False
    if not blocks.flags.c_contiguous:
        return False
    word_bits = blocks.dtype.itemsize * 8
    row = np.arange(word_bits)
    order = (np.array(ORDER)[row // 8] * 16 + row % 8 * 128).astype(np.uint64)
    stride = out.strides[0] // out.itemsize
    flat = as_strided(out, ((len(out) - 1) * stride + out.shape[1],), (out.itemsize,))
    args = (blocks.ravel(), np.uint64(width), order, flat, np.uint64(stride))
    loop = compiled.kernel("pack_bits", args)
    if loop is None:
        return False
    loop(*args)
    return True


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
