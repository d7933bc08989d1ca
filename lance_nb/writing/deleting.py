"""Delete the rows that pass a filter.

Rows are found by indices where one answers the predicate; otherwise its columns are scanned once,
in windows. A fragment that loses its last row is dropped; of the others, the deletion vector grows.

Limits: memory holds one window of the scan and the vectors.
Source: message ``Transaction.Delete`` of lance.table; ``LanceDataset.delete`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import packed_bits
from lance_nb.encodings.base import Ints
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import Fragment
from lance_nb.indices.search import row_choice
from lance_nb.session.session import Session
from lance_nb.table.deletions import read_deletions
from lance_nb.table.filtered_scan import RowChoice, Selected, passing_bits
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.staged import DeletionPlan, FragmentDeletion, combine


def plan_deletion(
    snapshot: Snapshot, condition: Filter, fragments: Sequence[Fragment] | None = None
) -> DeletionPlan:
    """Find the rows that pass a filter, in all fragments or some.

    Raises PredicateError, CorruptFileError, StorageError.
    """
    among = list(snapshot.manifest.fragments) if fragments is None else fragments
    chosen = row_choice(snapshot, condition, None if fragments is None else tuple(fragments))
    if chosen.answer is not None:
        indexed = _rows_by_fragment(snapshot, chosen)
        named = tuple(deletion_of(snapshot, fragment, offsets) for fragment, offsets in indexed)
        return DeletionPlan(snapshot.version, condition.text, named)
    whole = [fragment for fragment in among if _is_whole(fragment)]
    partial_fragments = tuple(fragment for fragment in among if not _is_whole(fragment))
    plans = {plan.fragment.id: plan for plan in _deletions_of_whole(snapshot, condition, whole)}
    for fragment, rows in _rows_by_fragment(snapshot, RowChoice(condition, partial_fragments)):
        plans[fragment.id] = deletion_of(snapshot, fragment, rows)
    plans_of_fragments = tuple(plans[fragment.id] for fragment in among if fragment.id in plans)
    return DeletionPlan(snapshot.version, condition.text, plans_of_fragments)


def _is_whole(fragment: Fragment) -> bool:
    """Return whether no row is deleted yet: then what a filter says of a row is all there is."""
    has_statistics = any(file.is_legacy for file in fragment.files)  # which may spare pages
    return fragment.deletion_file is None and not has_statistics


def _deletions_of_whole(
    snapshot: Snapshot, condition: Filter, fragments: Sequence[Fragment]
) -> Iterator[FragmentDeletion]:
    """Return what fragments without deleted rows lose; the filter's bits are kept as bits."""
    passing = passing_bits(snapshot, condition, fragments)
    for _, pieces in groupby(passing, key=lambda pair: pair[0].id):
        listed = list(pieces)
        bits = pa.concat_arrays([mask for _, mask in listed])
        if bits.true_count:
            rows = DeletionVector.from_bits(packed_bits(bits))
            yield FragmentDeletion(listed[0][0], rows, rows)


def plan_offsets(snapshot: Snapshot, fragment: Fragment, offsets: Ints) -> DeletionPlan:
    """Delete rows of one fragment by their offset in it; those deleted already do not count."""
    deleted = _deleted(snapshot, fragment)
    fresh = offsets if deleted is None else offsets[~deleted.contains(offsets)]
    plans = (deletion_of(snapshot, fragment, fresh),) if fresh.size else ()
    return DeletionPlan(snapshot.version, "", plans)


def _rows_by_fragment(snapshot: Snapshot, choice: RowChoice) -> Iterator[tuple[Fragment, Ints]]:
    rows = select_rows(snapshot, choice, project(snapshot.manifest.schema, []))
    for _, windows in groupby(rows, key=attrgetter("fragment.id")):
        windows_of_fragment: list[Selected] = list(windows)
        yield (
            windows_of_fragment[0].fragment,
            np.concatenate([selection.physical for selection in windows_of_fragment]),
        )


def deletion_of(snapshot: Snapshot, fragment: Fragment, offsets: Ints) -> FragmentDeletion:
    """Return what a fragment loses when live rows of it are deleted, by their physical offset."""
    rows = DeletionVector.of(offsets)
    deleted = _deleted(snapshot, fragment)
    return FragmentDeletion(fragment, rows, rows if deleted is None else rows | deleted)


def _deleted(snapshot: Snapshot, fragment: Fragment) -> DeletionVector | None:
    num_rows = confirmed_rows(snapshot, fragment)
    return read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)


# How many rows are looked at between two calls of a progress callback.
ROWS_PER_PART = 1_000_000


def plan(
    snapshot: Snapshot,
    predicate: Any,
    fragments: Sequence[Fragment] | None = None,
    progress: Progress | None = None,
) -> DeletionPlan:
    """Find the rows that pass a filter, in all fragments or some. Raises PredicateError.

    ``progress``: the rows are looked for part by part, and it is called after each.
    """
    condition = check(snapshot, predicate)
    if progress is None:
        return plan_deletion(snapshot, condition, fragments)
    among = list(snapshot.manifest.fragments if fragments is None else fragments)
    counter = ProgressCounter(sum(fragment.physical_rows for fragment in among), progress)
    deletions: list[FragmentDeletion] = []
    part: list[Fragment] = []
    in_part = 0
    for position, fragment in enumerate(among, 1):
        part.append(fragment)
        in_part += fragment.physical_rows
        if in_part >= ROWS_PER_PART or position == len(among):
            deletions += plan_deletion(snapshot, condition, part).fragments
            counter.add(in_part)
            part, in_part = [], 0
    return DeletionPlan(snapshot.version, condition.text, tuple(deletions))


def check(snapshot: Snapshot, predicate: Any) -> Filter:
    """Check a filter before anything is read, and return it. Raises PredicateError."""
    return compile_filter(predicate, project(snapshot.manifest.schema, None).schema)


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
        planned = plan(base, predicate, progress=progress)
        staged = combine(base, [planned])
        return commit_staged(session, base.branch, staged), planned.num_rows

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)
