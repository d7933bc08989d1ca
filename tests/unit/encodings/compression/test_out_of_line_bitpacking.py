"""Out-of-line bit packing: the width is in the description."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    integers,
    out_of_line_bitpacking,
    out_of_line_block,
    variable,
)
from tests.support.compressing import V2_2, in_blocks, measured


@pytest.mark.parametrize("count", [0, 1, 5, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("raw_tail", [True, False])
def test_a_block_is_packed_blocks_and_a_raw_or_packed_tail(count: int, raw_tail: bool) -> None:
    values = [(i * 7) % 4 for i in range(count)]
    raw = out_of_line_block(values, 16, 2, raw_tail=raw_tail)
    block = codecs.decode_blocks(out_of_line_bitpacking(16, 2), chunks_of([[raw]], [count]))
    assert integers(block) == values


def test_blocks_of_all_shapes_are_joined() -> None:
    shapes = [(1024, True), (5, True), (1024, False), (1500, False), (0, True), (2049, True)]
    parts, expected = [], []
    for count, raw_tail in shapes:
        values = [(i * 5 + count) % 8 for i in range(count)]
        parts.append([out_of_line_block(values, 16, 3, raw_tail=raw_tail)])
        expected += values
    chunks = chunks_of(parts, [count for count, _ in shapes], seed=1)
    assert integers(codecs.decode_blocks(out_of_line_bitpacking(16, 3), chunks)) == expected
    assert integers(codecs.decode_chunks(out_of_line_bitpacking(16, 3), chunks)) == expected


def test_a_tail_as_long_as_a_packed_block_is_raw() -> None:
    values = list(range(64))  # 64 words, as many as a block of 1 bit has
    raw = out_of_line_block(values, 16, 1, raw_tail=True)
    assert len(raw) == 1024 // 8
    block = codecs.decode_blocks(out_of_line_bitpacking(16, 1), chunks_of([[raw]], [64]))
    assert integers(block) == values


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_memory_is_that_of_the_values(bits: int) -> None:
    values = [(i * 7) % 8 for i in range(32 * 1024)]
    parts = chunks_of([[out_of_line_block(values, bits, 3, raw_tail=True)]], [len(values)])
    before = pa.total_allocated_bytes()
    block = codecs.decode_blocks(out_of_line_bitpacking(bits, 3), parts)
    assert pa.total_allocated_bytes() - before <= 2 * len(values) * bits // 8
    assert integers(block) == values


def test_zero_bits_are_zeros_up_to_a_limit() -> None:
    encoding = out_of_line_bitpacking(16, 0)
    block = codecs.decode_blocks(encoding, chunks_of([[b""]], [2000]))
    assert integers(block) == [0] * 2000
    for count in (2**25, 2**49, 2**62):
        with pytest.raises(CorruptFileError):
            codecs.decode_blocks(encoding, chunks_of([[b""]], [count]))


@pytest.mark.parametrize("size", [0, 127, 129, 255, 257])
def test_a_size_that_fits_neither_form_is_refused(size: int) -> None:
    with pytest.raises(CorruptFileError, match="packed to 1 bits"):
        codecs.decode_blocks(out_of_line_bitpacking(16, 1), chunks_of([[bytes(size)]], [1025]))


def test_widths_and_inner_encodings_are_checked() -> None:
    for encoding in (out_of_line_bitpacking(16, 17), out_of_line_bitpacking(12, 1)):
        with pytest.raises(CorruptFileError):
            codecs.decode_blocks(encoding, chunks_of([[b""]], [0]))
    encoding = out_of_line_bitpacking(16, 1)
    encoding.out_of_line_bitpacking.values.CopyFrom(variable())
    with pytest.raises(NotSupportedError, match="variable"):
        codecs.decode_blocks(encoding, chunks_of([[b""]], [0]))


PACKING = codec_of("out_of_line_bitpacking")


@pytest.mark.parametrize(
    "counts", [[1024, 1024], [1024, 1], [3000], [64, 65, 63], [1, 0, 5], [1100, 900, 48]]
)
@pytest.mark.parametrize("most", [1, 2, 6])
def test_blocks_are_what_the_format_says(counts: list[int], most: int) -> None:
    values = (np.arange(sum(counts)) * 5 % (most + 1)).astype(np.uint16)
    encoding, blocks = in_blocks("out_of_line_bitpacking", measured(values), counts)
    width = most.bit_length()
    assert encoding.out_of_line_bitpacking.values.flat.bits_per_value == width
    at = 0
    for count, block in zip(counts, blocks, strict=True):
        mine = values[at : at + count].tolist()
        raw_tail = count % 1024 * 2 <= 128 * width
        assert block == out_of_line_block(mine, 16, width, raw_tail=raw_tail)
        at += count


def test_levels_without_any_or_with_all_bits_are_left_to_others() -> None:
    for values in (np.zeros(2000, np.uint16), np.full(2000, 65_535, np.uint16)):
        assert not PACKING.nominate_blocks(measured(values), np.array([2000]), V2_2)
