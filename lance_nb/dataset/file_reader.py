"""LanceFileReader: read one data file without its dataset, as pylance's class of that name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_nb.errors import InternalError, InvalidInputError
from lance_nb.file.metadata import describe_page
from lance_nb.file.reader import FileReader
from lance_nb.format.transaction_summary import count_of
from lance_nb.session.opening import check_refused
from lance_nb.session.public_location import PublicLocation
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage.registry import StorageOptions, split_uri
from lance_nb.table.blob_scan import batch_with_payloads, binary_schema
from lance_nb.table.projection import Projection, project_nested
from lance_nb.table.scan import scan_batches
from lance_nb.table.scan_tasks import plan_tasks
from lance_nb.table.single_file import FRAGMENT_ID, open_single_file
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows
from lance_nb.value_classes import dataclass

DEFAULT_BATCH_ROWS = 1024


@dataclass(frozen=True, slots=True)
class LanceBufferDescriptor:
    """Where a buffer lies in the file, in bytes.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> buffer = lance_nb.LanceFileReader(path).metadata().global_buffers[0]
        >>> buffer.position >= 0, buffer.size > 0
        (True, True)
    """

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class LancePageMetadata:
    """A page: its buffers and, in words, its encoding.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> page = lance_nb.LanceFileReader(path).metadata().columns[0].pages[0]
        >>> page.num_rows
        5
    """

    buffers: tuple[LanceBufferDescriptor, ...]
    encoding: str
    num_rows: int


@dataclass(frozen=True, slots=True)
class LanceColumnMetadata:
    """A column: its pages. Buffers of the column itself are not written by any release.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> column = lance_nb.LanceFileReader(path).metadata().columns[0]
        >>> len(column.pages), column.column_buffers
        (1, ())
    """

    pages: tuple[LancePageMetadata, ...]
    column_buffers: tuple[LanceBufferDescriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class LanceFileMetadata:
    """What a data file says of itself; sizes in bytes. Created by ``LanceFileReader.metadata``.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> found = lance_nb.LanceFileReader(path).metadata()
        >>> found.num_rows, found.major_version, found.minor_version
        (5, 2, 2)
    """

    schema: pa.Schema
    num_rows: int
    major_version: int
    minor_version: int
    global_buffers: tuple[LanceBufferDescriptor, ...]
    columns: tuple[LanceColumnMetadata, ...]
    num_data_bytes: int = 0
    num_column_metadata_bytes: int = 0
    num_global_buffer_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Pages of a column and the bytes of their buffers."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LanceFileStatistics:
    """Statistics of every column. Created by ``LanceFileReader.file_statistics``.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> column = lance_nb.LanceFileReader(path).file_statistics().columns[0]
        >>> column.num_pages, column.size_bytes > 0
        (1, True)
    """

    columns: tuple[ColumnStatistics, ...]


class ReaderResults:
    """Rows that are being read, batch by batch. Created by ``LanceFileReader``.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> reader = lance_nb.LanceFileReader(path, columns=["id"])
        >>> reader.read_all().to_table().num_rows
        5
        >>> [batch.num_rows for batch in reader.read_all(batch_size=3).to_batches()]
        [3, 2]
    """

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a reader of record batches."""
        return self.reader

    def to_table(self) -> pa.Table:
        """Read the rows into a table."""
        return self.reader.read_all()


@dataclass(frozen=True, slots=True)
class _OpenFile:
    """``schema`` is that of the result: blobs are bytes where the projection has descriptions.

    ``described`` is the schema by which the file describes itself.
    """

    reader: FileReader
    snapshot: Snapshot
    projection: Projection
    schema: pa.Schema
    described: pa.Schema


