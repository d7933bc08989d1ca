"""What the values of a column look like, from a bounded sample: bars, nulls, ends, distinct values.

Layout of ``to_json``: ``column`` (position), ``kind`` (number, time, bool, text), ``sampled`` rows,
``nulls`` (share), ``distinct`` in the sample, ``low`` and ``high`` (texts), ``bars`` (heights 0 to
255): a histogram of equal widths for numbers and times, the shares of the commonest values for
texts and booleans, whose names are ``labels``.

The sample is ``PLACES`` runs of rows spread evenly over the version. Columns of other types have no
profile.

Limits: ``SAMPLE_ROWS`` rows and about ``SAMPLE_BYTES`` bytes by the mean size of a row;
``MAX_COLUMNS`` columns at a time; ``BARS`` bars.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.explorer.models import cells
from lance_nb.explorer.models.lens import Lens
from lance_nb.explorer.models.source import Source

SAMPLE_ROWS = 8192
SAMPLE_BYTES = 32_000_000
PLACES = 8
MAX_COLUMNS = 16
BARS = 20
COMMON = 8
_LABEL_CHARS = 40


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """The profile of one column."""

    column: int
    kind: str
    sampled: int
    nulls: float
    distinct: int
    low: str
    high: str
    bars: tuple[int, ...]
    labels: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the profile as JSON-able values."""
        return asdict(self)


def column_profiles(
    dataset: Source, first: int, count: int, lens: Lens, num_rows: int
) -> list[ColumnProfile]:
    """Profile the columns ``[first, first + count)`` that can be; ``num_rows`` the lens shows."""
    fields = list(dataset.schema)[first : first + min(count, MAX_COLUMNS)]
    wanted = [(first + at, field) for at, field in enumerate(fields) if _kind(field.type)]
    if not wanted or not num_rows:
        return []
    table = _sample(dataset, [field.name for _, field in wanted], lens, num_rows)
    return [
        _profile(at, _kind(field.type), cells.plain(column))
        for (at, field), column in zip(wanted, table.columns, strict=True)
        if len(column)
    ]


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "time"
    if pa.types.is_boolean(kind):
        return "bool"
    return "text" if cells.is_text(kind) else ""


def _sample(dataset: Source, names: list[str], lens: Lens, num_rows: int) -> pa.Table:
    stats = dataset.stats()
    row_bytes = max(1, (stats.size_bytes or 0) // max(1, stats.num_rows))
    rows = max(PLACES, min(SAMPLE_ROWS, SAMPLE_BYTES // row_bytes))
    if num_rows <= rows or lens.filter is not None:
        return lens.rows(dataset, names, 0, min(rows, num_rows))
    each = rows // PLACES
    starts = [(num_rows - each) * at // (PLACES - 1) for at in range(PLACES)]
    return pa.concat_tables([lens.rows(dataset, names, start, each) for start in starts])


def _profile(at: int, kind: str, column: pa.Array) -> ColumnProfile:
    import pyarrow.compute as pc

    nulls = column.null_count / len(column)
    values = column.drop_null()
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())  # nothing is computed on the narrow ones
    low = high = ""
    bars: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    if kind in ("bool", "text"):
        bars, labels = _commonest(values)
    elif len(values):
        found = pc.min_max(values)
        low, high = (cells.scalar_text(found[end], _LABEL_CHARS) for end in ("min", "max"))
        bars = _histogram(_floats(values))
    distinct = int(pc.count_distinct(values).as_py()) if len(values) else 0
    return ColumnProfile(at, kind, len(column), nulls, distinct, low, high, bars, labels)


def _floats(values: pa.Array) -> npt.NDArray[np.float64]:
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    kept: npt.NDArray[np.float64] = found[np.isfinite(found)]
    return kept


def _histogram(values: npt.NDArray[np.float64]) -> tuple[int, ...]:
    if not values.size:
        return ()
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low):
            values, low, high = values / 4, low / 4, high / 4
    counts, _ = np.histogram(
        values, BARS if high > low else 1, (low, high if high > low else low + 1)
    )
    return _heights(counts)


def _commonest(values: pa.Array) -> tuple[tuple[int, ...], tuple[str, ...]]:
    counted = values.value_counts()
    names, counts = counted.field("values"), counted.field("counts").to_numpy()
    order = np.argsort(-counts, kind="stable")[:COMMON]
    labels = tuple(cells.scalar_text(names[int(at)], _LABEL_CHARS) for at in order)
    return _heights(counts[order]), labels


def _heights(counts: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Heights of 0 to 255; what is there at all is at least 1."""
    if not counts.size:
        return ()
    shares = counts * 255 // max(1, int(counts.max()))
    return tuple(np.where(counts > 0, np.maximum(shares, 1), 0).tolist())
