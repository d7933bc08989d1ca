"""The three versions of a merge: their common ancestor, and what happened on each side since.

A branch is a line of versions that started from a version of another line. Lines are known by the
id of their creation (the last part of a branch's identifier), so that a branch that was deleted and
made again under the same name is not taken for the old one.

The base of a merge is the latest version that both sides hold: the fork; or the version of the
source that the target has merged last; or the version of the target that the source has.

``Shared`` says how far two versions number things alike. Versions of one line of history (a branch
and its parents) share every number. Versions of two branches share those that were given before the
fork; later ones were given twice, for different things.

Limits: the fragments of the three versions are decoded, and all transactions since the fork are
read; of versions that were cleaned up, or lie on a branch that was deleted, nothing is known. Of a
branch without identifier (old writers) the name and the time of its creation have to do. After
merges both ways at the same time, the last version merged into the target counts.
Source: message Manifest of lance.table. Spec page "branch and tag"; identifiers as pylance 14.0.2
writes them. Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import (
    InvalidInputError,
    NotFoundError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.merge_record import (
    MERGE,
    MergeRecord,
    marks_in,
    record_of,
)
from lance_nb.format.refs import Branch
from lance_nb.session.session import Session
from lance_nb.table import refs
from lance_nb.table.ancestry import Ancestry, Line
from lance_nb.table.deletions import read_deletions
from lance_nb.table.diff.fragments import Places
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.value_classes import dataclass
from lance_nb.writing.progress import StepCounter


@dataclass(frozen=True, slots=True)
class Side:
    """One version: its fragments by id, its indices, and where its files are."""

    snapshot: Snapshot
    indices: tuple[IndexMetadata, ...]
    fragments: Mapping[int, Fragment]
    places: Places

    @classmethod
    def of(cls, snapshot: Snapshot, indices: tuple[IndexMetadata, ...]) -> Side:
        """Return a version as a side. Raises CorruptFileError when two fragments have one id."""
        snapshot.manifest.fragments.check_ids_differ()
        fragments = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
        return cls(snapshot, indices, fragments, Places(snapshot.locations))

    @property
    def manifest(self) -> Manifest:
        """The manifest."""
        return self.snapshot.manifest

    @property
    def branch(self) -> str | None:
        """The branch, None on main."""
        return self.snapshot.branch

    @property
    def version(self) -> int:
        """The version number."""
        return self.snapshot.version

    @property
    def label(self) -> str:
        """Branch and version, with a colon between."""
        return f"{self.branch or 'main'}:{self.version}"

    @property
    def max_fragment_id(self) -> int:
        """The highest fragment id that was given up to this version, -1 if none was."""
        highest = self.manifest.max_fragment_id
        return max(self.fragments, default=-1) if highest is None else highest

    @property
    def max_field_id(self) -> int:
        """The highest field id that a version up to this one can have given, -1 if none can."""
        allocated = self.manifest.max_allocated_field_id
        in_files = (
            field_id
            for fragment in self.fragments.values()
            for file in fragment.files
            for field_id in file.fields
        )
        return max(
            self.manifest.schema.max_field_id,
            -1 if allocated is None else allocated,
            max(in_files, default=-1),
        )

    @property
    def has_row_ids(self) -> bool:
        """Whether rows have stable ids."""
        return bool(self.manifest.reader_feature_flags & STABLE_ROW_IDS)

    def num_rows(self, fragment: Fragment) -> int:
        """Return the physical rows of a fragment, as its data file has them."""
        return confirmed_rows(self.snapshot, fragment)

    def deleted(self, fragment: Fragment) -> Ints:
        """Return the offsets of the deleted rows, ascending."""
        if fragment.deletion_file is None:
            return np.empty(0, np.int64)
        deletions = read_deletions(
            self.snapshot.locations, self.snapshot.deletions, fragment, self.num_rows(fragment)
        )
        return np.empty(0, np.int64) if deletions is None else deletions.offsets().astype(np.int64)

    def live(self, fragment: Fragment) -> Ints:
        """Return the offsets of the live rows, ascending."""
        every = np.arange(self.num_rows(fragment), dtype=np.int64)
        return np.delete(every, self.deleted(fragment))


@dataclass(frozen=True, slots=True)
class Shared:
    """Up to which fragment id and field id, and below which row id, two versions number alike.

    None: they always do.
    """

    fragment_id: int | None = None
    field_id: int | None = None
    row_id: int | None = None

    def has_fragment(self, fragment_id: int) -> bool:
        """Whether this fragment id means the same in both."""
        return self.fragment_id is None or fragment_id <= self.fragment_id

    def has_field(self, field_id: int) -> bool:
        """Whether this field id means the same in both."""
        return self.field_id is None or field_id <= self.field_id


ALL_SHARED = Shared()


@dataclass(frozen=True, slots=True)
class Step:
    """One version of a side since the base; ``transaction`` None: it is unknown what it did.

    ``mark``: the merge that made a version without transaction, as the configuration names it.
    """

    branch: str | None
    version: int
    transaction: Transaction | None
    mark: MergeRecord | None = None

    @property
    def record(self) -> MergeRecord | None:
        """The merge, pick or revert that made this version."""
        return self.mark if self.transaction is None else record_of(self.transaction.properties)

    @property
    def label(self) -> str:
        """Branch and version, with a colon between."""
        return f"{self.branch or 'main'}:{self.version}"


@dataclass(frozen=True, slots=True)
class History:
    """What happened on one side since the base, and how to look at a version of it."""

    steps: tuple[Step, ...]
    load: Callable[[str | None, int], Side]

    def arms(self) -> frozenset[str]:
        """Return the operations that happened; "unknown" for others."""
        return frozenset(
            "unknown" if step.transaction is None else step.transaction.operation.arm
            for step in self.steps
        )

    def operations_of_others(self) -> frozenset[str]:
        """Return the operations without those that merges were recorded as, or a restore undid.

        A merge of columns or indices may be recorded as an overwrite, and replaces nothing. Nor
        does an overwrite after which a version before it was restored.
        """
        steps: list[Step] = []
        for step in self.steps:
            operation = None if step.transaction is None else step.transaction.operation
            if isinstance(operation, Restore):
                place = step.branch, operation.version
                steps = [
                    step for step in steps if step.branch != place[0] or step.version <= place[1]
                ]
            steps.append(step)
        return frozenset(
            "unknown" if step.transaction is None else step.transaction.operation.arm
            for step in steps
            if step.transaction is None or step.record is None
        )


@dataclass(frozen=True, slots=True)
class Renumbered:
    """The fields that one merge gave other ids: ids of its source -> ids in what it made.

    ``LEFT_OUT`` stands for fields that ``merged_version`` (branch, version) does not have; others
    kept their ids. ``num_steps_before`` counts the versions before it in the history of that side.
    """

    fields: Mapping[int, int]
    merged_version: tuple[str | None, int]
    num_steps_before: int

    def after(self, field_id: int) -> int:
        """Return the id that a field of the merge's source got."""
        return self.fields.get(field_id, field_id)


