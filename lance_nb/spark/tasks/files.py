"""Write rows from files or from another dataset: each task reads its part itself.

The data does not pass through the JVM, which makes this several times cheaper than a DataFrame.

A part is a file and a range of its row groups (Parquet) or record batches (Arrow), or a dataset and
the ids of some of its fragments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.errors import InvalidInputError
from lance_nb.spark.plan import TASK_BYTES, PinnedVersion, Plan, fragment_groups, select_fragments
from lance_nb.spark.row_writer import Destination, RowWriter, WriteSettings
from lance_nb.transactions.staged import Addition

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_ARROW = (".arrow", ".feather", ".ipc")
# Large batches fill a page without being concatenated; above this size the allocator returns the
# memory of each batch to the system, which costs more.
_BATCH_BYTES = 32 * 1024**2
_WIDE_BATCH_BYTES = 64 * 1024**2
_MANY_ROWS = 524_288
_SOME_ROWS = 65_536
_FEW_ROWS = 1024
_READ_BYTES = 64 * 1024  # of one column at a time, instead of a whole row group
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """Row groups ``start`` to ``stop`` of a Parquet file."""

    path: str
    start: int
    stop: int
    size_bytes: int

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self._file().schema_arrow

    def batches(self) -> pa.RecordBatchReader:
        """Stream the rows."""
        file = self._file()
        return pa.RecordBatchReader.from_batches(file.schema_arrow, self._decoded(file))

    def written(self, rows: RowWriter) -> Addition | None:
        """Write the rows."""
        return rows.write(self.batches())

    def _decoded(self, file: ParquetFile) -> Iterator[pa.RecordBatch]:
        groups = list(range(self.start, self.stop))
        try:
            yield from file.iter_batches(batch_rows(file, groups), row_groups=groups)
        except (pa.ArrowException, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # an I/O error, possibly transient: Spark retries the task
            raise InvalidInputError(f"cannot decode Parquet file {self.path}: {error}") from error

    def _file(self) -> ParquetFile:
        from pyarrow import parquet

        return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=_READ_BYTES)


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Record batches ``start`` to ``stop`` of an Arrow file."""

    path: str
    start: int
    stop: int
    size_bytes: int

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return pa.ipc.open_file(pa.memory_map(self.path)).schema

    def batches(self) -> pa.RecordBatchReader:
        """Stream the rows."""
        file = pa.ipc.open_file(pa.memory_map(self.path))
        found = (file.get_batch(at) for at in range(self.start, self.stop))
        return pa.RecordBatchReader.from_batches(file.schema, found)

    def written(self, rows: RowWriter) -> Addition | None:
        """Write the rows."""
        return rows.write(self.batches())


@dataclass(frozen=True, slots=True)
class DatasetRows:
    """Some fragments of another dataset, at a pinned version."""

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    size_bytes: int

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.pinned.dataset().schema

    def written(self, rows: RowWriter) -> Addition | None:
        """Write the rows."""
        _, snapshot = self.pinned.open()
        return rows.copy(snapshot, select_fragments(snapshot, self.fragment_ids))


Rows = ParquetRows | ArrowRows | DatasetRows


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Write some rows as new fragments."""

    rows: RowWriter
    part: Rows

    @property
    def size_bytes(self) -> int:
        """Bytes that are read."""
        return self.part.size_bytes

    def run(self) -> Addition | None:
        """Write the files."""
        return self.part.written(self.rows)


def batch_rows(file: ParquetFile, groups: list[int]) -> int:
    """Return the number of rows per batch for some row groups.

    The metadata tells the size of values, except for dictionary-encoded strings, whose decoded size
    is estimated from the first rows.
    """
    groups = [at for at in groups if file.metadata.row_group(at).num_rows]
    if not groups:
        return _SOME_ROWS
    about = [file.metadata.row_group(at) for at in groups]
    num_rows = sum(one.num_rows for one in about)
    known = recorded = 0
    repeated = []
    for number in range(file.metadata.num_columns):
        chunks = [one.column(number) for one in about]
        size = sum(one.total_uncompressed_size for one in chunks)
        width = _WIDTHS.get(chunks[0].physical_type, 0)
        if not width and any("DICTIONARY" in kind for one in chunks for kind in one.encodings):
            repeated.append(chunks[0].path_in_schema)
            recorded += size
        else:
            known += max(size, width * sum(one.num_values for one in chunks))
    wide = known / num_rows + max(recorded / num_rows, _seen_width(file, groups[0], repeated))
    if wide * _MANY_ROWS <= _BATCH_BYTES:
        return _MANY_ROWS
    return max(min(_SOME_ROWS, int(_WIDE_BATCH_BYTES / wide)), 1)


def _seen_width(file: ParquetFile, group: int, columns: list[str]) -> float:
    """Return the bytes per row of some columns, from the first rows of a row group."""
    if not columns:
        return 0.0
    few = next(file.iter_batches(_FEW_ROWS, row_groups=[group], columns=columns))
    return float(few.nbytes / few.num_rows)


Source = str | Sequence[str] | LanceDataset


def plan_append(dataset: LanceDataset, source: Source, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan an append from files (paths or patterns) or another dataset.

    Raises InvalidInputError if no file matches or a file has another format.
    """
    return plan_write(dataset, source, WriteSettings(), task_bytes=task_bytes)


