"""Writing mini-block pages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.conformance.codec_tests import check_page, options
from tests.support.leaf_values import make


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_chunk_words_have_the_width_of_the_version(version: tuple[int, int]) -> None:
    page = check_page(make("int64, all bits", 5000), options({}, version))
    layout = page.layout.mini_block_layout
    assert layout.has_large_chunk is (version == (2, 2))
    assert len(page.buffers[0]) == 10 * (4 if layout.has_large_chunk else 2)
    assert layout.num_items == 5000


def test_a_dictionary_is_the_third_buffer_and_the_row_index_the_last() -> None:
    colours = [["red", "blue"][i % 2] for i in range(3000)]
    lists = pa.ListArray.from_arrays(pa.array(range(0, 3001, 2), pa.int32()), pa.array(colours))
    page = check_page(lists, options({}, (2, 2)))
    assert len(page.buffers) == 4
    assert page.layout.mini_block_layout.num_dictionary_items == 2
    pairs = np.frombuffer(bytes(page.buffers[3]), "<u8").reshape(-1, 2)
    assert int(pairs[:, 0].sum()) == 1500


def test_rows_may_span_chunks() -> None:
    lists = pa.array([list(range(5000)), [], None, [1], list(range(3000))], pa.list_(pa.int16()))
    for version in ((2, 1), (2, 2)):
        check_page(lists, options({}, version))


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
@pytest.mark.parametrize("value", [7, "text", True])
def test_sparse_lists_have_smaller_chunks(value: object, version: tuple[int, int]) -> None:
    rows = [[value] if row % 60 == 0 else [] for row in range(150_000)]
    page = check_page(pa.array(rows), options({"dict-divisor": "100000"}, version))
    assert page.layout.WhichOneof("layout") == "mini_block_layout"
