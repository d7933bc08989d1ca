"""Update rows: new values for columns, from SQL expressions, where a filter passes.

Source: ``LanceDataset.update`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import commit_staged, replanned
from lance_nb.dataset.verbs.writing import WriteRequest
from lance_nb.format.fragment import Fragment
from lance_nb.table.filtered_scan import RowChoice
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.row_rewrite import RowRewrite, Updates, check_updates, rewrite_rows
from lance_nb.transactions.staged import combine


def plan(
    snapshot: Snapshot, updates: Updates, where: Any, fragments: Sequence[Fragment] | None = None
) -> RowRewrite:
    """Write the changed rows of all fragments or some to new files; nothing is committed."""
    only = None if fragments is None else tuple(fragments)
    choice = RowChoice(check(snapshot, updates, where), only)
    options = WriteRequest().write_options(storage_version(snapshot.manifest))
    return rewrite_rows(snapshot, updates, choice, options)


def check(snapshot: Snapshot, updates: Updates, where: Any) -> Filter | None:
    """Check an update before anything is read, and return its filter.

    Raises PredicateError, ColumnNotFoundError, InvalidInputError, NotSupportedError.
    """
    check_updates(snapshot.manifest.schema, updates)
    if where is None:
        return None
    return compile_filter(where, project(snapshot.manifest.schema, None).schema)


def update(
    session: Session,
    snapshot: Snapshot,
    updates: Updates,
    where: Any,
    *,
    max_retries: int,
    timeout_s: float,
) -> tuple[Snapshot, int]:
    """Update and commit; return the new version and the number of rows that changed.

    Raises PredicateError, InvalidInputError,
    CommitConflictError, TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, int]:
        planned = plan(base, updates, where)
        staged = combine(base, [planned])
        return commit_staged(session, base.branch, staged), planned.num_rows

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)
