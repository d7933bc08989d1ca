"""Lists of 2.0 files: which items their rows have, and the levels over the leaves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import FixedWidth
from lance_nb.encodings.v2_0.base import ItemRanges, Values
from lance_nb.errors import NotSupportedError
from lance_nb.file.columns import Leaf
from lance_nb.file.list_levels import is_list, joined_pages, leaf_parts, rows_below
from tests.support.reading import rows_of

POINT = pa.struct([("x", pa.int32())])
LISTS = pa.list_(POINT)
# A list (field 1) of structs (2) of lists (3) of numbers.
LEAF = Leaf(4, "c", pa.int32(), 4, ((1, LISTS), (2, POINT), (3, pa.list_(pa.int32()))))


def items(*ranges: tuple[int, int], valid: list[bool] | None = None) -> Values:
    starts, stops = np.array(ranges, np.int64).reshape(-1, 2).T
    return Values(ItemRanges(starts, stops), None if valid is None else np.array(valid))


@pytest.mark.parametrize(
    ("type_", "found"),
    [(LISTS, True), (pa.large_list(pa.int8()), True), (POINT, False)],
)
def test_lists_are_told_from_structs(type_: pa.DataType, found: bool) -> None:
    assert is_list(type_, "c") is found


@pytest.mark.parametrize("type_", [pa.map_(pa.string(), pa.int8()), pa.list_(POINT, 2), pa.int8()])
def test_other_nesting_is_refused_with_its_column(type_: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="column 'c': file version"):
        is_list(type_, "c")


def test_pages_of_lists_are_joined() -> None:
    found = joined_pages([items((0, 2), (2, 2)), items((7, 10), (10, 11))])
    assert found.level.length == 4
    assert found.level.validity is None
    assert found.level.offsets is not None
    assert found.level.offsets.tolist() == [0, 2, 2, 5, 6]
    assert (found.items.starts.tolist(), found.items.stops.tolist()) == ([0, 7], [2, 11])


def test_a_page_without_nulls_is_valid_beside_one_with() -> None:
    found = joined_pages([items((0, 2)), items((2, 2), (2, 3), valid=[False, True])])
    assert found.level.validity is not None
    assert found.level.validity.tolist() == [True, False, True]


def test_no_pages_are_no_lists() -> None:
    found = joined_pages([])
    assert (found.level.length, found.items.num_rows) == (0, 0)
    assert found.level.offsets is not None
    assert found.level.offsets.tolist() == [0]
    assert not joined_pages([Values(FixedWidth(8, 0, np.zeros(0, np.uint8)))]).level.length


def test_rows_below_a_list_are_its_items() -> None:
    rows = rows_of((5, 7))
    outer, inner = joined_pages([items((2, 4))]), joined_pages([items((9, 12))])
    assert rows_below(LEAF, {}, rows) is rows
    assert rows_below(LEAF, {1: outer}, rows) is outer.items
    assert rows_below(LEAF, {1: outer, 3: inner}, rows) is inner.items
    assert rows_below(LEAF, {1: outer, 3: inner}, rows, 2) is outer.items
    assert rows_below(LEAF, {1: outer, 3: inner}, rows, 0) is rows


def test_levels_lie_over_the_values_of_all_pages() -> None:
    outer = joined_pages([items((0, 2), (2, 2), (2, 3), valid=[True, False, True])])
    inner = joined_pages([items((0, 1), (1, 1), (1, 4))])
    arrays = [pa.array([1, 2], pa.int32()), pa.array([3, 4], pa.int32())]
    (part,) = leaf_parts(LEAF, arrays, {1: outer, 3: inner}, rows_of((0, 3)))
    assert part.values.to_pylist() == [1, 2, 3, 4]
    assert [level.length for level in part.levels] == [3, 3, 3, 4]
    assert part.levels[0] is outer.level
    assert part.levels[2] is inner.level
    assert part.levels[1].offsets is None


def test_without_a_list_every_page_is_a_part() -> None:
    leaf = Leaf(2, "c", pa.int32(), 2, ((1, POINT),))
    arrays = [pa.array([1, 2], pa.int32()), pa.array([3], pa.int32())]
    parts = leaf_parts(leaf, arrays, {}, rows_of((0, 3)))
    assert [[level.length for level in part.levels] for part in parts] == [[2, 2], [1, 1]]
    assert leaf_parts(leaf, [], {}, rows_of()) == []


def test_lists_without_items_have_empty_values_of_their_type() -> None:
    outer, inner = joined_pages([items((0, 0))]), joined_pages([])
    (part,) = leaf_parts(LEAF, [], {1: outer, 3: inner}, rows_of((0, 1)))
    assert part.values.type == pa.int32()
    assert [level.length for level in part.levels] == [1, 0, 0, 0]