def plan_write(
    target: Destination, source: Source, wanted: WriteSettings, *, task_bytes: int = TASK_BYTES
) -> Plan:
    """Plan to append, overwrite with or create from files or another dataset (``*.lance``).

    A new dataset gets the schema of the first file. Raises InvalidInputError if no file matches or
    a file has another format, DatasetAlreadyExistsError.
    """
    if isinstance(source, str) and source.rstrip("/").endswith(".lance"):
        source = open_dataset(source)
    parts = list(_parts(source, task_bytes))
    rows = RowWriter.of(target, _schema(source, parts), wanted)
    tasks = tuple(WriteRows(rows, part) for part in parts)
    return rows.plan(wanted.mode, f"from {_named(source)}", tasks)


def _schema(source: Source, parts: Sequence[Rows]) -> pa.Schema:
    if isinstance(source, LanceDataset):
        return source.schema
    if not parts:
        raise InvalidInputError(f"the files {_named(source)} have no rows")
    return parts[0].schema()


def _parts(source: Source, task_bytes: int) -> Iterator[Rows]:
    if isinstance(source, LanceDataset):
        other = PinnedVersion.of(source)
        _, snapshot = source.opened
        for ids, size in fragment_groups(snapshot, task_bytes):
            yield DatasetRows(other, ids, size)
        return
    for path in _paths(source):
        if path.endswith(_ARROW):
            yield from _arrow_parts(path, task_bytes)
        elif path.endswith(".parquet"):
            yield from _parquet_parts(path, task_bytes)
        else:
            wanted = ".parquet, .arrow, .feather or .ipc"
            raise InvalidInputError(f"cannot read {path}: the file name must end with {wanted}")


def _paths(source: str | Sequence[str]) -> list[str]:
    patterns = [source] if isinstance(source, str) else list(source)
    paths: list[str] = []
    for pattern in patterns:
        at = Path(pattern).absolute()
        found = sorted(Path(at.anchor).glob(str(at.relative_to(at.anchor))))
        if not found:
            raise InvalidInputError(f"no file matches {pattern!r}")
        paths += map(str, found)
    return paths


def _parquet_parts(path: str, task_bytes: int) -> Iterator[ParquetRows]:
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path} is not a valid Parquet file: {error}") from error
    sizes = [about.row_group(at).total_byte_size for at in range(about.num_row_groups)]
    for start, stop, size in _ranges(sizes, task_bytes):
        yield ParquetRows(path, start, stop, size)


def _arrow_parts(path: str, task_bytes: int) -> Iterator[ArrowRows]:
    try:
        count = pa.ipc.open_file(pa.memory_map(path)).num_record_batches
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path} is not a valid Arrow file: {error}") from error
    each = Path(path).stat().st_size // max(count, 1)
    for start, stop, size in _ranges([each] * count, task_bytes):
        yield ArrowRows(path, start, stop, size)


def _ranges(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int, int]]:
    """Group adjacent items of up to ``most`` bytes: start, stop, bytes."""
    start = size = 0
    for at, weight in enumerate(sizes):
        if at > start and size + weight > most:
            yield start, at, size
            start, size = at, 0
        size += weight
    if start < len(sizes):
        yield start, len(sizes), size


def _named(source: Source) -> str:
    if isinstance(source, LanceDataset):
        return source.uri
    return source if isinstance(source, str) else f"{len(source)} files"
