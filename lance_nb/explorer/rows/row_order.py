"""Rows in an order of the grid, and how they are found: by a filter, a choice, a sort, or words.

============== =====================================================================
SortedRows     row ids in their order, with distances if they are nearest neighbors, or with scores
               if a text index has found them
FilteredRows   how many rows of each group of fragments pass a filter, so that a page in the middle
               of a filtered scan is read from its own group, not from the start of the dataset
============== =====================================================================

Sorting scans the whole column and keeps the first ``MAX_ORDERED`` rows: of a longer dataset the
grid shows these and says so. Nulls come last, NaN just before them, equal values in scan order.

Limits: ``MAX_ORDERED`` rows; memory holds those and one batch.
Not supported: sorting by nested or binary columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer import cells
from lance_nb.explorer.rows.full_text_search import MAX_FOUND, SCORE, FullTextSearch
from lance_nb.explorer.source import (
    FragmentGroup,
    ScannedSource,
    group_batches,
    scan_groups,
    stored_source,
)
from lance_nb.table.row_ids import live_ids
from lance_nb.value_classes import dataclass

MAX_ORDERED = 100_000
DISTANCE = "_distance"
_ROW_ID = "_rowid"

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Sort by a column."""

    column: str
    ascending: bool


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Row ids in the order of the grid. ``scanned`` rows were read for it."""

    ids: npt.NDArray[np.uint64]
    scanned: int
    distances: pa.Array | None = None
    scores: pa.Array | None = None
    search: FullTextSearch | None = None

    @property
    def found_by(self) -> str | None:
        """The name of the column with the distances or scores, if there are any."""
        if self.scores is not None:
            return SCORE
        return None if self.distances is None else DISTANCE

    @property
    def num_rows(self) -> int:
        """Rows in order."""
        return int(self.ids.size)

    def rows(self, dataset: ScannedSource, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by their place in the order."""
        name = self.found_by
        stored = [column_name for column_name in columns if column_name != name]
        part = slice(offset, offset + limit)
        table = dataset.take_rows(self.ids[part], columns=stored or [_ROW_ID])
        values = self.distances if self.scores is None else self.scores
        if values is not None and name in columns:
            table = table.append_column(name, values[part])
        return table.select(columns)


