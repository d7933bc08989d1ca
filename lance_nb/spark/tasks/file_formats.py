"""The formats of files that tasks read: how a file is split among tasks, and how a part is read.

==================================  ============================  ==========================
name ends with                      a part is                     types
==================================  ============================  ==========================
``.parquet``                        a range of row groups         those of the file
``.arrow``, ``.feather``, ``.ipc``  a range of record batches     those of the file
``.csv``, ``.csv.gz``               a file                        the dataset's; for a new one
                                                                  guessed from the first MB of
                                                                  the first file
``.json``, ``.jsonl``, ``.ndjson``  a file, one object a line     as for CSV
(also ``.gz``)
==================================  ============================  ==========================

Limits: the sizes of Parquet's dictionary-encoded strings are estimates, so batches may be larger
than wanted. Source: the readers of pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.spark.tasks.bad_records import (
    BLOCK_BYTES,
    Parsed,
    csv_schema,
    json_schema,
    json_types,
    parsed_csv,
    parsed_json,
)
from lance_nb.spark.tasks.source_files import SourceFile
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

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
class Range:
    """A part of a file: from ``start`` to ``stop`` in units of its format, and its bytes."""

    start: int
    stop: int
    size_bytes: int


class FileFormat(Protocol):
    """How files of a format are read. Errors of pyarrow pass through.

    ``is_text``: values are converted from text, so single records may be bad.
    """

    is_text: bool

    @staticmethod
    def parts(file: SourceFile, task_bytes: int, /) -> list[Range]:
        """Split a file into parts of about so many bytes."""
        ...

    @staticmethod
    def read(
        file: SourceFile, part: Range, schema: pa.Schema | None, resources: ExitStack, /
    ) -> pa.RecordBatchReader:
        """Stream the rows of a part; ``schema`` has the types of formats without any."""
        ...

    @staticmethod
    def columns(file: SourceFile, resources: ExitStack, /) -> pa.Schema:
        """Return the columns of a file of which some records may be bad."""
        ...

    @staticmethod
    def parsed(
        file: SourceFile,
        part: Range,
        schema: pa.Schema,
        other_columns: Sequence[str],
        resources: ExitStack,
        /,
    ) -> Iterator[Parsed]:
        """Yield the records that parse, and the text of those that do not.

        ``other_columns`` are the columns of ``schema`` that the file does not have.
        """
        ...


class _TypedRows:
    """Files that have types: their records always parse."""

    is_text = False
    read: Callable[..., pa.RecordBatchReader]

    @classmethod
    def columns(cls, file: SourceFile, resources: ExitStack) -> pa.Schema:
        """Return the columns."""
        return cls.read(file, Range(0, 0, 0), None, resources).schema

    @classmethod
    def parsed(
        cls,
        file: SourceFile,
        part: Range,
        schema: pa.Schema,
        _others: Sequence[str],
        resources: ExitStack,
    ) -> Iterator[Parsed]:
        """Yield the rows."""
        return ((batch, []) for batch in cls.read(file, part, schema, resources))


class Parquet(_TypedRows):
    """Row groups of a Parquet file."""

    @staticmethod
    def parts(file: SourceFile, task_bytes: int) -> list[Range]:
        """Split a file between row groups."""
        with ExitStack() as resources:
            about = Parquet._open(file, resources).metadata
            sizes = [
                about.row_group(index).total_byte_size for index in range(about.num_row_groups)
            ]
            return _ranges(sizes, task_bytes)

    @staticmethod
    def read(
        file: SourceFile, part: Range, _wanted: pa.Schema | None, resources: ExitStack
    ) -> pa.RecordBatchReader:
        """Stream row groups."""
        opened = Parquet._open(file, resources)
        groups = list(range(part.start, part.stop))

        def decoded() -> Iterator[pa.RecordBatch]:
            yield from opened.iter_batches(batch_rows(opened, groups), row_groups=groups)

        return pa.RecordBatchReader.from_batches(opened.schema_arrow, decoded())

    @staticmethod
    def _open(file: SourceFile, resources: ExitStack) -> ParquetFile:
        from pyarrow import parquet

        if file.is_local:
            opened = parquet.ParquetFile(file.path, pre_buffer=False, buffer_size=_READ_BYTES)
        else:
            opened = parquet.ParquetFile(resources.enter_context(file.open()), pre_buffer=True)
        resources.callback(opened.close)
        return opened


class Arrow(_TypedRows):
    """Record batches of an Arrow file."""

    @staticmethod
    def parts(file: SourceFile, task_bytes: int) -> list[Range]:
        """Split a file between record batches, which are taken to be of one size."""
        with ExitStack() as resources:
            count = Arrow._open(file, resources).num_record_batches
        return _ranges([file.size_bytes // max(count, 1)] * count, task_bytes)

    @staticmethod
    def read(
        file: SourceFile, part: Range, _wanted: pa.Schema | None, resources: ExitStack
    ) -> pa.RecordBatchReader:
        """Stream record batches."""
        opened = Arrow._open(file, resources)
        batches = (opened.get_batch(index) for index in range(part.start, part.stop))
        return pa.RecordBatchReader.from_batches(opened.schema, batches)

    @staticmethod
    def _open(file: SourceFile, resources: ExitStack) -> Any:
        if file.is_local:
            return pa.ipc.open_file(pa.memory_map(file.path))
        return pa.ipc.open_file(resources.enter_context(file.open()))


class _Lines:
    """Files of text: they have no types, and are not split."""

    is_text = True

    @staticmethod
    def parts(file: SourceFile, _task_bytes: int) -> list[Range]:
        """Return the file as one part."""
        return [Range(0, 1, file.size_bytes)]


class Csv(_Lines):
    """Lines of a CSV file with a header."""

    @staticmethod
    def read(
        file: SourceFile, _part: Range, schema: pa.Schema | None, resources: ExitStack
    ) -> pa.RecordBatchReader:
        """Stream the lines."""
        from pyarrow import csv

        return csv.open_csv(
            resources.enter_context(file.open()),
            csv.ReadOptions(block_size=BLOCK_BYTES),
            convert_options=csv.ConvertOptions(column_types=_plain_types(schema)),
        )

    @staticmethod
    def columns(file: SourceFile, resources: ExitStack) -> pa.Schema:
        """Return the columns, in types guessed from the lines that have all fields."""
        return csv_schema(resources.enter_context(file.open()))

    @staticmethod
    def parsed(
        file: SourceFile,
        _part: Range,
        _wanted: pa.Schema,
        _others: Sequence[str],
        resources: ExitStack,
    ) -> Iterator[Parsed]:
        """Yield the fields as bytes, and the lines with another number of fields."""
        names = csv_schema(resources.enter_context(file.open())).names
        return parsed_csv(resources.enter_context(file.open()), names)


class Json(_Lines):
    """Lines of a file with one JSON object each."""

    @staticmethod
    def read(
        file: SourceFile, _part: Range, schema: pa.Schema | None, resources: ExitStack
    ) -> pa.RecordBatchReader:
        """Stream the lines."""
        from pyarrow import json

        target_schema = None if schema is None else pa.schema(_plain_types(schema))
        return json.open_json(
            resources.enter_context(file.open()),
            json.ReadOptions(block_size=BLOCK_BYTES),
            json.ParseOptions(explicit_schema=target_schema),
        )

    @staticmethod
    def columns(file: SourceFile, resources: ExitStack) -> pa.Schema:
        """Return the columns, in types guessed from the lines that are objects."""
        return json_schema(resources.enter_context(file.open()), file.path)

    @staticmethod
    def parsed(
        file: SourceFile,
        _part: Range,
        schema: pa.Schema,
        other_columns: Sequence[str],
        resources: ExitStack,
    ) -> Iterator[Parsed]:
        """Yield the objects, and the lines that are none or have other fields."""
        target_schema = json_types(schema, other_columns)
        return parsed_json(resources.enter_context(file.open()), target_schema, file.path)


FORMATS: dict[str, type[FileFormat]] = {
    ".parquet": Parquet,
    ".arrow": Arrow,
    ".feather": Arrow,
    ".ipc": Arrow,
    ".csv": Csv,
    ".csv.gz": Csv,
    ".json": Json,
    ".jsonl": Json,
    ".ndjson": Json,
    ".json.gz": Json,
    ".jsonl.gz": Json,
    ".ndjson.gz": Json,
}
"""The format of files by the end of their names."""


def format_of(path: str) -> type[FileFormat]:
    """Return the format of a file. Raises InvalidInputError."""
    for ending, file_format in FORMATS.items():
        if path.lower().endswith(ending):
            return file_format
    raise InvalidInputError(
        f"cannot read {path}: the file name must end with one of {', '.join(FORMATS)}"
    )


def _plain_types(schema: pa.Schema | None) -> list[tuple[str, pa.DataType]]:
    """Return the types that text can be converted to: without dictionaries and extensions."""
    kinds = []
    for field in schema or ():
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not isinstance(kind, pa.BaseExtensionType) and not pa.types.is_fixed_size_list(kind):
            kinds.append((field.name, kind))
    return kinds


def batch_rows(file: ParquetFile, groups: list[int]) -> int:
    """Return the number of rows per batch for some row groups.

    The metadata tells the size of values, except for dictionary-encoded strings, whose decoded size
    is estimated from the first rows.
    """
    groups = [group for group in groups if file.metadata.row_group(group).num_rows]
    if not groups:
        return _SOME_ROWS
    about = [file.metadata.row_group(group) for group in groups]
    num_rows = sum(row_group.num_rows for row_group in about)
    known_bytes = recorded = 0
    repeated = []
    for number in range(file.metadata.num_columns):
        chunks = [row_group.column(number) for row_group in about]
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        width = _WIDTHS.get(chunks[0].physical_type, 0)
        if not width and any("DICTIONARY" in kind for chunk in chunks for kind in chunk.encodings):
            repeated.append(chunks[0].path_in_schema)
            recorded += size
        else:
            known_bytes += max(size, width * sum(chunk.num_values for chunk in chunks))
    wide = known_bytes / num_rows + max(recorded / num_rows, _seen_width(file, groups[0], repeated))
    if wide * _MANY_ROWS <= _BATCH_BYTES:
        return _MANY_ROWS
    return max(min(_SOME_ROWS, int(_WIDE_BATCH_BYTES / wide)), 1)


def _seen_width(file: ParquetFile, group: int, columns: list[str]) -> float:
    """Return the bytes per row of some columns, from the first rows of a row group."""
    if not columns:
        return 0.0
    few = next(file.iter_batches(_FEW_ROWS, row_groups=[group], columns=columns))
    return float(few.nbytes / few.num_rows)


def _ranges(sizes: Sequence[int], most: int) -> list[Range]:
    """Group adjacent items of up to ``most`` bytes."""
    ranges = []
    start = size = 0
    for position, weight in enumerate(sizes):
        if position > start and size + weight > most:
            ranges.append(Range(start, position, size))
            start, size = position, 0
        size += weight
    if start < len(sizes):
        ranges.append(Range(start, len(sizes), size))
    return ranges