@dataclass(frozen=True, slots=True)
class Ends:
    """The versions of one three-way merge.

    ``untouched_until``: rows that the source updated in this version of its own, or before, are as
    the base has them. ``source_renumbered`` and ``target_renumbered``: the merge that brought the
    base to that side, None if the base lies on it or if that is not recorded.
    """

    base: Side
    source: Side
    target: Side
    base_source: Shared
    base_target: Shared
    source_target: Shared
    source_history: History
    target_history: History
    untouched_until: int
    source_renumbered: Renumbered | None = None
    target_renumbered: Renumbered | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """The base of a merge. ``in_source``, ``in_target``: on which lines of history it lies."""

    line: Line
    in_source: bool = True
    in_target: bool = True


def fork_of(source: Ancestry, target: Ancestry) -> Line:
    """Return the latest line that both come from, up to the version that both hold."""
    theirs = {line.identity: line for line in target}
    for line in source:
        other = theirs.get(line.identity)
        if other is not None:
            name = line.branch if not line.is_gone else other.branch
            is_gone = line.is_gone and other.is_gone
            return Line(line.identity, name, min(line.version, other.version), is_gone)
    raise InvalidInputError("these branches have no common ancestor")


Merges = tuple[tuple[int, MergeRecord], ...]
"""Merges in the history of one side: (version that the merge made, its record)."""


def branch_merges(records: Iterable[tuple[int, MergeRecord | None]]) -> Merges:
    """Return the merges of branches: picked and reverted changes move no base."""
    return tuple(
        (version, record)
        for version, record in records
        if record is not None and record.kind == MERGE
    )


