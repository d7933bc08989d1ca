"""Change the metadata of fields, and what follows from it: the unenforced primary key.

Limits: a primary key is set once and never changed; metadata that names it and sets none is
refused. A clustering key is not set this way. Metadata values are texts here, bytes in the schema.
Source: measured with pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lance_nb.errors import InvalidInputError
from lance_nb.format.field import Field, Keys
from lance_nb.format.schema import Schema

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
_TRUE = ("true", "1", "yes")

Change = Callable[[Mapping[str, str]], dict[str, str]]


def with_field_metadata(schema: Schema, changes: Mapping[int, Change]) -> Schema:
    """Return the schema with the metadata of some fields changed. Raises InvalidInputError."""
    fields = tuple(_changed(one, changes) for one in schema.fields)
    after = Schema(fields, schema.metadata)
    before = _primary_key(schema)
    if before and _primary_key(after) != before:
        raise InvalidInputError("the unenforced primary key is set once and cannot be changed")
    return after


def _changed(field: Field, changes: Mapping[int, Change]) -> Field:
    children = tuple(_changed(one, changes) for one in field.children)
    if field.id not in changes:
        return replace(field, children=children)
    texts = {key: value.decode("utf-8", "replace") for key, value in field.metadata.items()}
    after = changes[field.id](texts)
    metadata = {
        key: field.metadata[key] if texts.get(key) == value else value.encode()
        for key, value in after.items()
    }
    return replace(field, children=children, metadata=metadata, keys=_keys(field, after))


def _keys(field: Field, metadata: Mapping[str, str]) -> Keys:
    position = _position(metadata)
    if position is None and metadata.get(PRIMARY_KEY, "").lower() in _TRUE:
        position = 0
    if position is None and not metadata.keys().isdisjoint((PRIMARY_KEY, PRIMARY_KEY_POSITION)):
        raise InvalidInputError(f"field {field.name!r}: the primary key metadata sets no key")
    return replace(field.keys, primary=position is not None, primary_position=position or 0)


def _position(metadata: Mapping[str, str]) -> int | None:
    text = metadata.get(PRIMARY_KEY_POSITION, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _primary_key(schema: Schema) -> set[tuple[int, int]]:
    return {(one.id, one.keys.primary_position) for one in schema.walk() if one.keys.primary}
