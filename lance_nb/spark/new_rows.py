"""Rows for a dataset, and the commit they become: at its end, in its place, or as its beginning.

The one way in which rows get into a dataset from here, whatever they come from: files, another
dataset, a DataFrame, Spark's own writers, a stream.

===========  =====================  =============================================
mode         dataset is there       dataset is not there
===========  =====================  =============================================
create       refused, also when it   version 1
             appears meanwhile
append       Append                  version 1
overwrite    Overwrite: one more     version 1
             version, of another
             schema if need be
===========  =====================  =============================================

Source: lance_nb.transactions.fragment_writer; operations Append and Overwrite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.opening import destination
from lance_nb.dataset.verbs.committing import NO_PROPERTIES
from lance_nb.dataset.verbs.input_data import reader_of
from lance_nb.dataset.verbs.writing import WriteRequest, check_mode
from lance_nb.errors import DatasetAlreadyExistsError, NotSupportedError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan, commit_write
from lance_nb.spark.types import check_names, from_spark, with_marked_bytes
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.projection import ROW_ADDRESS
from lance_nb.table.refs import Target
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.fragment_writer import (
    FragmentWriter,
    WriteOptions,
    copying,
    write_fragments,
)
from lance_nb.transactions.input_schema import new_schema, writable_part
from lance_nb.transactions.operation import DEFAULT_FILE_VERSION, BuildOptions
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.staged import Addition, StagedWrite

Destination = str | os.PathLike[str] | LanceDataset


@dataclass(frozen=True, slots=True)
class Wanted:
    """How rows shall be written.

    ``files`` are arguments of ``write_dataset`` about data files: ``max_rows_per_file``,
    ``max_bytes_per_file``, ``data_storage_version``.
    """

    mode: str = "append"
    branch: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    stable_row_ids: bool = False
    files: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Where rows go (a folder, a version), the schema with field ids, how files are written."""

    place: Place
    schema: Schema
    options: WriteOptions
    mode: str
    stable_row_ids: bool = False

    @classmethod
    def of(cls, target: Destination, schema: pa.Schema, wanted: Wanted) -> NewRows:
        """Look at what is there, and decide what rows of this schema become.

        Raises DatasetAlreadyExistsError, SchemaMismatchError, InvalidInputError.
        """
        check_mode(wanted.mode)
        session, current = destination(target, wanted.storage_options)
        if current is not None and wanted.branch is not None:
            current = session.load(Target(wanted.branch, None))
        if current is not None and wanted.mode == "create":
            raise DatasetAlreadyExistsError(
                f"there is a dataset at {session.root.uri!r} already; mode='append' adds to it, "
                "mode='overwrite' puts the data in its place as a new version"
            )
        request = WriteRequest(**wanted.files)
        kept = None if current is None else storage_version(current.manifest)
        is_new = current is None or wanted.mode == "overwrite"
        asked = request.data_storage_version if is_new else None
        config = NO_PROPERTIES if current is None else current.manifest.config
        options = request.write_options(asked or kept or DEFAULT_FILE_VERSION, config=config)
        if current is None or is_new:
            own = new_schema(schema, options.file_version)
        else:
            own = current.manifest.schema
            check_names(schema, own.to_arrow())
        mode = "create" if current is None and wanted.mode == "append" else wanted.mode
        return cls(Place.at(session, current), own, options, mode, wanted.stable_row_ids)

    def write(self, rows: Any) -> Addition | None:
        """Write rows to new files; no rows, no files. Bytes become blobs where there are blobs."""
        home = self.place.session().home(self.place.branch)
        source = with_marked_bytes(reader_of(rows), self.schema)
        made = write_fragments(source, self.schema, home, self.options)
        return Addition(tuple(made)) if made else None

    def copy(self, snapshot: Snapshot, fragments: Sequence[Fragment]) -> Addition | None:
        """Write the rows of some fragments of another dataset, payloads of blobs from file to file.

        External blobs stay references. Raises SchemaMismatchError, NotSupportedError for references
        below a base path that this dataset does not have.
        """
        source = snapshot.manifest.schema
        part = writable_part(source.to_arrow(), self.schema)
        copies = BlobCopies(snapshot)
        if copies:
            self._check_bases(snapshot)
        home = self.place.session().home(self.place.branch)
        columns = [*(quoted([one]) for one in source.names), ROW_ADDRESS]
        scan = ScanOptions(columns, fragments=tuple(fragments))
        with FragmentWriter(part, home, copying(self.options, copies)) as writer:
            for batch in plan_request(snapshot, scan).batches():
                rows = copies.batch(batch, batch.column(ROW_ADDRESS).to_numpy())
                writer.write(rows.drop_columns([ROW_ADDRESS]))
            made = writer.finish()
        return Addition(tuple(made)) if made else None

    def _check_bases(self, source: Snapshot) -> None:
        mine = self.place.open()[1].manifest.base_paths if self.place.version else ()
        for base in source.manifest.base_paths:
            if not base.is_dataset_root and base not in mine:
                raise NotSupportedError(
                    f"the blobs of {source.manifest.path} may lie below its base path "
                    f"{base.path!r}, which this dataset does not have with id {base.id}: copy the "
                    "whole dataset with lance_nb.spark.clone, or add the base path"
                )

    def write_of_spark(self, batches: Iterable[pa.RecordBatch]) -> Addition | None:
        """Write rows as Spark has them, cast to the types of the dataset."""
        rows = (one for one in batches if one.num_rows)
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
        """Return the plan whose results are the additions of this write."""
        finish = CommitRows(self)
        return Plan(verb, detail, self.place, tasks, finish, is_empty_too=self.mode != "append")


@dataclass(frozen=True, slots=True)
class CommitRows:
    """Commits what tasks have written as one version."""

    rows: NewRows

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit. Raises CommitConflictError, CommitStateUnknownError, StorageError."""
        made = tuple(one for result in results for one in result.fragments)
        operation: Append | Overwrite = Append(made)
        if self.rows.mode != "append":
            operation = Overwrite(self.rows.schema, made)
        staged = StagedWrite(plan.place.version, operation, new_fragments=made)
        version = "{}.{}".format(*self.rows.options.file_version)
        is_new = self.rows.mode != "append"
        build = BuildOptions(version if is_new else None, self.rows.stable_row_ids)
        return commit_write(plan, staged, label, build)
