"""Which rows and columns of a version the grid shows, and in which order.

============== =====================================================================
RowQuery       filter, system columns, and the order or matches below
SortedRows     row ids in their order, with distances if they are nearest neighbors, or with scores
               if a text index has found them
FilteredRows   how many rows of each group of fragments pass a filter, so that a page in the middle
               of a filtered scan is read from its own group, not from the start of the dataset
FilterCost     the columns that a filter decodes, and the rows that statistics let it skip
============== =====================================================================

System columns are those that no schema names: row id, row address, and the versions that created
and last updated the row (for datasets without stable row ids the format derives these from the
fragment).

Sorting scans the whole column and keeps the first ``MAX_ORDERED`` rows: of a longer dataset the
grid shows these and says so. Nulls come last, NaN just before them, equal values in scan order.
Neighbors come from an index on the column that has the metric, unless the request is for an exact
search; without one every vector is compared.

A search for words (``full_text_search``) that an index answers gives its best rows, unless they are
sorted otherwise. One without an index is a condition more in the filter. The rows keep the search,
by which pages mark its words.

Data files of 2.x have no statistics of pages, so that a filter decodes its columns for every row;
those of 0.1 have them, and whole pages are skipped. The other columns are decoded only for the
rows that pass, either way. Layout of ``FilterCost.to_json``: ``columns`` (names), ``rows`` whose
filter columns are decoded, ``skipped`` rows (null: no file has statistics), ``fragments``.

Limits: ``MAX_ORDERED`` rows; memory holds those and one batch. A filter has at most
``MAX_FILTER_CHARS`` characters. With more than ``MAX_FRAGMENTS`` fragments, skipped rows are not
counted.
Not supported: sorting by nested or binary columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, literal, magic, offered
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer.models import cells, refs, text
from lance_nb.explorer.models.column_choice import ColumnChoice
from lance_nb.explorer.models.full_text_search import (
    MAX_FOUND,
    SCORE,
    FullTextSearch,
    SearchRequest,
    plan_search,
)
from lance_nb.explorer.models.source import (
    FragmentGroup,
    ScannedSource,
    Source,
    StoredSource,
    group_batches,
    scan_groups,
    scanned_source,
    stored_source,
)
from lance_nb.table.page_pruning import rows_that_may_pass
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.row_ids import live_ids
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.dataset import LanceDataset

MAX_ORDERED = 100_000
MAX_NEAR = 1000
REFINE_FACTOR = 10  # candidates of an index for each row, which are compared exactly
MAX_LISTED = 1000
METRICS = ("l2", "cosine", "dot", "hamming")
DISTANCE = "_distance"
_ROW_ID = "_rowid"

Progress = Callable[[int, int], object]
MAX_FILTER_CHARS = 16_000
SYSTEM_COLUMNS = (
    "_rowid",
    "_rowaddr",
    "_row_created_at_version",
    "_row_last_updated_at_version",
)
MAX_FRAGMENTS = 256
MAX_NAMES = 12


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
        stored = [one for one in columns if one != name]
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
        at = int(np.searchsorted(self.ends, offset, "right"))
        stop = 1 + int(np.searchsorted(self.ends, offset + limit, "left"))
        fragments = [one for group in self.groups[at:stop] for one in group.fragments]
        before = int(self.ends[at - 1]) if at else 0
        found: pa.Table = dataset.scanner(
            columns=columns, filter=self.filter, fragments=fragments,
            offset=offset - before, limit=limit,
        ).to_table()  # fmt: skip
        return found


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
    found = [np.zeros(0, np.uint64)]
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    for group in groups:
        inside = 0
        for batch in group_batches(dataset, group, [_ROW_ID], filter):
            progress(group.first + inside, total)
            ids = batch.column(0).to_numpy()
            inside += ids.size
            found.append(ids[are_among(ids, within)])
    return SortedRows(np.concatenate(found), int(within.size))


def are_among(ids: npt.NDArray[np.uint64], within: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Tell of each id whether it is one of ``within``, which are in ascending order."""
    if not within.size:
        return np.zeros(ids.size, np.bool_)
    places = np.minimum(np.searchsorted(within, ids), within.size - 1)
    found: npt.NDArray[np.bool_] = within[places] == ids
    return found


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
    for one in order:
        _check_sortable(dataset, one.column)
    columns = [one.column for one in order]
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
    values = [one.cast(pa.float32()) if pa.types.is_float16(one.type) else one for one in keys]
    return pa.table({**{str(at): one for at, one in enumerate(values)}, "id": ids})


