"""64-bit hashes of keys, whole columns at a time: equal keys have equal hashes, on every machine.

Numbers, times and booleans are hashed by their bytes, -0.0 as 0.0 and every NaN alike. Texts and
bytes are polynomials in an odd number, modulo 2**64. Rows with a NULL in the key have no hash,
because NULL is unlike every key.

Two keys may share a hash, also on purpose: who uses the hashes compares the keys behind equal ones.

Limits: numbers, booleans, times, decimals, texts, bytes, and dictionaries of these.
Source: our own; the mixing steps are those of SplitMix64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pt

from lance_nb.errors import NotSupportedError

Hashes = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def check_key_type(name: str, type_: pa.DataType) -> None:
    """Refuse a column whose values are not hashed. Raises NotSupportedError."""
    if pt.is_dictionary(type_):
        return check_key_type(name, type_.value_type)
    is_fixed = pt.is_primitive(type_) or pt.is_fixed_size_binary(type_) or pt.is_decimal(type_)
    if not (is_fixed or _is_bytes(type_)) or pt.is_null(type_):
        raise NotSupportedError(
            f"column {name!r} is {type_}: unique columns are numbers, times, texts or bytes"
        )
    return None


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (pt.is_string, pt.is_binary, pt.is_large_string, pt.is_large_binary)
    return any(is_kind(type_) for is_kind in kinds)


def key_hashes(columns: list[pa.Array]) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """Return a hash for each row of the columns, and which rows have no NULL."""
    columns = [
        column.dictionary_decode() if pt.is_dictionary(column.type) else column
        for column in columns
    ]
    hashes = np.zeros(len(columns[0]), np.uint64)
    valid = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        if column.null_count:
            valid &= np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        hashes = _mixed(hashes * _FACTOR + _column_hashes(column))
    return hashes, valid


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def _column_hashes(column: pa.Array) -> Hashes:
    type_ = column.type
    if _is_bytes(type_):
        return _text_hashes(column)
    if pt.is_boolean(type_):
        column, type_ = column.cast(pa.uint8()), pa.uint8()
    width = type_.bit_width // 8
    size = (column.offset + len(column)) * width
    raw = np.frombuffer(column.buffers()[1] or b"", np.uint8)[column.offset * width : size]
    if pt.is_floating(type_):
        raw = _canonical(raw, width).view(np.uint8)
    words = np.zeros((len(column), -(-width // 8) * 8), np.uint8)
    words[:, :width] = raw.reshape(len(column), width)
    hashes = np.zeros(len(column), np.uint64)
    for word in words.view("<u8").T:
        hashes = _mixed(hashes * _FACTOR + word + np.uint64(1))
    return hashes


def _canonical(raw: npt.NDArray[np.uint8], width: int) -> npt.NDArray[np.floating]:
    """Return numbers without -0.0, and with one NaN."""
    values: npt.NDArray[np.floating] = raw.view(f"<f{width}").copy()
    values[values == 0] = 0
    values[np.isnan(values)] = np.nan
    return values


def _text_hashes(column: pa.Array) -> Hashes:
    is_large = pt.is_large_string(column.type) or pt.is_large_binary(column.type)
    _, offset_buffer, data_buffer = column.buffers()
    kind = np.dtype(np.int64 if is_large else np.int32)
    if not len(column):
        return np.zeros(0, np.uint64)
    offsets = np.frombuffer(offset_buffer, kind)[column.offset : column.offset + len(column) + 1]
    offsets = offsets.astype(np.int64)
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    starts = offsets[:-1] - offsets[0]
    lengths = np.diff(offsets)
    hashes = np.zeros(len(column), np.uint64)
    held = np.flatnonzero(lengths)
    if held.size:
        places = np.arange(data.size) - np.repeat(starts[held], lengths[held])
        factors = _powers(int(lengths.max()))[places]
        products = (data.astype(np.uint64) + np.uint64(1)) * factors
        hashes[held] = np.add.reduceat(products, starts[held])
    return _mixed(hashes + lengths.astype(np.uint64) * _FACTOR)


def _powers(count: int) -> Hashes:
    """Return 1, f, f**2, ... modulo 2**64."""
    return np.cumprod(
        np.concatenate([[np.uint64(1)], np.full(count - 1, _FACTOR)]), dtype=np.uint64
    )
