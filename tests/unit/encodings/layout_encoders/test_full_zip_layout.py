"""Which pages are full-zip, and with which compression."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.conformance.codec_tests import check_page, options, page_arms


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
