"""Tiny pages hold the same bytes as the ordinary way makes, or come back to the same values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.compress_base import EncodedPage, LeafPage, PageLevels
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import encode_leaf_page
from lance_nb.encodings.statistics import Measured
from lance_nb.encodings.tiny_page import VALUES_MAX, encode_tiny

VERSIONS = ((2, 1), (2, 2))
NULLABLE, VALID = encodings21.REPDEF_NULLABLE_ITEM, encodings21.REPDEF_ALL_VALID_ITEM


def levels_of(leaf: pa.Array) -> PageLevels:
    nulls = np.array([not one.is_valid for one in leaf])
    if not nulls.any():
        return PageLevels((VALID,), None, None, len(leaf), 0, len(leaf))
    return PageLevels((NULLABLE,), None, nulls.astype(np.uint16), len(leaf), 1, len(leaf))


def ordinary(leaf: pa.Array, options: EncodingOptions) -> EncodedPage:
    return encode_leaf_page(LeafPage(Measured(from_arrow(leaf)), levels_of(leaf), options))


def tiny(leaf: pa.Array, version: tuple[int, int] = (2, 2)) -> EncodedPage | None:
    return encode_tiny(leaf, levels_of(leaf), EncodingOptions(file_version=version))


def parts(page: EncodedPage) -> tuple[object, ...]:
    return (page.layout, page.num_rows, *(bytes(buffer) for buffer in page.buffers))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "leaf",
    [
        pa.array([1, -(2**40), 3]),
        pa.array([7, None, 9, None], pa.int32()),
        pa.array([0, 1, 2], pa.int8()).slice(1),
        pa.array([1.5, None, -0.0]),
        pa.array([1, 2], pa.timestamp("us", "UTC")),
        pa.array(["a", "", "longer than that", None]),
        pa.array(["skipped", "b", "cc"]).slice(1),
        pa.array([b"\xff" * 255, b"\0"]),
        pa.array(["", None]),
        pa.array(range(16)),  # 128 bytes
        pa.array(range(VALUES_MAX), pa.int8()),
        pa.array([f"{n:200}" for n in range(20)] + ["y" * 96]),  # 4096 bytes
    ],
    ids=lambda leaf: f"{len(leaf)} of {leaf.type}",
)
def test_bytes_are_those_of_the_ordinary_way(leaf, version):
    options = EncodingOptions(file_version=version)
    assert parts(tiny(leaf, version)) == parts(ordinary(leaf, options))


@pytest.mark.parametrize("leaf", [pa.array([5, 5, 5]), pa.array(["one"]), pa.array([""] * 3)])
def test_equal_values_are_a_constant_from_2_2_on(leaf):
    found = tiny(leaf)
    assert found.layout.WhichOneof("layout") == "constant_layout"
    assert parts(found) == parts(ordinary(leaf, EncodingOptions(file_version=(2, 2))))
    assert tiny(leaf, (2, 1)).layout.WhichOneof("layout") == "mini_block_layout"


def test_strings_that_only_look_repeated_are_no_constant():
    found = tiny(pa.array(["a", "aaa"]))
    assert found.layout.WhichOneof("layout") == "mini_block_layout"


def test_a_chunk_is_header_levels_and_values_each_padded():
    word, chunk = tiny(pa.array([7, None], pa.int32())).buffers
    assert bytes(word) == (2 << 4).to_bytes(4, "little")  # 3 times 8 bytes, less one; last chunk
    assert bytes(chunk[:8]) == bytes([2, 0, 4, 0, 8, 0, 0, 0])  # levels, their bytes, value bytes
    assert bytes(chunk[8:16]) == bytes([0, 0, 1, 0, 0, 0, 0, 0])
    assert bytes(chunk[16:20]) == bytes([7, 0, 0, 0])


@pytest.mark.parametrize(
    "leaf",
    [
        pa.array([], pa.int64()),
        pa.array([None, None], pa.int64()),
        pa.array([1] * (VALUES_MAX + 1), pa.int8()),
        pa.array(range(17)),  # 136 bytes: bits may be packed
        pa.array(["x" * 256]),
        pa.array(["x" * 256, "y"]),
        pa.array(["x" * 200] * 30),
        pa.array([f"{n:200}" for n in range(20)] + ["y" * 97]),  # 4097 bytes
        pa.array([True, False]),
        pa.array(["large"], pa.large_string()),
        pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
    ],
    ids=lambda leaf: f"{len(leaf)} of {leaf.type}",
)
def test_what_is_not_tiny_or_plain_is_left_to_the_ordinary_way(leaf):
    assert tiny(leaf) is None


def test_lists_and_chosen_codecs_are_left_to_the_ordinary_way():
    leaf = pa.array([1, 2])
    repetition = np.array([1, 0], np.uint16)
    nested = PageLevels((VALID, encodings21.REPDEF_ALL_VALID_LIST), repetition, None, 2, 0, 1)
    assert encode_tiny(leaf, nested, EncodingOptions(file_version=(2, 2))) is None
    with_zstd = EncodingOptions(file_version=(2, 2), compression="zstd")
    assert encode_tiny(leaf, levels_of(leaf), with_zstd) is None
