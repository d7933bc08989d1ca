"""Write through the data source: planned on the driver, committed once beside it.

Overwriting an existing dataset keeps its history: it adds a version.

A batch of a stream is committed exactly once. The version with its rows records the batch number in
the config (lance_nb.transactions.stream_mark), under the query id from the metadata of the
checkpoint; a query with a new checkpoint is a new stream. If a batch is offered again, after a
crash between commit and checkpoint, it is skipped with a log message. A batch write with the
options ``txnAppId`` and ``txnVersion`` is recorded in the same way.

Limits: a Python sink cannot add to the progress of a query, so skipped batches appear in the log
only.
Source: ``DataSourceWriter`` of PySpark; writer options of Delta Lake.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lance_nb.errors import DatasetNotFoundError, InvalidInputError, SchemaMismatchError
from lance_nb.format.schema import Schema
from lance_nb.session.session import Session
from lance_nb.shown_text import visible
from lance_nb.spark.plan import Label, PinnedVersion, Plan
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.types import new_schema
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.stream_mark import StreamMark
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Transaction properties of a batch, shown in the history.
STREAM, BATCH, QUERY = "lance_nb.stream", "lance_nb.batch", "lance_nb.query"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceWrite:
    """A planned write: the row writer and the commit.

    ``query_id`` is option ``queryId`` of a stream; ``mark`` identifies an idempotent batch write.
    """

    rows: RowWriter
    plan: Plan
    query_id: str | None = None
    mark: StreamMark | None = None

    def commit(self, results: Sequence[Any]) -> int | None:
        """Commit the files of all tasks as one version; return it, or None if it was skipped.

        Raises CommitConflictError, CommitStateUnknownError, StorageError.
        """
        if self.mark is not None:
            return self._commit_marked(results, self.mark)
        return self.plan.commit(results).version

    def commit_batch(self, results: Sequence[Any], batch: int, stream: str | None) -> int | None:
        """Commit a batch of a stream; None if it was committed before.

        ``stream`` is the id of the query, None if Spark did not pass it. An empty batch is also
        committed, to record its number. Raises InvalidInputError without any id.
        """
        stream = stream or self.query_id
        if not stream:
            raise InvalidInputError(
                "Spark did not pass the id of the query, which identifies batches that were "
                "committed before: set option('queryId', NAME) on the stream, with the same "
                "name at every restart"
            )
        return self._commit_marked(results, StreamMark(stream, batch))

    def _commit_marked(self, results: Sequence[Any], mark: StreamMark) -> int | None:
        pinned = self.plan.pinned
        session = pinned.session()
        try:
            newest = session.load(Target(self.rows.pinned.branch, None))
        except DatasetNotFoundError:
            newest = None
        last = None if newest is None else mark.last_in(newest.manifest.config)
        if last is not None and last >= mark.batch:
            _log.warning(
                "skipped batch %d of stream %s: %s already has it, and its last batch is %d. "
                "Cleanup removes the new files of the batch",
                mark.batch, visible(mark.stream), visible(session.root.uri), last,
            )  # fmt: skip
            return None
        rows = self._row_writer(session, newest)
        plan = replace(
            rows.plan("stream", f"batch {mark.batch}"),
            operation_id=str(uuid.uuid4()),
            commits_without_results=True,
        )
        properties = {STREAM: mark.stream, BATCH: str(mark.batch)}
        if self.query_id:
            properties[QUERY] = self.query_id
        return plan.commit(results, Label(None, tuple(properties.items()), mark)).version

    def _row_writer(self, session: Session, newest: Snapshot | None) -> RowWriter:
        """Return a writer on the newest version, if its fields are those of the written rows.

        Otherwise the read version stays, and the commit raises a conflict. Raises
        SchemaMismatchError if there was no dataset at the start of the stream.
        """
        rows = self.rows
        if newest is None:
            return rows
        is_same = _fields(newest.manifest.schema) == _fields(rows.schema)
        if rows.mode == "create" and not is_same:
            raise SchemaMismatchError(
                f"a dataset with other columns was created at {session.root.uri!r}; "
                "restart the stream"
            )
        mode = "append" if rows.mode == "create" else rows.mode
        return replace(
            rows,
            mode=mode,
            pinned=PinnedVersion.of_snapshot(session, newest) if is_same else rows.pinned,
        )


def _fields(schema: Schema) -> list[tuple[int, str, str]]:
    return [(field.id, field.name, field.logical_type) for field in schema.walk()]


def plan_write(options: SourceOptions, schema: StructType, *, overwrite: bool) -> SourceWrite:
    """Plan a write of a DataFrame or a stream.

    Raises SchemaMismatchError for columns that the dataset does not have, InvalidInputError.
    """
    settings = WriteSettings(
        mode="overwrite" if overwrite else "append",
        branch=options.get("branch"),
        storage_options=options.storage_options,
        stable_row_ids=options.is_set("enablestablerowids"),
        files=options.files,
        checksums=options.is_set("checksums"),
        where=options.get("replacewhere"),
    )
    rows = RowWriter.of_frame(options.path, new_schema(schema, options.dimensions), settings)
    plan = rows.plan(settings.mode, "a DataFrame")
    return SourceWrite(rows, plan, options.get("queryid"), options.mark)
