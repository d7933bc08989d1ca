"""Rows to fragments: data files written and durable, not yet part of any version.

Batches, small ones joined because each costs the same work per column, stream into one data file
after the other; a new one begins when a file has ``max_rows_per_file`` rows or
``max_bytes_per_file`` bytes. Memory holds a batch and, for each column, what does not fill a page
yet.

Nothing refers to the files before a commit does. When anything goes wrong before, an interrupt
included, the files of this call are removed again. From the moment a file is offered to a commit it
stays, whatever becomes of the commit: an unknown outcome may still turn into a version that needs
it.

Layout: below a dataset root files lie in ``data``, below a plain base path directly in it; a
fragment names them relative to that folder, with the id of the base.
Limits: bytes are checked after each run of rows of ``_RUN_BYTES``, so files grow a little larger. A
process that is killed removes nothing; clean-up finds such files.
Source: message ``BasePath`` of lance.table; ``lance.fragment.write_fragments`` of pylance 14.0.2
and its file names.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import concatenated
from lance_nb.encodings.page_encoder import Learned
from lance_nb.errors import ArgumentError, InvalidInputError, LanceError, NotSupportedError
from lance_nb.file.blob_values import stored_bytes
from lance_nb.file.writer import FileOptions, FileWriter, WrittenFile
from lance_nb.format import layout
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store
from lance_nb.transactions.checksum_records import write_record
from lance_nb.transactions.schema_change import writable_part
from lance_nb.value_classes import dataclass
from lance_nb.writing.progress import FragmentWriteProgress

if TYPE_CHECKING:
    from lance_nb.table.blob_copies import BlobCopies


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A folder in a store ("" is its root), and the id of its base; None is the dataset's own."""

    store: Store
    folder: str = layout.DATA
    base_id: int | None = None

    def path(self, name: str) -> str:
        """Return the path of a file in the store."""
        return f"{self.folder}/{name}" if self.folder else name

    def name(self, path: str) -> str:
        """Return how a fragment names the file at a path."""
        return path.removeprefix(f"{self.folder}/") if self.folder else path


