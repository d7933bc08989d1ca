"""What fits a column, and what is refused with its name and row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import SchemaMismatchError
from lance_nb.file.fitting import fit
from lance_nb.format.schema import Schema


def fitted(array: pa.Array, kind: pa.DataType, *, nullable: bool = True, first_row: int = 0):
    schema = Schema.from_arrow(pa.schema([pa.field("c", kind, nullable)]))
    (field,) = schema.fields
    return fit(array, field, schema.to_arrow(storage=True).field(0).type, first_row)


def test_the_stored_type_passes_untouched():
    array = pa.array([1, None])
    assert fitted(array, pa.int64()) is array


def test_views_become_plain():
    assert fitted(pa.array(["a"], pa.string_view()), pa.string()).type == pa.string()
    assert fitted(pa.array([b"a"], pa.binary_view()), pa.binary()).type == pa.binary()
    nested = pa.array([["a"], None], pa.list_(pa.string_view()))
    assert fitted(nested, pa.list_(pa.string())).to_pylist() == [["a"], None]


def test_children_are_put_in_order_and_missing_ones_are_null():
    kind = pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.int8())])
    array = pa.array([{"y": "a", "x": 1}, None], pa.struct([("y", pa.string()), ("x", pa.int64())]))
    assert fitted(array, kind).to_pylist() == [{"x": 1, "y": "a", "z": None}, None]
    assert fitted(array.slice(1), kind).to_pylist() == [None]


def test_nested_children_are_put_in_order_too():
    kind = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))
    other = pa.list_(pa.field("e", pa.struct([("y", pa.string()), ("x", pa.int64())])))
    array = pa.array([None, [{"y": "a", "x": 1}], []], other).slice(1)
    assert fitted(array, kind).to_pylist() == [[{"x": 1, "y": "a"}], []]


def test_maps_keep_their_entries():
    kind = pa.map_(pa.string(), pa.int8())
    array = pa.array([[("a", 1)], None], pa.map_(pa.string_view(), pa.int8()))
    assert fitted(array, kind).to_pylist() == [[("a", 1)], None]


def test_json_texts_become_documents():
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None]))
    assert fitted(array, pa.json_()).type == pa.large_binary()


def test_extension_arrays_become_their_storage():
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
    assert fitted(array, pa.uuid()).type == pa.binary(16)


def test_vectors_may_name_their_items_otherwise():
    kind = pa.list_(pa.float32(), 2)
    array = pa.array([[1, 2], None], pa.list_(pa.field("element", pa.float32(), False), 2))
    assert fitted(array, kind).to_pylist() == [[1, 2], None]


def test_dictionaries_of_text_fit_in_order_or_not():
    kind = pa.dictionary(pa.int8(), pa.string())
    keys = pa.array([1, None, 0], pa.int8())
    for text, ordered in (("string", False), ("string", True), ("string_view", False)):
        words = pa.array(["a", "b"], pa.string()).cast(text)
        found = fitted(pa.DictionaryArray.from_arrays(keys, words, ordered=ordered), kind)
        assert found.type == kind
        assert found.to_pylist() == ["b", None, "a"]
    large = pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"], pa.large_string()))
    with pytest.raises(SchemaMismatchError, match="'c' has type"):
        fitted(large, kind)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1], pa.int32()), pa.int64()),
        (pa.array(["a"]), pa.large_string()),
        (pa.array(["a"]).dictionary_encode(), pa.string()),
        (pa.array([[1]]), pa.large_list(pa.int64())),
        (pa.array([[1]], pa.list_(pa.int64(), 1)), pa.list_(pa.int64(), 2)),
        (pa.array([None], pa.null()), pa.int64()),
        (pa.array([[1]]), pa.list_(pa.int8())),
    ],
)
def test_other_types_are_refused_by_both_names(array: pa.Array, kind: pa.DataType):
    with pytest.raises(SchemaMismatchError, match="column 'c"):
        fitted(array, kind)


def test_unexpected_children_are_refused():
    with pytest.raises(SchemaMismatchError, match="'z'"):
        fitted(pa.array([{"x": 1, "z": 2}]), pa.struct([("x", pa.int64())]))


def test_a_missing_child_that_must_not_be_null_is_refused():
    kind = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.int64(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match=r"c\.y.* missing"):
        fitted(pa.array([{"x": 1}]), kind)


def test_a_null_is_refused_with_column_and_row():
    with pytest.raises(SchemaMismatchError, match=r"'c' must not be null, but row 101 is"):
        fitted(pa.array([1, None]), pa.int64(), nullable=False, first_row=100)
    assert len(fitted(pa.array([1, 2]), pa.int64(), nullable=False)) == 2


def test_nulls_inside_are_refused_unless_the_parent_is_null():
    kind = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    child = pa.array([1, None, 3])
    hidden = pa.StructArray.from_arrays([child], ["x"], mask=pa.array([False, True, False]))
    assert fitted(hidden, kind).to_pylist() == [{"x": 1}, None, {"x": 3}]
    with pytest.raises(SchemaMismatchError, match=r"'c\.x' .* row 1"):
        fitted(pa.StructArray.from_arrays([child], ["x"]), kind)


def test_null_items_are_refused_with_their_row():
    item = pa.field("item", pa.int64(), nullable=False)
    lists = pa.array([None, [1, 2], [], [3, None]])
    with pytest.raises(SchemaMismatchError, match=r"'c\.item' .* row 3"):
        fitted(lists, pa.list_(item))
    assert fitted(lists.slice(0, 3), pa.list_(item)).to_pylist() == [None, [1, 2], []]


def test_null_structs_in_fixed_size_lists_are_refused_with_their_row():
    item = pa.field("item", pa.struct([("x", pa.int8())]), nullable=False)
    arrays = pa.array(
        [[{"x": 1}] * 2, None, [{"x": 1}, None]], pa.list_(item.with_nullable(True), 2)
    )
    with pytest.raises(SchemaMismatchError, match="row 2"):
        fitted(arrays, pa.list_(item, 2))


def test_long_columns_are_checked_without_loops():
    array = pa.array(np.arange(1_000_000))
    assert fitted(array, pa.int64(), nullable=False) is array


@pytest.mark.parametrize("size", [None, 2])
def test_only_kept_lists_are_looked_into(size: int | None):
    item = pa.struct([pa.field("x", pa.int8(), nullable=False)])
    kind = pa.list_(item) if size is None else pa.list_(item, size)
    whole = pa.array([[{"x": 1}, {"x": 2}], None, [{"x": 3}, {"x": 4}]], kind)
    assert fitted(whole, kind).to_pylist() == whole.to_pylist()


TEXTS = pa.array(["a", "b", "c", "d"])
INVALID = pa.Array.from_buffers(
    pa.string(), 4, [None, TEXTS.buffers()[1], pa.py_buffer(b"ab\xffd")]
)
OFFSETS = pa.array([0, 1, 2, 3, 4], pa.int32())
NESTED_TEXTS = [
    INVALID,
    pa.StructArray.from_arrays([INVALID], ["a"]),
    pa.ListArray.from_arrays(OFFSETS, INVALID),
    pa.LargeListArray.from_arrays(OFFSETS.cast(pa.int64()), INVALID),
    pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([INVALID], ["a"]), 1),
    pa.MapArray.from_arrays(OFFSETS, INVALID, TEXTS),
]


@pytest.mark.parametrize("array", NESTED_TEXTS, ids=lambda array: str(array.type))
def test_text_that_is_not_utf8_is_refused_in_its_own_slice(array: pa.Array):
    field = Schema.from_arrow(pa.schema([("c", array.type)])).fields[0]
    for start, size in ((0, 2), (3, 1), (2, 0)):
        assert len(fit(array.slice(start, size), field, array.type)) == size
    for start, size in ((0, 4), (2, 1), (1, 2)):
        with pytest.raises(SchemaMismatchError, match="text that is not UTF-8"):
            fit(array.slice(start, size), field, array.type)
