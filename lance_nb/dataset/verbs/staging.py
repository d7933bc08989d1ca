"""A stage: edits that are collected, looked at, and then committed or thrown away.

    stage = ds.stage()
    stage.append(new_rows)
    stage.delete("price < 0")
    stage.upsert(changed_rows, on="id")
    stage.preview()               # counts, rows before and after, fragments, conflicts
    stage.commit("clean prices")  # or stage.discard()

Data files of appended rows are written at once, under names that no version knows; nothing else is
written before the commit. The version that was open when the stage was made is what every edit
looks at, also when others commit meanwhile.

Limits: predicates do not see rows that are staged beside them. A stage becomes one transaction;
what one transaction cannot say is refused. It is used up by ``commit`` and by ``discard``.
Source: lance_nb.transactions.staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs import compacting
from lance_nb.dataset.verbs.committing import NO_PROPERTIES, commit_staged
from lance_nb.dataset.verbs.stage_edits import StageEdits
from lance_nb.dataset.verbs.stage_preview import (
    Meeting,
    StagePreview,
    landed,
    meetings_of,
    preview_of,
    source_of,
)
from lance_nb.errors import CommitStateUnknownError, InvalidInputError
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.operation_details import count_of
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment, new_uuid
from lance_nb.transactions.staged import Edit, StagedWrite, combine, files_of

_OFFERED, _UNKNOWN, _COMMITTED = "offered to a commit", "of unknown outcome", "committed"


class Stage(StageEdits):
    """Edits of one dataset that are not committed. Created by ``LanceDataset.stage``."""

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        edits: Iterable[Edit] = (),
        parts: tuple[Callable[[str], None], ...] = (),
    ) -> None:
        super().__init__(session, snapshot, edits)
        self._uuid = new_uuid()
        self._parts = parts  # told how it ends

    def joined(self, *others: Stage) -> Stage:
        """Return one stage with the edits of all, which one commit makes one version of.

        The others are used up by it. Raises InvalidInputError when they are of different versions,
        or when one transaction cannot say all of it; every stage is as it was then.
        """
        every = (self, *others)
        for one in every:
            one.check_usable()
            if (one.read_version, one.branch) != (self.read_version, self.branch):
                raise InvalidInputError(
                    f"one transaction looks at one version: {one!r} is not on {self.read_version}"
                )
        edits = [edit for one in every for edit in one.edits]
        combine(self._snapshot, edits)
        return Stage(self._session, self._snapshot, edits, tuple(one.settle for one in every))

    @property
    def opened(self) -> tuple[Session, Snapshot]:
        """The dataset and version that the edits were made for, as ``LanceDataset`` has them."""
        return self._session, self._snapshot

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits, in order."""
        return tuple(self._edits)

    @property
    def branch(self) -> str | None:
        """The branch that it is for; None is main."""
        return self._snapshot.branch

    @property
    def state(self) -> str:
        """``open``, ``discarded``, ``committed``, ``of unknown outcome``, ``offered to a commit``.

        The last one means that the commit failed.
        """
        return self._state

    @property
    def read_version(self) -> int:
        """The version that the edits were made for."""
        return self._snapshot.version

    @property
    def lance_schema(self) -> LanceSchema:
        """Schema of the version that the edits were made for."""
        return LanceSchema(self._snapshot.manifest.schema)

    @property
    def staged(self) -> StagedWrite:
        """The one transaction that a commit makes. Raises InvalidInputError."""
        return combine(self._snapshot, self._edits)

    def preview(self, num_rows: int = 5) -> StagePreview:
        """Say what a commit would change and whom it would meet; writes nothing.

        ``num_rows``: how many rows of each kind to show.
        """
        return preview_of(self._session, self._snapshot, self.staged, num_rows)

    def meetings(self) -> tuple[Meeting, ...]:
        """Say what others have committed since, and how a commit would get along with it."""
        return meetings_of(self._session, self._snapshot, self.staged)

    def commit(
        self,
        message: str | None = None,
        *,
        transaction_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> int:
        """Commit and return the number of the new version.

        Raises CommitConflictError, RetryableCommitConflictError (nothing is lost: stage again on
        the newest version), CommitStateUnknownError (``look_again``, or commit again: it is made
        once), StorageError.
        """
        if self._state != _UNKNOWN:
            self.check_usable()
        staged = self.staged
        self.settle(_OFFERED)
        try:
            made = self._committed(staged, message, transaction_properties)
        except CommitStateUnknownError as error:
            self._uuid = error.transaction_uuid or self._uuid
            self.settle(_UNKNOWN)
            raise
        self.settle(_COMMITTED)
        return made.version

    def look_again(self) -> int | None:
        """After an unknown outcome, return the version that the commit made, None if it did not."""
        source = source_of(self._session, self._snapshot)
        version = landed(source, self.read_version, self._uuid)
        if version is not None:
            self.settle(_COMMITTED)
        return version

    def _committed(
        self, staged: StagedWrite, message: str | None, transaction_properties: Mapping[str, str]
    ) -> Snapshot:
        environment = replace(Environment(), new_uuid=lambda: self._uuid)
        branch = self._snapshot.branch
        options = CommitOptions(message=message, environment=environment)
        first = self._edits[0]
        if isinstance(first, compacting.StagedCompaction):
            options = CommitOptions(message=message)  # it may make two versions
            return first.commit(self._session, branch, options, transaction_properties)
        return commit_staged(self._session, branch, staged, options, transaction_properties)

    def settle(self, state: str) -> None:
        """Take note of how a stage that this one was joined to ended."""
        self._state = state
        for told in self._parts:
            told(state)

    def discard(self) -> int:
        """Throw the edits away and delete the data files they wrote; return how many.

        Files that were offered to a commit stay, whatever became of it.
        """
        if self._state != "open":
            raise InvalidInputError(f"this stage is {self._state}: there is nothing to discard")
        self._state = "discarded"
        paths = [file.location() for edit in self._edits for file in files_of(edit)]
        for path in paths:
            self._snapshot.locations.home.delete(path)
        self._edits.clear()
        return len(paths)

    def __repr__(self) -> str:
        where = f"{self._snapshot.branch or 'main'}:{self.read_version}"
        edits = count_of(len(self._edits), "edit")
        return f"<lance_nb.Stage on {where}, {self._state}, {edits}>"