def _merged(held: pa.Table | None, found: pa.Table, order: Sequence[SortOrder]) -> pa.Table:
    """Return the first rows of both in order; rows that cannot be among them are skipped."""
    import pyarrow.compute as pc

    if held is not None and held.num_rows >= MAX_ORDERED:
        last = held.column("0")[-1]
        if last.is_valid and not (pa.types.is_floating(last.type) and np.isnan(last.as_py())):
            first = found.column("0")
            # Of several keys the others may decide.
            strict, equal = (pc.less, pc.less_equal) if order[0].ascending else (
                pc.greater, pc.greater_equal
            )  # fmt: skip
            found = found.filter((strict if len(order) == 1 else equal)(first, last))
        if not found.num_rows:
            return held
    both = found if held is None else pa.concat_tables([held, found])
    keys = [
        (str(at), "ascending" if one.ascending else "descending") for at, one in enumerate(order)
    ]
    places = pc.sort_indices(both, sort_keys=keys)
    return both.take(places[:MAX_ORDERED]).combine_chunks()


def matching_rows(
    dataset: ScannedSource, request: GridRequest, search: FullTextSearch, progress: Progress
) -> SortedRows:
    """Find the rows that an index gives for a search, best first or as they are sorted.

    Raises LanceError.
    """
    for one in request.order:
        _check_sortable(dataset, one.column)
    progress(0, 0)
    wanted = _matching(search, request.query.filter, request.order)
    if request.within is not None:
        del wanted["limit"]
    found = dataset.scanner(columns=[_ROW_ID], **wanted).to_table()
    if request.within is not None:
        chosen = are_among(found[_ROW_ID].to_numpy(), request.within)
        found = found.filter(pa.array(chosen)).slice(0, MAX_FOUND)
    ids = found[_ROW_ID].to_numpy()
    return SortedRows(
        ids, dataset.stats().num_rows, scores=cells.plain(found[SCORE]), search=search
    )


def _matching(
    search: FullTextSearch, filter: str | None, order: Sequence[SortOrder]
) -> dict[str, Any]:
    """Return the arguments of the scan that finds the rows of a search."""
    asked: dict[str, Any] = {"full_text_query": search.query}
    if filter is not None:
        asked |= {"filter": filter, "prefilter": True}
    if order:
        asked["order_by"] = _orderings(order)
    return asked | {"limit": MAX_FOUND}


def _orderings(order: Sequence[SortOrder]) -> list[dict[str, object]]:
    return [{"column_name": one.column, "ascending": one.ascending} for one in order]


@dataclass(frozen=True, slots=True)
class NearestQuery:
    """A search for the nearest neighbors of ``vector`` in ``column``; ``code`` reads the vector.

    ``index`` is the name of the index that is searched, None to compare every vector.
    """

    column: str
    vector: pa.Scalar
    code: Python
    k: int = 10
    metric: str = "l2"
    index: str | None = None


def index_for(dataset: Source, nearest: NearestQuery) -> str | None:
    """Return the name of the index that a search uses: one on the column, of the metric."""
    if not hasattr(dataset, "describe_indices"):
        return None
    for one in cast("LanceDataset", dataset).describe_indices():
        if one.field_names == [nearest.column] and one.index_type.startswith("IVF"):
            found = cast("LanceDataset", dataset).index_statistics(one.name)["indices"]
            if found and found[0].get("metric_type") == nearest.metric:
                return one.name
    return None


