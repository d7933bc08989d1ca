"""Packed struct: the children of a struct stored row by row, all of fixed width.

Layout: the encoding below holds rows of ``sum(bits_per_value)`` bits; child ``i`` takes the next
``bits_per_value[i]`` bits of each row. Rows are written flat.
Limits: every child has whole bytes.
Source: message ``PackedStruct`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    ValuePlaces,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.base import PackedStruct as PackedStructBlock
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import CompressedChunks, Compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory
from lance_nb.encodings.statistics import STRUCTURAL, Measured
from lance_nb.errors import InternalError


class PackedStruct(Codec):
    """Children of fixed width, interleaved row by row."""

    def num_buffers(self, encoding: encodings21.PackedStruct, codecs: Codecs) -> int:
        """Return the number of buffers of the rows."""
        return codecs.num_buffers(encoding.values)

    def decode_chunks(
        self, encoding: encodings21.PackedStruct, chunks: Chunks, codecs: Codecs
    ) -> PackedStructBlock:
        """Cut the rows of all chunks."""
        return _cut(encoding, codecs.decode_chunks(encoding.values, chunks))

    def can_gather(self, encoding: encodings21.PackedStruct, codecs: Codecs) -> bool:
        """Tell whether the rows can be fetched."""
        return codecs.can_gather(encoding.values)

    def gather(
        self,
        encoding: encodings21.PackedStruct,
        chunks: Chunks,
        request: ValuePlaces,
        codecs: Codecs,
    ) -> PackedStructBlock:
        """Cut the wanted rows only."""
        return _cut(encoding, codecs.gather(encoding.values, chunks, request))

    def decode_values(
        self,
        encoding: encodings21.PackedStruct,
        values: FixedWidth | VariableWidth,
        codecs: Codecs,
    ) -> PackedStructBlock:
        """Cut rows that were stored one by one."""
        return _cut(encoding, codecs.decode_values(encoding.values, values))

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take structs whose children all have whole bytes."""
        return STRUCTURAL * (_child_widths(measured.block) is not None)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Put the children side by side; the rows are stored plainly."""
        block, widths = measured.block, _child_widths(measured.block)
        if widths is None or not isinstance(block, PackedStructBlock):
            raise InternalError(f"packed rows of a {type(block).__name__} block")
        size = sum(widths) // 8
        rows = memory.allocate(block.num_values * size).reshape(block.num_values, size)
        start = 0
        for child, bits in zip(block.children, widths, strict=True):
            stop = start + bits // 8
            if isinstance(child, FixedWidth):
                rows[:, start:stop] = child.data.reshape(block.num_values, bits // 8)
            start = stop
        whole = FixedWidth(sum(widths), block.num_values, rows.ravel())
        inner = compressors.compress_chunks(Measured(whole), options.plain)
        message = encodings21.PackedStruct(bits_per_value=widths, values=inner.encoding)
        encoding = encodings21.CompressiveEncoding(packed_struct=message)
        return CompressedChunks(encoding, inner.buffers, inner.num_values)


def _cut(encoding: encodings21.PackedStruct, rows: DataBlock) -> PackedStructBlock:
    widths = list(encoding.bits_per_value)
    if not widths or any(bits == 0 or bits % 8 for bits in widths):
        raise corrupt("packed children of whole bytes", f"{widths} bits")
    if not isinstance(rows, FixedWidth) or rows.bits_per_value != sum(widths):
        raise corrupt(f"packed rows of {sum(widths)} bits", f"{_width(rows)} bits")
    grid = rows.data.reshape(rows.num_values, sum(widths) // 8)
    children = []
    start = 0
    for bits in widths:
        stop = start + bits // 8
        column = memory.allocate(rows.num_values * (bits // 8)).reshape(-1, bits // 8)
        np.copyto(column, grid[:, start:stop])
        children.append(FixedWidth(bits, rows.num_values, column.ravel()))
        start = stop
    return PackedStructBlock(rows.num_values, tuple(children))


def _width(rows: DataBlock) -> str:
    return str(rows.bits_per_value) if isinstance(rows, FixedWidth) else "a varying number of"


def _child_widths(block: DataBlock) -> list[int] | None:
    """Return the bits of each child, None unless all are plain and have whole bytes."""
    if not isinstance(block, PackedStructBlock):
        return None
    widths = [child.bits_per_value for child in block.children if isinstance(child, FixedWidth)]
    if len(widths) < len(block.children) or any(bits % 8 for bits in widths):
        return None
    return widths
