"""Values of an Arrow array taken from its buffers with numpy: no kernels, nothing heavy to import.

``pyarrow.compute`` (and pandas, which pyarrow loads to look at Python values) would cost the first
screen more than everything else together.

Layout: Arrow's own: a validity bitmap, least significant bit first; offsets and data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa


def numbers_of(column: pa.Array) -> Any:
    """View the stored values of an integer or float array; slots of nulls hold anything."""
    kind = column.type
    letter = "f" if pa.types.is_floating(kind) else "u" if str(kind).startswith("u") else "i"
    dtype = np.dtype(f"<{letter}{kind.bit_width // 8}")
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype)
    return np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)


def flags_of(column: pa.Array) -> Any:
    """Unpack a boolean array to one byte per value."""
    return _unpacked(column.buffers()[1], column)


def validity_of(column: pa.Array) -> Any:
    """Unpack the validity of an array to one byte per value, 0 is null."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.uint8)
    bitmap = column.buffers()[0]
    return np.ones(len(column), np.uint8) if bitmap is None else _unpacked(bitmap, column)


def _unpacked(bitmap: Any, column: pa.Array) -> Any:
    if bitmap is None:
        return np.zeros(len(column), np.uint8)
    stop = column.offset + len(column)
    bits = np.frombuffer(bitmap, np.uint8, (stop + 7) // 8)
    return np.unpackbits(bits, count=stop, bitorder="little")[column.offset :]


def heads_of(column: pa.Array, limit: int) -> Iterator[tuple[bytes, int] | None]:
    """Give the first ``limit`` bytes and the size of every string or binary value, None for null.

    Only those bytes become Python objects: a cell of many megabytes costs no more than a short one.
    """
    if pa.types.is_binary_view(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.large_binary())
    valid = validity_of(column)
    starts, stops, data = _places(column)
    view = memoryview(b"" if data is None else data)
    for row in range(len(column)):
        if valid[row]:
            first, stop = int(starts[row]), int(stops[row])
            yield view[first : min(stop, first + limit)].tobytes(), stop - first
        else:
            yield None


def _places(column: pa.Array) -> tuple[Any, Any, Any]:
    """Start and end of every value within the data buffer, and that buffer."""
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        places = (np.arange(len(column) + 1) + column.offset) * kind.byte_width
        return places[:-1], places[1:], column.buffers()[1]
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    dtype = np.dtype("<i8" if wide else "<i4")
    _, raw, data = column.buffers()
    if raw is None or not len(column):
        none = np.zeros(len(column), np.int64)
        return none, none, data
    offsets = np.frombuffer(raw, dtype, len(column) + 1, column.offset * dtype.itemsize)
    return offsets[:-1], offsets[1:], data
