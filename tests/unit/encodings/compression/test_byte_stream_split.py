"""Byte stream split."""

from __future__ import annotations

import pytest

from lance_nb.encodings.registry import codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    byte_stream_split,
    chunks_of,
    integers,
    split_bytes,
    variable,
)


def test_byte_j_of_value_i_lies_at_j_times_n_plus_i() -> None:
    raw = bytes.fromhex("01 05 02 06 03 07 04 08")
    block = codecs.decode_chunks(byte_stream_split(32), chunks_of([[raw]], [2]))
    assert integers(block) == [0x04030201, 0x08070605]


@pytest.mark.parametrize("bits", [32, 64])
def test_chunks_of_different_sizes_are_joined_in_order(bits: int) -> None:
    counts = [4, 4, 2, 4, 0, 1, 2]
    parts = [[k * 1_000_003 + i for i in range(n)] for k, n in enumerate(counts)]
    chunks = chunks_of([[split_bytes(part, bits)] for part in parts], counts, seed=4)
    expected = [value for part in parts for value in part]
    assert integers(codecs.decode_chunks(byte_stream_split(bits), chunks)) == expected
    assert integers(codecs.decode_blocks(byte_stream_split(bits), chunks)) == expected


@pytest.mark.parametrize("count", [3, 2**61, 2**62])
def test_a_chunk_too_short_for_its_values_is_refused(count: int) -> None:
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(byte_stream_split(32), chunks_of([[bytes(8)]], [count]))


def test_other_widths_and_inner_encodings_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(byte_stream_split(16), chunks_of([[bytes(8)]], [1]))
    encoding = byte_stream_split(32)
    encoding.byte_stream_split.values.CopyFrom(variable())
    with pytest.raises(NotSupportedError):
        codecs.decode_chunks(encoding, chunks_of([[bytes(8)]], [1]))
