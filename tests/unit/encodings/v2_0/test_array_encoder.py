"""Pages of 2.0 files are the bytes pylance writes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.v2_0.array_encoder import (
    BLOB_COLUMN,
    EncodedArray,
    encode_array,
    encode_lists,
    encode_places,
    encode_structs,
)
from lance_nb.errors import InvalidInputError, NotSupportedError


def shown(page: EncodedArray) -> tuple[str, list[str]]:
    text = " ".join(str(pb.ArrayEncoding.FromString(page.encoding)).split())
    return text, [bytes(one).hex() for one in page.buffers]


FLAT_32 = "nullable { no_nulls { values { flat { bits_per_value: 32 buffer { } } } } }"
ENDS = "nullable { no_nulls { values { flat { bits_per_value: 64 buffer { } } } } }"


def test_values_without_nulls():
    assert shown(encode_array(pa.array([1, 2], pa.int32()))) == (FLAT_32, ["0100000002000000"])


def test_values_with_nulls_have_a_bitmap():
    text, buffers = shown(encode_array(pa.array([b"abc", None], pa.binary(3))))
    assert text == (
        "nullable { some_nulls { validity { flat { bits_per_value: 1 buffer { } } } "
        "values { flat { bits_per_value: 24 buffer { buffer_index: 1 } } } } }"
    )
    assert buffers == ["01", "616263000000"]


@pytest.mark.parametrize("array", [pa.nulls(3), pa.array([None] * 3, pa.int8())])
def test_nothing_but_nulls_has_no_buffers(array: pa.Array):
    assert shown(encode_array(array)) == ("nullable { all_nulls { } }", [])


def test_strings_have_ends_and_nulls_an_adjustment():
    text, buffers = shown(encode_array(pa.array(["ab", None, "c"])))
    assert text == (
        f"binary {{ indices {{ {ENDS} }} bytes {{ flat {{ bits_per_value: 8 "
        "buffer { buffer_index: 1 } } } null_adjustment: 4 }"
    )
    assert buffers[1] == b"abc".hex()
    assert np.frombuffer(bytes.fromhex(buffers[0]), "<u8").tolist() == [2, 6, 3]


def test_vectors_with_null_items():
    array = pa.array([[1, None], [3, 4], None], pa.list_(pa.int32(), 2))
    text, buffers = shown(encode_array(array))
    assert text.startswith("nullable { some_nulls { validity")
    assert "items { nullable { some_nulls { validity" in text
    assert buffers[:2] == ["03", "0d"]


def test_dictionaries_keep_a_null_item():
    array = pa.array(["a", None, "b"]).dictionary_encode()
    text, buffers = shown(encode_array(array))
    assert text.endswith("null_adjustment: 3 } } num_dictionary_items: 3 }")
    assert np.frombuffer(bytes.fromhex(buffers[0]), "<i4").tolist() == [0, 2, 1]
    assert np.frombuffer(bytes.fromhex(buffers[1]), "<u8").tolist() == [1, 2, 5]


def test_a_full_dictionary_has_no_room_for_null():
    values = pa.array([str(k) for k in range(128)])
    keys = pa.array([*range(127), None], pa.int8())
    with pytest.raises(InvalidInputError, match="wider keys"):
        encode_array(pa.DictionaryArray.from_arrays(keys, values))


def test_packed_structs_are_rows():
    kind = pa.struct([("a", pa.int16()), ("b", pa.list_(pa.float32(), 2))])
    text, buffers = shown(encode_array(pa.array([{"a": 1, "b": [1.0, 2.0]}], kind)))
    assert text.startswith("packed_struct { inner { nullable { no_nulls")
    assert buffers == ["01000000803f00000040"]


@pytest.mark.parametrize(
    "rows", [[{"a": 1}, None], [{"a": None}]], ids=["null struct", "null field"]
)
def test_packed_structs_hold_no_nulls(rows: list[object]):
    with pytest.raises(NotSupportedError):
        encode_array(pa.array(rows, pa.struct([("a", pa.int16())])))


def test_lists_have_ends():
    text, buffers = shown(encode_lists(np.array([2, 0, 0, 1]), np.array([0, 1, 0, 0], bool)))
    assert text == f"list {{ offsets {{ {ENDS} }} null_offset_adjustment: 4 num_items: 3 }}"
    assert np.frombuffer(bytes.fromhex(buffers[0]), "<u8").tolist() == [2, 6, 2, 3]


def test_structs_hold_nothing():
    assert shown(encode_structs()) == ("struct { }", [])


def test_places_of_payloads_are_pairs():
    text, buffers = shown(encode_places(np.array([64, 1]), np.array([90, 0])))
    assert text.count("bits_per_value: 64") == 2
    assert np.frombuffer(bytes.fromhex(buffers[0]), "<u8").tolist() == [64, 90, 1, 0]
    assert bytes.fromhex("1a040a020a00") == BLOB_COLUMN


@pytest.mark.parametrize(
    ("items", "data"),
    [
        (pa.array([5, 6], pa.int16()), "050006000000"),
        (pa.array([b"abc", b"def"], pa.binary(3)), b"abcdef\0\0\0".hex()),
    ],
)
def test_a_null_item_of_fixed_width_is_zeros(items: pa.Array, data: str):
    keys = pa.array([1, None, 0], pa.int8())
    text, buffers = shown(encode_array(pa.DictionaryArray.from_arrays(keys, items)))
    assert text.endswith("num_dictionary_items: 3 }")
    assert buffers[0] == "010200"
    assert buffers[1:] == ["03", data]


def test_bits_with_nulls_have_no_dictionary():
    keys = pa.array([1, None], pa.int8())
    flags = pa.DictionaryArray.from_arrays(keys, pa.array([True, False]))
    with pytest.raises(NotSupportedError, match="a dictionary of such values"):
        encode_array(flags)


def test_a_dictionary_has_room_for_null_up_to_the_last_key():
    values = pa.array([str(k) for k in range(127)])
    keys = pa.array([126, None], pa.int8())
    text, buffers = shown(encode_array(pa.DictionaryArray.from_arrays(keys, values)))
    assert text.endswith("num_dictionary_items: 128 }")
    assert buffers[0] == "7e7f"


def test_lists_without_rows_and_with_nulls_only():
    text, _ = shown(encode_lists(np.zeros(0, np.int64), None))
    assert text == f"list {{ offsets {{ {ENDS} }} null_offset_adjustment: 1 }}"
    _, buffers = shown(encode_lists(np.zeros(2, np.int64), np.ones(2, bool)))
    assert np.frombuffer(bytes.fromhex(buffers[0]), "<u8").tolist() == [1, 1]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (pa.struct([("s", pa.struct([("a", pa.int8())]))]), [{"s": {"a": 1}}]),
        (pa.struct([("b", pa.bool_())]), [{"b": True}]),
        (pa.struct([("l", pa.list_(pa.bool_(), 8))]), [{"l": [True] * 8}]),
        (pa.struct([("t", pa.string())]), [{"t": "x"}]),
    ],
)
def test_packed_structs_have_fields_of_whole_bytes(kind: pa.DataType, rows: list[object]):
    with pytest.raises(NotSupportedError):
        encode_array(pa.array(rows, kind))
