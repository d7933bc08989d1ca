"""Arrow leaf arrays to data blocks: the mirror of ``arrow_arrays``, for writing.

Layout: the values of the array only, from its offset on; validity is left out, because it has
become definition levels, except that of the items of fixed-size lists. Where bytes lie right they
are viewed and not copied, so a block keeps the array's buffers alive.

Limits: text views are stored as plain text; run-end encoded, list view and union arrays are
refused.
Source: Arrow columnar format, buffer layouts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import without_null_items
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    PackedStruct,
    VariableWidth,
)
from lance_nb.encodings.kernels.memory import zeros
from lance_nb.errors import NotSupportedError

_BINARY = (pa.types.is_string, pa.types.is_binary)
_LARGE = (pa.types.is_large_string, pa.types.is_large_binary)
_NO_BYTES = np.zeros(0, np.uint8)


def from_arrow(leaf: pa.Array) -> DataBlock:
    """View the values of a leaf array. Raises NotSupportedError for a type without a leaf form."""
    type_ = leaf.type
    if isinstance(type_, pa.BaseExtensionType):
        return from_arrow(leaf.storage)
    if pa.types.is_null(type_):
        return AllNull(len(leaf))
    if pa.types.is_string_view(type_):
        return from_arrow(_without_views(leaf, pa.string()))
    if pa.types.is_binary_view(type_):
        return from_arrow(_without_views(leaf, pa.binary()))
    if any(check(type_) for check in (*_BINARY, *_LARGE)):
        return _strings(leaf, np.dtype(np.int64 if _is_large(type_) else np.int32))
    if pa.types.is_fixed_size_list(type_):
        return _lists(leaf)
    if pa.types.is_dictionary(type_):
        return _dictionary(leaf)
    if pa.types.is_struct(type_):
        return _struct(leaf)
    if pa.types.is_nested(type_) or pa.types.is_run_end_encoded(type_):
        raise NotSupportedError(f"a column of type {type_} cannot be stored as one leaf")
    return _fixed(leaf)


def _without_views(leaf: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return leaf.cast(type_)
    except pa.ArrowInvalid as error:
        raise NotSupportedError(
            f"{len(leaf)} values of type {leaf.type} hold more than the 2 GiB of a {type_} page"
        ) from error


def _is_large(type_: pa.DataType) -> bool:
    return any(check(type_) for check in _LARGE)


def _fixed(leaf: pa.Array) -> FixedWidth:
    """View values of fixed width; a bitmap is shifted when it does not begin on a byte."""
    bits = leaf.type.bit_width
    count = len(leaf)
    buffer = leaf.buffers()[1]
    if buffer is None or not count:
        return FixedWidth(bits, count, zeros((count * bits + 7) // 8))
    if bits == 1:
        return FixedWidth(1, count, _bits(buffer, leaf.offset, count))
    size = bits // 8
    data = np.frombuffer(buffer, np.uint8, count * size, leaf.offset * size)
    return FixedWidth(bits, count, data)


def _bits(buffer: pa.Buffer, offset: int, count: int) -> Bytes:
    """Return ``count`` bits from bit ``offset`` on; bits after the last one are zero."""
    first = offset // 8
    raw = np.frombuffer(buffer, np.uint8, (offset + count + 7) // 8 - first, first)
    if offset % 8 == 0 and count % 8 == 0:
        return raw
    skip = offset % 8
    bits = np.unpackbits(raw, bitorder="little")[skip : skip + count]
    return np.packbits(bits, bitorder="little")


def _strings(leaf: pa.Array, kind: np.dtype[np.signedinteger]) -> VariableWidth:
    """View strings; offsets are moved when they do not begin at 0."""
    count = len(leaf)
    _, offsets_buffer, data_buffer = leaf.buffers()
    if offsets_buffer is None or not count:
        return VariableWidth(count, np.zeros(count + 1, kind), _NO_BYTES)
    offsets = np.frombuffer(offsets_buffer, kind, count + 1, leaf.offset * kind.itemsize)
    first, last = int(offsets[0]), int(offsets[-1])
    data = _NO_BYTES
    if last > first:
        data = np.frombuffer(data_buffer, np.uint8, last - first, first)
    return VariableWidth(count, offsets - kind.type(first) if first else offsets, data)


def _lists(leaf: pa.Array) -> FixedSizeList:
    """View lists and their items, with the validity of the items."""
    dimension, count = leaf.type.list_size, len(leaf)
    items = leaf.values.slice(leaf.offset * dimension, count * dimension)
    if isinstance(items.type, pa.BaseExtensionType):
        items = items.storage
    if not (
        pa.types.is_primitive(items.type)
        or pa.types.is_fixed_size_list(items.type)
        or pa.types.is_fixed_size_binary(items.type)
        or pa.types.is_decimal(items.type)
    ):
        raise NotSupportedError(f"fixed-size lists of {items.type} cannot be stored as one leaf")
    validity = None
    if items.null_count:
        validity = _bits(items.buffers()[0], items.offset, len(items))
    return FixedSizeList(dimension, count, from_arrow(items), validity)


def _dictionary(leaf: pa.Array) -> DataBlock:
    """View keys and items; keys are made unsigned, null items and wrong keys are not allowed."""
    leaf = without_null_items(leaf)  # null keys are definition levels
    items = leaf.dictionary
    keys = _fixed(leaf.indices)
    words = keys.data.view(f"<u{keys.bits_per_value // 8}")
    if leaf.null_count:
        # What stands under a null means nothing, and may be no key at all.
        valid = np.unpackbits(
            _bits(leaf.buffers()[0], leaf.offset, len(leaf)), count=len(leaf), bitorder="little"
        )
        words = words * valid.astype(words.dtype)
        keys = FixedWidth(keys.bits_per_value, keys.num_values, words.view(np.uint8))
    return Dictionary(len(leaf), keys, from_arrow(items))


def _struct(leaf: pa.Array) -> DataBlock:
    """View the children of a struct that is stored row by row."""
    if not leaf.type.num_fields:
        return AllNull(len(leaf))
    children: list[DataBlock] = []
    for position in range(leaf.type.num_fields):
        child = leaf.field(position)
        is_null = pa.types.is_null(child.type)  # which has no validity to look at
        if is_null or (child.null_count and _has_null_inside(leaf, child)):
            name = leaf.type.field(position).name
            raise NotSupportedError(
                f"field {name!r} of a packed struct has nulls; packed structs cannot store them"
            )
        children.append(from_arrow(child))
    return PackedStruct(len(leaf), tuple(children))


def _has_null_inside(leaf: pa.Array, child: pa.Array) -> bool:
    """Tell whether a child is null where its struct is not."""
    if not leaf.null_count:
        return True
    count = len(leaf)
    outside = _bits(leaf.buffers()[0], leaf.offset, count)
    inside = _bits(child.buffers()[0], child.offset, count)
    return bool(np.unpackbits(outside & ~inside, count=count, bitorder="little").any())