def nearest_rows(
    dataset: ScannedSource, nearest: NearestQuery, filter: str | None, progress: Progress
) -> SortedRows:
    """Find the rows whose vectors are nearest. Raises InvalidInputError, NotSupportedError."""
    vector = _checked_vector(nearest)
    if nearest.index is not None:
        return _indexed_rows(dataset, nearest, vector, filter)
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    wanted = {
        "column": nearest.column, "q": vector, "k": nearest.k, "metric": nearest.metric,
        "use_index": False,
    }  # fmt: skip
    parts: list[pa.Table] = []
    for group in groups:
        progress(group.first, total)
        scan = dataset.scanner(columns=[_ROW_ID], nearest=wanted, filter=filter, prefilter=True,
                               fragments=group.fragments)  # fmt: skip
        parts = [_nearest([*parts, scan.to_table().select([_ROW_ID, DISTANCE])], nearest.k)]
    if not parts:
        return SortedRows(np.zeros(0, np.uint64), 0, pa.array([], pa.float32()))
    best = parts[0]
    return SortedRows(best[_ROW_ID].to_numpy(), total, cells.plain(best[DISTANCE]))


def _indexed_rows(
    dataset: ScannedSource, nearest: NearestQuery, vector: Any, filter: str | None
) -> SortedRows:
    wanted = {
        "column": nearest.column, "q": vector, "k": nearest.k, "metric": nearest.metric,
        "refine_factor": REFINE_FACTOR,
    }  # fmt: skip
    scan = dataset.scanner(columns=[_ROW_ID], nearest=wanted, filter=filter, prefilter=True)
    found = scan.to_table()
    ids = found[_ROW_ID].to_numpy()
    return SortedRows(ids, dataset.stats().num_rows, cells.plain(found[DISTANCE]))


def recall_words(
    dataset: ScannedSource, nearest: NearestQuery, filter: str | None, progress: Progress
) -> str:
    """Compare what an index finds with an exact search, and say how much of that it finds.

    Raises InvalidInputError without an index.
    """
    name = index_for(dataset, nearest)
    if name is None:
        raise InvalidInputError(f"no index of {nearest.column!r} has the metric {nearest.metric}")
    started = time.perf_counter()
    found = nearest_rows(dataset, replace(nearest, index=name), filter, progress)
    between = time.perf_counter()
    exact = nearest_rows(dataset, replace(nearest, index=None), filter, progress)
    ended = time.perf_counter()
    same = int(np.isin(exact.ids, found.ids).sum())
    return (
        f"the index {text.name(name)} finds {text.count(same)} of the "
        f"{text.count(exact.ids.size)} nearest (recall {same / max(1, exact.ids.size):.0%}): "
        f"{_milliseconds(between - started)}, exact {_milliseconds(ended - between)}"
    )


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(1000 * seconds)):,} ms"


def _checked_vector(nearest: NearestQuery) -> Any:
    if nearest.metric not in METRICS:
        raise InvalidInputError(
            f"metric must be one of {', '.join(METRICS)}, not {nearest.metric[:40]!r}"
        )
    if not pa.types.is_fixed_size_list(nearest.vector.type):
        raise NotSupportedError(f"{nearest.column!r} has no vectors")
    if not nearest.vector.is_valid:
        raise InvalidInputError("this row has no vector")
    values: Any = nearest.vector
    return cells.plain(values.values).to_numpy(zero_copy_only=False)


def _nearest(parts: list[pa.Table], k: int) -> pa.Table:
    found = pa.concat_tables(parts)
    places = np.argsort(found[DISTANCE].to_numpy(), kind="stable")[:k]
    return found.take(pa.array(places))


