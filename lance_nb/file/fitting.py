"""Arrow arrays as callers have them, brought into the form that data files store.

Extension types become their storage, text and binary views plain text and binary, JSON texts JSONB;
children of structs are put in the order of the schema, missing ones that may be null are null.
Names and nullability inside a type may differ as long as nothing is null that must not be.

How: an array of the stored type passes as it is; else nested arrays are rebuilt over the same
buffers.
Limits: types are not converted: a column of other numbers is a mistake that pylance refuses too.
Source: what ``lance.write_dataset`` of pylance 14.0.2 accepts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import fixed_size_items, list_ranges, nulls_of
from lance_nb.encodings.jsonb import documents
from lance_nb.encodings.kernels.ranges import ragged_indices
from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.file.blob_values import fit_blobs
from lance_nb.format.blob_fields import BLOB_VALUES, is_blob_v1
from lance_nb.format.logical_types import JSON, arrow_to_logical
from lance_nb.format.schema import Field

_JSON_TEXT = "arrow.json"
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_map)


def fit(array: pa.Array, field: Field, type_: pa.DataType, first_row: int = 0) -> pa.Array:
    """Return ``array`` as an array of the stored type ``type_``.

    Raises SchemaMismatchError for another type, for text that is not UTF-8 (pyarrow makes such of
    bytes among texts), or for a null where ``field`` allows none;
    ``first_row`` is the number of the first row in messages.
    """
    fitted = _fit(array, field, type_, field.name)
    try:
        _check_text(fitted)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"column {field.name!r} has text that is not UTF-8: {error}; store it as bytes "
            "(binary), or decode it first"
        ) from error
    check_nulls(fitted, field, first_row)
    return fitted


def check_nulls(array: pa.Array, field: Field, first_row: int = 0) -> None:
    """Raise SchemaMismatchError for a null where ``field`` or a field below it allows none."""
    if has_required(field):
        _check_nulls(array, field, field.name, np.arange(first_row, first_row + len(array)))


def has_required(field: Field) -> bool:
    """Return whether any part of the field must not be null."""
    return any(not part.nullable for part in field.walk())


def _fit(array: pa.Array, field: Field, type_: pa.DataType, path: str) -> pa.Array:
    if type_ == BLOB_VALUES:
        if is_blob_v1(field) and array.type != BLOB_VALUES:
            array = _fit_leaf(array, pa.large_binary(), path)
        return fit_blobs(array, path)
    if isinstance(array.type, pa.BaseExtensionType):
        if field.logical_type == JSON and array.type.extension_name == _JSON_TEXT:
            return documents(array.storage, path)
        array = array.storage
    if array.type == type_:
        return array
    if pa.types.is_struct(type_) and pa.types.is_struct(array.type):
        return _fit_struct(array, field, type_, path)
    if field.children and _same_nesting(array.type, type_):
        return _fit_list(array, field, type_, path)
    return _fit_leaf(array, type_, path)


def _check_text(array: pa.Array) -> None:
    """Validate the texts of an array. Raises pyarrow.ArrowInvalid.

    Arrow validates all children of a nested array, not only those of its slice, which would take
    quadratic time when one big table is written in many slices.
    """
    type_ = array.type
    if not len(array) or not has_text(type_):
        return
    array.validate()  # the first and last offset, among others
    if pa.types.is_struct(type_):
        for position in range(type_.num_fields):
            _check_text(array.field(position))
    elif pa.types.is_fixed_size_list(type_):
        _check_text(fixed_size_items(array))
    elif any(is_kind(type_) for is_kind in _LISTS):
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        _check_text(array.values.slice(start, stop - start))
    else:
        array.validate(full=True)


def has_text(type_: pa.DataType) -> bool:
    """Tell whether values of a type are, or hold, text."""
    if pa.types.is_dictionary(type_):
        return has_text(type_.value_type)
    parts = (type_.field(place).type for place in range(type_.num_fields))
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return is_text or any(has_text(part) for part in parts)


def _same_nesting(array_type: pa.DataType, column_type: pa.DataType) -> bool:
    if pa.types.is_fixed_size_list(column_type):
        return bool(
            pa.types.is_fixed_size_list(array_type)
            and array_type.list_size == column_type.list_size
        )
    return any(is_kind(array_type) and is_kind(column_type) for is_kind in _LISTS)


def _fit_struct(array: pa.Array, field: Field, type_: pa.DataType, path: str) -> pa.Array:
    names = [array.type.field(position).name for position in range(array.type.num_fields)]
    extra = [name for name in names if field.child(name) is None]
    if extra:
        raise SchemaMismatchError(f"column {path!r} has a field {extra[0]!r} that is not expected")
    children = []
    for child, child_field in zip(field.children, type_, strict=True):
        below = f"{path}.{child.name}"
        if child.name in names:
            child_array = array.field(names.index(child.name))
            children.append(_fit(child_array, child, child_field.type, below))
        elif child.nullable:
            children.append(pa.nulls(len(array), child_field.type))
        else:
            raise SchemaMismatchError(f"column {below!r} is missing, and must not be null")
    nulls = nulls_of(array)
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _fit_list(array: pa.Array, field: Field, type_: pa.DataType, path: str) -> pa.Array:
    child = field.children[0]
    inner = pa.struct([type_.key_field, type_.item_field]) if pa.types.is_map(type_) else None
    value_type = type_.value_type if inner is None else inner
    items = _fit(array.values, child, value_type, f"{path}.{child.name}")
    keep = 1 if pa.types.is_fixed_size_list(type_) else 2
    buffers = array.buffers()[:keep]
    return pa.Array.from_buffers(type_, len(array), buffers, offset=array.offset, children=[items])


def _fit_leaf(array: pa.Array, type_: pa.DataType, path: str) -> pa.Array:
    """Fit what is one leaf: the same logical type, though Arrow may name it otherwise."""
    if _logical(array.type) != _logical(type_):
        raise SchemaMismatchError(
            f"column {path!r} has type {array.type}, but the schema says {type_}"
        )
    if pa.types.is_fixed_size_list(type_):
        items = array.values
        if isinstance(items.type, pa.BaseExtensionType):
            items = items.storage
        if items.type != type_.value_type:
            items = _fit_leaf(items, type_.value_type, path)
        buffers = array.buffers()[:1]
        return pa.Array.from_buffers(
            type_, len(array), buffers, offset=array.offset, children=[items]
        )
    if pa.types.is_dictionary(type_):
        values = array.dictionary
        if values.type != type_.value_type:
            values = pc.cast(values, type_.value_type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=type_.ordered)
    return pc.cast(array, type_)


def _logical(type_: pa.DataType) -> str:
    try:
        return arrow_to_logical(type_)
    except NotSupportedError:
        return f"? {type_}"


# --- nulls where none may be --------------------------------------------------------------------


def _check_nulls(array: pa.Array, field: Field, path: str, rows: np.ndarray) -> None:
    """Refuse nulls below what is not null itself. ``rows`` numbers the slots of ``array``."""
    nulls = nulls_of(array)
    if nulls is not None and not field.nullable:
        raise SchemaMismatchError(
            f"column {path!r} must not be null, but row {int(rows[nulls.argmax()])} is"
        )
    if not any(has_required(child) for child in field.children):
        return
    valid = None if nulls is None else np.flatnonzero(~nulls)
    if valid is not None:
        rows = rows[valid]
    for position, child in enumerate(field.children):
        items, below = _inside(array, position, valid, rows)
        _check_nulls(items, child, f"{path}.{child.name}", below)


def _inside(
    array: pa.Array, position: int, valid: np.ndarray | None, rows: np.ndarray
) -> tuple[pa.Array, np.ndarray]:
    """Return the children of the valid slots (None: all), and the row of each."""
    type_ = array.type
    if pa.types.is_struct(type_):
        child = array.field(position)
        return child if valid is None else pc.take(child, pa.array(valid)), rows
    if pa.types.is_fixed_size_list(type_):
        size = type_.list_size
        items = fixed_size_items(array)
        if valid is not None:
            starts = valid.astype(np.int64) * size
            items = items.take(pa.array(ragged_indices(starts, np.full(valid.size, size))))
        return items, np.repeat(rows, size)
    starts, counts = list_ranges(array)
    if valid is not None:
        starts, counts = starts[valid], counts[valid]
    return array.values.take(pa.array(ragged_indices(starts, counts))), np.repeat(rows, counts)
