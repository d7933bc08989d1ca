"""Write fixed-size lists, possibly nested, of plain values.

Layout: see ``compression.fixed_size_list``. Without null items a full-zip page is the Arrow buffer
itself; chunks hold a multiple of 8 lists, so that bitmaps begin on bytes.
Limits: items of fixed width; they are not compressed further.
Source: message ``FixedSizeList`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    ChunkBuffer,
    DataBlock,
    FixedWidth,
)
from lance_nb.encodings.base import FixedSizeList as FixedSizeListBlock
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
    power_of_two_below,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory
from lance_nb.encodings.statistics import STRUCTURAL, Measured
from lance_nb.errors import InternalError

_CHUNK_VALUES = 4096


class FixedSizeListCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, _options: EncodingOptions) -> int:
        """Take every list."""
        return STRUCTURAL * isinstance(measured.block, FixedSizeListBlock)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, _compressors: Compressors
    ) -> CompressedChunks:
        """View runs of items as chunks, with their bitmaps cut to bytes."""
        shape = _taken_apart(measured.block)
        bits = shape.items.bits_per_value * shape.layers[-1].items_per_value
        bits += 8 * _validity_bytes(shape.layers)
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

    def nominate_values(self, measured: Measured, _options: EncodingOptions) -> int:
        """Take lists of whole bytes."""
        if not isinstance(measured.block, FixedSizeListBlock):
            return 0
        shape = _taken_apart(measured.block)
        bits = shape.items.bits_per_value * shape.layers[-1].items_per_value
        return STRUCTURAL * (bits % 8 == 0)

    def compress_values(
        self, measured: Measured, _options: EncodingOptions, _compressors: Compressors
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
        head = _validity_bytes(shape.layers)
        rows = memory.allocate(count * (head + item_bytes)).reshape(count, head + item_bytes)
        at = 0
        for layer, bitmap in bitmaps:
            width = layer.items_per_value
            bits = np.unpackbits(bitmap, count=count * width, bitorder="little")
            packed = np.packbits(bits.reshape(count, width), axis=1, bitorder="little")
            rows[:, at : at + packed.shape[1]] = packed
            at += packed.shape[1]
        rows[:, at:] = shape.items.data.reshape(count, item_bytes)
        values = FixedWidth(8 * (head + item_bytes), count, rows.ravel())
        return CompressedValues(shape.message(), values)


@dataclass(frozen=True, slots=True)
class _Layer:
    dimension: int
    items_per_value: int  # of the outermost list
    has_validity: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    """A block of lists taken apart: its layers, the outermost first, and the innermost items."""

    layers: list[_Layer]
    validity: list[Bytes | None]
    items: FixedWidth

    def bitmaps(self) -> list[tuple[_Layer, Bytes]]:
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
    layers: list[_Layer] = []
    validity: list[Bytes | None] = []
    count = 1
    while isinstance(block, FixedSizeListBlock):
        count *= block.dimension
        layers.append(_Layer(block.dimension, count, block.validity is not None))
        validity.append(block.validity)
        block = block.items
    if not isinstance(block, FixedWidth):
        raise InternalError(f"fixed-size lists of {type(block).__name__} blocks")
    return _Shape(layers, validity, block)


def _validity_bytes(layers: list[_Layer]) -> int:
    return sum((layer.items_per_value + 7) // 8 for layer in layers if layer.has_validity)
