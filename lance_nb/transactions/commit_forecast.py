"""Forecast a commit: run its conflict check on what others have committed, and write nothing.

The check is that of ``rebase``, deletion vectors included, and the next version is built as the
commit would build it. So a forecast and a commit that follows it at once agree. Where both delete
or update the same rows, the forecast says which version took which of them.

Limits: the versions since ours are read, and the deletion files of the fragments that both change;
a commit reads the same. Versions that are committed after the forecast are not in it.
Source: commit.py and rebase.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    RetryableCommitConflictError,
)
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, Fragment
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Circumstances, Conflict, Verdict, enumerate_ids
from lance_nb.transactions.deletion_files import PendingDeletions, read_deletion_file
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.new_version import build
from lance_nb.transactions.operation import ApplyContext, Operation
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.rebase import (
    RebaseContext,
    both_insert,
    gap_problem,
    rebase,
    with_reuse_index,
)
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.format.layout import ManifestName
    from lance_nb.transactions.commit_options import CommitPlace

Progress = Callable[[int, int], object]
_OTHER_ROWS = "both change {}, in different rows"


@dataclass(frozen=True, slots=True)
class Encounter:
    """A version that was committed since, and how our transaction gets along with it.

    ``operation`` is None when it is unknown what the version did. ``rows``: offsets of the rows
    that both change, by fragment id.
    """

    version: int
    operation: Operation | None
    conflict: Conflict
    rows: Mapping[int, Ints] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether ours can follow it."""
        return self.conflict.verdict


def _ignore(_done: int, _total: int) -> None:
    """Ignore progress."""


