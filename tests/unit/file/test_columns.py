"""Leaves of a field tree, and how their levels and values become Arrow columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import DecodedPage, FixedWidth
from lance_nb.encodings.repdef import Level
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.columns import Leaf, LeafPart, assemble, concat_parts, leaf_part, leaves_of
from lance_nb.format.schema import Field, Schema

ITEM, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
FULL = pb.REPDEF_ALL_VALID_LIST
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])


def field_of(kind: pa.DataType) -> Field:
    return Schema.from_arrow(pa.schema([pa.field("c", kind)])).fields[0]


def mask(*bits: int) -> Any:
    return np.array(bits, bool)


def offsets(*ends: int) -> Any:
    return np.array(ends, np.int64)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int32(), [("c", 1)]),
        (pa.list_(pa.float32(), 4), [("c", 1)]),
        (pa.dictionary(pa.int8(), pa.string()), [("c", 1)]),
        (pa.list_(pa.int32()), [("c.item", 2)]),
        (POINT, [("c.x", 2), ("c.y", 2)]),
        (pa.list_(POINT), [("c.item.x", 3), ("c.item.y", 3)]),
        (pa.large_list(pa.list_(pa.int8())), [("c.item.item", 3)]),
        (pa.map_(pa.string(), pa.int32()), [("c.entries.key", 3), ("c.entries.value", 3)]),
        (pa.struct([("a", POINT), ("b", pa.list_(pa.int8()))]),
         [("c.a.x", 3), ("c.a.y", 3), ("c.b.item", 3)]),
        (pa.struct([]), [("c", 1)]),
    ],
)  # fmt: skip
def test_only_leaves_own_columns(kind: pa.DataType, expected: list[tuple[str, int]]) -> None:
    field = field_of(kind)
    owners = {one.id: n for n, one in enumerate(f for f in field.walk() if not f.children)}
    leaves = list(leaves_of(field, kind, owners))
    assert [(leaf.name, leaf.depth) for leaf in leaves] == expected
    assert all(leaf.field_id in owners for leaf in leaves)


def test_a_packed_struct_is_one_leaf() -> None:
    field = field_of(POINT)
    (leaf,) = leaves_of(field, POINT, {field.id: 0})
    assert (leaf.name, leaf.type, leaf.depth) == ("c", POINT, 1)


def page(layers: list[int], values: int, rep: Any = None, definition: Any = None) -> DecodedPage:
    data = np.arange(values, dtype="<i4").view(np.uint8)
    levels = (None if one is None else np.array(one, np.uint16) for one in (rep, definition))
    return DecodedPage(FixedWidth(32, values, data), *levels, tuple(layers))


LEAF = Leaf(0, "c", pa.int32(), 1)
ITEMS = Leaf(1, "c.item", pa.int32(), 2)


def test_a_page_becomes_levels_and_an_array() -> None:
    part = leaf_part(LEAF, page([NULLABLE], 3, None, [0, 1, 0]), 3)
    assert part.values.to_pylist() == [0, None, 2]
    assert part.num_rows == 3


@pytest.mark.parametrize(
    ("leaf", "found", "num_rows", "reason"),
    [
        (LEAF, page([ITEM, ITEM], 3), 3, "1 nesting layers"),
        (ITEMS, page([ITEM], 3), 3, "2 nesting layers"),
        (LEAF, page([ITEM], 3), 4, "4 rows"),
        (ITEMS, page([ITEM, FULL], 3, [1, 0, 1]), 3, "3 rows"),
        (Leaf(0, "c", pa.int64(), 1), page([ITEM], 3), 3, "values of type int64"),
    ],
)
def test_a_page_that_does_not_fit_its_leaf_is_refused(
    leaf: Leaf, found: DecodedPage, num_rows: int, reason: str
) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        leaf_part(leaf, found, num_rows)


def part(values: pa.Array, *levels: Level) -> LeafPart:
    return LeafPart(levels, values)


X = part(pa.array([1, None, 3], "int32"), Level(3, mask(1, 0, 1)), Level(3, mask(1, 0, 1)))
Y = part(pa.array(["a", "b", None]), Level(3, mask(1, 0, 1)), Level(3, mask(1, 1, 0)))


def test_leaves_of_a_struct_join() -> None:
    built = assemble(field_of(POINT), POINT, {1: [X], 2: [Y]}, 3)
    assert built.to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]


def test_leaves_whose_pages_end_in_different_places_join() -> None:
    first = part(X.values.slice(0, 1), Level(1, mask(1)), Level(1, None))
    rest = part(X.values.slice(1), Level(2, mask(0, 1)), Level(2, mask(0, 1)))
    built = assemble(field_of(POINT), POINT, {1: [first, rest], 2: [Y]}, 3)
    assert built.to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]


def test_missing_leaves_read_as_null() -> None:
    built = assemble(field_of(POINT), POINT, {2: [Y]}, 3)
    assert built.to_pylist() == [{"x": None, "y": "a"}, None, {"x": None, "y": None}]
    assert assemble(field_of(POINT), POINT, {}, 2).to_pylist() == [None, None]
    lists = pa.list_(POINT)
    rows = Level(2, None, offsets(0, 2, 3))
    inner = part(pa.array([1, 2, 3], "int32"), rows, Level(3, None), Level(3, None))
    built = assemble(field_of(lists), lists, {2: [inner]}, 2)
    assert built.to_pylist() == [
        [{"x": 1, "y": None}, {"x": 2, "y": None}],
        [{"x": 3, "y": None}],
    ]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int32())])
def test_lists_get_offsets_of_their_type(kind: pa.DataType) -> None:
    level = Level(3, mask(1, 0, 1), offsets(0, 2, 2, 3))
    items = part(pa.array([1, 2, 3], "int32"), level, Level(3, None))
    built = assemble(field_of(kind), kind, {1: [items, items]}, 6)
    assert built.type == kind
    assert built.num_chunks == 2
    assert built.to_pylist() == [[1, 2], None, [3]] * 2


def test_parts_of_one_leaf_join() -> None:
    joined = concat_parts([X, X])
    assert joined.num_rows == 6
    assert joined.values.to_pylist() == [1, None, 3, 1, None, 3]
    assert concat_parts([X]) is X


SHORT = part(pa.array([1, 2], "int32"), Level(2, None), Level(2, None))
LISTED = Level(3, None, offsets(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("kind", "found", "reason"),
    [
        (POINT, {1: [SHORT], 2: [Y]}, "2 rows in every leaf"),
        (POINT, {1: [part(SHORT.values, Level(3, None), Level(2, None))]}, "3 values of field 'x'"),
        (
            pa.list_(pa.int32()),
            {1: [part(SHORT.values, LISTED, Level(2, None))]},
            "3 values of field 'item'",
        ),
        (pa.list_(pa.int32()), {1: [part(X.values, Level(3, None), Level(3, None))]}, "structs"),
        (POINT, {1: [part(X.values, LISTED, Level(3, None))]}, "lists"),
    ],
)
def test_leaves_that_do_not_fit_together_are_refused(
    kind: pa.DataType, found: dict[int, list[LeafPart]], reason: str
) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        assemble(field_of(kind), kind, found, 3)


def test_a_fixed_size_list_with_too_few_structs_is_refused() -> None:
    kind = pa.list_(POINT, 2)
    inner = part(X.values, Level(3, None), Level(3, None), Level(3, None))
    with pytest.raises(CorruptFileError, match="6 values of field"):
        assemble(field_of(kind), kind, {2: [inner]}, 3)


def test_a_fixed_size_list_of_structs_inside_a_list_is_refused() -> None:
    above = ((0, pa.list_(pa.list_(POINT, 2))), (1, pa.list_(POINT, 2)))
    with pytest.raises(NotSupportedError, match="inside lists"):
        _ = Leaf(3, "a.item.item.x", pa.int32(), 4, above).items_per_row


def test_more_items_than_an_offset_can_hold_are_refused() -> None:
    kind = pa.list_(pa.null())
    level = Level(1, None, offsets(0, 2**31))
    items = part(pa.nulls(2**31), level, Level(2**31, None))
    with pytest.raises(CorruptFileError, match="list items in one read"):
        assemble(field_of(kind), kind, {1: [items]}, 1)
