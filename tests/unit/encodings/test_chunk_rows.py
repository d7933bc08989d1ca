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


@pytest.mark.parametrize(
    ("ended", "goes_on"),
    [
        ([2, 4, 6, 9], [0, 0, 0, 0]),
        ([1, 1, 4, 6, 9], [1, 1, 0, 1, 0]),  # row 1 lies in three chunks
        ([3, 4, 7, 9], [1, 1, 1, 0]),
    ],
)
@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_rows_need_the_chunks_that_hold_a_part_of_them(
    ended: list[int], goes_on: list[int], seed: int
) -> None:
    ends, more = ints(*ended), ints(*goes_on)
    table = ChunkTable(*(ints(*range(len(ended))),) * 4)
    bounds = np.sort(np.random.default_rng(seed).permutation(10)[: 2 * (1 + seed % 4)])
    rows = Rows(bounds[::2], bounds[1::2])
    pairs = list(zip(rows.starts.tolist(), rows.stops.tolist(), strict=True))
    wanted = set()
    for chunk, (stop, part) in enumerate(zip(ended, goes_on, strict=True)):
        start = ended[chunk - 1] if chunk else 0
        held = range(start, stop + part)
        if any(low <= row < high for row in held for low, high in pairs):
            wanted.add(chunk)
    assert chunks_of(table, RowIndex(ends, ends + more), rows).tolist() == sorted(wanted)


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
    assert joined.rows.started.tolist() == [2, 3, 3, 5, 6, 6]
    assert joined.page_chunks is not None
    assert joined.page_chunks.tolist() == [3]
    flat = PageParts(TABLE, None, None)
    three = join_parts([flat, flat, flat], [10, 10, 10], [0, 500, 700])
    assert three.rows is None
    assert three.table.starts.tolist()[6:] == [700, 780, 860]
    assert three.page_chunks is not None
    assert three.page_chunks.tolist() == [3, 6]


def test_a_page_that_continues_a_row_of_the_page_before_is_refused() -> None:
    page = PageParts(TABLE, INDEX, None)
    joined = join_parts([page, page], [3, 3], [0, 500])
    begins = np.ones(6, bool)
    check_joints(joined, begins, np.ones(6, np.int64))
    for inside in (1, 2, 4, 5):  # rows go on inside a page
        begins[inside] = False
    check_joints(joined, begins, np.ones(6, np.int64))
    check_joints(page, begins, np.ones(3, np.int64))
    check_joints(joined, begins[:3], ints(1, 1, 1, 0, 0, 0))  # nothing of the second page
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
