"""Commit operations and transactions that callers built themselves.

The data files of a ``LanceOperation.Merge`` are checked first: fragments get their new columns one
by one, in other processes too. A data file gives field ids in its manifest entry, names and types
in itself; where a function named the column otherwise, or made another type, for one of the
fragments, a commit would mix the values of two columns or make a fragment unreadable. pylance
commits such fragments.

Limits: files of 0.1 do not describe themselves. Of extension types and dictionaries only the names
are compared.
Source: ``LanceDataset.commit``, ``commit_batch``, ``read_transaction`` of pylance 14.0.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from lance_nb.dataset.base_paths import as_values
from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import commit_transaction, place_of
from lance_nb.errors import (
    ArgumentError,
    InvalidInputError,
    SchemaMismatchError,
    VersionNotFoundError,
)
from lance_nb.file.reader import FileReader
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.threads import run_all
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit import commit_batch as _commit_batch
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.operation import BaseOperation, BuildOptions
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_source import VersionSource

_DICTIONARY = "dict:"


def check_merged_files(current: Snapshot, operation: Merge) -> None:
    """Raise SchemaMismatchError for a new file that does not have the columns of the schema."""
    before = {file.path for one in current.manifest.fragments for file in one.files}
    added = [
        (fragment, file)
        for fragment in operation.fragments
        for file in fragment.files
        if file.path not in before and not file.is_legacy
    ]
    schema = operation.schema.tree
    run_all([partial(_check, current, fragment, file, schema) for fragment, file in added])


def _check(current: Snapshot, fragment: Fragment, file: DataFile, schema: Schema) -> None:
    store, path = current.locations.locate(file.location(), file.base_id)
    reader = current.files.get(store, path, file.file_size_bytes or 0)
    if not isinstance(reader, FileReader):
        return
    wanted = schema.project_by_ids(file.fields)
    problem = next(_differences(wanted.fields, reader.schema.fields, ""), None)
    if problem is not None:
        raise SchemaMismatchError(
            f"fragment {fragment.id}: {problem} in its new file {file.path!r}; add the same "
            "columns to every fragment, and commit the schema that this call returned"
        )


def _differences(wanted: Sequence[Field], found: Sequence[Field], above: str) -> Iterator[str]:
    by_name = {one.name: one for one in found}
    for field in wanted:
        path = above + field.name
        other = by_name.get(field.name)
        if other is None:
            names = ", ".join(repr(above + one.name) for one in found) or "none"
            yield f"column {path!r} of the schema is not among the columns ({names})"
        elif _is_compared(field, other) and field.logical_type != other.logical_type:
            yield f"column {path!r} is {field.logical_type} in the schema, but {other.logical_type}"
        elif field.children and other.children:
            yield from _differences(field.children, other.children, f"{path}.")


def _is_compared(field: Field, other: Field) -> bool:
    return not any(
        one.extension_name or one.logical_type.startswith(_DICTIONARY) or one.metadata
        for one in (field, other)
    )


_FILE_NAME_PART = re.compile(r"[A-Za-z0-9_-]{1,100}")

__all__ = ["commit", "commit_batch", "options_of", "read_transaction", "transaction_of"]


def transaction_of(
    operation: Any, read_version: int | None, properties: Mapping[str, str], uuid: str
) -> Transaction:
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
    return checked(Transaction(read_version or 0, operation, uuid, dict(properties)))


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


def options_of(**given: Any) -> CommitOptions:
    """Return commit options; arguments that are None keep their default."""
    return CommitOptions(**{name: value for name, value in given.items() if value is not None})


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
    if current is not None and isinstance(transaction.operation, Merge):
        check_merged_files(current, transaction.operation)
    return commit_transaction(session, branch, transaction, options)


def commit_batch(
    session: Session,
    branch: str | None,
    transactions: Sequence[Transaction],
    options: CommitOptions,
) -> tuple[Snapshot, Transaction]:
    """Commit several appends as one version."""
    done = _commit_batch(place_of(session, branch), list(map(checked, transactions)), options)
    return session.snapshot(done.committed.manifest, branch), done.merged


def read_transaction(session: Session, branch: str | None, version: int) -> Transaction | None:
    """Return the transaction that made a version, None if its writer recorded none.

    Raises VersionNotFoundError.
    """
    place = place_of(session, branch)
    source = VersionSource(place.slots, place.locations)
    if source.head(version) is None:
        raise VersionNotFoundError(session.home(branch).uri, version)
    manifest = source.load(version).manifest
    if manifest.transaction_section is None and not manifest.transaction_file:
        return None
    return source.transaction(version)


def build_options(enable_stable_row_ids: bool | None) -> BuildOptions:
    """Return the choices for a dataset that the commit creates."""
    return BuildOptions(stable_row_ids=bool(enable_stable_row_ids))


def within(options: CommitOptions, timeout: timedelta | None) -> CommitOptions:
    """Return the options with a time limit; None is no limit."""
    return replace(options, timeout_s=None if timeout is None else timeout.total_seconds())
