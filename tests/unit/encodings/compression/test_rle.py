"""Run-length encoding."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from lance_nb.encodings.compression.rle import _repeated, _run_sums
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    flat,
    inline_bitpacking,
    inline_chunk,
    integers,
    rle,
    rle_block,
    rle_chunk,
    to_words,
    variable,
)
from tests.support.compressing import V2_1, V2_2, in_blocks, in_chunks, measured


def test_a_block_of_pylance_with_a_hundred_equal_levels_is_read() -> None:
    raw = bytes.fromhex("0200000000000000 0300 64")
    assert integers(codecs.decode_blocks(rle(16), chunks_of([[raw]], [100]))) == [3] * 100


def test_two_buffers_hold_values_and_run_lengths() -> None:
    parts = [[to_words([7, 9], 32), b"\xff\x02"], [to_words([1], 32), b"\x01"]]
    chunks = chunks_of(parts, [257, 1])
    assert codecs.num_buffers(rle(32)) == 2
    assert integers(codecs.decode_chunks(rle(32), chunks)) == [7] * 255 + [9] * 2 + [1]


@pytest.mark.parametrize("length_bits", [8, 16, 32])
def test_run_lengths_of_every_width(length_bits: int) -> None:
    encoding = rle(32, lengths=flat(length_bits))
    values, lengths = to_words([7, 9], 32), to_words([200, 3], length_bits)
    found = codecs.decode_chunks(encoding, chunks_of([[values, lengths]], [203]))
    assert integers(found) == [7] * 200 + [9] * 3
    block = struct.pack("<Q", len(values)) + values + lengths
    found = codecs.decode_blocks(encoding, chunks_of([[block]], [203]))
    assert integers(found) == [7] * 200 + [9] * 3
    if length_bits > 8:
        cut = chunks_of([[values, lengths[:-1]]], [203])
        with pytest.raises(CorruptFileError, match=f"run lengths of {length_bits // 8} bytes"):
            codecs.decode_chunks(encoding, cut)


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
def test_values_of_any_width_repeat(bits: int) -> None:
    values = [5] * 300 + [6] + [2**bits - 1] * 3
    parts = [rle_chunk(values, bits), rle_chunk([], bits), rle_chunk([1], bits)]
    block = codecs.decode_chunks(rle(bits), chunks_of(parts, [304, 0, 1], seed=2))
    assert integers(block) == [*values, 1]


def test_blocks_are_expanded_together() -> None:
    first, second = [1] * 700, [0, 1, 0]
    parts = [[rle_block(first, 16)], [rle_block(second, 16)]]
    block = codecs.decode_blocks(rle(16), chunks_of(parts, [700, 3]))
    assert integers(block) == first + second


def test_values_may_be_compressed_themselves() -> None:
    encoding = rle(32, values=inline_bitpacking(32))
    parts = [[inline_chunk([3, 1, 2], 32, 2), b"\x02\x01\x05"]]
    block = codecs.decode_chunks(encoding, chunks_of(parts, [8]))
    assert integers(block) == [3, 3, 1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("count", [0, 2, 4, 2**62])
def test_runs_that_do_not_add_up_are_refused(count: int) -> None:
    chunks = chunks_of([[to_words([1, 2], 16), b"\x01\x02"]], [count])
    with pytest.raises(CorruptFileError, match="runs of"):
        codecs.decode_chunks(rle(16), chunks)


def test_more_lengths_than_values_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(rle(16), chunks_of([[b"\1\0", b"\1\1"]], [2]))


@pytest.mark.parametrize("claimed", [0, 1, 4, 2**63, 2**64 - 1])
def test_a_block_that_lies_about_its_values_is_refused(claimed: int) -> None:
    raw = struct.pack("<Q", claimed) + b"\3\0\x02"
    with pytest.raises(CorruptFileError):
        codecs.decode_blocks(rle(16), chunks_of([[raw]], [2]))
    with pytest.raises(CorruptFileError):
        codecs.decode_blocks(rle(16), chunks_of([[raw[:7]]], [2]))


def test_lengths_in_other_forms_are_refused() -> None:
    chunks = chunks_of([[b"\1\0", b"\1"]], [1])
    with pytest.raises(NotSupportedError, match="inline_bitpacking"):
        codecs.decode_chunks(rle(16, lengths=inline_bitpacking(8)), chunks)
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(rle(16, values=variable()), chunks)


RLE = codec_of("rle")


@pytest.mark.parametrize("kind", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("length", [1, 3, 255, 256, 1000, 5000])
def test_runs_come_back(kind: str, length: int) -> None:
    values = np.repeat(np.arange(9), length)[:5000].astype(kind)
    _, counts = in_chunks("rle", measured(values))
    assert counts[:-1] == [2048] * (len(counts) - 1)


def test_blocks_are_what_the_format_says() -> None:
    levels = [0] * 300 + [1] + [0] * 99
    _, blocks = in_blocks("rle", measured(np.array(levels, np.uint16)), [100, 300])
    assert blocks == [rle_block(levels[:100], 16), rle_block(levels[100:], 16)]


def test_blocks_of_runs_are_for_2_2() -> None:
    levels, count = measured(np.zeros(500, np.uint16)), np.array([500])
    assert RLE.nominate_blocks(levels, count, V2_2)
    assert not RLE.nominate_blocks(levels, count, V2_1)


def test_the_threshold_of_the_field_bounds_it() -> None:
    rle = measured(np.repeat(np.arange(100), 10))
    assert RLE.nominate_chunks(rle, V2_2)
    low = EncodingOptions(file_version=(2, 2), rle_threshold=0.05)
    assert not RLE.nominate_chunks(rle, low)
    assert not RLE.nominate_chunks(measured(np.arange(1000)), V2_2)
    assert not RLE.nominate_chunks(measured(["a"]), V2_2)


@pytest.mark.parametrize("width", [*range(1, 10), 15, 16, 17])
def test_each_value_is_repeated(width: int) -> None:
    values = np.arange(3 * width, dtype=np.uint8)
    found = _repeated(values, width, np.array([2, 0, 3]))
    one, _, three = (values[i * width : (i + 1) * width].tobytes() for i in range(3))
    assert found.tobytes() == one * 2 + three * 3


def test_lengths_are_added_up_per_chunk() -> None:
    assert _run_sums(np.array([1, 2, 3, 4]), np.array([2, 0, 2])).tolist() == [3, 0, 7]
    assert _run_sums(np.array([], np.int64), np.array([0])).tolist() == [0]
