"""Inline bit packing: every chunk carries its width."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import ChunkBuffer
from lance_nb.encodings.compress_base import Parts
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.mini_block_chunks import assemble
from lance_nb.encodings.page_encoder import compressors
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    inline_bitpacking,
    inline_chunk,
    integers,
)
from tests.support.compressing import V2_2, in_blocks, in_chunks, measured

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


PACKING = codec_of("inline_bitpacking")


@pytest.mark.parametrize("kind", ["uint8", "int16", "int32", "uint64"])
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_blocks_of_any_width_come_back(kind: str, count: int) -> None:
    values = (np.arange(count) % 100 >> (np.arange(count) // 1024 % 7)).astype(kind)
    encoding, counts = in_chunks("inline_bitpacking", measured(values))
    assert encoding.inline_bitpacking.uncompressed_bits_per_value == values.itemsize * 8
    assert counts[:-1] == [1024] * (len(counts) - 1)


def test_many_changes_of_width_come_back() -> None:
    rng = np.random.default_rng(1)
    widths = np.repeat(rng.integers(0, 40, 300), 1024)
    in_chunks("inline_bitpacking", measured(np.uint64(1) << widths.astype(np.uint64)))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("changes", [1, 100])  # few runs of a width, or many
@pytest.mark.parametrize("large", [False, True])
def test_chunks_are_packed_where_their_page_has_them(kind: str, changes: int, large: bool) -> None:
    rng = np.random.default_rng(changes)
    widths = np.repeat(rng.integers(0, 6, changes), 1024)
    values = (np.ones(1, kind) << widths.astype(kind))[: 1024 * changes - 5]
    found = PACKING.compress_chunks(measured(values), V2_2, compressors)
    part = found.buffers[0].parts[0]
    copied = [part.data[a : a + n] for a, n in zip(part.starts, part.sizes, strict=True)]
    starts = np.cumsum(part.sizes) - part.sizes
    plain = Parts((ChunkBuffer(np.concatenate(copied), starts, part.sizes),))
    wanted = assemble((), None, (plain,), large)
    built = assemble((), None, found.buffers, large)
    assert wanted is not None
    assert built is not None
    assert built[0] is part.data  # nothing was copied
    assert built[0].tobytes() == wanted[0].tobytes()
    assert built[1].tolist() == wanted[1].tolist()


def test_a_block_is_what_the_format_says() -> None:
    values = [5, 0, 7]
    _, blocks = in_blocks("inline_bitpacking", measured(np.array(values, np.uint32)), [3])
    assert blocks == [inline_chunk(values, 32, 3)]


def test_it_stays_away_where_little_is_saved() -> None:
    small, wide = np.arange(2000), np.full(2000, 2**63 - 1)
    assert PACKING.nominate_chunks(measured(small), V2_2) > 500
    assert not PACKING.nominate_chunks(measured(wide), V2_2)
    assert not PACKING.nominate_chunks(measured([5]), V2_2)
    plain = EncodingOptions(file_version=(2, 2), compression="none")
    assert not PACKING.nominate_chunks(measured(small), plain)
    assert not PACKING.nominate_blocks(measured(small), np.array([1000, 1000]), V2_2)


@pytest.mark.parametrize(("bits", "taken"), [(288, False), (287, True)])
def test_it_comes_where_more_than_99_thousandths_are_saved(bits: int, taken: bool) -> None:
    """Ten blocks of words of 32 bits: at 288 bits of 320, with the widths, 99 are saved."""
    widths = np.full(10, bits // 10) + (np.arange(10) < bits % 10)
    values = np.repeat((1 << widths) - 1, 1024).astype(np.uint32)
    assert bool(PACKING.nominate_chunks(measured(values), V2_2)) == taken
