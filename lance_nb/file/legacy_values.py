"""Values of a 0.1 page as data blocks, decoded in steps (``encodings.steps``).

Layout, by type:

* fixed width (and fixed-size binary): the values back to back; booleans as a bitmap, least
  significant bit first; fixed-size lists: their items;
* strings and bytes: the page is ``num_values + 1`` i64 positions in the file, value ``i`` lies
  between positions ``i`` and ``i + 1``. An empty value of a nullable field *is* a null;
* dictionary: the keys; the values stand once per file and read like a page of their own;
* list: ``num_values`` i32 (large list: i64) offsets into the items of the same batch, one more than
  there are lists;
* null: nothing.

Limits: there is no validity: nulls of fixed-width types, lists and structs read as what was stored
in their place. Not supported: fixed-size lists of anything but fixed-width values, maps.
Source: verified against pylance 14.0.2, which reads and writes the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import (
    VALUES_MAX,
    AllNull,
    FixedSizeList,
    FixedWidth,
    Ints,
    Rows,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.slicing import expand_ranges, merged, places_in
from lance_nb.encodings.steps import Region, Steps, aligned, read_bits, read_ranges
from lance_nb.encodings.v2_0.base import ItemRanges, Values, check_free, scaled
from lance_nb.errors import NotSupportedError
from lance_nb.file.legacy_metadata import LegacyPage

_NONE = np.zeros(0, np.int64)


def decode_values(
    type_: pa.DataType, page: LegacyPage, rows: Rows, file: Region, *, nullable: bool = True
) -> Steps[Values]:
    """Decode rows of a page; ``file`` is the whole file. Dictionary types give their keys."""
    kinds = pa.types
    if kinds.is_dictionary(type_):
        type_ = type_.index_type
    if rows.stops.size and int(rows.stops[-1]) > page.num_values:
        raise corrupt(f"a page of {int(rows.stops[-1])} values", f"{page.num_values} values")
    if kinds.is_null(type_):
        check_free(rows.num_rows)
        return Values(AllNull(rows.num_rows))
    if _is_variable(type_):
        return (yield from _strings(page, rows, file, nullable=nullable))
    return (yield from _fixed(type_, page, rows, file))


def decode_items(
    type_: pa.DataType, page: LegacyPage, rows: Rows, file: Region
) -> Steps[ItemRanges]:
    """Decode which items the rows of a list page have."""
    if not rows.starts.size:
        return ItemRanges(_NONE, _NONE)
    width = 8 if pa.types.is_large_list(type_) else 4
    starts, stops = yield from _bounds(page.num_values, width, rows, _from(file, page))
    return ItemRanges(starts, stops)


def _fixed(type_: pa.DataType, page: LegacyPage, rows: Rows, file: Region) -> Steps[Values]:
    if pa.types.is_fixed_size_list(type_):
        size = type_.list_size
        items_page = LegacyPage(page.position, min(page.num_values * size, VALUES_MAX))
        items = yield from _fixed(type_.value_type, items_page, scaled(rows, size), file)
        if isinstance(items.block, ItemRanges):
            raise corrupt("plain items", "lists")
        return Values(FixedSizeList(size, rows.num_rows, items.block, None))
    bits = _bits(type_)
    region = _from(file, page)
    if bits == 1:
        data = yield from read_bits(region, rows.starts, rows.stops)
        return Values(FixedWidth(1, rows.num_rows, data))
    wanted = scaled(rows, bits // 8)
    data = yield from read_ranges(region, wanted.starts, wanted.stops)
    return Values(FixedWidth(bits, rows.num_rows, aligned(data, bits // 8)))


def _strings(page: LegacyPage, rows: Rows, file: Region, *, nullable: bool) -> Steps[Values]:
    if not rows.starts.size:
        return Values(VariableWidth(0, np.zeros(1, np.int64), np.zeros(0, np.uint8)))
    num_positions = min(page.num_values + 1, VALUES_MAX)
    starts, stops = yield from _bounds(num_positions, 8, rows, _from(file, page))
    offsets: Ints = np.zeros(stops.size + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    wanted = merged(starts, stops)
    data = yield from read_ranges(file, wanted.starts, wanted.stops)
    valid = stops > starts
    validity = None if not nullable or bool(valid.all()) else valid
    return Values(VariableWidth(rows.num_rows, offsets, data), validity)


def _bounds(num_bounds: int, width: int, rows: Rows, region: Region) -> Steps[tuple[Ints, Ints]]:
    """Read where each row begins and ends: bound ``i`` and bound ``i + 1``."""
    if int(rows.stops[-1]) + 1 > num_bounds:
        raise corrupt(f"{int(rows.stops[-1]) + 1} offsets", f"{num_bounds} offsets")
    needed = merged(rows.starts, rows.stops + 1)
    raw = yield from read_ranges(region, needed.starts * width, needed.stops * width)
    bounds = raw.view(f"<i{width}").astype(np.int64)
    if rows.starts.size == 1:
        starts, stops = bounds[:-1], bounds[1:]
    else:
        places = places_in(needed, expand_ranges(rows.starts, rows.stops))
        starts, stops = bounds[places], bounds[places + 1]
    if int(starts[0]) < 0 or bool((starts > stops).any()) or int(stops[-1]) > VALUES_MAX:
        raise corrupt("offsets that go up from 0", "others")
    if bool((starts[1:] < stops[:-1]).any()):
        raise corrupt("offsets that never go down", "offsets that do")
    return starts, stops


def _from(file: Region, page: LegacyPage) -> Region:
    return Region(page.position, file.stop, file.is_mapped)


def _is_variable(type_: pa.DataType) -> bool:
    kinds = pa.types
    text = kinds.is_string(type_) or kinds.is_large_string(type_)
    return bool(text or kinds.is_binary(type_) or kinds.is_large_binary(type_))


def _bits(type_: pa.DataType) -> int:
    try:
        bits = int(type_.bit_width)
    except ValueError:
        bits = 0
    if bits == 0 or pa.types.is_nested(type_):
        raise NotSupportedError(f"file version 0.1 cannot hold values of type {type_} here")
    return bits
