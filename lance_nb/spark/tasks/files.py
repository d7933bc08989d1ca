"""Rows from files or another Lance dataset: a worker reads its part itself.

Data does not pass through the JVM, which makes this several times cheaper than a DataFrame.

Layout of a part: a file and the range of its row groups (Parquet) or record batches (Arrow), or a
dataset and the ids of its fragments.
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
from lance_nb.spark.new_rows import Destination, NewRows, Wanted
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan
from lance_nb.transactions.staged import Addition

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_ARROW = (".arrow", ".feather", ".ipc")
# Large batches are not copied together to fill a page; the memory of larger ones would be new each
# time, which costs more.
_BATCH_BYTES = 32 * 1024**2
_WIDE_BATCH_BYTES = 64 * 1024**2
_MANY_ROWS = 524_288
_SOME_ROWS = 65_536
_FEW_ROWS = 1024
_READ_BYTES = 64 * 1024  # of a column at a time, instead of all columns of a row group at once
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

    def written(self, rows: NewRows) -> Addition | None:
        """Write the rows."""
        return rows.write(self.batches())

    def _decoded(self, file: ParquetFile) -> Iterator[pa.RecordBatch]:
        groups = list(range(self.start, self.stop))
        try:
            yield from file.iter_batches(batch_rows(file, groups), row_groups=groups)
        except (pa.ArrowException, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the disk's or the network's: may pass, so Spark tries the task again
            raise InvalidInputError(f"{self.path} cannot be decoded: {error}") from error

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

    def written(self, rows: NewRows) -> Addition | None:
        """Write the rows."""
        return rows.write(self.batches())


@dataclass(frozen=True, slots=True)
class DatasetRows:
    """Some fragments of another dataset, at a pinned version."""

    place: Place
    fragment_ids: tuple[int, ...]
    size_bytes: int

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.place.dataset().schema

    def written(self, rows: NewRows) -> Addition | None:
        """Write the rows."""
        _, snapshot = self.place.open()
        return rows.copy(snapshot, chosen(snapshot, self.fragment_ids))


Rows = ParquetRows | ArrowRows | DatasetRows


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Write some rows as new fragments."""

    rows: NewRows
    part: Rows

    @property
    def size_bytes(self) -> int:
        """Bytes that are read."""
        return self.part.size_bytes

    def run(self) -> Addition | None:
        """Write the files."""
        return self.part.written(self.rows)


def batch_rows(file: ParquetFile, groups: list[int]) -> int:
    """Return how many rows a batch of some row groups may have.

    The file tells how large its values are, but for strings in a dictionary: what becomes of those
    is seen in a few rows.
    """
    groups = [at for at in groups if file.metadata.row_group(at).num_rows]
    if not groups:
        return _SOME_ROWS
    about = [file.metadata.row_group(at) for at in groups]
    num_rows = sum(one.num_rows for one in about)
    known = told = 0
    repeated = []
    for number in range(file.metadata.num_columns):
        chunks = [one.column(number) for one in about]
        size = sum(one.total_uncompressed_size for one in chunks)
        width = _WIDTHS.get(chunks[0].physical_type, 0)
        if not width and any("DICTIONARY" in kind for one in chunks for kind in one.encodings):
            repeated.append(chunks[0].path_in_schema)
            told += size
        else:
            known += max(size, width * sum(one.num_values for one in chunks))
    wide = known / num_rows + max(told / num_rows, _seen_width(file, groups[0], repeated))
    if wide * _MANY_ROWS <= _BATCH_BYTES:
        return _MANY_ROWS
    return max(min(_SOME_ROWS, int(_WIDE_BATCH_BYTES / wide)), 1)


def _seen_width(file: ParquetFile, group: int, columns: list[str]) -> float:
    """Return the bytes that some columns have in each of the first rows of a row group."""
    if not columns:
        return 0.0
    few = next(file.iter_batches(_FEW_ROWS, row_groups=[group], columns=columns))
    return float(few.nbytes / few.num_rows)


Source = str | Sequence[str] | LanceDataset


def plan_append(dataset: LanceDataset, source: Source, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan an append from files (paths or patterns) or another dataset.

    Raises InvalidInputError when there is no such file or its kind is not known.
    """
    return plan_rows(dataset, source, Wanted(), task_bytes=task_bytes)


def plan_rows(
    target: Destination, source: Source, wanted: Wanted, *, task_bytes: int = TASK_BYTES
) -> Plan:
    """Plan to append, overwrite with or create from files or another dataset (``*.lance``).

    A new schema is that of the first file. Raises InvalidInputError when there is no such file or
    its kind is not known, DatasetAlreadyExistsError.
    """
    if isinstance(source, str) and source.rstrip("/").endswith(".lance"):
        source = open_dataset(source)
    parts = list(_parts(source, task_bytes))
    rows = NewRows.of(target, _schema(source, parts), wanted)
    tasks = tuple(WriteRows(rows, part) for part in parts)
    return rows.plan(wanted.mode, f"from {_named(source)}", tasks)


def _schema(source: Source, parts: Sequence[Rows]) -> pa.Schema:
    if isinstance(source, LanceDataset):
        return source.schema
    if not parts:
        raise InvalidInputError(f"the files of {_named(source)} have no rows")
    return parts[0].schema()


def _parts(source: Source, task_bytes: int) -> Iterator[Rows]:
    if isinstance(source, LanceDataset):
        other = Place.of(source)
        _, snapshot = source.opened
        for ids, size in pack(snapshot, task_bytes):
            yield DatasetRows(other, ids, size)
        return
    for path in _paths(source):
        if path.endswith(_ARROW):
            yield from _arrow_parts(path, task_bytes)
        elif path.endswith(".parquet"):
            yield from _parquet_parts(path, task_bytes)
        else:
            wanted = ".parquet, .arrow, .feather or .ipc"
            raise InvalidInputError(f"{path}: only files that end with {wanted} are read")


def _paths(source: str | Sequence[str]) -> list[str]:
    patterns = [source] if isinstance(source, str) else list(source)
    paths: list[str] = []
    for pattern in patterns:
        at = Path(pattern).absolute()
        found = sorted(Path(at.anchor).glob(str(at.relative_to(at.anchor))))
        if not found:
            raise InvalidInputError(f"there is no file {pattern!r}")
        paths += map(str, found)
    return paths


def _parquet_parts(path: str, task_bytes: int) -> Iterator[ParquetRows]:
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path} is not a whole Parquet file: {error}") from error
    sizes = [about.row_group(at).total_byte_size for at in range(about.num_row_groups)]
    for start, stop, size in _ranges(sizes, task_bytes):
        yield ParquetRows(path, start, stop, size)


def _arrow_parts(path: str, task_bytes: int) -> Iterator[ArrowRows]:
    try:
        count = pa.ipc.open_file(pa.memory_map(path)).num_record_batches
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path} is not an Arrow file: {error}") from error
    each = Path(path).stat().st_size // max(count, 1)
    for start, stop, size in _ranges([each] * count, task_bytes):
        yield ArrowRows(path, start, stop, size)


def _ranges(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int, int]]:
    """Group neighbours until a group weighs ``most``: start, stop, bytes."""
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
