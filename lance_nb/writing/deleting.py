"""Delete the rows that pass a filter.

Source: ``LanceDataset.delete`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lance_nb.format.fragment import Fragment
from lance_nb.session.session import Session
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.deletion_plan import DeletionPlan, FragmentDeletion, plan_deletion
from lance_nb.writing.staged import combine

Progress = Callable[[int, int], object]
# How many rows are looked at between two calls of a progress callback.
ROWS_PER_PART = 1_000_000


def plan(
    snapshot: Snapshot, predicate: Any, fragments: Sequence[Fragment] | None = None
) -> DeletionPlan:
    """Find the rows that pass a filter, in all fragments or some. Raises PredicateError."""
    return plan_deletion(snapshot, check(snapshot, predicate), fragments)


def check(snapshot: Snapshot, predicate: Any) -> Filter:
    """Check a filter before anything is read, and return it. Raises PredicateError."""
    return compile_filter(predicate, project(snapshot.manifest.schema, None).schema)


def _planned(snapshot: Snapshot, predicate: Any, progress: Progress) -> DeletionPlan:
    """Find the rows part by part, and tell how many rows have been looked at."""
    condition = check(snapshot, predicate)
    fragments = list(snapshot.manifest.fragments)
    total = sum(fragment.physical_rows for fragment in fragments)
    deletions: list[FragmentDeletion] = []
    part: list[Fragment] = []
    done = in_part = 0
    for position, fragment in enumerate(fragments, 1):
        part.append(fragment)
        in_part += fragment.physical_rows
        if in_part >= ROWS_PER_PART or position == len(fragments):
            deletions += plan_deletion(snapshot, condition, part).fragments
            done += in_part
            part, in_part = [], 0
            progress(done, total)
    return DeletionPlan(snapshot.version, condition.text, tuple(deletions))


def delete(
    session: Session,
    snapshot: Snapshot,
    predicate: Any,
    *,
    max_retries: int = 10,
    timeout_s: float = 30.0,
    progress: Progress | None = None,
) -> tuple[Snapshot, int]:
    """Delete and commit; return the new version and the number of rows that it lost.

    Raises PredicateError, CommitConflictError, TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, int]:
        planned = plan(base, predicate) if progress is None else _planned(base, predicate, progress)
        staged = combine(base, [planned])
        return commit_staged(session, base.branch, staged), planned.num_rows

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)
