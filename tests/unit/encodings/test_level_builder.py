"""Striping: levels as the format's worked example says, and the nestings of their own kind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.level_builder import LAYERS_MAX, Shape, page_levels, stripe
from lance_nb.errors import NotSupportedError

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
