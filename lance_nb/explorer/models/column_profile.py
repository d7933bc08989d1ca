"""Profile the values of a column: histogram, nulls, minimum and maximum, distinct values.

Layout of ``to_json``: ``column`` (position), ``kind`` (number, time, bool, text), ``sampled`` rows,
``nulls`` (share), ``distinct`` values (-1: too many to count), ``low`` and ``high`` (texts),
``bars`` (heights 0 to 255) and ``counts``: a histogram of equal widths between ``edges`` for
numbers and times, the most frequent values for texts and booleans, whose names are ``labels`` and
whose conditions are ``wheres`` (empty where a value is too long to be one). ``exact``: all rows
were read.

``column_profiles`` reads a bounded sample: ``PLACES`` runs of rows spread evenly over the version;
of a sorted or filtered grid, the first rows. Each fragment costs about the same whatever it holds,
so of many small ones only some are read.

``exact_profile`` reads all rows: numbers and times twice (minimum and maximum, then the bars
between them), texts and booleans once. It reports progress and can be cancelled between two
batches.

Limits: of a sample ``SAMPLE_ROWS`` rows, about ``SAMPLE_BYTES`` bytes by the mean size of a row and
about ``SAMPLE_FRAGMENTS`` fragments by their mean number of rows; ``MAX_COLUMNS`` columns at a
time; ``BARS`` bars. With more than ``MAX_DISTINCT`` distinct values ``distinct`` is -1, and a text
column has no bars.
Not supported: columns of other types; they have no profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer.models import cells
from lance_nb.explorer.models.filter_conditions import value_condition
from lance_nb.explorer.models.row_query import Progress, RowQuery
from lance_nb.explorer.models.source import ScannedSource, Source, group_batches, scan_groups
from lance_nb.table.scan_tasks import counts_of

SAMPLE_ROWS = 8192
SAMPLE_BYTES = 32_000_000
SAMPLE_FRAGMENTS = 64
PLACES = 8
MAX_COLUMNS = 16
BARS = 20
COMMON = 8
_LABEL_CHARS = 40
MAX_DISTINCT = 100_000


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
    bars: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    edges: tuple[float, float] | None = None
    wheres: tuple[str, ...] = ()
    exact: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the profile as JSON-able values."""
        return asdict(self)


