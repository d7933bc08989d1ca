"""Clean up old versions, or say what that would delete.

Source: ``cleanup_old_versions`` and ``explain_cleanup_old_versions`` of pylance 14.0.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from lance_nb.dataset.session import Session
from lance_nb.errors import CleanupError, LanceError
from lance_nb.format.layout import branch_root
from lance_nb.shown_text import visible
from lance_nb.table.retention import RetentionPolicy, auto_cleanup_policy
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.cleanup import (
    Cleanup,
    CleanupExplanation,
    CleanupOptions,
    CleanupStats,
    explanation_of,
)

_log = logging.getLogger(__name__)

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
        raise CleanupError(f"delete_rate_limit must be at least 1, not {rate_limit}")
    if concurrency is not None and not 1 <= concurrency <= CONCURRENCY_MAX:
        raise CleanupError(
            f"delete_concurrency must be between 1 and {CONCURRENCY_MAX}, not {concurrency}"
        )
    return CleanupOptions(concurrency, rate_limit, progress=progress)


def clean(
    session: Session, snapshot: Snapshot, policy: RetentionPolicy, options: CleanupOptions
) -> CleanupStats:
    """Delete what the policy lets go."""
    return _cleanup(session, snapshot.branch, snapshot.version, policy, options).run()


def clean_after(session: Session, made: Snapshot, read_version: int) -> None:
    """Clean up after a commit if the configuration asks for it now; as pylance does.

    The commit has landed: that cleaning up failed is logged, and undoes nothing. Versions from the
    one on that the commit was planned on stay.
    """
    try:
        policy = auto_cleanup_policy(made.version, made.manifest.config)
        if policy is not None:
            first_kept = min(read_version or made.version, made.version)
            _cleanup(session, made.branch, first_kept, policy, CleanupOptions()).run()
    except LanceError as error:
        _log.warning(
            "version %d of %s was committed, but the automatic cleanup that its configuration "
            "requests (lance.auto_cleanup) failed: %s",
            made.version,
            visible(session.root.uri),
            visible(str(error)),
        )


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
    cleanup = _cleanup(session, snapshot.branch, snapshot.version, policy, options)
    plan, survey = cleanup.explain()
    return explanation_of(
        plan, survey, snapshot.version, max_files=max_files, include_files=include_files
    )


def _cleanup(session: Session, branch: str | None, version: int, *how: Any) -> Cleanup:
    return Cleanup(session.root, "" if branch is None else branch_root(branch), version, *how)
