"""Compare the values of rows of two versions, type by type, without a loop per value.

A null equals a null only. NaN equals NaN, whatever its bits: a value that stayed "not a number" has
not changed. 0.0 and -0.0 differ, because a diff shows what is stored. Lists, structs and maps are
compared part by part; the parts of a null struct or list do not count. Maps are compared as lists
of entries, in their order. Dictionaries and extension types are compared by their values.

A column whose type changed is compared in its new type; a value that does not fit into it has
changed. A scan returns where the payloads of a blob column lie, which does not help when rows
moved: payloads of equal size are read and compared.

Limits: payloads are compared ``PAYLOAD_BYTES`` at a time; a single one may be larger.
Source: Arrow columnar format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.arrow_parts import one_array
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import Field
from lance_nb.format.fragment import Fragment
from lance_nb.table.addresses import Addresses
from lance_nb.table.blobs import BlobFile, described_blobs, read_parts
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.ordering import fetch_rows
from lance_nb.table.projection import ROW_ADDRESS, project
from lance_nb.table.scan import window_rows
from lance_nb.table.snapshot import Snapshot

Mask = npt.NDArray[np.bool_]
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}


def differing(a: pa.Array, b: pa.Array) -> Mask:
    """Return for each place whether the values differ."""
    a, b = _plain(a), _plain(b)
    if pt.is_null(a.type):
        return np.zeros(len(a), np.bool_)
    valid_a, valid_b = _validity(a), _validity(b)
    if valid_a is None and valid_b is None:
        return _values(a, b)
    left, right = _or_all(valid_a, len(a)), _or_all(valid_b, len(a))
    differs: Mask = (left != right) | (_values(a, b) & left & right)
    return differs


def _plain(array: pa.Array) -> pa.Array:
    """Return the array without extension type or dictionary."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if pt.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if pt.is_string_view(array.type):
        return pc.cast(array, pa.large_string())
    if pt.is_binary_view(array.type):
        return pc.cast(array, pa.large_binary())
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
        differs = np.zeros(len(a), np.bool_)
        for position in range(type_.num_fields):
            differs |= differing(a.field(position), b.field(position))
        return differs
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
    differs: Mask = left != right
    if differs.ndim > 1:
        return np.asarray(differs.any(axis=1))
    if pt.is_floating(a.type) and differs.any():
        kind = _FLOATS[width]
        differs &= ~(np.isnan(left.view(kind)) & np.isnan(right.view(kind)))
    return differs


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
    differs = pc.fill_null(pc.not_equal(a, b), False)
    return _bits(differs.buffers()[1], differs.offset, len(differs))


def _fixed_lists(a: pa.Array, b: pa.Array, size: int) -> Mask:
    if not size:
        return np.zeros(len(a), np.bool_)
    left = a.values.slice(a.offset * size, len(a) * size)
    right = b.values.slice(b.offset * size, len(b) * size)
    return np.asarray(differing(left, right).reshape(-1, size).any(axis=1))


def _lists(a: pa.Array, b: pa.Array) -> Mask:
    """Compare lists: by their lengths, and those of equal length item by item."""
    lengths_a, lengths_b = _lengths(a), _lengths(b)
    differs: Mask = lengths_a != lengths_b
    alike = np.flatnonzero(~differs & (lengths_a > 0))
    if alike.size:
        places = from_integers(alike)
        items = differing(_items(pc.take(a, places)), _items(pc.take(b, places)))
        starts = np.concatenate(([0], np.cumsum(lengths_a[alike])[:-1]))
        differs[alike] = np.logical_or.reduceat(items, starts)
    return differs


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
        array = pc.cast(array, entries)
    return array.flatten()


PAYLOAD_BYTES = 32 * 1024 * 1024


class Sides:
    """Reads some columns of rows on both sides and compares them."""

    def __init__(self, a: Snapshot, b: Snapshot, pairs: Sequence[ColumnPair]) -> None:
        self._a, self._b = a, b
        self._pairs = pairs
        fields = [field for pair in pairs for field in (pair.a, pair.b) if field is not None]
        extra = [ROW_ADDRESS] if any(map(holds_blobs, fields)) else []
        names_a = [pair.a.name for pair in pairs if pair.a is not None]
        names_b = [pair.b.name for pair in pairs if pair.b is not None]
        self._wanted_a = project(a.manifest.schema, names_a, extra)
        self._wanted_b = project(b.manifest.schema, names_b, extra)

    @classmethod
    def of(cls, ends: Ends, pairs: Sequence[ColumnPair]) -> Sides:
        """Compare columns of the two ends."""
        return cls(ends.a, ends.b, pairs)

    def window_rows(self, fragment: Fragment) -> int:
        """Return how many rows are compared at a time."""
        return window_rows(self._b, self._wanted_b, fragment)

    def differing(self, a: Addresses, b: Addresses) -> Mask:
        """Return for each row and column whether the values differ."""
        left = fetch_rows(self._a, self._wanted_a, a)
        right = fetch_rows(self._b, self._wanted_b, b)
        differs = np.zeros((b.num_rows, len(self._pairs)), np.bool_)
        for number, pair in enumerate(self._pairs):
            old = None if pair.a is None else left.column(pair.a.name)
            new = None if pair.b is None else right.column(pair.b.name)
            if pair.a is not None and pair.b is not None and holds_blobs(pair.b):
                differs[:, number] = self._blobs_differ(pair.a, pair.b, left, right)
            else:
                differs[:, number] = values_differ(old, new)
        return differs

    def _blobs_differ(self, a: Field, b: Field, left: pa.Table, right: pa.Table) -> Mask:
        rows_a = _Rows(self._a, left.column(ROW_ADDRESS).to_pylist())
        other = _Rows(self._b, right.column(ROW_ADDRESS).to_pylist())
        columns = one_array(left.column(a.name)), one_array(right.column(b.name))
        return _parts_differ((rows_a, a, columns[0]), (other, b, columns[1]))


