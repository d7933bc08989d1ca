"""Arrow schemas as JSON: there and back, and what is refused on either way."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import ArgumentError, InvalidInputError, LanceError, NotSupportedError
from lance_nb.format.arrow_schema import extension_parameters
from lance_nb.format.field import DEPTH_MAX
from lance_nb.format.schema_json import json_to_schema, schema_to_json
from tests.support.logical_types import LEAVES

ITEM = pa.field("item", pa.int8(), nullable=False, metadata={"m": "1"})
NESTED = [
    (pa.struct([("a", pa.int8()), ("b", pa.string())]), "struct", ["a", "b"], None),
    (pa.struct([]), "struct", [], None),
    (pa.list_(ITEM), "list", ["item"], None),
    (pa.large_list(ITEM), "large_list", ["item"], None),
    (pa.list_(ITEM, 3), "fixed_size_list", ["item"], 3),
    (pa.list_(ITEM, 0), "fixed_size_list", ["item"], 0),
]


def of_type(kind: Any, **more: Any) -> dict[str, Any]:
    return {"fields": [{"name": "a", "type": kind, "nullable": True, **more}]}


def nested(depth: int) -> dict[str, Any]:
    """Return the JSON of a column of structs, ``depth`` fields deep."""
    field: dict[str, Any] = {"name": "x", "type": {"type": "int8"}, "nullable": True}
    for _ in range(depth - 1):
        field = {"name": "x", "type": {"type": "struct", "fields": [field]}, "nullable": True}
    return {"fields": [field]}


@pytest.mark.parametrize("logical", LEAVES)
def test_a_leaf_comes_back(logical: str) -> None:
    schema = pa.schema([pa.field("a", LEAVES[logical], nullable=logical == "null")])
    made = schema_to_json(schema)
    assert json.loads(json.dumps(made)) == made
    assert json_to_schema(made).equals(schema, check_metadata=True)
    if not logical.startswith("fixed_size"):
        assert made["fields"][0]["type"] == {"type": logical}


@pytest.mark.parametrize(("kind", "name", "below", "length"), NESTED, ids=[str(n) for n in NESTED])
def test_nested_types_have_fields_below(
    kind: pa.DataType, name: str, below: list[str], length: int | None
) -> None:
    schema = pa.schema([("a", kind)])
    made = schema_to_json(schema)
    (field,) = made["fields"]
    assert field["type"]["type"] == name
    assert [one["name"] for one in field["type"]["fields"]] == below
    assert field["type"].get("length") == length
    assert json_to_schema(made).equals(schema, check_metadata=True)


def test_bytes_of_fixed_width_have_a_length() -> None:
    made = schema_to_json(pa.schema([("a", pa.binary(16))]))
    assert made["fields"][0]["type"] == {"type": "fixed_size_binary", "length": 16}


def test_metadata_is_kept_and_left_out_where_there_is_none() -> None:
    field = pa.field("a", pa.int8(), metadata={"k": "v"})
    made = schema_to_json(pa.schema([field, pa.field("b", pa.int8())], {"s": "t"}))
    assert made["metadata"] == {"s": "t"}
    assert made["fields"][0]["metadata"] == {"k": "v"}
    assert "metadata" not in made["fields"][1]
    back = json_to_schema(made)
    assert back.metadata == {b"s": b"t"}
    assert [one.metadata for one in back] == [{b"k": b"v"}, None]
    empty = json_to_schema({"fields": [], "metadata": {}})
    assert (empty.names, empty.metadata) == ([], None)
    assert "metadata" not in schema_to_json(empty)


@pytest.mark.parametrize(("kind", "name"), [(pa.uuid(), "arrow.uuid"), (pa.json_(), "arrow.json")])
def test_an_extension_type_is_its_storage_and_its_name(kind: pa.DataType, name: str) -> None:
    schema = pa.schema([pa.field("a", kind, metadata={"k": "v"})])
    made = schema_to_json(schema)
    assert made["fields"][0]["metadata"]["ARROW:extension:name"] == name
    assert made["fields"][0]["metadata"]["k"] == "v"
    (back,) = json_to_schema(made)
    assert back.type == kind
    assert back.metadata == {b"k": b"v"}


@pytest.mark.parametrize(
    "kind",
    [pa.map_(pa.string(), pa.int8()), pa.string_view(), pa.binary_view(),
     pa.struct([("m", pa.map_(pa.string(), pa.int8()))])],
    ids=str,
)  # fmt: skip
def test_types_without_a_name_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="no name for"):
        schema_to_json(pa.schema([("a", kind)]))


def test_only_a_schema_is_taken() -> None:
    with pytest.raises(ArgumentError, match=r"pyarrow\.Schema, not DataType"):
        schema_to_json(pa.int8())


def test_types_nest_only_so_deep() -> None:
    schema = json_to_schema(nested(DEPTH_MAX))
    assert schema_to_json(schema) == nested(DEPTH_MAX)
    with pytest.raises(InvalidInputError, match=f"at most {DEPTH_MAX} deep"):
        json_to_schema(nested(DEPTH_MAX + 1))
    deeper = pa.schema([("top", pa.struct(list(schema)))])
    with pytest.raises(NotSupportedError, match=f"at most {DEPTH_MAX} deep"):
        schema_to_json(deeper)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "KeyError"),
        (None, "TypeError"),
        ({"fields": {}}, "fields are a list, not dict"),
        ({"fields": [3]}, "TypeError"),
        ({"fields": [{"name": "a", "type": {"type": "int8"}}]}, "nullable"),
        ({"fields": [{"name": 3, "type": {"type": "int8"}, "nullable": True}]}, "has a name"),
        ({"fields": [{"name": "a", "type": {"type": "int8"}, "nullable": 1}]}, "nullable"),
        (of_type({"type": 3}), "3 is no type"),
        (of_type({"type": "json"}), "'json' is no type"),
        (of_type({"type": "struct"}), "KeyError"),
        (of_type({"type": "list", "fields": []}), "one field below it, not 0"),
        (of_type({"type": "fixed_size_binary"}), "KeyError"),
        (of_type({"type": "fixed_size_binary", "length": -1}), "not a number: -1"),
        (of_type({"type": "fixed_size_binary", "length": 2**31}), "not a number: 2147483648"),
        (of_type({"type": "fixed_size_binary", "length": True}), "not a number: True"),
        (of_type({"type": "fixed_size_binary", "length": "4"}), "not a number: '4'"),
        (of_type({"type": "int8"}, metadata={"a": 1}), "maps texts to texts"),
        (of_type({"type": "int8"}, metadata={1: "a"}), "maps texts to texts"),
        (of_type({"type": "int8"}, metadata=[1]), "AttributeError"),
    ],
)
def test_other_values_are_refused(value: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        json_to_schema(value)


def test_unknown_types_are_named() -> None:
    with pytest.raises(NotSupportedError, match="'quaternion'"):
        json_to_schema(of_type({"type": "quaternion"}))
    with pytest.raises(LanceError):
        json_to_schema(of_type({"type": "list", "fields": nested(1)["fields"] * 2}))


def test_the_longest_bytes_of_fixed_width_fit() -> None:
    made = json_to_schema(of_type({"type": "fixed_size_binary", "length": 2**31 - 1}))
    assert made.field("a").type == pa.binary(2**31 - 1)


def test_parameters_of_an_extension_type_of_arrow_are_kept() -> None:
    field = pa.field("t", pa.fixed_shape_tensor(pa.int32(), [2, 3]))

    assert b'"shape":[2,3]' in extension_parameters(field.type)
