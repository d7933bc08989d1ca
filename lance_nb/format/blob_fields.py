"""Blob columns in schemas: their markers, and the descriptors that data files hold instead of them.

Files up to 2.1 mark a large_binary field with the key ``lance-encoding:blob``. Since 2.2 a dataset
has a struct of extension type ``lance.blob.v2`` (``data`` or ``uri``; ``position`` and ``size``
select a part of the object at the URI); its data files hold a packed descriptor of five fields
instead, whose parts have no identity (id and parent -1).

File writers take the values of both in one form, ``BLOB_VALUES``: bytes, a reference by URI, or a
payload that is stored already and copied (``object`` is its index among the objects that the
writer was given, ``position`` and ``size`` the range in it). A reference with ``base`` is written
unchanged.

Source: spec page "blob"; schemas and descriptors of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.field import TOP, Field
from lance_nb.format.logical_types import EXTENSION_NAME, STRUCT

BLOB_KEY = "lance-encoding:blob"
PACKED_KEY = "lance-encoding:packed"
BLOB_V2_EXTENSION = "lance.blob.v2"

DESCRIPTION_V2 = pa.struct(
    [
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("position", pa.uint64(), nullable=False),
        pa.field("size", pa.uint64(), nullable=False),
        pa.field("blob_id", pa.uint32(), nullable=False),
        pa.field("blob_uri", pa.string(), nullable=False),
    ]
)
BLOB_INPUT = pa.struct(
    [
        ("data", pa.large_binary()),
        ("uri", pa.string()),
        ("position", pa.uint64()),
        ("size", pa.uint64()),
    ]
)
BLOB_VALUES = pa.struct([*BLOB_INPUT, ("object", pa.uint32()), ("base", pa.uint32())])
_STORED = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
_NO_ID, _PLAIN, _VAR_BINARY = -1, 1, 2


def is_blob_v2(field: Field) -> bool:
    """Return whether a field is a blob of the second generation."""
    return field.extension_name == BLOB_V2_EXTENSION


def is_blob_v1(field: Field) -> bool:
    """Return whether a field is a marked large_binary."""
    return field.metadata.get(BLOB_KEY, b"").lower() == b"true" and not field.children


def is_blob(field: Field) -> bool:
    """Return whether a field is a blob of any generation."""
    return is_blob_v1(field) or is_blob_v2(field)


def holds_blobs(field: Field) -> bool:
    """Return whether a field is a blob, or has one inside."""
    return any(is_blob(part) for part in field.walk())


def descriptor_field(field: Field) -> Field:
    """Return a field as the descriptor of a data file holds it: blobs as they are stored."""
    if is_blob_v2(field):
        parts = tuple(
            Field(
                _NO_ID,
                TOP,
                part.name,
                str(part.type),
                nullable=False,
                encoding=_VAR_BINARY if pa.types.is_string(part.type) else _PLAIN,
            )
            for part in DESCRIPTION_V2
        )
        marks = {PACKED_KEY: b"true", BLOB_KEY: b"true"}
        return replace(field, children=parts, metadata=marks, extension_name="")
    if not field.children:
        return field
    return replace(field, children=tuple(descriptor_field(child) for child in field.children))


def descriptor_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return top-level fields as the descriptor of a data file holds them; mostly as they are."""
    if not any(holds_blobs(field) for field in fields if field.children or field.extension_name):
        return fields
    return tuple(map(descriptor_field, fields))