@dataclass(frozen=True, slots=True)
class RowQuery:
    """The rows and columns that the grid shows."""

    filter: str | None = None
    system: bool = False
    order: RowOrder | None = None
    columns: ColumnChoice | None = None

    def names(self, dataset: Source) -> list[str]:
        """Return the columns, in the order of the grid."""
        known = self.known_names(dataset)
        chosen = known if self.columns is None else self.columns.names(known)
        found_by = self.found_by
        return chosen if found_by is None else [found_by, *(n for n in chosen if n != found_by)]

    def stored_names(self, dataset: Source) -> list[str]:
        """Return the columns without the distance or score of a search, which stands first."""
        return self.names(dataset)[int(self.found_by is not None) :]

    def known_names(self, dataset: Source) -> list[str]:
        """Return the columns that may be chosen from, in the order of the dataset."""
        return [*dataset.schema.names, *(SYSTEM_COLUMNS if self.system else ())]

    def num_pinned(self, dataset: Source) -> int:
        """Return how many columns stay on the left; the distance or score is one of them."""
        if self.columns is None:
            return 0
        pinned = self.columns.pinned_of(self.known_names(dataset))
        return int(self.found_by is not None) + len(pinned)

    @property
    def found_by(self) -> str | None:
        """The name of the column with the distances or scores of a search, if there is one."""
        return self.order.found_by if isinstance(self.order, SortedRows) else None

    @property
    def search(self) -> FullTextSearch | None:
        """The search for words that has found the rows, if one has."""
        return None if self.order is None else self.order.search

    def rows(self, dataset: Source, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by position."""
        if self.order is not None:
            return self.order.rows(scanned_source(dataset), columns, offset, limit)
        if self.filter is None:
            return dataset.to_table(columns=columns, limit=limit, offset=offset)
        return dataset.to_table(columns=columns, limit=limit, offset=offset, filter=self.filter)


def query_of(args: Mapping[str, Any]) -> RowQuery:
    """Take a query, without an order, from the arguments of a request.

    Raises InvalidInputError.
    """
    wanted, system = args.get("filter"), args.get("system", False)
    if wanted is not None and (not isinstance(wanted, str) or len(wanted) > MAX_FILTER_CHARS):
        raise InvalidInputError(f"a filter must be text of at most {MAX_FILTER_CHARS:,} characters")
    if not isinstance(system, bool):
        raise InvalidInputError("system must be true or false")
    return RowQuery(wanted.strip() or None if wanted is not None else None, system)


def query_code(
    dataset: Source,
    query: RowQuery,
    order: Sequence[SortOrder] = (),
    nearest: NearestQuery | None = None,
    within: npt.NDArray[np.uint64] | None = None,
) -> dict[str, str]:
    """Return the lines that show the same rows, in Python and as a magic.

    There are none for rows ``within`` a choice that are also sorted, searched or filtered, or are
    many.
    """
    opened = refs.opened(dataset)
    ranked = query.search if query.found_by == SCORE else None
    if within is not None:
        if order or ranked or query.filter is not None or within.size > MAX_LISTED:
            return {}
        return {"python": opened.attribute("take_rows").call(within.tolist()).line()}
    asked: dict[str, object] = {}
    if query.columns is not None:
        columns = asked["columns"] = _columns_code(dataset, query)
        if isinstance(columns, Python):
            opened = Python(f"(ds := {opened.code})")
    elif query.system:
        names = ", ".join(map(literal, SYSTEM_COLUMNS))
        asked["columns"] = Python(f"[*ds.schema.names, {names}]")
        opened = Python(f"(ds := {opened.code})")
    if query.filter is not None:
        asked["filter"] = query.filter
    if order:
        asked["order_by"] = _orderings(order)
        asked["limit"] = MAX_ORDERED
    if nearest is not None:
        asked["nearest"] = Python("dict").call(
            column=nearest.column,
            q=nearest.code,
            k=nearest.k,
            metric=nearest.metric,
            **({"use_index": False} if nearest.index is None else {"refine_factor": REFINE_FACTOR}),
        )
        if query.filter:
            asked["prefilter"] = True
    if ranked is not None:
        asked |= _matching(ranked, query.filter, order) | {"full_text_query": ranked.code}
        named = asked.get("columns")
        if isinstance(named, Python):
            asked["columns"] = Python(f"[*{named.code}, {literal(SCORE)}]")
        elif named is not None:
            asked["columns"] = [*query.stored_names(dataset), SCORE]
        python = opened.attribute("scanner").call(**asked).attribute("to_table").call()
        return offered(python, _search_line(query, ranked, order))
    if not order and nearest is None:
        python = opened.attribute("to_table").call(**asked)
    else:
        python = opened.attribute("scanner").call(**asked).attribute("to_table").call()
    place = refs.place_word(dataset.branch, dataset.version)
    return offered(python, magic("head", place, options={"--where": query.filter}))


def _search_line(query: RowQuery, search: FullTextSearch, order: Sequence[SortOrder]) -> str:
    """Return the line of ``%lance search``, which ranks rows with any of the words."""
    if order or (len(search.terms) > 1 and not search.request.any_word):
        return PYTHON_ONLY
    if any(one.is_phrase for one in search.terms) and len(search.terms) > 1:
        return PYTHON_ONLY
    written = " ".join(one.text for one in search.terms)
    if search.terms[0].is_phrase:
        written = f'"{written}"'
    if any("," in name for name in search.columns):
        return PYTHON_ONLY  # %lance divides the names by commas
    options: dict[str, object] = {"--in": ",".join(search.columns), "--where": query.filter}
    return magic("search", written, options=options)


def _columns_code(dataset: Source, query: RowQuery) -> list[str] | Python:
    """Write the columns shown: by name, or where they are many by those that are left out."""
    shown = query.stored_names(dataset)
    there = set(shown)
    hidden = [name for name in dataset.schema.names if name not in there]
    if len(shown) <= MAX_NAMES or len(hidden) > MAX_NAMES or query.columns is None:
        return shown
    pinned = query.columns.pinned_of(shown)
    first = [*pinned, *(name for name in shown if name in SYSTEM_COLUMNS)]
    left_out = tuple(dict.fromkeys([*pinned, *hidden]))
    rest = f"*(name for name in ds.schema.names if name not in {literal(left_out)})"
    return Python(f"[{', '.join([*map(literal, first), rest])}]")


@dataclass(frozen=True, slots=True)
class FilterCost:
    """The cost of a filter."""

    columns: tuple[str, ...]
    rows: int
    skipped: int | None
    fragments: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self) | {"columns": list(self.columns)}


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
    found = [rows_that_may_pass(snapshot, fragment, condition) for fragment in fragments]
    known = [mask for mask in found if mask is not None]
    return sum(int(mask.size - mask.sum()) for mask in known) if known else None


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
    """The rows that the grid is to show, with the code that reads them."""

    query: RowQuery
    num_rows: int
    num_columns: int
    num_pinned: int
    words: str
    reads: FilterCost | None
    code: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "num_rows": self.num_rows,
            "num_columns": self.num_columns,
            "pinned": self.num_pinned,
            "words": self.words,
            "reads": None if self.reads is None else self.reads.to_json(),
            "code": self.code,
            "filter": self.query.filter,
            "found_by": self.query.found_by,
            "search": None if self.query.search is None else self.query.search.to_json(),
        }


def grid_rows(dataset: Source, request: GridRequest, progress: Progress) -> GridRows:
    """Find the rows. Raises LanceError when the filter is wrong or there is no such order."""
    started = time.perf_counter()
    if request.nearest is not None and request.allows_index:
        name = index_for(dataset, request.nearest)
        request = replace(request, nearest=replace(request.nearest, index=name))
    search = None
    if request.search is not None:
        if request.nearest is not None:
            raise InvalidInputError("rows are searched for words or for neighbors, not for both")
        search = plan_search(dataset, request.search)
        request = _with_condition(dataset, request, search)
    query = _ordered(dataset, request, search, progress)
    spent = time.perf_counter() - started
    kept = query.order
    if kept is not None:
        num_rows = kept.num_rows
    else:
        num_rows = dataset.count_rows(*([] if query.filter is None else [query.filter]))
    reads = None
    if query.filter is not None and hasattr(dataset, "opened"):
        reads = filter_cost(stored_source(dataset), query.filter)
    said = _words(request, kept, spent) if isinstance(kept, SortedRows) else ""
    if search is not None and kept is not None:
        said = " · ".join(filter(None, [_found_words(search, kept, spent), said]))
    within = None if request.nearest is not None else request.within
    code = query_code(dataset, query, request.order, request.nearest, within)
    num_columns, num_pinned = len(query.names(dataset)), query.num_pinned(dataset)
    return GridRows(query, num_rows, num_columns, num_pinned, said, reads, code)


def _with_condition(dataset: Source, request: GridRequest, search: FullTextSearch) -> GridRequest:
    """Add the condition of a scan for words to the filter. Raises PredicateError."""
    query = request.query
    if search.condition is None:
        return request
    if query.filter is None:
        return replace(request, query=replace(query, filter=search.condition))
    compile_filter(query.filter, dataset.schema)  # so that an error is about what was written
    both = f"({query.filter}) AND {search.condition}"
    return replace(request, query=replace(query, filter=both))


def _ordered(
    dataset: Source, request: GridRequest, search: FullTextSearch | None, progress: Progress
) -> RowQuery:
    if request.query.order is not None:
        return request.query  # it is known from before
    if search is not None and search.is_ranked:
        found = matching_rows(scanned_source(dataset), request, search, progress)
        return replace(request.query, order=found)
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
        found = sorted_rows(scanned_source(dataset), request.order, where, progress, request.within)
        return replace(request.query, order=found)
    if request.within is not None:
        found = chosen_rows(scanned_source(dataset), request.within, where, progress)
        return replace(request.query, order=found)
    if where is not None and hasattr(dataset, "scanner"):
        return replace(request.query, order=filtered_rows(scanned_source(dataset), where, progress))
    return request.query


def _words(request: GridRequest, found: SortedRows, seconds: float) -> str:
    if request.nearest is not None:
        near = text.plural(found.num_rows, "row")
        among = (
            f"all {text.count(found.scanned)}"
            if request.query.filter is None
            else "those that pass"
        )
        name = request.nearest.index
        how = "exact" if name is None else f"by the index {text.name(name)}"
        said = f"{near} nearest by {request.nearest.metric}, {how}, of {among}"
        return f"{said}, in {_milliseconds(seconds)}"
    if found.scores is not None:
        by = ", ".join(text.name(one.column) for one in request.order)
        return f"sorted by {by}, not by score" if by else ""
    if not request.order:
        return f"{text.plural(found.num_rows, 'row')} of {text.count(found.scanned)} chosen"
    over = f"sorted over {text.plural(found.scanned, 'row')}"
    cut = found.num_rows < found.scanned
    return f"{over}; the first {text.count(found.num_rows)} are shown" if cut else over


def _found_words(search: FullTextSearch, found: RowOrder, seconds: float) -> str:
    """Say how the rows of a search were found, and what was left out."""
    rows = text.plural(found.num_rows, "row")
    columns = ", ".join(map(text.name, search.columns))
    if search.is_ranked:
        names = ", ".join(map(text.name, search.indices))
        most = ", the best ones" if found.num_rows == MAX_FOUND else ""
        how = f"{rows} by the index {names} on {columns}{most}"
    else:
        how = f"{rows} found in {columns}: every text scanned, no index, so no score"
    return " · ".join([f"{how}, in {_milliseconds(seconds)}", *search.remarks])
