"""Update rows: new values for columns, from SQL expressions, where a filter passes.

Source: ``LanceDataset.update`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.indices.search import row_choice
from lance_nb.session.session import Session
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.rewriting import (
    SAVED_BYTES_MIN,
    Updates,
    check_updates,
    columns_are_cheaper,
    find_rows,
    has_blobs,
    rewrite_rows,
    rewrite_values,
    updated_part,
)
from lance_nb.writing.staged import ColumnRewrite, RowRewrite, combine
from lance_nb.writing.writing import own_options

MODES = ("auto", "rows", "columns")


def plan(
    snapshot: Snapshot, updates: Updates, where: Any, fragments: Sequence[Fragment] | None = None
) -> RowRewrite:
    """Write the changed rows of all fragments or some to new files; nothing is committed."""
    only = None if fragments is None else tuple(fragments)
    choice = row_choice(snapshot, check(snapshot, updates, where), only)
    options = own_options(snapshot)
    return rewrite_rows(snapshot, updates, choice, options)


def plan_in_mode(
    snapshot: Snapshot,
    updates: Updates,
    where: Any,
    *,
    mode: str,
    progress: Progress | None = None,
    version: str | None = None,
) -> RowRewrite | ColumnRewrite:
    """Write what changes as whole rows or as columns, whatever is asked for or cheaper.

    ``version`` is the name of the file version, by default the dataset's.
    Raises as ``check`` does; InvalidInputError for a mode that does not exist.
    """
    if mode not in MODES:
        raise InvalidInputError(f"mode {mode!r} is not one of {', '.join(map(repr, MODES))}")
    schema = snapshot.manifest.schema
    may_be_columns = mode != "rows" and set(updates) < set(schema.names)
    by_columns = mode == "columns"
    choice = row_choice(snapshot, check(snapshot, updates, where))
    options = own_options(snapshot, version)
    size_bytes = int(snapshot.manifest.fragments.counts().size_bytes.sum())
    is_small = size_bytes < SAVED_BYTES_MIN and not has_blobs(schema)  # blob files may be large
    if progress is None and not by_columns and (is_small or not may_be_columns):
        return rewrite_rows(snapshot, updates, choice, options)
    row_set = find_rows(snapshot, choice)
    part = updated_part(schema, updates)
    counted = [(fragment, int(rows.size)) for fragment, rows in row_set]
    counter = ProgressCounter(sum(count for _, count in counted), progress).add
    cheaper = may_be_columns and not is_small and columns_are_cheaper(snapshot, counted, part)
    if by_columns or cheaper:
        return rewrite_values(snapshot, updates, row_set, options, progress=counter)
    return rewrite_rows(
        snapshot, updates, choice, options=options, touched=row_set, progress=counter
    )


def check(snapshot: Snapshot, updates: Updates, where: Any) -> Filter | None:
    """Check an update before anything is read, and return its filter.

    Raises PredicateError, ColumnNotFoundError, InvalidInputError.
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
    mode: str,
    max_retries: int,
    timeout_s: float,
    progress: Progress | None = None,
    version: str | None = None,
) -> tuple[Snapshot, int]:
    """Update and commit; return the new version and the number of rows that changed.

    Raises PredicateError, InvalidInputError,
    CommitConflictError, TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, int]:
        planned = plan_in_mode(base, updates, where, mode=mode, progress=progress, version=version)
        staged = combine(base, [planned])
        return commit_staged(session, base.branch, staged), planned.num_rows

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)
