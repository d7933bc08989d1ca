"""Write rows from files or from another dataset: each task reads its part itself.

The data does not pass through the JVM, which makes this several times cheaper than a DataFrame.

A part is a range of a file (``file_formats``), with the values of the Hive partition that the file
lies in (``source_files``), or a dataset and the ids of some of its fragments.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_nb.arrow_casts import cast_array
from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.format.fragment import Fragment
from lance_nb.session.opening import destination
from lance_nb.shown_text import without_url_secrets
from lance_nb.spark.plan import TASK_BYTES, PinnedVersion, Plan, fragment_groups, select_fragments
from lance_nb.spark.row_writer import (
    BAD_RECORDS,
    SKIPPED,
    Destination,
    RowWriter,
    SkippedFile,
    WriteSettings,
)
from lance_nb.spark.tasks.bad_records import (
    BadRecordCount,
    BadRecordCounter,
    BadRecordRule,
    Fitting,
)
from lance_nb.spark.tasks.file_formats import Json, Range, format_of
from lance_nb.spark.tasks.source_files import (
    SourceFile,
    find_files,
    partition_fields,
    partition_values,
)
from lance_nb.value_classes import dataclass
from lance_nb.writing.staged import Addition

SourcePath = str | os.PathLike[str]
Source = SourcePath | Sequence[SourcePath] | LanceDataset


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """How files are read.

    ``cast`` converts columns to the types of the dataset where no value changes. ``merge_schema``:
    a new dataset has the columns of all files, in the widest of their types; those that a file
    lacks are null. ``hive`` takes columns from the names of folders. ``options`` are those of
    fsspec for the files. ``on_error``: "raise", or "skip" to leave out files that cannot be
    decoded or do not fit. ``bad_records``: "raise", "drop", or "column" to keep records that do
    not parse or fit as text in ``bad_record_column`` (see ``bad_records.py``).
    """

    cast: bool = False
    merge_schema: bool = False
    hive: bool = True
    options: Mapping[str, Any] | None = field(default=None, repr=False)
    on_error: str = "raise"
    bad_records: str = "raise"
    bad_record_column: str = "_corrupt_record"

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise InvalidInputError(f"on_error is 'raise' or 'skip', not {self.on_error!r}")
        BadRecordRule.of(self.bad_records, self.bad_record_column)

    @property
    def bad_record_rule(self) -> BadRecordRule | None:
        """What is done with bad records; None to raise."""
        return BadRecordRule.of(self.bad_records, self.bad_record_column)

    @property
    def skips(self) -> bool:
        """Whether files that cannot be read are left out."""
        return self.on_error == "skip"


AS_THEY_ARE = SourceSettings()


@dataclass(frozen=True, slots=True)
class FileRows:
    """A part of a file; ``partition`` are columns that have the same value in all of its rows."""

    file: SourceFile
    part: Range
    cast: bool = False
    partition: tuple[tuple[pa.Field, pa.Array], ...] = ()
    rule: BadRecordRule | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes that are read."""
        return self.part.size_bytes

    def schema(self) -> pa.Schema:
        """Return the columns, in the types that the file has, or seems to have."""
        with ExitStack() as resources:
            return self._read(None, resources).schema

    def written(self, rows: RowWriter) -> Addition | CheckedRows | None:
        """Write the rows.

        Raises SchemaMismatchError if they do not fit, InvalidInputError for a damaged file; both
        with the name of the file.
        """
        schema = rows.schema.to_arrow()
        count = BadRecordCounter(self.file.path)
        with ExitStack() as resources:
            try:
                if self.rule is not None:
                    reader = self._fitting(self.rule, schema, count, resources)
                else:
                    reader = self._read(schema, resources)
                    if self.cast:
                        reader = self._cast(reader, schema)
                addition = rows.write(reader)
            except SchemaMismatchError as error:
                raise SchemaMismatchError(f"{self.file.path}: {error}") from error
        return addition if not count.count else CheckedRows(addition, count.total)

    def read(self) -> pa.Table:
        """Return the rows."""
        with ExitStack() as resources:
            return self._read(None, resources).read_all()

    def _fitting(
        self, rule: BadRecordRule, schema: pa.Schema, count: BadRecordCounter, resources: ExitStack
    ) -> pa.RecordBatchReader:
        """Stream the records, each of which fits the columns or is dealt with by the rule."""
        kind = format_of(self.file.path)
        other_columns = [*(field.name for field, _ in self.partition), rule.column]
        fitting = Fitting(schema, rule, self.cast or kind.is_text, count)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch, unparsed in kind.parsed(
                self.file, self.part, schema, other_columns, resources
            ):
                yield fitting.batch(batch, unparsed)

        return self._with_partition(_reader_of(self.file, batches()))

    def _read(self, schema: pa.Schema | None, resources: ExitStack) -> pa.RecordBatchReader:
        kind = format_of(self.file.path)
        try:
            if self.rule is not None and schema is None:
                return self._with_partition(
                    kind.columns(self.file, resources).empty_table().to_reader()
                )
            reader = kind.read(self.file, self.part, schema, resources)
        except (pa.ArrowException, OSError) as error:
            raise _undecodable(self.file, error) from error
        return self._with_partition(reader)

    def _with_partition(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Add the columns of the partition. Raises InvalidInputError if the file has one too."""
        added = [field for field, _ in self.partition]
        for column in added:
            if column.name in reader.schema.names:
                raise InvalidInputError(
                    f"{self.file.path} has column {column.name!r}, and its folder is named "
                    "after it: ignore the names of folders with hive=False"
                )
        schema = pa.schema([*reader.schema, *added], reader.schema.metadata)
        return pa.RecordBatchReader.from_batches(schema, self._batches(reader, schema))

    def _batches(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                count = batch.num_rows
                added = [_repeated(value, count) for _, value in self.partition]
                yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)
        except (pa.ArrowException, OSError) as error:
            raise _undecodable(self.file, error) from error

    def _cast(self, reader: pa.RecordBatchReader, target_schema: pa.Schema) -> pa.RecordBatchReader:
        fields = [
            field
            if target_schema.get_field_index(field.name) < 0
            else target_schema.field(field.name)
            for field in reader.schema
        ]
        schema = pa.schema(fields)

        def cast() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                columns = []
                for column, to in zip(batch.columns, schema, strict=True):
                    try:
                        columns.append(cast_array(column, to.type))
                    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                        raise SchemaMismatchError(
                            f"column {to.name!r} cannot be cast to {to.type}: {error}"
                        ) from error
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, cast())


def _reader_of(file: SourceFile, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Stream batches, whose schema is that of the first; damage names the file."""
    try:
        first = next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raise _undecodable(file, error) from error
    if first is None:
        return pa.schema([]).empty_table().to_reader()

    def streamed() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return pa.RecordBatchReader.from_batches(first.schema, streamed())


def _repeated(value: pa.Array, count: int) -> pa.Array:
    return value.take(pa.repeat(0, count))


def _undecodable(file: SourceFile, error: Exception) -> Exception:
    """Return the error that names the file; itself for I/O, which may be transient."""
    if getattr(error, "errno", None) is not None:
        return error
    return InvalidInputError(f"cannot decode {file.path}: {error}")


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """The rows of a file that has bad records, and their number."""

    addition: Addition | None
    bad: BadRecordCount

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The new fragments."""
        return () if self.addition is None else self.addition.fragments

    @property
    def num_rows(self) -> int:
        """The number of rows that were written."""
        return 0 if self.addition is None else self.addition.num_rows


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


Rows = FileRows | DatasetRows


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Write some rows as new fragments."""

    rows: RowWriter
    part: Rows
    skips: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes that are read."""
        return self.part.size_bytes

    def run(self) -> Addition | CheckedRows | SkippedFile | None:
        """Write the files."""
        try:
            return self.part.written(self.rows)
        except (InvalidInputError, SchemaMismatchError) as error:
            if not self.skips:
                raise
            return SkippedFile(_path(self.part), str(error))


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that was found to be unreadable when the work was planned."""

    path: str
    problem: str
    size_bytes: int = 0

    def run(self) -> SkippedFile:
        """Return the file."""
        return SkippedFile(self.path, self.problem)


def _path(part: Rows) -> str:
    return part.file.path if isinstance(part, FileRows) else part.pinned.uri


def without_skipped(plan: Plan, results: Sequence[Any]) -> list[Any]:
    """Leave out all parts of a file of which one was skipped; warn about the files.

    Raises InvalidInputError if no file is left.
    """
    skipped = {result.path: result for result in results if isinstance(result, SkippedFile)}
    if not skipped:
        return list(results)
    tasks: Any = plan.tasks
    kept_results = [
        result
        for task, result in zip(tasks, results, strict=True)
        if isinstance(task, WriteRows) and _path(task.part) not in skipped
    ]
    first = next(iter(skipped.values())).problem
    if not kept_results:
        raise InvalidInputError(
            f"no file is left: {len(skipped)} cannot be read; the first: {first}"
        )
    warnings.warn(
        f"files were skipped, {len(skipped)!r} in all; the first: {first!r}. "
        f"Property {SKIPPED} of the transaction lists them",
        stacklevel=2,
    )
    return [*kept_results, *skipped.values()]


def with_counts(plan: Plan, results: Sequence[Any]) -> list[Any]:
    """Warn about bad records, and about skipped files as ``without_skipped`` does."""
    read_results = without_skipped(plan, results)
    bad = [result.bad for result in read_results if isinstance(result, CheckedRows)]
    if bad:
        num_bad, num_files = sum(count.count for count in bad), len({count.path for count in bad})
        warnings.warn(
            f"bad records, {num_bad!r} in files: {num_files!r}; the first: {bad[0].first!r}. "
            f"Property {BAD_RECORDS} of the transaction counts them by file",
            stacklevel=2,
        )
    return read_results


def additions_of(_plan: Plan, results: Sequence[Any]) -> list[Any]:
    """Return the additions of checked rows, as edits for a stage."""
    additions = [
        result.addition if isinstance(result, CheckedRows) else result for result in results
    ]
    return [addition for addition in additions if addition is not None]


def plan_append(
    dataset: LanceDataset,
    source: Source,
    source_settings: SourceSettings = AS_THEY_ARE,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan an append from files (paths, patterns, folders or URLs) or another dataset.

    Raises InvalidInputError if no file matches or a file has another format.
    """
    return plan_write(dataset, source, WriteSettings(), source_settings, task_bytes=task_bytes)


def plan_write(
    target: Destination,
    source: Source,
    write_settings: WriteSettings,
    source_settings: SourceSettings = AS_THEY_ARE,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan to append, overwrite with or create from files or another dataset.

    A folder with a dataset is one. A new dataset gets the columns of the first file, or with
    ``merge_schema`` of all. Raises InvalidInputError if no file matches or a file has another
    format, DatasetAlreadyExistsError.
    """
    if isinstance(source, str | os.PathLike) and _is_dataset(os.fspath(source)):
        source = open_dataset(source, storage_options=source_settings.options)
    if isinstance(source, LanceDataset):
        other = PinnedVersion.of(source)
        pinned = [
            DatasetRows(other, ids, size)
            for ids, size in fragment_groups(source.opened[1], task_bytes)
        ]
        rows = RowWriter.of(target, source.schema, write_settings)
        tasks = tuple(WriteRows(rows, part) for part in pinned)
        return rows.plan(write_settings.mode, f"from {source.uri}", tasks)
    planned_parts = list(_parts(source, source_settings, task_bytes))
    unreadable = [part for part in planned_parts if isinstance(part, UnreadableFile)]
    parts = [part for part in planned_parts if isinstance(part, FileRows)]
    if not parts:
        reason = unreadable[0].problem if unreadable else "they have no rows"
        raise InvalidInputError(f"no rows can be read from {_named(source)}: {reason}")
    parts, fields = _with_partitions(parts, None)
    schema = _schema(parts, source_settings, fields)
    rule = source_settings.bad_record_rule
    if rule is not None:
        schema = _without_unknown(schema, parts, target, write_settings)
    rows = RowWriter.of(target, schema, write_settings)
    if rule is not None and rule.field is not None and rows.is_new:
        rows = RowWriter.of(target, schema.append(rule.field), write_settings)
    if rule is not None:
        rule.check(rows.schema.to_arrow())
    if write_settings.mode == "append":  # in the types of the dataset
        parts, _ = _with_partitions(parts, rows.schema.to_arrow())
    writes = (WriteRows(rows, part, source_settings.skips) for part in parts)
    plan = rows.plan(write_settings.mode, f"from {_named(source)}", (*writes, *unreadable))
    if rule is not None:
        return replace(plan, finalize=with_counts, as_edits=additions_of)
    return replace(plan, finalize=without_skipped) if source_settings.skips else plan


def _without_unknown(
    schema: pa.Schema, parts: Sequence[FileRows], target: Destination, write_settings: WriteSettings
) -> pa.Schema:
    """Leave out what a dataset lacks, if only some records have it: then these are bad."""
    _, current = destination(target, write_settings.storage_options)
    is_new = current is None or (
        write_settings.mode == "overwrite" and write_settings.where is None
    )
    if current is None or is_new or format_of(parts[0].file.path) is not Json:
        return schema
    column_names = current.manifest.schema.names
    return pa.schema([field for field in schema if field.name in column_names], schema.metadata)


def _is_dataset(source: str) -> bool:
    is_named = source.rstrip("/").endswith(".lance")
    return is_named or ("://" not in source and (Path(source) / "_versions").is_dir())


def _parts(
    source: SourcePath | Sequence[SourcePath], source_settings: SourceSettings, task_bytes: int
) -> Iterator[FileRows | UnreadableFile]:
    for file in find_files(source, source_settings.options, hive=source_settings.hive):
        kind = format_of(file.path)
        try:
            ranges = kind.parts(file, task_bytes)
        except pa.ArrowException as error:
            problem = f"{file.path} is not a valid {kind.__name__} file: {error}"
            if source_settings.skips:
                yield UnreadableFile(file.path, problem)
                continue
            raise InvalidInputError(problem) from error
        for range_of_file in ranges:
            yield FileRows(
                file,
                range_of_file,
                source_settings.cast or source_settings.merge_schema,
                rule=source_settings.bad_record_rule,
            )


def _with_partitions(
    parts: Sequence[FileRows], schema: pa.Schema | None
) -> tuple[list[FileRows], list[pa.Field]]:
    """Add the columns of Hive partitions, in the types of a dataset or those they look like."""
    fields = partition_fields([part.file for part in parts], schema)
    return [
        replace(
            part, partition=tuple(zip(fields, partition_values(part.file, fields), strict=True))
        )
        for part in parts
    ], fields


def _schema(
    parts: Sequence[FileRows], source_settings: SourceSettings, fields: Sequence[pa.Field]
) -> pa.Schema:
    files = {part.file.path: part for part in parts}
    if not source_settings.merge_schema:
        return next(_schemas(files.values(), source_settings))
    schemas = list(
        _schemas((replace(file, partition=()) for file in files.values()), source_settings)
    )
    try:
        merged = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise SchemaMismatchError(f"the schemas of the files cannot be merged: {error}") from error
    return pa.schema([*merged, *fields], merged.metadata)


def _schemas(files: Iterable[FileRows], source_settings: SourceSettings) -> Iterator[pa.Schema]:
    """Yield the columns of files. Raises InvalidInputError if there is no file that has some."""
    problem: InvalidInputError | None = None
    is_any = False
    for file in files:
        try:
            schema = file.schema()
        except InvalidInputError as error:
            if not source_settings.skips:
                raise
            problem = error
            continue
        is_any = True
        yield schema
    if not is_any and problem is not None:
        raise problem


def _named(source: SourcePath | Sequence[SourcePath]) -> str:
    if isinstance(source, str | os.PathLike):
        return without_url_secrets(os.fspath(source))
    return f"{len(source)} files"
