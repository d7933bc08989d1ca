"""Variable: byte strings with their offsets."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import FixedWidth, VariableWidth, single_chunk
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
