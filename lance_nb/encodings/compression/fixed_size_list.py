"""Fixed-size lists, possibly of fixed-size lists: dimensions around one leaf encoding.

Layout: the descriptions nest from the outermost list inwards; layer ``k`` has ``D_k`` items per
value, ``C_k = D_1 * ... * D_k``. Mini-block: one validity bitmap per layer that has one
(``num_values * C_k`` bits, chunk by chunk from bit 0), then the buffers of the leaf for
``num_values * C_last`` items. Block: the leaf alone. Per value: for each layer with validity
``ceil(C_k / 8)`` bytes of bitmap, then the items of the value.
Limits: at most 2**40 items per value; per-value items have whole bytes if there is any validity.
A constant leaf without a value means that all items are null.
Source: message ``FixedSizeList`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    Ints,
    VariableWidth,
    Wanted,
    corrupt,
)
from lance_nb.encodings.base import FixedSizeList as FixedSizeListBlock
from lance_nb.encodings.kernels import ranges
from lance_nb.errors import NotSupportedError

_MOST_ITEMS = 1 << 40  # per value
_MOST_TOTAL = 1 << 56  # in all chunks: bits still fit 64 bits


@dataclass(frozen=True, slots=True)
class _Layer:
    dimension: int
    items_per_value: int  # of the outermost list
    has_validity: bool


class FixedSizeList:
    """Decode the items and put the lists around them."""

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

    def can_gather(self, encoding: encodings21.FixedSizeList, _codecs: Codecs) -> bool:
        """Tell whether each list is a run of whole bytes: no bitmaps, plain items."""
        layers, leaf = _layers(encoding)
        width = leaf.flat.bits_per_value * layers[-1].items_per_value
        plain = leaf.WhichOneof("compression") == "flat" and width % 8 == 0
        return plain and not any(layer.has_validity for layer in layers)

    def gather(
        self,
        encoding: encodings21.FixedSizeList,
        chunks: Chunks,
        wanted: Wanted,
        codecs: Codecs,
    ) -> DataBlock:
        """Fetch each wanted list as one wide value."""
        layers, leaf = _layers(encoding)
        count = layers[-1].items_per_value
        wide = encodings21.CompressiveEncoding()
        wide.flat.bits_per_value = min(leaf.flat.bits_per_value * count, _MOST_TOTAL)
        lists = codecs.gather(wide, chunks, wanted)
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


def _layers(
    encoding: encodings21.FixedSizeList,
) -> tuple[list[_Layer], encodings21.CompressiveEncoding]:
    """Return the layers from the outermost in, and the encoding of the items."""
    layers: list[_Layer] = []
    count = 1
    while True:
        count *= encoding.items_per_value
        if not 0 < count <= _MOST_ITEMS:
            raise corrupt("a sane number of list items", f"{count} items per value")
        layers.append(_Layer(encoding.items_per_value, count, encoding.has_validity))
        if encoding.values.WhichOneof("compression") != "fixed_size_list":
            return layers, encoding.values
        encoding = encoding.values.fixed_size_list


def _check_total(num_values: Ints, layers: list[_Layer]) -> None:
    most = int(num_values.max()) if num_values.size else 0
    if most * layers[-1].items_per_value * max(1, num_values.size) > _MOST_TOTAL:
        raise corrupt("a sane number of list items", f"{most} lists in a chunk")


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
    rest = size - _validity_bytes(layers)
    return validity, ranges.concatenate(values.data, row, np.full(row.size, rest, np.int64))


def _wrap(
    items: DataBlock, layers: list[_Layer], validity: list[Bytes | None], num_values: int
) -> DataBlock:
    """Put the lists around the items, the innermost first."""
    block = items
    for layer, bitmap in zip(reversed(layers), reversed(validity), strict=True):
        count = num_values * (layer.items_per_value // layer.dimension)
        block = FixedSizeListBlock(layer.dimension, count, block, bitmap)
    return block