class LanceFileReader:
    """An open data file (version 2.0 and later).

    Values are read as they are stored: JSON columns as JSONB (``large_binary``). Blobs are read as
    bytes, those of a batch at a time; see ``batch_size``.
    It can be pickled, without credentials, and is then opened when it is first used.

    Examples:
        >>> path = f"{uri}/data/{ds.get_fragment(0).data_files()[0].path}"
        >>> reader = lance_nb.LanceFileReader(path, columns=["id"])
        >>> reader.num_rows(), reader.read_all().to_table()["id"].to_pylist()
        (5, [0, 1, 2, 3, 4])
        >>> reader.read_range(1, 2).to_table().to_pydict()
        {'id': [1, 2]}
        >>> reader.take_rows([4, 0]).to_table().to_pydict()
        {'id': [4, 0]}
        >>> reader.metadata().major_version, len(reader.file_statistics().columns)
        (2, 3)
        >>> len(reader.read_global_buffer(0)) > 0
        True
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: StorageOptions | None = None,
        columns: Sequence[str] | None = None,
        *,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
    ) -> None:
        """Open the file at ``path``; ``columns`` chooses what is read, nested ones by dots.

        ``namespace_client`` and ``table_id`` are refused.
        Raises ObjectNotFoundError, CorruptFileError, NotSupportedError, ColumnNotFoundError.
        """
        check_refused({"namespace_client": namespace_client, "table_id": table_id})
        self._path, self._options, self._columns = path, storage_options, columns
        self._file: _OpenFile | None = _open_file(path, storage_options, columns)
        self._location: PublicLocation | None = None  # of a reader that was unpickled

    def __copy__(self) -> LanceFileReader:
        return self

    def __deepcopy__(self, memo: object) -> LanceFileReader:
        return self  # a reader has no position: nothing of it changes

    def __reduce__(self) -> tuple[object, ...]:
        location = self._location
        if location is None:
            scheme, place = split_uri(self._path)  # a relative path holds in this folder only
            path = place if scheme == "file" else os.fspath(self._path)
            location = PublicLocation.of(path, self._options)
        return _restored, (type(self), location, self._columns)

    @property
    def _opened(self) -> _OpenFile:
        if self._file is None:
            if self._location is None:
                raise InternalError("a reader has neither a file nor the location of one")
            self._file = _open_file(*self._location.resolve(), self._columns)
        return self._file

    @property
    def _reader(self) -> FileReader:
        return self._opened.reader

    @property
    def _snapshot(self) -> Snapshot:
        return self._opened.snapshot

    @property
    def _projection(self) -> Projection:
        return self._opened.projection

    def num_rows(self) -> int:
        """Return the number of rows."""
        return self._reader.num_rows

    def read_all(
        self, *, batch_size: int = DEFAULT_BATCH_ROWS, batch_readahead: int = 16
    ) -> ReaderResults:
        """Read every row.

        Args:
            batch_size: the most rows of a batch.
            batch_readahead: tunes pylance's reader and has no effect.

        Raises CorruptFileError, StorageError.
        """
        return self._results(self._batches(0, self.num_rows(), batch_size))

    def read_range(
        self,
        start: int,
        num_rows: int,
        *,
        batch_size: int = DEFAULT_BATCH_ROWS,
        batch_readahead: int = 16,
    ) -> ReaderResults:
        """Read neighbouring rows.

        Args:
            start: the first row, from 0.
            num_rows: how many.
            batch_size, batch_readahead: as for ``read_all``.

        Raises InvalidInputError outside the file.
        """
        if start < 0 or num_rows < 0 or start + num_rows > self.num_rows():
            raise InvalidInputError(
                f"rows {start} to {start + num_rows} are out of range: the file has "
                f"{count_of(self.num_rows(), 'row')}"
            )
        return self._results(self._batches(start, num_rows, batch_size))

    def take_rows(
        self,
        indices: Sequence[int] | pa.Array | np.ndarray,
        *,
        batch_size: int = DEFAULT_BATCH_ROWS,
        batch_readahead: int = 16,
    ) -> ReaderResults:
        """Read some rows, in the order of the indices.

        Args:
            indices: rows, from 0; unlike pylance, they need not be sorted.
            batch_size, batch_readahead: as for ``read_all``.

        Raises InvalidInputError outside the file.
        """
        table = take_rows(self._snapshot, self._projection, indices)
        return self._results(table.to_batches(max_chunksize=batch_size))

    def metadata(self) -> LanceFileMetadata:
        """Describe the file: schema, version, columns and pages."""
        major, minor = self._reader.file_version
        footer, buffers = self._reader.footer, self._reader.global_buffers()
        buffer_bytes = sum(size for _, size in buffers)
        return LanceFileMetadata(
            schema=self._opened.described,
            num_rows=self.num_rows(),
            major_version=major,
            minor_version=minor,
            global_buffers=tuple(LanceBufferDescriptor(*buffer) for buffer in buffers),
            columns=tuple(self._column(column) for column in range(self._reader.num_columns)),
            num_data_bytes=footer.column_metadata_start - buffer_bytes,
            num_column_metadata_bytes=footer.global_table_start - footer.column_metadata_start,
            num_global_buffer_bytes=buffer_bytes,
        )

    def file_statistics(self) -> LanceFileStatistics:
        """Count pages and bytes of every column."""
        statistics = []
        for column in self.metadata().columns:
            size = sum(buffer.size for page in column.pages for buffer in page.buffers)
            statistics.append(ColumnStatistics(len(column.pages), size))
        return LanceFileStatistics(tuple(statistics))

    def read_global_buffer(self, index: int) -> bytes:
        """Return a global buffer.

        Args:
            index: its number; 0 is the file descriptor.

        Raises InvalidInputError for one that does not exist.
        """
        count = len(self._reader.global_buffers())
        if not 0 <= index < count:
            raise InvalidInputError(
                f"global buffer {index} does not exist: the file has "
                f"{count_of(count, 'global buffer')}"
            )
        return bytes(self._reader.global_buffer(index))

    def _column(self, column: int) -> LanceColumnMetadata:
        pages = self._reader.column_metadata(column).pages
        return LanceColumnMetadata(
            tuple(
                LancePageMetadata(
                    tuple(map(LanceBufferDescriptor, page.buffer_offsets, page.buffer_sizes)),
                    describe_page(page),
                    page.num_rows,
                )
                for page in pages
            )
        )

    def _batches(self, start: int, num_rows: int, batch_size: int) -> Iterator[pa.RecordBatch]:
        tasks = plan_tasks(self._snapshot, num_rows, start)
        return scan_batches(self._snapshot, self._projection, tasks, batch_size)

    def _results(self, batches: Iterable[pa.RecordBatch]) -> ReaderResults:
        schema = self._opened.schema
        if not schema.equals(self._projection.schema, check_metadata=True):
            batches = (
                batch_with_payloads(self._snapshot, self._projection, batch, FRAGMENT_ID)
                for batch in batches
            )
        return ReaderResults(pa.RecordBatchReader.from_batches(schema, iter(batches)))

    def __repr__(self) -> str:
        path = without_url_secrets(self._reader.path)
        return f"<lance_nb.LanceFileReader {path!r}: {self.num_rows()} rows>"


def _open_file(
    path: str | os.PathLike[str],
    storage_options: StorageOptions | None,
    columns: Sequence[str] | None,
) -> _OpenFile:
    opened = open_single_file(path, storage_options)
    projection = project_nested(opened.snapshot.manifest.schema, columns, computed=())
    schema = binary_schema(projection)
    described = opened.schema.to_arrow()
    return _OpenFile(opened.reader, opened.snapshot, projection, schema=schema, described=described)


def _restored(
    kind: type[LanceFileReader], location: PublicLocation, columns: Sequence[str] | None
) -> LanceFileReader:
    """Return a reader that opens its file when it is first used."""
    restored = kind.__new__(kind)
    restored._path, restored._options, restored._columns = location.uri, None, columns  # noqa: SLF001
    restored._file, restored._location = None, location  # noqa: SLF001
    return restored
