"""Plan a scan: which rows it returns, in which order, and what its columns look like.

``plan_scan`` checks what is asked for against a version; the ``ScanPlan`` then runs as a table, as
batches or as a count. Order of work: nearest neighbours or a full-text query, then the filter
(before them with ``prefilter``), then order, offset and limit.

Most scans are plain: stored columns of live rows in the order of the scan, with offset and limit.
They need neither filters, orders, searches nor expressions, so these modules are imported where a
scan needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_batch
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_floats, from_integers
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.table.projection import (
    ROW_ADDRESS,
    ROW_ID,
    ColumnsArgument,
    Projection,
    bare_table,
    project,
    remembered,
    with_dictionaries,
)
from lance_nb.table.scan import DEFAULT_BATCH_ROWS, cut, empty_batches, scan_batches, scan_table
from lance_nb.table.scan_tasks import FragmentTask, plan_tasks
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.addresses import Addresses
    from lance_nb.table.computed_columns import Shape
    from lance_nb.table.filtered_scan import RowChoice
    from lance_nb.table.index_search import (
        Ids,
        IndexAnswer,
        IndexSearch,
        NearestSearch,
        Scores,
        TextMatches,
    )
    from lance_nb.table.nearest import NearestQuery, Neighbours
    from lance_nb.table.ordering import ColumnOrdering
    from lance_nb.table.predicate import Filter

BATCH_ROWS_MAX = (1 << 32) - 1
_SLICE_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What to read, as pylance's ``scanner`` takes it. ``fragments`` None means all of them."""

    columns: ColumnsArgument = None
    filter: Any = None
    limit: int | None = None
    offset: int | None = None
    nearest: Mapping[str, Any] | None = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    fragments: tuple[Fragment, ...] | None = None
    prefilter: bool = False
    include_deleted_rows: bool = False
    strict_batch_size: bool = False
    order_by: Any = None
    add_scores: bool = True
    blob_payloads: bool = False
    keep_dictionaries: bool = False
    use_scalar_index: bool = True
    full_text_query: Any = None
    fast_search: bool = False

    @property
    def row_columns(self) -> list[str]:
        """Names of the row columns that come behind the others."""
        return [ROW_ID] * bool(self.with_row_id) + [ROW_ADDRESS] * bool(self.with_row_address)

    @property
    def is_plain(self) -> bool:
        """Whether stored columns of live rows are wanted, in the order of the scan."""
        return (
            self.filter is None
            and self.nearest is None
            and self.full_text_query is None
            and self.order_by is None
            and not self.include_deleted_rows
            and not isinstance(self.columns, Mapping)
        )

    def check_batch_size(self) -> None:
        """Raise InvalidInputError for batches of no rows, or of more than fit."""
        if self.batch_size is not None and not 0 < self.batch_size <= BATCH_ROWS_MAX:
            raise InvalidInputError(f"batch_size must be positive, got {self.batch_size}")


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A scan that has been checked against a version.

    ``source`` is what is read of the stored columns; ``shape`` makes the result of it, None in a
    plain scan, whose result is the source. ``search`` are the indices that the filter may use,
    ``vectors`` those that ``nearest`` may use, and ``text`` is the full-text query.
    """

    snapshot: Snapshot
    options: ScanOptions
    source: Projection
    shape: Shape | None = None
    filter: Filter | None = None
    orderings: tuple[ColumnOrdering, ...] = ()
    nearest: NearestQuery | None = None
    search: IndexSearch | None = None
    vectors: NearestSearch | None = None
    text: TextMatches | None = None

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return self.source.schema if self.shape is None else self.shape.schema

    def table(self) -> pa.Table:
        """Read the result into one table."""
        if self.shape is None:
            return scan_table(self.snapshot, self.source, self._tasks())
        tables = list(self._tables(self.shape, None))
        if not tables:
            return pa.Table.from_batches([], self.shape.schema)
        if not self.shape.names:
            # Joining tables without columns would lose their number of rows.
            return bare_table(sum(table.num_rows for table in tables))
        return pa.concat_tables(tables)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the result batch by batch."""
        size = self.options.batch_size or DEFAULT_BATCH_ROWS
        if self.shape is None:
            batches = scan_batches(self.snapshot, self.source, self._tasks(), size)
        else:
            tables = self._tables(self.shape, _SLICE_ROWS)
            batches = (batch for table in tables for batch in _cut(table, size))
        return strict_batches(batches, size) if self.options.strict_batch_size else batches

    def count(self) -> int:
        """Count the rows of the result, decoding no more than the filter needs.

        Raises InvalidInputError under a limit or an offset.
        """
        from lance_nb.table.row_selection import count_selected

        if self.options.limit is not None or self.options.offset:
            raise InvalidInputError("rows cannot be counted under a limit or an offset")
        if self.nearest is not None:
            return self._neighbours(self.nearest).rows.num_rows
        if self.text is not None:
            return self._matches(self.text)[0].num_rows
        if self.search is not None and self.filter is not None and self._counts_all:
            counted = self.search.count(self.filter)
            if counted is not None:
                return counted[0] + self._count_outside(self.filter, counted[1])
        return count_selected(self.snapshot, self._choice)

    @property
    def _counts_all(self) -> bool:
        """Whether every live row that passes the filter is counted."""
        options = self.options
        is_whole = options.fragments is None and not options.include_deleted_rows
        return is_whole and self._filters_first

    def _count_outside(self, condition: Filter, covered: Ids) -> int:
        """Count the rows of fragments that no index covers."""
        from lance_nb.table.filtered_scan import RowChoice
        from lance_nb.table.index_search import among
        from lance_nb.table.row_selection import count_selected

        fragments = self.snapshot.manifest.fragments
        places = np.flatnonzero(~among(fragments.counts().ids, covered)).tolist()
        if not places:
            return 0
        remaining = tuple(fragments[place] for place in places)
        return count_selected(self.snapshot, RowChoice(condition, remaining))

    def explain(self) -> str:
        """Describe in a few lines what will be read, and in which order of work."""
        from lance_nb.format.transaction_summary import count_of

        options, schema = self.options, self.snapshot.manifest.schema
        fragments = options.fragments
        count = len(self.snapshot.manifest.fragments if fragments is None else fragments)
        lines = [f"LanceScan: version {self.snapshot.version}, {count_of(count, 'fragment')}"]
        first: list[str] = []
        is_searched = False
        if self.filter is not None:
            from lance_nb.table.filtered_scan import filter_projection

            first = list(filter_projection(schema, self.filter).schema.names)
            lines.append(f"  filter: {self.filter.text}")
            if self.search is not None and self._filters_first:
                steps = self.search.explain(self.filter)
                lines += [f"  {line}" for line in steps]
                is_searched = any(" fragments covered" in line for line in steps)
        if self.nearest is not None:
            when = "after" if options.prefilter else "before"
            steps = []
            if self.vectors is not None:
                only = options.fast_search
                steps = self.vectors.explain(self.nearest, indexed_only=only)
            method = "by index" if len(steps) > 1 else "exact"
            by = f"by {self.nearest.metric} " if len(steps) < 2 or self.nearest.asked_metric else ""
            lines.append(
                f"  nearest: {self.nearest.k} {by}of {self.nearest.column!r}, {method}, "
                f"{when} the filter"
            )
            lines += [f"  {line}" for line in steps]
            is_searched |= len(steps) > 1
            first.append(self.nearest.column)
        if self.text is not None:
            when = "after" if options.prefilter else "before"
            order = f", {when} the filter" if self.filter is not None else ""
            lines += [f"  {line}{order}" for line in self.text.explain()]
        if self.orderings:
            keys = [ordering.column_name for ordering in self.orderings]
            first += keys
            lines.append(f"  order by: {', '.join(keys)}")
        later = [name for name in self.source.schema.names if name not in first]
        if first:
            subject = "rows that no index decides" if is_searched else "every row"
            lines.append(f"  decoded first, for {subject}: {', '.join(dict.fromkeys(first))}")
            lines.append(f"  decoded for the rows that are left: {', '.join(later) or 'nothing'}")
        else:
            lines.append(f"  decoded: {', '.join(later) or 'nothing'}")
        if options.limit is not None or options.offset:
            lines.append(f"  offset {options.offset or 0}, limit {options.limit}")
        lines.append(f"  result: {', '.join(self.schema.names) or 'no columns'}")
        return "\n".join(lines)

    def found_by_indices(self) -> list[str]:
        """Search the indices, and say in words what they answered; nothing without an answer."""
        answer = self._answer if self._filters_first else None
        lines = [] if self.text is None else self.text.costs()
        if self.nearest is not None and self.vectors is not None:
            only = self.options.fast_search
            lines = self.vectors.describe_search(self._choice, self.nearest, indexed_only=only)
            if lines:
                return lines
        if answer is None:
            return lines
        checked = "each passes" if answer.is_exact else "the filter is computed for each"
        return [*lines, f"index candidates: {answer.rows.size:,}, {checked}"]

    # --- plain scans ------------------------------------------------------------------------------

    def _tasks(self) -> Iterator[FragmentTask]:
        options = self.options
        return plan_tasks(self.snapshot, options.limit, options.offset, options.fragments)

    # --- scans that choose, order or compute ------------------------------------------------------

    @property
    def _choice(self) -> RowChoice:
        """The rows that are looked at first."""
        from lance_nb.table.filtered_scan import RowChoice

        condition = self.filter if self._filters_first else None
        answer = self._answer if condition is not None else None
        deleted = self.options.include_deleted_rows
        return RowChoice(condition, self.options.fragments, deleted, answer)

    @property
    def _filters_first(self) -> bool:
        """Whether the filter is computed before a search, and not for what the search finds."""
        return self.options.prefilter or (self.nearest is None and self.text is None)

    @property
    def _answer(self) -> IndexAnswer | None:
        """What indices say of the filter."""
        if self.search is None or self.filter is None or self.options.include_deleted_rows:
            return None
        return self.search.answer(self.filter)

    def _tables(self, shape: Shape, slice_rows: int | None) -> Iterator[pa.Table]:
        """Yield the result in parts of at most about ``slice_rows`` rows, None for no bound."""
        from lance_nb.table.filtered_scan import selected_table
        from lance_nb.table.row_selection import select_rows

        limit, offset = self.options.limit, self.options.offset or 0
        if self.nearest is not None:
            yield self._nearest_table(shape, self.nearest)
        elif self.text is not None:
            yield self._text_table(shape, self.text)
        elif self.orderings:
            from lance_nb.table.ordering import fetch_rows, slices, sorted_rows

            rows = sorted_rows(
                self.snapshot, self._choice, self.orderings, limit=limit, offset=offset
            )
            for part in slices(rows, slice_rows or max(rows.num_rows, 1)):
                yield shape.table(fetch_rows(self.snapshot, self.source, part))
        else:
            for selected in select_rows(
                self.snapshot, self._choice, self.source, limit=limit, offset=offset
            ):
                yield shape.table(selected_table(self.snapshot, self.source, selected))

    def _neighbours(self, query: NearestQuery) -> Neighbours:
        """Return the nearest rows that pass the filter."""
        from lance_nb.table.nearest import DISTANCE, find_nearest

        nearest = None
        if self.vectors is not None:
            only = self.options.fast_search
            nearest = self.vectors.find(self._choice, query, indexed_only=only)
        if nearest is None:
            choice = self._choice
            if self.options.fast_search and self.vectors is None and query.use_index:
                choice = replace(choice, fragments=())  # there is no index, as in pylance
            nearest = find_nearest(self.snapshot, choice, query)
        if self.filter is None or self.options.prefilter:
            return nearest
        return nearest.take(self._passing(self.filter, nearest.rows, DISTANCE, nearest.distances))

    def _passing(self, condition: Filter, rows: Addresses, name: str, scores: Scores) -> Ints:
        """Return which of the rows that a search has found pass the filter."""
        from lance_nb.table.filtered_scan import quoted
        from lance_nb.table.ordering import fetch_rows

        stored = [path for path in condition.paths if path[0] != name]
        projection = project(self.snapshot.manifest.schema, [quoted(path) for path in stored])
        values = fetch_rows(self.snapshot, projection, rows)
        columns = dict(zip(stored, values.columns, strict=True))
        columns[name,] = pa.chunked_array([from_floats(scores)])
        return np.flatnonzero(condition.mask(columns, rows.num_rows)).astype(np.int64)

    def _matches(self, text: TextMatches) -> tuple[Addresses, Scores]:
        """Return the rows that match the full-text query and pass the filter, best first."""
        from lance_nb.table.indexed_scan import rows_at
        from lance_nb.table.text_query import SCORE

        most = None
        if self.options.limit is not None and not self.orderings:
            most = self.options.limit + (self.options.offset or 0)
        addresses, scores = text.find(self._choice, most)
        rows = rows_at(self.snapshot, addresses)
        if self.filter is not None and not self.options.prefilter:
            passing = self._passing(self.filter, rows, SCORE, scores)
            rows, scores = rows.take(passing), scores[passing]
        return rows, scores

    def _text_table(self, shape: Shape, text: TextMatches) -> pa.Table:
        from lance_nb.table.ordering import fetch_rows, key_projection, sort_keys, sort_places
        from lance_nb.table.text_query import SCORE

        rows, scores = self._matches(text)
        places = np.arange(rows.num_rows, dtype=np.int64)
        if self.orderings:
            keys = key_projection(self.snapshot.manifest.schema, self.orderings)
            table = fetch_rows(self.snapshot, keys, rows)
            places = sort_places(sort_keys(table, self.orderings))
        start = self.options.offset or 0
        stop = None if self.options.limit is None else start + self.options.limit
        places = places[start:stop]
        extras = {SCORE: from_floats(scores[places])}
        return shape.table(fetch_rows(self.snapshot, self.source, rows.take(places)), extras)

    def _nearest_table(self, shape: Shape, query: NearestQuery) -> pa.Table:
        from lance_nb.table.nearest import DISTANCE, QUERY_INDEX
        from lance_nb.table.ordering import fetch_rows, key_projection, sort_keys, sort_places

        nearest = self._neighbours(query)
        if self.orderings:
            keys = key_projection(self.snapshot.manifest.schema, self.orderings)
            table = fetch_rows(self.snapshot, keys, nearest.rows)
            nearest = nearest.take(sort_places(sort_keys(table, self.orderings)))
        start = self.options.offset or 0
        stop = None if self.options.limit is None else start + self.options.limit
        nearest = nearest.take(np.arange(nearest.rows.num_rows, dtype=np.int64)[start:stop])
        numbers = from_integers(nearest.query_index.astype(np.int32, copy=False))
        extras = {DISTANCE: from_floats(nearest.distances), QUERY_INDEX: numbers}
        return shape.table(fetch_rows(self.snapshot, self.source, nearest.rows), extras)


