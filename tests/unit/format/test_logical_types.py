"""Type strings: every one, both ways, and garbage."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import NotSupportedError
from lance_nb.format.logical_types import arrow_to_logical, is_nested, leaf_to_arrow
from tests.support.logical_types import LEAVES

NESTED = {
    "struct": pa.struct([("a", pa.int8())]),
    "list": pa.list_(pa.int8()),
    "list.struct": pa.list_(pa.struct([("a", pa.int8())])),
    "large_list": pa.large_list(pa.int8()),
    "large_list.struct": pa.large_list(pa.struct([("a", pa.int8())])),
    "map": pa.map_(pa.string(), pa.int8()),
    "fixed_size_list:struct:2": pa.list_(pa.struct([("a", pa.int8())]), 2),
}


@pytest.mark.parametrize(("text", "arrow"), LEAVES.items())
def test_a_leaf_type_reads_and_writes(text: str, arrow: pa.DataType):
    assert leaf_to_arrow(text) == arrow
    assert arrow_to_logical(arrow) == text
    assert not is_nested(text)


@pytest.mark.parametrize(("text", "arrow"), NESTED.items())
def test_a_nested_type_is_named_without_its_children(text: str, arrow: pa.DataType):
    assert arrow_to_logical(arrow) == text
    assert is_nested(text)


def test_types_without_a_name_of_their_own_take_the_nearest():
    assert arrow_to_logical(pa.string_view()) == "string"
    assert arrow_to_logical(pa.binary_view()) == "binary"
    assert arrow_to_logical(pa.dictionary(pa.int8(), pa.string(), True)) == "dict:string:int8:false"
    assert leaf_to_arrow("dict:string:int8:true").ordered
    assert leaf_to_arrow("json") == pa.large_binary()


def test_bfloat16_items_carry_their_extension():
    item = leaf_to_arrow("fixed_size_list:lance.bfloat16:4").value_field
    assert item.type == pa.binary(2)
    assert item.metadata[b"ARROW:extension:name"] == b"lance.bfloat16"
    assert arrow_to_logical(pa.list_(item, 4)) == "fixed_size_list:lance.bfloat16:4"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "int7",
        "INT8",
        " int8",
        "timestamp:us",
        "timestamp:xx:-",
        "decimal:128:99:2",
        "decimal:64:5:2",
        "decimal:128:x:y",
        "decimal:128:" + "9" * 5000 + ":2",
        "fixed_size_binary:-1",
        "fixed_size_binary:99999999999",
        "dict:string:float:false",
        "dict:nothing:int8:false",
        "fixed_size_list:float",
        "fixed_size_list:float:0",
        "fixed_size_list:float:-4",
        "fixed_size_list:float:99999999999999999999",
        "fixed_size_list:" * 5000 + "float" + ":2" * 5000,
        "dict:" * 5000 + "string" + ":int8:false" * 5000,
        "duration:",
        "\0",
        "struct:2",
    ],
)
def test_garbage_is_refused_by_name(text: str):
    with pytest.raises(NotSupportedError, match="is not known") as caught:
        leaf_to_arrow(text)
    assert len(str(caught.value)) < 300


@given(st.text(alphabet="abcdefgilmnoprstuxz_:0123456789.-", max_size=40))
def test_any_text_is_a_type_or_refused(text: str):
    with suppress(NotSupportedError):
        assert isinstance(leaf_to_arrow(text), pa.DataType)


@pytest.mark.parametrize(
    "arrow",
    [
        pa.decimal32(5, 1),
        pa.decimal64(10, 1),
        pa.month_day_nano_interval(),
        pa.list_view(pa.int32()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.map_(pa.string(), pa.int32(), keys_sorted=True),
        pa.list_(pa.int8(), 0),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.list_(pa.map_(pa.string(), pa.int32()), 2),
        pa.dictionary(pa.int16(), pa.timestamp("us", "UTC")),
        pa.dictionary(pa.int16(), pa.list_(pa.int8())),
    ],
    ids=str,
)
def test_what_the_format_cannot_store_is_refused(arrow: pa.DataType):
    with pytest.raises(NotSupportedError, match="cannot store"):
        arrow_to_logical(arrow)
