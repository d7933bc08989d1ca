"""Write the children of a struct row by row, all of fixed width.

Layout: see ``compression.packed_struct``; the rows are stored plainly.
Limits: every child has whole bytes.
Source: message ``PackedStruct`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    DataBlock,
    FixedWidth,
)
from lance_nb.encodings.base import PackedStruct as PackedStructBlock
from lance_nb.encodings.compress_base import CompressedChunks, Compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory
from lance_nb.encodings.statistics import STRUCTURAL, Measured
from lance_nb.errors import InternalError


class PackedStructCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, _options: EncodingOptions) -> int:
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


def _child_widths(block: DataBlock) -> list[int] | None:
    """Return the bits of each child, None unless all are plain and have whole bytes."""
    if not isinstance(block, PackedStructBlock):
        return None
    widths = [child.bits_per_value for child in block.children if isinstance(child, FixedWidth)]
    if len(widths) < len(block.children) or any(bits % 8 for bits in widths):
        return None
    return widths
