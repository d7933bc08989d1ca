"""Casts of Arrow values that the package did not make itself: of files, frames, workers, callers.

How: the ``cast`` of Arrow, after lists without any item got one null item where they are to become
fixed-size lists. For a null list Arrow copies item 0 and checks no bounds (pyarrow 26): without
items it reads foreign memory, which is a null pointer after IPC (signal 11), or an "offset" that
asks for gigabytes. Arrays are rebuilt over the same buffers.

Source: every type cast to every type, in child processes (``tests/unit/test_arrow_casts.py``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_nb import arrow_compute as pc


def cast_array(values: Any, kind: pa.DataType, safe: bool = True) -> Any:
    """Return an array, chunked array or scalar cast to a type.

    One form of an extension type becomes another, such as JSON in strings and in large strings.
    Raises pyarrow.ArrowInvalid where a value would be lost, which ``safe=False`` allows, and
    pyarrow.ArrowNotImplementedError where Arrow has no cast.
    """
    if isinstance(values, pa.Scalar) and _has_type(values.type, _LISTS):
        return cast_array(pa.repeat(values, 1), kind, safe)[0]
    if values.type != kind and _extension_name(values.type) == _extension_name(kind) is not None:
        values = _storage(values)  # Arrow refuses such casts
    return pc.cast(with_items(values, kind), kind, safe=safe)


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table cast to a schema with the same names, in the same order.

    Raises ValueError for other names or a null where the schema allows none, pyarrow.ArrowInvalid
    where a value would be lost, pyarrow.ArrowNotImplementedError where Arrow has no cast.
    """
    pairs = list(zip(table.columns, schema, strict=False))
    lacks_values = any(column.null_count and not field.nullable for column, field in pairs)
    if lacks_values or table.schema.names != schema.names:
        return table.cast(schema)  # an error of Arrow's
    columns = [cast_array(column, field.type) for column, field in pairs]
    return pa.Table.from_arrays(columns, schema=schema)


def with_items(values: Any, kind: pa.DataType) -> Any:
    """Return an array or chunked array of the same values, which Arrow casts within its memory.

    Dictionaries, runs and unions of lists are left alone: Arrow makes no fixed-size lists of them.
    """
    if not _has_type(kind, _FIXED) or not _has_type(values.type, _LISTS):
        return values
    if isinstance(values, pa.ChunkedArray):
        chunks = [_array_with_items(chunk) for chunk in values.chunks]
        return pa.chunked_array(chunks) if chunks else values
    return _array_with_items(values)


def _extension_name(kind: pa.DataType) -> str | None:
    is_extension = isinstance(kind, pa.BaseExtensionType)
    return str(kind.extension_name) if is_extension else None


def _storage(values: Any) -> Any:
    if isinstance(values, pa.ChunkedArray):
        chunks = [chunk.storage for chunk in values.chunks]
        return pa.chunked_array(chunks, values.type.storage_type)
    return pa.repeat(values, 1).storage[0] if isinstance(values, pa.Scalar) else values.storage


_FIXED = (pa.FixedSizeListType,)
_LISTS = (pa.ListType, pa.LargeListType, pa.ListViewType, pa.LargeListViewType)
_VIEWS = (pa.ListViewType, pa.LargeListViewType)


def _has_type(kind: pa.DataType, types: tuple[type, ...]) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_type(kind.storage_type, types)
    parts = (kind.field(place).type for place in range(kind.num_fields))
    return isinstance(kind, types) or any(_has_type(part, types) for part in parts)


def _array_with_items(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_type(kind, _LISTS) or isinstance(kind, pa.RunEndEncodedType | pa.UnionType):
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _array_with_items(array.storage))
    if isinstance(kind, pa.StructType):
        parts = [_array_with_items(array.field(place)) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pc.is_null(array))
    items = array.values
    if isinstance(kind, _LISTS) and len(array) and not len(items):
        items = pa.nulls(1, items.type)
    own_buffers = 1 if isinstance(kind, pa.FixedSizeListType) else 2
    buffers = array.buffers()[: own_buffers + isinstance(kind, _VIEWS)]
    children = [_array_with_items(items)]
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=children)
