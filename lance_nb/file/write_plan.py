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
from lance_nb.encodings.level_builder import Shape
from lance_nb.errors import NotSupportedError
from lance_nb.file.versions import version_name
from lance_nb.format.arrow_schema import field_to_arrow
from lance_nb.format.blob_fields import is_blob_v2
from lance_nb.format.logical_types import MAP, STRUCT, fixed_size_struct_dimension
from lance_nb.format.schema import Field

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
    if file_version < (2, 2) and is_blob_v2(field):
        raise NotSupportedError(
            f"column {field.name!r}: blobs of the second generation need data_storage_version 2.2, "
            f"not {version_name(file_version)}"
        )
    is_fixed_list = fixed_size_struct_dimension(field.logical_type) is not None
    if file_version < (2, 2) and (is_fixed_list or field.logical_type == MAP):
        what = "fixed-size lists of structs" if is_fixed_list else "maps"
        raise NotSupportedError(
            f"column {field.name!r}: {what} need data_storage_version 2.2, not "
            f"{version_name(file_version)}"
        )
    options = EncodingOptions.from_metadata({**keys, **field.metadata}, file_version)
    is_packed = options.is_packed and field.logical_type == STRUCT
    if not field.children or is_packed or is_blob_v2(field):
        leaves.append(LeafPlan(field, options))
        return Shape()
    return Shape(tuple(_shape(child, keys, file_version, leaves) for child in field.children))


def _encoding_keys(metadata: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the encoding keys that parts of the field inherit."""
    return {
        key: value
        for key, value in metadata.items()
        if key.startswith(PREFIX) and key not in _OWN_KEYS
    }
