"""Fixed-size lists, possibly of fixed-size lists: dimensions around one leaf encoding.

Layout: the descriptions nest from the outermost list inwards; layer ``k`` has ``D_k`` items per
value, ``C_k = D_1 * ... * D_k``. Mini-block: one validity bitmap per layer that has one
(``num_values * C_k`` bits, chunk by chunk from bit 0), then the buffers of the leaf for
``num_values * C_last`` items. Block: the leaf alone. Per value: for each layer with validity
``ceil(C_k / 8)`` bytes of bitmap, then the items of the value. Written chunks hold a multiple of 8
lists, so that bitmaps begin on bytes; a full-zip page without null items is the Arrow buffer.
Limits: at most 2**40 items per value; per-value items have whole bytes if there is any validity.
A constant leaf without a value means that all items are null. Items are written flat.
Source: message ``FixedSizeList`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    ChunkBuffer,
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    Ints,
    ValuePlaces,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.base import FixedSizeList as FixedSizeListBlock
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
    power_of_two_below,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.statistics import STRUCTURAL, Measured
from lance_nb.errors import InternalError, NotSupportedError
from lance_nb.value_classes import dataclass

_MOST_ITEMS = 1 << 40  # per value
_MOST_TOTAL = 1 << 56  # in all chunks: bits still fit 64 bits
_CHUNK_VALUES = 4096


@dataclass(frozen=True, slots=True)
class _Layer:
    dimension: int
    items_per_value: int  # of the outermost list
    has_validity: bool


class FixedSizeList(Codec):
    """Lists of flat items, with the validity of the items."""

    def num_buffers(self, encoding: encodings21.FixedSizeList, codecs: Codecs) -> int:
        """Return one buffer per validity bitmap, and those of the leaf."""
        layers, leaf = _layers(encoding)
        return sum(layer.has_validity for layer in layers) + codecs.num_buffers(leaf)

    def decode_chunks(
        self, encoding: encodings21.FixedSizeList, chunks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Decode bitmaps and items of all chunks."""
        layers, leaf = _layers(encoding)
        _check_total(chunks.num_values, layers)
        buffers = list(chunks.buffers)
        validity: list[Bytes | None] = []
        for layer in layers:
            if not layer.has_validity:
                validity.append(None)
                continue
            bitmap, num_bits = buffers.pop(0), chunks.num_values * layer.items_per_value
            if bool((bitmap.sizes < (num_bits + 7) // 8).any()):
                raise corrupt("a validity bit for each list item", f"{bitmap.sizes.min()} bytes")
            validity.append(ranges.concatenate_bits(bitmap.data, bitmap.starts, num_bits))
        counts = chunks.num_values * layers[-1].items_per_value
        items = codecs.decode_chunks(leaf, Chunks(tuple(buffers), counts))
        return _wrap(items, layers, validity, int(chunks.num_values.sum()))

    def can_gather(self, encoding: encodings21.FixedSizeList, codecs: Codecs) -> bool:
        """Tell whether each list is a run of whole bytes: no bitmaps, plain items."""
        layers, leaf = _layers(encoding)
        width = leaf.flat.bits_per_value * layers[-1].items_per_value
        plain = leaf.WhichOneof("compression") == "flat" and width % 8 == 0
        return plain and not any(layer.has_validity for layer in layers)

    def gather(
        self,
        encoding: encodings21.FixedSizeList,
        chunks: Chunks,
        request: ValuePlaces,
        codecs: Codecs,
    ) -> DataBlock:
        """Fetch each wanted list as one wide value."""
        layers, leaf = _layers(encoding)
        count = layers[-1].items_per_value
        wide = encodings21.CompressiveEncoding()
        wide.flat.bits_per_value = min(leaf.flat.bits_per_value * count, _MOST_TOTAL)
        lists = codecs.gather(wide, chunks, request)
        if not isinstance(lists, FixedWidth):
            raise corrupt("lists of fixed width", type(lists).__name__)
        num_lists = lists.num_values
        items = FixedWidth(leaf.flat.bits_per_value, num_lists * count, lists.data)
        return _wrap(items, layers, [None] * len(layers), num_lists)

    def decode_blocks(
        self, encoding: encodings21.FixedSizeList, blocks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Decode the items of all blocks."""
        layers, leaf = _layers(encoding)
        if any(layer.has_validity for layer in layers):
            raise NotSupportedError("a block of fixed-size lists with null items is not supported")
        _check_total(blocks.num_values, layers)
        counts = blocks.num_values * layers[-1].items_per_value
        items = codecs.decode_blocks(leaf, Chunks(blocks.buffers, counts))
        return _wrap(items, layers, [None] * len(layers), int(blocks.num_values.sum()))

    def decode_values(
        self,
        encoding: encodings21.FixedSizeList,
        values: FixedWidth | VariableWidth,
        codecs: Codecs,
    ) -> DataBlock:
        """Take bitmaps and items of each value apart."""
        layers, leaf = _layers(encoding)
        if not isinstance(values, FixedWidth):
            raise corrupt("fixed-size lists of fixed width", "values of variable width")
        count = layers[-1].items_per_value
        _check_total(np.array([values.num_values]), layers)
        num_items = values.num_values * count
        validity, data = _unzip(values, layers)
        bits = values.bits_per_value - 8 * _validity_bytes(layers)
        if leaf.WhichOneof("compression") == "constant" and bits == 0:
            items: DataBlock = AllNull(num_items)
        elif bits <= 0 or bits % count:
            raise corrupt(f"lists of {count} items", f"{values.bits_per_value} bits per list")
        else:
            items = codecs.decode_values(leaf, FixedWidth(bits // count, num_items, data))
        return _wrap(items, layers, validity, values.num_values)

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take every list."""
        return STRUCTURAL * isinstance(measured.block, FixedSizeListBlock)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """View runs of items as chunks, with their bitmaps cut to bytes."""
        shape = _taken_apart(measured.block)
        bits = shape.items.bits_per_value * shape.layers[-1].items_per_value
        bits += 8 * _row_validity(shape.layers)
        limit = min(options.chunk_bytes * 8 // bits, _CHUNK_VALUES)
        # Eight lists end on a byte, whatever the width of their items.
        counts = uniform_counts(measured.num_values, power_of_two_below(limit, 8))
        firsts = np.cumsum(counts) - counts
        buffers: list[Parts] = []
        bitmaps = [(layer.items_per_value, bitmap) for layer, bitmap in shape.bitmaps()]
        last = (shape.layers[-1].items_per_value * shape.items.bits_per_value, shape.items.data)
        for width, data in (*bitmaps, last):
            starts, sizes = firsts * width // 8, (counts * width + 7) // 8
            buffers.append(Parts((ChunkBuffer(data, starts, sizes),)))
        return CompressedChunks(shape.message(), tuple(buffers), counts)

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take lists of whole bytes."""
        if not isinstance(measured.block, FixedSizeListBlock):
            return 0
        shape = _taken_apart(measured.block)
        bits = shape.items.bits_per_value * shape.layers[-1].items_per_value
        return STRUCTURAL * (bits % 8 == 0)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Put the bitmaps of each list before its items; without bitmaps nothing is copied."""
        shape = _taken_apart(measured.block)
        count = measured.num_values
        item_bytes = shape.items.bits_per_value * shape.layers[-1].items_per_value // 8
        bitmaps = shape.bitmaps()
        if not bitmaps:
            return CompressedValues(
                shape.message(), FixedWidth(8 * item_bytes, count, shape.items.data)
            )
        head = _row_validity(shape.layers)
        rows = memory.allocate(count * (head + item_bytes)).reshape(count, head + item_bytes)
        position = 0
        for layer, bitmap in bitmaps:
            width = layer.items_per_value
            bits = np.unpackbits(bitmap, count=count * width, bitorder="little")
            packed = np.packbits(bits.reshape(count, width), axis=1, bitorder="little")
            rows[:, position : position + packed.shape[1]] = packed
            position += packed.shape[1]
        rows[:, position:] = shape.items.data.reshape(count, item_bytes)
        values = FixedWidth(8 * (head + item_bytes), count, rows.ravel())
        return CompressedValues(shape.message(), values)


def _layers(
    encoding: encodings21.FixedSizeList,
) -> tuple[list[_Layer], encodings21.CompressiveEncoding]:
    """Return the layers from the outermost in, and the encoding of the items."""
    layers: list[_Layer] = []
    count = 1
    while True:
        count *= encoding.items_per_value
        if not 0 < count <= _MOST_ITEMS:
            raise corrupt("a number of list items within the limit", f"{count} items per value")
        layers.append(_Layer(encoding.items_per_value, count, encoding.has_validity))
        if encoding.values.WhichOneof("compression") != "fixed_size_list":
            return layers, encoding.values
        encoding = encoding.values.fixed_size_list


def _check_total(num_values: Ints, layers: list[_Layer]) -> None:
    most = int(num_values.max()) if num_values.size else 0
    if most * layers[-1].items_per_value * max(1, num_values.size) > _MOST_TOTAL:
        raise corrupt("a number of list items within the limit", f"{most} lists in a chunk")


def _validity_bytes(layers: list[_Layer]) -> int:
    return sum((layer.items_per_value + 7) // 8 for layer in layers if layer.has_validity)


def _unzip(values: FixedWidth, layers: list[_Layer]) -> tuple[list[Bytes | None], Bytes]:
    """Return the bitmap of each layer and the bytes of all items."""
    if not any(layer.has_validity for layer in layers):
        return [None] * len(layers), values.data
    size, odd = divmod(values.bits_per_value, 8)
    if odd or size < _validity_bytes(layers):
        raise corrupt("lists of whole bytes with their validity", f"{size} bytes per list")
    row = np.arange(values.num_values, dtype=np.int64) * size
    validity: list[Bytes | None] = []
    for layer in layers:
        if not layer.has_validity:
            validity.append(None)
            continue
        num_bits = np.full(row.size, layer.items_per_value, np.int64)
        validity.append(ranges.concatenate_bits(values.data, row, num_bits))
        row += (layer.items_per_value + 7) // 8
    item_size = size - _validity_bytes(layers)
    return validity, ranges.concatenate(values.data, row, np.full(row.size, item_size, np.int64))


def _wrap(
    items: DataBlock, layers: list[_Layer], validity: list[Bytes | None], num_values: int
) -> DataBlock:
    """Put the lists around the items, the innermost first."""
    block = items
    for layer, bitmap in zip(reversed(layers), reversed(validity), strict=True):
        count = num_values * (layer.items_per_value // layer.dimension)
        block = FixedSizeListBlock(layer.dimension, count, block, bitmap)
    return block


@dataclass(frozen=True, slots=True)
class _Validity:
    dimension: int
    items_per_value: int  # of the outermost list
    has_validity: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    """A block of lists taken apart: its layers, the outermost first, and the innermost items."""

    layers: list[_Validity]
    validity: list[Bytes | None]
    items: FixedWidth

    def bitmaps(self) -> list[tuple[_Validity, Bytes]]:
        """Return the layers that have a validity, with it."""
        pairs = zip(self.layers, self.validity, strict=True)
        return [(layer, bitmap) for layer, bitmap in pairs if bitmap is not None]

    def message(self) -> encodings21.CompressiveEncoding:
        """Describe the lists, the outermost first."""
        flat = encodings21.Flat(bits_per_value=self.items.bits_per_value)
        encoding = encodings21.CompressiveEncoding(flat=flat)
        for layer in reversed(self.layers):
            lists = encodings21.FixedSizeList(
                items_per_value=layer.dimension, values=encoding, has_validity=layer.has_validity
            )
            encoding = encodings21.CompressiveEncoding(fixed_size_list=lists)
        return encoding


def _taken_apart(block: DataBlock) -> _Shape:
    layers: list[_Validity] = []
    validity: list[Bytes | None] = []
    count = 1
    while isinstance(block, FixedSizeListBlock):
        count *= block.dimension
        layers.append(_Validity(block.dimension, count, block.validity is not None))
        validity.append(block.validity)
        block = block.items
    if not isinstance(block, FixedWidth):
        raise InternalError(f"fixed-size lists of {type(block).__name__} blocks")
    return _Shape(layers, validity, block)


def _row_validity(layers: list[_Validity]) -> int:
    return sum((layer.items_per_value + 7) // 8 for layer in layers if layer.has_validity)
