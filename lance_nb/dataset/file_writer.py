"""LanceFileWriter: write one data file without a dataset, as pylance's class of that name.

Differences: leaving the context by an error drops the file, where pylance closes it; a file closed
twice or written to after its end is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import PAGE_BYTES, FileOptions, FileWriter
from lance_nb.format.schema import Schema
from lance_nb.session.opening import check_refused
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.writing.input_data import reader_of


class LanceFileWriter:
    """A data file under construction. ``size_bytes`` is None until ``close``.

    Threads may share it: each call is atomic, so rows of one ``write_batch`` stay together.

    Examples:
        >>> writer = lance_nb.LanceFileWriter("rows.lance")
        >>> writer.write_batch(rows)
        >>> writer.add_schema_metadata("source", "survey")
        >>> writer.add_global_buffer(b"notes")
        1
        >>> writer.close(), writer.size_bytes > 0
        (2, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: StorageOptions | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        max_page_bytes: int | None = None,
    ) -> None:
        """Begin the file at ``path``; without a schema, the first batch tells it.

        ``namespace_client`` and ``table_id`` are refused.

        ``data_cache_bytes`` is shared by the columns (8 MiB each by default), a page is at most
        about ``max_page_bytes``. Raises InvalidInputError, NotSupportedError, StorageError.
        """
        check_refused({"namespace_client": namespace_client, "table_id": table_id})
        self._folder, _, self._name = os.fspath(path).rpartition("/")
        if not self._name:
            raise InvalidInputError(f"{os.fspath(path)!r} does not name a file")
        self._store = open_store(self._folder or ".", storage_options, ("/",))
        self._file_version = file_version_of(version)
        self._cache_bytes = data_cache_bytes
        self._page_bytes = max_page_bytes
        self._metadata: dict[str, bytes] = {}
        self._buffers: list[bytes] = []
        self._writer: FileWriter | None = None
        self._lock = Lock()
        self.closed = False
        self.size_bytes: int | None = None
        if schema is not None:
            self._writer = self._begin(schema)

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows: all of them, or none when it fails.

        Args:
            batch: the rows; the first ones tell the columns where no schema was given.

        Raises SchemaMismatchError, NotSupportedError; after the latter the file can only be closed,
        which drops it.
        """
        batches = list(reader_of(batch))
        with self._lock:
            self._check_open()
            if self._writer is None:
                self._writer = self._begin(batch.schema)
            self._writer.write(*batches)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add a key to the metadata of the file's schema; before ``close``.

        Args:
            key, value: text.
        """
        with self._lock:
            self._check_open()
            self._metadata[key] = value.encode()

    def add_global_buffer(self, data: bytes) -> int:
        """Add a buffer of the caller's own; return its number, from 1 on.

        Args:
            data: its bytes.
        """
        with self._lock:
            self._check_open()
            if self._writer is not None:
                return self._writer.add_global_buffer(data)
            self._buffers.append(data)
            return len(self._buffers)

    def close(self) -> int | None:
        """Finish the file, which appears now; returns its number of rows (None if closed before).

        Raises InvalidInputError when neither a schema nor a batch has given the columns, or when a
        write failed half-way; the file is dropped then.
        """
        with self._lock:
            if self.closed:
                return None
            if self._writer is None:
                raise InvalidInputError(
                    f"{self._name}: the columns are not known, because no schema was given and "
                    "no batch was written"
                )
            self._writer.add_schema_metadata(self._metadata)
            self.closed = True
            try:
                written = self._writer.finish()
            except LanceError:
                self._writer.abort()
                raise
            self.size_bytes = written.size_bytes
            return written.num_rows

    def _begin(self, schema: pa.Schema) -> FileWriter:
        page_bytes = PAGE_BYTES
        if self._cache_bytes is not None:
            page_bytes = max(self._cache_bytes // max(len(schema), 1), 1)
        if self._page_bytes is not None:
            page_bytes = min(page_bytes, self._page_bytes)
        lance_schema = Schema.from_arrow(schema)
        lance_schema.check_text_metadata()
        writer = FileWriter(
            self._store,
            self._name,
            lance_schema,
            file_version=self._file_version,
            options=FileOptions(page_bytes=page_bytes),
        )
        for buffer in self._buffers:
            writer.add_global_buffer(buffer)
        return writer

    def _check_open(self) -> None:
        if self.closed:
            raise InvalidInputError(f"{self._name} is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        with self._lock:
            if self._writer is not None and not self.closed:
                self._writer.abort()
                self.closed = True

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<lance_nb.LanceFileWriter {without_url_secrets(self._name)!r}: {state}>"
