"""Data blocks become Arrow arrays; a block that does not fit its type is a damaged file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_arrays import from_arrow, to_arrow, to_dictionary, validity_buffer
from lance_nb.encodings.base import (
    AllNull,
    Constant,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    PackedStruct,
    VariableWidth,
)
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.leaf_values import MAKERS, make


def fixed(values: Any, kind: str = "<i4") -> FixedWidth:
    array = np.array(values, kind)
    return FixedWidth(8 * array.itemsize, array.size, array.view(np.uint8))


def bits(*values: int) -> np.ndarray[Any, Any]:
    return np.packbits(np.array(values, bool), bitorder="little")


def texts(*values: bytes, kind: str = "<i4") -> VariableWidth:
    offsets = np.cumsum([0, *map(len, values)]).astype(kind)
    return VariableWidth(len(values), offsets, np.frombuffer(b"".join(values), np.uint8))


MASK = np.array([True, False, True])


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int32(), fixed([1, -2, 3]), [1, -2, 3]),
        (pa.uint8(), fixed([1, 2, 255], "u1"), [1, 2, 255]),
        (pa.float64(), fixed([0.5, 1, -2], "<f8"), [0.5, 1, -2]),
        (pa.float16(), fixed([0.5, 1, -2], "<f2"), [0.5, 1, -2]),
        (pa.date32(), fixed([0, 1, 2]), None),
        (pa.timestamp("us", "UTC"), fixed([0, 1, 2], "<i8"), None),
        (pa.decimal128(20, 2), FixedWidth(128, 3, np.zeros(48, np.uint8)), None),
        (pa.decimal256(50, 2), FixedWidth(256, 3, np.zeros(96, np.uint8)), None),
        (
            pa.binary(2),
            FixedWidth(16, 3, np.frombuffer(b"abcdef", np.uint8)),
            [b"ab", b"cd", b"ef"],
        ),
        (pa.bool_(), FixedWidth(1, 3, bits(1, 0, 1)), [True, False, True]),
        (pa.bool_(), fixed([1, 0, 1], "u1"), [True, False, True]),
        (pa.null(), fixed([1, 2, 3]), [None] * 3),
        (pa.string(), texts(b"a", b"", b"bc"), ["a", "", "bc"]),
        (pa.large_binary(), texts(b"a", b"", b"\xff"), [b"a", b"", b"\xff"]),
        (pa.string(), texts(b"a", b"", "é".encode(), kind="<i8"), ["a", "", "é"]),
        (pa.int32(), Constant(3, fixed([7])), [7, 7, 7]),
        (pa.string(), Constant(3, texts(b"ab")), ["ab"] * 3),
        (pa.int32(), AllNull(3), [None] * 3),
        (pa.struct([]), AllNull(3), [{}] * 3),
        (
            pa.list_(pa.int32(), 2),
            FixedSizeList(2, 3, fixed(range(6)), None),
            [[0, 1], [2, 3], [4, 5]],
        ),
        (
            pa.list_(pa.int32(), 2),
            FixedSizeList(2, 3, fixed(range(6)), bits(1, 0, 1, 1, 1, 1)),
            [[0, None], [2, 3], [4, 5]],
        ),
        (
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            PackedStruct(3, (fixed([1, 2, 3]), texts(b"x", b"y", b"z"))),
            [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}],
        ),
        (
            pa.string(),
            Dictionary(3, fixed([1, 0, 1], "u1"), texts(b"no", b"yes")),
            ["yes", "no", "yes"],
        ),
        (
            pa.dictionary(pa.int8(), pa.string()),
            Dictionary(3, fixed([1, 0, 1], "u1"), texts(b"no", b"yes")),
            ["yes", "no", "yes"],
        ),
        (
            pa.dictionary(pa.int16(), pa.string()),
            Dictionary(3, fixed([1, 0, 1], "<u4"), texts(b"no", b"yes")),
            ["yes", "no", "yes"],
        ),
    ],
)
def test_a_block_becomes_an_array(kind: pa.DataType, values: DataBlock, expected: Any) -> None:
    array = to_arrow(values, kind)
    array.validate(full=True)
    assert array.type == kind
    if expected is not None:
        assert array.to_pylist() == expected
    with_nulls = to_arrow(values, kind, MASK)
    with_nulls.validate(full=True)
    assert with_nulls.to_pylist()[1] is None
    assert with_nulls.to_pylist()[::2] == array.to_pylist()[::2]


def test_repeated_strings_beyond_2_gib_are_refused() -> None:
    value = VariableWidth(1, np.array([0, 1 << 20], np.int32), np.zeros(1 << 20, np.uint8))
    with pytest.raises(NotSupportedError, match=r"2048 repeated values .* read fewer rows"):
        to_arrow(Constant(2048, value), pa.string())
    keys = FixedWidth(8, 2048, np.zeros(2048, np.uint8))
    with pytest.raises(NotSupportedError, match="2147483648 bytes, more than the 2 GiB"):
        to_arrow(Dictionary(2048, keys, value), pa.binary())
    one = np.arange(2048) == 7  # what is null takes no room
    assert to_arrow(Constant(2048, value), pa.binary(), one).nbytes < 1 << 21


def test_the_index_of_a_null_may_be_anything() -> None:
    block = Dictionary(3, fixed([1, 99, 0], "u1"), texts(b"no", b"yes"))
    assert to_arrow(block, pa.string(), MASK).to_pylist() == ["yes", None, "no"]


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_a_dictionary_of_nulls_has_no_items(kind: pa.DataType) -> None:
    array = to_arrow(Dictionary(3, fixed([0, 0, 0], "u1"), AllNull(1)), kind)
    assert array.type == kind
    assert array.null_count == 3
    assert pa.types.is_string(kind) or len(array.dictionary) == 0


def test_no_mask_is_no_buffer() -> None:
    assert validity_buffer(None) is None
    assert validity_buffer(MASK).to_pybytes() == b"\x05"


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        (pa.int32(), fixed([1], "<i8")),
        (pa.string(), fixed([1])),
        (pa.list_(pa.int32()), fixed([1])),
        (pa.struct([("a", pa.int32())]), fixed([1])),
        (pa.dictionary(pa.int8(), pa.string()), fixed([1])),
        (pa.dictionary(pa.int8(), pa.string()), texts(b"a")),
        (pa.int32(), texts(b"abcd")),
        (pa.string(), texts(b"\xff")),
        (pa.large_string(), texts(b"ok", b"\xc3")),
        (pa.string(), texts(b"\xc3", b"\xa9")),
        (pa.list_(pa.int32(), 3), FixedSizeList(2, 1, fixed([1, 2]), None)),
        (pa.int32(), FixedSizeList(2, 1, fixed([1, 2]), None)),
        (pa.struct([("a", pa.int32())]), PackedStruct(1, (fixed([1]), fixed([2])))),
        (pa.int32(), PackedStruct(1, (fixed([1]),))),
        (pa.string(), Dictionary(1, fixed([2], "u1"), texts(b"no", b"yes"))),
        (pa.string(), Dictionary(1, FixedWidth(24, 1, np.zeros(3, np.uint8)), texts(b"no"))),
        (pa.string(), Dictionary(1, fixed([0], "u1"), texts())),
        (pa.binary(), VariableWidth(1, np.array([0, 2**31]), np.zeros(0, np.uint8))),
    ],
)
def test_a_block_of_another_kind_is_a_damaged_file(kind: pa.DataType, block: DataBlock) -> None:
    with pytest.raises(CorruptFileError):
        to_arrow(block, kind)


def test_an_index_that_its_type_cannot_hold_is_refused() -> None:
    items = fixed(range(300), "<i8")
    block = Dictionary(1, fixed([200], "u1"), items)
    with pytest.raises(CorruptFileError, match="dictionary indices of type int8"):
        to_arrow(block, pa.dictionary(pa.int8(), pa.int64()))
    assert to_arrow(block, pa.dictionary(pa.uint8(), pa.int64())).to_pylist() == [200]


@pytest.mark.parametrize("validity", [None, np.array([True, False, True])])
def test_values_without_a_dictionary_become_one(validity: np.ndarray | None) -> None:
    type_ = pa.dictionary(pa.int32(), pa.string())
    words = VariableWidth(3, np.array([0, 1, 3, 4], np.int32), np.frombuffer(b"abba", np.uint8))
    one = VariableWidth(1, np.array([0, 2], np.int32), np.frombuffer(b"bb", np.uint8))
    keys = FixedWidth(32, 3, np.array([1, 0, 1], "<u4").view(np.uint8))
    for block, expected in (
        (words, ["a", "bb", "a"]),
        (Constant(3, one), ["bb"] * 3),
        (Dictionary(3, keys, words), ["bb", "a", "bb"]),
    ):
        found = to_dictionary(block, type_, validity)
        found.validate(full=True)
        assert found.type == type_
        hidden = validity is not None
        assert found.to_pylist() == [None if hidden and at == 1 else one for at, one in
                                     enumerate(expected)]  # fmt: skip
    assert to_dictionary(AllNull(2), type_).to_pylist() == [None, None]


def test_no_rows_need_no_items() -> None:
    empty = to_arrow(Dictionary(0, fixed([], "u1"), texts()), pa.string())
    assert empty.equals(pa.array([], pa.string()))


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
