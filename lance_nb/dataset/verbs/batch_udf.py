"""Functions that make new columns, and a checkpoint so that what they made is not made again.

    @lance_nb.batch_udf(checkpoint_file="embed.sqlite")
    def embed(batch):
        return pa.record_batch({"vector": model(batch["text"])})

    ds.add_columns(embed, read_columns=["text"], batch_size=1024)

When the process dies, the same call goes on behind the last batch that was finished. After success
the file is removed.

Layout: an SQLite database. ``batches(fragment_id, batch_index, result)`` holds finished batches as
Arrow IPC streams (pylance pickles them; a pickle can run code), ``fragments(fragment_id, data)``
the JSON of fragments that are written and not committed. ``inputs(fragment_id, digest)``, ours,
says what they were made of: where that is another fragment, batch size or choice of columns by now,
they are made anew. ``output(columns)``, ours, holds the columns that the first batch had.

Limits: one process at a time; a changed function is not noticed (remove the file).
Source: ``lance.batch_udf``, ``lance.udf.BatchUDFCheckpoint`` of pylance 14.0.2.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from lance_nb.errors import InvalidInputError, SchemaMismatchError

_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches (fragment_id INT, batch_index INT, result BLOB)",
    "CREATE TABLE IF NOT EXISTS fragments (fragment_id INT, data BLOB)",
    "CREATE TABLE IF NOT EXISTS inputs (fragment_id INT PRIMARY KEY, digest TEXT)",
    "CREATE TABLE IF NOT EXISTS output (columns BLOB)",
)


class BatchUDFCheckpoint:
    """Finished batches and fragments on disk."""

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
        """Forget what is known of a fragment, unless it was made of the same input."""
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
        found = self._value("SELECT columns FROM output")
        try:
            return None if found is None else pa.ipc.read_schema(pa.py_buffer(found))
        except pa.ArrowException:
            return None

    def insert_schema(self, schema: pa.Schema) -> None:
        """Keep the columns that are made."""
        with self._open() as connection:
            connection.execute("INSERT INTO output VALUES (?)", (schema.serialize().to_pybytes(),))

    def get_batch(self, info: BatchInfo) -> pa.RecordBatch | None:
        """Return a finished batch."""
        found = self._value(
            "SELECT result FROM batches WHERE fragment_id = ? AND batch_index = ?", *info
        )
        if found is None:
            return None
        try:
            return pa.ipc.open_stream(found).read_next_batch()
        except pa.ArrowException:
            return None  # not ours, or not whole: it is made again

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        """Keep a finished batch, durably."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with self._open() as connection:
            connection.execute(
                "INSERT INTO batches VALUES (?, ?, ?)", (*info, sink.getvalue().to_pybytes())
            )

    def get_fragment(self, fragment_id: int) -> str | None:
        """Return the JSON of a fragment that is written."""
        found = self._value("SELECT data FROM fragments WHERE fragment_id = ?", fragment_id)
        return None if found is None else str(found)

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Keep the JSON of a fragment that is written, in the place of its batches."""
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
    """A function from record batches to record batches, for ``add_columns``."""

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if not callable(func):
            raise InvalidInputError(f"a function is expected, not {type(func).__name__}")
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

    ``output_schema``: what it returns; without, the first batch tells. ``checkpoint_file``: where
    results are kept until they are committed.
    """
    return lambda func: BatchUDF(func, output_schema, checkpoint_file)


def as_batch(made: Any, num_rows: int, wanted: pa.Schema | None) -> pa.RecordBatch:
    """Return what a function made as a record batch. Raises SchemaMismatchError."""
    if isinstance(made, pa.Table):
        made = made.combine_chunks()
        made = (
            made.to_batches()[0] if made.num_rows else pa.RecordBatch.from_pylist([], made.schema)
        )
    elif type(made).__name__ == "DataFrame" and hasattr(made, "to_numpy"):
        arrow = made.to_arrow() if hasattr(made, "to_arrow") else None  # polars
        table = pa.Table.from_pandas(made, preserve_index=False) if arrow is None else arrow
        return as_batch(table.replace_schema_metadata(None), num_rows, wanted)
    if not isinstance(made, pa.RecordBatch):
        raise SchemaMismatchError(
            f"the function is to return record batches, not {type(made).__name__} (a table or a "
            "DataFrame is taken too)"
        )
    if made.num_rows != num_rows:
        raise SchemaMismatchError(
            f"the function made {made.num_rows} rows out of {num_rows}: one for each is expected"
        )
    if wanted is not None and not made.schema.equals(wanted):
        raise SchemaMismatchError(
            f"the function is to make the columns {_said(wanted)}; it made {_said(made.schema)}"
        )
    return made


def _said(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name}: {one.type}" for one in schema) or "none"
