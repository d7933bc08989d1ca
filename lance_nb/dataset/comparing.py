"""Verbs that compare versions: diff, delta, the change feed, the history of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_nb import table
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_nb.table.diff import Diff
    from lance_nb.table.refs import Ref
    from lance_nb.table.snapshot import Snapshot


class Comparing(OpenedVersion):
    """What changed between versions."""

    def diff(
        self,
        a: Ref | OpenedVersion,
        b: Ref | OpenedVersion | None = None,
        *,
        key: Sequence[str] | str | None = None,
    ) -> Diff:
        """Compare version ``a`` with version ``b`` (this one when it is left out).

        Both are what ``checkout_version`` takes, or text as in lance_nb.table.diff.ends
        ("HEAD~2", a branch, "branch:12"), or an opened version of the same dataset. ``key`` names
        the columns that tell rows apart; without it stable row ids do, or the unenforced primary
        key, or the row's address (see ``Diff.identity``). Reads the two manifests; every level of
        the result reads what it needs when it is asked for.

        Raises VersionNotFoundError, RefNotFoundError, InvalidRefError, InvalidInputError.
        """
        left = self._compared(a)
        right = self._snapshot if b is None else self._compared(b)
        return table.diff.make_diff(self._session, left, right, key)

    def _compared(self, ref: Ref | OpenedVersion) -> Snapshot:
        if isinstance(ref, OpenedVersion):
            session, snapshot = ref.opened
            if session.root.uri != self._session.root.uri:
                raise InvalidInputError(
                    f"{session.root.uri!r} is another dataset than {self._session.root.uri!r}; a "
                    "diff compares versions of one dataset"
                )
            return snapshot
        target = table.diff.target_of(self._session, ref, self.branch)
        if (target.branch, target.version) == (self.branch, self.version):
            return self._snapshot
        return self._session.load(target)
