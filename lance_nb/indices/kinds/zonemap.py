"""Zone map: the least and the greatest value of each zone of rows.

``zonemap.lance`` has a row per zone: ``min``, ``max``, ``null_count``, ``nan_count`` and where the
zone is (``zones``). What is found may pass and is computed again. A zone with NaN, or with bounds
that are NaN, is read for every comparison.

Lists, structs, dictionaries and the null type have zones without bounds, which pylance reads for
every comparison. They are not searched here: for structs pylance stores bounds that say nothing,
and for the null type it does not record the nulls.

Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.errors import CorruptFileError, InvalidInputError, describe_value
from lance_nb.format.index_metadata import IndexMetadata, zone_map_details
from lance_nb.indices.index_file import IndexFile, open_file
from lance_nb.indices.leaf import Between, IsNull, Leaf, OneOf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS
from lance_nb.indices.zones import (
    ZONE_FIELDS,
    ZONE_ROWS,
    NullRows,
    Zone,
    Zones,
    checked_zone_rows,
    write_zones,
    zones_of,
)
from lance_nb.table.index_search import numbers
from lance_nb.table.predicate.comparison import as_mask
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows

FILES = ("zonemap.lance",)
DETAILS_URL = "/lance.table.ZoneMapIndexDetails"
_MEMBERS_MAX = 64
Mask = npt.NDArray[np.bool_]


def statistics(file: IndexFile) -> dict[str, Any]:
    """Return pylance's statistics of a segment. Raises CorruptFileError."""
    return {"num_zones": file.num_rows, **_settings(file)}


def has_order(kind: pa.DataType) -> bool:
    """Tell whether zones of a type have bounds; pylance builds them of any type."""
    return not (pt.is_nested(kind) or pt.is_dictionary(kind) or pt.is_null(kind))