def values_differ(old: pa.ChunkedArray | None, new: pa.ChunkedArray | None) -> Mask:
    """Compare a column's values; a column that a side has not is all null there."""
    if old is None or new is None:
        values: Any = old if new is None else new
        return np.asarray(pc.is_valid(values).to_numpy(), np.bool_)
    if old.type != new.type:
        try:
            old = cast_array(old, new.type)
        except pa.ArrowException:
            return _split(old, new)
    return differing(one_array(old), one_array(new))


def _split(old: pa.ChunkedArray, new: pa.ChunkedArray) -> Mask:
    """Compare where some value does not fit into the new type: by halves, until it is alone."""
    if len(old) == 1:
        return np.ones(1, np.bool_)
    middle = len(old) // 2
    parts = values_differ(old[:middle], new[:middle]), values_differ(old[middle:], new[middle:])
    return np.concatenate(parts)


# --- blobs ----------------------------------------------------------------------------------------


class _Rows:
    """The rows whose blobs are compared, on one side."""

    def __init__(self, snapshot: Snapshot, addresses: list[int]) -> None:
        self.snapshot = snapshot
        self.addresses = addresses


_Part = tuple[_Rows, Field, pa.Array]


def holds_blobs(field: Field) -> bool:
    """Tell whether a column is one of blobs, or a struct with some inside."""
    if is_blob(field):
        return True
    return field.logical_type == "struct" and any(map(holds_blobs, field.children))


def _parts_differ(a: _Part, b: _Part) -> Mask:
    """Compare blobs, or structs that may hold blobs."""
    (_, field_a, old), (_, field_b, new) = a, b
    if is_blob(field_a) and is_blob(field_b):
        return _payloads_differ(_opened(a), _opened(b))
    names = [field.name for field in field_a.children], [child.name for child in field_b.children]
    if not holds_blobs(field_b) or names[0] != names[1]:
        return values_differ(pa.chunked_array([old]), pa.chunked_array([new]))
    valid_old, valid_new = (
        np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False)) for array in (old, new)
    )
    differs = np.zeros(len(new), np.bool_)
    for index, (child_a, other) in enumerate(zip(field_a.children, field_b.children, strict=True)):
        differs |= _parts_differ((a[0], child_a, old.field(index)), (b[0], other, new.field(index)))
    result: Mask = (valid_old != valid_new) | (differs & valid_old & valid_new)
    return result


def _opened(part: _Part) -> list[BlobFile | None]:
    rows, field, values = part
    return described_blobs(rows.snapshot, field, values.to_pylist(), rows.addresses)


def _payloads_differ(old: list[BlobFile | None], new: list[BlobFile | None]) -> Mask:
    """Compare payloads, reading those of equal size that lie in different places."""
    differs = np.zeros(len(new), np.bool_)
    waiting: list[int] = []
    held = 0
    for number, (old_blob, other) in enumerate(zip(old, new, strict=True)):
        if old_blob is None or other is None:
            differs[number] = old_blob is not other
        elif old_blob.size() != other.size():
            differs[number] = True
        elif _place(old_blob) != _place(other):
            waiting.append(number)
            held += old_blob.size()
            if held >= PAYLOAD_BYTES:
                _read_and_compare(old, new, waiting, differs)
                waiting, held = [], 0
    _read_and_compare(old, new, waiting, differs)
    return differs


def _place(file: BlobFile) -> tuple[str, str, int]:
    return file.store.uri, file.path, file.start


def _read_and_compare(
    old: list[BlobFile | None], new: list[BlobFile | None], numbers: list[int], differs: Mask
) -> None:
    left, right = (read_parts([_all_of(side[number]) for number in numbers]) for side in (old, new))
    for number, old_data, other in zip(numbers, left, right, strict=True):
        differs[number] = old_data != other


def _all_of(file: BlobFile | None) -> tuple[BlobFile, int, int] | None:
    return None if file is None else (file, 0, file.size())
