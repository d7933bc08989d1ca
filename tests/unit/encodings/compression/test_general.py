"""General: LZ4 and Zstandard around another encoding."""

from __future__ import annotations

import struct

import lz4.block
import numpy as np
import pytest
import zstandard

from lance_nb.encodings.base import FixedWidth, VariableWidth, single_chunk
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import compressors
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    LZ4,
    ZSTD,
    byte_stream_split,
    chunks_of,
    flat,
    general,
    integers,
    rle,
    split_bytes,
    strings,
    to_words,
    variable,
)
from tests.support.compressing import V2_2, by_value, in_blocks, in_chunks, measured


def squeezed(scheme: int, content: bytes) -> bytes:
    if scheme == LZ4:
        return lz4.block.compress(content, store_size=True)
    stream = zstandard.ZstdCompressor().compressobj()
    return struct.pack("<Q", len(content)) + stream.compress(content) + stream.flush()


def test_a_dictionary_of_pylance_is_read() -> None:
    # The dictionary red, green, blue: 36 bytes of content, squeezed into two LZ4 sequences.
    raw = bytes.fromhex("24000000 62200000001800 0100 f009 03000000 08000000 0c000000")
    raw += b"redgreenblue"
    block = codecs.decode_blocks(
        general(LZ4, variable()), single_chunk(3, np.frombuffer(raw, np.uint8))
    )
    assert strings(block) == [b"red", b"green", b"blue"]


@pytest.mark.parametrize("scheme", [LZ4, ZSTD])
def test_chunks_are_decompressed_each_by_itself(scheme: int) -> None:
    parts = [list(range(500)), [7] * 1000, [], [1]]
    chunks = chunks_of(
        [[squeezed(scheme, split_bytes(part, 64))] for part in parts], list(map(len, parts)), seed=1
    )
    block = codecs.decode_chunks(general(scheme, byte_stream_split(64)), chunks)
    assert integers(block) == [value for part in parts for value in part]


@pytest.mark.parametrize("scheme", [LZ4, ZSTD])
def test_only_the_first_buffer_of_a_chunk_is_compressed(scheme: int) -> None:
    encoding = general(scheme, rle(32))
    chunks = chunks_of([[squeezed(scheme, to_words([5, 6], 32)), b"\2\1"]], [3])
    assert codecs.num_buffers(encoding) == 2
    assert integers(codecs.decode_chunks(encoding, chunks)) == [5, 5, 6]


def test_an_empty_buffer_stays_empty() -> None:
    for scheme in (LZ4, ZSTD):
        block = codecs.decode_chunks(general(scheme, flat(8)), chunks_of([[b""]], [0]))
        assert block.num_values == 0


@pytest.mark.parametrize("scheme", [LZ4, ZSTD])
def test_values_are_decompressed_one_by_one_and_nulls_stay_empty(scheme: int) -> None:
    parts = [squeezed(scheme, b"x" * 5000), b"", squeezed(scheme, b"short")]
    for bits in (32, 64):
        offsets = np.cumsum([0, *map(len, parts)]).astype(f"i{bits // 8}")
        values = VariableWidth(3, offsets, np.frombuffer(b"".join(parts), np.uint8))
        block = codecs.decode_values(general(scheme, variable(bits)), values)
        assert strings(block) == [b"x" * 5000, b"", b"short"]
        assert block.offsets.dtype == offsets.dtype


def test_a_bare_zstandard_frame_of_an_old_file_is_read() -> None:
    content = to_words(range(3000), 32)
    frame = zstandard.ZstdCompressor().compress(content)
    block = codecs.decode_blocks(general(ZSTD, flat(32)), chunks_of([[frame]], [3000]))
    assert integers(block) == list(range(3000))


@pytest.mark.parametrize("claimed", [0, 4, 399, 401, 2**31, 2**32 - 1])
def test_lz4_that_lies_about_its_content_is_refused(claimed: int) -> None:
    raw = struct.pack("<I", claimed) + squeezed(LZ4, bytes(400))[4:]
    with pytest.raises(CorruptFileError):
        codecs.decode_blocks(general(LZ4, flat(32)), chunks_of([[raw]], [100]))


@pytest.mark.parametrize("claimed", [0, 4, 399, 401, 2**31, 2**40, 2**64 - 1])
def test_zstandard_that_lies_about_its_content_is_refused(claimed: int) -> None:
    raw = struct.pack("<Q", claimed) + squeezed(ZSTD, bytes(400))[8:]
    with pytest.raises(CorruptFileError):
        codecs.decode_blocks(general(ZSTD, flat(32)), chunks_of([[raw]], [100]))


