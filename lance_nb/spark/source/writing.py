"""A write that comes through the data source: planned on the driver, committed beside it.

Overwrite of a dataset that is there keeps the history: it is one more version. A stream's batch is
known by ``lance_nb.stream`` and ``lance_nb.batch`` in the properties of its transaction.

Limits: a restarted stream looks for its batch in the last ``LOOKED_AT`` versions.
Source: lance_nb.spark.new_rows; PySpark's ``DataSourceWriter``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lance_nb.dataset.session import Session
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, SchemaMismatchError
from lance_nb.format.schema import Schema
from lance_nb.spark.new_rows import NewRows, Wanted
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.types import new_schema
from lance_nb.table.refs import Target

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

STREAM, BATCH = "lance_nb.stream", "lance_nb.batch"
LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class SourceWrite:
    """Where rows go and how they are committed."""

    rows: NewRows
    plan: Plan
    query_id: str | None

    def of_stream(self) -> SourceWrite:
        """Check that it can be a stream's. Raises InvalidInputError."""
        if not self.query_id:
            raise InvalidInputError(
                "a stream needs option('queryId', NAME), the same name at every restart: with it a "
                "batch is never committed twice"
            )
        return self

    def commit(self, results: Sequence[Any]) -> int:
        """Commit what tasks wrote as one version and return its number.

        Raises CommitConflictError, CommitStateUnknownError, StorageError.
        """
        return self.plan.commit(results).version

    def commit_batch(self, results: Sequence[Any], batch: int) -> int | None:
        """Commit a batch of a stream; None when it was committed before.

        A batch without rows is a version too: it says that the batch is done.
        """
        said = ((STREAM, str(self.query_id)), (BATCH, str(batch)))
        place = self.plan.place
        session = place.session()
        if _is_committed(session, place.branch, dict(said)):
            return None
        rows = self._at_newest(session)
        plan = replace(
            rows.plan("stream", f"batch {batch}"), operation_id=str(uuid.uuid4()), is_empty_too=True
        )
        return plan.commit(results, Label(None, said)).version

    def _at_newest(self, session: Session) -> NewRows:
        """Read the newest version, if its fields are those that the rows were written for.

        If not, the version that they were written for stays the one read, and the commit finds the
        conflict. Raises SchemaMismatchError where there is no such version.
        """
        rows = self.rows
        try:
            newest = session.load(Target(rows.place.branch, None))
        except DatasetNotFoundError:
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


def _is_committed(session: Session, branch: str | None, said: dict[str, str]) -> bool:
    log = session.log(branch)
    try:
        numbers = log.numbers()
    except DatasetNotFoundError:
        return False
    for number in numbers[: -LOOKED_AT - 1 : -1]:
        found = log.transaction(number)
        if found is not None and said.items() <= dict(found.properties).items():
            return True
    return False


def plan_write(options: SourceOptions, schema: StructType, *, overwrite: bool) -> SourceWrite:
    """Look at what is there and decide what a write does.

    Raises SchemaMismatchError for columns that the dataset does not have.
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
    return SourceWrite(rows, plan, options.get("queryid"))
