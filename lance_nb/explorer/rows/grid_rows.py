"""Find the rows that the grid is to show, and say how they were found and at what cost.

A search for words (``full_text_search``) that an index answers gives its best rows, unless they are
sorted otherwise. One without an index is a condition more in the filter. The rows keep the search,
by which pages mark its words. Where an index would do what was scanned, ``GridRows.index`` is the
card that builds it.

Data files of 2.x have no statistics of pages, so that a filter decodes its columns for every row;
those of 0.1 have them, and whole pages are skipped. The other columns are decoded only for the
rows that pass, either way. Layout of ``FilterCost.to_json``: ``columns`` (names), ``rows`` whose
filter columns are decoded, ``skipped`` rows (null: no file has statistics), ``fragments``.

Limits: with more than ``MAX_FRAGMENTS`` fragments, skipped rows are not counted.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.rows.full_text_search import (
    MAX_FOUND,
    FullTextSearch,
    SearchRequest,
    plan_search,
)
from lance_nb.explorer.rows.nearest_rows import (
    NearestQuery,
    index_for,
    milliseconds,
    nearest_rows,
)
from lance_nb.explorer.rows.row_order import (
    Progress,
    RowOrder,
    SortedRows,
    SortOrder,
    chosen_rows,
    filtered_rows,
    matching_rows,
    sorted_rows,
)
from lance_nb.explorer.rows.row_query import MAX_NAMES, RowQuery, query_code
from lance_nb.explorer.source import Source, StoredSource, scanned_source, stored_source
from lance_nb.table.page_pruning import rows_that_may_pass
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

MAX_FRAGMENTS = 256
INDEX_METRICS = ("l2", "cosine", "dot")
QUANTIZED_ROWS = 100_000  # an index of fewer vectors keeps them whole


@dataclass(frozen=True, slots=True)
class FilterCost(JsonFields):
    """The cost of a filter."""

    columns: tuple[str, ...]
    rows: int
    skipped: int | None
    fragments: int


def filter_cost(dataset: StoredSource, filter: str) -> FilterCost:
    """Estimate what a filter reads, from metadata. Raises PredicateError."""
    snapshot = dataset.opened[1]
    condition = compile_filter(filter, project(snapshot.manifest.schema, None).schema)
    names = dict.fromkeys(text.name(".".join(path)) for path in condition.paths)
    skipped = _skipped(snapshot, condition)
    stats = dataset.stats()
    rows = stats.num_rows - (skipped or 0)
    return FilterCost(tuple(names)[:MAX_NAMES], rows, skipped, stats.num_fragments)


def _skipped(snapshot: Snapshot, condition: Filter) -> int | None:
    fragments = snapshot.manifest.fragments
    if len(fragments) > MAX_FRAGMENTS:
        return None
    masks = [rows_that_may_pass(snapshot, fragment, condition) for fragment in fragments]
    known_masks = [mask for mask in masks if mask is not None]
    return sum(int(mask.size - mask.sum()) for mask in known_masks) if known_masks else None


@dataclass(frozen=True, slots=True)
class GridRequest:
    """A request for rows. Nearest neighbors are sorted by distance, whatever the order.

    Rows are searched for words or for nearest neighbors, not for both.

    ``within``: ascending row ids that the rows are chosen from, None for all. Nearest neighbors are
    searched among all rows that pass the filter, by an index where ``allows_index``.
    """

    query: RowQuery
    order: tuple[SortOrder, ...] = ()
    nearest: NearestQuery | None = None
    within: npt.NDArray[np.uint64] | None = None
    allows_index: bool = True
    search: SearchRequest | None = None


@dataclass(frozen=True, slots=True)
class GridRows:
    """The rows that the grid is to show, with the code that reads them.

    ``index``: the arguments of a card that builds the index that was missing, None if none was.
    """

    query: RowQuery
    num_rows: int
    num_columns: int
    num_pinned: int
    words: str
    reads: FilterCost | None
    code: dict[str, str]
    index: dict[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "num_rows": self.num_rows,
            "num_columns": self.num_columns,
            "pinned": self.num_pinned,
            "words": self.words,
            "reads": None if self.reads is None else self.reads.to_json(),
            "code": self.code,
            "index": self.index,
            "filter": self.query.filter,
            "found_by": self.query.found_by,
            "search": None if self.query.search is None else self.query.search.to_json(),
        }


def grid_rows(dataset: Source, request: GridRequest, progress: Progress) -> GridRows:
    """Find the rows. Raises LanceError when the filter is wrong or there is no such order."""
    started = time.perf_counter()
    index = None
    if request.nearest is not None:
        name = index_for(dataset, request.nearest)
        if name is None:
            index = _index_of_vectors(dataset, request.nearest)
        elif request.allows_index:
            request = replace(request, nearest=replace(request.nearest, index=name))
    search = None
    if request.search is not None:
        if request.nearest is not None:
            raise InvalidInputError("rows are searched for words or for neighbors, not for both")
        search = plan_search(dataset, request.search)
        if not search.is_ranked:
            index = {"column": search.columns[0], "kind": "INVERTED"}
        request = _with_condition(dataset, request, search)
    query = _ordered(dataset, request, search, progress)
    spent = time.perf_counter() - started
    order = query.order
    if order is not None:
        num_rows = order.num_rows
    else:
        num_rows = dataset.count_rows(*([] if query.filter is None else [query.filter]))
    reads = None
    if query.filter is not None and hasattr(dataset, "opened"):
        reads = filter_cost(stored_source(dataset), query.filter)
    words = _words(request, order, spent) if isinstance(order, SortedRows) else ""
    if search is not None and order is not None:
        words = " · ".join(filter(None, [_found_words(search, order, spent), words]))
    within = None if request.nearest is not None else request.within
    code = query_code(dataset, query, request.order, nearest=request.nearest, within=within)
    num_columns, num_pinned = len(query.names(dataset)), query.num_pinned(dataset)
    return GridRows(
        query=query,
        num_rows=num_rows,
        num_columns=num_columns,
        num_pinned=num_pinned,
        words=words,
        reads=reads,
        code=code,
        index=index,
    )


def _index_of_vectors(dataset: Source, nearest: NearestQuery) -> dict[str, str] | None:
    """Return the card of an index that a search could use, None where there can be none."""
    vectors = nearest.vector.type
    is_held = pa.types.is_fixed_size_list(vectors) and pa.types.is_floating(vectors.value_type)
    if not is_held or nearest.metric not in INDEX_METRICS or not hasattr(
        dataset, "describe_indices"
    ):  # fmt: skip
        return None
    kind = "IVF_FLAT" if dataset.count_rows() < QUANTIZED_ROWS else "IVF_PQ"
    return {"column": nearest.column, "kind": kind, "metric": nearest.metric}


def _with_condition(dataset: Source, request: GridRequest, search: FullTextSearch) -> GridRequest:
    """Add the condition of a scan for words to the filter. Raises PredicateError."""
    query = request.query
    if search.condition is None:
        return request
    if query.filter is None:
        return replace(request, query=replace(query, filter=search.condition))
    compile_filter(query.filter, dataset.schema)  # so that an error is about what was written
    condition = f"({query.filter}) AND {search.condition}"
    return replace(request, query=replace(query, filter=condition))


def _ordered(
    dataset: Source, request: GridRequest, search: FullTextSearch | None, progress: Progress
) -> RowQuery:
    if request.query.order is not None:
        return request.query  # it is known from before
    if search is not None and search.is_ranked:
        rows = matching_rows(
            scanned_source(dataset),
            search,
            request.order,
            filter=request.query.filter,
            progress=progress,
            within=request.within,
        )
        return replace(request.query, order=rows)
    query = _without_search(dataset, request, progress)
    if search is None or query.order is None:
        return query
    return replace(query, order=replace(query.order, search=search))


def _without_search(dataset: Source, request: GridRequest, progress: Progress) -> RowQuery:
    where = request.query.filter
    if request.nearest is not None:
        return replace(
            request.query,
            order=nearest_rows(scanned_source(dataset), request.nearest, where, progress),
        )
    if request.order:
        rows = sorted_rows(
            scanned_source(dataset), request.order, where, progress=progress, within=request.within
        )
        return replace(request.query, order=rows)
    if request.within is not None:
        rows = chosen_rows(scanned_source(dataset), request.within, where, progress)
        return replace(request.query, order=rows)
    if where is not None and hasattr(dataset, "scanner"):
        return replace(request.query, order=filtered_rows(scanned_source(dataset), where, progress))
    return request.query


def _words(request: GridRequest, rows: SortedRows, seconds: float) -> str:
    if request.nearest is not None:
        near = text.plural(rows.num_rows, "row")
        among = (
            f"all {text.count(rows.scanned)}" if request.query.filter is None else "those that pass"
        )
        name = request.nearest.index
        method = "exact" if name is None else f"by the index {text.name(name)}"
        description = f"{near} nearest by {request.nearest.metric}, {method}, of {among}"
        return f"{description}, in {milliseconds(seconds)}"
    if rows.scores is not None:
        by = ", ".join(text.name(sort.column) for sort in request.order)
        return f"sorted by {by}, not by score" if by else ""
    if not request.order:
        return f"{text.plural(rows.num_rows, 'row')} of {text.count(rows.scanned)} chosen"
    over = f"sorted over {text.plural(rows.scanned, 'row')}"
    cut = rows.num_rows < rows.scanned
    return f"{over}; the first {text.count(rows.num_rows)} are shown" if cut else over


def _found_words(search: FullTextSearch, row_order: RowOrder, seconds: float) -> str:
    """Say how the rows of a search were found, and what was left out."""
    rows = text.plural(row_order.num_rows, "row")
    columns = ", ".join(map(text.name, search.columns))
    if search.is_ranked:
        names = ", ".join(map(text.name, search.indices))
        most = ", the best ones" if row_order.num_rows == MAX_FOUND else ""
        summary = f"{rows} by the index {names} on {columns}{most}"
    else:
        summary = f"{rows} found in {columns}: every text scanned, no index, so no score"
    return " · ".join([f"{summary}, in {milliseconds(seconds)}", *search.remarks])
