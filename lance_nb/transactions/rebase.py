"""Rebase: make our transaction fit what others have committed since it was made.

Every transaction since our read version is checked (conflicts.py). Where only deletions of the same
fragment meet, the deletion vectors are merged into a new deletion file; where an index meets an
update of its column, the updated fragments leave its coverage. A rebased transaction carries the
version it was rebased onto as its read version, so that a later attempt looks at newer ones only.

Source: specification of transactions, section "Rebase Mechanism"; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class RebaseContext:
    """What rebasing may look at, and the one thing it writes.

    ``current`` is the newest version, which the rebased transaction will follow. ``load_version``
    gives any version of this branch. ``read_deletions`` gives the deletion vector of a fragment
    (of ``current`` or older), empty if nothing is deleted. ``write_deletions`` writes a vector as a
    new durable deletion file: arguments are fragment id, read version and vector.
    ``affected_rows``: row offsets by fragment id that our operation deletes, None if not known.
    """

    current: Manifest
    indices: tuple[IndexMetadata, ...]
    load_version: Callable[[int], tuple[Manifest, tuple[IndexMetadata, ...]]]
    read_deletions: Callable[[Fragment], DeletionVector]
    write_deletions: Callable[[int, int, DeletionVector], DeletionFile]
    affected_rows: Mapping[int, DeletionVector] | None = None


def rebase(
    transaction: Transaction, theirs: Sequence[tuple[int, Transaction]], ctx: RebaseContext
) -> Transaction:
    """Return the transaction made to fit ``ctx.current``; unchanged if ``theirs`` is empty.

    ``theirs`` holds (version, transaction) of every version after ``transaction.read_version``,
    oldest first. Raises CommitConflictError, RetryableCommitConflictError.
    """
    raise NotImplementedError