def column_profiles(
    dataset: Source,
    first: int,
    count: int,
    query: RowQuery,
    num_rows: int,
    *,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> list[ColumnProfile]:
    """Profile the columns ``[first, first + count)`` that can be; ``num_rows`` the query shows.

    ``progress`` is called after every run of rows, and what it raises ends the profile.
    """
    fields = {field.name: field for field in dataset.schema}
    names = query.names(dataset)[first : first + min(count, MAX_COLUMNS)]
    wanted = [
        (first + at, fields[name])
        for at, name in enumerate(names)
        if name in fields and profile_kind(fields[name].type)
    ]
    if not wanted or not num_rows:
        return []
    tables = []
    for start, rows, done, runs in _runs(dataset, query, num_rows):
        progress(done, runs)
        read = query.rows if runs == 1 else _near
        tables.append(read(dataset, [field.name for _, field in wanted], start, rows))
    table = pa.concat_tables(tables)
    return [
        _profile(at, field, cells.plain(column))
        for (at, field), column in zip(wanted, table.columns, strict=True)
        if len(column)
    ]


def profile_kind(kind: pa.DataType) -> str:
    """Return the kind of profile of a type: number, time, bool, text; empty for none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "time"
    if pa.types.is_boolean(kind):
        return "bool"
    return "text" if cells.is_text(kind) else ""


def _runs(dataset: Source, query: RowQuery, num_rows: int) -> Iterator[tuple[int, int, int, int]]:
    """Choose the sample: the first row of each run, its rows, its number, of how many."""
    stats = dataset.stats()
    row_bytes = max(1, (stats.size_bytes or 0) // max(1, stats.num_rows))
    of_fragments = SAMPLE_FRAGMENTS * stats.num_rows // max(1, stats.num_fragments)
    rows = max(PLACES, min(SAMPLE_ROWS, SAMPLE_BYTES // row_bytes, of_fragments))
    if num_rows <= rows or query.filter is not None or query.order is not None:
        yield 0, min(rows, num_rows), 0, 1
        return
    each = rows // PLACES
    for at in range(PLACES):
        yield (num_rows - each) * at // (PLACES - 1), each, at, PLACES


def _near(dataset: Source, columns: list[str], offset: int, limit: int) -> pa.Table:
    """Read a run of rows from the fragments that lie about there by the counts of the manifest.

    The exact place of a row may take all deletion files before it (see ``scan_plan.skipped``); a
    sample needs none of these.
    """
    opened = getattr(dataset, "opened", None)
    if opened is None:
        return dataset.to_table(columns=columns, limit=limit, offset=offset)
    counts = counts_of(opened[1])
    ends = np.cumsum(counts.num_rows.astype(np.int64))
    at, last = np.searchsorted(ends, [offset, offset + limit - 1], side="right").tolist()
    within = offset - int(ends[at - 1]) if at else offset
    source: Any = dataset
    chosen = [source.get_fragment(int(one)) for one in counts.ids[at : last + 1]]
    found: pa.Table = source.to_table(columns=columns, fragments=chosen, offset=within, limit=limit)
    return found


def _profile(at: int, field: pa.Field, column: pa.Array) -> ColumnProfile:
    import pyarrow.compute as pc

    nulls = column.null_count / len(column)
    values = column.drop_null()
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())  # nothing is computed on the narrow ones
    distinct = int(pc.count_distinct(values).as_py()) if len(values) else 0
    kind = profile_kind(field.type)
    facts: dict[str, Any] = {}
    if kind in ("bool", "text"):
        counted = values.value_counts()
        facts = commonest(field.name, counted.field("values"), counted.field("counts").to_numpy())
    elif len(values):
        found = pc.min_max(values)
        facts = ends_of(found["min"], found["max"]) | _histogram(floats_of(values))
    return ColumnProfile(at, kind, len(column), nulls, distinct, **{"low": "", "high": ""} | facts)


def ends_of(low: pa.Scalar, high: pa.Scalar) -> dict[str, Any]:
    """Return the least and the greatest value as a profile has them."""
    return {
        "low": cells.scalar_text(low, _LABEL_CHARS),
        "high": cells.scalar_text(high, _LABEL_CHARS),
    }


def floats_of(values: pa.Array) -> npt.NDArray[np.float64]:
    """Return the finite values of a column of numbers or times, in the unit they are stored in."""
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    kept: npt.NDArray[np.float64] = found[np.isfinite(found)]
    return kept


def _histogram(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    if not values.size:
        return {}
    edges = float(values.min()), float(values.max())
    return histogram_of(bar_counts(values, edges), edges)


def bar_counts(
    values: npt.NDArray[np.float64], edges: tuple[float, float]
) -> npt.NDArray[np.int64]:
    """Count values in the bars between two edges; one bar when both are the same."""
    low, high = edges
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low):
            values, low, high = values / 4, low / 4, high / 4
    span = (low, high if high > low else low + 1)
    counts: npt.NDArray[np.int64] = np.histogram(values, BARS if high > low else 1, span)[0]
    return counts


def histogram_of(counts: npt.NDArray[np.int64], edges: tuple[float, float]) -> dict[str, Any]:
    """Return bars as a profile has them."""
    return {"bars": _heights(counts), "counts": tuple(counts.tolist()), "edges": edges}


def commonest(name: str, values: pa.Array, counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the commonest values of a column as a profile has them."""
    order = np.argsort(-counts, kind="stable")[:COMMON]
    shown = [values[int(at)] for at in order]
    return {
        "bars": _heights(counts[order]),
        "counts": tuple(counts[order].tolist()),
        "labels": tuple(cells.scalar_text(value, _LABEL_CHARS) for value in shown),
        "wheres": tuple(value_condition(name, value) for value in shown),
    }


def _heights(counts: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Heights of 0 to 255; what is there at all is at least 1."""
    if not counts.size:
        return ()
    shares = counts * 255 // max(1, int(counts.max()))
    return tuple(np.where(counts > 0, np.maximum(shares, 1), 0).tolist())


def exact_profile(
    dataset: ScannedSource, at: int, query: RowQuery, progress: Progress
) -> ColumnProfile:
    """Profile the column at a place of the grid. Raises NotSupportedError, PredicateError."""
    names = query.names(dataset)
    if at >= len(names) or names[at] not in dataset.schema.names:
        raise ColumnNotFoundError(names[at] if at < len(names) else str(at), tuple(names))
    field = dataset.schema.field(names[at])
    kind = profile_kind(field.type)
    if not kind:
        raise NotSupportedError(f"values of {field.type} are not counted")
    by_bars = kind in ("number", "time")
    scan = _Scan(dataset, field.name, query.filter, progress, 2 if by_bars else 1)
    tally = _Tally()
    for values in scan.values():
        tally.add(values, by_bars=by_bars)
    facts = _facts(scan, tally) if by_bars else tally.common(field.name)
    nulls = tally.nulls / tally.rows if tally.rows else 0.0
    shown = {"low": "", "high": ""} | facts
    return ColumnProfile(at, kind, tally.rows, nulls, tally.distinct, **shown, exact=True)


class _Scan:
    """One column read from end to end, ``passes`` times in all."""

    def __init__(
        self,
        dataset: ScannedSource,
        column: str,
        where: str | None,
        progress: Progress,
        passes: int,
    ) -> None:
        self.dataset, self.column, self.filter = dataset, column, where
        self.progress, self.passes, self.passed = progress, passes, 0

    def values(self) -> Iterator[pa.Array]:
        groups = scan_groups(self.dataset)
        total = max(1, sum(group.num_rows for group in groups))
        for group in groups:
            inside = 0
            for batch in group_batches(self.dataset, group, [self.column], self.filter):
                self.progress(self.passed * total + group.first + inside, self.passes * total)
                inside += batch.num_rows
                values = cells.plain(batch.column(0))
                yield values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
        self.passed += 1


class _Tally:
    """What is known of the values so far."""

    def __init__(self) -> None:
        self.rows = self.nulls = 0
        self.low: pa.Scalar | None = None
        self.high: pa.Scalar | None = None
        self.edges: tuple[float, float] | None = None
        self._counted: pa.Table | None = None
        self._too_many = False

    @property
    def distinct(self) -> int:
        """Different values, or -1."""
        if self._too_many:
            return -1
        return 0 if self._counted is None else self._counted.num_rows

    def add(self, values: pa.Array, *, by_bars: bool) -> None:
        """Take values into account."""
        self.rows += len(values)
        self.nulls += values.null_count
        values = values.drop_null()
        if not len(values):
            return
        if by_bars:
            self._widen(values)
        if not self._too_many:
            self._count(values)

    def _widen(self, values: pa.Array) -> None:
        import pyarrow.compute as pc

        found = pc.min_max(values)
        ends = pa.array([one for one in (self.low, self.high, found["min"], found["max"])
                         if one is not None], values.type)  # fmt: skip
        both = pc.min_max(ends)
        self.low, self.high = both["min"], both["max"]
        finite = floats_of(values)
        if finite.size:
            edges = (float(finite.min()), float(finite.max()))
            known = self.edges or edges
            self.edges = min(known[0], edges[0]), max(known[1], edges[1])

    def _count(self, values: pa.Array) -> None:
        counted = values.value_counts()
        found = pa.table({"value": counted.field("values"), "count": counted.field("counts")})
        if self._counted is not None:
            both = pa.concat_tables([self._counted, found])
            found = both.group_by("value").aggregate([("count", "sum")])
            found = found.rename_columns({"count_sum": "count"}).select(["value", "count"])
        self._counted = found
        if found.num_rows > MAX_DISTINCT:
            self._counted, self._too_many = None, True

    def common(self, name: str) -> dict[str, Any]:
        """Return the commonest values, as a profile has them."""
        if self._counted is None:
            return {}
        values = cells.plain(self._counted["value"])
        return commonest(name, values, self._counted["count"].to_numpy())


def _facts(scan: _Scan, tally: _Tally) -> dict[str, Any]:
    """Read the column once more for the bars between its ends."""
    if tally.low is None or tally.high is None:
        return {}
    facts = ends_of(tally.low, tally.high)
    if tally.edges is None:
        return facts
    counts = np.zeros(1, np.int64)
    for values in scan.values():
        counts = counts + bar_counts(floats_of(values.drop_null()), tally.edges)
    return facts | histogram_of(counts, tally.edges)
