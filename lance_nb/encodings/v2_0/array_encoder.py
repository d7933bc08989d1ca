"""Arrow arrays to pages of 2.0 files: an ArrayEncoding message and the buffers it numbers.

Layout: as pylance 14.0.2 writes it, plain: ``nullable`` around ``flat`` or ``fixed_size_list``,
``binary`` with ends of 64 bits, ``dictionary`` for Arrow dictionaries (a null is the index of a
null item that is added to the items), ``packed_struct`` row by row, ``list`` and ``struct`` for
fields whose items and children are columns of their own.

Limits: no compression, as in the reference. Buffers are views of the arrays where possible.
Not supported: nulls inside packed structs, null structs and maps: the version cannot hold them.
Source: message ArrayEncoding of lance.encodings; pages of pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb._pb import encodings as pb
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.arrow_parts import Mask, nulls_of
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    Ints,
    PackedStruct,
    VariableWidth,
)
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.value_classes import dataclass

BLOB_COLUMN = pb.ColumnEncoding(
    blob=pb.ColumnEncoding.Blob(inner=pb.ColumnEncoding(values=pb.ColumnEncoding.Values()))
).SerializeToString()


@dataclass(frozen=True, slots=True)
class EncodedArray:
    """One page: its serialized ArrayEncoding and its buffers, in the order they are numbered."""

    encoding: bytes
    buffers: tuple[Bytes, ...]


class _Buffers:
    """Numbers the buffers of a page."""

    def __init__(self) -> None:
        self.data: list[Bytes] = []

    def add(self, data: Bytes) -> pb.Buffer:
        self.data.append(data)
        return pb.Buffer(buffer_index=len(self.data) - 1)


def encode_array(array: pa.Array) -> EncodedArray:
    """Encode the values of a field that has no columns below it. Raises NotSupportedError."""
    buffers = _Buffers()
    return _encoded(_leaf(from_arrow(array), nulls_of(array), buffers), buffers)


def encode_structs() -> EncodedArray:
    """Encode the page of a struct, which holds nothing."""
    return EncodedArray(pb.ArrayEncoding(struct=pb.SimpleStruct()).SerializeToString(), ())


def encode_lists(counts: Ints, nulls: Mask | None) -> EncodedArray:
    """Encode where lists end. ``counts`` has the items of each row, 0 for null lists."""
    buffers = _Buffers()
    ends = np.cumsum(counts).astype(np.uint64)
    total = int(ends[-1]) if ends.size else 0
    if nulls is not None:
        ends[nulls] += np.uint64(total + 1)
    offsets = _no_nulls(_flat(64, ends.view(np.uint8), buffers))
    lists = pb.List(offsets=offsets, null_offset_adjustment=total + 1, num_items=total)
    return _encoded(pb.ArrayEncoding(list=lists), buffers)


def encode_places(positions: Ints, sizes: Ints) -> EncodedArray:
    """Encode where the payloads of a blob column lie."""
    block = PackedStruct(
        positions.size,
        tuple(
            FixedWidth(64, array.size, array.astype("<u8").view(np.uint8))
            for array in (positions, sizes)
        ),
    )
    buffers = _Buffers()
    return _encoded(_leaf(block, None, buffers), buffers)


def _encoded(encoding: pb.ArrayEncoding, buffers: _Buffers) -> EncodedArray:
    return EncodedArray(encoding.SerializeToString(), tuple(buffers.data))


def _leaf(block: DataBlock, nulls: Mask | None, buffers: _Buffers) -> pb.ArrayEncoding:
    match block:
        case VariableWidth():
            return _binary(block, nulls, buffers)
        case Dictionary():
            return _dictionary(block, nulls, buffers)
        case PackedStruct():
            if nulls is not None:
                raise NotSupportedError(
                    "null structs cannot be stored in file version 2.0; 2.1 and later can"
                )
            return _packed(block, buffers)
    if isinstance(block, AllNull) or (nulls is not None and bool(nulls.all())):
        return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
    if nulls is None:
        return _no_nulls(_values(block, buffers))
    validity = _flat(1, np.packbits(~nulls, bitorder="little"), buffers)
    some = pb.Nullable.SomeNull(validity=validity, values=_values(block, buffers))
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))


def _values(block: DataBlock, buffers: _Buffers) -> pb.ArrayEncoding:
    if isinstance(block, FixedWidth):
        return _flat(block.bits_per_value, block.data, buffers)
    if isinstance(block, FixedSizeList):
        missing = None
        if block.validity is not None:
            count = block.items.num_values
            missing = np.unpackbits(block.validity, count=count, bitorder="little") == 0
        items = _leaf(block.items, missing, buffers)
        lists = pb.FixedSizeList(dimension=block.dimension, items=items)
        return pb.ArrayEncoding(fixed_size_list=lists)
    if isinstance(block, PackedStruct):
        raise NotSupportedError("a packed struct inside a packed struct needs file version 2.2")
    raise NotSupportedError(
        f"values of kind {type(block).__name__} cannot be stored in file version 2.0"
    )


def _flat(bits: int, data: Bytes, buffers: _Buffers) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=buffers.add(data)))


def _no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def _binary(block: VariableWidth, nulls: Mask | None, buffers: _Buffers) -> pb.ArrayEncoding:
    ends = block.offsets[1:].astype(np.uint64)
    adjustment = block.data.size + 1
    if nulls is not None:
        ends[nulls] += np.uint64(adjustment)
    indices = _no_nulls(_flat(64, ends.view(np.uint8), buffers))
    data = _flat(8, block.data, buffers)
    binary = pb.Binary(indices=indices, bytes=data, null_adjustment=adjustment)
    return pb.ArrayEncoding(binary=binary)


def _dictionary(block: Dictionary, nulls: Mask | None, buffers: _Buffers) -> pb.ArrayEncoding:
    """Encode keys and items; rows that are null point at a null item behind the others."""
    bits = block.indices.bits_per_value
    keys = block.indices.data.view(f"<u{bits // 8}")
    items, missing = block.items, None
    count = items.num_values
    if nulls is not None:
        if count > np.iinfo(f"i{bits // 8}").max:
            raise InvalidInputError(
                f"a dictionary of {count} values with keys of {bits} bits has no room for null in "
                "file version 2.0: use wider keys, or 2.1 and later"
            )
        keys = np.where(nulls, keys.dtype.type(count), keys)
        items, missing = _one_more(items), np.arange(count + 1) == count
    indices = _no_nulls(_flat(bits, keys.view(np.uint8), buffers))
    dictionary = pb.Dictionary(
        indices=indices,
        items=_leaf(items, missing, buffers),
        num_dictionary_items=items.num_values,
    )
    return pb.ArrayEncoding(dictionary=dictionary)


def _one_more(items: DataBlock) -> DataBlock:
    """Add one value, whichever it is."""
    count = items.num_values + 1
    match items:
        case VariableWidth():
            return VariableWidth(count, np.append(items.offsets, items.offsets[-1]), items.data)
        case FixedWidth(bits) if bits % 8 == 0:
            return FixedWidth(bits, count, np.append(items.data, np.zeros(bits // 8, np.uint8)))
    raise NotSupportedError(
        "file version 2.0 cannot store a dictionary of such values with nulls; use 2.1 or later"
    )


def _packed(block: PackedStruct, buffers: _Buffers) -> pb.ArrayEncoding:
    inner, columns = [], []
    for child in block.children:
        parts = _Buffers()
        inner.append(_no_nulls(_values(child, parts)))
        if len(parts.data) != 1 or _bits_inside(child) % 8:
            raise NotSupportedError("fields of packed structs have whole bytes and no nulls")
        columns.append(parts.data[0].reshape(block.num_values, -1))
    rows: Bytes = np.concatenate(columns, axis=1).ravel()
    packed = pb.PackedStruct(inner=inner, buffer=buffers.add(rows))
    return pb.ArrayEncoding(packed_struct=packed)


def _bits_inside(block: DataBlock) -> int:
    while isinstance(block, FixedSizeList):
        block = block.items
    return block.bits_per_value if isinstance(block, FixedWidth) else 1
