"""Rebase: make our transaction fit what others have committed since it was made.

Every transaction since our read version is checked (conflicts.py). Where only deletions of the same
fragment meet, the deletion vectors are merged into a new deletion file (deletion_merging.py); where
an index meets an update of its column, the updated fragments leave its coverage (index_merging.py).
A rebased Delete or Update carries the version it was rebased onto as its read version, as pylance
has it.

Merge our deletions with those that others have committed in the same fragments.

Possible when the fragment is still there with the same data files, we know which rows we delete,
and nobody else deleted one of them. The union of both becomes a new deletion file; a fragment that
has no row left is removed.

Make an index fit what happened while it was built, and merge the two singleton indices.

An index whose field was rewritten in place leaves the fragments concerned. The fragment-reuse index
and the index of write-ahead logs exist once: whoever commits second takes up what the other added.

Limits: a transaction that was committed unchanged over others keeps the read version it had. A
Rewrite's message does not hold its fragment-reuse index; that it changed it is seen in the versions
before and after.
Source: specification of transactions, section "Rebase Mechanism"; pylance 14.0.2. Specification of
transactions, "Rebase Mechanism"; pylance 14.0.2. Specification of transactions; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.transactions.conflict_grid import Conflict, check, conflict_error
from lance_nb.transactions.conflict_rules import Circumstances, Verdict
from lance_nb.transactions.deletion_merging import DeletionMerge, merge_deletions
from lance_nb.transactions.index_merging import (
    rebase_index,
    rebase_rewrite,
    with_reuse_index,
)
from lance_nb.transactions.inserted_rows import both_insert
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.transaction import Transaction

Theirs = Sequence[tuple[int, Transaction]]


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


def rebase(transaction: Transaction, theirs: Theirs, ctx: RebaseContext) -> Transaction:
    """Return the transaction made to fit ``ctx.current``; unchanged if ``theirs`` is empty.

    ``theirs`` holds (version, transaction) of every version that our transaction has not been made
    to fit yet, oldest first. Raises CommitConflictError, RetryableCommitConflictError.
    """
    if not theirs:
        return transaction
    seen: list[tuple[int, Operation]] = []
    for version, other in theirs:
        operation = other.operation
        if isinstance(operation, Rewrite) and _minds_reuse_index(transaction.operation):
            operation = with_reuse_index(operation, version, ctx.load_version)
        conflict = check(
            transaction.operation, operation, _circumstances(transaction, version, operation, ctx)
        )
        if conflict.verdict >= Verdict.RETRYABLE:
            raise conflict_error(conflict, transaction.operation, operation, version)
        seen.append((version, operation))
    return _rebased(transaction, seen, ctx)


def _minds_reuse_index(ours: Operation) -> bool:
    """Tell whether it matters what a rewrite of others did to the fragment-reuse index."""
    return ours.arm == "create_index" or (
        isinstance(ours, Rewrite) and ours.frag_reuse_index is not None
    )


def _rebased(
    transaction: Transaction, theirs: Sequence[tuple[int, Operation]], ctx: RebaseContext
) -> Transaction:
    ours = transaction.operation
    if isinstance(ours, Delete | Update):
        merge = DeletionMerge(
            ctx.current, ctx.read_deletions, ctx.write_deletions, ctx.affected_rows
        )
        touched = _touched_by(theirs)
        mine = {one.id for one in ours.updated_fragments}
        operation, problem = merge_deletions(ours, mine & touched.keys(), merge)
        if problem is not None:
            version, other = touched[problem.fragment_id]
            conflict = Conflict(Verdict.RETRYABLE, problem.text)
            raise conflict_error(conflict, ours, other, version)
        return replace(transaction, operation=operation, read_version=ctx.current.version)
    if isinstance(ours, CreateIndex):
        return replace(transaction, operation=rebase_index(ours, theirs, ctx.indices))
    if isinstance(ours, Rewrite):
        return replace(transaction, operation=rebase_rewrite(ours, theirs))
    return transaction


def _touched_by(theirs: Sequence[tuple[int, Operation]]) -> dict[int, tuple[int, Operation]]:
    """Return for each fragment that was touched the last version and operation that did."""
    return {
        fragment: (version, other)
        for version, other in theirs
        for fragment in other.footprint().touched
    }


def _circumstances(
    transaction: Transaction, version: int, theirs: Operation, ctx: RebaseContext
) -> Circumstances:
    return Circumstances(
        knows_rows=ctx.affected_rows is not None,
        both_insert=both_insert(
            transaction.operation, transaction.read_version, theirs, version, ctx.load_version
        ),
    )
