"""Which codecs and layouts are chosen: close to the table of pylance 14.0.2."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings.base import AllNull
from lance_nb.encodings.choose import compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import NotSupportedError
from tests.conformance.codec_tests import options, page_arms
from tests.support.encoded_files import encode_column
from tests.support.leaf_values import make


@pytest.mark.parametrize(
    ("kind", "arms"),
    [
        ("int64, all bits", {"mini_block_layout", "flat"}),
        ("int64, ten bits", {"mini_block_layout", "inline_bitpacking"}),
        ("int64, ascending", {"mini_block_layout", "inline_bitpacking"}),
        ("int64, one", {"constant_layout"}),
        ("int32, runs", {"mini_block_layout", "rle", "flat"}),
        ("float64", {"mini_block_layout", "flat"}),
        ("bool", {"mini_block_layout", "flat"}),
        ("string, empty", {"constant_layout"}),
        ("string, words", {"mini_block_layout", "fsst", "variable", "flat"}),
        ("binary, random", {"mini_block_layout", "variable", "flat"}),
        ("list of 4 float32", {"mini_block_layout", "fixed_size_list", "flat"}),
        ("list of 64 float32", {"full_zip_layout", "fixed_size_list", "flat"}),
        ("null", {"constant_layout"}),
    ],
)
def test_the_codec_fits_the_values(kind: str, arms: set[str]) -> None:
    assert page_arms(encode_column(make(kind, 3000), options({}, (2, 2)))) == arms


def test_few_strings_are_a_dictionary_compressed_from_2_2_on() -> None:
    old = encode_column(make("string, few", 3000), options({}, (2, 1)))
    assert page_arms(old) == {"mini_block_layout", "inline_bitpacking", "variable", "flat"}
    strings = pa.array([f"a rather long item {i % 50}" for i in range(3000)])
    new = encode_column(strings, options({}, (2, 2)))
    assert "general" in page_arms(new)


def test_nulls_are_packed_bits() -> None:
    page = encode_column(make("int64, all bits", 3000, 0.2), options({}, (2, 2)))
    assert page.layout.mini_block_layout.def_compression.HasField("out_of_line_bitpacking")


@pytest.mark.parametrize(
    ("wish", "arms"),
    [
        ({"compression": "none"}, {"mini_block_layout", "flat"}),
        ({"compression": "zstd"}, {"mini_block_layout", "general", "inline_bitpacking"}),
        (
            {"compression": "lz4", "bss": "on"},
            {"mini_block_layout", "general", "byte_stream_split", "flat"},
        ),
        ({"structural-encoding": "fullzip"}, {"full_zip_layout", "flat"}),
    ],
)
def test_wishes_are_honoured(wish: dict[str, str], arms: set[str]) -> None:
    column = make("int64, ascending", 3000)
    assert page_arms(encode_column(column, options(wish, (2, 2)))) == arms


def test_the_threshold_of_runs_is_honoured() -> None:
    column = make("int32, runs", 3000)
    few = encode_column(column, options({"rle-threshold": "0.0"}, (2, 2)))
    assert "rle" not in page_arms(few)


def test_a_smaller_chunk_is_asked_for() -> None:
    column = make("int64, all bits", 4096)
    page = encode_column(column, options({"minichunk-size": "1024"}, (2, 2)))
    assert len(page.buffers[0]) // 4 == 4096 * 8 // 1024


def test_blocks_that_nothing_takes_are_refused_by_name() -> None:
    with pytest.raises(NotSupportedError, match="AllNull"):
        compressors.compress_chunks(Measured(AllNull(3)), EncodingOptions(file_version=(2, 2)))
