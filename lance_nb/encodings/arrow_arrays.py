"""Data blocks to Arrow arrays and back, without copying where the bytes are right as they are.

To Arrow: the Arrow type decides how bytes are read; the block decides where they are. A block that
cannot be of that type (width, kind) is a damaged file, not a programming error. Types are those of
stored values, without extension types; ``file.columns`` converts these.

From Arrow: the values of a leaf array, from its offset on. Validity is left out, because it has
become definition levels, except that of the items of fixed-size lists.

Ownership: arrays keep the numpy buffers (and through them a mapped file) alive, and blocks the
buffers of their array.
Limits: text views are stored as plain text; run-end encoded, list view and union arrays are
refused.
Source: Arrow columnar format, buffer layouts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import without_null_items
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    Constant,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    PackedStruct,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.kernels.memory import zeros
from lance_nb.errors import NotSupportedError

Mask = npt.NDArray[np.bool_]
_INT32_MAX = 2**31 - 1
_BINARY = (pa.types.is_string, pa.types.is_binary)
_LARGE = (pa.types.is_large_string, pa.types.is_large_binary)
_NO_BYTES = np.zeros(0, np.uint8)
_OFFSETS: dict[str, np.dtype[np.signedinteger]] = {
    "STRING": np.dtype(np.int32),
    "BINARY": np.dtype(np.int32),
    "LARGE_STRING": np.dtype(np.int64),
    "LARGE_BINARY": np.dtype(np.int64),
}
_NUMBERS = (
    *("BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("HALF_FLOAT", "FLOAT", "DOUBLE", "DATE32", "DATE64", "TIME32", "TIME64"),
    *("TIMESTAMP", "DURATION"),
)
# Ids of types that are values of fixed width, or strings with these offsets.
_PLAIN: dict[int, np.dtype[np.signedinteger] | None] = {
    getattr(pa.lib, f"Type_{name}"): _OFFSETS.get(name) for name in (*_NUMBERS, *_OFFSETS)
}


def validity_buffer(validity: Mask | None) -> pa.Buffer | None:
    """Pack a mask into an Arrow validity bitmap; None stays None."""
    if validity is None:
        return None
    return pa.py_buffer(np.packbits(validity, bitorder="little"))


def to_arrow(block: DataBlock, type_: pa.DataType, validity: Mask | None = None) -> pa.Array:
    """Build an array of ``type_`` from the block; ``validity`` has one bool per value.

    Blocks that repeat values (constants, dictionaries) build an array of the distinct ones first.
    Raises CorruptFileError when block and type do not fit, NotSupportedError for repeated strings
    of more than 2 GiB.
    """
    match block:
        case AllNull(count):
            return _nulls(count, type_, validity)
        case Constant(count, value):
            return _take(to_arrow(value, type_), np.zeros(count, np.int32), validity)
        case Dictionary():
            return _from_dictionary(block, type_, validity)
        case FixedWidth():
            return _from_fixed_width(block, type_, validity)
        case VariableWidth():
            return _from_variable_width(block, type_, validity)
        case FixedSizeList():
            return _from_fixed_size_list(block, type_, validity)
        case PackedStruct():
            return _from_packed_struct(block, type_, validity)


def _nulls(count: int, type_: pa.DataType, validity: Mask | None) -> pa.Array:
    if pa.types.is_struct(type_) and not type_.num_fields:
        # Without fields there is nothing to store, and a null one cannot be stored.
        return pa.Array.from_buffers(type_, count, [validity_buffer(validity)])
    return pa.nulls(count, type_)


def _take(values: pa.Array, positions: np.ndarray, validity: Mask | None) -> pa.Array:
    """Repeat values: the one at ``positions[i]`` for slot ``i``, null where it is not valid."""
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        _check_offsets(values, positions, validity)
    kind = pa.int64() if positions.dtype.itemsize == 8 else pa.int32()
    buffers = [validity_buffer(validity), pa.py_buffer(positions)]
    return pc.take(values, pa.Array.from_buffers(kind, positions.size, buffers))


def _check_offsets(values: pa.Array, positions: np.ndarray, validity: Mask | None) -> None:
    """Refuse repeated strings that need larger offsets, before memory is taken for them."""
    lengths = np.diff(np.frombuffer(values.buffers()[1], np.int32, len(values) + 1))
    if not lengths.size or int(lengths.max()) * positions.size <= _INT32_MAX:
        return
    size = int(lengths[positions if validity is None else positions[validity]].sum(dtype=np.int64))
    if size > _INT32_MAX:
        raise NotSupportedError(
            f"{positions.size} repeated values of type {values.type} take {size} bytes, more than "
            "the 2 GiB that one Arrow array can have; read fewer rows at a time"
        )


def to_dictionary(
    block: DataBlock, type_: pa.DictionaryType, validity: Mask | None = None
) -> pa.Array:
    """Build an array of a dictionary type from values that may be stored without a dictionary."""
    if isinstance(block, Dictionary | AllNull):
        return to_arrow(block, type_, validity)
    if isinstance(block, Constant):
        keys = np.zeros(block.num_values, np.dtype(type_.index_type.to_pandas_dtype()))
        buffers = [validity_buffer(validity), pa.py_buffer(keys)]
        indices = pa.Array.from_buffers(type_.index_type, block.num_values, buffers)
        value = to_arrow(block.value, type_.value_type)
        return pa.DictionaryArray.from_arrays(indices, value, ordered=type_.ordered, safe=False)
    encoded = pc.dictionary_encode(to_arrow(block, type_.value_type, validity))
    return encoded if encoded.type == type_ else pc.cast(encoded, type_)


def _from_fixed_width(block: FixedWidth, type_: pa.DataType, validity: Mask | None) -> pa.Array:
    if pa.types.is_null(type_):
        return pa.nulls(block.num_values)
    if pa.types.is_dictionary(type_):
        raise corrupt(f"a dictionary for a column of type {type_}", "plain values")
    if pa.types.is_boolean(type_) and block.bits_per_value == 8:  # full-zip has no single bits
        packed = np.packbits(block.data & 1, bitorder="little")
        block = FixedWidth(1, block.num_values, packed)
    try:
        width = type_.bit_width
    except ValueError:
        width = -1
    nested = pa.types.is_nested(type_)
    if nested or width != block.bits_per_value:
        raise corrupt(f"values of type {type_}", f"{block.bits_per_value} bits per value")
    return pa.Array.from_buffers(
        type_, block.num_values, [validity_buffer(validity), pa.py_buffer(block.data)]
    )


def _from_variable_width(
    block: VariableWidth, type_: pa.DataType, validity: Mask | None
) -> pa.Array:
    large = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
    small = pa.types.is_string(type_) or pa.types.is_binary(type_)
    if not large and not small:
        raise corrupt(f"values of type {type_}", "byte strings")
    offsets = block.offsets
    if large and offsets.dtype != np.int64:
        offsets = offsets.astype(np.int64)
    elif small and offsets.dtype != np.int32:
        if offsets.size and int(offsets[-1]) > _INT32_MAX:
            raise corrupt("at most 2 GiB of text in one page", f"{int(offsets[-1])} bytes")
        offsets = offsets.astype(np.int32)
    array = pa.Array.from_buffers(
        type_,
        block.num_values,
        [validity_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(block.data)],
    )
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        _check_utf8(block.data, array)
    return array


def _check_utf8(data: Bytes, array: pa.Array) -> None:
    """Text that is not UTF-8 would crash readers far from here. ASCII needs no second look."""
    if data.size and int(data.max()) >= 0x80:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as exc:
            raise corrupt("text in UTF-8", str(exc)) from exc


def _from_fixed_size_list(
    block: FixedSizeList, type_: pa.DataType, validity: Mask | None
) -> pa.Array:
    if not pa.types.is_fixed_size_list(type_) or type_.list_size != block.dimension:
        raise corrupt(f"values of type {type_}", f"lists of {block.dimension} items")
    item_validity = None
    if block.validity is not None:
        count = block.num_values * block.dimension
        item_validity = np.unpackbits(block.validity, count=count, bitorder="little").astype(bool)
        if bool(item_validity.all()):
            item_validity = None
    items = to_arrow(block.items, type_.value_type, item_validity)
    return pa.Array.from_buffers(
        type_, block.num_values, [validity_buffer(validity)], children=[items]
    )


def _from_packed_struct(block: PackedStruct, type_: pa.DataType, validity: Mask | None) -> pa.Array:
    if not pa.types.is_struct(type_) or type_.num_fields != len(block.children):
        raise corrupt(f"values of type {type_}", f"structs of {len(block.children)} fields")
    children = [
        to_arrow(child, type_.field(position).type) for position, child in enumerate(block.children)
    ]
    return pa.Array.from_buffers(
        type_, block.num_values, [validity_buffer(validity)], children=children
    )


def _from_dictionary(block: Dictionary, type_: pa.DataType, validity: Mask | None) -> pa.Array:
    if isinstance(block.items, AllNull):
        return pa.nulls(block.num_values, type_)  # Arrow cannot join dictionaries with null items
    indices = _clean_indices(block, validity)
    if pa.types.is_dictionary(type_):
        index_dtype = np.dtype(type_.index_type.to_pandas_dtype())
        if indices.size and int(indices.max()) > np.iinfo(index_dtype).max:
            raise corrupt(f"dictionary indices of type {index_dtype}", str(int(indices.max())))
        if index_dtype.itemsize != indices.itemsize:
            indices = indices.astype(index_dtype)
        keys = _from_fixed_width(
            FixedWidth(8 * index_dtype.itemsize, block.num_values, indices.view(np.uint8)),
            type_.index_type,
            validity,
        )
        return pa.DictionaryArray.from_arrays(
            keys, to_arrow(block.items, type_.value_type), ordered=type_.ordered, safe=False
        )
    if indices.dtype.itemsize < 4:
        indices = indices.astype(np.uint32)  # the width that ``take`` is fastest with
    return _take(to_arrow(block.items, type_), indices, validity)


def _clean_indices(block: Dictionary, validity: Mask | None) -> np.ndarray:
    """View the indices as unsigned integers; zero those of null slots, whose bytes mean nothing."""
    bits = block.indices.bits_per_value
    if bits not in (8, 16, 32, 64):
        raise corrupt("dictionary indices of 8, 16, 32 or 64 bits", f"{bits} bits")
    indices = block.indices.data.view(f"<u{bits // 8}")
    if indices.size and int(indices.max()) >= block.items.num_values:
        if validity is not None:
            indices = np.where(validity, indices, indices.dtype.type(0))
        if int(indices.max()) >= block.items.num_values:
            raise corrupt(
                f"dictionary indices below {block.items.num_values}", str(int(indices.max()))
            )
    return indices


def from_arrow(leaf: pa.Array) -> DataBlock:
    """View the values of a leaf array. Raises NotSupportedError for a type without a leaf form."""
    type_ = leaf.type
    if type_.id in _PLAIN:  # the usual types, without asking for all others first
        offsets = _PLAIN[type_.id]
        return _fixed(leaf) if offsets is None else _strings(leaf, offsets)
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
        return pc.cast(leaf, type_)
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
