"""The rows of an upsert's source: read once, looked at several times, in bounded memory.

A source may be a stream that cannot be read again, while an upsert needs its keys first, then its
rows in the order of the target, and all of it once more after a conflict. What does not fit into
``MEMORY_BYTES`` goes to a temporary file, which is mapped: rows are taken from there.

Limits: keys stay in memory. A table that the caller holds is not copied.
Source: ``MergeInsertBuilder.execute`` of pylance 14.0.2, which spills such sources too.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.transactions.fragment_writer import joined_batches

MEMORY_BYTES = 256 * 1024 * 1024
_RUN_ROWS = 64 * 1024
_RUN_BYTES = 16 * 1024 * 1024


class SourceRows:
    """The source's rows by number. A context: leaving it removes the temporary file."""

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        memory_bytes: int | None = MEMORY_BYTES,
        folder: str | None = None,
    ) -> None:
        """Read everything; ``memory_bytes`` None keeps the batches as they are."""
        self.schema: pa.Schema = reader.schema
        self._path: str | None = None
        self._mapped: pa.MemoryMappedFile | None = None
        self._batches: list[pa.RecordBatch] = []
        is_read = False
        try:
            self._read(joined_batches(reader, _RUN_ROWS, _RUN_BYTES), memory_bytes, folder)
            is_read = True
        finally:
            if not is_read:
                self.close()
        self._starts = np.fromiter(
            accumulate((one.num_rows for one in self._batches), initial=0), np.int64
        )

    def _read(
        self, batches: Iterator[pa.RecordBatch], memory_bytes: int | None, folder: str | None
    ) -> None:
        size = 0
        for batch in batches:
            self._batches.append(batch)
            size += batch.nbytes
            if memory_bytes is not None and size > memory_bytes:
                self._spill(batches, folder)
                return

    def _spill(self, rest: Iterable[pa.RecordBatch], folder: str | None) -> None:
        """Write what was read and what is left to a file, and map it."""
        handle, self._path = tempfile.mkstemp(suffix=".arrow", prefix="lance_nb-", dir=folder)
        with os.fdopen(handle, "wb") as file, pa.ipc.new_stream(file, self.schema) as stream:
            while self._batches:
                stream.write_batch(self._batches.pop(0))
            for batch in rest:
                stream.write_batch(batch)
        self._mapped = pa.memory_map(self._path)
        self._batches = list(pa.ipc.open_stream(self._mapped))

    @property
    def num_rows(self) -> int:
        """Rows of the source."""
        return int(self._starts[-1])

    @property
    def row_bytes(self) -> float:
        """Bytes of a row on average."""
        size = float(sum(one.nbytes for one in self._batches))
        return size / max(self.num_rows, 1)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return whole columns."""
        schema = pa.schema([self.schema.field(name) for name in names])
        parts = [one.select(list(names)).replace_schema_metadata(None) for one in self._batches]
        return pa.Table.from_batches(parts, schema)

    def take(self, rows: Ints, names: Sequence[str]) -> pa.Table:
        """Return rows by their numbers, in that order."""
        wanted = pa.schema([self.schema.field(name) for name in names])
        if not rows.size:
            return pa.Table.from_batches([], wanted)
        in_order = bool((np.diff(rows) >= 0).all())
        order = None if in_order else np.argsort(rows, kind="stable")
        ascending = rows if order is None else rows[order]
        owners = np.searchsorted(self._starts, ascending, side="right") - 1
        edges = np.flatnonzero(np.diff(owners, prepend=-1))
        parts = []
        for start, stop in zip(edges, [*edges[1:], len(owners)], strict=True):
            owner = int(owners[start])
            batch = self._batches[owner].select(list(names)).replace_schema_metadata(None)
            parts.append(batch.take(from_integers(ascending[start:stop] - self._starts[owner])))
        table = pa.Table.from_batches(parts, wanted)
        if order is None:
            return table
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return taken_rows(table, from_integers(back))

    def close(self) -> None:
        """Let go of the rows and remove the temporary file."""
        self._batches = []
        if self._mapped is not None:
            self._mapped.close()
            self._mapped = None
        if self._path is not None:
            Path(self._path).unlink()
            self._path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
