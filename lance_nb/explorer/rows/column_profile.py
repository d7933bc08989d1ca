"""Profile the values of a column: histogram, statistics, odd values, number of distinct values.

Layout of ``to_json``: ``column`` (position), ``kind`` (number, time, bool, text), ``sampled`` rows
and which rows these are (``sample``: random, first, all, or index: all, counted by a BITMAP index
without reading the column; ``exact``: all), ``nulls`` (share), ``distinct`` values (of a sample:
those in it; ``estimated``: by a sketch; -1: not counted), ``low`` and ``high`` (texts;
``indexed_range``: these and ``nulls`` are of all rows, from a ZONEMAP index), ``bars`` (heights 0
to 255) and ``counts``: a histogram of equal widths between ``edges`` for numbers and times, the
most frequent values for texts and booleans, whose names are ``labels`` and whose conditions are
``wheres`` (empty where a value is too long to be one). ``odd``: values without a place in the
histogram, each with its ``kind`` (null, nan, inf, -inf, below, above), ``label``, ``count``, and
``height`` on the scale of the bars. ``statistics``: pairs of a name and a text, for numbers and
times.

``column_profiles`` reads a random sample (``row_sample``); of a sorted or filtered grid, the first
rows, which may differ from the others.

``exact_profile`` reads all rows. It reports progress and can be cancelled between two batches. Of
numbers and times it keeps up to ``KEPT_VALUES`` values; of more it reads the column twice (minimum
and maximum, then the bars between them) and has no quantiles.

Limits: ``MAX_COLUMNS`` columns at a time; ``BARS`` bars. More than ``MAX_DISTINCT`` distinct values
are estimated, and a text column of so many has no bars.
Not supported: columns of other types; they have no profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels.memory import from_integers, to_floats, to_integers
from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer import cells
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.rows.filter_conditions import value_condition
from lance_nb.explorer.rows.row_order import Progress
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.rows.row_sample import RowSample, num_sampled
from lance_nb.explorer.rows.value_statistics import (
    DistinctCount,
    OddValues,
    bar_counts,
    mean_and_deviation,
    odd_values,
    quantiles,
    robust_range,
)
from lance_nb.explorer.source import (
    ScannedSource,
    Source,
    StoredSource,
    group_batches,
    scan_groups,
)
from lance_nb.indices.search import scalar_search
from lance_nb.value_classes import dataclass

MAX_COLUMNS = 16
BARS = 20
COMMON = 8
_LABEL_CHARS = 40
MAX_DISTINCT = 100_000
KEPT_VALUES = 10_000_000
_QUANTILE_NAMES = ("5 %", "25 %", "median", "75 %", "95 %")
_ODD_LABELS = {
    "null": "null", "nan": "NaN", "inf": "infinity", "-inf": "-infinity", "below": "less",
    "above": "more",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnProfile(JsonFields):
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
    sample: str = "all"
    estimated: bool = False
    odd: tuple[dict[str, Any], ...] = ()
    statistics: tuple[tuple[str, str], ...] = ()
    indexed_range: bool = False


def column_profiles(
    dataset: Source,
    first: int,
    count: int,
    query: RowQuery,
    num_rows: int,
    *,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
    sample: RowSample | None = None,
) -> list[ColumnProfile]:
    """Profile the columns ``[first, first + count)`` that can be; ``num_rows`` the query shows.

    ``progress`` is called before every step of reading, and what it raises ends the profile.
    ``sample``: the one of this version, if it is kept.
    """
    fields = {field.name: field for field in dataset.schema}
    names = query.names(dataset)[first : first + min(count, MAX_COLUMNS)]
    chosen_fields = [
        (first + index, fields[name])
        for index, name in enumerate(names)
        if name in fields and profile_kind(fields[name].type)
    ]
    if not chosen_fields or not num_rows:
        return []
    counted = [_counted(dataset, index, field, query) for index, field in chosen_fields]
    indexed = {profile.column: profile for profile in counted if profile is not None}
    unindexed = [(index, field) for index, field in chosen_fields if index not in indexed]
    sample = sample or RowSample(dataset)
    sampled = _sampled(
        dataset, unindexed, query, num_rows=num_rows, progress=progress, row_sample=sample
    )
    return sorted([*indexed.values(), *sampled], key=lambda profile: profile.column)


def _sampled(
    dataset: Source,
    fields: list[tuple[int, pa.Field]],
    query: RowQuery,
    num_rows: int,
    progress: Callable[[int, int], object],
    *,
    row_sample: RowSample,
) -> list[ColumnProfile]:
    """Profile columns by some of the rows."""
    if not fields:
        return []
    columns = [field.name for _, field in fields]
    if query.filter is not None or query.order is not None:
        progress(0, 1)
        rows = min(num_sampled(dataset), num_rows)
        table, sample = query.rows(dataset, columns, 0, rows), "first"
    else:
        table, sample = row_sample.read(columns, progress), "random"
    if table.num_rows >= num_rows:
        sample = "all"
    profiles = [
        profile_of(index, field, cells.plain(column), sample)
        for (index, field), column in zip(fields, table.columns, strict=True)
        if len(column)
    ]
    if sample != "random":
        return profiles
    names = {index: field.name for index, field in fields}
    return [_with_range(dataset, profile, names[profile.column], num_rows) for profile in profiles]


def _with_range(dataset: Source, profile: ColumnProfile, name: str, rows: int) -> ColumnProfile:
    """Give a profile of a sample the range and the nulls of all rows, where an index has them."""
    if profile.kind not in ("number", "time") or not hasattr(dataset, "opened"):
        return profile
    search = scalar_search(cast("StoredSource", dataset).opened[1])
    value_range = None if search is None else search.value_range(name)
    if (
        value_range is None
        or value_range.low is None
        or value_range.high is None
        or value_range.nulls is None
    ):
        return profile
    bounds = pa.array([value_range.low, value_range.high])
    if bounds.null_count or any(odd_values(bounds)):
        return profile
    ends = ends_of(value_range.low, value_range.high)
    return replace(profile, nulls=value_range.nulls / rows, indexed_range=True, **ends)


def _counted(dataset: Source, index: int, field: pa.Field, query: RowQuery) -> ColumnProfile | None:
    """Profile a column of texts or booleans by its index; None where it has none for all rows."""
    kind = profile_kind(field.type)
    if query.filter is not None or kind not in ("bool", "text") or not hasattr(dataset, "opened"):
        return None
    snapshot = cast("StoredSource", dataset).opened[1]
    search = scalar_search(snapshot)
    value_counts = None if search is None else search.value_counts(field.name)
    if value_counts is None or value_counts.covered.size < len(snapshot.manifest.fragments):
        return None
    values, counts = cells.plain(value_counts.values), value_counts.counts
    is_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    rows, nulls = int(counts.sum()), int(counts[is_null].sum())
    facts = commonest(field.name, pc.drop_null(values), counts[~is_null])
    facts["odd"] = _odd(nulls, OddValues(), facts["counts"])
    return ColumnProfile(
        index, kind, rows, nulls / rows if rows else 0.0, len(values) - int(is_null.sum()),
        low="", high="", exact=True, sample="index", **facts,
    )  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class BarPlaces:
    """Where the bars of a profile are, to count other rows in the same bars.

    ``edges`` of numbers and times; the most frequent ``values`` of texts and booleans.
    """

    edges: tuple[float, float] | None = None
    values: pa.Array | None = None


def bar_places(shown: ColumnProfile | None, column: pa.Array) -> BarPlaces:
    """Return the places of the bars of a profile that is shown; by a sample of its column."""
    if profile_kind(column.type) in ("number", "time"):
        edges = None if shown is None else shown.edges
        numbers = ordered_floats(_computable(pc.drop_null(column)))
        return BarPlaces(edges or (robust_range(numbers) if numbers.size else None))
    counted = pc.value_counts(pc.drop_null(column))
    order = np.argsort(-to_integers(counted.field("counts")), kind="stable")[:COMMON]
    return BarPlaces(values=pc.take(counted.field("values"), from_integers(order)))


def profile_of(
    index: int, field: pa.Field, column: pa.Array, sample: str, places: BarPlaces | None = None
) -> ColumnProfile:
    """Profile the values of a column that are at hand, in the bars at ``places`` if given."""
    values = _computable(pc.drop_null(column))
    kind = profile_kind(field.type)
    facts: dict[str, Any] = {"low": "", "high": ""}
    if kind in ("bool", "text"):
        counted = pc.value_counts(values)
        facts |= commonest(
            field.name, counted.field("values"), to_integers(counted.field("counts")), places
        )
        facts["odd"] = _odd(column.null_count, OddValues(), facts["counts"])
    else:
        facts |= _number_facts(values, column.null_count, places)
    return ColumnProfile(
        index, kind, len(column), column.null_count / max(1, len(column)),
        int(pc.count_distinct(values).as_py()) if len(values) else 0,
        exact=sample == "all", sample=sample, **facts,
    )  # fmt: skip


def _computable(values: pa.Array) -> pa.Array:
    """Return values of a type that Arrow computes with: not float16."""
    return pc.cast(values, pa.float32()) if pa.types.is_float16(values.type) else values


def _number_facts(
    values: pa.Array,
    nulls: int,
    places: BarPlaces | None = None,
    step: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Describe numbers or times without nulls; ``nulls`` are beside them.

    ``step`` is called between parts of the work, and what it raises ends it.
    """
    numbers = ordered_floats(values)
    step()
    odd = odd_values(values)
    edges = None if places is None else places.edges
    if not numbers.size:
        empty = {} if edges is None else histogram_of(bar_counts(numbers, edges, BARS), edges)
        return {"odd": _odd(nulls, odd, ()), **empty}
    finite = pc.filter(values, pc.is_finite(values)) if any(odd) else values
    bounds = pc.min_max(finite)
    step()
    edges = edges or robust_range(numbers)
    facts = ends_of(bounds["min"], bounds["max"])
    facts |= histogram_of(bar_counts(numbers, edges, BARS), edges)
    facts["odd"] = _odd(nulls, odd, facts["counts"], *_outside(numbers, edges))
    step()
    facts["statistics"] = _statistics(values.type, numbers)
    return facts


