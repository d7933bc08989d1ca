from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.explorer.rows.row_page import (
    MAX_COLUMNS,
    MAX_ROWS,
    Window,
    page_of,
    page_texts,
    row_page,
)
from tests.support.fake_dataset import one_table, rows

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", INTEGERS + UNSIGNED, ids=str)
def test_integers_travel_exactly(kind: pa.DataType) -> None:
    low = 0 if kind in UNSIGNED else -(2 ** (kind.bit_width - 1))
    high = 2**kind.bit_width - 1 + low
    page = page_of(pa.table({"n": pa.array([low, None, high], kind)}))
    assert page_texts(page) == [[str(low), None, str(high)]]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_travel_with_nan_and_infinity(kind: pa.DataType) -> None:
    page = page_of(pa.table({"x": pa.array([1.5, float("nan"), float("inf"), None], kind)}))
    assert page_texts(page) == [["1.5", "NaN", "inf", None]]


@given(st.lists(st.none() | st.text(max_size=40), max_size=20), st.integers(0, 5))
def test_texts_travel_as_they_are_shown(values: list[str | None], start: int) -> None:
    table = pa.table({"s": pa.array(values, pa.string())}).slice(start)
    (shown,) = page_texts(page_of(table))
    assert [value is None for value in shown] == [value is None for value in values[start:]]


@given(st.lists(st.none() | st.booleans(), max_size=20), st.integers(0, 9))
def test_booleans_of_a_slice_travel(values: list[bool | None], start: int) -> None:
    table = pa.table({"b": pa.array(values, pa.bool_())}).slice(start)
    expected = [None if value is None else str(value).lower() for value in values[start:]]
    assert page_texts(page_of(table)) == [expected]


def test_null_empty_and_the_word_null_stay_apart() -> None:
    page = page_of(pa.table({"s": [None, "", "null"]}))
    assert page_texts(page) == [[None, "", "null"]]


def test_vectors_travel_as_norm_and_outline() -> None:
    vectors = pa.array([[3.0, 4.0, 0.0, 0.0], None, [0.0] * 4], pa.list_(pa.float32(), 4))
    page = page_of(pa.table({"v": vectors}))
    assert page.columns[0].encoding == "vector"
    assert page_texts(page) == [["[4 values, norm 5]", None, "[4 values, norm 0]"]]
    outline = np.frombuffer(page.buffers[page.columns[0].buffers[1]], np.uint8).reshape(3, 4)
    assert outline.tolist()[0] == [191, 255, 0, 0]


def test_vectors_of_a_slice_and_of_odd_values_do_not_fail() -> None:
    odd = pa.array([[float("nan"), float("inf"), 1.0, None]] * 3, pa.list_(pa.float32(), 4))
    page = page_of(pa.table({"v": odd}).slice(1, 1))
    assert page.num_rows == 1
    huge = pa.array([[3e38] * 5], pa.list_(pa.float32(), 5))
    assert page_texts(page_of(pa.table({"v": huge}))) == [["[5 values, norm inf]"]]


def test_a_window_is_cut_to_the_limits() -> None:
    dataset = one_table(rows(2000))
    assert row_page(dataset, Window(limit=10_000)).num_rows == MAX_ROWS
    wide = one_table(pa.table({f"c{at}": [at] for at in range(200)}))
    page = row_page(wide, Window(first_column=150, num_columns=100))
    assert [column.name for column in page.columns] == [f"c{at}" for at in range(150, 200)]
    assert len(row_page(wide, Window(num_columns=100)).columns) == MAX_COLUMNS


def test_a_page_with_wide_rows_holds_fewer_of_them() -> None:
    dataset = one_table(pa.table({"s": ["x" * 240] * 500}))
    page = row_page(dataset, Window(limit=500), max_bytes=20_000)
    assert 0 < page.num_rows < 100
    assert page.size_bytes <= 20_000
    giant = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(3_000_000, "f4")), 1_000_000)
    assert row_page(one_table(pa.table({"v": giant})), Window(limit=3)).num_rows == 3


def test_a_window_behind_the_end_is_an_empty_page() -> None:
    page = row_page(one_table(rows(3)), Window(offset=10))
    assert page.num_rows == 0
    assert page_texts(page) == [[], []]


def test_a_dataset_without_columns_gives_an_empty_page() -> None:
    assert row_page(one_table(pa.table({})), Window()).columns == ()
