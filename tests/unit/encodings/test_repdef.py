"""Levels by hand: the numbers of each layer, what they unravel to, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.arrow_parts import nulls_of
from lance_nb.encodings.base import DecodedPage, FixedWidth
from lance_nb.encodings.repdef import (
    LAYERS_MAX,
    Level,
    Shape,
    check_layers,
    check_levels,
    concat_levels,
    leaf_levels,
    max_definition,
    max_visible_definition,
    num_list_layers,
    page_levels,
    stripe,
    unravel,
    visible_entries,
)
from lance_nb.errors import CorruptFileError, NotSupportedError

ITEM, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
FULL, NULLS = pb.REPDEF_ALL_VALID_LIST, pb.REPDEF_NULLABLE_LIST
EMPTIES, BOTH = pb.REPDEF_EMPTYABLE_LIST, pb.REPDEF_NULL_AND_EMPTY_LIST


def page(
    num_values: int,
    layers: list[int],
    rep: list[int] | None = None,
    levels: list[int] | None = None,
) -> DecodedPage:
    values = FixedWidth(8, num_values, np.zeros(num_values, np.uint8))
    as_levels = lambda found: None if found is None else np.array(found, np.uint16)
    return DecodedPage(values, as_levels(rep), as_levels(levels), tuple(layers))


def plain(level: Level) -> tuple[object, object]:
    """Validity as 0/1 and offsets, both as lists or None."""
    validity = None if level.validity is None else level.validity.astype(int).tolist()
    return validity, None if level.offsets is None else level.offsets.tolist()


@pytest.mark.parametrize(
    ("layers", "visible", "most", "lists"),
    [
        ([ITEM], 0, 0, 0),
        ([NULLABLE], 1, 1, 0),
        ([NULLABLE, NULLABLE], 2, 2, 0),
        ([ITEM, FULL], 0, 0, 1),
        ([NULLABLE, BOTH], 1, 3, 1),
        ([NULLABLE, NULLABLE, NULLS, NULLABLE, EMPTIES, NULLABLE], 2, 6, 2),
    ],
)
def test_levels_are_numbered_from_the_leaf_out(
    layers: list[int], visible: int, most: int, lists: int
) -> None:
    assert max_visible_definition(tuple(layers)) == visible
    assert max_definition(tuple(layers)) == most
    assert num_list_layers(tuple(layers)) == lists


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (page(3, [ITEM]), [(None, None)]),
        (page(3, [NULLABLE], None, [0, 1, 0]), [([1, 0, 1], None)]),
        (page(3, [NULLABLE], None, [0, 0, 0]), [(None, None)]),
        # struct: 1 null leaf, 2 null struct
        (page(3, [NULLABLE, NULLABLE], None, [0, 1, 2]), [([1, 1, 0], None), ([1, 0, 0], None)]),
        # the example of the module: [[1, 2], [], null, [4, 5000]]
        (
            page(4, [ITEM, BOTH], [1, 0, 1, 1, 1, 0], [0, 0, 2, 1, 0, 0]),
            [([1, 1, 0, 1], [0, 2, 2, 2, 4]), (None, None)],
        ),
        (page(3, [ITEM, FULL], [1, 0, 1]), [(None, [0, 2, 3]), (None, None)]),
        (page(1, [ITEM, EMPTIES], [1, 1], [1, 0]), [(None, [0, 0, 1]), (None, None)]),
        (page(1, [ITEM, NULLS], [1, 1], [1, 0]), [([0, 1], [0, 0, 1]), (None, None)]),
        (
            page(3, [NULLABLE, BOTH], [1, 0, 0, 1], [0, 1, 0, 3]),
            [(None, [0, 3, 3]), ([1, 0, 1], None)],
        ),
        # [[[1], []], null, [null]]: 1 null inner, 2 empty inner, 3 null outer
        (
            page(1, [ITEM, BOTH, NULLS], [2, 1, 2, 2], [0, 2, 3, 1]),
            [([1, 0, 1], [0, 2, 2, 3]), ([1, 1, 0], [0, 1, 1, 1]), (None, None)],
        ),
        # {"a": [7]}, null, {"a": null}: 1 null list, 2 null struct
        (
            page(1, [ITEM, NULLS, NULLABLE], [1, 1, 1], [0, 2, 1]),
            [([1, 0, 1], None), ([1, 0, 0], [0, 1, 1, 1]), (None, None)],
        ),
        # [{"x": 1}, null]: 1 null struct inside the list, which has a leaf slot
        (
            page(2, [ITEM, NULLABLE, FULL], [1, 0], [0, 1]),
            [(None, [0, 2]), ([1, 0], None), (None, None)],
        ),
        (page(0, [ITEM, BOTH], [], []), [(None, [0]), (None, None)]),
        (page(0, [ITEM, BOTH]), [(None, [0]), (None, None)]),
    ],
)
def test_levels_unravel(built: DecodedPage, expected: list[tuple[object, object]]) -> None:
    assert [plain(level) for level in unravel(built)] == expected


def test_every_entry_is_visible_without_special_levels() -> None:
    assert visible_entries(None, (NULLABLE, BOTH)) is None
    assert visible_entries(np.array([0, 1], np.uint16), (NULLABLE, FULL)) is None
    shown = visible_entries(np.array([0, 1, 2], np.uint16), (NULLABLE, NULLS))
    assert shown is not None
    assert shown.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        (page(2, [ITEM, FULL]), "repetition levels on a page of lists"),
        (page(2, [ITEM, FULL], [0, 1]), "begins with a new row"),
        (page(2, [ITEM, FULL], [0, 0]), "begins with a new row"),
        (page(2, [ITEM, FULL, FULL], [1, 0]), "begins with a new row"),
        (page(2, [NULLABLE], None, [0, 1, 0]), "2 definition levels with a value"),
        (page(2, [NULLABLE, BOTH], [1, 1], [2, 0]), "2 definition levels with a value"),
    ],
)
def test_damaged_levels_are_refused(built: DecodedPage, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        unravel(built)


def test_layers_are_checked() -> None:
    assert check_layers([ITEM, BOTH]) == (ITEM, BOTH)
    with pytest.raises(CorruptFileError, match="at least one"):
        check_layers([])
    for unknown in (0, 7, 2**31 - 1):
        with pytest.raises(NotSupportedError, match=f"layer {unknown}"):
            check_layers([unknown])


def test_levels_beyond_the_layers_are_refused() -> None:
    check_levels(np.array([1, 0], np.uint16), np.array([3, 0], np.uint16), (NULLABLE, BOTH))
    with pytest.raises(CorruptFileError, match="repetition levels up to 1"):
        check_levels(np.array([2], np.uint16), None, (NULLABLE, BOTH))
    with pytest.raises(CorruptFileError, match="definition levels up to 3"):
        check_levels(None, np.array([4], np.uint16), (NULLABLE, BOTH))
    check_levels(np.zeros(0, np.uint16), np.zeros(0, np.uint16), (ITEM,))


def test_runs_of_one_layer_join() -> None:
    some = Level(2, np.array([True, False]), np.array([0, 3, 3]))
    joined = concat_levels([some, Level(1, None, np.array([0, 2])), some])
    assert plain(joined) == ([1, 0, 1, 1, 0], [0, 3, 3, 5, 8, 8])
    assert joined.length == 5
    assert plain(concat_levels([Level(1, None), Level(2, None)])) == (None, None)
    assert concat_levels([some]) is some


def test_runs_of_different_nesting_do_not_join() -> None:
    lists = Level(1, None, np.array([0, 2]))
    with pytest.raises(CorruptFileError, match="same nesting on every page"):
        concat_levels([lists, Level(1, None)])


LEAF = Shape()
LIST = Shape((LEAF,))


def levels_of(array: pa.Array, shape: Shape, number: int = 0):
    leaf = list(stripe(array, shape))[number]
    return leaf.values, page_levels([leaf.entries])


def test_the_worked_example():
    array = pa.array([[1, 2], [], None, [4, 5000]], pa.list_(pa.int32()))
    values, levels = levels_of(array, LIST)
    assert values.to_pylist() == [1, 2, 4, 5000]
    assert levels.layers == (pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULL_AND_EMPTY_LIST)
    assert levels.repetition.tolist() == [1, 0, 1, 1, 1, 0]
    assert levels.definition.tolist() == [0, 0, 2, 1, 0, 0]
    assert (levels.num_entries, levels.num_rows, levels.max_visible_definition) == (6, 4, 0)


def test_values_without_nulls_have_no_levels():
    values, levels = levels_of(pa.array([1, 2, 3]), LEAF)
    assert values.to_pylist() == [1, 2, 3]
    assert levels.layers == (pb.REPDEF_ALL_VALID_ITEM,)
    assert levels.repetition is None
    assert levels.definition is None


def test_children_of_a_struct_share_its_nulls():
    array = pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}])
    both = Shape((LEAF, LEAF))
    first, levels = levels_of(array, both)
    assert len(first) == 3
    assert levels.layers == (pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_NULLABLE_ITEM)
    assert levels.definition.tolist() == [0, 2, 1]
    _, levels = levels_of(array, both, 1)
    assert levels.definition.tolist() == [1, 2, 0]


def test_a_child_below_null_structs_knows_null():
    child = pa.array([1, 2, 3])
    array = pa.StructArray.from_arrays([child], ["a"], mask=pa.array([True, False, True]))
    values, levels = levels_of(array, Shape((LEAF,)))
    assert values.to_pylist() == [1, 2, 3]
    assert levels.layers == (pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_NULLABLE_ITEM)
    assert levels.definition.tolist() == [2, 0, 2]


def test_a_list_below_a_null_struct_has_no_slot():
    items = pa.array([[1], [2, 3], []], pa.list_(pa.int8()))
    array = pa.StructArray.from_arrays([items], ["l"], mask=pa.array([False, True, False]))
    values, levels = levels_of(array, Shape((LIST,)))
    assert values.to_pylist() == [1]
    # 1 is a null list: there is none, but readers want to know the layer as one that may be null.
    assert levels.layers[1] == pb.REPDEF_NULL_AND_EMPTY_LIST
    assert levels.definition.tolist() == [0, 3, 2]
    assert levels.max_visible_definition == 0


def test_maps_are_lists_of_structs():
    array = pa.array([[("a", 1)], None, [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int8()))
    shape = Shape((Shape((LEAF, LEAF)),))
    keys, levels = levels_of(array.slice(1), shape)
    assert keys.to_pylist() == ["b", "c"]
    assert levels.layers == (
        pb.REPDEF_ALL_VALID_ITEM,
        pb.REPDEF_ALL_VALID_ITEM,
        pb.REPDEF_NULLABLE_LIST,
    )
    values, levels = levels_of(array.slice(1), shape, 1)
    assert values.to_pylist() == [2, None]
    assert levels.definition.tolist() == [2, 0, 1]


def test_fixed_size_lists_of_structs_count_items():
    kind = pa.list_(pa.struct([("x", pa.int8())]), 2)
    array = pa.array([[{"x": 0}, {"x": 0}], None, [{"x": 1}, {"x": None}]], kind).slice(1)
    values, levels = levels_of(array, Shape((Shape((LEAF,)),)))
    assert len(values) == 4
    assert values.to_pylist()[2:] == [1, None]
    assert levels.num_rows == levels.num_entries == 4
    assert levels.definition[0] == levels.definition[1] == max(levels.definition)
    assert levels.definition[2:].tolist() == [0, 1]


def test_fixed_size_lists_of_structs_inside_lists_are_refused():
    kind = pa.list_(pa.list_(pa.struct([("x", pa.int8())]), 2))
    with pytest.raises(NotSupportedError, match="inside lists"):
        list(stripe(pa.array([], kind), Shape((Shape((Shape((LEAF,)),)),))))


def test_a_packed_struct_is_one_leaf():
    array = pa.array([{"a": 1}, None, {"a": 3}])
    values, levels = levels_of(array, LEAF)
    assert values.type == array.type
    assert levels.definition.tolist() == [0, 1, 0]


def test_a_null_item_of_a_dictionary_is_null():
    keys = pa.array([0, 1, None, 0], pa.int8())
    array = pa.DictionaryArray.from_arrays(keys, pa.array(["a", None]))
    _, levels = levels_of(array, LEAF)
    assert levels.definition.tolist() == [0, 1, 1, 0]


def test_columns_of_nulls_are_null():
    _, levels = levels_of(pa.nulls(3), LEAF)
    assert levels.definition.tolist() == [1, 1, 1]
    assert levels.layers == (pb.REPDEF_NULLABLE_ITEM,)


def test_nothing_can_be_striped():
    values, levels = levels_of(pa.array([], pa.list_(pa.int8())), LIST)
    assert len(values) == levels.num_entries == levels.num_rows == 0


def test_nesting_has_a_limit():
    array, shape = pa.array([1]), LEAF
    for _ in range(LAYERS_MAX):
        array = pa.StructArray.from_arrays([array], ["x"])
        shape = Shape((shape,))
    with pytest.raises(NotSupportedError, match="nested"):
        list(stripe(array, shape))


def test_many_long_lists():
    counts = np.arange(1000) % 50
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    array = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.arange(offsets[-1])))
    values, levels = levels_of(array.slice(10, 900), LIST)
    assert np.asarray(values).tolist() == list(range(offsets[10], offsets[910]))
    starts = np.flatnonzero(levels.repetition)
    assert starts.size == 900
    assert levels.layers == (pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_EMPTYABLE_LIST)


def test_fixed_size_lists_of_structs_without_nulls_have_no_levels():
    kind = pa.list_(pa.struct([("x", pa.int8())]), 2)
    array = pa.array([[{"x": 0}, {"x": 1}], [{"x": 2}, {"x": 3}]], kind)
    values, levels = levels_of(array, Shape((Shape((LEAF,)),)))
    assert values.to_pylist() == [0, 1, 2, 3]
    assert levels.repetition is None
    assert levels.definition is None
    (leaf,) = stripe(array, Shape((Shape((LEAF,)),)))
    assert leaf.entries.codes is None


def test_items_of_null_fixed_size_lists_keep_the_code_of_the_list():
    kind = pa.list_(pa.struct([("x", pa.int8())]), 2)
    array = pa.array([None, [{"x": 2}, {"x": 3}]], kind)
    (leaf,) = stripe(array, Shape((Shape((LEAF,)),)))
    assert leaf.entries.codes is not None
    assert leaf.entries.codes.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("leaf", [pa.array([1, 2]), pa.array([1, None, 3]), pa.array([None, ""])])
def test_levels_of_a_leaf_are_those_of_its_stripes(leaf):
    (striped,) = stripe(leaf, Shape())
    expected = page_levels([striped.entries])
    levels = leaf_levels(len(leaf), nulls_of(leaf))
    for name in ("layers", "num_entries", "max_visible_definition", "num_rows", "repetition"):
        assert getattr(levels, name) == getattr(expected, name), name
    if expected.definition is None:
        assert levels.definition is None
    else:
        assert levels.definition.dtype == expected.definition.dtype
        assert levels.definition.tolist() == expected.definition.tolist()
