"""Split lists into flat values with a start and a length per row, and build lists of them.

A result selects flat values and assigns them to rows: no function visits values one by one. Null
lists have no values; a fixed-size list is a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels.ranges import ragged_indices
from lance_nb.table.predicate.expression import Value, aligned, only_value
from lance_nb.value_classes import dataclass

ITEMS_MAX = 1 << 20
Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists taken apart: row ``i`` is ``values[starts[i]:starts[i] + lengths[i]]``, or null."""

    values: pa.Array
    starts: Ints
    lengths: Ints
    lost: Mask

    @property
    def rows(self) -> Ints:
        """The row of each value."""
        return np.repeat(np.arange(self.lengths.size), self.lengths)

    @property
    def places(self) -> Ints:
        """The place of each value in its list, from 0."""
        return np.arange(len(self.values)) - np.repeat(self.starts, self.lengths)

    def cut(self, places: Ints | pa.Array, lengths: Ints) -> pa.Array:
        """Make lists of the values at ``places``."""
        return closed(taken(self.values, pa.array(places)), lengths, self.lost)

    def ranges(self, first: Ints, counts: Ints, stride: Ints | int = 1) -> pa.Array:
        """Make lists of ``counts`` values of each row, from its value ``first`` on."""
        counts = np.maximum(counts, 0)
        places = np.repeat(self.starts + first, counts)
        inside = np.arange(places.size) - np.repeat(np.cumsum(counts) - counts, counts)
        steps = stride if isinstance(stride, int) else np.repeat(stride, counts)
        return self.cut(places + inside * steps, counts)

    def filter(self, mask: Mask) -> pa.Array:
        """Make lists of the values where the mask is set."""
        counts = np.bincount(self.rows[mask], minlength=self.lengths.size)
        return self.cut(np.flatnonzero(mask), counts)


def taken(values: pa.Array, places: pa.Array) -> pa.Array:
    """Take values; Arrow takes nulls of no struct with an extension type inside."""
    try:
        return pc.take(values, places)
    except pa.ArrowNotImplementedError:
        return pc.cast(pc.take(pc.cast(values, _stored(values.type)), places), values.type)


def flattened(rows: pa.Array) -> pa.Array:
    """Return the values of all lists; Arrow makes none of such structs where all are null."""
    try:
        return pc.list_flatten(rows)
    except pa.ArrowNotImplementedError:
        return pc.cast(pc.list_flatten(pc.cast(rows, _stored(rows.type))), rows.type.value_type)


def _stored(type_: pa.DataType) -> pa.DataType:
    """Return a type without the extension types inside of it."""
    if isinstance(type_, pa.BaseExtensionType):
        return _stored(type_.storage_type)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_stored(field.type)) for field in type_])
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(type_.value_field.with_type(_stored(type_.value_type)), type_.list_size)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        make = pa.list_ if pa.types.is_list(type_) else pa.large_list
        return make(type_.value_field.with_type(_stored(type_.value_type)))
    return type_


def opened(rows: pa.Array) -> Lists:
    """Take lists apart; null ones have no values."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(rows), 0).to_numpy(zero_copy_only=False))
    lengths = lengths.astype(np.int64)
    return Lists(flattened(rows), np.cumsum(lengths) - lengths, lengths, null_mask(rows))


def null_mask(array: pa.Array) -> Mask:
    """Tell which values are null."""
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False))


def closed(values: pa.Array, lengths: Ints, lost: Mask | None = None) -> pa.Array:
    """Make lists of values, the next ``lengths[i]`` of them each."""
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] >= 1 << 31:
        raise pa.ArrowInvalid(f"lists of {int(offsets[-1]):,} elements in one window of rows")
    mask = None if lost is None or not lost.any() else pa.array(lost)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


def numbered(*arrays: pa.Array) -> list[Ints]:
    """Return a number per value: equal ones, also of several arrays, have one; so have nulls."""
    encoded = pc.dictionary_encode(pa.concat_arrays(arrays), null_encoding="encode")
    whole = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)
    return np.split(whole, np.cumsum([len(array) for array in arrays])[:-1])


def ranks(hits: Mask, lists: Lists) -> Ints:
    """Return the number of each hit in its row, from 1."""
    running = np.cumsum(hits)
    before = np.concatenate(([0], running))[lists.starts]
    return np.asarray(running - np.repeat(before, lists.lengths), np.int64)


def arrays_kernel(kernel: Callable[..., pa.Array]) -> Callable[..., Value]:
    """Let a kernel of arrays take scalars as well."""

    def safe(*values: Value) -> Value:
        result = kernel(*aligned(*values))
        is_scalar = all(isinstance(value, pa.Scalar) for value in values)
        return only_value(result) if is_scalar else result

    return safe


def joined(parts: Sequence[Lists], lost: Mask) -> pa.Array:
    """Put the lists of each row behind one another."""
    shifts = np.cumsum([0, *(len(part.values) for part in parts)])
    starts = np.column_stack(
        [part.starts + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    )
    lengths = np.column_stack([part.lengths for part in parts])
    values = pa.concat_arrays([part.values for part in parts])
    places = ragged_indices(starts.ravel(), lengths.ravel())
    return closed(pc.take(values, pa.array(places)), lengths.sum(axis=1), lost)


def single(elements: pa.Array) -> Lists:
    """View elements as lists of one."""
    ones = np.ones(len(elements), np.int64)
    return Lists(elements, np.arange(len(elements)), ones, np.zeros(len(elements), np.bool_))