def test_a_frame_that_declares_a_huge_size_is_refused_before_room_is_made() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(70_000)))
    assert frame[4] >> 6 == 2  # the content size is a field of 4 bytes
    frame[5:9] = b"\xff\xff\xff\xff"
    raw = struct.pack("<Q", 70_000) + frame
    with pytest.raises(CorruptFileError):
        codecs.decode_blocks(general(ZSTD, flat(8)), chunks_of([[raw]], [70_000]))


def test_many_buffers_that_would_fill_memory_together_are_refused() -> None:
    bomb = squeezed(ZSTD, bytes(1 << 24))
    chunks = chunks_of([[bomb]] * 200, [1] * 200)
    with pytest.raises(CorruptFileError, match="in a page"):
        codecs.decode_chunks(general(ZSTD, flat(8)), chunks)


@pytest.mark.parametrize("scheme", [LZ4, ZSTD])
def test_damaged_streams_are_refused(scheme: int) -> None:
    whole = squeezed(scheme, to_words(range(100), 32))
    for raw in (whole[:3], whole[:-3], whole[:10], b"\x04\0\0\0\0\0\0\0garbage"):
        with pytest.raises(CorruptFileError):
            codecs.decode_blocks(general(scheme, flat(32)), chunks_of([[raw]], [100]))


def test_unknown_schemes_and_fixed_widths_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="scheme 0"):
        codecs.decode_blocks(general(0, flat(32)), chunks_of([[b"1234"]], [1]))
    values = FixedWidth(8, 1, np.zeros(1, np.uint8))
    with pytest.raises(CorruptFileError, match="variable width"):
        codecs.decode_values(general(LZ4, flat(8)), values)


GENERAL = codec_of("general")
WISHES = [
    EncodingOptions(file_version=(2, 2), compression="lz4"),
    EncodingOptions(file_version=(2, 2), compression="zstd", compression_level=1),
]
TEXTS = [f"some text {i % 10} " * 3 for i in range(2000)]


@pytest.mark.parametrize("options", WISHES, ids=lambda found: found.compression)
def test_text_comes_back_smaller(options: EncodingOptions) -> None:
    block = measured(TEXTS)
    encoding, _ = in_chunks("general", block, options)
    assert encoding.general.values.WhichOneof("compression") == "variable"
    assert by_value("general", block, options).general.HasField("compression")


@pytest.mark.parametrize("options", WISHES, ids=lambda found: found.compression)
def test_packed_numbers_are_compressed_again(options: EncodingOptions) -> None:
    encoding, _ = in_chunks("general", measured(np.tile(np.arange(64), 200)), options)
    assert encoding.general.values.WhichOneof("compression") == "inline_bitpacking"


def test_what_does_not_shrink_stays() -> None:
    random = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 4000)
    encoding, _ = in_chunks("general", measured(random), WISHES[0])
    assert encoding.WhichOneof("compression") == "flat"
    encoding, _ = in_blocks("general", measured(random[:100]), [100], WISHES[0])
    assert encoding.WhichOneof("compression") != "general"


def test_dictionaries_of_text_shrink() -> None:
    encoding, _ = in_blocks("general", measured(TEXTS[:10]), [10], WISHES[0])
    assert encoding.WhichOneof("compression") == "general"


def test_it_must_be_asked_for() -> None:
    assert not GENERAL.nominate_chunks(measured(TEXTS), V2_2)
    assert not GENERAL.nominate_chunks(measured(TEXTS), WISHES[0].wrapped)
    assert not GENERAL.nominate_chunks(measured(["short"]), WISHES[0])


def test_the_first_buffer_is_compressed_whatever_the_others_take() -> None:
    """Values of runs shrink, though not below the bytes of their lengths."""
    runs = np.repeat(np.random.default_rng(1).integers(0, 2**20, 1000), 10)
    encoding, _ = in_chunks("general", measured(runs), WISHES[1])
    assert encoding.general.values.WhichOneof("compression") == "rle"


def test_numbers_value_by_value_and_little_content_stay() -> None:
    numbers = measured(np.arange(5000))
    assert GENERAL.compress_values(numbers, WISHES[0], compressors).encoding.HasField("flat")
    for size, taken in ((4095, False), (4096, True)):
        block = measured(np.zeros(size, np.uint8))
        assert bool(GENERAL.nominate_chunks(block, WISHES[0])) == taken
