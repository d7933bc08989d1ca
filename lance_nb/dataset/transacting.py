"""Verbs for those who build their own transactions: commit, commit_batch, stage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from lance_nb.dataset import verbs
from lance_nb.dataset.destination import Destination, destination
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.storage.registry import StorageOptions

if TYPE_CHECKING:
    from lance_nb.dataset.verbs.staging import Stage
    from lance_nb.transactions.commit_options import CommitLock
    from lance_nb.transactions.operation import Operation
    from lance_nb.transactions.transaction import Transaction

_MAX_RETRIES = 20
_TIMEOUT = timedelta(seconds=1800)


class Transacting(OpenedVersion):
    """Transactions as values: committed, read, staged."""

    @classmethod
    def commit(
        cls,
        base_uri: Destination,
        operation: Operation | Transaction,
        read_version: int | None = None,
        *,
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool = False,
        max_retries: int = _MAX_RETRIES,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        commit_timeout: timedelta | None = _TIMEOUT,
    ) -> Self:
        """Commit an operation, or a whole transaction, and return the version that it made.

        ``read_version``: the version that the operation was made for; Overwrite and Restore can do
        without. ``detached`` makes a version outside of the history. A transaction that was
        committed before is recognised by its uuid and not committed twice. Raises
        InvalidInputError, DatasetNotFoundError, CommitConflictError, RetryableCommitConflictError,
        TooMuchWriteContentionError, CommitStateUnknownError, StorageError.
        """
        session, current = destination(base_uri, storage_options)
        options = verbs.transacting.options_of(
            max_retries=max_retries,
            detached=detached,
            message=commit_message,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            commit_lock=commit_lock,
            build=verbs.transacting.build_options(enable_stable_row_ids),
        )
        options = verbs.transacting.within(options, commit_timeout)
        uuid = options.environment.new_uuid()
        transaction = verbs.transacting.transaction_of(operation, read_version, {}, uuid)
        is_pinned = read_version is not None or transaction is operation
        made = verbs.transacting.commit(session, current, transaction, options, is_pinned=is_pinned)
        return cls(session, made)

    @classmethod
    def commit_batch(
        cls,
        dest: Destination,
        transactions: Sequence[Transaction],
        *,
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool = False,
        max_retries: int = _MAX_RETRIES,
        commit_timeout: timedelta | None = _TIMEOUT,
    ) -> dict[str, Any]:
        """Commit several appends as one version: ``{"dataset": ..., "merged": Transaction}``.

        Raises InvalidInputError, NotSupportedError for other operations, and as ``commit`` does.
        """
        session, current = destination(dest, storage_options)
        if current is None:
            raise DatasetNotFoundError(session.root.uri)
        options = verbs.transacting.options_of(
            max_retries=max_retries,
            detached=detached,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            commit_lock=commit_lock,
        )
        options = verbs.transacting.within(options, commit_timeout)
        made, merged = verbs.transacting.commit_batch(
            session, current.branch, transactions, options
        )
        return {"dataset": cls(session, made), "merged": merged}

    def stage(self) -> Stage:
        """Collect edits of this version, preview them, then commit or discard them together."""
        return verbs.staging.Stage(self._session, self._snapshot)

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction that made a version of this branch, None if not recorded.

        Raises VersionNotFoundError.
        """
        return verbs.transacting.read_transaction(self._session, self.branch, version)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions that made this version and those before it, newest first."""
        if recent_transactions < 0:
            raise InvalidInputError(f"recent_transactions is at least 0, not {recent_transactions}")
        numbers = [n for n in self._session.log(self.branch).numbers() if n <= self.version]
        recent = numbers[max(len(numbers) - recent_transactions, 0) :]
        return [self.read_transaction(n) for n in reversed(recent)]
