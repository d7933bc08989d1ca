"""New columns that a function makes of batches of rows, live rows only.

The function is called once per batch of a fragment, with the rows that are not deleted and, of
blobs, their bytes; where a row
is deleted, the new column repeats a value of another row, which nobody sees. With a checkpoint,
batches and fragments that are finished are not made again.

Limits: a batch has no rows of two fragments.
Source: ``LanceDataset.add_columns`` of pylance 14.0.2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_nb.dataset.verbs.batch_udf import BatchUDF, BatchUDFCheckpoint, as_batch
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.blob_scan import fragment_addresses, rows_with_payloads
from lance_nb.table.data_statistics import payload_rows
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from lance_nb.table.snapshot import Snapshot

_LIVE = ROW_ID  # null where a row is deleted


class FunctionColumns:
    """Columns that a function makes."""

    def __init__(
        self,
        snapshot: Snapshot,
        function: BatchUDF,
        columns: Sequence[str] | None,
        batch_size: int | None,
    ) -> None:
        self._snapshot = snapshot
        self._function = function
        self._columns = list(snapshot.manifest.schema.names if columns is None else columns)
        self._batch_size = batch_size
        self._wanted = function.output_schema
        self._first: tuple[BatchUDFCheckpoint.BatchInfo, pa.RecordBatch] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that are made; the first batch is computed if nothing says them."""
        cache = self._function.cache
        if self._wanted is None and cache is not None:
            self._wanted = cache.get_schema()
        if self._wanted is None:
            self._first = self._first_made()
            self._wanted = self._first[1].schema
            if cache is not None:
                cache.insert_schema(self._wanted)
        return self._wanted

    def _first_made(self) -> tuple[BatchUDFCheckpoint.BatchInfo, pa.RecordBatch]:
        for fragment in self._snapshot.manifest.fragments:
            self._begin(fragment)
            for info, rows, _ in self._rows(fragment):
                if rows.num_rows:
                    return info, self._computed(info, rows)
        raise InvalidInputError(
            "there are no rows to call the function with, so its columns are not known: name "
            "them, batch_udf(output_schema=...)"
        )

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Call the function for the batches of a fragment, unless it was done before."""
        other: pa.RecordBatch | None = None
        self._begin(fragment)
        for info, rows, is_live in self._rows(fragment):
            made = self._result(info, rows) if rows.num_rows else None
            if made is not None and made.num_rows == len(is_live):
                yield made
            else:
                yield _spread(self.schema, made, is_live, other)
            other = made.slice(0, 1) if made is not None else other

    def finish(self) -> None:
        """Do nothing: every batch was computed."""

    # --- checkpoint -------------------------------------------------------------------------------

    @property
    def is_checkpointed(self) -> bool:
        """Whether finished work is kept on disk."""
        return self._function.cache is not None

    def known_fragment(self, fragment: Fragment, part: Schema) -> Fragment | None:
        """Return the fragment with its new file, if an earlier run has written it."""
        cache = self._function.cache
        if cache is None:
            return None
        self._begin(fragment)
        text = cache.get_fragment(fragment.id)
        file = None if text is None else _added_file(fragment, text, part)
        if file is None or not self._snapshot.locations.home.exists(file.location()):
            return None
        return replace(fragment, files=(*fragment.files, file))

    def keep_fragment(self, fragment: Fragment) -> None:
        """Note that a fragment is written."""
        if self._function.cache is not None:
            text = json.dumps(fragment.to_json())
            self._function.cache.insert_fragment(fragment.id, text)

    def _begin(self, fragment: Fragment) -> None:
        if self._function.cache is not None:
            made_of = [fragment.to_json(), self._columns, self._batch_size]
            digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
            self._function.cache.begin(fragment.id, digest)

    # --- batches ----------------------------------------------------------------------------------

    def _rows(
        self, fragment: Fragment
    ) -> Iterator[tuple[BatchUDFCheckpoint.BatchInfo, pa.RecordBatch, np.ndarray]]:
        """Yield the live rows of every batch of physical rows, and which of those are live."""
        options = ScanOptions(
            [name for name in self._columns if name not in (ROW_ID, ROW_ADDRESS)],
            batch_size=payload_rows(self._snapshot, fragment, self._columns, self._batch_size),
            fragments=(fragment,),
            with_row_id=True,
            with_row_address=ROW_ADDRESS in self._columns,
            include_deleted_rows=True,
            strict_batch_size=True,
        )
        for index, stored in enumerate(plan_request(self._snapshot, options).batches()):
            is_live = stored.column(_LIVE).is_valid().to_numpy(zero_copy_only=False)
            rows = stored.select(self._columns)
            if not is_live.all():
                rows = rows.take(from_integers(np.flatnonzero(is_live)))
            addresses = fragment_addresses(fragment, rows.num_rows)
            rows = rows_with_payloads(self._snapshot, rows, addresses)
            yield BatchUDFCheckpoint.BatchInfo(fragment.id, index), rows, is_live

    def _result(self, info: BatchUDFCheckpoint.BatchInfo, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._first is not None and self._first[0] == info:
            return self._first[1]
        return self._computed(info, rows)

    def _computed(self, info: BatchUDFCheckpoint.BatchInfo, rows: pa.RecordBatch) -> pa.RecordBatch:
        cache = self._function.cache
        known = None if cache is None else cache.get_batch(info)
        if known is not None and known.num_rows == rows.num_rows:
            return as_batch(known, rows.num_rows, self._wanted)
        made = as_batch(self._function(rows), rows.num_rows, self._wanted)
        if cache is not None:
            cache.insert_batch(info, made)
        return made


def _added_file(fragment: Fragment, text: str, part: Schema) -> DataFile | None:
    """Return the file with the columns that a kept fragment has more, None if it is another's."""
    try:
        found = Fragment.from_json(text)
    except ValueError:
        return None
    if not found.files or replace(found, files=found.files[:-1]) != fragment:
        return None
    is_whole = {one.id for one in part.leaves()} <= set(found.files[-1].fields)
    return found.files[-1] if is_whole else None


def _spread(
    schema: pa.Schema,
    made: pa.RecordBatch | None,
    is_live: np.ndarray,
    other: pa.RecordBatch | None,
) -> pa.RecordBatch:
    """Put values of live rows at their places; deleted rows get any value there is, else null."""
    source = made if made is not None else other
    if source is None:
        arrays = [pa.nulls(len(is_live), field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    place = np.zeros(len(is_live), np.int64)
    if made is not None:
        place = np.maximum(np.cumsum(is_live) - 1, 0)
    return source.take(from_integers(place))