def _outside(ordered: npt.NDArray[np.float64], edges: tuple[float, float]) -> tuple[int, int]:
    """Count the values below and above two edges."""
    above = ordered.size - ordered.searchsorted(edges[1], side="right")
    return int(ordered.searchsorted(edges[0])), int(above)


def _odd(
    nulls: int, odd: OddValues, counts: tuple[int, ...], below: int = 0, above: int = 0
) -> tuple[dict[str, Any], ...]:
    odd_counts = {
        "null": nulls, "nan": odd.nan, "inf": odd.positive_infinity,
        "-inf": odd.negative_infinity, "below": below, "above": above,
    }  # fmt: skip
    most = max((*counts, *odd_counts.values(), 1))
    return tuple(
        {"kind": kind, "label": _ODD_LABELS[kind], "count": count,
         "height": max(1, count * 255 // most)}
        for kind, count in odd_counts.items() if count
    )  # fmt: skip


def _statistics(kind: pa.DataType, numbers: npt.NDArray[np.float64]) -> tuple[tuple[str, str], ...]:
    points = zip(_QUANTILE_NAMES, quantiles(numbers), strict=True)
    if profile_kind(kind) == "time":
        return tuple((name, _time_text(kind, float(value))) for name, value in points)
    mean, deviation = mean_and_deviation(numbers)
    named = [("mean", mean), ("deviation", deviation), *points]
    return tuple(
        (name, f"{value:.6g}") for name, value in named if value is not None and np.isfinite(value)
    )


def _time_text(kind: pa.DataType, value: float) -> str:
    number = from_integers(
        np.array([round(value)], np.int32 if pa.types.is_date32(kind) else np.int64)
    )
    return cells.scalar_text(number.view(kind)[0], _LABEL_CHARS)


def ends_of(low: pa.Scalar, high: pa.Scalar) -> dict[str, Any]:
    """Return the least and the greatest value as a profile has them."""
    return {
        "low": cells.scalar_text(low, _LABEL_CHARS),
        "high": cells.scalar_text(high, _LABEL_CHARS),
    }


def floats_of(values: pa.Array) -> npt.NDArray[np.float64]:
    """Return the finite values of a column of numbers or times, in the unit they are stored in."""
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        values = pc.cast(values, pa.int64())
    elif pa.types.is_date32(values.type):
        values = pc.cast(values, pa.int32())
    numbers = to_floats(pc.cast(values, pa.float64(), safe=False))
    finite: npt.NDArray[np.float64] = numbers[np.isfinite(numbers)]
    return finite


def ordered_floats(values: pa.Array) -> npt.NDArray[np.float64]:
    """Return the finite values of a column as ``floats_of`` does, in order."""
    numbers = floats_of(values)
    numbers.sort()
    return numbers


def histogram_of(counts: npt.NDArray[np.int64], edges: tuple[float, float]) -> dict[str, Any]:
    """Return bars as a profile has them."""
    return {"bars": _heights(counts), "counts": tuple(counts.tolist()), "edges": edges}


def commonest(
    name: str,
    values: pa.Array,
    counts: npt.NDArray[np.int64],
    places: BarPlaces | None = None,
) -> dict[str, Any]:
    """Return the commonest values of a column as a profile has them.

    With ``places`` these are the values that had bars before, in that order, as long as most of
    the rows have one of them.
    """
    order = np.argsort(-counts, kind="stable")[:COMMON]
    shown, heights = pc.take(values, from_integers(order)), counts[order]
    if places is not None and places.values is not None:
        positions = pc.index_in(places.values, value_set=values)
        is_present = pc.is_valid(positions).to_numpy(zero_copy_only=False)
        among = np.zeros(len(positions), np.int64)
        among[is_present] = counts[pc.drop_null(positions).to_numpy()]
        if 2 * among.sum() >= counts.sum():
            shown, heights = places.values, among
    return {
        "bars": _heights(heights),
        "counts": tuple(heights.tolist()),
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
    dataset: ScannedSource,
    index: int,
    query: RowQuery,
    progress: Progress,
    places: BarPlaces | None = None,
) -> ColumnProfile:
    """Profile the column at a place of the grid, in the bars at ``places`` if given.

    Raises NotSupportedError, PredicateError.
    """
    names = query.names(dataset)
    if index >= len(names) or names[index] not in dataset.schema.names:
        raise ColumnNotFoundError(names[index] if index < len(names) else str(index), tuple(names))
    field = dataset.schema.field(names[index])
    kind = profile_kind(field.type)
    if not kind:
        raise NotSupportedError(f"values of {field.type} are not counted")
    counted = _counted(dataset, index, field, query)
    if counted is not None:
        return counted
    by_bars = kind in ("number", "time")
    scan = _Scan(dataset, field.name, query.filter, progress)
    tally = _Tally(keeps=by_bars)
    for values in scan.values():
        tally.add(values)
    facts = _facts(scan, tally, places) if by_bars else tally.common(field.name, places)
    return ColumnProfile(
        index, kind, tally.rows, tally.nulls / tally.rows if tally.rows else 0.0, tally.distinct,
        exact=True, estimated=tally.is_estimated, **{"low": "", "high": ""} | facts,
    )  # fmt: skip


class _Scan:
    """One column read from end to end, once or twice."""

    def __init__(
        self, dataset: ScannedSource, column: str, where: str | None, progress: Progress
    ) -> None:
        self.dataset, self.column, self.filter = dataset, column, where
        self.kind = _computable(cells.plain(pa.array([], dataset.schema.field(column).type))).type
        self.progress, self.passed = progress, 0

    def values(self) -> Iterator[pa.Array]:
        groups = scan_groups(self.dataset)
        total = max(1, sum(group.num_rows for group in groups))
        passes = 2 if total > KEPT_VALUES else 1
        for group in groups:
            inside = 0
            for batch in group_batches(self.dataset, group, [self.column], self.filter):
                done = min(self.passed, passes - 1) * total + group.first + inside
                self.progress(done, passes * total)
                inside += batch.num_rows
                yield _computable(cells.plain(batch.column(0)))
        self.passed += 1


class _Tally:
    """What is known of the values so far. ``keeps``: the values themselves, if they are few."""

    def __init__(self, *, keeps: bool) -> None:
        self.rows = self.nulls = 0
        self.odd = OddValues()
        self.low: pa.Scalar | None = None
        self.high: pa.Scalar | None = None
        self.edges: tuple[float, float] | None = None
        self.values: list[pa.Array] | None = [] if keeps else None
        self._keeps = keeps
        self._counted: pa.Table | None = None
        self._sketch: DistinctCount | None = None

    @property
    def is_estimated(self) -> bool:
        """Whether there are too many different values to be counted."""
        return self._sketch is not None

    @property
    def distinct(self) -> int:
        """Different values."""
        if self._sketch is not None:
            return self._sketch.estimate()
        return 0 if self._counted is None else self._counted.num_rows

    def add(self, values: pa.Array) -> None:
        """Take values into account."""
        self.rows += len(values)
        self.nulls += values.null_count
        values = pc.drop_null(values)
        if not len(values):
            return
        if self._keeps:
            self._widen(values)
        if self._sketch is None:
            self._count(values)
        else:
            self._sketch.add(values)

    def _widen(self, values: pa.Array) -> None:
        odd = odd_values(values)
        self.odd = OddValues(*(a + b for a, b in zip(self.odd, odd, strict=True)))
        if self.values is not None:
            self.values.append(values)
            if self.rows > KEPT_VALUES:
                self.values = None
        finite = pc.filter(values, pc.is_finite(values)) if any(odd) else values
        if not len(finite):
            return
        finite_bounds = pc.min_max(finite)
        ends = pa.array(
            [
                bound
                for bound in (self.low, self.high, finite_bounds["min"], finite_bounds["max"])
                if bound is not None
            ],
            values.type,
        )
        bounds = pc.min_max(ends)
        self.low, self.high = bounds["min"], bounds["max"]
        numbers = floats_of(finite)
        edges = (float(numbers.min()), float(numbers.max()))
        edges_before = self.edges or edges
        self.edges = min(edges_before[0], edges[0]), max(edges_before[1], edges[1])

    def _count(self, values: pa.Array) -> None:
        counted = pc.value_counts(values)
        new_counts = pa.table({"value": counted.field("values"), "count": counted.field("counts")})
        if self._counted is not None:
            counts = pa.concat_tables([self._counted, new_counts])
            new_counts = counts.group_by("value").aggregate([("count", "sum")])
            new_counts = new_counts.rename_columns({"count_sum": "count"}).select(
                ["value", "count"]
            )
        self._counted = new_counts
        if new_counts.num_rows > MAX_DISTINCT:
            self._sketch = DistinctCount()
            for chunk in new_counts["value"].chunks:
                self._sketch.add(chunk)
            self._counted = None

    def common(self, name: str, places: BarPlaces | None = None) -> dict[str, Any]:
        """Return the commonest values, as a profile has them."""
        if self._counted is None:
            return {"odd": _odd(self.nulls, OddValues(), ())}
        values = cells.plain(self._counted["value"])
        facts = commonest(name, values, self._counted["count"].to_numpy(), places)
        return facts | {"odd": _odd(self.nulls, OddValues(), facts["counts"])}


def _facts(scan: _Scan, tally: _Tally, places: BarPlaces | None = None) -> dict[str, Any]:
    """Describe the values that were kept, or read the column once more."""
    if tally.values is not None:
        if not tally.values:
            return _number_facts(pa.array([], scan.kind), tally.nulls, places)
        values_kept = pa.concat_arrays(tally.values)
        return _number_facts(
            values_kept, tally.nulls, places, lambda: scan.progress(scan.passed, 1)
        )
    if tally.low is None or tally.high is None or tally.edges is None:
        return {"odd": _odd(tally.nulls, tally.odd, ())}
    edges = tally.edges if places is None or places.edges is None else places.edges
    counts, below, above = np.zeros(1, np.int64), 0, 0
    for values in scan.values():
        numbers = ordered_floats(pc.drop_null(values))
        counts = counts + bar_counts(numbers, edges, BARS)
        outside = _outside(numbers, edges)
        below, above = below + outside[0], above + outside[1]
    facts = ends_of(tally.low, tally.high) | histogram_of(counts, edges)
    return facts | {"odd": _odd(tally.nulls, tally.odd, facts["counts"], below=below, above=above)}
