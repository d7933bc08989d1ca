"""Columns computed by a Python function, with a checkpoint so that finished batches are kept.

    @lance_nb.batch_udf(checkpoint_file="embed.sqlite")
    def embed(batch):
        return pa.record_batch({"vector": model(batch["text"])})

    ds.add_columns(embed, read_columns=["text"], batch_size=1024)

The function is called once per batch of a fragment, with the rows that are not deleted and, of
blobs, their bytes; a deleted row repeats the value of another row, which is never read. When the
process dies, the same call continues after the last finished batch. After success the checkpoint
file is removed.

Layout of the checkpoint: an SQLite database. ``batches(fragment_id, batch_index, result)`` holds
finished batches as Arrow IPC streams (pylance pickles them; a pickle can run code),
``fragments(fragment_id, data)`` the JSON of fragments that are written and not committed.
``inputs(fragment_id, digest)``, ours, identifies their input: after a change of the fragment, the
batch size or the columns they are computed again. ``output(columns)``, ours, holds the columns of
the first batch.

Limits: one process at a time; a changed function is not noticed (remove the file); a batch has no
rows of two fragments.
Source: ``lance.batch_udf``, ``lance.udf.BatchUDFCheckpoint``, ``LanceDataset.add_columns`` of
pylance 14.0.2.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of
from lance_nb.table.blob_scan import fragment_addresses, rows_with_payloads
from lance_nb.table.data_statistics import payload_rows
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.snapshot import Snapshot

_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches (fragment_id INT, batch_index INT, result BLOB)",
    "CREATE TABLE IF NOT EXISTS fragments (fragment_id INT, data BLOB)",
    "CREATE TABLE IF NOT EXISTS inputs (fragment_id INT PRIMARY KEY, digest TEXT)",
    "CREATE TABLE IF NOT EXISTS output (columns BLOB)",
)


class BatchUDFCheckpoint:
    """Finished batches and fragments of ``add_columns``, on disk in a SQLite file.

    ``BatchUDF`` makes one of ``checkpoint_file``; ``add_columns`` calls its methods.

    Args:
        path: the file.

    Examples:
        >>> checkpoint = lance_nb.BatchUDFCheckpoint("work.sqlite")
        >>> checkpoint.insert_schema(pa.schema([("twice", pa.int64())]))
        >>> checkpoint.get_schema().names
        ['twice']
        >>> checkpoint.begin(0, "digest of the input")
        >>> checkpoint.insert_fragment(0, "{}")
        >>> checkpoint.get_fragment(0)
        '{}'
        >>> checkpoint.cleanup()
    """

    class BatchInfo(NamedTuple):
        """Which batch: the fragment, and the number of the batch in it."""

        fragment_id: int
        batch_index: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self._open() as connection:
            for statement in _TABLES:
                connection.execute(statement)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction. Raises InvalidInputError."""
        try:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise InvalidInputError(
                f"{str(self.path)!r} cannot be used as a checkpoint file: {error}; expected "
                "an SQLite database of an interrupted add_columns, or no file"
            ) from error

    def begin(self, fragment_id: int, digest: str) -> None:
        """Forget what is known of a fragment, unless it was made of the same input.

        Args:
            fragment_id: the fragment.
            digest: a text that differs where the input differs.
        """
        with self._open() as connection:
            row = connection.execute(
                "SELECT digest FROM inputs WHERE fragment_id = ?", (fragment_id,)
            ).fetchone()
            if row is not None and row[0] == digest:
                return
            for table in ("batches", "fragments", "inputs"):
                connection.execute(
                    f"DELETE FROM {table} WHERE fragment_id = ?",  # noqa: S608 - names above
                    (fragment_id,),
                )
            connection.execute("INSERT INTO inputs VALUES (?, ?)", (fragment_id, digest))

    def get_schema(self) -> pa.Schema | None:
        """Return the columns that are made."""
        value = self._value("SELECT columns FROM output")
        try:
            return None if value is None else pa.ipc.read_schema(pa.py_buffer(value))
        except pa.ArrowException:
            return None

    def insert_schema(self, schema: pa.Schema) -> None:
        """Keep the columns that are made.

        Args:
            schema: their schema.
        """
        with self._open() as connection:
            connection.execute("INSERT INTO output VALUES (?)", (schema.serialize().to_pybytes(),))

    def get_batch(self, info: BatchInfo) -> pa.RecordBatch | None:
        """Return a finished batch, None if it is not finished.

        Args:
            info: which batch.
        """
        value = self._value(
            "SELECT result FROM batches WHERE fragment_id = ? AND batch_index = ?", *info
        )
        if value is None:
            return None
        try:
            return pa.ipc.open_stream(value).read_next_batch()
        except pa.ArrowException:
            return None  # not ours, or not whole: it is made again

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        """Keep a finished batch, durably.

        Args:
            info: which batch.
            batch: what the function returned.
        """
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with self._open() as connection:
            connection.execute(
                "INSERT INTO batches VALUES (?, ?, ?)", (*info, sink.getvalue().to_pybytes())
            )

    def get_fragment(self, fragment_id: int) -> str | None:
        """Return the JSON of a fragment that is written, None if it is not.

        Args:
            fragment_id: the fragment.
        """
        value = self._value("SELECT data FROM fragments WHERE fragment_id = ?", fragment_id)
        return None if value is None else str(value)

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Keep the JSON of a fragment that is written, in the place of its batches.

        Args:
            fragment_id: the fragment.
            fragment: the JSON.
        """
        with self._open() as connection:
            connection.execute("INSERT INTO fragments VALUES (?, ?)", (fragment_id, fragment))
            connection.execute("DELETE FROM batches WHERE fragment_id = ?", (fragment_id,))

    def cleanup(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def _value(self, query: str, *values: int) -> Any:
        with self._open() as connection:
            row = connection.execute(query, values).fetchone()
        return None if row is None else row[0]


class BatchUDF:
    """A function from record batches to record batches, for ``add_columns``; see ``batch_udf``.

    Args:
        func: the function.
        output_schema, checkpoint_file: as for ``batch_udf``.

    Examples:
        >>> import pyarrow.compute as pc
        >>> def twice(batch):
        ...     return pa.record_batch({"twice": pc.multiply(batch["id"], 2)})
        >>> ds.add_columns(lance_nb.BatchUDF(twice), read_columns=["id"])
        >>> ds.take([4], ["twice"]).to_pylist()
        [{'twice': 8}]
    """

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if not callable(func):
            raise InvalidInputError(f"expected a function, not {type(func).__name__}")
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else BatchUDFCheckpoint(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self.func(batch)


def batch_udf(
    output_schema: pa.Schema | None = None,
    checkpoint_file: str | os.PathLike[str] | None = None,
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Turn a function into one that ``add_columns`` calls for every batch of rows.

    Args:
        output_schema: what it returns; without, the first batch tells.
        checkpoint_file: where results are kept until they are committed, so that an interrupted
            call goes on.

    Examples:
        >>> import pyarrow.compute as pc
        >>> @lance_nb.batch_udf()
        ... def twice(batch):
        ...     return pa.record_batch({"twice": pc.multiply(batch["id"], 2)})
        >>> ds.add_columns(twice, read_columns=["id"])
        >>> ds.take([4], ["twice"]).to_pylist()
        [{'twice': 8}]
    """
    return lambda func: BatchUDF(func, output_schema, checkpoint_file)


