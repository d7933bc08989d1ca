"""Inline bit packing: every chunk carries its width."""

from __future__ import annotations

import pytest

from lance_nb.encodings.registry import codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    inline_bitpacking,
    inline_chunk,
    integers,
)

# First bytes of chunks that pylance wrote, and the 1024 values in each of them.
VECTORS = [
    (8, 4, "02 55aaff0055aaff00"),
    (16, 32, "0500 a594 4a29 efbd 9452 39e7 de7b"),
    (32, 8, "03000000 6ddbb66d 92244992 ffffffff 24499224 49922449 b66ddbb6"),
    (64, 1000, "0a00000000000000 0594db5d35b5b75a 2a282ca03eda4bab 4fbc7ce24717dcfb"),
]


@pytest.mark.parametrize(("bits", "modulus", "head"), VECTORS)
def test_chunks_of_pylance_are_read(bits: int, modulus: int, head: str) -> None:
    values = [(i * 37 + 5) % modulus for i in range(1024)]
    chunk = inline_chunk(values, bits, (modulus - 1).bit_length())
    assert chunk.startswith(bytes.fromhex(head))
    block = codecs.decode_chunks(inline_bitpacking(bits), chunks_of([[chunk]], [1024]))
    assert block.bits_per_value == bits
    assert integers(block) == values


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_every_width_from_zero_to_the_whole_word_is_read(bits: int) -> None:
    parts, expected = [], []
    for width in range(0, bits + 1, 1 if bits < 64 else 3):
        values = [(i * 0x9E3779B97F4A7C15) % 2**width for i in range(1024)]
        parts.append([inline_chunk(values, bits, width)])
        expected += values
    chunks = chunks_of(parts, [1024] * len(parts), seed=3)
    assert integers(codecs.decode_chunks(inline_bitpacking(bits), chunks)) == expected


def test_a_short_chunk_may_stand_anywhere() -> None:
    parts = [[inline_chunk(range(n), 16, 10)] for n in (1024, 7, 0, 1024, 1)]
    block = codecs.decode_chunks(inline_bitpacking(16), chunks_of(parts, [1024, 7, 0, 1024, 1]))
    assert integers(block) == [*range(1024), *range(7), *range(1024), 0]


def test_a_chunk_without_values_needs_no_bytes() -> None:
    block = codecs.decode_blocks(inline_bitpacking(16), chunks_of([[b""]], [0]))
    assert block.num_values == 0


def test_a_width_beyond_the_word_is_refused() -> None:
    chunk = b"\x21\0\0\0" + bytes(33 * 128)
    with pytest.raises(CorruptFileError, match="bit width of at most 32"):
        codecs.decode_chunks(inline_bitpacking(32), chunks_of([[chunk]], [1024]))


@pytest.mark.parametrize("size", [0, 3, 4, 387, 389])
def test_a_chunk_of_the_wrong_size_is_refused(size: int) -> None:
    chunk = (inline_chunk(range(8), 32, 3) + b"\0")[:size]
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(inline_bitpacking(32), chunks_of([[chunk]], [8]))


@pytest.mark.parametrize("count", [1025, 2**62])
def test_more_values_than_a_block_holds_are_refused(count: int) -> None:
    chunk = inline_chunk(range(8), 32, 3)
    with pytest.raises(CorruptFileError, match="at most 1024"):
        codecs.decode_chunks(inline_bitpacking(32), chunks_of([[chunk]], [count]))


def test_odd_words_and_inner_compression_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="12 bits"):
        codecs.decode_chunks(inline_bitpacking(12), chunks_of([[b"1234"]], [1]))
    encoding = inline_bitpacking(32)
    encoding.inline_bitpacking.values.scheme = 1
    with pytest.raises(NotSupportedError):
        codecs.decode_chunks(encoding, chunks_of([[b"1234"]], [1]))


def test_a_values_message_without_a_scheme_changes_nothing() -> None:
    encoding = inline_bitpacking(16)
    encoding.inline_bitpacking.values.SetInParent()

    block = codecs.decode_chunks(encoding, chunks_of([[inline_chunk(range(7), 16, 3)]], [7]))

    assert integers(block) == list(range(7))
