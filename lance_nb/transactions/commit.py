"""Make a new version out of a transaction, safely beside other writers: the commit loop.

Source: spec page "transactions" (commit protocol); reliability rules of pylance 14.0.2's commit.
"""

from __future__ import annotations

from lance_nb.errors import NotSupportedError
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.transaction import Transaction

DEFAULTS = CommitOptions()


def commit(
    place: CommitPlace, transaction: Transaction, options: CommitOptions = DEFAULTS
) -> Committed:
    """Commit a transaction, rebasing it over what others committed since its read version.

    Raises CommitConflictError (do not retry), RetryableCommitConflictError (read again, do it
    again), TooMuchWriteContentionError, DatasetAlreadyExistsError (a concurrent creation won),
    DatasetNotFoundError, NotSupportedError (features we would break), StorageError (nothing
    landed), CommitStateUnknownError (it may have landed: keep every file, ask ``resume``).
    """
    del place, transaction, options
    raise NotSupportedError("the commit loop is not part of this release yet")
