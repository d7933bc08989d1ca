"""Which values of two arrays differ, type by type, without a loop per value.

A null equals a null only. NaN equals NaN, whatever its bits: a value that stayed "not a number" has
not changed. 0.0 and -0.0 differ, because a diff tells what is stored. Lists, structs and maps are
compared part by part; of a null struct or list the parts do not count. Maps are compared as lists
of entries, in their order. Dictionaries and extension types are compared by their values.

Limits: both arrays have one type and one length.
Source: Arrow columnar format.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pt

from lance_nb.encodings.kernels.memory import from_integers

Mask = npt.NDArray[np.bool_]
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}


def differing(a: pa.Array, b: pa.Array) -> Mask:
    """Return for each place whether the values differ."""
    a, b = _plain(a), _plain(b)
    if pt.is_null(a.type):
        return np.zeros(len(a), np.bool_)
    here, there = _validity(a), _validity(b)
    if here is None and there is None:
        return _values(a, b)
    left, right = _or_all(here, len(a)), _or_all(there, len(a))
    found: Mask = (left != right) | (_values(a, b) & left & right)
    return found


def _plain(array: pa.Array) -> pa.Array:
    """Return the array without extension type or dictionary."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if pt.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if pt.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pt.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _validity(array: pa.Array) -> Mask | None:
    """Return where an array has values, None if everywhere."""
    if not array.null_count:
        return None
    return _bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: pa.Buffer, start: int, count: int) -> Mask:
    data = np.frombuffer(buffer, np.uint8)[start // 8 : -(-(start + count) // 8)]
    bits = np.unpackbits(data, bitorder="little")[start % 8 : start % 8 + count]
    return bits.view(np.bool_)


def _or_all(mask: Mask | None, count: int) -> Mask:
    return np.ones(count, np.bool_) if mask is None else mask


def _values(a: pa.Array, b: pa.Array) -> Mask:
    """Compare values; what is said of places that are null on a side does not matter."""
    type_ = a.type
    if not len(a):
        return np.zeros(0, np.bool_)
    if pt.is_struct(type_):
        found = np.zeros(len(a), np.bool_)
        for position in range(type_.num_fields):
            found |= differing(a.field(position), b.field(position))
        return found
    if pt.is_fixed_size_list(type_):
        return _fixed_lists(a, b, type_.list_size)
    if pt.is_map(type_) or pt.is_list(type_) or pt.is_large_list(type_):
        return _lists(a, b)
    if pt.is_boolean(type_):
        left = _bits(a.buffers()[1], a.offset, len(a))
        bits: Mask = left != _bits(b.buffers()[1], b.offset, len(b))
        return bits
    if any(test(type_) for test in (pt.is_string, pt.is_large_string, pt.is_binary,
                                    pt.is_large_binary)):  # fmt: skip
        return _texts(a, b)
    return _fixed_width(a, b, type_.bit_width // 8)


def _fixed_width(a: pa.Array, b: pa.Array, width: int) -> Mask:
    """Compare the bits, but take all NaN for one."""
    left, right = _words(a, width), _words(b, width)
    found: Mask = left != right
    if found.ndim > 1:
        return np.asarray(found.any(axis=1))
    if pt.is_floating(a.type) and found.any():
        kind = _FLOATS[width]
        found &= ~(np.isnan(left.view(kind)) & np.isnan(right.view(kind)))
    return found


def _words(array: pa.Array, width: int) -> np.ndarray:
    """Return the values as unsigned words; of odd widths, as rows of bytes."""
    buffer = array.buffers()[1]
    start, stop = array.offset, array.offset + len(array)
    if width in _WORDS:
        return np.frombuffer(buffer, _WORDS[width], stop)[start:]
    if not width:
        return np.zeros((len(array), 1), np.uint8)
    return np.frombuffer(buffer, np.uint8, stop * width)[start * width :].reshape(-1, width)


def _texts(a: pa.Array, b: pa.Array) -> Mask:
    import pyarrow.compute as pc

    found = pc.fill_null(pc.not_equal(a, b), False)
    return _bits(found.buffers()[1], found.offset, len(found))


def _fixed_lists(a: pa.Array, b: pa.Array, size: int) -> Mask:
    if not size:
        return np.zeros(len(a), np.bool_)
    left = a.values.slice(a.offset * size, len(a) * size)
    right = b.values.slice(b.offset * size, len(b) * size)
    return np.asarray(differing(left, right).reshape(-1, size).any(axis=1))


def _lists(a: pa.Array, b: pa.Array) -> Mask:
    """Compare lists: by their lengths, and those of equal length item by item."""
    here, there = _lengths(a), _lengths(b)
    found: Mask = here != there
    alike = np.flatnonzero(~found & (here > 0))
    if alike.size:
        places = from_integers(alike)
        items = differing(_items(a.take(places)), _items(b.take(places)))
        starts = np.concatenate(([0], np.cumsum(here[alike])[:-1]))
        found[alike] = np.logical_or.reduceat(items, starts)
    return found


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the length of each list; null ones count as empty."""
    width = np.int64 if pt.is_large_list(array.type) else np.int32
    stored = np.frombuffer(array.buffers()[1], width)[array.offset :][: len(array) + 1]
    offsets: npt.NDArray[np.int64] = stored.astype(np.int64)
    lengths: npt.NDArray[np.int64] = offsets[1:] - offsets[:-1]
    valid = _validity(array)
    if valid is not None:
        lengths[~valid] = 0
    return lengths


def _items(array: pa.Array) -> pa.Array:
    """Return the items of lists that have no nulls and nothing between them."""
    if pt.is_map(array.type):
        kind = array.type
        entries = pa.list_(pa.struct([kind.key_field, kind.item_field]))
        array = array.cast(entries)
    return array.flatten()
