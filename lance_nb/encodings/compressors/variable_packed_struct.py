"""Write the children of a struct row by row, some of variable width.

Layout: see ``compression.variable_packed_struct``.
Limits: file version 2.2, full-zip; children have whole bytes and no nulls.
Source: message ``VariablePackedStruct`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    FixedWidth,
    Ints,
    PackedStruct,
    VariableWidth,
)
from lance_nb.encodings.compress_base import CompressedValues, Compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels.join import join_rows
from lance_nb.encodings.statistics import STRUCTURAL, Measured, bits_per_value
from lance_nb.errors import InternalError

_INT32_MAX = (1 << 31) - 1
Field = encodings21.VariablePackedStruct.FieldEncoding


class VariablePackedStructCompressor:
    """Compress; see the module."""

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take structs whose children have whole bytes, from file version 2.2 on."""
        block = measured.block
        if not isinstance(block, PackedStruct) or not options.has_large_chunks:
            return 0
        return STRUCTURAL * all(not (bits_per_value(child) or 0) % 8 for child in block.children)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Join the children of every row, each string behind its length."""
        block = measured.block
        if not isinstance(block, PackedStruct):
            raise InternalError(f"packed rows of a {type(block).__name__} block")
        message = encodings21.VariablePackedStruct()
        columns: list[tuple[Ints, Bytes]] = []
        for child in block.children:
            compressed = compressors.compress_values(Measured(child), options)
            field = message.fields.add(value=compressed.encoding)
            columns += _columns(compressed.values, field)
        rows = join_rows(columns)
        ends = np.sum([offsets for offsets, _ in columns], axis=0)
        narrow = int(ends[-1]) <= _INT32_MAX
        values = VariableWidth(block.num_values, ends.astype(np.int32) if narrow else ends, rows)
        encoding = encodings21.CompressiveEncoding(variable_packed_struct=message)
        return CompressedValues(encoding, values)


def _columns(values: FixedWidth | VariableWidth, field: Field) -> list[tuple[Ints, Bytes]]:
    """Return what a child adds to every row, and say its width in ``field``."""
    count = np.arange(values.num_values + 1, dtype=np.int64)
    if isinstance(values, FixedWidth):
        field.bits_per_value = values.bits_per_value
        return [(count * (values.bits_per_value // 8), values.data)]
    word = values.offsets.dtype.itemsize
    field.bits_per_length = 8 * word
    lengths = np.diff(values.offsets).view(np.uint8)
    return [(count * word, lengths), (values.offsets.astype(np.int64), values.data)]
