"""Which versions led to two versions that are compared: merge base, ancestors.

Branches share history up to where they were forked: the *ancestor* of two versions (their merge
base) is the newest version that both descend from. What happened since, on each side, are the
versions between.

Version numbers continue over a fork: the first version of a branch has the number of the version
that it was forked from. So every number up to the one in view stands for one version, if it still
exists (``VersionPath``).

Limits: the history of a branch whose record was deleted is not known. A ``VersionPath`` keeps a few
snapshots; its binary search reads as many manifests as the logarithm of the number of versions. A
condition that held, ended, and holds again because a version was restored is recognised if that
happened within ``RESTORES_WITHIN`` versions.
Source: spec page "branch and tag"; the records are in format/refs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from lance_nb.errors import RefNotFoundError, VersionNotFoundError
from lance_nb.format.transaction_summary import TransactionSummary
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.refs import MAIN, Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.history import VersionLog

_SNAPSHOTS_MAX = 32
RESTORES_WITHIN = 256  # versions that are searched for one that restored another
_ANCESTORS_MAX = 1000  # of branches of branches; a cycle of damaged records ends here


class Source(Protocol):
    """Where versions are loaded from: the session of an opened dataset."""

    @property
    def root(self) -> Store:
        """The root of the dataset."""
        ...

    def log(self, branch: str | None) -> VersionLog:
        """Return the versions of a branch."""
        ...

    def load(self, target: Target) -> Snapshot:
        """Load a version."""
        ...


@dataclass(frozen=True, slots=True)
class Past:
    """A branch, and the last version of it that belongs to the past of some version."""

    branch: str | None
    version: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Versions of one branch that lie after ``after``, up to ``upto``; ``side`` is "a" or "b"."""

    side: str
    branch: str | None
    after: int
    upto: int

    @property
    def num_versions(self) -> int:
        """How many versions that are, those that were cleaned up included."""
        return self.upto - self.after


@dataclass(frozen=True, slots=True)
class Ends:
    """The two versions. ``ancestor`` is None when they share no known past."""

    source: Source
    a: Snapshot
    b: Snapshot
    ancestor: Past | None
    between: tuple[Stretch, ...]


def find_ends(source: Source, a: Snapshot, b: Snapshot) -> Ends:
    """Find what two versions have in common; reads branch records only."""
    left, right = past_of(source.root, a), past_of(source.root, b)
    place = {step.branch: number for number, step in enumerate(right)}
    position = next((number for number, step in enumerate(left) if step.branch in place), None)
    if position is None:
        return Ends(
            source, a, b, ancestor=None, between=(*_since(left, "a", 0), *_since(right, "b", 0))
        )
    other = place[left[position].branch]
    version = min(left[position].version, right[other].version)
    ancestor = Past(left[position].branch, version)
    between = (
        *_since(left[: position + 1], "a", version),
        *_since(right[: other + 1], "b", version),
    )
    return Ends(source, a, b, ancestor=ancestor, between=between)


def past_of(root: Store, snapshot: Snapshot) -> list[Past]:
    """List the branches in the past of a version, its own first, each with its last version."""
    return list(_past(root, snapshot))


def _past(root: Store, snapshot: Snapshot) -> Iterator[Past]:
    """Yield (branch, last version of it that is in the past), from the version itself to main."""
    branch, version = snapshot.branch, snapshot.version
    for _ in range(_ANCESTORS_MAX):
        yield Past(branch, version)
        if branch is None:
            return
        try:
            record = refs.read_branch(root, branch)
        except RefNotFoundError:
            return
        branch, version = record.parent_branch, min(record.parent_version, version)
        branch = None if branch == MAIN else branch


def _since(chain: list[Past], side: str, ancestor: int) -> Iterator[Stretch]:
    """Yield the stretches of versions after the ancestor, oldest first.

    The first version of a branch is a copy of the one that it was forked from.
    """
    for index in reversed(range(len(chain))):
        start = ancestor if index == len(chain) - 1 else chain[index + 1].version
        if chain[index].version > start:
            yield Stretch(side, chain[index].branch, start, chain[index].version)


def ancestor_of(ends: Ends) -> Snapshot | None:
    """Load the common ancestor, None if it is not there any more."""
    past = ends.ancestor
    if past is None:
        return None
    for end in (ends.a, ends.b):
        if (end.branch, end.version) == (past.branch, past.version):
            return end
    branches = [
        past.branch,
        *(stretch.branch for stretch in ends.between if stretch.after == past.version),
    ]
    for branch in dict.fromkeys(branches):  # a branch begins with a copy of its parent's version
        try:
            return ends.source.load(Target(branch, past.version))
        except VersionNotFoundError:
            continue
    return None


class VersionPath:
    """The versions that lead to ``last``, by position: the oldest that is there is 0."""

    def __init__(self, source: Source, last: Snapshot) -> None:
        self._source = source
        self._snapshots: OrderedDict[int, Snapshot] = OrderedDict()
        self._branches: dict[int, str | None] = {}
        chain = past_of(source.root, last)
        for position, step in enumerate(chain):
            after = chain[position + 1].version if position + 1 < len(chain) else 0
            for number in source.log(step.branch).numbers():
                if after < number <= step.version or (number == after == step.version):
                    self._branches[number] = step.branch
        self.numbers = sorted({*self._branches, last.version})
        self._branches.setdefault(last.version, last.branch)
        self._snapshots[last.version] = last

    @property
    def last(self) -> int:
        """The position of the version in view."""
        return len(self.numbers) - 1

    def position_of(self, version: int) -> int | None:
        """Return the position of a version, None if it is not there."""
        position = bisect_left(self.numbers, version)
        return (
            position if position < len(self.numbers) and self.numbers[position] == version else None
        )

    def snapshot(self, position: int) -> Snapshot:
        """Load a version."""
        number = self.numbers[position]
        snapshot = self._snapshots.get(number)
        if snapshot is None:
            snapshot = self._source.load(Target(self._branches[number], number))
            self._snapshots[number] = snapshot
            if len(self._snapshots) > _SNAPSHOTS_MAX:
                self._snapshots.popitem(last=False)
        else:
            self._snapshots.move_to_end(number)
        return snapshot

    def transaction(self, position: int) -> TransactionSummary | None:
        """Describe what made a version, None if that is not known."""
        number = self.numbers[position]
        try:
            return self._source.log(self._branches[number]).transaction(number)
        except VersionNotFoundError:
            return None

    def last_restore(self, position: int) -> int:
        """Return the newest version up to ``position`` that restored another one, 0 if none did."""
        for index in range(position, max(position - RESTORES_WITHIN, 0), -1):
            done = self.transaction(index)
            if done is not None and done.operation == "Restore":
                return index
        return 0

    def first_with(self, holds: Callable[[int], bool], low: int, high: int) -> int:
        """Return the first position in ``[low, high]`` from which on ``holds`` is true.

        It is true at ``high``, and once true stays so.
        """
        while low < high:
            middle = (low + high) // 2
            if holds(middle):
                high = middle
            else:
                low = middle + 1
        return high
