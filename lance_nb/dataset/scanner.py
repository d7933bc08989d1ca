"""LanceScanner: a scan that is described once and read in the form one likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_nb.format.fragment import Fragment
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, Projection, project
from lance_nb.table.scan import scan_batches, scan_table
from lance_nb.table.scan_plan import plan_scan
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What to read. ``fragments`` None means all of them."""

    columns: Sequence[str] | None = None
    limit: int | None = None
    offset: int | None = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    fragments: tuple[Fragment, ...] | None = None


class LanceScanner:
    """A planned read of one version. Created by ``LanceDataset.scanner``."""

    def __init__(self, snapshot: Snapshot, options: ScanOptions) -> None:
        self._snapshot = snapshot
        self._options = options
        rows = [ROW_ID] * options.with_row_id + [ROW_ADDRESS] * options.with_row_address
        self._projection: Projection = project(snapshot.manifest.schema, options.columns, rows)
        # Planned once here so that a bad limit or offset is refused where it was given.
        plan_scan(snapshot, options.limit, options.offset)

    @property
    def projected_schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return self._projection.schema

    def to_table(self) -> pa.Table:
        """Read everything into one table."""
        options = self._options
        tasks = plan_scan(self._snapshot, options.limit, options.offset, options.fragments)
        return scan_table(self._snapshot, self._projection, tasks)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch (8,192 rows unless ``batch_size`` says otherwise)."""
        options = self._options
        tasks = plan_scan(self._snapshot, options.limit, options.offset, options.fragments)
        return scan_batches(self._snapshot, self._projection, tasks, options.batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        """Read batch by batch behind pyarrow's reader interface."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer the result as an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)
