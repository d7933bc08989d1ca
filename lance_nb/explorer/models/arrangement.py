"""Rows in an order of their own: sorted by a column, nearest to a vector, or those that pass.

======== ===========================================================================
Ordered  the row ids in their order, with distances when they are neighbours
Passing  how many rows of each group of fragments pass a filter: a page in the middle of a filtered
         scan is then read from its own group, not from the beginning of the dataset
======== ===========================================================================

Sorting scans the whole column and keeps the first ``MAX_ORDERED`` rows: of a longer dataset the
grid shows these and says so. Nulls come last, NaN just before them, equal values in scan order.
Neighbours are exact: every vector is compared.

Limits: ``MAX_ORDERED`` rows; memory holds those and one batch.
Not supported: sorting by nested or binary columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer.models import cells
from lance_nb.explorer.models.source import FragmentGroup, ScannedSource, group_batches, scan_groups

MAX_ORDERED = 100_000
MAX_NEAR = 1000
METRICS = ("l2", "cosine", "dot", "hamming")
DISTANCE = "_distance"
_ROW_ID = "_rowid"

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Ordered:
    """Row ids in the order of the grid. ``scanned`` rows were looked at for them."""

    ids: npt.NDArray[np.uint64]
    scanned: int
    distances: pa.Array | None = None

    @property
    def num_rows(self) -> int:
        """Rows in order."""
        return int(self.ids.size)

    def rows(self, dataset: ScannedSource, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by their place in the order."""
        stored = [name for name in columns if name != DISTANCE]
        part = slice(offset, offset + limit)
        table = dataset.take_rows(self.ids[part], columns=stored or [_ROW_ID])
        if self.distances is not None and DISTANCE in columns:
            table = table.append_column(DISTANCE, self.distances[part])
        return table.select(columns)


@dataclass(frozen=True, slots=True)
class Passing:
    """Where the rows that pass ``filter`` are: ``ends`` counts them up to the end of each group."""

    filter: str
    groups: tuple[FragmentGroup, ...]
    ends: npt.NDArray[np.int64]

    @property
    def num_rows(self) -> int:
        """Rows that pass."""
        return int(self.ends[-1]) if self.ends.size else 0

    def rows(self, dataset: ScannedSource, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by their place among those that pass."""
        at = int(np.searchsorted(self.ends, offset, "right"))
        stop = 1 + int(np.searchsorted(self.ends, offset + limit, "left"))
        fragments = [one for group in self.groups[at:stop] for one in group.fragments]
        before = int(self.ends[at - 1]) if at else 0
        found: pa.Table = dataset.scanner(
            columns=columns, filter=self.filter, fragments=fragments,
            offset=offset - before, limit=limit,
        ).to_table()  # fmt: skip
        return found


Arrangement = Ordered | Passing


def passing_rows(dataset: ScannedSource, filter: str, progress: Progress) -> Passing:
    """Count the rows that pass a filter, group by group."""
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    counts = []
    dataset.scanner(filter=filter)  # a filter that is wrong is refused before anything is read
    for group in groups:
        progress(group.first, total)
        scan = dataset.scanner(columns=[], filter=filter, fragments=group.fragments,
                               with_row_id=True)  # fmt: skip
        counts.append(scan.count_rows())
    return Passing(filter, tuple(groups), np.cumsum(counts, dtype=np.int64))


def sorted_rows(
    dataset: ScannedSource, column: str, filter: str | None, progress: Progress, *, ascending: bool
) -> Ordered:
    """Sort by a column. Raises ColumnNotFoundError, NotSupportedError, PredicateError."""
    _check_sortable(dataset, column)
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    held: pa.Table | None = None
    looked_at = 0
    for group in groups:
        inside = 0
        for batch in group_batches(dataset, group, [column, _ROW_ID], filter):
            progress(group.first + inside, total)
            inside += batch.num_rows
            held = _merged(held, _keys(batch), ascending=ascending)
        looked_at += inside
    ids = pa.chunked_array([], pa.uint64()) if held is None else held.column("id")
    return Ordered(ids.to_numpy().astype(np.uint64), looked_at)


def _check_sortable(dataset: ScannedSource, column: str) -> None:
    if column not in dataset.schema.names:
        raise ColumnNotFoundError(column, tuple(dataset.schema.names))
    kind = dataset.schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if cells.is_nested(kind) or cells.is_binary(kind) or isinstance(kind, pa.BaseExtensionType):
        raise NotSupportedError(f"rows cannot be sorted by {column!r}: {kind} has no order")


def _keys(batch: pa.RecordBatch) -> pa.Table:
    values = cells.plain(batch.column(0))
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    return pa.table({"key": values, "id": batch.column(1)})


def _merged(held: pa.Table | None, found: pa.Table, *, ascending: bool) -> pa.Table:
    """Return the first rows of both in order; rows that cannot be among them are passed over."""
    import pyarrow.compute as pc

    if held is not None and held.num_rows >= MAX_ORDERED:
        last = held.column("key")[-1]
        if last.is_valid and not (pa.types.is_floating(last.type) and np.isnan(last.as_py())):
            sooner = pc.less if ascending else pc.greater
            found = found.filter(sooner(found.column("key"), last))
        if not found.num_rows:
            return held
    both = found if held is None else pa.concat_tables([held, found])
    order = "ascending" if ascending else "descending"
    places = pc.sort_indices(both, sort_keys=[("key", order)])
    return both.take(places[:MAX_ORDERED]).combine_chunks()


@dataclass(frozen=True, slots=True)
class Likeness:
    """What neighbours are looked for: of ``query``, a vector of ``column``; ``code`` reads it."""

    column: str
    query: pa.Scalar
    code: Python
    k: int = 10
    metric: str = "l2"


def near_rows(
    dataset: ScannedSource, like: Likeness, filter: str | None, progress: Progress
) -> Ordered:
    """Find the rows whose vectors are nearest. Raises InvalidInputError, NotSupportedError."""
    query = _checked_query(like)
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    wanted = {"column": like.column, "q": query, "k": like.k, "metric": like.metric}
    parts: list[pa.Table] = []
    for group in groups:
        progress(group.first, total)
        scan = dataset.scanner(columns=[_ROW_ID], nearest=wanted, filter=filter, prefilter=True,
                               fragments=group.fragments)  # fmt: skip
        parts = [_nearest([*parts, scan.to_table().select([_ROW_ID, DISTANCE])], like.k)]
    if not parts:
        return Ordered(np.zeros(0, np.uint64), 0, pa.array([], pa.float32()))
    best = parts[0]
    return Ordered(best[_ROW_ID].to_numpy(), total, cells.plain(best[DISTANCE]))


def _checked_query(like: Likeness) -> Any:
    if like.metric not in METRICS:
        raise InvalidInputError(f"metric is one of {', '.join(METRICS)}, not {like.metric[:40]!r}")
    if not pa.types.is_fixed_size_list(like.query.type):
        raise NotSupportedError(f"{like.column!r} holds no vectors")
    if not like.query.is_valid:
        raise InvalidInputError("this row has no vector")
    values: Any = like.query
    return cells.plain(values.values).to_numpy(zero_copy_only=False)


def _nearest(parts: list[pa.Table], k: int) -> pa.Table:
    found = pa.concat_tables(parts)
    places = np.argsort(found[DISTANCE].to_numpy(), kind="stable")[:k]
    return found.take(pa.array(places))
