"""Parts of Arrow arrays: null masks, list ranges and children, with the offset applied.

Layout: validity is a bitmap, least significant bit first, that may start inside a byte; lists have
``length + 1`` offsets into a child that may be longer than what they use; the items of fixed-size
lists lie at ``(offset + row) * dimension``.

Limits: nothing is copied except masks (one byte per value) and items of dictionaries.
Not supported: views, unions and run-end encoding, which the format cannot store.
Source: Arrow columnar format.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import Bytes, Ints
from lance_nb.encodings.kernels.memory import to_integers
from lance_nb.errors import NotSupportedError

Mask = npt.NDArray[np.bool_]


def nulls_of(array: pa.Array) -> Mask | None:
    """Mark the null slots; None when there is none."""
    if pa.types.is_null(array.type):
        return np.ones(len(array), bool) if len(array) else None
    missing = _null_bits(array) if array.null_count else None
    if not isinstance(array, pa.DictionaryArray) or not array.dictionary.null_count:
        return missing
    unknown = _null_items(array)
    if missing is not None:
        unknown |= missing
    return unknown if bool(unknown.any()) else None


def _null_bits(array: pa.Array) -> Mask:
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.ones(len(array), bool)
    first, stop = array.offset, array.offset + len(array)
    packed = np.frombuffer(bitmap, np.uint8)[first // 8 : (stop + 7) // 8]
    bits = np.unpackbits(packed, count=stop - first // 8 * 8, bitorder="little")[first % 8 :]
    missing: Mask = np.logical_not(bits.view(bool))
    return missing


def packed_bits(array: pa.BooleanArray) -> Bytes:
    """Return booleans without nulls as bits, lowest first; those after the last one are zero."""
    count = len(array)
    if not count:
        return np.zeros(0, np.uint8)
    if array.offset % 8:
        return np.packbits(array.to_numpy(zero_copy_only=False), bitorder="little")
    size, remainder = -(-count // 8), count % 8
    bits = np.frombuffer(array.buffers()[1], np.uint8, size, array.offset // 8)
    if remainder and bits[-1] >> remainder:  # Arrow leaves them as they are
        bits = bits.copy()
        bits[-1] &= (1 << remainder) - 1
    return bits


def _null_items(array: pa.DictionaryArray) -> Mask:
    """Mark the slots whose index points at a null item of the dictionary."""
    items = nulls_of(array.dictionary)
    keys = np.asarray(array.indices.fill_null(0))
    is_null: Mask = np.zeros(len(array), bool) if items is None else items[keys]
    return is_null


def without_null_items(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary array of which null slots have null keys, and no item is null."""
    if not array.dictionary.null_count:
        return array
    # Not by encoding anew: Arrow takes NaNs of any payload, and both zeros, as one item.
    is_valid = np.asarray(array.dictionary.is_valid())
    place = np.maximum(np.cumsum(is_valid) - 1, 0)
    keys = np.asarray(array.indices.fill_null(0)).astype(np.int64)
    is_null = ~is_valid[keys]
    if array.null_count:
        is_null |= np.asarray(array.indices.is_null())
    indices = pa.array(place[keys], array.type.index_type, mask=is_null)
    items = pc.drop_null(array.dictionary)
    return pa.DictionaryArray.from_arrays(indices, items, ordered=array.type.ordered)


