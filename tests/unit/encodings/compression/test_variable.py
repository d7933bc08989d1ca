"""Variable: byte strings with their offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import FixedWidth, VariableWidth, single_chunk
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.registry import codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    flat,
    inline_bitpacking,
    strings,
    to_words,
    variable,
    variable_block,
    variable_chunk,
)
from tests.support.compressing import V2_2, by_value, in_blocks, in_chunks, measured

# What pylance writes for [None, 'ab', '', 'xyz'] (a null has no bytes), padding included.
CHUNK = bytes.fromhex("14000000 14000000 16000000 16000000 19000000") + b"abxyz" + b"\x48" * 3
# The dictionary red, green, blue as a block.
BLOCK = bytes.fromhex("20000000 18000000 00000000 03000000 08000000 0c000000") + b"redgreenblue"


def test_offsets_count_from_the_start_of_the_chunk() -> None:
    block = codecs.decode_chunks(variable(), chunks_of([[CHUNK]], [4]))
    assert strings(block) == [b"", b"ab", b"", b"xyz"]
    assert block.offsets.dtype == np.int32


def test_chunks_with_different_numbers_of_strings_are_joined() -> None:
    parts = [[b"a", b"bc"], [b"", b"def"], [b"g"], [], [b"hi", b"j", b"k"]]
    chunks = chunks_of([[variable_chunk(part)] for part in parts], [len(p) for p in parts])
    block = codecs.decode_chunks(variable(), chunks)
    assert strings(block) == [value for part in parts for value in part]


def test_wide_offsets_stay_wide() -> None:
    chunk = variable_chunk([b"ab", b"c"], 64)
    block = codecs.decode_chunks(variable(64), chunks_of([[chunk], [chunk]], [2, 2]))
    assert strings(block) == [b"ab", b"c", b"ab", b"c"]
    assert block.offsets.dtype == np.int64


def test_a_block_has_its_width_and_data_start_in_front() -> None:
    block = codecs.decode_blocks(variable(), single_chunk(3, np.frombuffer(BLOCK, np.uint8)))
    assert strings(block) == [b"red", b"green", b"blue"]
    wide = variable_block([b"xyz"], 64)
    block = codecs.decode_blocks(variable(64), single_chunk(1, np.frombuffer(wide, np.uint8)))
    assert strings(block) == [b"xyz"]


def test_values_stored_one_by_one_are_handed_on_uncopied() -> None:
    values = VariableWidth(1, np.array([0, 2], np.int32), np.frombuffer(b"ab", np.uint8))
    assert codecs.decode_values(variable(), values) is values
    with pytest.raises(CorruptFileError):
        codecs.decode_values(variable(), FixedWidth(8, 1, np.zeros(1, np.uint8)))


@pytest.mark.parametrize(
    "offsets",
    [
        [12, 11, 13],  # decreases
        [12, 14, 13],  # decreases at the end
        [11, 12, 13],  # begins inside the offsets
        [12, 13, 17],  # leaves the chunk
        [12, 13, 2**32 - 1],
        [13, 13, 13],  # begins too late
    ],
)
def test_broken_offsets_are_refused(offsets: list[int]) -> None:
    broken = to_words(offsets, 32) + b"abcd"
    whole = variable_chunk([b"a", b"b"])
    for parts, counts in (
        ([[broken]], [2]),
        ([[whole], [broken]], [2, 2]),
        ([[variable_chunk([b"a"])], [broken], [whole]], [1, 2, 2]),
    ):
        with pytest.raises(CorruptFileError):
            codecs.decode_chunks(variable(), chunks_of(parts, counts))


@pytest.mark.parametrize("count", [5, 2**31, 2**62, 2**63 - 1])
def test_a_chunk_too_short_for_its_offsets_is_refused(count: int) -> None:
    for bits in (32, 64):
        with pytest.raises(CorruptFileError, match="offsets"):
            codecs.decode_chunks(variable(bits), chunks_of([[CHUNK[:20]]], [count]))
        with pytest.raises(CorruptFileError, match="offsets"):
            codecs.decode_blocks(variable(bits), chunks_of([[BLOCK[:20]]], [count]))


@pytest.mark.parametrize("at", [0, 4])
def test_a_block_with_a_wrong_header_is_refused(at: int) -> None:
    broken = bytearray(BLOCK)
    broken[at] ^= 1
    with pytest.raises(CorruptFileError, match="header"):
        codecs.decode_blocks(variable(), chunks_of([[bytes(broken)]], [3]))


def test_offsets_in_other_forms_are_refused() -> None:
    encoding = variable()
    encoding.variable.offsets.CopyFrom(inline_bitpacking(32))
    with pytest.raises(NotSupportedError, match="inline_bitpacking"):
        codecs.decode_chunks(encoding, chunks_of([[CHUNK]], [4]))
    encoding.variable.offsets.CopyFrom(flat(16))
    with pytest.raises(CorruptFileError, match="16 bits"):
        codecs.decode_chunks(encoding, chunks_of([[CHUNK]], [4]))
    encoding = variable()
    encoding.variable.values.scheme = 2
    with pytest.raises(NotSupportedError, match="buffer compression"):
        codecs.decode_chunks(encoding, chunks_of([[CHUNK]], [4]))


def old_block(values: list[bytes], bits: int) -> bytes:
    """Write a block as releases up to 0.38 did: one byte of width before the two words."""
    word = bits // 8
    size = 1 + 2 * word + (len(values) + 1) * word
    ends = np.cumsum([0, *map(len, values)]).tolist()
    return bytes([bits]) + to_words([len(values), size, *ends], bits) + b"".join(values)


@pytest.mark.parametrize("bits", [32, 64])
def test_blocks_of_early_releases_are_read(bits: int) -> None:
    data = old_block([b"red", b"", b"blue"], bits)
    found = codecs.decode_blocks(variable(bits), chunks_of([[data]], [3]))
    assert strings(found) == [b"red", b"", b"blue"]


@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_block_of_an_early_release_with_a_wrong_header_is_refused(at: int) -> None:
    broken = bytearray(old_block([b"red", b"", b"blue"], 32))
    broken[at] ^= 1
    with pytest.raises(CorruptFileError, match="header"):
        codecs.decode_blocks(variable(), chunks_of([[bytes(broken)]], [3]))


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_chunks_come_back(type_: pa.DataType) -> None:
    values = ["é" * (i * 37 % 50) for i in range(3000)]
    encoding, counts = in_chunks("variable", measured(values, type_))
    bits = encoding.variable.offsets.flat.bits_per_value
    assert bits == (32 if type_ == pa.string() else 64)
    assert all(count & (count - 1) == 0 for count in counts[:-1])


def test_chunks_with_longer_strings_are_halved() -> None:
    values = ["a"] * 40_960 + ["b" * 200] * 2048 + ["c"] * 100
    _, counts = in_chunks("variable", measured(values))
    assert len(set(counts[:-1])) > 1
    ends = [sum(counts[: n + 1]) for n in range(len(counts))]
    sizes = [
        sum(map(len, values[end - count : end])) + 4 * count
        for end, count in zip(ends, counts, strict=True)
    ]
    assert max(sizes) <= 16 * 1024


def test_offsets_count_among_the_bytes_of_a_chunk() -> None:
    longest = 2 * V2_2.chunk_bytes - 4 * 1024  # of the strings of 1024 values
    for size, halved in ((longest, False), (longest + 1, True)):
        first = ["a" * (size * (n + 1) // 1024 - size * n // 1024) for n in range(1024)]
        counts = in_chunks("variable", measured(first + [""] * 40_960))[1]
        assert counts == [512] * 2 * halved + [1024] * (41 - halved)


def test_a_huge_string_does_not_keep_chunks_from_ending() -> None:
    values = ["a"] * 10 + ["b" * 100_000] + ["c"] * 10
    assert in_chunks("variable", measured(values))[1] == [2] * 10 + [1]
    values = ["a"] * 41 + ["b" * 400_000] + ["c"] * 10_000
    counts = in_chunks("variable", measured(values))[1]
    assert sum(counts) == len(values)
    assert min(counts[:-1]) == 2


def test_a_dictionary_is_one_block() -> None:
    values = [b"red", b"", b"blue"]
    _, blocks = in_blocks("variable", measured(values), [3])
    assert blocks == [variable_block(values)]
    _, blocks = in_blocks("variable", measured(values, pa.large_binary()), [3])
    assert blocks == [variable_block(values, 64)]


def test_smaller_chunks_may_be_asked_for() -> None:
    options = EncodingOptions(file_version=(2, 2), minichunk_size_bytes=256)
    _, counts = in_chunks("variable", measured(["abcd"] * 100), options)
    assert counts == [32, 32, 32, 4]


def test_single_values_come_back() -> None:
    by_value("variable", measured(["a", "", "ccc"]))