def as_batch(result: Any, num_rows: int, schema: pa.Schema | None) -> pa.RecordBatch:
    """Return what a function made as a record batch. Raises SchemaMismatchError."""
    if isinstance(result, pa.Table):
        result = result.combine_chunks()
        result = (
            result.to_batches()[0]
            if result.num_rows
            else pa.RecordBatch.from_pylist([], result.schema)
        )
    elif type(result).__name__ == "DataFrame" and hasattr(result, "to_numpy"):
        arrow = result.to_arrow() if hasattr(result, "to_arrow") else None  # polars
        table = pa.Table.from_pandas(result, preserve_index=False) if arrow is None else arrow
        return as_batch(table.replace_schema_metadata(None), num_rows, schema)
    if not isinstance(result, pa.RecordBatch):
        raise SchemaMismatchError(
            "the function must return a record batch, a table or a DataFrame, not "
            f"{type(result).__name__}"
        )
    if result.num_rows != num_rows:
        raise SchemaMismatchError(
            f"the function returned {count_of(result.num_rows, 'row')} for "
            f"{count_of(num_rows, 'input row')}: expected one for each"
        )
    if schema is not None and not result.schema.equals(schema):
        raise SchemaMismatchError(
            f"the function must return the columns {_said(schema)}; it returned "
            f"{_said(result.schema)}"
        )
    return result


