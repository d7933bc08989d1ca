"""Zone map: the least and the greatest value of each zone of rows.

``zonemap.lance`` has a row per zone: ``min``, ``max``, ``null_count``, ``nan_count`` and where the
zone is (``zones``). What is found may pass and is computed again. A zone with NaN, or with bounds
that are NaN, is read for every comparison.

Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.indices.index_file import IndexFile, numbers
from lance_nb.indices.leaf import Between, IsNull, Leaf, OneOf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS
from lance_nb.indices.zones import Zones
from lance_nb.table.predicate.comparison import as_mask

FILES = ("zonemap.lance",)
_MEMBERS_MAX = 64
Mask = npt.NDArray[np.bool_]


class ZoneMap:
    """One segment of a zone map."""

    def __init__(self, file: IndexFile) -> None:
        self._zones = Zones(file)
        self._low, self._high, nulls, nans = file.read_all("min", "max", "null_count", "nan_count")
        self._type = file.type_of("min")
        self._has_null: Mask = numbers(nulls, file.path) > 0
        self._has_nan: Mask = numbers(nans, file.path) > 0

    def understands(self, leaf: Leaf) -> bool:
        """Comparisons, IN with few members, and IS NULL."""
        is_ordered = not pt.is_float16(self._type) and self._high.type == self._type
        if leaf.column.type != self._type or not is_ordered:
            return False
        asked = leaf.asks(Between, OneOf, IsNull)
        is_long = isinstance(asked, OneOf) and len(asked.members) > _MEMBERS_MAX
        return asked is not None and not is_long

    def estimate(self, leaf: Leaf) -> int:
        """Count the rows of the zones."""
        return self._zones.count(self._matching(leaf))

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Return all rows of the zones that may hold one that passes."""
        if isinstance(leaf.asks(Between, OneOf, IsNull), IsNull) and self._zones.nulls is not None:
            return Found(self._zones.nulls, NO_ROWS)
        return Found(self._zones.rows(self._matching(leaf)), is_exact=False)

    def _matching(self, leaf: Leaf) -> Mask:
        asked = leaf.asks(Between, OneOf, IsNull)
        if isinstance(asked, IsNull):
            return self._has_null
        if isinstance(asked, OneOf):
            found = np.zeros(len(self._has_null), np.bool_)
            for one in asked.members:
                found |= self._meets(one, one)
            return found
        if isinstance(asked, Between):
            return self._meets(asked.low, asked.high)
        return np.ones(len(self._has_null), np.bool_)

    def _meets(self, low: pa.Scalar | None, high: pa.Scalar | None) -> Mask:
        import pyarrow.compute as pc

        count = len(self._has_nan)
        is_open = self._has_nan.copy()
        if pt.is_floating(self._type):
            for bound in (self._low, self._high):
                is_open |= as_mask(pc.is_nan(bound), count)
        inside = as_mask(pc.and_(self._low.is_valid(), self._high.is_valid()), count)
        if low is not None:
            inside &= as_mask(pc.greater_equal(self._high, low), count)
        if high is not None:
            inside &= as_mask(pc.less_equal(self._low, high), count)
        return inside | is_open
