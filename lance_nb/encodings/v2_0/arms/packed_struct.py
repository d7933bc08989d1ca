"""Packed struct: the fields of each row side by side, row after row.

Layout: one buffer; ``inner`` tells the width of each field: flat, or a fixed-size list of flat
items, possibly inside ``nullable.no_nulls``. The buffers that ``inner`` names mean nothing.
Limits: fields are whole bytes wide.
Not supported: nulls, which no writer could store.
Source: message ``PackedStruct`` of lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

import math

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings import base
from lance_nb.encodings.base import DataBlock, FixedWidth, Rows, corrupt
from lance_nb.encodings.steps import Steps, read_ranges
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values, scaled
from lance_nb.errors import NotSupportedError

_DEPTH_MAX = 20
_ROW_BYTES_MAX = 1 << 32


class PackedStruct:
    """Cut rows into fields."""

    def decode(
        self, encoding: encodings.PackedStruct, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read whole rows, then copy each field out of them."""
        shapes = [_shape(inner) for inner in encoding.inner]
        widths = [bits // 8 * math.prod(dims) for bits, dims in shapes]
        row_bytes = sum(widths)
        if not 0 < row_bytes < _ROW_BYTES_MAX:
            raise corrupt(f"packed rows of 1 to {_ROW_BYTES_MAX} bytes", f"{row_bytes} bytes")
        wanted = scaled(rows, row_bytes)
        region = page.region(encoding.buffer)
        data = yield from read_ranges(region, wanted.starts, wanted.stops)
        grid = data.reshape(rows.num_rows, row_bytes)
        children: list[DataBlock] = []
        position = 0
        for (bits, dims), width in zip(shapes, widths, strict=True):
            column = np.ascontiguousarray(grid[:, position : position + width]).ravel()
            children.append(_nested(column, bits, dims, rows.num_rows))
            position += width
        return Values(base.PackedStruct(rows.num_rows, tuple(children)))


def _shape(encoding: encodings.ArrayEncoding) -> tuple[int, list[int]]:
    """Return the bits of a flat field, and the dimensions of the lists around it, outer first."""
    dims: list[int] = []
    for _ in range(_DEPTH_MAX):
        match encoding.WhichOneof("array_encoding"):
            case "flat":
                bits = encoding.flat.bits_per_value
                if bits == 0 or bits % 8:
                    raise NotSupportedError(f"packed struct fields of {bits} bits")
                return bits, dims
            case "fixed_size_list":
                dims.append(encoding.fixed_size_list.dimension)
                encoding = encoding.fixed_size_list.items
            case "nullable" if encoding.nullable.WhichOneof("nullability") == "no_nulls":
                encoding = encoding.nullable.no_nulls.values
            case arm:
                raise NotSupportedError(f"packed struct fields with encoding {arm!r}")
    raise NotSupportedError(f"packed struct fields nested over {_DEPTH_MAX} deep")


def _nested(data: base.Bytes, bits: int, dims: list[int], num_rows: int) -> DataBlock:
    counts = [num_rows]
    for dimension in dims:
        counts.append(counts[-1] * dimension)
    block: DataBlock = FixedWidth(bits, counts[-1], data)
    for dimension, count in zip(reversed(dims), reversed(counts[:-1]), strict=True):
        if not dimension:
            raise corrupt("a fixed-size list of at least one item", "dimension 0")
        block = base.FixedSizeList(dimension, count, block, None)
    return block
