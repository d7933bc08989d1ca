"""Rows changed on two sides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.merging.matching import RowIds
from lance_nb.merging.row_merge import (
    NOWHERE,
    first_match,
    group_keys,
)


@pytest.mark.parametrize(
    ("wanted", "among", "expected"),
    [
        ([5, 1, 9], [9, 5, 7], [1, NOWHERE, 0]),
        ([0, 8, 10], [9, 8], [NOWHERE, 1, NOWHERE]),
        ([3, 3], [4, 3, 3], [1, 1]),
        ([3], [], [NOWHERE]),
        ([], [3], []),
    ],
)
def test_values_are_found_at_their_first_place(
    wanted: list[int], among: list[int], expected: list[int]
) -> None:
    found = first_match(np.array(wanted, np.int64), np.array(among, np.int64))

    assert found.tolist() == expected


def test_equal_keys_of_several_tables_have_one_number() -> None:
    first = pa.table({"a": [1, 1, 2], "b": ["x", "y", None]})
    other = pa.table({"a": [2, 1, 2, 3], "b": [None, "y", "x", None]})

    one, two = group_keys([first, other.slice(0)])

    assert len({*one.tolist(), *two.tolist()}) == 5
    assert two[:2].tolist() == [one[2], one[1]]
    assert [len(part) for part in group_keys([first, first.slice(0, 0), other])] == [3, 0, 4]


def test_row_ids_are_translated_where_they_differ() -> None:
    ids = RowIds(np.array([3, 7], np.uint64), np.array([30, 70], np.uint64))

    found, known = ids.of(np.array([7, 2, 3, 9], np.uint64))

    assert found.tolist() == [70, 2, 30, 9]
    assert known.tolist() == [True, False, True, False]
    nothing = RowIds(np.empty(0, np.uint64), np.empty(0, np.uint64))
    found, known = nothing.of(np.array([4], np.uint64))
    assert (found.tolist(), known.tolist()) == ([4], [False])
