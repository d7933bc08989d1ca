"""Where the pieces of out-of-line bit-packed blocks lie."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import ChunkBuffer, Chunks
from lance_nb.encodings.packed_blocks import decode_levels, plan_blocks
from lance_nb.encodings.registry import codecs
from lance_nb.errors import CorruptFileError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    flat,
    out_of_line_bitpacking,
    out_of_line_block,
    rle,
    rle_block,
    to_words,
)


def test_packed_pieces_and_raw_tails_are_listed_row_by_row() -> None:
    # 1024 packed; 1024 packed and 3 raw words; 1024 packed and 100 packed; nothing
    sizes = np.array([128, 134, 256, 0])
    starts = np.array([0, 1000, 2000, 3000])
    blocks = Chunks(
        (ChunkBuffer(np.zeros(4000, np.uint8), starts, sizes),), np.array([1024, 1027, 1124, 0])
    )
    plan = plan_blocks(out_of_line_bitpacking(16, 1).out_of_line_bitpacking, blocks)
    assert (plan.word_bits, plan.width) == (16, 1)
    assert plan.counts.tolist() == [1024, 1024, 3, 1024, 100]
    assert plan.packed_at.tolist() == [0, 1000, 2000, 2128]
    assert plan.packed_rows.tolist() == [0, 1, 3, 4]
    assert plan.raw_starts.tolist() == [1128]
    assert plan.raw_stops.tolist() == [1134]
    assert plan.raw_rows.tolist() == [2]


SHAPES = ((1024, True), (5, True), (1024, False), (1500, False), (0, True), (2049, True))


def packed(width: int, top: int) -> tuple[Chunks, list[int]]:
    parts, expected = [], []
    for count, raw_tail in SHAPES:
        values = [(i * 5 + count) % top for i in range(count)]
        parts.append([out_of_line_block(values, 16, width, raw_tail=raw_tail)])
        expected += values
    return chunks_of(parts, [count for count, _ in SHAPES], seed=1), expected


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_narrow_levels_are_bytes(width: int) -> None:
    blocks, expected = packed(width, 1 << width)
    levels = decode_levels(out_of_line_bitpacking(16, width), blocks, codecs)
    assert levels.dtype == np.uint8
    assert levels.tolist() == expected


@pytest.mark.parametrize("width", [3, 9, 16])
def test_other_widths_are_words(width: int) -> None:
    blocks, expected = packed(width, 1 << width)
    levels = decode_levels(out_of_line_bitpacking(16, width), blocks, codecs)
    assert levels.dtype == np.uint16
    assert levels.tolist() == expected


def test_a_raw_tail_may_hold_more_than_the_width_says() -> None:
    raw = to_words([1, 300, 2], 16)
    levels = decode_levels(out_of_line_bitpacking(16, 1), chunks_of([[raw]], [3]), codecs)
    assert levels.tolist() == [1, 300, 2]


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_raw_tail_as_long_as_a_packed_block_is_raw(width: int, copies: int) -> None:
    values = [i % 3 for i in range(64 * width)]  # 2 bytes each: as many as 1,024 of this width
    blocks = chunks_of([[to_words(values, 16)]] * copies, [len(values)] * copies)
    assert decode_levels(out_of_line_bitpacking(16, width), blocks, codecs).tolist() == (
        values * copies
    )


def test_runs_and_plain_words_are_levels_too() -> None:
    values = [1, 0, 0, 0, 1, 2]
    for encoding, raw in ((rle(16), rle_block(values, 16)), (flat(16), to_words(values, 16))):
        assert decode_levels(encoding, chunks_of([[raw]], [6]), codecs).tolist() == values


def test_levels_have_16_bits() -> None:
    with pytest.raises(CorruptFileError, match="16-bit levels"):
        decode_levels(flat(32), chunks_of([[bytes(16)]], [4]), codecs)


@pytest.mark.parametrize(("count", "size"), [(1025, 129), (1, 0), (2**49, 128), (2**62, 128)])
def test_bytes_that_cannot_hold_the_levels_are_refused(count: int, size: int) -> None:
    blocks = chunks_of([[bytes(size)]], [count])
    with pytest.raises(CorruptFileError):
        decode_levels(out_of_line_bitpacking(16, 1), blocks, codecs)
