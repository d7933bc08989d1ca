"""Byte stream split."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    byte_stream_split,
    chunks_of,
    integers,
    split_bytes,
    variable,
)
from tests.support.compressing import V2_2, in_chunks, measured


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


WISH = EncodingOptions(file_version=(2, 2), compression="lz4", bss="on")


@pytest.mark.parametrize("kind", ["float32", "float64", "int32"])
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_split_values_come_back(kind: str, count: int) -> None:
    values = np.random.default_rng(1).standard_normal(count) * 100
    in_chunks("byte_stream_split", measured(values.astype(kind)), WISH.wrapped)


def test_it_is_chosen_only_below_a_compression_that_was_asked_for() -> None:
    split, values = codec_of("byte_stream_split"), measured(np.arange(9.0))
    assert split.nominate_chunks(values, WISH.wrapped)
    for options in (WISH, V2_2, V2_2.wrapped):
        assert not split.nominate_chunks(values, options)
    assert not split.nominate_chunks(measured([1], None), V2_2.wrapped)


def test_without_an_option_it_is_chosen_where_a_sample_becomes_smaller() -> None:
    split = codec_of("byte_stream_split")
    zstd = EncodingOptions(file_version=(2, 2), compression="zstd").wrapped
    smooth = 20 + np.sin(np.arange(9000) / 500)
    assert split.nominate_chunks(measured(smooth), zstd)
    random = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 9000)
    for values in (random, np.arange(9000), smooth[:100]):
        assert not split.nominate_chunks(measured(values), zstd)
    off = EncodingOptions(file_version=(2, 2), compression="zstd", bss="off").wrapped
    assert not split.nominate_chunks(measured(smooth), off)


@pytest.mark.parametrize(("bits", "taken"), [(23, False), (24, True)])
def test_values_below_three_quarters_of_their_bits_are_packed_instead(
    bits: int, taken: bool
) -> None:
    zstd = EncodingOptions(file_version=(2, 2), compression="zstd").wrapped
    top = 1 << bits
    values = (top - 1 - top / 4 * (1 + np.sin(np.arange(9 * 1024) / 500))).astype(np.uint32)
    split = codec_of("byte_stream_split")
    assert bool(split.nominate_chunks(measured(values), zstd)) == taken