def without_nested_null_items(array: pa.Array) -> pa.Array:
    """Do as ``without_null_items`` for the dictionaries inside structs and lists as well.

    Those inside maps and fixed-size lists stay as they are.
    """
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return without_null_items(array)
    if not _holds_dictionary(type_):
        return array
    mask = pc.is_null(array) if array.null_count else None
    if pa.types.is_struct(type_):
        children = [without_nested_null_items(array.field(k)) for k in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        offsets = pa.array(np.array(array.offsets))
        items = without_nested_null_items(array.values)
        return kind.from_arrays(offsets, items, type=type_, mask=mask)
    return array


def _holds_dictionary(type_: pa.DataType) -> bool:
    if not pa.types.is_nested(type_):
        return bool(pa.types.is_dictionary(type_))
    return any(_holds_dictionary(type_.field(k).type) for k in range(type_.num_fields))


def with_used_items(array: pa.Array) -> pa.Array:
    """Return the same values with dictionaries that hold no item which no row uses.

    Goes into structs and lists; dictionaries inside maps and fixed-size lists stay as they are.
    """
    type_ = array.type
    if pa.types.is_dictionary(type_):
        is_null = pc.is_null(array) if array.null_count else None
        keys = np.asarray(array.indices.fill_null(0)).astype(np.int64)
        used = np.unique(keys if is_null is None else keys[~np.asarray(is_null)])
        place = np.minimum(np.searchsorted(used, keys), max(used.size - 1, 0))
        indices = pa.array(place, type_.index_type, mask=is_null and np.asarray(is_null))
        items = pc.take(array.dictionary, pa.array(used))
        return pa.DictionaryArray.from_arrays(indices, items, ordered=type_.ordered)
    if not _holds_dictionary(type_):
        return array
    mask = pc.is_null(array) if array.null_count else None
    if pa.types.is_struct(type_):
        children = [with_used_items(array.field(k)) for k in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        offsets = np.array(array.offsets)
        first, stop = int(offsets[0]), int(offsets[-1])
        items = with_used_items(array.values.slice(first, stop - first))
        return kind.from_arrays(pa.array(offsets - first), items, type=type_, mask=mask)
    return array


def concatenated(arrays: Sequence[pa.Array]) -> pa.Array:
    """Join arrays of one type; a single one is not copied, dictionaries are made one.

    Of dictionaries that are too many for the keys together, only the used items are kept. Raises
    NotSupportedError for more than one array can hold.
    """
    if len(arrays) == 1:
        return arrays[0]
    type_ = arrays[0].type
    has_dictionaries = _holds_dictionary(type_)
    # Arrow cannot unify dictionaries with null items.
    arrays = [without_nested_null_items(array) for array in arrays]
    try:
        try:
            return pa.concat_arrays(arrays)
        except pa.ArrowInvalid:
            if not has_dictionaries:
                raise
        return pa.concat_arrays([with_used_items(array) for array in arrays])
    except pa.ArrowInvalid as exc:
        count = sum(map(len, arrays))
        if has_dictionaries and "dictionar" in str(exc):
            raise NotSupportedError(
                f"the dictionaries of {count} rows of type {type_} have together more items than "
                "the keys can number; use fewer rows at a time or a wider type for the keys"
            ) from exc
        raise NotSupportedError(
            f"{count} values of type {type_} take more than one Arrow array can hold; "
            "use fewer rows at a time"
        ) from exc


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as one array; raises as ``concatenated``."""
    return concatenated(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def taken(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Return the values at ``rows``, null where that is null; raises as ``concatenated``.

    Arrow joins the dictionaries of all chunks, which may be more than the keys can number although
    those of the rows are not.
    """
    try:
        return pc.take(column, rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if column.num_chunks < 2 or not _holds_dictionary(column.type):
            raise
    is_null = np.asarray(rows.is_null())
    positions = np.asarray(rows.fill_null(0)).astype(np.int64)
    used = np.unique(positions[~is_null])
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    edges = [0, *np.searchsorted(used, ends).tolist()]
    parts = [
        pc.take(chunk, pa.array(used[start:stop] - (end - len(chunk))))
        for chunk, end, (start, stop) in zip(column.chunks, ends, pairwise(edges), strict=True)
    ]
    joined = concatenated([part for part in parts if len(part)] or parts[:1])
    return pa.chunked_array([joined.take(pa.array(np.searchsorted(used, positions), mask=is_null))])


def taken_rows(table: pa.Table, rows: pa.Array) -> pa.Table:
    """Return rows of a table as ``taken`` returns values of a column."""
    try:
        return pc.take(table, rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        columns = [taken(column, rows) for column in table.columns]
        return pa.Table.from_arrays(columns, schema=table.schema)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table, which has columns, as one batch; raises as ``concatenated``."""
    return pa.RecordBatch.from_arrays(
        [one_array(column) for column in table.columns], schema=table.schema
    )


def list_ranges(array: pa.Array) -> tuple[Ints, Ints]:
    """Return start and length of every list's range in the child (whatever null slots say)."""
    offsets = to_integers(array.offsets)
    starts = offsets[:-1].astype(np.int64)
    return starts, offsets[1:].astype(np.int64) - starts


def fixed_size_items(array: pa.FixedSizeListArray) -> pa.Array:
    """Return the items of all slots, those of null ones too."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)
