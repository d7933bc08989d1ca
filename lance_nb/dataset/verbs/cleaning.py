"""Clean up old versions, or say what that would delete.

Source: ``cleanup_old_versions`` and ``explain_cleanup_old_versions`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from lance_nb.dataset.session import Session
from lance_nb.errors import CleanupError
from lance_nb.format.layout import branch_root
from lance_nb.table.retention import RetentionPolicy
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.cleanup import Cleanup, CleanupOptions
from lance_nb.transactions.cleanup_result import CleanupExplanation, CleanupStats, explanation_of

CONCURRENCY_MAX = 2**61 - 1

Progress = Callable[[int, int], object]


def rules(
    older_than: timedelta | None,
    retain_versions: int | None,
    versions: Collection[int] | None,
    **flags: bool,
) -> RetentionPolicy:
    """Return the rules by which versions go. Raises CleanupError."""
    return RetentionPolicy.of(older_than, retain_versions, versions, **flags)


def deleting(
    rate_limit: int | None, concurrency: int | None, progress: Progress | None
) -> CleanupOptions:
    """Return how files are deleted. Raises CleanupError."""
    if rate_limit is not None and rate_limit < 1:
        raise CleanupError(f"delete_rate_limit is at least 1, not {rate_limit}")
    if concurrency is not None and not 1 <= concurrency <= CONCURRENCY_MAX:
        raise CleanupError(
            f"delete_concurrency is between 1 and {CONCURRENCY_MAX}, not {concurrency}"
        )
    return CleanupOptions(concurrency, rate_limit, progress=progress)


def clean(
    session: Session, snapshot: Snapshot, policy: RetentionPolicy, options: CleanupOptions
) -> CleanupStats:
    """Delete what the policy lets go."""
    return _cleanup(session, snapshot, policy, options).run()


def explain(
    session: Session,
    snapshot: Snapshot,
    policy: RetentionPolicy,
    options: CleanupOptions,
    *,
    max_files: int | None = None,
    include_files: bool = True,
) -> CleanupExplanation:
    """Say what ``clean`` would delete, listing at most ``max_files`` files (None: all)."""
    plan, survey = _cleanup(session, snapshot, policy, options).explain()
    return explanation_of(
        plan, survey, snapshot.version, max_files=max_files, include_files=include_files
    )


def _cleanup(session: Session, snapshot: Snapshot, *how: Any) -> Cleanup:
    folder = "" if snapshot.branch is None else branch_root(snapshot.branch)
    return Cleanup(session.root, folder, snapshot.version, *how)
