"""Which pages are full-zip, and with which compression."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import AllNull, DataBlock, Dictionary, PackedStruct
from lance_nb.encodings.choose import LAYOUT_ENCODERS
from lance_nb.encodings.compress_base import LeafPage, PageLevels
from lance_nb.encodings.leaf_blocks import from_arrow
from lance_nb.encodings.statistics import Measured
from tests.conformance.codec_tests import check_page, options, page_arms

NUMBERS = from_arrow(pa.array([1, 2, 3]))
STRINGS = from_arrow(pa.array(["a", "b", "x" * 300]))
ZIPPED = {"structural-encoding": "fullzip"}
CHUNKED = {"structural-encoding": "miniblock"}


@pytest.mark.parametrize(
    ("block", "wish", "version", "zipped", "chunked"),
    [
        (AllNull(3), ZIPPED, (2, 2), 0, 0),
        (Dictionary(3, NUMBERS, STRINGS), ZIPPED, (2, 2), 0, 10),
        (from_arrow(pa.array([True, False, True])), ZIPPED, (2, 2), 0, 10),
        (PackedStruct(3, (NUMBERS, NUMBERS)), ZIPPED, (2, 2), 0, 10),
        (PackedStruct(3, (NUMBERS, STRINGS)), {}, (2, 1), 0, 0),
        (PackedStruct(3, (NUMBERS, STRINGS)), {}, (2, 2), 50, 0),
        (NUMBERS, {}, (2, 2), 1, 10),
        (NUMBERS, ZIPPED, (2, 1), 50, 10),
        (NUMBERS, CHUNKED, (2, 1), 1, 50),
        (STRINGS, {}, (2, 2), 20, 10),
        (STRINGS, CHUNKED, (2, 2), 20, 50),
    ],
)
def test_layouts_answer_0_for_what_they_cannot_hold(
    block: DataBlock, wish: dict[str, str], version: tuple[int, int], zipped: int, chunked: int
) -> None:
    page = LeafPage(Measured(block), PageLevels((1,), None, None, 3, 0, 3), options(wish, version))
    assert LAYOUT_ENCODERS["full_zip_layout"].nominate(page) == zipped
    assert LAYOUT_ENCODERS["mini_block_layout"].nominate(page) == chunked


@pytest.mark.parametrize(
    ("width", "layout"), [(255, "mini_block_layout"), (256, "full_zip_layout")]
)
def test_pages_with_a_wide_string_are_full_zip(width: int, layout: str) -> None:
    strings = pa.array([f"{i}" for i in range(30)] + ["x" * width])
    assert layout in page_arms(check_page(strings, options({}, (2, 2))))


@pytest.mark.parametrize(("width", "layout"), [(63, "mini_block_layout"), (64, "full_zip_layout")])
def test_wide_vectors_are_full_zip(width: int, layout: str) -> None:
    vectors = pa.array([[float(i)] * width for i in range(9)], pa.list_(pa.float32(), width))
    assert layout in page_arms(check_page(vectors, options({}, (2, 2))))


def test_the_field_may_ask_for_chunks() -> None:
    strings = pa.array([f"{i}" * 200 for i in range(30)])
    wish = options({"structural-encoding": "miniblock"}, (2, 2))
    assert "mini_block_layout" in page_arms(check_page(strings, wish))


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_many_numbers_that_nothing_makes_smaller_are_stored_as_they_lie(
    version: tuple[int, int],
) -> None:
    numbers = np.random.default_rng(3).integers(-(2**62), 2**62, 1 << 17)
    page = check_page(pa.array(numbers), options({}, version))
    assert "full_zip_layout" in page_arms(page)
    assert np.shares_memory(np.frombuffer(page.buffers[0], np.int64), numbers)
    with_null = pa.array(numbers, mask=np.arange(numbers.size) == 5)
    for array, wish in (
        (pa.array(numbers[:1000]), {}),  # few: chunks cost nothing
        (with_null, {}),  # full-zip would put a word before every value
        (pa.array(numbers % 1000), {}),
        (pa.array(np.repeat(numbers[:100], 4000)), {}),
        (pa.array(numbers), {"structural-encoding": "miniblock"}),
        (pa.array(numbers), {"minichunk-size": "4096"}),
    ):
        assert "mini_block_layout" in page_arms(check_page(array, options(wish, version)))


def test_strings_that_no_chunk_of_2_1_can_hold_are_full_zip_all_the_same() -> None:
    strings = pa.array(["x" * 40_000, "y" * 40_000, "z"])
    wish = options({"structural-encoding": "miniblock", "compression": "none"}, (2, 1))
    assert "full_zip_layout" in page_arms(check_page(strings, wish))


def test_bits_cannot_be_zipped() -> None:
    wish = options({"structural-encoding": "fullzip"}, (2, 2))
    assert "mini_block_layout" in page_arms(check_page(pa.array([True, False] * 50), wish))


def test_pages_with_nulls_are_not_compressed_by_lz4() -> None:
    strings = pa.array([None, *[f"{i} " * 200 for i in range(30)]])
    page = check_page(strings, options({"compression": "lz4"}, (2, 2)))
    general = page.layout.full_zip_layout.value_compression.general
    assert general.compression.scheme == 2  # Zstandard: pylance reads no null values of LZ4
