"""A scan as it is asked for, planned once and run in the form one likes.

It brings together what rows are chosen (filter, fragments, deleted ones), in which order (of the
scan, by columns, by distance) and what they look like (columns, expressions, row columns). The
plain scan of stored columns keeps its own shorter way (see scan).

Order of work: nearest, then filter (before it with ``prefilter``), then order, offset and limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_batch
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.table.computed_columns import Shape, shape_of
from lance_nb.table.filtered_scan import (
    RowChoice,
    count_selected,
    filter_projection,
    quoted,
    select_rows,
    selected_table,
)
from lance_nb.table.nearest import (
    DISTANCE,
    QUERY_INDEX,
    NearestQuery,
    Neighbours,
    find_nearest,
    nearest_query,
)
from lance_nb.table.ordering import (
    ColumnOrdering,
    fetch_rows,
    key_projection,
    orderings_of,
    slices,
    sort_keys,
    sort_places,
    sorted_rows,
)
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import bare_table, project, with_dictionaries
from lance_nb.table.scan import DEFAULT_BATCH_ROWS, cut, empty_batches, scan_batches, scan_table
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_plan import plan_scan
from lance_nb.table.snapshot import Snapshot

_SLICE_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A scan that has been checked against a version."""

    snapshot: Snapshot
    options: ScanOptions
    shape: Shape
    filter: Filter | None
    orderings: tuple[ColumnOrdering, ...]
    nearest: NearestQuery | None

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return self.shape.schema

    @property
    def is_plain(self) -> bool:
        """Whether stored columns of all rows are wanted, in the order of the scan."""
        special = self.filter or self.orderings or self.nearest or self.options.include_deleted_rows
        return not special and self.shape.computed is None

    @property
    def choice(self) -> RowChoice:
        """The rows to look at first."""
        wanted = self.filter
        if self.nearest is not None and not self.options.prefilter:
            wanted = None
        return RowChoice(wanted, self.options.fragments, self.options.include_deleted_rows)

    def table(self) -> pa.Table:
        """Read the result into one table."""
        options = self.options
        if self.is_plain:
            tasks = plan_scan(self.snapshot, options.limit, options.offset, options.fragments)
            return scan_table(self.snapshot, self.shape.source, tasks)
        tables = list(self._tables(None))
        if not tables:
            return pa.Table.from_batches([], self.shape.schema)
        if not self.shape.names:
            # Joining tables without columns would lose their number of rows.
            return bare_table(sum(one.num_rows for one in tables))
        return pa.concat_tables(tables)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the result batch by batch."""
        options = self.options
        size = DEFAULT_BATCH_ROWS if options.batch_size is None else options.batch_size
        if self.is_plain:
            tasks = plan_scan(self.snapshot, options.limit, options.offset, options.fragments)
            found = scan_batches(self.snapshot, self.shape.source, tasks, size)
        else:
            found = (one for table in self._tables(_SLICE_ROWS) for one in _cut(table, size))
        return strict_batches(found, size) if options.strict_batch_size else found

    def count(self) -> int:
        """Count the rows of the result, decoding no more than the filter needs."""
        options = self.options
        if options.limit is not None or options.offset:
            raise InvalidInputError("rows cannot be counted under a limit or an offset")
        if self.nearest is not None:
            return self._neighbours(self.nearest).rows.num_rows
        return count_selected(self.snapshot, self.choice)

    def _tables(self, slice_rows: int | None) -> Iterator[pa.Table]:
        options, source = self.options, self.shape.source
        offset = options.offset or 0
        if self.nearest is not None:
            yield self._nearest_table(self.nearest)
        elif self.orderings:
            rows = sorted_rows(self.snapshot, self.choice, self.orderings, options.limit, offset)
            for part in slices(rows, slice_rows or max(rows.num_rows, 1)):
                yield self.shape.table(fetch_rows(self.snapshot, source, part))
        else:
            for found in select_rows(self.snapshot, self.choice, source, options.limit, offset):
                yield self.shape.table(selected_table(self.snapshot, source, found))

    def _neighbours(self, query: NearestQuery) -> Neighbours:
        """Return the rows found by the search that pass the filter."""
        found = find_nearest(self.snapshot, self.choice, query)
        condition = self.filter
        if condition is None or self.options.prefilter:
            return found
        stored = [path for path in condition.paths if path[0] != DISTANCE]
        wanted = project(self.snapshot.manifest.schema, [quoted(path) for path in stored])
        values = fetch_rows(self.snapshot, wanted, found.rows)
        columns = dict(zip(stored, values.columns, strict=True))
        columns[DISTANCE,] = pa.chunked_array([found.distances])
        return found.take(np.flatnonzero(condition.mask(columns, found.rows.num_rows)))

    def _nearest_table(self, query: NearestQuery) -> pa.Table:
        found = self._neighbours(query)
        if self.orderings:
            keys = key_projection(self.snapshot.manifest.schema, self.orderings)
            table = fetch_rows(self.snapshot, keys, found.rows)
            found = found.take(sort_places(sort_keys(table, self.orderings)))
        start = self.options.offset or 0
        stop = None if self.options.limit is None else start + self.options.limit
        found = found.take(np.arange(found.rows.num_rows, dtype=np.int64)[start:stop])
        extras = {DISTANCE: pa.array(found.distances, pa.float32()),
                  QUERY_INDEX: pa.array(found.query_index, pa.int32())}  # fmt: skip
        return self.shape.table(fetch_rows(self.snapshot, self.shape.source, found.rows), extras)

    def explain(self) -> str:
        """Tell in a few lines what will be read, and in which order of work."""
        options, schema = self.options, self.snapshot.manifest.schema
        count = len(schema_fragments(self.snapshot, options.fragments))
        lines = [f"LanceScan: version {self.snapshot.version}, {count} fragments"]
        first: list[str] = []
        if self.filter is not None:
            first = list(filter_projection(schema, self.filter).schema.names)
            lines.append(f"  filter: {self.filter.text}")
        if self.nearest is not None:
            when = "after" if options.prefilter else "before"
            lines.append(
                f"  nearest: {self.nearest.k} by {self.nearest.metric} of {self.nearest.column!r}, "
                f"exact, {when} the filter"
            )
            first.append(self.nearest.column)
        if self.orderings:
            first += [one.column_name for one in self.orderings]
            lines.append(f"  order by: {', '.join(one.column_name for one in self.orderings)}")
        later = [name for name in self.shape.source.schema.names if name not in first]
        if first:
            lines.append(f"  decoded first, for every row: {', '.join(dict.fromkeys(first))}")
            lines.append(f"  decoded for the rows that are left: {', '.join(later) or 'nothing'}")
        else:
            lines.append(f"  decoded: {', '.join(later) or 'nothing'}")
        if options.limit is not None or options.offset:
            lines.append(f"  offset {options.offset or 0}, limit {options.limit}")
        lines.append(f"  result: {', '.join(self.shape.names) or 'no columns'}")
        return "\n".join(lines)


def schema_fragments(
    snapshot: Snapshot, fragments: tuple[Fragment, ...] | None
) -> Sequence[Fragment]:
    """Return the fragments that a scan looks at."""
    return snapshot.manifest.fragments if fragments is None else fragments


def plan_request(snapshot: Snapshot, options: ScanOptions) -> ScanRequest:
    """Check a scan against a version, so that whatever is wrong is refused where it was asked for.

    Raises InvalidInputError, ColumnNotFoundError, PredicateError, NotSupportedError.
    """
    # Checks limit and offset.
    plan_scan(snapshot, options.limit, options.offset)
    options.check_batch_size()
    if options.include_deleted_rows and not options.with_row_id:
        raise InvalidInputError("include_deleted_rows needs with_row_id, which tells them apart")
    if options.include_deleted_rows and options.nearest is not None:
        raise InvalidInputError("include_deleted_rows cannot be combined with nearest")
    schema = snapshot.manifest.schema
    query = None if options.nearest is None else nearest_query(schema, options.nearest)
    scores = [] if query is None else [pa.field(DISTANCE, pa.float32())]
    condition = None
    if options.filter is not None:
        after = scores if not options.prefilter else []
        arrow = project(schema, None).schema
        condition = compile_filter(options.filter, pa.schema([*arrow, *after]))
    orderings = orderings_of(options.order_by)
    if orderings:
        key_projection(schema, orderings)
    shape = _shape(snapshot, options, query, scores)
    return ScanRequest(snapshot, options, shape, condition, orderings, query)


def _shape(
    snapshot: Snapshot,
    options: ScanOptions,
    query: NearestQuery | None,
    scores: list[pa.Field],
) -> Shape:
    schema = snapshot.manifest.schema
    shape = shape_of(
        schema, options.columns, options.row_columns, scores, add_extras=options.add_scores
    )
    if options.keep_dictionaries:
        shape = replace(shape, source=with_dictionaries(shape.source))
    if query is None or not query.is_batch:
        return shape
    if QUERY_INDEX in schema.names:
        raise InvalidInputError(f"several queries add a column {QUERY_INDEX!r}, which exists")
    index = pa.field(QUERY_INDEX, pa.int32(), nullable=False)
    return replace(shape, extras=(index, *shape.extras), names=(QUERY_INDEX, *shape.names))


def _cut(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    if not table.num_columns:
        return empty_batches(table.num_rows, size)
    return cut(table, size)


def strict_batches(found: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Join and cut batches so that all but the last have exactly ``size`` rows."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in found:
        waiting.append(batch)
        held += batch.num_rows
        while held >= size:
            joined = waiting[0] if len(waiting) == 1 else _joined(waiting)
            yield joined.slice(0, size)
            held -= size
            waiting = [joined.slice(size)]
    if held:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if not batches[0].num_columns:
        return pa.concat_batches(batches)
    return one_batch(pa.Table.from_batches(batches))