def base_of(source: Ancestry, target: Ancestry, merges: tuple[Merges, Merges]) -> Base:
    """Return the base of a merge; ``merges`` are those in the source's and the target's history."""
    fork = Base(fork_of(source, target))
    into_target = _latest(source, merges[1], fork.line)
    into_source = _latest(target, merges[0], fork.line)
    if into_target is not None and into_source is not None:
        made_at, line = into_source  # the version of the source that holds ``line`` of the target
        later = line.identity == target[0].identity and line.version >= into_target[0]
        holds = into_target[1].identity == source[0].identity and into_target[1].version >= made_at
        if later and not holds:
            into_target = None
    if into_target is not None:
        return Base(into_target[1], in_target=False)
    if into_source is not None:
        return Base(into_source[1], in_source=False)
    return fork


def _latest(side: Ancestry, merges: Merges, fork: Line) -> tuple[int, Line] | None:
    """Return the newest version of a side that was merged, and where; None if the fork is."""
    best: tuple[int, int] | None = None
    latest: tuple[int, Line] | None = None
    depth_of_fork = next(depth for depth, line in enumerate(side) if line.identity == fork.identity)
    for made_at, record in merges:
        for depth, line in enumerate(side[: depth_of_fork + 1]):
            if line.identity != record.source_id or line.is_gone:
                continue
            version = min(line.version, record.source_version)
            if depth == depth_of_fork and version <= fork.version:
                continue
            if best is None or (-depth, version) > best:
                best = (-depth, version)
                latest = (made_at, Line(line.identity, line.branch, version))
    return latest


_AHEAD = 64  # transactions that are read at a time


@dataclass(frozen=True, slots=True)
class Repository:
    """Every version of every branch of a dataset."""

    session: Session
    progress: StepCounter = field(default_factory=lambda: StepCounter(None))

    def branches(self) -> Mapping[str, Branch]:
        """Return all branches by name."""
        return refs.list_branches(self.session.root)

    def load(self, branch: str | None, version: int | None) -> Side:
        """Read a version, None: the newest."""
        self.progress.expect(1)
        source = VersionSource(self.session.place(branch).slots)
        head = source.head(version or 0)
        if head is None:
            missing = VersionNotFoundError(self.home_uri(branch), version or "latest")
            raise self.session.without_versions(branch, missing)
        parsed = source.load(head.version if version is None else version)
        self.progress.step()
        return Side.of(self.session.snapshot(parsed.manifest, branch), parsed.indices)

    def transactions(
        self, branch: str | None, versions: Sequence[int]
    ) -> Iterator[Transaction | None]:
        """Read the transactions of versions, None for what is not known any more."""
        self.progress.expect(len(versions))
        for start in range(0, len(versions), _AHEAD):
            some = versions[start : start + _AHEAD]
            source = VersionSource(self.session.place(branch).slots)
            source.head(some[0])
            source.load_ahead(some)
            for version in some:
                self.progress.step()
                yield _transaction(source, version)

    def home_uri(self, branch: str | None) -> str:
        """Return where the folder of a branch is."""
        return self.session.home(branch).uri


def _transaction(source: VersionSource, version: int) -> Transaction | None:
    try:
        return source.transaction(version)
    except RetryableCommitConflictError:
        return None


def steps_from(repository: Repository, lines: Ancestry, start: Line) -> tuple[Step, ...]:
    """Return the versions that lead from ``start`` to the end of a line, oldest first."""
    depth = next(index for index, line in enumerate(lines) if line.identity == start.identity)
    steps: list[Step] = []
    first = start.version
    for line in reversed(lines[: depth + 1]):
        numbers = range(first + 1, line.version + 1)
        first = line.version
        if line.is_gone:
            steps += [Step(line.branch, number, None) for number in numbers]
            continue
        done = repository.transactions(line.branch, numbers)
        steps += [
            Step(line.branch, number, transaction)
            for number, transaction in zip(numbers, done, strict=True)
        ]
    return tuple(steps)


def records_of(steps: Sequence[Step]) -> Iterator[tuple[int, MergeRecord | None]]:
    """Return the records of merges among versions."""
    for step in steps:
        if step.transaction is not None or step.mark is not None:
            yield step.version, step.record