@dataclass(frozen=True, slots=True)
class FilteredRows:
    """The rows that pass ``filter``: ``ends`` counts them up to the end of each group."""

    filter: str
    groups: tuple[FragmentGroup, ...]
    ends: npt.NDArray[np.int64]
    search: FullTextSearch | None = None

    @property
    def num_rows(self) -> int:
        """Rows that pass."""
        return int(self.ends[-1]) if self.ends.size else 0

    def rows(self, dataset: ScannedSource, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by their place among those that pass."""
        first_group = int(np.searchsorted(self.ends, offset, "right"))
        stop = 1 + int(np.searchsorted(self.ends, offset + limit, "left"))
        fragments = [
            fragment for group in self.groups[first_group:stop] for fragment in group.fragments
        ]
        before = int(self.ends[first_group - 1]) if first_group else 0
        rows: pa.Table = dataset.scanner(
            columns=columns, filter=self.filter, fragments=fragments,
            offset=offset - before, limit=limit,
        ).to_table()  # fmt: skip
        return rows


RowOrder = SortedRows | FilteredRows


def filtered_rows(dataset: ScannedSource, filter: str, progress: Progress) -> FilteredRows:
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
    return FilteredRows(filter, tuple(groups), np.cumsum(counts, dtype=np.int64))


def chosen_rows(
    dataset: ScannedSource,
    within: npt.NDArray[np.uint64],
    filter: str | None,
    progress: Progress,
) -> SortedRows:
    """Return the rows among ``within`` that pass a filter, in the order of the dataset."""
    snapshot = stored_source(dataset).opened[1]
    if filter is None:
        ids = live_ids(snapshot)
        return SortedRows(ids[are_among(ids, within)], int(within.size))
    id_parts = [np.zeros(0, np.uint64)]
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    for group in groups:
        inside = 0
        for batch in group_batches(dataset, group, [_ROW_ID], filter):
            progress(group.first + inside, total)
            ids = batch.column(0).to_numpy()
            inside += ids.size
            id_parts.append(ids[are_among(ids, within)])
    return SortedRows(np.concatenate(id_parts), int(within.size))


def are_among(ids: npt.NDArray[np.uint64], within: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Tell of each id whether it is one of ``within``, which are in ascending order."""
    if not within.size:
        return np.zeros(ids.size, np.bool_)
    places = np.minimum(np.searchsorted(within, ids), within.size - 1)
    is_member: npt.NDArray[np.bool_] = within[places] == ids
    return is_member


def sorted_rows(
    dataset: ScannedSource,
    order: Sequence[SortOrder],
    filter: str | None,
    progress: Progress,
    within: npt.NDArray[np.uint64] | None = None,
) -> SortedRows:
    """Sort by columns, by the first one first.

    Raises ColumnNotFoundError, NotSupportedError, PredicateError.
    """
    for sort in order:
        _check_sortable(dataset, sort.column)
    columns = [sort.column for sort in order]
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    held: pa.Table | None = None
    looked_at = 0
    for group in groups:
        inside = 0
        for batch in group_batches(dataset, group, [*columns, _ROW_ID], filter):
            progress(group.first + inside, total)
            inside += batch.num_rows
            keys = _keys(batch)
            if within is not None:
                keys = keys.filter(pa.array(are_among(keys["id"].to_numpy(), within)))
            looked_at += keys.num_rows
            held = _merged(held, keys, order)
    ids = pa.chunked_array([], pa.uint64()) if held is None else held.column("id")
    return SortedRows(ids.to_numpy().astype(np.uint64), looked_at)


def _check_sortable(dataset: ScannedSource, column: str) -> None:
    if column not in dataset.schema.names:
        raise ColumnNotFoundError(column, tuple(dataset.schema.names))
    kind = dataset.schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if cells.is_nested(kind) or cells.is_binary(kind) or isinstance(kind, pa.BaseExtensionType):
        raise NotSupportedError(f"rows cannot be sorted by {column!r}: {kind} has no order")


def _keys(batch: pa.RecordBatch) -> pa.Table:
    """Return the sort keys, named by their place, and the row ids."""
    *keys, ids = (cells.plain(column) for column in batch.columns)
    values = [
        column.cast(pa.float32()) if pa.types.is_float16(column.type) else column for column in keys
    ]
    return pa.table({**{str(index): value for index, value in enumerate(values)}, "id": ids})


def _merged(held: pa.Table | None, batch: pa.Table, order: Sequence[SortOrder]) -> pa.Table:
    """Return the first rows of both in order; rows that cannot be among them are skipped."""
    if held is not None and held.num_rows >= MAX_ORDERED:
        last = held.column("0")[-1]
        if last.is_valid and not (pa.types.is_floating(last.type) and np.isnan(last.as_py())):
            first = batch.column("0")
            # Of several keys the others may decide.
            strict, equal = (pc.less, pc.less_equal) if order[0].ascending else (
                pc.greater, pc.greater_equal
            )  # fmt: skip
            batch = batch.filter((strict if len(order) == 1 else equal)(first, last))
        if not batch.num_rows:
            return held
    merged = batch if held is None else pa.concat_tables([held, batch])
    keys = [
        (str(index), "ascending" if sort.ascending else "descending")
        for index, sort in enumerate(order)
    ]
    places = pc.sort_indices(merged, sort_keys=keys)
    return merged.take(places[:MAX_ORDERED]).combine_chunks()


def matching_rows(
    dataset: ScannedSource,
    search: FullTextSearch,
    order: Sequence[SortOrder],
    filter: str | None,
    progress: Progress,
    *,
    within: npt.NDArray[np.uint64] | None = None,
) -> SortedRows:
    """Find the rows that an index gives for a search, best first or as they are sorted.

    Raises LanceError.
    """
    for sort in order:
        _check_sortable(dataset, sort.column)
    progress(0, 0)
    scan_arguments = search_arguments(search, filter, order)
    if within is not None:
        del scan_arguments["limit"]
    matches = dataset.scanner(columns=[_ROW_ID], **scan_arguments).to_table()
    if within is not None:
        chosen = are_among(matches[_ROW_ID].to_numpy(), within)
        matches = matches.filter(pa.array(chosen)).slice(0, MAX_FOUND)
    ids = matches[_ROW_ID].to_numpy()
    return SortedRows(
        ids, dataset.stats().num_rows, scores=cells.plain(matches[SCORE]), search=search
    )


def search_arguments(
    search: FullTextSearch, filter: str | None, order: Sequence[SortOrder]
) -> dict[str, Any]:
    """Return the arguments of the scan that finds the rows of a search."""
    arguments: dict[str, Any] = {"full_text_query": search.query}
    if filter is not None:
        arguments |= {"filter": filter, "prefilter": True}
    if order:
        arguments["order_by"] = orderings(order)
    return arguments | {"limit": MAX_FOUND}


def orderings(order: Sequence[SortOrder]) -> list[dict[str, object]]:
    """Return an order as the scanner takes it."""
    return [{"column_name": sort.column, "ascending": sort.ascending} for sort in order]
