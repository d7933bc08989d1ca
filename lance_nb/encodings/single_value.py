"""Find the single value of a page whose values are all equal, and serialize it.

Layout: an inline value is at most 32 bytes: the value, little endian; a bool as one byte 0 or 1. A
longer one is a scalar buffer: ``u32 n``, n x ``u32 length``, then n buffers: the Arrow value
buffers of an array of one row.

Limits: fixed width of 1 bit or of whole bytes, and variable width; null slots do not count,
whatever their bytes. Most pages are ruled out by their first few values.
Source: message ConstantLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Bytes, DataBlock, FixedWidth, VariableWidth

INLINE_BYTES_MAX = 32
_FEW = 16  # values of the first look
Mask = npt.NDArray[np.bool_]


def single_value(block: DataBlock, valid: Mask | None) -> DataBlock | None:
    """Return the one value of all valid slots as a block, None if they differ.

    At least one slot is valid.
    """
    first = 0 if valid is None else int(np.argmax(valid))
    if isinstance(block, FixedWidth) and block.bits_per_value == 1:
        return _one_bit(block, valid, first)
    if isinstance(block, FixedWidth) and block.bits_per_value % 8 == 0:
        return _one_fixed(block, valid, first)
    if isinstance(block, VariableWidth):
        return _one_string(block, valid, first)
    return None


def _one_bit(block: FixedWidth, valid: Mask | None, first: int) -> DataBlock | None:
    value = block.data[first // 8] >> (first % 8) & 1
    for count in (min(_FEW, block.num_values), block.num_values):
        bits = np.unpackbits(block.data, count=count, bitorder="little")
        seen = bits if valid is None else bits[valid[:count]]
        if bool((seen != value).any()):
            return None
    return FixedWidth(8, 1, np.array([value], np.uint8))


def _one_fixed(block: FixedWidth, valid: Mask | None, first: int) -> DataBlock | None:
    size = block.bits_per_value // 8
    word = 8 if size % 8 == 0 else 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1
    rows = block.data.view(f"u{word}").reshape(block.num_values, size // word)
    value = rows[first]
    few = slice(None, _FEW)
    if bool((rows[few] != value).any(axis=1)[_shown(valid, few)].any()):
        return None
    different = (rows != value).any(axis=1)
    if bool(different[_shown(valid, slice(None))].any()):
        return None
    return FixedWidth(block.bits_per_value, 1, np.ascontiguousarray(value).view(np.uint8))


def _one_string(block: VariableWidth, valid: Mask | None, first: int) -> DataBlock | None:
    if _few_strings_differ(block, valid, first):
        return None
    few = slice(None, _FEW)
    lengths = block.offsets[1:] - block.offsets[:-1]
    size = int(lengths[first])
    shown = lengths if valid is None else lengths[valid]
    if bool((shown != size).any()) or int(block.offsets[-1]) != size * shown.size:
        return None
    start = int(block.offsets[first])
    value = block.data[start : start + size]
    rows = block.data[: size * shown.size].reshape(shown.size, size)
    if bool((rows[few] != value).any()) or bool((rows != value).any()):
        return None
    pair = block.offsets[:2].copy()
    pair[:] = (0, size)
    return VariableWidth(1, pair, value)


def _few_strings_differ(block: VariableWidth, valid: Mask | None, first: int) -> bool:
    """Tell whether the first few strings say already that not all are one."""
    offsets, data = block.offsets, block.data
    few = offsets[: _FEW + 1].tolist()
    value = data[int(offsets[first]) : int(offsets[first + 1])].tobytes()
    shown = [True] * _FEW if valid is None else valid[:_FEW].tolist()
    return any(
        is_shown and data[start:stop].tobytes() != value
        for start, stop, is_shown in zip(few, few[1:], shown, strict=False)
    )


def _shown(valid: Mask | None, part: slice) -> Mask | slice:
    return slice(None) if valid is None else valid[part]


def inline_bytes(value: DataBlock) -> bytes | None:
    """Return the value for the page description, None if it needs a buffer of its own."""
    if isinstance(value, FixedWidth) and value.data.size <= INLINE_BYTES_MAX:
        return value.data.tobytes()
    return None


def scalar_buffer(value: DataBlock) -> Bytes:
    """Return the value as a page buffer."""
    if isinstance(value, VariableWidth):
        parts = [value.offsets.tobytes(), value.data.tobytes()]
    elif isinstance(value, FixedWidth):
        parts = [value.data.tobytes()]
    else:
        parts = []
    sizes = [len(part) for part in parts]
    head = struct.pack(f"<{len(parts) + 1}I", len(parts), *sizes)
    return np.frombuffer(head + b"".join(parts), np.uint8)
