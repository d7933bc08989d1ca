"""A write that comes through the data source: planned on the driver, committed beside it.

Overwrite of a dataset that is there keeps the history: it is one more version.

A batch of a stream is committed once. The version that has its rows marks it in the config (see
lance_nb.transactions.stream_mark), under the id that the query has in the metadata of its
checkpoint: a query with a fresh checkpoint is another stream. A batch that is offered again, after
a crash between commit and checkpoint, is skipped, and the log says so. A batch write is marked in
the same way where it has the options ``txnAppId`` and ``txnVersion``.

Limits: a stream that an earlier release wrote has no mark, only properties of its transactions,
which are looked for once, in the last ``LOOKED_AT`` versions; its batch 0 is always written.
Progress of a query has no room for what a sink in Python says: skipped batches are in the log.
Source: lance_nb.spark.new_rows; PySpark's ``DataSourceWriter``; options of Delta Lake's writer.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lance_nb.dataset.session import Session
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, SchemaMismatchError
from lance_nb.format.schema import Schema
from lance_nb.shown_text import visible
from lance_nb.spark.new_rows import NewRows, Wanted
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.types import new_schema
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.stream_mark import StreamMark

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Properties of the transaction of a batch, for people who read the history.
STREAM, BATCH, QUERY = "lance_nb.stream", "lance_nb.batch", "lance_nb.query"
LOOKED_AT = 1000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceWrite:
    """Where rows go and how they are committed.

    ``query_id`` is the name that a user gave a stream; ``mark`` that of a batch write.
    """

    rows: NewRows
    plan: Plan
    query_id: str | None = None
    mark: StreamMark | None = None

    def commit(self, results: Sequence[Any]) -> int | None:
        """Commit what tasks wrote as one version; return its number, None if it is there already.

        Raises CommitConflictError, CommitStateUnknownError, StorageError.
        """
        if self.mark is not None:
            return self._commit_marked(results, self.mark)
        return self.plan.commit(results).version

    def commit_batch(self, results: Sequence[Any], batch: int, stream: str | None) -> int | None:
        """Commit a batch of a stream; None when it was committed before.

        ``stream`` is the id of the query, None if Spark did not tell it. A batch without rows is a
        version too: it says that the batch is done. Raises InvalidInputError without any id.
        """
        stream = stream or self.query_id
        if not stream:
            raise InvalidInputError(
                "Spark did not tell the id of the query, by which a batch is known that was "
                "committed before: give the stream option('queryId', NAME), the same name at "
                "every restart"
            )
        return self._commit_marked(results, StreamMark(stream, batch))

    def _commit_marked(self, results: Sequence[Any], mark: StreamMark) -> int | None:
        place = self.plan.place
        session = place.session()
        newest = self._newest(session)
        last = self._last_batch(session, newest, mark)
        if last is not None and last >= mark.batch:
            _log.warning(
                "batch %d of stream %s is skipped: %s has it already, batch %d was the last one. "
                "What was written for it now is left to cleanup",
                mark.batch, visible(mark.stream), visible(session.root.uri), last,
            )  # fmt: skip
            return None
        rows = self._at(session, newest)
        plan = replace(
            rows.plan("stream", f"batch {mark.batch}"),
            operation_id=str(uuid.uuid4()),
            is_empty_too=True,
        )
        said = {STREAM: mark.stream, BATCH: str(mark.batch)}
        if self.query_id:
            said[QUERY] = self.query_id
        return plan.commit(results, Label(None, tuple(said.items()), mark)).version

    def _newest(self, session: Session) -> Snapshot | None:
        try:
            return session.load(Target(self.rows.place.branch, None))
        except DatasetNotFoundError:
            return None

    def _last_batch(
        self, session: Session, newest: Snapshot | None, mark: StreamMark
    ) -> int | None:
        """Return the last batch of a stream that is committed; None if none is known."""
        if newest is None:
            return None
        marked = mark.last_in(newest.manifest.config)
        # A fresh checkpoint begins with batch 0, and nothing of it is there yet.
        if marked is not None or mark.batch == 0 or self.mark is not None:
            return marked
        log = session.log(newest.branch)
        numbers = log.numbers()
        for number in numbers[: -LOOKED_AT - 1 : -1]:
            found = log.transaction(number)
            said = {} if found is None else dict(found.properties)
            batch = said.get(BATCH, "")
            if said.get(STREAM) in (mark.stream, self.query_id) and batch.isdecimal():
                return int(batch)  # a stream commits its batches in their order
        _log.warning(
            "stream %s begins with batch %d, and neither the config of %s nor its last %d versions "
            "know an earlier one: the batch is written",
            visible(mark.stream), mark.batch, visible(session.root.uri),
            min(len(numbers), LOOKED_AT),
        )  # fmt: skip
        return None

    def _at(self, session: Session, newest: Snapshot | None) -> NewRows:
        """Write to the newest version, if its fields are those that the rows were written for.

        If not, the version that they were written for stays the one read, and the commit finds the
        conflict. Raises SchemaMismatchError where there is no such version.
        """
        rows = self.rows
        if newest is None:
            return rows
        is_same = _fields(newest.manifest.schema) == _fields(rows.schema)
        if rows.mode == "create" and not is_same:
            raise SchemaMismatchError(
                f"a dataset of other columns is now at {session.root.uri!r}: start the stream again"
            )
        mode = "append" if rows.mode == "create" else rows.mode
        return replace(rows, mode=mode, place=Place.at(session, newest) if is_same else rows.place)


def _fields(schema: Schema) -> list[tuple[int, str, str]]:
    return [(one.id, one.name, one.logical_type) for one in schema.walk()]


def plan_write(options: SourceOptions, schema: StructType, *, overwrite: bool) -> SourceWrite:
    """Look at what is there and decide what a write does.

    Raises SchemaMismatchError for columns that the dataset does not have, InvalidInputError.
    """
    wanted = Wanted(
        "overwrite" if overwrite else "append",
        options.get("branch"),
        options.storage_options,
        options.is_set("enablestablerowids"),
        options.files,
    )
    rows = NewRows.of(options.path, new_schema(schema), wanted)
    plan = rows.plan(wanted.mode, "a DataFrame")
    return SourceWrite(rows, plan, options.get("queryid"), options.mark)
