"""The plain scan: stored columns of live rows in the order of the scan, with offset and limit.

Most reads are of this kind and need nothing of what a filter, an order or a search needs (see
scan_request), neither its time nor its modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lance_nb.table.projection import Projection, project, remembered, with_dictionaries
from lance_nb.table.scan import scan_batches, scan_table
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_plan import FragmentTask, plan_scan
from lance_nb.table.snapshot import Snapshot

MANY_FRAGMENTS = 16  # from here on they may be so small that they are read in another way


@dataclass(frozen=True, slots=True)
class PlainScan:
    """A scan that has been checked against a version."""

    snapshot: Snapshot
    options: ScanOptions
    projection: Projection

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return self.projection.schema

    def table(self) -> pa.Table:
        """Read the result into one table."""
        if self._is_of_tiny_fragments:
            from lance_nb.table.tiny_fragments import scan_tiny

            return scan_tiny(self.snapshot, self.projection)
        return scan_table(self.snapshot, self.projection, self._tasks())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the result batch by batch."""
        return scan_batches(self.snapshot, self.projection, self._tasks(), self.options.batch_size)

    @property
    def _is_of_tiny_fragments(self) -> bool:
        options = self.options
        if options.limit is not None or options.offset or options.fragments is not None:
            return False
        if len(self.snapshot.manifest.fragments) < MANY_FRAGMENTS:
            return False
        from lance_nb.table.tiny_fragments import is_worth_it

        return is_worth_it(self.snapshot, self.projection)

    def _tasks(self) -> Iterator[FragmentTask]:
        options = self.options
        return plan_scan(self.snapshot, options.limit, options.offset, options.fragments)


def plan_plain(snapshot: Snapshot, options: ScanOptions) -> PlainScan:
    """Check a plain scan against a version. Raises InvalidInputError, ColumnNotFoundError."""
    plan_scan(snapshot, options.limit, options.offset)  # checks limit and offset
    options.check_batch_size()
    columns = options.columns
    if columns is not None:
        columns = [columns] if isinstance(columns, str) else list(columns)

    def made() -> Projection:
        found = project(snapshot.manifest.schema, columns, options.row_columns)
        return with_dictionaries(found) if options.keep_dictionaries else found

    key = (*options.row_columns, options.keep_dictionaries)
    projection = remembered(snapshot.projections, columns, key, made)
    return PlainScan(snapshot, options, projection)
