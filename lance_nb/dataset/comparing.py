"""Verbs that compare versions: diff, delta, the change feed, the history of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb import table
from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_nb.dataset.verbs.comparing import DatasetDelta
    from lance_nb.table.diff import Diff
    from lance_nb.table.diff.biography import RowHistory
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

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Tell what was inserted, updated and deleted after one version up to another.

        ``compared_against`` stands for ``begin_version`` with this version as ``end_version``, and
        wins over both. Needs stable row ids. Raises InvalidInputError.
        """
        versions = begin_version, end_version
        return verbs.comparing.make_delta(self._session, self._snapshot, compared_against, versions)

    def changes(
        self,
        begin: Ref | OpenedVersion,
        end: Ref | OpenedVersion | None = None,
        columns: Sequence[str] | None = None,
        *,
        key: Sequence[str] | str | None = None,
        batch_size: int = 8192,
    ) -> pa.RecordBatchReader:
        """Stream every change after version ``begin`` up to ``end`` (this one if left out).

        One row per insert and delete, two per update (its old and its new values), version by
        version: see lance_nb.table.diff.feed. Rows are told apart by stable row ids, by ``key`` or
        by the unenforced primary key. Raises InvalidInputError where there is none of them, or when
        ``begin`` is not in the past of ``end``; VersionNotFoundError for a version cleaned up.
        """
        versions = self._compared(begin), self._snapshot if end is None else self._compared(end)
        feed = table.diff.make_feed(self._session, versions, columns, key, batch_size)
        return feed.reader()

    def row_history(
        self,
        row_id: int | None = None,
        *,
        address: int | None = None,
        key: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> RowHistory:
        """Tell the life of one row up to this version: created, updated, moved, deleted.

        The row is named by its stable row id, by its address (``fragment << 32 | offset``, which it
        may have had in an earlier version), or by a key such as ``{"id": 7}``. The result is
        iterated newest first and worked out step by step; ``.steps()`` lists all, oldest first. A
        row that was deleted is found all the same while the versions that had it are there; see
        lance_nb.table.diff.biography for what an address can tell. ``columns`` limits the values.

        Raises InvalidInputError, ColumnNotFoundError, NotFoundError.
        """
        named = row_id, address, key
        return table.diff.find_history(self._session, self._snapshot, named, columns)

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
