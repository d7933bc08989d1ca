"""Commit a change as a new version: the one path of every verb, and of callers' own operations.

The version that a change was planned on is its read version; the commit itself meets what others
have committed since. Verbs that can be planned again (``replanned``) start over from the newest
version after a retryable conflict.

Settings (configuration, table, schema and field metadata) are all changed the same way: keys with a
value are set, keys with None are removed, and with ``replace`` all other keys go.

Source: ``LanceDataset.commit``, ``commit_batch``, ``read_transaction`` of pylance 14.0.2; message
``Transaction.UpdateConfig`` of lance.table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from lance_nb.errors import (
    ArgumentError,
    InvalidInputError,
    VersionNotFoundError,
)
from lance_nb.format.schema import Schema
from lance_nb.session import provenance
from lance_nb.session.base_paths import as_values
from lance_nb.session.session import Session
from lance_nb.storage.base import is_far
from lance_nb.storage.sync_later import synced_together
from lance_nb.table.refs import Target
from lance_nb.table.retention import INTERVAL
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit import commit as _commit
from lance_nb.transactions.commit import commit_batch as _commit_batch
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment, retrying
from lance_nb.transactions.file_presence import check_data_files
from lance_nb.transactions.operation import BaseOperation, Operation
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.writing.staged import StagedWrite

Values = Mapping[str, str | None]


def change_config(values: Values, replace: bool) -> UpdateConfig:
    """Return the operation that changes the table configuration."""
    return UpdateConfig(config_updates=updates_of(values, replace))


def change_metadata(values: Values, replace: bool) -> UpdateConfig:
    """Return the operation that changes the table metadata."""
    return UpdateConfig(table_metadata_updates=updates_of(values, replace))


def change_schema_metadata(values: Values, replace: bool) -> UpdateConfig:
    """Return the operation that changes the schema's metadata."""
    return UpdateConfig(schema_metadata_updates=updates_of(values, replace))


def change_field_metadata(
    schema: Schema, fields: Mapping[str, Values], replace: bool
) -> UpdateConfig:
    """Return the operation that changes metadata of fields. Raises ColumnNotFoundError."""
    updates = {
        schema.field(name).id: updates_of(changes, replace) for name, changes in fields.items()
    }
    return UpdateConfig(field_metadata_updates=updates)


def updates_of(values: Values, replace: bool) -> UpdateMap:
    """Return the changes of one map. Raises InvalidInputError for what is no text."""
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str | None):
            raise InvalidInputError(
                f"settings must be text: {key!r} = {value!r} is {type(value).__name__}; use "
                "str(), or None to remove the key"
            )
        try:
            (key + (value or "")).encode()
        except UnicodeEncodeError as exc:
            raise InvalidInputError(
                f"settings must be UTF-8 text, and {key!r} is not: {exc}"
            ) from exc
    return UpdateMap(dict(values), replace)


NO_PROPERTIES: Mapping[str, str] = {}
DEFAULTS = CommitOptions()

T = TypeVar("T")


def commit_staged(
    session: Session,
    branch: str | None,
    staged: StagedWrite,
    options: CommitOptions = DEFAULTS,
    properties: Mapping[str, str] = NO_PROPERTIES,
) -> Snapshot:
    """Write what waits in memory, commit, and return the new version.

    Raises as ``lance_nb.transactions.commit.commit`` does.
    """
    uuid = options.environment.new_uuid()
    transaction = Transaction(
        staged.read_version, staged.operation, uuid, transaction_properties=dict(properties)
    )
    home = session.home(branch)
    checks_files = options.checks_files or (
        not is_far(home) and not isinstance(staged.operation, Restore)
    )
    options = replace(options, affected_rows=staged.affected_rows, checks_files=checks_files)
    with synced_together():
        if checks_files and staged.pending.vectors:  # a refusal leaves no deletion files
            check_data_files(home, staged.files)
        staged.pending.write(home)
        staged.pending.remember(home, session.deletions)
        return commit_transaction(session, branch, transaction, options)


def commit_transaction(
    session: Session, branch: str | None, transaction: Transaction, options: CommitOptions
) -> Snapshot:
    """Commit a transaction as it is and return the new version."""
    transaction = provenance.stamped(transaction, options.message)
    committed = _commit(session.place(branch), transaction, options)
    snapshot = session.snapshot(committed.manifest, branch)
    if INTERVAL in committed.manifest.config and not options.detached:
        from lance_nb.writing import cleanup

        cleanup.clean_after(session, snapshot, transaction.read_version)
    return snapshot


