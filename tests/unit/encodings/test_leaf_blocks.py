"""Arrow arrays as data blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import AllNull, Dictionary, FixedWidth, PackedStruct, VariableWidth
from lance_nb.encodings.leaf_blocks import from_arrow
from lance_nb.errors import NotSupportedError
from tests.support.leaf_values import MAKERS, make


@pytest.mark.parametrize("kind", MAKERS)
def test_a_block_becomes_the_same_array_again(kind: str) -> None:
    array = make(kind, 300)
    for part in (array, array.slice(13), array.slice(5, 100), array.slice(300)):
        found = to_arrow(from_arrow(part), part.type)
        assert found.to_pylist() == part.to_pylist()


def test_numbers_are_viewed_and_not_copied() -> None:
    array = pa.array([1, 2, 3], pa.int32())
    block = from_arrow(array.slice(1))
    assert isinstance(block, FixedWidth)
    assert block.data.ctypes.data == array.buffers()[1].address + 4


def test_strings_of_a_slice_begin_at_zero() -> None:
    block = from_arrow(pa.array(["abc", "de", "f"]).slice(1))
    assert isinstance(block, VariableWidth)
    assert block.offsets.tolist() == [0, 2, 3]
    assert block.data.tobytes() == b"def"


def test_keys_under_nulls_are_made_valid() -> None:
    keys = pa.Array.from_buffers(
        pa.int8(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([1, 99, 0], np.int8))]
    )
    block = from_arrow(pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"]), safe=False))
    assert isinstance(block, Dictionary)
    assert block.indices.data.tolist() == [1, 0, 0]


def test_null_items_of_a_dictionary_become_null_keys() -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2], pa.int8()), pa.array(["a", None, "c"])
    )
    block = from_arrow(array)
    assert isinstance(block, Dictionary)
    assert block.items.num_values == 2
    assert block.indices.bits_per_value == 8


def test_children_may_be_null_where_the_struct_is() -> None:
    type_ = pa.struct([("a", pa.int32())])
    array = pa.array([{"a": 1}, {"a": 2}], type_).take(pa.array([0, None, 1]))
    block = from_arrow(array)
    assert isinstance(block, PackedStruct)
    with pytest.raises(NotSupportedError, match="field 'a' of a packed struct has nulls"):
        from_arrow(pa.array([{"a": None}, None], type_))


def test_structs_without_fields_hold_nothing() -> None:
    assert from_arrow(pa.array([{}, {}], pa.struct([]))) == AllNull(2)


def test_nested_columns_are_no_leaf() -> None:
    with pytest.raises(NotSupportedError, match="one leaf"):
        from_arrow(pa.array([[1]], pa.list_(pa.int8())))


@pytest.mark.parametrize("rows", [[{"n": None, "x": 1}], [None], [{"n": None, "x": 1}, None]])
def test_a_packed_struct_with_a_field_of_nulls_is_refused(rows: list[Any]) -> None:
    kind = pa.struct([("n", pa.null()), ("x", pa.int32())])
    with pytest.raises(NotSupportedError, match="field 'n' of a packed struct has nulls"):
        from_arrow(pa.array(rows, kind))
