"""What the values of a column look like, from every row: the exact form of ``column_profile``.

Numbers and times are read twice (their ends, then the bars between them), texts and booleans once.
The work tells how far it is and can be ended between two groups of fragments.

Limits: of more than ``MAX_DISTINCT`` different values neither number nor shares are known:
``distinct`` is -1 then, and a text column has no bars.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer.models import cells
from lance_nb.explorer.models.arrangement import Progress
from lance_nb.explorer.models.column_profile import (
    ColumnProfile,
    bar_counts,
    commonest,
    ends_of,
    floats_of,
    histogram_of,
    profile_kind,
)
from lance_nb.explorer.models.lens import Lens
from lance_nb.explorer.models.source import ScannedSource, group_batches, scan_groups

MAX_DISTINCT = 100_000


def exact_profile(dataset: ScannedSource, at: int, lens: Lens, progress: Progress) -> ColumnProfile:
    """Profile the column at a place of the grid. Raises NotSupportedError, PredicateError."""
    names = lens.names(dataset)
    if at >= len(names) or names[at] not in dataset.schema.names:
        raise ColumnNotFoundError(names[at] if at < len(names) else str(at), tuple(names))
    field = dataset.schema.field(names[at])
    kind = profile_kind(field.type)
    if not kind:
        raise NotSupportedError(f"values of {field.type} are not counted")
    by_bars = kind in ("number", "time")
    scan = _Scan(dataset, field.name, lens.filter, progress, 2 if by_bars else 1)
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
