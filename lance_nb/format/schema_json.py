"""Arrow schemas as JSON, in the form of pylance's ``schema_to_json``.

Layout: ``{"fields": [{"name", "type": {"type", "fields", "length"}, "nullable", "metadata"}],
"metadata"}``. ``type`` is the logical type (logical_types.py); lists and structs have ``fields``,
``fixed_size_list`` and ``fixed_size_binary`` a ``length``. Empty values are omitted.

Limits: types nest at most ``DEPTH_MAX`` deep.
Not supported: maps, views, run-end encoding, intervals, unions, as in pylance.
Source: ``lance.schema`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_nb.errors import ArgumentError, InvalidInputError, NotSupportedError
from lance_nb.format.arrow_schema import extension_parameters, resolve_extensions
from lance_nb.format.field import DEPTH_MAX
from lance_nb.format.logical_types import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    JSON,
    arrow_to_logical,
    leaf_to_arrow,
)

_LIST, _LARGE, _FIXED, _STRUCT = "list", "large_list", "fixed_size_list", "struct"
_BYTES = "fixed_size_binary"


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return an Arrow schema as a dict that JSON can hold.

    Raises NotSupportedError for maps, views and other types that the form has no name for.

    >>> import pyarrow as pa
    >>> from lance_nb import json_to_schema, schema_to_json
    >>> found = schema_to_json(pa.schema([("a", pa.int64())]))
    >>> found
    {'fields': [{'name': 'a', 'type': {'type': 'int64'}, 'nullable': True}]}
    >>> json_to_schema(found).names
    ['a']
    """
    if not isinstance(schema, pa.Schema):
        raise ArgumentError(f"expected a pyarrow.Schema, not {type(schema).__name__}")
    described: dict[str, Any] = {"fields": [_field_to_json(field, 1) for field in schema]}
    if schema.metadata:
        described["metadata"] = _texts(schema.metadata)
    return described


def json_to_schema(schema_json: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema of the JSON of ``schema_to_json``, here or in pylance.

    Args:
        schema_json: the dict.

    Raises InvalidInputError for other values, NotSupportedError for types that are not known.

    Examples:
        >>> column = {"name": "a", "type": {"type": "int64"}, "nullable": True}
        >>> lance_nb.json_to_schema({"fields": [column]}).field("a").type
        DataType(int64)
    """
    try:
        fields = [_field_from_json(field_json, 1) for field_json in _list(schema_json["fields"])]
        return pa.schema(fields, metadata=_metadata(schema_json))
    except (KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"not the JSON of a schema (see schema_to_json): {type(error).__name__}: {error}"
        ) from error


# --- to JSON --------------------------------------------------------------------------------------


def _field_to_json(field: pa.Field, depth: int) -> dict[str, Any]:
    if depth > DEPTH_MAX:
        raise NotSupportedError(f"types nest at most {DEPTH_MAX} deep")
    metadata = _texts(field.metadata or {})
    storage = field.type
    if isinstance(storage, pa.BaseExtensionType):
        metadata[EXTENSION_NAME] = storage.extension_name
        metadata[EXTENSION_METADATA] = extension_parameters(storage).decode("utf-8", "replace")
        storage = storage.storage_type
    field_json = {
        "name": field.name,
        "type": _type_to_json(storage, depth),
        "nullable": field.nullable,
    }
    return field_json | ({"metadata": metadata} if metadata else {})


def _type_to_json(arrow: pa.DataType, depth: int) -> dict[str, Any]:
    kinds = pa.types
    if kinds.is_struct(arrow):
        below = [_field_to_json(field, depth + 1) for field in arrow]
        return {"type": _STRUCT, "fields": below}
    if kinds.is_fixed_size_binary(arrow):
        return {"type": _BYTES, "length": arrow.byte_width}
    for is_kind, name in (
        (kinds.is_list, _LIST),
        (kinds.is_large_list, _LARGE),
        (kinds.is_fixed_size_list, _FIXED),
    ):
        if is_kind(arrow):
            type_json: dict[str, Any] = {
                "type": name,
                "fields": [_field_to_json(arrow.value_field, depth + 1)],
            }
            return type_json | ({"length": arrow.list_size} if name == _FIXED else {})
    if kinds.is_map(arrow) or kinds.is_string_view(arrow) or kinds.is_binary_view(arrow):
        raise NotSupportedError(f"the JSON of a schema has no name for {arrow}")
    return {"type": arrow_to_logical(arrow)}


def _texts(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for key, value in metadata.items()}  # fmt: skip


# --- from JSON ------------------------------------------------------------------------------------


def _field_from_json(value: Mapping[str, Any], depth: int) -> pa.Field:
    if depth > DEPTH_MAX:
        raise InvalidInputError(f"types nest at most {DEPTH_MAX} deep")
    nullable = value["nullable"]
    if not isinstance(nullable, bool) or not isinstance(value["name"], str):
        raise InvalidInputError(
            f"a field has a name and says whether it is nullable: {value!r:.80}"
        )
    arrow = _type_from_json(value["type"], depth)
    field = pa.field(value["name"], arrow, nullable, _metadata(value))
    return resolve_extensions(field) if EXTENSION_NAME in (value.get("metadata") or {}) else field


def _type_from_json(value: Mapping[str, Any], depth: int) -> pa.DataType:
    name = value["type"]
    if name == _BYTES:
        return pa.binary(_length(value))
    if name not in (_STRUCT, _LIST, _LARGE, _FIXED):
        if not isinstance(name, str) or name == JSON:
            raise InvalidInputError(f"{name!r:.80} is no type")
        return leaf_to_arrow(name)
    below = [_field_from_json(field_json, depth + 1) for field_json in _list(value["fields"])]
    if name == _STRUCT:
        return pa.struct(below)
    if len(below) != 1:
        raise InvalidInputError(f"a {name} has one field below it, not {len(below)}")
    if name == _FIXED:
        return pa.list_(below[0], _length(value))
    return pa.list_(below[0]) if name == _LIST else pa.large_list(below[0])


def _length(value: Mapping[str, Any]) -> int:
    length = value["length"]
    if isinstance(length, bool) or not isinstance(length, int) or not 0 <= length < 2**31:
        raise InvalidInputError(f"the length of a {value['type']} is not a number: {length!r:.40}")
    return length


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInputError(f"fields are a list, not {type(value).__name__}")
    return list(value)


def _metadata(value: Mapping[str, Any]) -> dict[str, str] | None:
    metadata = value.get("metadata")
    if metadata is None:
        return None
    if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise InvalidInputError(f"metadata maps texts to texts, not {metadata!r:.80}")
    return dict(metadata) or None
