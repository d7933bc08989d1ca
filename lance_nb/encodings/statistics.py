"""Statistics of a block of values: computed lazily, once, and shared by all codecs.

Each statistic costs at most one pass of numpy over the values; those that would cost more (distinct
values) use a sample of 16 thousand values, spread over the block.

Limits: integers of 8 to 64 bits have widths and runs; for other blocks they are None.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import (
    Bytes,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    Ints,
    PackedStruct,
    VariableWidth,
)
from lance_nb.encodings.kernels import compiled, ranges

if TYPE_CHECKING:
    from lance_nb.encodings.kernels.fsst_encode import Matcher

BLOCK = 1024  # values that are bit-packed together
SAMPLE = 16_384
_FREQUENT_PAIRS = 200
_LONGEST_SAMPLED = 1024  # bytes of one string in a sample
_SYMBOLS_REUSED_PAGES = 7  # then symbols are trained anew, because there may be better ones
_REUSE_TOLERANCE = 1.01
_FEW_BLOCKS = 32
_COUNTED_MAX = 1 << 16  # neighbours: so many are counted as fast as a sample is taken
_WIDE_SHARE = 0.92  # of all bits: what is left is not worth the time of unpacking
Words = npt.NDArray[np.unsignedinteger[Any]]


# Priorities of nominations. Codecs that compete on size say how many thousandths they save (at
# least 1); the others stand above them, in the order in which they wrap each other.
LAST_RESORT = 1
STRUCTURAL = 5000  # lists and structs: nothing else takes their blocks
WRAPPER = 4000  # a general compression that was asked for


def saving(plain_bytes: float, encoded_bytes: float) -> int:
    """Return the priority of a codec that needs ``encoded_bytes``; 0 if that saves nothing."""
    if encoded_bytes >= plain_bytes:
        return 0
    return LAST_RESORT + int(1000 * (1 - encoded_bytes / plain_bytes))


def savings(plain_bytes: float, encoded_bytes: Ints) -> Ints:
    """Return ``saving`` for each of several sizes."""
    thousandths = (1000 * (1 - encoded_bytes / plain_bytes)).astype(np.int64)
    return np.where(encoded_bytes >= plain_bytes, 0, LAST_RESORT + thousandths)


class Learned:
    """FSST's symbols for the pages of a column: those of one page mostly suit the next ones too.

    ``share`` is the encoded share of a sample of the page that they were trained for; ``num_pages``
    pages have reused them.
    """

    def __init__(self) -> None:
        self.symbols: Matcher | None = None
        self.share = 1.0
        self.num_pages = 0


class Measured:
    """A block with its statistics, and what is known of the column already."""

    def __init__(self, block: DataBlock, learned: Learned | None = None) -> None:
        self.block = block
        self._learned = Learned() if learned is None else learned

    @property
    def num_values(self) -> int:
        """Values in the block."""
        return self.block.num_values

    @cached_property
    def words(self) -> Words | None:
        """The values as unsigned integers, None when they are not 8, 16, 32 or 64 bits wide."""
        block = self.block
        if not isinstance(block, FixedWidth) or block.bits_per_value not in (8, 16, 32, 64):
            return None
        return block.data.view(f"<u{block.bits_per_value // 8}")

    @property
    def block_widths(self) -> Ints | None:
        """Bits that each run of 1024 values needs."""
        return None if self._widths_and_runs is None else self._widths_and_runs[0]

    @cached_property
    def _widths_and_runs(self) -> tuple[Ints, int] | None:
        """The widths of blocks and the number of runs: one pass where loops are compiled."""
        words = self.words
        if words is None:
            return None
        loops = compiled.loops
        if loops is not None:
            widths = np.empty(-(-words.size // BLOCK), np.int64)
            data = words.view(np.uint8)
            runs = loops.measure_words(data, words.itemsize, widths)
            if runs >= 0:
                return widths, int(runs)
        full = words.size // BLOCK * BLOCK
        merged = np.bitwise_or.reduce(words[:full].reshape(-1, BLOCK), axis=1)
        if full < words.size:
            merged = np.append(merged, np.bitwise_or.reduce(words[full:]))
        num_runs = np.count_nonzero(words[1:] != words[:-1]) + (words.size > 0)
        return bit_lengths(merged), int(num_runs)

    @cached_property
    def is_wide(self) -> bool:
        """Tell from a few blocks of 1024 values that bits are not worth packing."""
        words = self.words
        full = 0 if words is None else words.size // BLOCK
        if words is None or full < 4 * _FEW_BLOCKS:
            return False
        step = full // _FEW_BLOCKS
        few = np.bitwise_or.reduce(words[: full * BLOCK].reshape(-1, BLOCK)[::step], axis=1)
        return float(bit_lengths(few).mean()) > _WIDE_SHARE * 8 * words.itemsize

    @property
    def num_runs(self) -> int:
        """Runs of equal neighbours, 0 where the values are no integers."""
        return 0 if self._widths_and_runs is None else self._widths_and_runs[1]

    @cached_property
    def sampled_run_share(self) -> float:
        """Share of sampled neighbours that differ: a cheap hint at the number of runs."""
        words = self.words
        if words is None or words.size < 2:
            return 1.0
        count = words.size - 1
        if count > _COUNTED_MAX:
            starts = np.linspace(0, count - BLOCK, SAMPLE // BLOCK).astype(np.int64)
            positions = (starts[:, None] + np.arange(BLOCK)).ravel()
            return float(
                np.count_nonzero(words[positions] != words[positions + 1]) / positions.size
            )
        return (self.num_runs - 1) / count

    @cached_property
    def lengths(self) -> Ints | None:
        """Bytes of each value of variable width."""
        block = self.block
        if not isinstance(block, VariableWidth):
            return None
        return np.diff(block.offsets).astype(np.int64, copy=False)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest value of variable width."""
        block = self.block
        if not isinstance(block, VariableWidth) or not block.num_values:
            return 0
        return int((block.offsets[1:] - block.offsets[:-1]).max())

    def _text_sample(self, shift: float) -> tuple[Bytes, Ints]:
        """Return strings from all over the block, about 16 KiB together, and their offsets."""
        block = self.block
        if not isinstance(block, VariableWidth) or not block.num_values:
            return np.zeros(0, np.uint8), np.zeros(1, np.int64)
        mean = max(1.0, int(block.offsets[-1]) / block.num_values)
        num_samples = min(block.num_values, max(1, int(SAMPLE / mean)))
        step = block.num_values / num_samples
        positions = ((np.arange(num_samples) + shift) * step).astype(np.int64)
        starts = block.offsets[positions].astype(np.int64)
        sizes = np.minimum(block.offsets[positions + 1] - starts, _LONGEST_SAMPLED)
        return ranges.concatenate(block.data, starts, sizes), ranges.starts_of(sizes)

    @cached_property
    def frequent_pairs(self) -> float:
        """Share that the 200 most frequent pairs of bytes have in a sample of strings."""
        data, _ = self._text_sample(0.0)
        if data.size < 2:
            return 0.0
        counts = np.bincount(data[:-1].astype(np.int64) << 8 | data[1:])
        top = np.sort(counts[counts > 0])[-_FREQUENT_PAIRS:]
        return float(top.sum() / (data.size - 1))

    @property
    def fsst_symbols(self) -> Matcher:
        """Symbols that suit the strings of a sample."""
        return self._fsst[0]

    @property
    def fsst_sample(self) -> tuple[int, int]:
        """Bytes of another sample before and after encoding it with ``fsst_symbols``."""
        return self._fsst[1], self._fsst[2]

    @cached_property
    def _fsst(self) -> tuple[Matcher, int, int]:
        """Reuse the symbols of an earlier page if they do as well here; train anew now and then."""
        from lance_nb.encodings.kernels import fsst_encode  # reading does without it

        data, offsets = self._text_sample(0.5)
        learned = self._learned
        if learned.symbols is not None and learned.num_pages < _SYMBOLS_REUSED_PAGES:
            size = fsst_encode.encode(data, offsets, learned.symbols)[0].size
            if size <= learned.share * _REUSE_TOLERANCE * data.size:
                learned.num_pages += 1
                return learned.symbols, data.size, size
        learned.symbols = self._trained()
        size = fsst_encode.encode(data, offsets, learned.symbols)[0].size
        learned.share, learned.num_pages = size / max(1, data.size), 0
        return learned.symbols, data.size, size

    def _trained(self) -> Matcher:
        from lance_nb.encodings.kernels import fsst_encode
        from lance_nb.encodings.kernels.fsst_encode import train

        data, offsets = self._text_sample(0.0)
        return train(lambda matcher: fsst_encode.encode_symbols(data, offsets, matcher))

    @property
    def widest_bytes(self) -> int:
        """Bytes of the widest value."""
        bits = bits_per_value(self.block)
        return self.longest if bits is None else -(-bits // 8)

    @property
    def size_bytes(self) -> int:
        """Bytes of the values, without offsets."""
        return data_size(self.block)


def data_size(block: DataBlock) -> int:
    """Return the bytes of the values of a block, without offsets."""
    if isinstance(block, FixedWidth):
        return int(block.data.size)
    if isinstance(block, VariableWidth):
        return int(block.offsets[-1])
    return 0


def bits_per_value(block: DataBlock) -> int | None:
    """Return the bits of each value, without the validity of list items; None if they vary."""
    if isinstance(block, FixedWidth):
        return block.bits_per_value
    if isinstance(block, FixedSizeList):
        inner = bits_per_value(block.items)
        return None if inner is None else block.dimension * inner
    if isinstance(block, PackedStruct):
        widths = [bits_per_value(child) for child in block.children]
        known_widths = [width for width in widths if width is not None]
        return sum(known_widths) if len(known_widths) == len(widths) else None
    if isinstance(block, Dictionary):
        return block.indices.bits_per_value
    return None


def bit_lengths(words: Words) -> Ints:
    """Return the bit length of each unsigned integer."""
    left = words.copy()
    out = np.zeros(words.size, np.int64)
    shift = 4 * words.dtype.itemsize
    while shift:
        high = left >> words.dtype.type(shift)
        moved = high != 0
        out += moved * shift
        left = np.where(moved, high, left)
        shift //= 2
    out += left != 0
    return out
