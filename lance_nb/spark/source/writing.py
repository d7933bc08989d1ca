"""A write that comes through the data source: planned on the driver, committed beside it.

Overwrite of a dataset that is there keeps the history: it is one more version. A stream's batch is
known by ``lance_nb.stream`` and ``lance_nb.batch`` in the properties of its transaction.

Limits: a restarted stream looks for its batch in the last ``LOOKED_AT`` versions.
Source: lance_nb.transactions; PySpark's ``DataSourceWriter``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lance_nb.dataset.destination import destination
from lance_nb.dataset.session import Session, open_session
from lance_nb.dataset.verbs.committing import commit_staged
from lance_nb.dataset.verbs.writing import WriteRequest
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.spark.frames import Target
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.types import check_names, new_schema
from lance_nb.table.refs import Target as Ref
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.input_schema import new_schema as lance_schema
from lance_nb.transactions.operation import DEFAULT_FILE_VERSION, Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.staged import StagedWrite

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

STREAM, BATCH = "lance_nb.stream", "lance_nb.batch"
LOOKED_AT = 1000
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class SourceWrite:
    """Where rows go and how they are committed. ``read_version`` 0: there is no dataset yet."""

    target: Target
    read_version: int
    replaces: bool
    query_id: str | None
    operation_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def of_stream(self) -> SourceWrite:
        """Check that it can be a stream's. Raises InvalidInputError."""
        if not self.query_id:
            raise InvalidInputError(
                "a stream needs option('queryId', NAME), the same name at every restart: with it a "
                "batch is never committed twice"
            )
        return self

    def commit_batch(self, fragments: Sequence[Fragment], batch: int) -> int | None:
        """Commit a batch of a stream; None when it was committed before."""
        said = {STREAM: str(self.query_id), BATCH: str(batch)}
        session = self._session()
        if self._is_committed(session, said):
            return None
        try:
            read = session.load(Ref(self.target.branch, None)).version
        except DatasetNotFoundError:
            read = 0
        own = replace(
            self, read_version=read, replaces=self.replaces or read == 0,
            operation_id=str(uuid.uuid4()),
        )  # fmt: skip
        return own.commit(fragments, said)

    def commit(self, fragments: Sequence[Fragment], said: Mapping[str, str] = NOTHING) -> int:
        """Commit the fragments as one version and return its number.

        ``said`` becomes properties of the transaction. Raises CommitConflictError,
        CommitStateUnknownError, StorageError.
        """
        made = tuple(fragments)
        operation: Operation = Append(made)
        if self.replaces:
            operation = Overwrite(self.target.schema, made)
        staged = StagedWrite(self.read_version, operation, new_fragments=made)
        options = CommitOptions(
            environment=replace(Environment(), new_uuid=lambda: self.operation_id)
        )
        session = self._session()
        return commit_staged(session, self.target.branch, staged, options, said).version

    def _is_committed(self, session: Session, said: dict[str, str]) -> bool:
        log = session.log(self.target.branch)
        try:
            numbers = log.numbers()
        except DatasetNotFoundError:
            return False
        for number in numbers[: -LOOKED_AT - 1 : -1]:
            found = log.transaction(number)
            if found is not None and said.items() <= dict(found.properties).items():
                return True
        return False

    def _session(self) -> Session:
        return open_session(self.target.uri, dict(self.target.storage_options) or None)


def plan_write(options: SourceOptions, schema: StructType, *, overwrite: bool) -> SourceWrite:
    """Look at what is there and decide what a write does.

    Raises SchemaMismatchError for columns that the dataset does not have.
    """
    arrow = new_schema(schema)
    session, current = destination(options.path, options.storage_options)
    stored = tuple(sorted((options.storage_options or {}).items()))
    branch = options.get("branch")
    if current is not None and branch is not None:
        current = session.load(Ref(branch, None))
    version = DEFAULT_FILE_VERSION if current is None else storage_version(current.manifest)
    files = WriteRequest().write_options(version)
    if current is None or overwrite:
        own = lance_schema(arrow, files.file_version)
    else:
        own = current.manifest.schema
        check_names(arrow, own.to_arrow())
    target = Target(session.uri, branch, stored, own, files)
    read = 0 if current is None else current.version
    return SourceWrite(target, read, current is None or overwrite, options.get("queryid"))
