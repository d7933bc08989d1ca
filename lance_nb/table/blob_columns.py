"""Blob columns: what a scan returns for them, and where a payload is stored.

A scan returns *descriptions*, not payloads. Files up to 2.1 describe a blob by position and size in
the data file itself (``struct<position, size>``). Since 2.2 (blob v2) it has five fields:

=========  ==========================================================================
kind 0     inline: ``position`` in the data file
kind 1, 2  sidecar ``data/<stem of the data file>/<bits of blob_id>.blob``, shared or its own;
           the name is the id as 32 binary digits, least significant bit first
kind 3     external: ``blob_uri`` itself when ``blob_id`` is 0, else below base path ``blob_id``;
           a size of 0 means the whole object
=========  ==========================================================================

Not supported: kind 4 (managed) and any later kind.
Source: spec page "blob"; verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, CorruptFileError, NotSupportedError
from lance_nb.format.blob_fields import (
    BLOB_KEY,
    DESCRIPTION_V2,
    PACKED_KEY,
    is_blob,
    is_blob_v2,
)
from lance_nb.format.logical_types import LARGE_LISTS, LISTS
from lance_nb.format.schema import Field, Schema
from lance_nb.value_classes import dataclass

DESCRIPTION = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])

INLINE, PACKED, DEDICATED, EXTERNAL = range(4)
SIDECARS = (PACKED, DEDICATED)
_SIDECAR_BITS = 32


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """Where a payload lies. ``size_bytes`` None means the whole object.

    Exactly one of three: inside the data file (no ``sidecar``, no ``uri``), in a sidecar file of it
    (a path below the data file's folder), or at ``uri`` (below base path ``base_id``, if set).
    """

    position: int
    size_bytes: int | None
    sidecar: str | None = None
    uri: str | None = None
    base_id: int | None = None


def scanned_form(field: Field, arrow: pa.Field) -> pa.Field:
    """Return the Arrow field that a scan returns: descriptions where ``field`` holds blobs.

    Looks into structs and lists; other nesting is left alone.
    """
    if is_blob(field):
        return _description(field, arrow)
    if len(field.children) == 1 and is_list(arrow.type):
        return in_list(arrow, scanned_form(field.children[0], arrow.type.value_field))
    if not pa.types.is_struct(arrow.type) or len(field.children) != arrow.type.num_fields:
        return arrow
    children = [
        scanned_form(child, arrow.type.field(position))
        for position, child in enumerate(field.children)
    ]
    return arrow.with_type(pa.struct(children))


def binary_form(field: Field, arrow: pa.Field) -> pa.Field:
    """Return the Arrow field of payloads for that of descriptions."""
    if is_blob(field):
        metadata = {k: v for k, v in field.metadata.items() if not k.startswith("ARROW:extension")}
        return pa.field(arrow.name, pa.large_binary(), arrow.nullable, metadata or None)
    if not holds_reachable_blobs(field):
        return arrow
    if is_list(arrow.type):
        return in_list(arrow, binary_form(field.children[0], arrow.type.value_field))
    children = [
        binary_form(child, arrow.type.field(number)) for number, child in enumerate(field.children)
    ]
    return arrow.with_type(pa.struct(children))


def holds_reachable_blobs(field: Field) -> bool:
    """Tell whether a struct or a list has blobs inside, which scans find."""
    if field.logical_type not in ("struct", *LISTS, *LARGE_LISTS):
        return False
    return any(is_blob(child) or holds_reachable_blobs(child) for child in field.children)


def stored_field(schema: Schema, name: str) -> Field | None:
    """Return the field with blobs that a column shows, None for all other columns."""
    try:
        field = schema.field(name)
    except ColumnNotFoundError:
        return None
    return field if is_blob(field) or holds_reachable_blobs(field) else None


def payload_form(schema: Schema, arrow: pa.Field) -> pa.Field:
    """Return the Arrow field of a column whose blobs are bytes."""
    field = stored_field(schema, arrow.name)
    return arrow if field is None else binary_form(field, arrow)


def is_list(type_: pa.DataType) -> bool:
    """Tell whether values are lists of any length."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def in_list(arrow: pa.Field, item: pa.Field) -> pa.Field:
    """Return a field of lists with other items."""
    is_large = pa.types.is_large_list(arrow.type)
    return arrow.with_type(pa.large_list(item) if is_large else pa.list_(item))


def _description(field: Field, arrow: pa.Field) -> pa.Field:
    if not is_blob_v2(field):
        return pa.field(arrow.name, DESCRIPTION, arrow.nullable, {BLOB_KEY: "true"})
    metadata = {BLOB_KEY: "true", PACKED_KEY: "true"}
    return pa.field(arrow.name, DESCRIPTION_V2, arrow.nullable, metadata)


def place_of(description: Mapping[str, object] | None, data_file: str) -> BlobPlace | None:
    """Find the payload that a description speaks of; None for a null blob.

    ``data_file`` is the path of the data file below its root. Raises NotSupportedError,
    CorruptFileError.
    """
    if description is None:
        return None
    position, size = _number(description, "position"), _number(description, "size")
    if "kind" not in description:
        if not size:
            return None if position else BlobPlace(0, 0)  # a null blob keeps its levels there
        return BlobPlace(position, size)
    kind, blob_id = _number(description, "kind"), _number(description, "blob_id")
    match kind:
        case 0:
            return BlobPlace(position, size)
        case 1 | 2:
            return BlobPlace(position, size, sidecar=sidecar_path(data_file, blob_id))
        case 3:
            uri = str(description["blob_uri"])
            return BlobPlace(position, size or None, uri=uri, base_id=blob_id or None)
    raise NotSupportedError(f"a blob of kind {kind} in {data_file} cannot be read by this release")


def sidecar_path(data_file: str, blob_id: int) -> str:
    """Return the path of a blob file, beside that of its data file."""
    bits = f"{blob_id:0{_SIDECAR_BITS}b}"[::-1]
    return f"{data_file.removesuffix('.lance')}/{bits}.blob"


def _number(description: Mapping[str, object], name: str) -> int:
    value = description[name]
    if not isinstance(value, int):
        raise CorruptFileError("", None, f"a number as {name!r} of a blob", repr(value))
    return value