class CommitForecast:
    """The forecast for one transaction; ``affected_rows`` as for ``CommitOptions``.

    ``is_replanned``: a rewrite that its commit plans again on the newest version, so that all that
    counts is whether the rewritten fragments are as they were.
    """

    def __init__(
        self,
        place: CommitPlace,
        transaction: Transaction,
        affected_rows: Mapping[int, DeletionVector] | None = None,
        progress: Progress | None = None,
        *,
        is_replanned: bool = False,
    ) -> None:
        self._place, self._transaction = place, transaction
        self._is_replanned = is_replanned
        self._affected = affected_rows
        self._progress = progress or _ignore
        self._source = VersionSource(place.slots, place.locations)
        self._deletions: dict[tuple[int, DeletionFile], DeletionVector] = {}

    def run(self) -> tuple[Encounter, ...]:
        """Judge every version since ours, oldest first; a commit now fails if one is in its way.

        Raises CancelledError when ``progress`` does, StorageError, CorruptFileError.
        """
        read = self._transaction.read_version
        head = self._source.head(read)
        if head is None or head.version <= read:
            return ()
        if self._is_replanned and isinstance(self._transaction.operation, Rewrite):
            return tuple(self._unchanged(self._transaction.operation, head))
        encounters = list(self._pairs(head))
        if any(encounter.verdict >= Verdict.RETRYABLE for encounter in encounters):
            return tuple(encounters)
        readable = [encounter for encounter in encounters if encounter.operation is not None]
        return tuple(self._with_rows(encounters, readable, head))

    # --- pair by pair -----------------------------------------------------------------------------

    def _pairs(self, head: ManifestName) -> Iterator[Encounter]:
        first = self._transaction.read_version + 1
        self._source.load_ahead(range(first, head.version + 1))
        present = set(self._source.present_versions(first, head))
        total = head.version - first + 1
        gap = self._gap(head) if len(present) < total else None
        for version in range(first, head.version + 1):
            self._progress(version - first, total)
            if version in present:
                yield self._pair(version)
            else:
                yield Encounter(version, None, gap or Conflict(Verdict.COMPATIBLE))

    def _gap(self, head: ManifestName) -> Conflict:
        read = self._transaction.read_version
        before = self._source.load(read).manifest if self._source.has(read) else None
        current = self._source.load(head.version).manifest
        problem = gap_problem(self._transaction.operation, before, current)
        if problem is None:
            return Conflict(Verdict.COMPATIBLE, "it was cleaned up, and ours does not depend on it")
        return Conflict(Verdict.RETRYABLE, f"what it changed is not known: {problem}")

    def _pair(self, version: int) -> Encounter:
        ours, load = self._transaction.operation, self._source.snapshotted
        try:
            theirs = self._source.transaction(version).operation
        except RetryableCommitConflictError as error:
            return Encounter(version, None, Conflict(Verdict.RETRYABLE, str(error)))
        judged = theirs
        if isinstance(theirs, Rewrite) and isinstance(ours, Rewrite):
            judged = with_reuse_index(theirs, version, load)
        do_both_insert = both_insert(
            ours, self._transaction.read_version, theirs, version=version, load=load
        )
        circumstances = Circumstances(self._affected is not None, do_both_insert)
        return Encounter(version, theirs, check(ours, judged, circumstances))

    def _unchanged(self, ours: Rewrite, head: ManifestName) -> Iterator[Encounter]:
        """Judge versions by whether the fragments that ours rewrites stayed as they were."""
        old = {
            fragment.id: fragment for group in ours.all_groups for fragment in group.old_fragments
        }
        newest = self._source.load(head.version).manifest.fragments.with_ids(old)
        is_fine = newest == old
        first, seen = self._transaction.read_version + 1, old
        present = set(self._source.present_versions(first, head))
        for version in range(first, head.version + 1):
            self._progress(version - first, head.version + 1 - first)
            if version not in present:
                yield Encounter(version, None, Conflict(Verdict.COMPATIBLE, "it was cleaned up"))
                continue
            now = self._source.load(version).manifest.fragments.with_ids(old)
            changed = {number for number in old if now.get(number) != seen.get(number)}
            conflict = Conflict(Verdict.COMPATIBLE)
            if changed and not is_fine:
                shown = enumerate_ids("fragment", changed)
                conflict = Conflict(
                    Verdict.RETRYABLE, f"theirs changes {shown}, which ours rewrites"
                )
            yield Encounter(version, self._operation(version), conflict)
            seen = now

    def _operation(self, version: int) -> Operation | None:
        try:
            return self._source.transaction(version).operation
        except RetryableCommitConflictError:
            return None

    # --- rows, and the version that would be made -------------------------------------------------

    def _with_rows(
        self, encounters: Sequence[Encounter], readable: Sequence[Encounter], head: ManifestName
    ) -> Iterator[Encounter]:
        """Do what the commit does after the pairs: merge deletions, and build the version."""
        problem = self._rehearse(readable, head)
        shared = (
            {}
            if problem is None
            else {encounter.version: self._shared_rows(encounter) for encounter in readable}
        )
        is_other = problem is not None and not any(shared.values())
        blamed = self._blamed(readable, problem) if problem is not None and is_other else None
        for encounter in encounters:
            rows = shared.get(encounter.version)
            if rows:
                yield Encounter(encounter.version, encounter.operation, _same_rows(rows), rows)
            elif encounter is blamed and problem is not None:
                yield Encounter(encounter.version, encounter.operation, _conflict_of(problem))
            elif encounter.verdict is Verdict.REBASABLE and self._common(encounter):
                where = enumerate_ids("fragment", self._common(encounter))
                merged = Conflict(Verdict.REBASABLE, _OTHER_ROWS.format(where))
                yield Encounter(encounter.version, encounter.operation, merged)
            else:
                yield encounter

    def _common(self, encounter: Encounter) -> set[int]:
        """Return the fragments in which both delete rows."""
        ours = self._transaction.operation
        if not isinstance(ours, Delete | Update) or encounter.operation is None:
            return set()
        mine = {fragment.id for fragment in ours.updated_fragments}
        return mine & set(encounter.operation.footprint().touched)

    def _shared_rows(self, encounter: Encounter) -> dict[int, Ints]:
        """Return which of our rows a version deleted, by fragment; none if that is not known."""
        common = self._common(encounter)
        if not common or not self._source.has(encounter.version - 1):
            return {}
        before = self._source.load(encounter.version - 1).manifest
        after = self._source.load(encounter.version).manifest
        old, new = before.fragments.with_ids(common), after.fragments.with_ids(common)
        rows_by_fragment = {}
        for number in sorted(common & old.keys() & new.keys()):
            self._progress(0, 0)
            rows = (self._affected or {}).get(number)
            if rows is None or old[number].deletion_file == new[number].deletion_file:
                continue
            offsets = rows.offsets()
            newly_deleted = self._deleted(after.version, new[number]).contains(offsets)
            newly_deleted &= ~self._deleted(before.version, old[number]).contains(offsets)
            if newly_deleted.any():
                rows_by_fragment[number] = offsets[newly_deleted].astype(np.int64)
        return rows_by_fragment

    def _deleted(self, version: int, fragment: Fragment) -> DeletionVector:
        if fragment.deletion_file is None:
            return DeletionVector.of(())
        key = (fragment.id, fragment.deletion_file)
        if key not in self._deletions:
            locations = self._place.locations(self._source.load(version).manifest)
            self._deletions[key] = read_deletion_file(locations, fragment)
        return self._deletions[key]

    def _rehearse(self, encounters: Sequence[Encounter], head: ManifestName) -> LanceError | None:
        """Rebase and build in memory; return the error that the commit would raise."""
        current = self._source.load(head.version)
        pending = PendingDeletions()
        context = RebaseContext(
            current.manifest,
            current.indices,
            self._source.snapshotted,
            read_deletions=lambda fragment: self._deleted(head.version, fragment),
            write_deletions=pending.add,
            affected_rows=self._affected,
        )
        theirs = [
            (encounter.version, self._source.transaction(encounter.version))
            for encounter in encounters
        ]
        apply = ApplyContext(
            current.manifest,
            current.indices,
            self._source.snapshotted,
            Environment().clock(),
            open_snapshot=self._place.snapshot,
        )
        try:
            build(rebase(self._transaction, theirs, context), apply)
        except (
            CommitConflictError,
            RetryableCommitConflictError,
            InvalidInputError,
            NotSupportedError,
        ) as error:
            return error
        return None

    def _blamed(self, encounters: Sequence[Encounter], problem: LanceError) -> Encounter | None:
        """Return the version that an error names, else the last one that touches our fragments."""
        text = str(problem)
        for encounter in encounters:
            if f" version {encounter.version}: " in text:
                return encounter
        touching = [encounter for encounter in encounters if self._common(encounter)]
        return touching[-1] if touching else encounters[-1] if encounters else None


def _same_rows(rows: Mapping[int, Ints]) -> Conflict:
    number = sum(offsets.size for offsets in rows.values())
    where = enumerate_ids("fragment", rows)
    noun = "row" if number == 1 else "rows"
    return Conflict(Verdict.RETRYABLE, f"both change {number:,} {noun} of {where}")


def _conflict_of(error: LanceError) -> Conflict:
    retryable = isinstance(error, RetryableCommitConflictError)
    return Conflict(Verdict.RETRYABLE if retryable else Verdict.INCOMPATIBLE, str(error))