def marked_steps(steps: tuple[Step, ...], config: Mapping[str, str]) -> tuple[Step, ...]:
    """Name the merges among versions whose transactions are gone; ``config`` is the last one's.

    A version that no entry names was no merge, or one that a later merge of its source followed.
    """
    marks = {mark.target_version + 1: mark for mark in marks_in(config)}
    return tuple(
        replace(step, mark=marks.get(step.version)) if step.transaction is None else step
        for step in steps
    )


def own_steps(
    steps: Sequence[tuple[Step, ...]], lines: Sequence[Ancestry], base: Base, *, holds_base: bool
) -> tuple[Step, ...]:
    """Return what the first side did beyond the base; the second is the other one.

    On the side that holds the base, that is what came after it. On the other: what no merge has
    brought into the base, without merges of what the base holds.
    """
    mine, other = lines
    if holds_base:
        place = _place(mine, base.line.identity, base.line.version)
        return tuple(step for step in steps[0] if _place_of(mine, step) > place)
    until = _place(other, base.line.identity, base.line.version)
    merged_up_to = (-len(mine), 0)
    for step in steps[1]:
        record = _merge_of(step)
        if record is not None and _place_of(other, step) <= until:
            merged_up_to = max(merged_up_to, _place(mine, record.source_id, record.source_version))
    merged_up_to = _within(mine, merged_up_to)
    own = []
    for step in steps[0]:
        record = _merge_of(step)
        is_held = record is not None and (
            _holds(other, record.source_id, record.source_version)
            and _place(other, record.source_id, record.source_version) <= until
        )
        if _place_of(mine, step) > merged_up_to and not is_held:
            own.append(step)
    return tuple(own)


def renumbered_by(since_fork: Sequence[Step], own: Sequence[Step], base: Line) -> Renumbered | None:
    """Find the merge that brought the base to a side; ``own`` are its versions in the history."""
    for number, step in reversed(list(enumerate(since_fork))):
        record = _merge_of(step)
        if record is None or record.source_id != base.identity:
            continue
        if record.source_version < base.version or record.fields is None:
            return None
        earlier = {(step.branch, step.version) for step in since_fork[:number]}
        count = sum((step.branch, step.version) in earlier for step in own)
        return Renumbered(record.fields, (step.branch, step.version), count)
    return None


def _merge_of(step: Step) -> MergeRecord | None:
    record = step.record
    return record if record is not None and record.kind == MERGE else None


def _holds(lines: Ancestry, identity: str, version: int) -> bool:
    """Return whether a version lies on a line of history."""
    return any(line.identity == identity and version <= line.version for line in lines)


def _within(lines: Ancestry, place: tuple[int, int]) -> tuple[int, int]:
    """Go back to where a line was left: what its branch did afterwards is not on it."""
    depth, version = -place[0], place[1]
    return place if depth >= len(lines) else (-depth, min(version, lines[depth].version))


def _place(lines: Ancestry, identity: str, version: int) -> tuple[int, int]:
    """Return how far along a line of history a version is; before all of it if it is not on it."""
    depths = (index for index, line in enumerate(lines) if line.identity == identity)
    return -next(depths, len(lines)), version


def _place_of(lines: Ancestry, step: Step) -> tuple[int, int]:
    depths = (
        index for index, line in enumerate(lines) if not line.is_gone and line.branch == step.branch
    )
    return -next(depths, len(lines)), step.version


def load_line(repository: Repository, line: Line, lines: Sequence[Ancestry]) -> Side:
    """Load a version of a line; if it is gone, the first version of a branch that began there."""
    places = [] if line.is_gone else [line.branch]
    for side in lines:
        for child, parent in pairwise(side):
            if (parent.identity, parent.version) == (line.identity, line.version):
                places.append(child.branch)
    for branch in places:
        try:
            return repository.load(branch, line.version)
        except NotFoundError:
            continue
    reason = (
        "it is the base of this merge and was removed, so which side changed a row is not known. "
        "Bring the rows over with merge_insert and a key, and go on with a new branch; a tag keeps "
        "such a version in clean-ups of other programs"
    )
    raise VersionNotFoundError(repository.home_uri(line.branch), line.version, reason=reason)


def shared_since(fork: Side) -> Shared:
    """Return what two branches number alike: what was numbered before their fork."""
    return Shared(fork.max_fragment_id, fork.max_field_id, fork.manifest.next_row_id)


def uuids_of(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the ids of the transactions."""
    return tuple(step.transaction.uuid for step in steps if step.transaction is not None)
