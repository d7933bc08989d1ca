"""Every version of every branch of a dataset, as merging wants them; tells how far reading is.

Limits: transactions are read ahead in runs of ``_AHEAD``.
Source: our own; pylance 14.0.2 has branches and no merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import place_of
from lance_nb.dataset.verbs.merge_plan import Progress
from lance_nb.errors import RetryableCommitConflictError, VersionNotFoundError
from lance_nb.format.refs import Branch
from lance_nb.table import refs
from lance_nb.transactions.branch_merge.ends import Side
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_source import VersionSource

_AHEAD = 64


class ReadingProgress:
    """How far the reading of versions is; more of them come up on the way."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = self._total = 0

    def expect(self, number: int) -> None:
        """Count versions that are going to be read."""
        self._total += number

    def step(self) -> None:
        """Count one that was read; ends the reading by raising what ``progress`` raises."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)

    def stop(self) -> None:
        """Tell nothing any more: what is read later belongs to another action."""
        self._progress = None


@dataclass(frozen=True, slots=True)
class SessionRepository:
    """Every version of every branch of a dataset."""

    session: Session
    told: ReadingProgress = field(default_factory=lambda: ReadingProgress(None))

    def branches(self) -> Mapping[str, Branch]:
        """Return all branches by name."""
        return refs.list_branches(self.session.root)

    def load(self, branch: str | None, version: int | None) -> Side:
        """Read a version, None: the newest."""
        self.told.expect(1)
        source = VersionSource(place_of(self.session, branch).slots)
        head = source.head(version or 0)
        if head is None:
            missing = VersionNotFoundError(self.home_uri(branch), version or "latest")
            raise self.session.without_versions(branch, missing)
        found = source.load(head.version if version is None else version)
        self.told.step()
        return Side.of(self.session.snapshot(found.manifest, branch), found.indices)

    def transactions(
        self, branch: str | None, versions: Sequence[int]
    ) -> Iterator[Transaction | None]:
        """Read the transactions of versions, None for what is not known any more."""
        self.told.expect(len(versions))
        for start in range(0, len(versions), _AHEAD):
            some = versions[start : start + _AHEAD]
            source = VersionSource(place_of(self.session, branch).slots)
            source.head(some[0])
            source.load_ahead(some)
            for version in some:
                self.told.step()
                yield _transaction(source, version)

    def home_uri(self, branch: str | None) -> str:
        """Return where the folder of a branch is."""
        return self.session.home(branch).uri


def _transaction(source: VersionSource, version: int) -> Transaction | None:
    try:
        return source.transaction(version)
    except RetryableCommitConflictError:
        return None
