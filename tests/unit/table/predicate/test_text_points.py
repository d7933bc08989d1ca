"""Text as code points and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.table.predicate.text_kernels import Points, points_of, text_array, text_of

TEXTS = ["", "a", "naïve", "データ", "🎉 ok", ""]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()], ids=str)
def test_text_of_any_width_comes_back_also_from_a_slice(type_: pa.DataType) -> None:
    texts = pa.array(["xx", *TEXTS, "yy"], type_).slice(1, len(TEXTS))
    points = points_of(texts)
    assert points.lengths.tolist() == [len(one) for one in TEXTS]
    assert text_of(points).to_pylist() == TEXTS


def test_no_rows_have_no_points() -> None:
    assert text_of(points_of(pa.array([], pa.string()))).to_pylist() == []


def test_a_cut_counts_characters_and_stays_inside_its_row() -> None:
    points = points_of(pa.array(TEXTS))
    cut = points.cut(np.array([0, -5, 1, 1, 0, 7]), np.array([9, 9, 3, 99, -1, 9]))
    assert text_of(cut).to_pylist() == ["", "a", "aï", "ータ", "", ""]


def test_characters_are_repeated_in_turn() -> None:
    cycled = points_of(pa.array(["ab", "x", ""])).cycled(np.array([5, 2, 0]))
    assert text_of(cycled).to_pylist() == ["ababa", "xx", ""]


def test_text_of_more_than_two_gibibytes_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="2 GiB"):
        text_array(np.zeros(0, np.uint8), np.array([0, 1 << 31]))


def test_points_know_where_rows_begin() -> None:
    points = Points(np.array([97, 98, 99], np.uint32), np.array([0, 1, 3]))
    assert text_of(points).to_pylist() == ["a", "bc"]
