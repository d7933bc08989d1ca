"""Masks, ranges and items of Arrow arrays, whatever their offset."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_parts import (
    concatenated,
    fixed_size_items,
    list_ranges,
    nulls_of,
    one_array,
    packed_bits,
    taken,
    taken_rows,
    with_used_items,
    without_nested_null_items,
    without_null_items,
)
from lance_nb.errors import NotSupportedError


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 9, 20])
def test_nulls_follow_the_offset(offset: int):
    values = [None if k % 3 == 0 else k for k in range(30)]
    array = pa.array(values).slice(offset, 9)
    found = nulls_of(array)
    assert found is not None
    assert found.tolist() == [value is None for value in values[offset : offset + 9]]


def test_arrays_without_nulls_have_no_mask():
    assert nulls_of(pa.array([1, 2])) is None
    assert nulls_of(pa.array([None, 1]).slice(1)) is None
    assert nulls_of(pa.nulls(0)) is None


def test_everything_is_null_in_a_null_array():
    assert nulls_of(pa.nulls(2)).tolist() == [True, True]


def test_null_items_of_a_dictionary_count_where_they_are_used():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["a", None]))
    assert nulls_of(array) is None


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8())])
def test_ranges_of_lists_follow_the_offset(kind: pa.DataType):
    starts, counts = list_ranges(pa.array([[1], [2, 3], None, []], kind).slice(1))
    assert starts.tolist() == [1, 3, 3]
    assert counts.tolist() == [2, 0, 0]


def test_items_of_fixed_size_lists_follow_the_offset():
    array = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)).slice(1)
    items = fixed_size_items(array)
    assert len(items) == 4
    assert items.to_pylist()[2:] == [3, 4]


@pytest.mark.parametrize("offset", [0, 3, 8, 16])
@pytest.mark.parametrize("count", [0, 1, 8, 13, 64])
def test_bits_begin_at_the_first_value_and_end_in_zeros(offset: int, count: int):
    values = [True] * 100
    values[offset + 2 : offset + 5] = [False] * 3
    bits = packed_bits(pa.array(values).slice(offset, count))
    expected = np.packbits(np.array(values[offset : offset + count], bool), bitorder="little")
    assert bits.tolist() == expected.tolist()


def test_arrays_are_joined_and_a_single_one_is_not_copied():
    one = pa.array([1, None])
    assert concatenated([one]) is one
    assert concatenated([one, one.slice(1)]).to_pylist() == [1, None, None]


def test_dictionaries_are_made_one():
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    second = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["b", "a"]))
    one = concatenated([first, second])
    assert one.type == first.type
    assert one.to_pylist() == ["a", None, "a", "b"]
    assert one.dictionary.to_pylist() == ["a", "b"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64()])
def test_null_items_are_dropped_wherever_they_stand(kind: pa.DataType):
    items = pa.array([None, "a", "b", None, "c", None])
    keys = pa.array([5, 4, 3, 2, None, 1, 0, 4], kind)
    array = pa.DictionaryArray.from_arrays(keys, items)
    found = without_null_items(array)
    found.validate(full=True)
    assert found.type == array.type
    assert found.to_pylist() == [None, "c", None, "b", None, "a", None, "c"]
    assert found.dictionary.to_pylist() == ["a", "b", "c"]
    assert found.indices.to_pylist() == [None, 2, None, 1, None, 0, None, 2]
    raw = np.frombuffer(found.indices.buffers()[1], kind.to_pandas_dtype())
    assert set(raw.tolist()) <= {0, 1, 2}  # those of null slots too
    whole = pa.DictionaryArray.from_arrays(keys, pa.array(list("uvwxyz")))
    assert without_null_items(whole) is whole
    none = without_null_items(pa.DictionaryArray.from_arrays(pa.array([0], kind), pa.nulls(1)))
    assert none.to_pylist() == [None]


def hundred(name: str, keys: list[int | None] | None = None) -> pa.DictionaryArray:
    """Rows of a dictionary of 100 items."""
    indices = pa.array(range(100) if keys is None else keys, pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array([f"{name}{k}" for k in range(100)]))


def test_items_that_no_row_uses_are_left_out():
    array = hundred("a", [7, None, 99, 7]).slice(1)
    found = with_used_items(array)
    assert found.type == array.type
    assert found.to_pylist() == [None, "a99", "a7"]
    assert found.dictionary.to_pylist() == ["a7", "a99"]
    assert with_used_items(hundred("a", [None])).to_pylist() == [None]
    plain = pa.array([[1]])
    assert with_used_items(plain) is plain


def nested(values: pa.DictionaryArray) -> list[pa.Array]:
    offsets, mask = pa.array([0, 1, 1, 3], pa.int32()), pa.array([False, True, False])
    lists = pa.ListArray.from_arrays(offsets, values, mask=mask)
    large = pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), values)
    return [
        pa.StructArray.from_arrays([values, lists], ["x", "l"], mask=mask),
        lists.slice(1),
        large,
    ]


@pytest.mark.parametrize("kind", range(3), ids=["struct", "list", "large_list"])
def test_used_items_are_kept_inside_structs_and_lists(kind: int):
    one, other = (nested(hundred(name, [50, 2, None]))[kind] for name in "ab")
    joined = concatenated([one, other])
    assert joined.type == one.type
    assert joined.to_pylist() == [*one.to_pylist(), *other.to_pylist()]


def test_only_used_items_are_joined_where_all_would_be_too_many():
    joined = concatenated([hundred("a", [3, None]), hundred("b", [4, 3])])
    assert joined.to_pylist() == ["a3", None, "b4", "b3"]
    assert joined.dictionary.to_pylist() == ["a3", "b3", "b4"]


def test_rows_are_taken_of_chunks_with_too_many_items():
    column = pa.chunked_array([hundred("a"), hundred("b"), hundred("c", [])])
    rows = pa.array([199, None, 0, 100, 199])
    assert taken(column, rows).to_pylist() == ["b99", None, "a0", "b0", "b99"]
    assert taken(column, rows).chunk(0).dictionary.to_pylist() == ["a0", "b0", "b99"]
    assert taken(column, pa.array([], pa.int64())).to_pylist() == []
    assert taken(column, pa.array([None], pa.int64())).to_pylist() == [None]
    table = pa.table({"d": column, "n": range(200)})
    found = taken_rows(table, pa.array([150, 1]))
    assert found.schema == table.schema
    assert found.to_pylist() == [{"d": "b50", "n": 150}, {"d": "a1", "n": 1}]
    with pytest.raises(NotSupportedError, match=r"200 rows .* more items than the keys"):
        taken(column, pa.array(range(199, -1, -1)))
    with pytest.raises(pa.ArrowIndexError):
        taken(column, pa.array([200]))


def test_a_column_becomes_one_array():
    assert one_array(pa.chunked_array([], pa.int8())).type == pa.int8()
    parts = [hundred("a", [1]), hundred("b", [2])]
    assert one_array(pa.chunked_array(parts)).to_pylist() == ["a1", "b2"]


def test_what_one_array_cannot_hold_is_refused():
    items = pa.array([str(number) for number in range(128)])
    full = pa.DictionaryArray.from_arrays(pa.array(range(128), pa.int8()), items)
    other = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["other"]))
    with pytest.raises(
        NotSupportedError, match=r"129 rows of type dictionary<.*int8.* wider type for the keys"
    ):
        concatenated([full, other])
    huge = pa.ListArray.from_arrays([0, 2**31 - 1], pa.nulls(2**31 - 1))
    with pytest.raises(NotSupportedError, match="2 values of type list"):
        concatenated([huge, huge])


def test_lists_beside_dictionaries_are_reported_from_these():
    huge = pa.ListArray.from_arrays([0, 2**31 - 1], pa.nulls(2**31 - 1))
    both = pa.StructArray.from_arrays([huge, hundred("a", [1])], ["l", "d"])
    with pytest.raises(NotSupportedError, match=r"2 values of type struct.*use fewer rows"):
        concatenated([both, both])


def test_null_items_are_dropped_inside_structs_and_lists():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array([None, "b"]))
    for around, rows in zip(
        nested(array),
        (
            [{"x": None, "l": [None]}, None, {"x": None, "l": ["b", None]}],
            [None, ["b", None]],
            [[None], [], ["b", None]],
        ),
        strict=True,
    ):
        found = without_nested_null_items(around)
        found.validate(full=True)
        assert found.type == around.type
        assert found.to_pylist() == rows
        inside = found.field("x") if pa.types.is_struct(found.type) else found.values
        assert inside.dictionary.to_pylist() == ["b"]
        assert concatenated([around, around]).to_pylist() == rows * 2
    for plain in (pa.array([1]), pa.array([[1]]), pa.array([{"a": 1}])):
        assert without_nested_null_items(plain) is plain


@pytest.mark.parametrize("around", [pa.list_, pa.large_list])
def test_lists_without_rows_keep_no_item(around):
    kind = around(pa.dictionary(pa.int8(), pa.string()))
    found = with_used_items(pa.array([["a"], ["b"]], kind).slice(2))
    assert (found.type, len(found), len(found.values)) == (kind, 0, 0)
    assert with_used_items(pa.array([], kind)).to_pylist() == []
