"""Columns of rows read on both sides and compared: plain values, casts, and payloads of blobs.

A column whose type changed is compared in its new type; a value that does not fit into it has
changed. Of a blob column a scan returns where the payloads lie, which says nothing when rows moved:
payloads of equal size are read and compared.

Limits: payloads are compared some ``PAYLOAD_BYTES`` at a time; a single one may be larger.
Source: values.py says when two values differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_array
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import Field
from lance_nb.format.fragment import Fragment
from lance_nb.table.blobs import BlobFile, described_blobs, read_parts
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.values import differing
from lance_nb.table.ordering import Addresses, fetch_rows
from lance_nb.table.projection import ROW_ADDRESS, project
from lance_nb.table.scan import window_rows
from lance_nb.table.snapshot import Snapshot

Mask = npt.NDArray[np.bool_]
PAYLOAD_BYTES = 32 * 1024 * 1024


class Sides:
    """Reads some columns of rows on both sides and compares them."""

    def __init__(self, a: Snapshot, b: Snapshot, pairs: Sequence[ColumnPair]) -> None:
        self._a, self._b = a, b
        self._pairs = pairs
        fields = [one for pair in pairs for one in (pair.a, pair.b) if one is not None]
        extra = [ROW_ADDRESS] if any(map(holds_blobs, fields)) else []
        names_a = [one.a.name for one in pairs if one.a is not None]
        names_b = [one.b.name for one in pairs if one.b is not None]
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
        found = np.zeros((b.num_rows, len(self._pairs)), np.bool_)
        for number, pair in enumerate(self._pairs):
            old = None if pair.a is None else left.column(pair.a.name)
            new = None if pair.b is None else right.column(pair.b.name)
            if pair.a is not None and pair.b is not None and holds_blobs(pair.b):
                found[:, number] = self._blobs_differ(pair.a, pair.b, left, right)
            else:
                found[:, number] = values_differ(old, new)
        return found

    def _blobs_differ(self, a: Field, b: Field, left: pa.Table, right: pa.Table) -> Mask:
        one = _Rows(self._a, left.column(ROW_ADDRESS).to_pylist())
        other = _Rows(self._b, right.column(ROW_ADDRESS).to_pylist())
        columns = one_array(left.column(a.name)), one_array(right.column(b.name))
        return _parts_differ((one, a, columns[0]), (other, b, columns[1]))


def values_differ(old: pa.ChunkedArray | None, new: pa.ChunkedArray | None) -> Mask:
    """Compare a column's values; a column that a side has not is all null there."""
    if old is None or new is None:
        one: Any = old if new is None else new
        return np.asarray(one.is_valid().to_numpy(), np.bool_)
    if old.type != new.type:
        try:
            old = old.cast(new.type)
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
    names = [one.name for one in field_a.children], [one.name for one in field_b.children]
    if not holds_blobs(field_b) or names[0] != names[1]:
        return values_differ(pa.chunked_array([old]), pa.chunked_array([new]))
    here, there = (np.asarray(one.is_valid().to_numpy(zero_copy_only=False)) for one in (old, new))
    found = np.zeros(len(new), np.bool_)
    for at, (one, other) in enumerate(zip(field_a.children, field_b.children, strict=True)):
        found |= _parts_differ((a[0], one, old.field(at)), (b[0], other, new.field(at)))
    result: Mask = (here != there) | (found & here & there)
    return result


def _opened(part: _Part) -> list[BlobFile | None]:
    rows, field, values = part
    return described_blobs(rows.snapshot, field, values.to_pylist(), rows.addresses)


def _payloads_differ(old: list[BlobFile | None], new: list[BlobFile | None]) -> Mask:
    """Compare payloads, reading those of equal size that lie in different places."""
    found = np.zeros(len(new), np.bool_)
    waiting: list[int] = []
    held = 0
    for number, (one, other) in enumerate(zip(old, new, strict=True)):
        if one is None or other is None:
            found[number] = one is not other
        elif one.size() != other.size():
            found[number] = True
        elif _place(one) != _place(other):
            waiting.append(number)
            held += one.size()
            if held >= PAYLOAD_BYTES:
                _read_and_compare(old, new, waiting, found)
                waiting, held = [], 0
    _read_and_compare(old, new, waiting, found)
    return found


def _place(file: BlobFile) -> tuple[str, str, int]:
    return file.store.uri, file.path, file.start


def _read_and_compare(
    old: list[BlobFile | None], new: list[BlobFile | None], numbers: list[int], found: Mask
) -> None:
    left, right = (read_parts([_all_of(side[number]) for number in numbers]) for side in (old, new))
    for number, one, other in zip(numbers, left, right, strict=True):
        found[number] = one != other


def _all_of(file: BlobFile | None) -> tuple[BlobFile, int, int] | None:
    return None if file is None else (file, 0, file.size())