class ZoneMap:
    """One segment of a zone map."""

    def __init__(self, file: IndexFile) -> None:
        self.zones = Zones(file)
        self.low, self.high, nulls, nans = file.read_all("min", "max", "null_count", "nan_count")
        self._type = file.type_of("min")
        num_nulls, num_nans = numbers(nulls, file.path), numbers(nans, file.path)
        self._has_null: Mask = num_nulls > 0
        self.has_nan: Mask = num_nans > 0
        self.zones.check_counts(num_nulls, num_nans)
        self._check_bounds(file.path)

    def _check_bounds(self, path: str) -> None:
        """Refuse bounds that are no range. Raises CorruptFileError."""
        if not self._is_ordered:
            return
        differs = pc.xor(self.low.is_valid(), self.high.is_valid())
        crossed = pc.or_(pc.fill_null(pc.greater(self.low, self.high), False), differs)
        zones = pc.indices_nonzero(crossed)
        if len(zones):
            zone = zones[0].as_py()
            low, high = describe_value(self.low, zone), describe_value(self.high, zone)
            actual = f"zone {zone} from {low} to {high}"
            raise CorruptFileError(path, None, "zones from their least value on", actual)

    @property
    def _is_ordered(self) -> bool:
        """Whether Arrow compares the bounds."""
        is_plain = has_order(self._type) and not pt.is_float16(self._type)
        return is_plain and bool(self.high.type == self._type)

    def understands(self, leaf: Leaf) -> bool:
        """Comparisons, IN with few members, and IS NULL."""
        if leaf.column.type != self._type or not self._is_ordered:
            return False
        question = leaf.asks(Between, OneOf, IsNull)
        is_long = isinstance(question, OneOf) and len(question.members) > _MEMBERS_MAX
        return question is not None and not is_long

    def estimate(self, leaf: Leaf) -> int:
        """Count the rows of the zones."""
        return self.zones.count(self._matching(leaf))

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Return all rows of the zones that may hold one that passes."""
        if isinstance(leaf.asks(Between, OneOf, IsNull), IsNull) and self.zones.nulls is not None:
            return Found(self.zones.nulls, NO_ROWS)
        return Found(self.zones.rows(self._matching(leaf)), is_exact=False)

    def _matching(self, leaf: Leaf) -> Mask:
        question = leaf.asks(Between, OneOf, IsNull)
        if isinstance(question, IsNull):
            return self._has_null
        if isinstance(question, OneOf):
            is_candidate = np.zeros(len(self._has_null), np.bool_)
            for member in question.members:
                is_candidate |= self._meets(member, member)
            return is_candidate
        if isinstance(question, Between):
            return self._meets(question.low, question.high)
        return np.ones(len(self._has_null), np.bool_)

    def _meets(self, low: pa.Scalar | None, high: pa.Scalar | None) -> Mask:
        count = len(self.has_nan)
        is_open = self.has_nan.copy()
        if pt.is_floating(self._type):
            for bound in (self.low, self.high):
                is_open |= as_mask(pc.is_nan(bound), count)
        inside = as_mask(pc.and_(self.low.is_valid(), self.high.is_valid()), count)
        if low is not None:
            inside &= as_mask(pc.greater_equal(self.high, low), count)
        if high is not None:
            inside &= as_mask(pc.less_equal(self.low, high), count)
        return inside | is_open


# --- building -------------------------------------------------------------------------------------

_BATCH_ZONES = 1024


def check(field: pa.Field, parameters: Parameters) -> Parameters:
    """Refuse an unknown type, and unknown parameters. Raises InvalidInputError."""
    from lance_nb.indices.sorted_rows import check_sortable

    if has_order(field.type):
        check_sortable(field, "ZONEMAP")
    unknown_names = sorted(parameters.keys() - {"rows_per_zone"})
    if unknown_names:
        raise InvalidInputError(
            f"a ZONEMAP index has the parameter 'rows_per_zone', not {unknown_names[0]!r}"
        )
    rows_per_zone = parameters.get("rows_per_zone")
    rows = ZONE_ROWS if rows_per_zone is None else checked_zone_rows(rows_per_zone, "rows_per_zone")
    return {"rows_per_zone": rows}


def parameters_of(snapshot: Snapshot, index: IndexMetadata) -> Parameters:
    """Return the rows of a zone of a segment. Raises LanceError."""
    return _settings(open_file(snapshot, index, FILES[0]))


def _settings(file: IndexFile) -> dict[str, Any]:
    return {"rows_per_zone": file.number("rows_per_zone", ZONE_ROWS, 1 << 24)}


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the least and the greatest value of each zone."""
    from lance_nb.indices.building import SegmentDetails

    zone_rows, kind, nulls = parameters["rows_per_zone"], rows.field.type, NullRows()
    schema = pa.schema(
        [
            pa.field("min", kind),
            pa.field("max", kind),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("nan_count", pa.uint32(), nullable=False),
            *ZONE_FIELDS,
        ],
        {"rows_per_zone": str(zone_rows)},
    )
    with files.create(FILES[0], schema) as file:
        records = map(_bounds, zones_of(rows.batches(), zone_rows, nulls))
        write_zones(file, schema, records, nulls=nulls, batch_rows=_BATCH_ZONES)
    is_text = pt.is_string(kind) or pt.is_large_string(kind)
    is_binary = pt.is_binary(kind) or pt.is_large_binary(kind)
    has_seeds = is_text or is_binary or pt.is_decimal(kind) or pt.is_nested(kind)
    return SegmentDetails(zone_map_details(zone_rows, use_seeds=has_seeds))


def _bounds(zone: Zone) -> list[Any]:
    """Return the row of a zone; NaN is the greatest value, and the least only of NaN alone."""
    values, kind = zone.values, zone.values.type
    place = [zone.fragment_id, zone.start, zone.length]
    if not has_order(kind):
        return [None, None, values.null_count, 0, *place]
    num_nan = 0
    if pt.is_floating(kind):
        is_nan = pc.is_nan(values.cast(pa.float32()) if pt.is_float16(kind) else values)
        num_nan = pc.sum(is_nan).as_py() or 0
    numbers_only = values
    if num_nan:
        numbers_only = values.filter(pc.invert(is_nan))
    if pt.is_float16(kind):
        numbers_only = pc.cast(numbers_only, pa.float32())
    elif pt.is_duration(kind):
        numbers_only = numbers_only.view(pa.int64())
    bounds = pc.min_max(numbers_only)
    low, high = pc.cast(bounds["min"], kind), pc.cast(bounds["max"], kind)
    if num_nan:
        nan = pc.cast(pa.scalar(float("nan"), pa.float64()), kind)
        low, high = (low if low.is_valid else nan), nan
    return [low, high, values.null_count, num_nan, *place]
