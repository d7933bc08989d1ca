"""The versions in the past of one version, on its branch and on those that it was forked from.

Version numbers go on over a fork: the first version of a branch has the number of the version that
it was forked from. So every number up to the one in view stands for one version, if it is still
there.

Limits: a few snapshots are kept; finding when something began to be so reads as many manifests as
the logarithm of the number of versions. What was so, ended, and is so again because a version was
restored is told apart if that happened within ``RESTORES_WITHIN`` versions.
Source: spec page "branch and tag".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable

from lance_nb.errors import VersionNotFoundError
from lance_nb.format.transaction_summary import TransactionSummary
from lance_nb.table.diff.merge_base import Source, past_of
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot

_SNAPSHOTS_MAX = 32
RESTORES_WITHIN = 256  # versions that are searched for one that restored another


class VersionPath:
    """The versions that lead to ``last``, by position: the oldest that is there is 0."""

    def __init__(self, source: Source, last: Snapshot) -> None:
        self._source = source
        self._kept: OrderedDict[int, Snapshot] = OrderedDict()
        self._branches: dict[int, str | None] = {}
        chain = past_of(source.root, last)
        for at, one in enumerate(chain):
            after = chain[at + 1].version if at + 1 < len(chain) else 0
            for number in source.log(one.branch).numbers():
                if after < number <= one.version or (number == after == one.version):
                    self._branches[number] = one.branch
        self.numbers = sorted({*self._branches, last.version})
        self._branches.setdefault(last.version, last.branch)
        self._kept[last.version] = last

    @property
    def last(self) -> int:
        """The position of the version in view."""
        return len(self.numbers) - 1

    def position_of(self, version: int) -> int | None:
        """Return the position of a version, None if it is not there."""
        at = bisect_left(self.numbers, version)
        return at if at < len(self.numbers) and self.numbers[at] == version else None

    def snapshot(self, position: int) -> Snapshot:
        """Load a version."""
        number = self.numbers[position]
        found = self._kept.get(number)
        if found is None:
            found = self._source.load(Target(self._branches[number], number))
            self._kept[number] = found
            if len(self._kept) > _SNAPSHOTS_MAX:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(number)
        return found

    def transaction(self, position: int) -> TransactionSummary | None:
        """Describe what made a version, None if that is not known."""
        number = self.numbers[position]
        try:
            return self._source.log(self._branches[number]).transaction(number)
        except VersionNotFoundError:
            return None

    def last_restore(self, position: int) -> int:
        """Return the newest version up to ``position`` that restored another one, 0 if none did."""
        for at in range(position, max(position - RESTORES_WITHIN, 0), -1):
            done = self.transaction(at)
            if done is not None and done.operation == "Restore":
                return at
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
