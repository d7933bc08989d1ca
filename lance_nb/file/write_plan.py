"""Which columns a file of version 2.1 or 2.2 gets, and how each wants to be encoded.

A field owns a column when it has no children, or when it is a struct that is stored row by row
(``packed``). Encoding keys of the top-level field hold for its leaves unless these say otherwise.

Not supported: packed structs inside lists of fixed size.
Source: spec page "file format" (columns and field ids); field metadata of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lance_nb.encodings.encoding_options import PREFIX, EncodingOptions
from lance_nb.encodings.repdef import Shape
from lance_nb.errors import NotSupportedError
from lance_nb.file.versions import version_name
from lance_nb.format.arrow_schema import field_to_arrow
from lance_nb.format.blob_fields import is_blob_v2
from lance_nb.format.logical_types import (
    LARGE_LISTS,
    LISTS,
    MAP,
    STRUCT,
    fixed_size_struct_dimension,
)
from lance_nb.format.schema import Field

_LISTS = (*LISTS, *LARGE_LISTS, MAP)
_OWN_KEYS = ("packed", f"{PREFIX}packed", f"{PREFIX}blob")


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """One column: the field that owns it and its options."""

    field: Field
    options: EncodingOptions


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One top-level field: its stored Arrow type, which parts are leaves, and the leaves."""

    field: Field
    type: pa.DataType
    shape: Shape
    leaves: tuple[LeafPlan, ...]


def plan_column(field: Field, file_version: tuple[int, int]) -> ColumnPlan:
    """Plan a top-level field. Raises NotSupportedError, InvalidInputError for its metadata."""
    leaves: list[LeafPlan] = []
    keys = _encoding_keys(field.metadata)
    shape = _shape(field, keys, file_version, leaves)
    return ColumnPlan(field, field_to_arrow(field, storage=True).type, shape, tuple(leaves))


def _shape(
    field: Field,
    keys: Mapping[str, bytes],
    file_version: tuple[int, int],
    leaves: list[LeafPlan],
) -> Shape:
    _check_version(field, file_version)
    options = EncodingOptions.from_metadata({**keys, **field.metadata}, file_version)
    is_packed = options.is_packed and field.logical_type == STRUCT
    if not field.children or is_packed or is_blob_v2(field):
        leaves.append(LeafPlan(field, options))
        return Shape()
    return Shape(tuple(_shape(child, keys, file_version, leaves) for child in field.children))


def _check_version(field: Field, file_version: tuple[int, int]) -> None:
    """Refuse what the version cannot hold, or what no reader takes out of it again."""
    name, kind = field.name, field.logical_type
    is_fixed_list = fixed_size_struct_dimension(kind) is not None
    newer = {
        "blobs of the second generation": is_blob_v2(field),
        "fixed-size lists of structs": is_fixed_list,
        "maps": kind == MAP,
    }
    for what, applies in newer.items():
        if applies and file_version < (2, 2):
            raise NotSupportedError(
                f"column {name!r}: {what} need data_storage_version 2.2, not "
                f"{version_name(file_version)}"
            )
    below = [one.logical_type for one in field.walk() if one is not field]
    if is_fixed_list and any(one in _LISTS for one in below):
        raise NotSupportedError(f"column {name!r}: lists inside fixed-size lists of structs")
    if any(fixed_size_struct_dimension(one) is not None for one in below):
        raise NotSupportedError(f"column {name!r}: fixed-size lists of structs inside other fields")
    if any(one.logical_type == STRUCT and not one.children for one in field.walk()) and below:
        raise NotSupportedError(
            f"column {name!r}: structs without fields inside other fields need "
            "data_storage_version 2.0"
        )
    if kind == "fixed_size_binary:0":
        raise NotSupportedError(f"column {name!r}: values of no bytes cannot be stored")


def _encoding_keys(metadata: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the encoding keys that parts of the field inherit."""
    return {
        key: value
        for key, value in metadata.items()
        if key.startswith(PREFIX) and key not in _OWN_KEYS
    }