def _said(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema) or "none"


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
        self._output_schema = function.output_schema
        self._first: tuple[BatchUDFCheckpoint.BatchInfo, pa.RecordBatch] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that are made; the first batch is computed if nothing says them."""
        cache = self._function.cache
        if self._output_schema is None and cache is not None:
            self._output_schema = cache.get_schema()
        if self._output_schema is None:
            self._first = self._first_made()
            self._output_schema = self._first[1].schema
            if cache is not None:
                cache.insert_schema(self._output_schema)
        return self._output_schema

    def _first_made(self) -> tuple[BatchUDFCheckpoint.BatchInfo, pa.RecordBatch]:
        for fragment in self._snapshot.manifest.fragments:
            self._begin(fragment)
            for info, rows, _ in self._rows(fragment):
                if rows.num_rows:
                    return info, self._computed(info, rows)
        raise InvalidInputError(
            "there are no rows to call the function with, so its columns are not known: pass "
            "them as batch_udf(output_schema=...)"
        )

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Call the function for the batches of a fragment, unless it was done before."""
        other: pa.RecordBatch | None = None
        self._begin(fragment)
        for info, rows, is_live in self._rows(fragment):
            result = self._result(info, rows) if rows.num_rows else None
            if result is not None and result.num_rows == len(is_live):
                yield result
            else:
                yield _spread(self.schema, result, is_live, other)
            other = result.slice(0, 1) if result is not None else other

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
        for index, stored in enumerate(plan_scan(self._snapshot, options).batches()):
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
        cached = None if cache is None else cache.get_batch(info)
        if cached is not None and cached.num_rows == rows.num_rows:
            return as_batch(cached, rows.num_rows, self._output_schema)
        batch = as_batch(self._function(rows), rows.num_rows, self._output_schema)
        if cache is not None:
            cache.insert_batch(info, batch)
        return batch


def _added_file(fragment: Fragment, text: str, part: Schema) -> DataFile | None:
    """Return the file with the columns that a kept fragment has more, None if it is another's."""
    try:
        stored_fragment = Fragment.from_json(text)
    except ValueError:
        return None
    if (
        not stored_fragment.files
        or replace(stored_fragment, files=stored_fragment.files[:-1]) != fragment
    ):
        return None
    is_whole = {leaf.id for leaf in part.leaves()} <= set(stored_fragment.files[-1].fields)
    return stored_fragment.files[-1] if is_whole else None


def _spread(
    schema: pa.Schema,
    batch: pa.RecordBatch | None,
    is_live: np.ndarray,
    other: pa.RecordBatch | None,
) -> pa.RecordBatch:
    """Put values of live rows at their places; deleted rows get any value there is, else null."""
    source = batch if batch is not None else other
    if source is None:
        arrays = [pa.nulls(len(is_live), field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    place = np.zeros(len(is_live), np.int64)
    if batch is not None:
        place = np.maximum(np.cumsum(is_live) - 1, 0)
    return pc.take(source, from_integers(place))
