"""Verbs about versions: list, describe and check them out; tags and branches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from lance_nb.dataset import verbs
from lance_nb.dataset.inspection import Inspection
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.dataset.refs import Branches, Tags
from lance_nb.table.refs import Ref, Target, resolve

if TYPE_CHECKING:
    from lance_nb.dataset.verbs.bisecting import Bisection, Statement
    from lance_nb.format.transaction_summary import TransactionSummary
    from lance_nb.table.history import VersionInfo


class Travel(OpenedVersion):
    """The other versions of a dataset."""

    @property
    def latest_version(self) -> int:
        """Number of the newest version of this branch, looked up now."""
        return self._session.log(self.branch).latest()

    def versions(self) -> list[dict[str, Any]]:
        """List all versions of this branch as pylance does: number, local time, counts."""
        log = self._session.log(self.branch)
        return [log.as_pylance(number) for number in log.numbers()]

    def version_numbers(self) -> list[int]:
        """List the version numbers of this branch, oldest first; reads no manifest."""
        return self._session.log(self.branch).numbers()

    def version_info(self, version: int, *, with_tags: bool = True) -> VersionInfo:
        """Describe one version of this branch. Raises VersionNotFoundError.

        Without tags nothing is listed: for who has the numbers already.
        """
        tags = self._tags_of([version]) if with_tags else {}
        return self._session.log(self.branch).describe(version, tags)

    def history(self, limit: int | None = None, before: int | None = None) -> list[VersionInfo]:
        """Describe versions, newest first: ``limit`` of them, older than ``before``.

        Reads as many manifests as it returns, and none twice.
        """
        log = self._session.log(self.branch)
        numbers = log.numbers()
        stop = len(numbers) if before is None else bisect_left(numbers, before)
        wanted = numbers[:stop] if limit is None else numbers[max(0, stop - limit) : stop]
        tags = self._tags_of(wanted)
        return [log.describe(number, tags) for number in reversed(wanted)]

    def _tags_of(self, versions: Sequence[int]) -> dict[str, dict[str, Any]]:
        """Return the readable tags of some versions of this branch."""
        among = set(versions)
        tags = self._session.refs.readable_tags().items()
        return {
            name: {"version": tag.version, "branch": tag.branch}
            for name, tag in tags
            if tag.version in among and tag.branch == self.branch
        }

    def transaction(self, version: int | None = None) -> TransactionSummary | None:
        """Describe the change that made a version (this one by default), None if not recorded."""
        return self._session.log(self.branch).transaction(version or self.version)

    @property
    def tags(self) -> Tags:
        """The dataset's tags."""
        return Tags(self._session, self._snapshot)

    @property
    def branches(self) -> Branches:
        """The dataset's branches (main has no entry)."""
        return Branches(self._session, self._snapshot)

    def checkout_version(self, version: Ref) -> Self:
        """Return the dataset at another version.

        ``version`` is a number on this branch, a tag, or ``(branch, version)`` with None for main
        and for the latest. Raises VersionNotFoundError, RefNotFoundError.
        """
        target = resolve(self._session.root, version, self.branch)
        return type(self)(self._session, self._session.load(target))

    def checkout_latest(self) -> Self:
        """Move this object to the newest version of its branch, and return it.

        pylance returns None.
        """
        self._snapshot = self._session.load(Target(self.branch, None))
        return self

    def bisect(
        self, statement: Statement, *, good: int | None = None, bad: int | None = None
    ) -> Bisection:
        """Find the first version of this branch of which ``statement`` is false.

        ``statement`` is a filter that every row should pass (``"label IS NOT NULL"``), an aggregate
        or a query that should be true (``"count(*) > 1000"``), or a function of the dataset.
        ``good`` and ``bad`` bound the search: the oldest and the newest version by default. Not in
        pylance. Raises InvalidInputError, PredicateError, VersionNotFoundError.
        """
        return verbs.bisecting.bisect(self, statement, good, bad)  # type: ignore[arg-type]

    def version_refs(self) -> list[dict[str, int]]:
        """List the version numbers of this branch as pylance does; reads no manifest."""
        return [{"version": number} for number in self.version_numbers()]

    @property
    def inspect(self) -> Inspection:
        """Arrow tables about versions, fragments, files, columns and pages."""
        return Inspection(self._snapshot, self._session.log(self.branch), self.tags.list)