def plan_scan(
    snapshot: Snapshot,
    options: ScanOptions,
    search: IndexSearch | None = None,
    vectors: NearestSearch | None = None,
    text: TextMatches | None = None,
) -> ScanPlan:
    """Check a scan against a version, so that errors are raised before anything is read.

    ``search`` are the indices that its filter may use, ``vectors`` those for ``nearest``, and
    ``text`` is its full-text query.

    Raises InvalidInputError, ColumnNotFoundError, PredicateError, NotSupportedError.
    """
    plan_tasks(snapshot, options.limit, options.offset)  # checks limit and offset
    options.check_batch_size()
    if options.is_plain:
        return ScanPlan(snapshot, options, _plain_source(snapshot, options))
    if options.include_deleted_rows and not options.with_row_id:
        raise InvalidInputError("include_deleted_rows needs with_row_id, which tells them apart")
    if options.include_deleted_rows and options.nearest is not None:
        raise InvalidInputError("include_deleted_rows cannot be combined with nearest")
    schema = snapshot.manifest.schema
    query = None
    scores = []
    if options.nearest is not None:
        from lance_nb.table.nearest import DISTANCE, nearest_query

        query = nearest_query(schema, options.nearest, options.limit)
        scores = [pa.field(DISTANCE, pa.float32())]
    if text is not None:
        from lance_nb.table.text_query import SCORE

        if query is not None or options.include_deleted_rows:
            other = "nearest" if query is not None else "include_deleted_rows"
            raise InvalidInputError(f"full_text_query cannot be combined with {other}")
        scores = [pa.field(SCORE, pa.float32())]
    condition = None
    if options.filter is not None:
        from lance_nb.table.predicate import compile_filter

        after = scores if not options.prefilter else []
        arrow = project(schema, None).schema
        condition = compile_filter(options.filter, pa.schema([*arrow, *after]))
    orderings: tuple[ColumnOrdering, ...] = ()
    if options.order_by is not None:
        from lance_nb.table.ordering import key_projection, orderings_of

        orderings = orderings_of(options.order_by)
        if orderings:
            key_projection(schema, orderings)  # checks the columns
    shape = _shape(snapshot, options, query, scores)
    chooses = condition or orderings or query or text or options.include_deleted_rows
    if not chooses and shape.computed is None:
        return ScanPlan(snapshot, options, shape.source)  # plain: the order names no column
    if query is not None and not query.use_index:
        vectors = None
    return ScanPlan(
        snapshot=snapshot,
        options=options,
        source=shape.source,
        shape=shape,
        filter=condition,
        orderings=orderings,
        nearest=query,
        search=search,
        vectors=vectors,
        text=text,
    )


