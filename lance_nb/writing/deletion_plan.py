"""Which rows a predicate deletes, and the operation that deletes them.

Rows are found by indices where one answers the predicate; otherwise its columns are scanned once,
in windows. A fragment that loses its last row is dropped;
of the others, the deletion vector grows.

Limits: memory holds one window of the scan and the vectors.
Source: message ``Transaction.Delete`` of lance.table; ``LanceDataset.delete`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import packed_bits
from lance_nb.encodings.base import Ints
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import Fragment
from lance_nb.indices.search import row_choice
from lance_nb.table.deletions import read_deletions
from lance_nb.table.filtered_scan import RowChoice, Selected, passing_bits
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.predicate import Filter
from lance_nb.table.projection import project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.deletion_files import PendingDeletions
from lance_nb.transactions.operations.delete import Delete
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class FragmentDeletion:
    """Rows that one fragment loses.

    ``rows`` are the offsets that are deleted now, ``merged`` those and the ones deleted before.
    """

    fragment: Fragment
    rows: DeletionVector
    merged: DeletionVector

    @property
    def is_whole(self) -> bool:
        """Whether no row is left."""
        return len(self.rows) == self.fragment.num_rows


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """Rows to delete, by fragment, in the order of the scan."""

    read_version: int
    predicate: str
    fragments: tuple[FragmentDeletion, ...]

    @property
    def num_rows(self) -> int:
        """Rows that are deleted."""
        return sum(len(deletion.rows) for deletion in self.fragments)

    @property
    def affected_rows(self) -> Mapping[int, DeletionVector]:
        """Offsets that are deleted, by fragment id."""
        return {deletion.fragment.id: deletion.rows for deletion in self.fragments}

    def changes(self, pending: PendingDeletions) -> tuple[tuple[Fragment, ...], tuple[int, ...]]:
        """Return the fragments that change and the ids of those that vanish.

        The vectors of the fragments that change are added to ``pending``.
        """
        updated, removed = [], []
        for deletion in self.fragments:
            if deletion.is_whole:
                removed.append(deletion.fragment.id)
                continue
            file = pending.add(deletion.fragment.id, self.read_version, deletion.merged)
            updated.append(replace(deletion.fragment, deletion_file=file))
        return tuple(updated), tuple(removed)

    def operation(self, pending: PendingDeletions) -> Delete:
        """Return the operation."""
        updated, removed = self.changes(pending)
        return Delete(updated, removed, self.predicate)


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
    mask = np.zeros(confirmed_rows(snapshot, fragment), np.bool_)
    mask[offsets] = True
    rows = DeletionVector.from_mask(mask)
    deleted = _deleted(snapshot, fragment)
    return FragmentDeletion(fragment, rows, rows if deleted is None else rows | deleted)


def _deleted(snapshot: Snapshot, fragment: Fragment) -> DeletionVector | None:
    num_rows = confirmed_rows(snapshot, fragment)
    return read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)


def united_deletions(plans: Sequence[DeletionPlan]) -> DeletionPlan:
    """Delete what any of the plans deletes."""
    if len(plans) == 1:
        return plans[0]
    by_fragment: dict[int, FragmentDeletion] = {}
    for deletion in chain.from_iterable(plan.fragments for plan in plans):
        united = by_fragment.get(deletion.fragment.id, deletion)
        rows, merged = united.rows | deletion.rows, united.merged | deletion.merged
        by_fragment[deletion.fragment.id] = FragmentDeletion(deletion.fragment, rows, merged)
    texts = list(dict.fromkeys(plan.predicate for plan in plans))
    text = texts[0] if len(texts) == 1 else " OR ".join(f"({term})" for term in texts)
    return DeletionPlan(plans[0].read_version, text, tuple(by_fragment.values()))
