"""Rows of chunks: found, numbered, joined over pages."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import Rows
from lance_nb.encodings.chunk_rows import (
    PageParts,
    check_joints,
    chunks_of,
    flat_positions,
    join_parts,
    number_rows,
    runs_of,
    value_runs,
)
from lance_nb.encodings.chunk_table import ChunkTable, RowIndex
from lance_nb.errors import CorruptFileError


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


TABLE = ChunkTable(ints(0, 80, 160), ints(80, 80, 40), ints(4, 4, 2), ints(4, 8, 10))
INDEX = RowIndex(ended=ints(1, 2, 3), started=ints(2, 3, 3))


def test_rows_are_looked_up_in_their_chunks() -> None:
    assert chunks_of(TABLE, None, Rows(ints(3), ints(5))).tolist() == [0, 1]
    assert chunks_of(TABLE, None, Rows(ints(0, 1, 9), ints(1, 2, 10))).tolist() == [0, 2]
    assert chunks_of(TABLE, None, Rows(ints(), ints())).tolist() == []


def test_a_row_of_lists_that_goes_on_needs_both_of_its_chunks() -> None:
    assert chunks_of(TABLE, INDEX, Rows(ints(1), ints(2))).tolist() == [0, 1]


def test_neighbouring_chunks_are_one_range() -> None:
    spans = [(one.start, one.stop) for one in runs_of(TABLE, ints(0, 1))]
    assert spans == [(0, 160)]
    assert [one.start for one in runs_of(TABLE, ints(0, 2))] == [0, 160]


def test_entries_are_numbered_by_the_rows_before_their_chunk() -> None:
    begins = np.array([True, False, True, False, True])
    assert number_rows(INDEX, ints(0, 1), begins, ints(3, 2)).tolist() == [0, 0, 1, 1, 2]
    assert number_rows(INDEX, ints(1), begins[3:], ints(2)).tolist() == [1, 2]


def test_joined_pages_count_rows_and_bytes_on() -> None:
    page = PageParts(TABLE, INDEX, None)
    joined = join_parts([page, page], [3, 3], [0, 500])
    assert joined.table.starts.tolist() == [0, 80, 160, 500, 580, 660]
    assert joined.table.value_ends.tolist() == [4, 8, 10, 14, 18, 20]
    assert joined.rows is not None
    assert joined.rows.ended.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_page_that_continues_a_row_of_the_page_before_is_refused() -> None:
    page = PageParts(TABLE, INDEX, None)
    joined = join_parts([page, page], [3, 3], [0, 500])
    begins = np.ones(6, bool)
    check_joints(joined, begins, np.ones(6, np.int64))
    begins[3] = False
    with pytest.raises(CorruptFileError, match="begin with a new row"):
        check_joints(joined, begins, np.ones(6, np.int64))


def test_a_row_without_lists_is_found_among_the_values_of_its_chunks() -> None:
    table = ChunkTable(
        np.array([0, 8, 16]), np.array([8, 8, 8]), np.array([4, 4, 2]), np.array([4, 8, 10])
    )
    wanted = Rows(np.array([1, 9]), np.array([3, 10]))
    assert flat_positions(table, np.array([0, 2]), wanted).tolist() == [1, 5]


def test_entries_without_a_value_are_not_counted() -> None:
    visible = np.array([True, False, False, True, True])
    runs = value_runs(np.array([0, 3]), np.array([3, 5]), visible, 5)
    assert (runs.starts.tolist(), runs.stops.tolist(), runs.total) == ([0, 1], [1, 3], 3)
    whole = value_runs(np.array([0, 3]), np.array([3, 5]), None, 5)
    assert (whole.starts.tolist(), whole.stops.tolist(), whole.total) == ([0, 3], [3, 5], 5)