def _plain_source(snapshot: Snapshot, options: ScanOptions) -> Projection:
    """Return the columns of a plain scan; the same columns are projected once per version."""
    columns = options.columns
    if columns is not None:
        columns = [columns] if isinstance(columns, str) else list(columns)

    def new_projection() -> Projection:
        projection = project(snapshot.manifest.schema, columns, options.row_columns)
        return with_dictionaries(projection) if options.keep_dictionaries else projection

    key = (*options.row_columns, options.keep_dictionaries)
    return remembered(snapshot.projections, columns, key, new_projection)


def _shape(
    snapshot: Snapshot,
    options: ScanOptions,
    query: NearestQuery | None,
    scores: list[pa.Field],
) -> Shape:
    """Return what the result of a scan that is not plain looks like."""
    from lance_nb.table.computed_columns import shape_of

    schema = snapshot.manifest.schema
    shape = shape_of(
        schema, options.columns, options.row_columns, scores, add_extras=options.add_scores
    )
    if options.keep_dictionaries:
        shape = replace(shape, source=with_dictionaries(shape.source))
    if query is None or not query.is_batch:
        return shape
    from lance_nb.table.nearest import QUERY_INDEX

    if QUERY_INDEX in schema.names:
        raise InvalidInputError(f"several queries add a column {QUERY_INDEX!r}, which exists")
    index = pa.field(QUERY_INDEX, pa.int32(), nullable=False)
    return replace(shape, extras=(index, *shape.extras), names=(QUERY_INDEX, *shape.names))


def _cut(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    if not table.num_columns:
        return empty_batches(table.num_rows, size)
    return cut(table, size)


def strict_batches(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Join and cut batches so that all but the last have exactly ``size`` rows."""
    pending: list[pa.RecordBatch] = []
    num_rows = 0
    for batch in batches:
        pending.append(batch)
        num_rows += batch.num_rows
        while num_rows >= size:
            joined = pending[0] if len(pending) == 1 else _joined(pending)
            yield joined.slice(0, size)
            num_rows -= size
            pending = [joined.slice(size)]
    if num_rows:
        yield _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if not batches[0].num_columns:
        return pa.concat_batches(batches)
    return one_batch(pa.Table.from_batches(batches))
