"""Lists taken apart and put together, also those of slices and of fixed size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.table.predicate.lists import closed, joined, numbered, opened
from tests.support.expressions import values_of

ROWS = [[9], [1, 2], None, [], [3, None]]


def test_a_slice_is_taken_apart_from_its_own_first_row() -> None:
    lists = opened(pa.array(ROWS, pa.list_(pa.int64())).slice(1))
    assert lists.values.to_pylist() == [1, 2, 3, None]
    assert lists.starts.tolist() == [0, 2, 2, 2]
    assert lists.lengths.tolist() == [2, 0, 0, 2]
    assert lists.rows.tolist() == [0, 0, 3, 3]
    assert closed(lists.values, lists.lengths, lists.lost).to_pylist() == ROWS[1:]


def test_null_lists_of_a_fixed_size_have_no_values() -> None:
    rows = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2))
    lists = opened(rows)
    assert lists.values.to_pylist() == [1, 2, 3, 4]
    assert lists.ranges(np.zeros(3, np.int64), lists.lengths).to_pylist() == rows.to_pylist()


def test_equal_values_of_two_arrays_have_one_number_and_so_have_nulls() -> None:
    one, other = numbered(pa.array(["a", None, "b"]), pa.array([None, "b"]))
    assert one.tolist() == [0, 1, 2]
    assert other.tolist() == [1, 2]


def test_lists_are_joined_row_by_row() -> None:
    parts = [opened(pa.array(rows, pa.list_(pa.int64()))) for rows in (ROWS, ROWS[::-1])]
    found = joined(parts, parts[0].lost & parts[1].lost)
    assert found.to_pylist() == [[9, 3, None], [1, 2], None, [1, 2], [3, None, 9]]


def test_lists_of_lists_and_of_structs_are_looked_up_in_each_other():
    table = pa.table({
        "a": [[[1], [2, 3]], [[]], None, [None, [4]]], "b": [[[2, 3]], [[1]], [[1]], [None]],
        "s": [[{"x": 1}], [{"x": None}], [], None], "t": [[{"x": 2}], [{"x": None}], [], []],
    })  # fmt: skip

    assert values_of("array_has_any(a, b)", table) == [True, False, None, True]
    assert values_of("array_has_all(a, b)", table) == [True, False, None, True]
    assert values_of("array_has_all(b, a)", table) == [False, False, None, False]
    assert values_of("arrays_overlap(s, t)", table) == [False, True, False, None]


def test_lists_of_more_elements_than_32_bits_count_are_refused() -> None:
    assert len(closed(pa.nulls(3), np.array([1, 2]))) == 2
    for lengths in ([2**31], [2**30, 2**30], [2**31, 5]):
        with pytest.raises(pa.ArrowInvalid, match=f"lists of {sum(lengths):,} elements in one"):
            closed(pa.nulls(0), np.array(lengths))