def commit_operation(
    session: Session, snapshot: Snapshot, operation: Operation, options: CommitOptions = DEFAULTS
) -> Snapshot:
    """Commit an operation that writes no files, planned on ``snapshot``."""
    staged = StagedWrite(snapshot.version, operation)
    options = replace(options, read_manifest=snapshot.manifest)
    return commit_staged(session, snapshot.branch, staged, options)


def replanned(
    session: Session,
    snapshot: Snapshot,
    change: Callable[[Snapshot], T],
    *,
    max_retries: int = 10,
    timeout_s: float | None = 30.0,
) -> T:
    """Do a change planned on ``snapshot``; after a retryable conflict plan it on the newest.

    Raises CommitConflictError, TooMuchWriteContentionError.
    """

    def bases() -> Iterator[Snapshot]:
        yield snapshot
        while True:
            yield session.load(Target(snapshot.branch, None))

    base = bases()
    return retrying(
        lambda: change(next(base)), Environment(), max_retries=max_retries, timeout_s=timeout_s
    )


_FILE_NAME_PART = re.compile(r"[A-Za-z0-9_-]{1,100}")


def transaction_of(operation: Any, read_version: int | None, uuid: str) -> Transaction:
    """Return the transaction that ``operation`` is or becomes.

    Raises InvalidInputError without a read version where one is needed.
    """
    if isinstance(operation, Transaction):
        return checked(operation)
    is_operation = isinstance(operation, BaseOperation)
    if not is_operation:
        raise ArgumentError(
            f"commit expects a LanceOperation or a Transaction, not {type(operation).__name__}"
        )
    if read_version is None and not isinstance(operation, Overwrite | Restore):
        raise InvalidInputError(
            "read_version is required for all operations except Overwrite and Restore: the version "
            "that the change was made for, for example ds.version"
        )
    return checked(Transaction(read_version or 0, operation, uuid))


def checked(transaction: Transaction) -> Transaction:
    """Return a transaction that a caller made. Raises InvalidInputError, ArgumentError.

    Its uuid becomes part of a file name.
    """
    if not isinstance(transaction, Transaction):
        raise ArgumentError(f"expected a Transaction, not {type(transaction).__name__}")
    if not _FILE_NAME_PART.fullmatch(transaction.uuid):
        raise InvalidInputError(
            f"the uuid of a transaction has letters, digits, '-' and '_' only: "
            f"{transaction.uuid!r:.60}; leave it out to get a new one"
        )
    operation = transaction.operation
    if isinstance(operation, Overwrite) and operation.initial_bases:
        bases = as_values(operation.initial_bases)
        return replace(transaction, operation=replace(operation, initial_bases=bases))
    return transaction


def options_by_hand(timeout: timedelta | None, **arguments: Any) -> CommitOptions:
    """Return the options of a commit that a caller put together.

    ``timeout`` None is no limit; other arguments that are None keep their default.
    """
    return CommitOptions(
        timeout_s=None if timeout is None else timeout.total_seconds(),
        checks_files=True,
        is_by_hand=True,
        **{name: value for name, value in arguments.items() if value is not None},
    )


def commit(
    session: Session,
    current: Snapshot | None,
    transaction: Transaction,
    options: CommitOptions,
    *,
    is_pinned: bool,
) -> Snapshot:
    """Commit; without a pinned read version, on top of the version that is open."""
    if not is_pinned and current is not None:
        transaction = replace(transaction, read_version=current.version)
    branch = None if current is None else current.branch
    return commit_transaction(session, branch, transaction, options)


def commit_batch(
    session: Session,
    branch: str | None,
    transactions: Sequence[Transaction],
    options: CommitOptions,
) -> tuple[Snapshot, Transaction]:
    """Commit several appends as one version."""
    done = _commit_batch(session.place(branch), list(map(checked, transactions)), options)
    return session.snapshot(done.committed.manifest, branch), done.merged


def read_transaction(session: Session, branch: str | None, version: int) -> Transaction | None:
    """Return the transaction that made a version, None if its writer recorded none.

    Raises VersionNotFoundError.
    """
    place = session.place(branch)
    source = VersionSource(place.slots, place.locations)
    if source.head(version) is None:
        raise VersionNotFoundError(session.home(branch).uri, version)
    manifest = source.load(version).manifest
    if manifest.transaction_section is None and not manifest.transaction_file:
        return None
    return source.transaction(version)
