"""Write rows to new files of a dataset, and plan their commit: append, overwrite or create.

Files, datasets, DataFrames, Spark's data source writers and streams all write rows through here.

===========  =======================  ===========================================
mode         the dataset exists       the dataset does not exist
===========  =======================  ===========================================
create       refused, also if it is   version 1
             created meanwhile
append       Append                   version 1
overwrite    Overwrite: a new         version 1
             version, whose schema
             may differ
overwrite    Update: rows that pass   version 1
with where   the condition go, new
             rows come
===========  =======================  ===========================================

With ``where``, every new row has to pass the condition too, so that writing them again replaces
exactly these rows. Rows that others append meanwhile stay, also those that pass it.

Source: lance_nb.writing.fragment_writer; operations Append and Overwrite.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.dataset import LanceDataset
from lance_nb.errors import DatasetAlreadyExistsError, InvalidInputError, NotSupportedError
from lance_nb.format.checksums import ALGORITHM, CONFIG_KEY
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of
from lance_nb.session.base_paths import remember_blobs
from lance_nb.session.opening import destination
from lance_nb.spark.plan import Label, PinnedVersion, Plan, commit_write
from lance_nb.spark.types import bytes_as_blobs, check_assignable, check_names, from_spark
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import ROW_ADDRESS
from lance_nb.table.refs import Target
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.snapshot import Snapshot, added_version
from lance_nb.transactions.operation import BuildOptions
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.schema_change import new_schema, writable_part
from lance_nb.value_classes import dataclass
from lance_nb.writing import deleting
from lance_nb.writing.committing import NO_PROPERTIES
from lance_nb.writing.fragment_writer import (
    FragmentWriter,
    WriteOptions,
    copying,
    write_fragments,
)
from lance_nb.writing.input_data import reader_of
from lance_nb.writing.staged import Addition, Edit, StagedWrite, combine
from lance_nb.writing.writing import WriteRequest, check_mode, version_after

Destination = str | os.PathLike[str] | LanceDataset


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """How rows are written.

    ``files`` are arguments of ``write_dataset`` for data files: ``max_rows_per_file``,
    ``max_bytes_per_file``, ``data_storage_version``. ``checksums``: a new dataset records checksums
    of its files, in this and every later write. ``where``: only the rows that pass it are
    overwritten.
    """

    mode: str = "append"
    branch: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    stable_row_ids: bool = False
    files: Mapping[str, Any] = field(default_factory=dict)
    checksums: bool = False
    where: str | None = None


REPLACE = "replace"
"""The mode of a writer that overwrites the rows that pass a condition."""


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Write rows for a dataset: its pinned version, schema with field ids, file options, mode."""

    pinned: PinnedVersion
    schema: Schema
    options: WriteOptions
    mode: str
    stable_row_ids: bool = False
    config: Mapping[str, str] = field(default_factory=dict)  # settings of a new dataset
    where: str | None = None

    @classmethod
    def of(cls, target: Destination, schema: pa.Schema, write_settings: WriteSettings) -> RowWriter:
        """Open the target, and decide how rows of this schema are written.

        Raises DatasetAlreadyExistsError, SchemaMismatchError, InvalidInputError.
        """
        check_mode(write_settings.mode)
        if write_settings.where is not None and write_settings.mode != "overwrite":
            raise InvalidInputError(
                f"a condition chooses the rows that are overwritten ({write_settings.where!r}): "
                f"it needs mode='overwrite', not {write_settings.mode!r}"
            )
        session, current = destination(target, write_settings.storage_options)
        if current is not None and write_settings.branch is not None:
            current = session.load(Target(write_settings.branch, None))
        if current is not None and write_settings.mode == "create":
            raise DatasetAlreadyExistsError(
                f"a dataset already exists at {session.root.uri!r}; use mode='append' to add "
                "rows, or mode='overwrite' to replace its rows in a new version"
            )
        request = WriteRequest(**write_settings.files)
        is_new = current is None or (
            write_settings.mode == "overwrite" and write_settings.where is None
        )
        version = request.data_storage_version
        if current is not None and not is_new:
            version = added_version(current.manifest, version)
        mode = (
            "create" if current is None and write_settings.mode == "append" else write_settings.mode
        )
        if current is not None and write_settings.where is not None:
            mode = REPLACE
            deleting.check(current, write_settings.where)
        config = {CONFIG_KEY: ALGORITHM} if write_settings.checksums and is_new else {}
        config_before = NO_PROPERTIES if current is None else current.manifest.config
        options = request.write_options(
            version or version_after(current), config={**config_before, **config}
        )
        if current is None or is_new:
            own = new_schema(schema, options.file_version)
        else:
            own = current.manifest.schema
            check_names(schema.names, own.to_arrow())
        pinned = PinnedVersion.of_snapshot(session, current)
        return cls(
            pinned=pinned,
            schema=own,
            options=options,
            mode=mode,
            stable_row_ids=write_settings.stable_row_ids,
            config=config,
            where=write_settings.where,
        )

    @classmethod
    def of_frame(
        cls, target: Destination, schema: pa.Schema, write_settings: WriteSettings
    ) -> RowWriter:
        """Return the writer of a DataFrame, whose values must be of the kinds of the dataset.

        ``schema`` is that of ``new_schema``. Raises as ``of`` does.
        """
        rows = cls.of(target, schema, write_settings)
        stored = rows.schema.to_arrow()
        for schema_field in schema:
            check_assignable(schema_field.type, stored.field(schema_field.name))
        return rows

    @property
    def is_new(self) -> bool:
        """Whether the rows get a schema of their own: in a new dataset, or one overwritten."""
        return self.mode in {"create", "overwrite"}

    def write(self, rows: Any) -> Addition | None:
        """Write rows to new files; None without rows. In blob columns, bytes become blobs.

        External blobs that they refer to may be read by the process of the task alone.
        """
        session = self.pinned.session()
        source = bytes_as_blobs(self._passing(reader_of(rows)), self.schema)
        accepted_uris: dict[str, None] = {}
        options = replace(
            self.options, file=replace(self.options.file, accepted_uris=accepted_uris)
        )
        home = session.home(self.pinned.branch)
        fragments = write_fragments(source, self.schema, home, options)
        if accepted_uris:
            remember_blobs(session.root.uri, accepted_uris)
        return Addition(tuple(fragments)) if fragments else None

    def _passing(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the rows, each checked by the condition of an overwrite.

        Raises PredicateError, ColumnNotFoundError, InvalidInputError for a row that does not pass.
        """
        if self.where is None:
            return rows
        condition = compile_filter(self.where, rows.schema)

        def checked() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                _check_rows(batch, condition)
                yield batch

        return pa.RecordBatchReader.from_batches(rows.schema, checked())

    def copy(self, snapshot: Snapshot, fragments: Sequence[Fragment]) -> Addition | None:
        """Copy the rows of some fragments of another dataset; blob payloads are copied by file.

        External blobs stay references. Raises SchemaMismatchError, NotSupportedError for a
        reference relative to a base path that this dataset does not have.
        """
        source = snapshot.manifest.schema
        part = writable_part(source.to_arrow(), self.schema)
        copies = BlobCopies(snapshot)
        if copies:
            self._check_bases(snapshot)
        home = self.pinned.session().home(self.pinned.branch)
        condition = None if self.where is None else compile_filter(self.where, source.to_arrow())
        columns = [*(quoted([name]) for name in source.names), ROW_ADDRESS]
        scan = ScanOptions(columns, fragments=tuple(fragments))
        with FragmentWriter(part, home, copying(self.options, copies)) as writer:
            for batch in plan_scan(snapshot, scan).batches():
                if condition is not None:
                    _check_rows(batch, condition)
                rows = copies.batch(batch, batch.column(ROW_ADDRESS).to_numpy())
                writer.write(rows.drop_columns([ROW_ADDRESS]))
            copied = writer.finish()
        return Addition(tuple(copied)) if copied else None

    def _check_bases(self, source: Snapshot) -> None:
        mine = self.pinned.open()[1].manifest.base_paths if self.pinned.version else ()
        for base in source.manifest.base_paths:
            if not base.is_dataset_root and base not in mine:
                raise NotSupportedError(
                    f"the blobs of {source.manifest.path} may lie below its base path "
                    f"{base.path!r}, which this dataset does not have with id {base.id}: copy the "
                    "whole dataset with lance_nb.spark.clone, or add the base path"
                )

    def write_of_spark(self, batches: Iterable[pa.RecordBatch]) -> Addition | None:
        """Cast batches of Spark to the types of the dataset and write them."""
        rows = (batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return None
        arrow = self.schema.to_arrow()

        def cast() -> Iterator[pa.RecordBatch]:
            yield from_spark(first, arrow)
            for batch in rows:
                yield from_spark(batch, arrow)

        return self.write(pa.RecordBatchReader.from_batches(arrow, cast()))

    def plan(self, verb: str, detail: str, tasks: tuple[Any, ...] = ()) -> Plan:
        """Return a plan that commits the additions of this writer."""
        # A commit needs no more of the options; others may hold open stores, which are not kept.
        options = WriteOptions(file_version=self.options.file_version)
        finish = CommitRows(replace(self, options=options))
        return Plan(
            verb,
            detail,
            self.pinned,
            tasks=tasks,
            finish=finish,
            commits_without_results=self.mode != "append",
        )


def _check_rows(batch: pa.RecordBatch, condition: Filter) -> None:
    """Raise InvalidInputError if a row does not pass the condition of an overwrite."""
    columns = {path: _values(batch, path) for path in condition.paths}
    passing = condition.mask(columns, batch.num_rows)
    failing = np.flatnonzero(~passing)
    if len(failing):
        place = int(failing[0])
        shown = {".".join(path): column[place].as_py() for path, column in columns.items()}
        raise InvalidInputError(
            f"only rows that pass {condition.text!r} are overwritten, and new rows have to pass it "
            f"too: {count_of(len(failing), 'row')} of a batch of {batch.num_rows} do not, the "
            f"first has {shown!r}. Leave these rows out, or overwrite by another condition"
        )


def _values(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.ChunkedArray:
    values = pa.chunked_array([batch.column(path[0])])
    if len(path) > 1:
        values = pc.struct_field(values, list(path[1:]))
    return values


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file whose rows are left out, and why."""

    path: str
    problem: str


SKIPPED = "lance_nb.spark.skipped"
"""The transaction property that lists skipped files, as JSON."""
BAD_RECORDS = "lance_nb.spark.bad_records"
"""The transaction property that counts bad records by file, as JSON."""
_LISTED = 100


def skipped_property(skipped: Sequence[SkippedFile]) -> tuple[tuple[str, str], ...]:
    """Return the transaction property that records skipped files, none without any."""
    if not skipped:
        return ()
    listed = [
        {"file": skipped_file.path, "problem": skipped_file.problem[:500]}
        for skipped_file in skipped[:_LISTED]
    ]
    return ((SKIPPED, json.dumps({"count": len(skipped), "files": listed})),)


def bad_records_property(counts: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Return the transaction property that counts bad records, none without any.

    ``counts`` have ``path``, ``count`` and ``first``.
    """
    if not counts:
        return ()
    files: dict[str, dict[str, Any]] = {}
    for count in counts:
        entry = files.setdefault(count.path, {"file": count.path, "count": 0, "first": count.first})
        entry["count"] += count.count
    total = sum(count.count for count in counts)
    listed = list(files.values())[:_LISTED]
    return ((BAD_RECORDS, json.dumps({"count": total, "files": listed})),)


@dataclass(frozen=True, slots=True)
class CommitRows:
    """Commit the rows that tasks have written as one version.

    Its transaction records skipped files, and how many records were bad.
    """

    rows: RowWriter

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit. Raises CommitConflictError, CommitStateUnknownError, StorageError."""
        skipped = [result for result in results if isinstance(result, SkippedFile)]
        bad = [result.bad for result in results if hasattr(result, "bad")]
        recorded = skipped_property(skipped) + bad_records_property(bad)
        label = replace(label, properties=label.properties + recorded)
        written = [result for result in results if not isinstance(result, SkippedFile)]
        fragments = tuple(fragment for result in written for fragment in result.fragments)
        if self.rows.mode == REPLACE:
            return self._replace(plan, fragments, label)
        operation: Append | Overwrite = Append(fragments)
        if self.rows.mode != "append":
            config = self.rows.config or None
            operation = Overwrite(self.rows.schema, fragments, config_upsert_values=config)
        staged = StagedWrite(plan.pinned.version, operation, new_fragments=fragments)
        version = "{}.{}".format(*self.rows.options.file_version)
        is_new = self.rows.mode != "append"
        build = BuildOptions(version if is_new else None, self.rows.stable_row_ids)
        return commit_write(plan, staged, label, build)

    def _replace(self, plan: Plan, fragments: tuple[Fragment, ...], label: Label) -> LanceDataset:
        """Find the rows that go, and commit them with those that come; nothing is no version."""
        _, snapshot = plan.pinned.open()
        deletion = deleting.plan(snapshot, self.rows.where)
        edits: list[Edit] = [deletion] if deletion.num_rows else []
        if fragments:
            edits.append(Addition(fragments))
        if not edits:
            return plan.pinned.dataset()
        return commit_write(plan, combine(snapshot, edits), label)