def joined_batches(
    batches: Iterable[pa.RecordBatch], run_rows: int, run_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about ``run_rows`` rows or ``run_bytes`` bytes; none is empty.

    Never holds more than one run; a batch that is larger goes through as it is.
    """
    waiting: list[pa.RecordBatch] = []
    num_rows = size_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        size_bytes += _size_bytes(batch, 0 if waiting else run_bytes)
        waiting.append(batch)
        num_rows += batch.num_rows
        if num_rows >= run_rows or size_bytes >= run_bytes:
            yield from _one(waiting)
            waiting, num_rows, size_bytes = [], 0, 0
    yield from _one(waiting)


def _size_bytes(batch: pa.RecordBatch, enough: int) -> int:
    """Return the bytes of a batch, or more where its whole buffers are less than ``enough``.

    Slices are counted exactly by looking at each column, which is slow for many columns.
    """
    total: int = batch.get_total_buffer_size()
    return total if total < enough else batch.nbytes


def _one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    parts = zip(*(batch.columns for batch in batches), strict=True)
    try:
        columns = [concatenated(column_parts) for column_parts in parts]
    except NotSupportedError:  # the dictionaries of all are more than the keys can number
        return batches
    if not columns:
        return batches
    return [pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)]


_RUN_BYTES = 64 * 1024 * 1024
ROWS_PER_FILE = 1024 * 1024
BYTES_PER_FILE = 90 * 1024**3
_RUN_ROWS = 64 * 1024
_RUNS_PER_FILE = 16  # at least, of payloads that are copied: how exactly a file ends
_NAME_BITS_BYTES = 3


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """When a file ends, and how files are written.

    ``places``: where files go, one after the other, instead of the dataset's own folder.
    """

    max_rows_per_file: int = ROWS_PER_FILE
    max_bytes_per_file: int = BYTES_PER_FILE
    file_version: tuple[int, int] = (2, 2)
    file: FileOptions = field(default_factory=FileOptions)
    places: tuple[FilePlace, ...] = ()

    def __post_init__(self) -> None:
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidInputError(f"{name} must be positive, not {value}")


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """How far a write is: rows taken, bytes written, files finished."""

    num_rows: int
    size_bytes: int
    num_files: int


Progress = Callable[[WriteProgress], None] | FragmentWriteProgress


def write_fragments(
    source: pa.RecordBatchReader,
    schema: Schema,
    place: Store,
    options: WriteOptions = WriteOptions(),
    progress: Progress | None = None,
) -> list[Fragment]:
    """Write rows as data files below ``place``, the root of a dataset or branch.

    ``schema`` is the dataset's, with field ids; columns it lets be null may be missing. The
    fragments have id 0.
    Raises SchemaMismatchError, NotSupportedError, StorageError; nothing remains then.
    """
    report, events = _listeners(progress)
    written = writable_part(source.schema, schema)
    with FragmentWriter(written, place, options, events) as writer:
        for batch in joined_batches(source, min(_RUN_ROWS, options.max_rows_per_file), _RUN_BYTES):
            for run in _runs(batch):
                writer.write(run)
                if report is not None:
                    report(writer.progress())
        fragments = writer.finish()
        if report is not None:
            report(writer.progress())
        return fragments


def _listeners(
    progress: Progress | None,
) -> tuple[Callable[[WriteProgress], None] | None, FragmentWriteProgress | None]:
    """Return what is told of rows and bytes, and what of fragments. Raises ArgumentError."""
    if progress is None:
        return None, None
    if isinstance(progress, FragmentWriteProgress):
        return None, progress
    if callable(progress):
        return progress, None
    raise ArgumentError(
        f"progress is a function or a FragmentWriteProgress, not {type(progress).__name__}"
    )


class FragmentWriter:
    """Fragments under construction; leaving the context before ``finish`` removes their files."""

    def __init__(
        self,
        schema: Schema,
        place: Store,
        options: WriteOptions,
        events: FragmentWriteProgress | None = None,
    ) -> None:
        self._events = events
        self._schema = schema
        self._places = options.places or (FilePlace(place),)
        self._options = options
        self._open: FileWriter | None = None
        self._files: list[WrittenFile] = []
        self._learned: dict[int, Learned] = {}
        self._num_rows = 0
        self._is_finished = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._options.file.stored is None:
            self._write(batch)
            return
        limit = self._options.max_bytes_per_file
        for run in _payload_runs(batch, min(_RUN_BYTES, max(limit // _RUNS_PER_FILE, 1))):
            self._write(run)

    def _write(self, batch: pa.RecordBatch) -> None:
        first = 0
        while first < batch.num_rows:
            writer = self._writer()
            room = self._options.max_rows_per_file - writer.num_rows
            is_whole = not first and batch.num_rows <= room
            part = batch if is_whole else batch.slice(first, room)
            writer.write(part)
            self._num_rows += part.num_rows
            first += part.num_rows
            is_full = writer.num_rows >= self._options.max_rows_per_file
            if is_full or writer.size_bytes >= self._options.max_bytes_per_file:
                self._close_file()

    def finish(self) -> list[Fragment]:
        """Finish the last file and return the fragments; their files are the caller's now."""
        self._close_file()
        self._record_sums()
        self._is_finished = True
        return [_fragment(self._place(position), file) for position, file in enumerate(self._files)]

    def _record_sums(self) -> None:
        """Write the checksums of all files, one record in each place that has some."""
        for position, place in enumerate(self._places[: len(self._files)]):
            mine = self._files[position :: len(self._places)]
            write_record(place.store, (file_sum for file in mine for file_sum in file.sums))

    def progress(self) -> WriteProgress:
        """Tell how far the writing is."""
        size = sum(file.size_bytes for file in self._files)
        if self._open is not None:
            size += self._open.size_bytes
        return WriteProgress(self._num_rows, size, len(self._files))

    def _writer(self) -> FileWriter:
        if self._open is None:
            if self._events is not None:
                self._events.begin(Fragment(0, [], 0))
            place = self._place(len(self._files))
            self._open = FileWriter(
                place.store,
                place.path(unique_name()),
                self._schema,
                file_version=self._options.file_version,
                options=self._options.file,
                learned=self._learned,
            )
        return self._open

    def _place(self, number: int) -> FilePlace:
        """Return where the file of that number goes."""
        return self._places[number % len(self._places)]

    def _close_file(self) -> None:
        if self._open is not None:
            written = self._open.finish()
            self._files.append(written)
            self._open = None
            if self._events is not None:
                self._events.complete(_fragment(self._place(len(self._files) - 1), written))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._is_finished and kind is None:
            return
        paths = [
            (self._place(position).store, path)
            for position, file in enumerate(self._files)
            for path in (file.path, *file.sidecars)
        ]
        if self._open is not None:
            self._open.abort()
            store = self._place(len(self._files)).store
            paths.append((store, self._open.path))  # it may have got its name just before
        delete_unused(paths)


def delete_unused(files: Iterable[tuple[Store, str]]) -> None:
    """Delete files that no version names; one that stays is found by a clean-up."""
    for store, path in files:
        with suppress(LanceError):  # what went wrong before matters more
            store.delete(path)


def unique_name() -> str:
    """Return a file name that nobody else has: 24 binary digits spread the names, then hex."""
    number = uuid.uuid4().bytes
    bits = "".join(f"{byte:08b}" for byte in number[:_NAME_BITS_BYTES])
    return f"{bits}{number[_NAME_BITS_BYTES:].hex()}.lance"


def _fragment(place: FilePlace, written: WrittenFile) -> Fragment:
    file = DataFile(
        place.name(written.path),
        written.fields,
        written.column_indices,
        *written.file_version,
        written.size_bytes,
        place.base_id,
    )
    return Fragment(0, [file], written.num_rows)


def copying(options: WriteOptions, copies: BlobCopies) -> WriteOptions:
    """Return options for files whose blobs are copied from what is stored."""
    if not copies:
        return options
    return replace(options, file=replace(options.file, stored=copies.payloads))


def _payload_runs(batch: pa.RecordBatch, run_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch whose stored payloads are large, for the same reason."""
    sizes = [size for size in map(stored_bytes, batch.columns) if size is not None]
    if not sizes:
        yield batch
        return
    run = np.cumsum(np.sum(sizes, axis=0)) // run_bytes
    edges = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), batch.num_rows]
    for start, stop in pairwise(edges):
        yield batch.slice(start, stop - start)


def _runs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a very large batch, so that limits and progress are looked at now and then."""
    count = max(round(_size_bytes(batch, _RUN_BYTES) / _RUN_BYTES), 1)
    if count == 1:
        yield batch
        return
    step = max(-(-batch.num_rows // count), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


class UncommittedFiles:
    """Data files below ``home`` that go when the context is left by an error before ``offer``."""

    def __init__(self, home: Store) -> None:
        self._home = home
        self._is_offered = False
        self._paths: list[str] = []

    def add(self, files: Iterable[DataFile]) -> None:
        """Take care of files."""
        self._paths += [file.location() for file in files]

    def offer(self) -> None:
        """Let the files stay from now on."""
        self._is_offered = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not self._is_offered:
            delete_unused((self._home, path) for path in self._paths)
