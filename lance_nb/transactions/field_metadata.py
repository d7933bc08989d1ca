"""Change the metadata of fields, and what follows from it: the unenforced keys of the schema.

Limits: a primary or clustering key is set once and never changed; a key that does not set one is
refused. Metadata values are texts here, bytes in the schema.
Source: lance-table as measured with pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lance_nb.errors import InvalidInputError
from lance_nb.format.field import Field, Keys
from lance_nb.format.schema import Schema

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"
_TRUE = ("true", "1", "yes")

Change = Callable[[Mapping[str, str]], dict[str, str]]


def with_field_metadata(schema: Schema, changes: Mapping[int, Change]) -> Schema:
    """Return the schema with the metadata of some fields changed. Raises InvalidInputError."""
    fields = tuple(_changed(one, changes) for one in schema.fields)
    after = Schema(fields, schema.metadata)
    for what, ids in (("primary", _primary_key), ("clustering", _clustering_key)):
        before = ids(schema)
        if before and ids(after) != before:
            raise InvalidInputError(f"the unenforced {what} key is set once and cannot be changed")
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
    primary = _position(metadata, PRIMARY_KEY_POSITION)
    if primary is None and metadata.get(PRIMARY_KEY, "").lower() in _TRUE:
        primary = 0
    clustering = _position(metadata, CLUSTERING_KEY_POSITION)
    if primary is None and (PRIMARY_KEY in metadata or PRIMARY_KEY_POSITION in metadata):
        raise InvalidInputError(f"field {field.name!r}: the primary key metadata sets no key")
    if clustering is None and CLUSTERING_KEY_POSITION in metadata:
        raise InvalidInputError(f"field {field.name!r}: the clustering key metadata sets no key")
    return Keys(primary is not None, primary or 0, clustering is not None, clustering or 0)


def _position(metadata: Mapping[str, str], key: str) -> int | None:
    text = metadata.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _primary_key(schema: Schema) -> set[tuple[int, int]]:
    return {(one.id, one.keys.primary_position) for one in schema.walk() if one.keys.primary}


def _clustering_key(schema: Schema) -> set[tuple[int, int]]:
    return {(one.id, one.keys.clustering_position) for one in schema.walk() if one.keys.clustering}
