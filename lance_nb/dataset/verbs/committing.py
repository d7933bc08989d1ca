"""Commit a staged write as a new version: the one path of every verb of the façade.

The version that the change was planned on is its read version; the commit itself meets what others
have committed since. Verbs that can be planned again (``replanned``) start over from the newest
version after a retryable conflict.

Settings (configuration, table, schema and field metadata) are all changed the same way: keys with a
value are set, keys with None are removed, and with ``replace`` all other keys go.

Source: ``LanceDataset.commit`` of pylance 14.0.2; message ``Transaction.UpdateConfig`` of
lance.table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from lance_nb.dataset import provenance
from lance_nb.dataset.session import Session
from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema
from lance_nb.storage.sync_later import synced_together
from lance_nb.table.refs import Target
from lance_nb.table.retention import INTERVAL
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.backoff import retrying
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.staged import StagedWrite
from lance_nb.transactions.transaction import Transaction

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
    updates = {schema.field(name).id: updates_of(one, replace) for name, one in fields.items()}
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


def place_of(session: Session, branch: str | None) -> CommitPlace:
    """Return where commits to a branch go."""
    return CommitPlace.of(
        session.root,
        branch,
        allow_bases=session.trusted_bases,
        storage_options=session.storage_options,
        commit_lock=session.commit_lock,
        checks=session.checks,
    )


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
    options = replace(options, affected_rows=staged.affected_rows)
    with synced_together():
        staged.pending.write(session.home(branch))
        return commit_transaction(session, branch, transaction, options)


def commit_transaction(
    session: Session, branch: str | None, transaction: Transaction, options: CommitOptions
) -> Snapshot:
    """Commit a transaction as it is and return the new version."""
    transaction = provenance.stamped(transaction, options.message)
    committed = commit(place_of(session, branch), transaction, options)
    made = session.snapshot(committed.manifest, branch)
    if INTERVAL in committed.manifest.config and not options.detached:
        from lance_nb.dataset.verbs import cleaning  # imports this module

        cleaning.clean_after(session, made, transaction.read_version)
    return made


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


def restore_to(version: int) -> Restore:
    """Return the operation that makes a version the newest one again."""
    return Restore(version)
