"""Encode byte strings with FSST: at each place the longest symbol that is found there.

Layout: a code below 255 stands for its symbol; 255 comes before a literal byte.

How: without a compiled loop all strings advance together, one symbol per step. So that one long
string does not keep the others waiting, strings are cut into pieces of 256 bytes first, in both
forms: no symbol reaches over such a cut, and both forms give the same bytes.
Limits: less than 2**40 bytes. Source: FSST (Boncz, Neumann, Leis 2020).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.fsst_symbols import (
    ENTRY_CODE,
    LENGTH_SHIFT,
    LITERAL,
    Bytes,
    Codes,
    Ints,
    Matcher,
    hash_slots,
)
from lance_nb.encodings.kernels.memory import allocate
from lance_nb.encodings.kernels.ranges import ragged_indices, starts_of

ESCAPE = 255
_PIECE = 256  # bytes
_SAVED_SECONDS = 1e-8  # per byte of a page, by the compiled loop
_WINDOW = 8


def encode(data: Bytes, offsets: Ints, matcher: Matcher) -> tuple[Bytes, Ints]:
    """Return the encoded strings and their offsets."""
    if compiled.pays(_size(offsets) * _SAVED_SECONDS):
        room = allocate(2 * _size(offsets))  # if all were literals; what is not written is not used
        ends = _by_loop(data, offsets, matcher, room)
        if ends is not None:
            return room[: ends[-1]], ends
    codes, ends = _by_steps(data, offsets, matcher)
    is_literal = codes >= LITERAL
    if not bool(is_literal.any()):
        return codes.astype(np.uint8), ends
    before = starts_of(is_literal.astype(np.int64))
    out = allocate(codes.size + int(before[-1]))
    places = np.arange(codes.size) + before[:-1]
    out[places] = codes.astype(np.uint8)
    literals = np.flatnonzero(is_literal)
    out[places[literals]] = ESCAPE
    out[places[literals] + 1] = codes[literals] - LITERAL
    return out, ends + before[ends]


def encode_symbols(data: Bytes, offsets: Ints, matcher: Matcher) -> tuple[Codes, Ints]:
    """Return the codes of all strings (literals as 256 + byte), and their offsets."""
    if compiled.pays(_size(offsets) * _SAVED_SECONDS):
        room = np.empty(_size(offsets), np.uint16)
        ends = _by_loop(data, offsets, matcher, room)
        if ends is not None:
            return room[: ends[-1]], ends
    return _by_steps(data, offsets, matcher)


def _by_steps(data: Bytes, offsets: Ints, matcher: Matcher) -> tuple[Codes, Ints]:
    """Do the same without the compiled loop."""
    starts, stops, firsts = _cut(offsets)
    codes, ends = _step_by_step(_windows(data[: offsets[-1]]), starts, stops, matcher)
    return codes, ends if firsts is None else ends[firsts]


def _by_loop(data: Bytes, offsets: Ints, matcher: Matcher, room: Bytes | Codes) -> Ints | None:
    """Fill the room by the compiled loop and return the offsets; None as long as it is not ready.

    The loop looks at 8 bytes at a time, so the last pieces are taken from a copy that has them.
    """
    starts, stops, firsts = _cut(offsets)
    inner = int(np.searchsorted(stops, data.size - _WINDOW + 1, side="right"))
    begin = int(starts[inner]) if inner < starts.size else int(offsets[-1])
    longer = (matcher.hash_words, matcher.hash_masks, matcher.hash_entries)
    tables = (matcher.singles, matcher.pairs, *longer)
    ends = np.zeros(starts.size + 1, np.int64)
    tail = _windows(data[begin : offsets[-1]])
    last = (starts[inner:] - begin, stops[inner:] - begin)
    loop = compiled.kernel("encode_fsst", (tail, last, tables, room, ends))
    if loop is None:
        return None
    used = 0
    if inner:
        windows = np.ndarray((data.size - _WINDOW + 1,), np.uint64, data, 0, (1,))
        windows.flags.writeable = False  # as those of the tail, whatever the data is
        used = loop(windows, (starts[:inner], stops[:inner]), tables, room, ends[: inner + 1])
    loop(tail, last, tables, room[used:], ends[inner:])
    ends[inner:] += used
    ends[inner] = used
    return ends if firsts is None else ends[firsts]


def _size(offsets: Ints) -> int:
    return int(offsets[-1] - offsets[0])


def _windows(data: Bytes) -> npt.NDArray[np.uint64]:
    """Return the 8 bytes from each position on; zeros follow the last."""
    padded = np.append(data, np.zeros(_WINDOW, np.uint8))
    windows = np.ndarray((data.size + 1,), np.uint64, padded, 0, (1,))
    windows.flags.writeable = False
    return windows


def _cut(offsets: Ints) -> tuple[Ints, Ints, Ints | None]:
    """Cut strings into pieces: where each begins and ends, and which is the first of each string.

    The last is None when every string is one piece.
    """
    starts, stops = offsets[:-1], offsets[1:]
    lengths = stops - starts
    if not lengths.size or int(lengths.max()) <= _PIECE:
        return starts, stops, None
    pieces = (lengths + _PIECE - 1) // _PIECE
    within = ragged_indices(np.zeros(pieces.size, np.int64), pieces)
    begins = np.repeat(starts, pieces) + within * _PIECE
    return begins, np.minimum(begins + _PIECE, np.repeat(stops, pieces)), starts_of(pieces)


def _step_by_step(
    windows: npt.NDArray[np.uint64], starts: Ints, stops: Ints, matcher: Matcher
) -> tuple[Codes, Ints]:
    """Take one symbol of every piece per step."""
    counts = np.zeros(starts.size, np.int64)
    active = np.flatnonzero(starts < stops)
    position, stop = starts[active], stops[active]
    steps: list[tuple[Ints, Codes]] = []
    while active.size:
        code = _match(windows[position], stop - position, matcher)
        steps.append((active, code))
        position = position + matcher.lengths[code]
        counts[active] += 1
        left = position < stop
        if not bool(left.all()):
            active, position, stop = active[left], position[left], stop[left]
    ends = starts_of(counts)
    codes = np.empty(int(ends[-1]), np.uint16)
    for number, (pieces, code) in enumerate(steps):
        codes[ends[pieces] + number] = code
    return codes, ends


def _match(words: npt.NDArray[np.uint64], room: Ints, matcher: Matcher) -> Codes:
    """Return the code of the longest symbol in each word, of at most ``room`` bytes."""
    slot = hash_slots(words).astype(np.int64)
    found = (words & matcher.hash_masks[slot]) == matcher.hash_words[slot]
    longer = matcher.hash_entries[slot]
    found &= longer >> LENGTH_SHIFT <= room
    short = np.where(
        room > 1,
        matcher.pairs[(words & np.uint64(0xFFFF)).astype(np.int64)],
        matcher.singles[(words & np.uint64(0xFF)).astype(np.int64)],
    )
    return np.where(found, longer, short) & ENTRY_CODE
