"""Where variable-length values begin and end: one end per row, nulls marked by an added amount.

Layout: ``ends[i]`` is where value ``i`` ends; it begins where the one before ends, the first of a
page at 0. A null has ``null_adjustment`` added to its end (which is above every real end).

Worked example: 'ab', null, 'c' with adjustment 4 are 2, 6, 3.
Limits: ends never go down; what they point into is checked by whoever reads it.
Source: messages ``Binary`` and ``List`` of lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import VALUES_MAX, FixedWidth, Rows, corrupt
from lance_nb.encodings.row_ranges import merged, places_in
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, ItemRanges, Mask, Page, Values


def decode_ends(
    indices: encodings.ArrayEncoding,
    null_adjustment: int,
    rows: Rows,
    page: Page,
    codecs: ArrayCodecs,
) -> Steps[tuple[ItemRanges, Mask | None]]:
    """Return where each row begins and ends, and which rows are not null."""
    none = np.zeros(0, np.int64)
    if not rows.starts.size:
        return ItemRanges(none, none), None
    needed = merged(np.maximum(rows.starts - 1, 0), rows.stops)
    found = yield from codecs.decode(indices, needed, page)
    ends = _unsigned(found)
    adjustment = np.uint64(null_adjustment)
    is_null = ends >= adjustment
    if bool(is_null.any()):
        ends = np.where(is_null, ends - adjustment, ends)
    if ends.size and int(ends.max()) > VALUES_MAX:
        raise corrupt(f"ends of values up to {VALUES_MAX}", str(int(ends.max())))
    signed = ends.astype(np.int64)
    if rows.starts.size == 1:  # a run of rows: each begins where the one before ends
        first = int(rows.starts[0]) - int(needed.starts[0])
        valid = ~is_null[first:]
        stops = signed[first:]
        starts = signed[:-1] if first else np.concatenate((np.zeros(1, np.int64), signed[:-1]))
    else:
        positions = expand_ranges(rows.starts, rows.stops)
        places = places_in(needed, positions)
        valid = ~is_null[places]
        stops = signed[places]
        starts = np.where(positions == 0, 0, signed[np.maximum(places - 1, 0)])
    if bool((starts > stops).any()) or bool((starts[1:] < stops[:-1]).any()):
        raise corrupt("ends of values that never go down", "ends that do")
    return ItemRanges(starts, stops), None if bool(valid.all()) else valid


def _unsigned(values: Values) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    block = values.block
    widths = (8, 16, 32, 64)
    if not isinstance(block, FixedWidth) or block.bits_per_value not in widths:
        raise corrupt("ends of values as whole numbers", type(block).__name__)
    if values.validity is not None:
        raise corrupt("ends of values without nulls", "nulls")
    found: np.ndarray[tuple[int], np.dtype[np.uint64]] = block.data.view(
        f"<u{block.bits_per_value // 8}"
    ).astype(np.uint64, copy=False)
    return found
