"""Encode byte strings with FSST: train up to 255 symbols, then replace the longest that match.

Layout: a code below 255 stands for its symbol of 1 to 8 bytes; 255 comes before a literal byte. A
written table (2312 bytes) is a header word, the symbols as words, their lengths.

Training begins without any symbol; in each round a sample is encoded with the symbols so far, and
the symbols and pairs of neighbours that save most become the next ones. Looking up costs two
tables: symbols of one and two bytes are found by those bytes; a longer one by a hash of its first
three, so that of all longer symbols with the same hash only the most useful is kept.

Encoding: without a compiled loop all strings advance together, one symbol per step. So that one
long string does not keep the others waiting, strings are cut into pieces of 256 bytes first, in
both forms: no symbol reaches over such a cut, and both forms give the same bytes.

Limits: less than 2**40 bytes; the same strings give the same symbols.
Source: FSST (Boncz, Neumann, Leis 2020); byte layout of pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.memory import allocate
from lance_nb.encodings.kernels.ranges import ragged_indices, starts_of
from lance_nb.errors import InternalError
from lance_nb.value_classes import dataclass

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]

LITERAL = 256  # code of a byte without a symbol: 256 + byte
LENGTH_SHIFT = np.uint16(12)
ENTRY_CODE = np.uint16(0x1FF)
HASH_BITS = 12
HASH_FACTOR = 2971215073
MOST_SYMBOLS = 255
TABLE_BYTES = 2312

_MAGIC = 0x46535354
_ROUNDS = 5
_CANDIDATES = 1024
_SINGLE_BONUS = 8  # a byte without a symbol costs an escape wherever it occurs
_LONGEST = 8
ESCAPE = 255
_PIECE = 256  # bytes
_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Matcher:
    """The symbols, and the tables that find them.

    ``words`` and ``lengths`` have 512 entries: the symbols by code, the literal bytes from 256 on.
    ``pairs`` has the entry for two bytes, ``singles`` for one: a code, and its length from bit
    ``LENGTH_SHIFT`` on. The ``hash_*`` tables have 2**12 places for a word, its mask and its entry;
    a free one has a mask that matches nothing.
    """

    num_symbols: int
    words: Words
    lengths: npt.NDArray[np.uint8]
    singles: Codes
    pairs: Codes
    hash_words: Words
    hash_masks: Words
    hash_entries: Codes


Encode = Callable[[Matcher], tuple[Codes, Ints]]


def train(encode: Encode) -> Matcher:
    """Find symbols; ``encode`` returns codes and their offsets of a sample."""
    matcher = build(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    pair_counts = np.zeros(0 if compiled.loops is None else len(matcher.words) ** 2, np.uint32)
    for _ in range(_ROUNDS):
        codes, offsets = encode(matcher)
        if not codes.size:
            break
        if compiled.loops is not None:
            symbols = _selected_by_loop(
                compiled.loops, matcher, codes, offsets=offsets, pair_counts=pair_counts
            )
        else:
            symbols = select(*_candidates(matcher, codes, offsets))
        matcher = build(*symbols)
    return matcher


def _selected_by_loop(
    loops: ModuleType, matcher: Matcher, codes: Codes, offsets: Ints, pair_counts: np.ndarray
) -> tuple[Words, Ints]:
    """Select the next symbols by the compiled loop."""
    words, lengths = np.empty(MOST_SYMBOLS, np.uint64), np.empty(MOST_SYMBOLS, np.uint8)
    # Candidates are symbols in use and pairs that occur twice.
    scratch = np.empty(6 * (codes.size // 2 + 512), np.uint64)
    symbols = matcher.words, matcher.lengths
    count = loops.select_symbols(codes, offsets, *symbols, pair_counts, scratch, words, lengths)
    if count < 0:
        raise InternalError(f"{codes.size} codes of strings that end at {offsets[-1]}")
    return words[:count], lengths[:count].astype(np.int64)


def _candidates(matcher: Matcher, codes: Codes, offsets: Ints) -> tuple[Words, Ints]:
    """Return words and lengths of the most useful symbols and pairs, the best first."""
    counts = np.bincount(codes, minlength=512)
    used = np.flatnonzero(counts)
    words, lengths = [matcher.words[used]], [matcher.lengths[used].astype(np.int64)]
    gains = [counts[used] * lengths[0] * np.where(lengths[0] == 1, _SINGLE_BONUS, 1)]
    same = np.ones(max(codes.size - 1, 0), np.bool_)
    inner = offsets[1:-1]
    same[inner[(inner > 0) & (inner < codes.size)] - 1] = False
    keys = (codes[:-1].astype(np.uint32) << 9 | codes[1:])[same]
    pairs, pair_counts = np.unique(keys, return_counts=True)
    first, second = pairs >> 9, pairs & 511
    size = matcher.lengths[first].astype(np.int64) + matcher.lengths[second]
    fits = (size <= _LONGEST) & (pair_counts > 1)
    first, second, size = first[fits], second[fits], size[fits]
    shift = matcher.lengths[first].astype(np.uint64) * np.uint64(8)
    words.append(matcher.words[first] | matcher.words[second] << shift)
    lengths.append(size)
    gains.append(pair_counts[fits] * size)
    return _best(np.concatenate(words), np.concatenate(lengths), np.concatenate(gains))


def _best(words: Words, lengths: Ints, gains: Ints) -> tuple[Words, Ints]:
    """Add up the gains of equal symbols; return the best, in a fixed order."""
    order = np.lexsort((lengths, words))
    words, lengths, gains = words[order], lengths[order], gains[order]
    begins = np.ones(words.size, np.bool_)
    begins[1:] = (words[1:] != words[:-1]) | (lengths[1:] != lengths[:-1])
    positions = np.flatnonzero(begins)
    totals = np.add.reduceat(gains, positions)
    best = np.lexsort((words[positions], lengths[positions], -totals))[:_CANDIDATES]
    return words[positions[best]], lengths[positions[best]]


def select(words: Words, lengths: Ints) -> tuple[Words, Ints]:
    """Take symbols in order until there are 255; of those with one hash, the first."""
    longer = np.flatnonzero(lengths > 2)
    _, firsts = np.unique(hash_slots(words[longer]), return_index=True)
    is_taken = lengths <= 2
    is_taken[longer[firsts]] = True
    taken = np.flatnonzero(is_taken)[:MOST_SYMBOLS]
    return words[taken], lengths[taken]


def build(words: Words, lengths: Ints) -> Matcher:
    """Make the tables of at most 255 symbols; those of over two bytes have a hash each."""
    all_words, all_lengths = np.zeros(512, np.uint64), np.zeros(512, np.uint8)
    all_words[LITERAL:], all_lengths[LITERAL:] = np.arange(256), 1
    all_words[: words.size], all_lengths[: words.size] = words, lengths
    entries = np.arange(512, dtype=np.uint16) | all_lengths.astype(np.uint16) << LENGTH_SHIFT
    mine = entries[: words.size]
    single, two, more = lengths == 1, lengths == 2, lengths > 2
    singles = entries[LITERAL:].copy()
    singles[words[single]] = mine[single]
    pairs = np.tile(singles, 256)
    pairs[words[two]] = mine[two]
    hash_words = np.ones(1 << HASH_BITS, np.uint64)
    hash_masks = np.zeros(1 << HASH_BITS, np.uint64)
    hash_entries = np.zeros(1 << HASH_BITS, np.uint16)
    slots = hash_slots(words[more])
    hash_words[slots], hash_entries[slots] = words[more], mine[more]
    hash_masks[slots] = ~np.uint64(0) >> (64 - 8 * lengths[more]).astype(np.uint64)
    return Matcher(
        num_symbols=words.size,
        words=all_words,
        lengths=all_lengths,
        singles=singles,
        pairs=pairs,
        hash_words=hash_words,
        hash_masks=hash_masks,
        hash_entries=hash_entries,
    )


def hash_slots(words: Words) -> Words:
    """Return the hash of the first three bytes of each word."""
    three = words & np.uint64(0xFFFFFF)
    return three * np.uint64(HASH_FACTOR) >> np.uint64(15) & np.uint64((1 << HASH_BITS) - 1)


def to_bytes(matcher: Matcher) -> bytes:
    """Write the symbols as the page description holds them."""
    header = _MAGIC << 32 | 1 << 24 | matcher.num_symbols
    words = matcher.words[: matcher.num_symbols].astype("<u8").tobytes()
    lengths = matcher.lengths[: matcher.num_symbols].tobytes()
    return (struct.pack("<Q", header) + words + lengths).ljust(TABLE_BYTES, b"\0")


def encode(data: Bytes, offsets: Ints, matcher: Matcher) -> tuple[Bytes, Ints]:
    """Return the encoded strings and their offsets."""
    if compiled.loops is not None:
        room = allocate(2 * _size(offsets))  # if all were literals; what is not written is not used
        ends = _by_loop(compiled.loops, data, offsets, matcher=matcher, room=room)
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
    if compiled.loops is not None:
        room = np.empty(_size(offsets), np.uint16)
        ends = _by_loop(compiled.loops, data, offsets, matcher=matcher, room=room)
        return room[: ends[-1]], ends
    return _by_steps(data, offsets, matcher)


def _by_steps(data: Bytes, offsets: Ints, matcher: Matcher) -> tuple[Codes, Ints]:
    """Do the same without the compiled loop."""
    starts, stops, firsts = _cut(offsets)
    codes, ends = _step_by_step(_windows(data[: offsets[-1]]), starts, stops, matcher)
    return codes, ends if firsts is None else ends[firsts]


def _by_loop(
    loops: ModuleType, data: Bytes, offsets: Ints, matcher: Matcher, room: Bytes | Codes
) -> Ints:
    """Fill the room by the compiled loop and return the offsets."""
    starts, stops, firsts = _cut(offsets)
    ends = np.zeros(starts.size + 1, np.int64)
    longer = (matcher.hash_words, matcher.hash_masks, matcher.hash_entries)
    tables = (matcher.singles, matcher.pairs, *longer)
    if loops.encode_fsst(data, starts, stops, *tables, room, ends) < 0:
        raise InternalError(f"strings of {_size(offsets)} bytes outside of {data.size} bytes")
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
    is_match = (words & matcher.hash_masks[slot]) == matcher.hash_words[slot]
    longer = matcher.hash_entries[slot]
    is_match &= longer >> LENGTH_SHIFT <= room
    short = np.where(
        room > 1,
        matcher.pairs[(words & np.uint64(0xFFFF)).astype(np.int64)],
        matcher.singles[(words & np.uint64(0xFF)).astype(np.int64)],
    )
    return np.where(is_match, longer, short) & ENTRY_CODE
