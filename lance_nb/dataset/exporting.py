"""Export rows of a version to a file of another format, or to a new dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_nb.dataset.table_files import write_file
from lance_nb.errors import InvalidInputError
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

Progress = Callable[[int, int], object]
BATCH_BYTES = 32_000_000
BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """What an export wrote: ``path``, ``num_rows``, and ``size_bytes`` of all files.

    Examples:
        >>> exported = ds.export("few.parquet", filter="id < 3")
        >>> exported.path.name, exported.num_rows
        ('few.parquet', 3)
    """

    path: Path
    num_rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ExportQuery:
    """Which rows are exported: those of a scan, those with some ids, or those that changed."""

    columns: Any = None
    filter: Any = None
    limit: int | None = None
    offset: int | None = None
    order_by: Any = None
    row_ids: Any = None
    since: Any = None

    def batches(self, dataset: LanceDataset) -> pa.RecordBatchReader:
        """Return the rows as a stream. Raises InvalidInputError for what does not go together."""
        of_scan = [self.filter, self.limit, self.offset, self.order_by]
        chosen = [option is not None for option in (self.row_ids, self.since)]
        if sum(chosen) > 1 or (any(chosen) and any(option is not None for option in of_scan)):
            raise InvalidInputError(
                "give row_ids, or since, or filter, limit, offset and order_by: an export takes "
                "rows in one of these ways"
            )
        if self.since is not None:
            return dataset.diff(self.since).rows(show=self.columns)
        if self.row_ids is not None:
            return _rows_with(dataset, self.row_ids, self.columns)
        return dataset.scanner(
            columns=self.columns, filter=self.filter, limit=self.limit, offset=self.offset,
            order_by=self.order_by, blob_handling="all_binary",
        ).to_reader()  # fmt: skip

    def expected(self, dataset: LanceDataset) -> int:
        """Return how many rows there will be, as far as the manifest tells: 0 where it does not."""
        if self.since is not None or self.filter is not None:
            return 0
        if self.row_ids is not None:
            return len(self.row_ids)
        num_rows = max(0, dataset.count_rows() - (self.offset or 0))
        return num_rows if self.limit is None else min(self.limit, num_rows)


def batch_rows(dataset: LanceDataset) -> int:
    """Return how many rows are read at once where they are taken one by one."""
    stats = dataset.stats()
    row_bytes = max(1, (stats.size_bytes or 0) // max(1, stats.num_rows))
    return max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes))


def _rows_with(dataset: LanceDataset, row_ids: Any, columns: Any) -> pa.RecordBatchReader:
    ids = np.asarray(row_ids, np.uint64)
    step = batch_rows(dataset)
    schema = dataset.take_rows(ids[:0], columns).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, ids.size, step):
            yield from dataset.take_rows(ids[first : first + step], columns).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def export(
    dataset: LanceDataset,
    path: str | os.PathLike[str],
    query: ExportQuery,
    *,
    overwrite: bool,
    formulas: bool,
    progress: Progress | None,
) -> ExportedRows:
    """Write rows to ``path``. Raises InvalidInputError, StorageError."""
    target = Path(path)
    rows = write_file(
        target, query.batches(dataset), formulas=formulas, overwrite=overwrite,
        progress=progress, num_rows=query.expected(dataset),
    )  # fmt: skip
    return ExportedRows(target, rows, size_of(target))


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder."""
    files = [path] if path.is_file() else [entry for entry in path.rglob("*") if entry.is_file()]
    return sum(file.stat().st_size for file in files)