def without_descriptors(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Undo ``descriptor_field`` for the fields of a data file.

    The parts of descriptors have no parent either, so they stand among the fields at the top.
    """
    names = DESCRIPTION_V2.names
    return tuple(
        _described(field) for field in fields if field.id != _NO_ID or field.name not in names
    )


def _described(field: Field) -> Field:
    marks = (field.metadata.get(PACKED_KEY), field.metadata.get(BLOB_KEY))
    if field.children:
        return replace(field, children=tuple(map(_described, field.children)))
    if field.logical_type != STRUCT or marks != (b"true", b"true"):
        return field
    return replace(field, extension_name=BLOB_V2_EXTENSION)


def input_type(field: Field, storage: pa.DataType) -> pa.DataType:
    """Return the type that values of a field are converted to; blobs become ``BLOB_VALUES``."""
    if is_blob_v2(field) or (is_blob_v1(field) and pa.types.is_large_binary(storage)):
        return BLOB_VALUES
    if not holds_blobs(field):
        return storage
    if len(field.children) == 1 and (pa.types.is_list(storage) or pa.types.is_large_list(storage)):
        item = storage.value_field
        return _list_of(storage, item.with_type(input_type(field.children[0], item.type)))
    if not pa.types.is_struct(storage) or len(field.children) != storage.num_fields:
        return storage
    parts = [
        storage.field(index).with_type(input_type(child, storage.field(index).type))
        for index, child in enumerate(field.children)
    ]
    return pa.struct(parts)


def with_blobs(schema: pa.Schema, file_version: tuple[int, int]) -> pa.Schema:
    """Return the schema that a dataset of this file version has for data of this schema.

    In 2.2 marked binary columns become blobs of the second generation. Raises NotSupportedError for
    those in earlier versions, and for marked columns of other types, among them what a scan of
    blobs returns.
    """
    fields = list(schema)
    stored = [_converted(field, file_version) for field in fields]
    if all(new is old for new, old in zip(stored, fields, strict=True)):
        return schema
    return pa.schema(stored, schema.metadata)


def _converted(field: pa.Field, file_version: tuple[int, int]) -> pa.Field:
    kind = field.type
    name = kind.extension_name if isinstance(kind, pa.BaseExtensionType) else None
    marks = field.metadata or {}
    if name is None and not marks and not pa.types.is_nested(kind):
        return field
    if BLOB_V2_EXTENSION in (name, marks.get(EXTENSION_NAME.encode(), b"").decode()):
        if file_version < (2, 2):
            raise NotSupportedError(
                f"column {field.name!r} holds blobs of the second generation, which need "
                "data_storage_version 2.2"
            )
        return field
    is_marked = marks.get(BLOB_KEY.encode(), b"").lower() == b"true"
    if is_marked and (pa.types.is_large_binary(kind) or pa.types.is_binary(kind)):
        return field if file_version < (2, 2) else _second_generation(field, marks)
    if is_marked and pa.types.is_nested(kind):
        raise _not_blobs(field)
    if pa.types.is_struct(kind):
        children = [_converted(kind.field(index), file_version) for index in range(kind.num_fields)]
        return field.with_type(pa.struct(children))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = _converted(kind.value_field, file_version)
        if not item.equals(kind.value_field, check_metadata=True):
            return field.with_type(_list_of(kind, item))
    return field


def _not_blobs(field: pa.Field) -> NotSupportedError:
    problem = (
        f"column {field.name!r} is marked as blobs, which are bytes, and has type {field.type}"
    )
    if pa.types.is_struct(field.type) and {"position", "size"} <= set(field.type.names):
        problem += (
            ": these are the places of blobs in the dataset they were read from; read their bytes "
            'with blob_handling="all_binary", or copy the dataset with deep_clone()'
        )
    return NotSupportedError(problem)


def _list_of(lists: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return the type of lists of the same kind with other items."""
    return pa.large_list(item) if pa.types.is_large_list(lists) else pa.list_(item)


def _second_generation(field: pa.Field, marks: Mapping[bytes, bytes]) -> pa.Field:
    metadata = {key: value for key, value in marks.items() if key != BLOB_KEY.encode()}
    metadata[EXTENSION_NAME.encode()] = BLOB_V2_EXTENSION.encode()
    return pa.field(field.name, _STORED, field.nullable, metadata)


def blob_threshold(field: Field, name: str, default: int) -> int:
    """Read ``lance-encoding:blob-<name>-size-threshold``. Raises InvalidInputError."""
    key = f"lance-encoding:blob-{name}-size-threshold"
    text = field.metadata.get(key)
    if text is None:
        return default
    if not text.isdigit() or len(text) > 18:
        raise InvalidInputError(f"field metadata {key!r} is {text!r}; allowed: a number of bytes")
    return int(text)
