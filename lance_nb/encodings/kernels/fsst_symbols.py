"""Choose up to 255 symbols for a set of byte strings, and look for the longest one at a place.

A symbol has 1 to 8 bytes. Training begins without any; in each round a sample is encoded with the
symbols so far, the symbols and pairs of neighbours that save most become the next ones. Looking up
costs two tables: symbols of one and two bytes are found by those bytes; a longer one by a hash of
its first three, so that of all longer symbols with the same hash only the most useful is kept.

Layout of a written table (2312 bytes): a header word, the symbols as words, their lengths.
Limits: deterministic: the same strings give the same symbols.
Source: FSST (Boncz, Neumann, Leis 2020); byte layout of pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    for _ in range(_ROUNDS):
        codes, offsets = encode(matcher)
        if not codes.size:
            break
        matcher = build(*_candidates(matcher, codes, offsets))
    return matcher


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
    at = np.flatnonzero(begins)
    totals = np.add.reduceat(gains, at)
    best = np.lexsort((words[at], lengths[at], -totals))[:_CANDIDATES]
    return words[at[best]], lengths[at[best]]


def build(words: Words, lengths: Ints) -> Matcher:
    """Take symbols in order until there are 255; of those with one hash, the first."""
    slots = hash_slots(words)
    longer = np.flatnonzero(lengths > 2)
    _, firsts = np.unique(slots[longer], return_index=True)
    is_taken = lengths <= 2
    is_taken[longer[firsts]] = True
    taken = np.flatnonzero(is_taken)[:MOST_SYMBOLS]
    words, lengths, slots = words[taken], lengths[taken], slots[taken]
    all_words, all_lengths = np.zeros(512, np.uint64), np.zeros(512, np.uint8)
    all_words[LITERAL:], all_lengths[LITERAL:] = np.arange(256), 1
    all_words[: taken.size], all_lengths[: taken.size] = words, lengths
    entries = np.arange(512, dtype=np.uint16) | all_lengths.astype(np.uint16) << LENGTH_SHIFT
    mine = entries[: taken.size]
    one, two, more = lengths == 1, lengths == 2, lengths > 2
    singles = entries[LITERAL:].copy()
    singles[words[one]] = mine[one]
    pairs = np.tile(singles, 256)
    pairs[words[two]] = mine[two]
    hash_words = np.ones(1 << HASH_BITS, np.uint64)
    hash_masks = np.zeros(1 << HASH_BITS, np.uint64)
    hash_entries = np.zeros(1 << HASH_BITS, np.uint16)
    at = slots[more]
    hash_words[at], hash_entries[at] = words[more], mine[more]
    hash_masks[at] = ~np.uint64(0) >> (64 - 8 * lengths[more]).astype(np.uint64)
    return Matcher(
        taken.size, all_words, all_lengths, singles, pairs, hash_words, hash_masks, hash_entries
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
