"""What indices say of the values of a column, without reading the column.

* A BITMAP index has the rows of each value: their numbers are the counts of the values.
* A ZONEMAP index has the least and the greatest value of each zone. A zone with deleted rows says
  only that nothing lies outside of its bounds: these may have been values of deleted rows. Where
  another zone, all rows of which live, reaches as far, it does not matter; else the bound is not
  known.

Of bounds only those of numbers, times and booleans are used: of texts it is not known that they are
whole.

Limits: ``KEYS_MAX`` values are counted; a scan is cheaper for more.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels.memory import from_integers, to_integers
from lance_nb.errors import NotSupportedError
from lance_nb.indices.kinds.bitmap import Bitmap
from lance_nb.indices.kinds.zonemap import ZoneMap
from lance_nb.indices.listing import ListedIndex
from lance_nb.indices.row_sets import U64s
from lance_nb.indices.segment import Segment
from lance_nb.indices.zones import Mask
from lance_nb.table.index_search import Ids
from lance_nb.value_classes import dataclass

KEYS_MAX = 1 << 17


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """The values of a column in some fragments (ids, ascending), and the rows of each.

    Null is one of the values. ``words`` name the index.
    """

    values: pa.Array
    counts: Ids
    covered: Ids
    words: str


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The least and the greatest value of all rows, null where there is none but NaN or null.

    ``low`` or ``high`` is None where it is not certain. ``nulls``: rows that are null, None where
    it is not known. ``has_nan``: whether there may be NaN. ``words`` name the index.
    """

    low: pa.Scalar | None
    high: pa.Scalar | None
    nulls: int | None
    has_nan: bool
    words: str


def set_reader(index: ListedIndex, segment: Segment, kind: pa.DataType) -> Bitmap:
    """Open a segment of a BITMAP index on values of a type. Raises LanceError."""
    reader = segment.reader()
    if not isinstance(reader, Bitmap) or reader.keys.type != kind:
        raise NotSupportedError(f"{index.name!r} has no sets of rows for values of {kind}")
    return reader


def count_values(index: ListedIndex, kind: pa.DataType, chosen: U64s | None) -> ValueCounts:
    """Count the rows of each value by a BITMAP index.

    ``chosen``: the addresses of live rows, ascending, of which only these are counted. Raises
    LanceError.
    """
    parts: list[pa.Array] = []
    sizes: list[Ids] = []
    for segment in index.segments:
        reader = set_reader(index, segment, kind)
        if len(reader.keys) > KEYS_MAX:
            raise NotSupportedError(f"{index.name!r} has {len(reader.keys):,} values")
        parts.append(reader.keys)
        every = np.ones(len(reader.keys), np.bool_)
        sizes.append(segment.counts(reader.sets.read(every), chosen))
    keys, counts = pa.concat_arrays(parts), np.concatenate(sizes)
    if len(parts) > 1:
        encoded = pc.dictionary_encode(keys, null_encoding="encode")
        keys = encoded.dictionary
        places = to_integers(encoded.indices)
        counts = np.bincount(places, counts, len(keys)).astype(np.int64)
    present = np.flatnonzero(counts)
    values = pc.take(keys, from_integers(present))
    return ValueCounts(values, counts[present], index.covered, index.words)


def has_whole_bounds(kind: pa.DataType) -> bool:
    """Tell whether the bounds of zones of a type are values that there are."""
    return not pt.is_float16(kind) and (
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or pt.is_temporal(kind)
    )


def range_of(index: ListedIndex, kind: pa.DataType) -> ValueRange | None:
    """Return the bounds of all values by a ZONEMAP index; None where they are not certain.

    Every live fragment has to be in one segment. Raises LanceError.
    """
    sure: list[pa.Array] = []
    unsure: list[pa.Array] = []
    nulls: int | None = 0
    has_nan = False
    for segment in index.segments:
        reader = segment.reader()
        is_alike = isinstance(reader, ZoneMap) and reader.low.type == reader.high.type == kind
        if not isinstance(reader, ZoneMap) or not is_alike or segment.reuse is not None:
            return None
        whole, partial = _whole_zones(segment, reader)
        if whole is None:
            return None
        used = whole | partial
        has_nan |= bool(reader.has_nan[used].any())
        for chosen, parts in ((whole, sure), (partial, unsure)):
            parts += [pc.filter(array, pa.array(chosen)) for array in (reader.low, reader.high)]
        if reader.zones.nulls is None:
            nulls = None
        elif nulls is not None:
            nulls += segment.present(reader.zones.nulls).size
    certain, possible = (pc.min_max(_numbers(pa.concat_arrays(parts))) for parts in (sure, unsure))
    low, high = (
        pc.cast(certain[end], kind)
        if not possible[end].is_valid
        or (certain[end].is_valid and not is_beyond(possible[end], certain[end]).as_py())
        else None
        for end, is_beyond in (("min", pc.less), ("max", pc.greater))
    )
    return ValueRange(low, high, nulls, has_nan=has_nan, words=index.words)


def _whole_zones(segment: Segment, reader: ZoneMap) -> tuple[Mask | None, Mask]:
    """Return the zones without and with deleted rows; None where live rows are in no zone."""
    whole, partial = (np.zeros(reader.zones.fragments.size, np.bool_) for _ in range(2))
    for fragment_id in segment.covered.tolist():
        mine = reader.zones.fragments == fragment_id
        count, deleted = segment.deleted(fragment_id)
        starts, ends = reader.zones.offsets_of(mine)
        order = np.argsort(starts)
        if bool((starts[order][1:] < ends[order][:-1]).any()):
            return None, partial
        num_gone = np.searchsorted(deleted, ends) - np.searchsorted(deleted, starts)
        live = int((np.minimum(ends, count) - np.minimum(starts, count)).sum() - num_gone.sum())
        if live != count - deleted.size:
            return None, partial
        whole[mine], partial[mine] = num_gone == 0, num_gone > 0
    return whole, partial


def _numbers(values: pa.Array) -> pa.Array:
    """Return the values without NaN, in a type of which Arrow finds the least."""
    if pt.is_duration(values.type):
        return values.view(pa.int64())
    if pt.is_floating(values.type):
        return values.filter(pc.invert(pc.is_nan(values)))
    return values
