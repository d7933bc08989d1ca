"""A stage: edits that are collected, previewed, and then committed or discarded.

    stage = ds.stage()
    stage.append(new_rows)
    stage.delete("price < 0")
    stage.upsert(changed_rows, on="id")
    stage.preview()               # counts, rows before and after, fragments, conflicts
    stage.commit("clean prices")  # or stage.discard()

Data files of new rows and columns are written at once, under names that no version refers to;
nothing else is written before the commit. Every edit is planned on the version that was open when
the stage was made, also when others commit meanwhile.

Limits: predicates do not see rows that are staged in the same stage. A stage becomes one
transaction; what one transaction cannot express is refused: overwrite, restore, compaction and
changes of columns stand alone. ``commit`` and ``discard`` end it.
Source: lance_nb.writing.staged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

import pyarrow as pa

from lance_nb.dataset.checks import checking
from lance_nb.dataset.merge_insert import MergeClauseBuilder
from lance_nb.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    NotSupportedError,
    VersionNotFoundError,
)
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of
from lance_nb.session.session import Session
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment, new_uuid
from lance_nb.transactions.operations.restore import Restore
from lance_nb.writing import (
    compaction,
    deleting,
    editing,
    schema_evolution,
    updating,
    upserting,
    writing,
)
from lance_nb.writing.committing import NO_PROPERTIES, commit_staged
from lance_nb.writing.compaction import CompactionOptions
from lance_nb.writing.input_data import fitted
from lance_nb.writing.progress import Progress
from lance_nb.writing.stage_preview import (
    Meeting,
    StagePreview,
    applied,
    landed,
    meetings_of,
    preview_of,
    source_of,
)
from lance_nb.writing.staged import Edit, MergePlan, Replacement, StagedWrite, combine, files_of
from lance_nb.writing.upsert_source import MergeClauses, SourceRows

if TYPE_CHECKING:
    from lance_nb.dataset.checks.checking import StagedCheck
    from lance_nb.dataset.checks.result import CheckOutcome
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.format.expectations import ConfiguredExpectations

S = TypeVar("S")


class StagedMerge(MergeClauseBuilder, Generic[S]):
    """An upsert under construction on a stage of the kind ``S``."""

    def __init__(
        self,
        schema: Schema,
        on: str | Iterable[str] | None,
        add: Callable[[MergeClauses, SourceRows, Any], S],
    ) -> None:
        super().__init__(schema, on)
        self._add = add

    def stage(self, data: Any, *, schema: pa.Schema | None = None, progress: Any = None) -> S:
        """Find the matches, write the new rows, and add the upsert to the stage.

        Raises SchemaMismatchError, MergeInsertError, PredicateError; the stage is as it was then.
        """
        clauses = replace(self._clauses, write_mode="rewrite_rows")
        rows = fitted(data, self._schema.to_arrow())
        with upserting.source_of(rows, schema) as source:
            return self._add(clauses, source, progress)


OPEN = "open"


class StageEdits:
    """Edits of one version that are not committed; every method returns the stage itself."""

    def __init__(self, session: Session, snapshot: Snapshot, edits: Iterable[Edit] = ()) -> None:
        self._session = session
        self._snapshot = snapshot
        self._edits = list(edits)
        self._state = OPEN

    def __reduce__(self) -> NoReturn:
        raise NotSupportedError(
            "a stage cannot be copied or pickled, because its files must be committed only once: "
            "commit it here, or write fragments elsewhere and commit them with LanceOperation"
        )

    def append(self, data: Any, **options: Any) -> Self:
        """Add rows; options as for ``lance_nb.write_dataset``. Raises SchemaMismatchError.

        The columns of a DataFrame take the dataset's types where no value is lost by it.
        """
        self._check_open()
        request = writing.WriteRequest(**options)
        data = fitted(data, self._snapshot.manifest.schema.to_arrow())
        self._edits.append(writing.write_addition(self._snapshot, data, request))
        return self

    def delete(self, predicate: Any) -> Self:
        """Delete the rows that pass a filter. Raises PredicateError."""
        self._check_open()
        self._edits.append(deleting.plan(self._snapshot, predicate))
        return self

    def update(self, updates: Mapping[str, str], where: Any = None) -> Self:
        """Give columns new values where a filter passes, as ``LanceDataset.update`` does."""
        self._check_open()
        self._edits.append(updating.plan(self._snapshot, updates, where))
        return self

    def edit(
        self,
        cells: Mapping[int, Mapping[str, Any]] | None = None,
        *,
        add: Any = None,
        delete: Collection[int] = (),
        progress: Progress | None = None,
    ) -> Self:
        """Set cells by row id, add and delete rows, as ``LanceDataset.edit`` does.

        A commit is refused if somebody else has changed one of the rows since. Raises
        InvalidInputError, ColumnNotFoundError, NotSupportedError, SchemaMismatchError.
        """
        self._check_open()
        edits = editing.edits_of(cells, delete)
        alone = not self._edits
        self._edits += editing.plan(
            self._snapshot, edits, add, stands_alone=alone, progress=progress
        )
        return self

    def merge_insert(self, on: str | Iterable[str] | None = None) -> StagedMerge[Self]:
        """Begin an upsert, with the clauses of ``LanceDataset.merge_insert``; ``stage`` ends it.

            stage.merge_insert("id").when_matched_update_all().stage(rows)

        Rows are rewritten as a whole. A stage holds one upsert. Raises ColumnNotFoundError.
        """
        self._check_open()
        return StagedMerge(self._snapshot.manifest.schema, on, self._add_merge)

    def upsert(self, data: Any, on: str | Iterable[str] | None = None) -> Self:
        """Update the rows whose key is there, insert the others; None is the primary key."""
        builder = self.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()
        return builder.stage(data)

    def _add_merge(self, clauses: MergeClauses, source: SourceRows, progress: Any) -> Self:
        self._check_open()
        if any(isinstance(edit, MergePlan) for edit in self._edits):
            raise InvalidInputError(
                "two upserts in one stage do not see each other's rows: commit the first one, "
                "then stage the second one on the new version"
            )
        self._edits.append(upserting.plan(self._snapshot, source, clauses, progress))
        return self

    def overwrite(self, data: Any, **options: Any) -> Self:
        """Put other rows, and their schema, in the place of all there is."""
        self._check_open(alone=True)
        request = writing.WriteRequest(**options)
        edit = writing.write_replacement(self._session, self._snapshot, data, request)
        self._edits.append(edit)
        return self

    def add_columns(
        self, transforms: Any, *, progress: Progress | None = None, **options: Any
    ) -> Self:
        """Add columns; options as for ``LanceDataset.add_columns``. Files are written at once."""
        new_columns = schema_evolution.NewColumns(transforms, **options)
        return self._evolve(
            lambda base, work: schema_evolution.add(base, new_columns, work), progress
        )

    def alter_columns(
        self, *alterations: Mapping[str, Any], progress: Progress | None = None
    ) -> Self:
        """Rename, cast or change columns, as ``LanceDataset.alter_columns`` does."""
        changes = schema_evolution.alterations_of(alterations)
        return self._evolve(
            lambda base, work: schema_evolution.alter(base, changes, work), progress
        )

    def drop_columns(self, columns: Sequence[str]) -> Self:
        """Drop columns, by name or dotted path."""
        return self._evolve(lambda base, _: schema_evolution.drop(base, columns), None)

    def compact(self, *, progress: Progress | None = None, **options: Any) -> Self:
        """Join small fragments, with the options of ``ds.optimize.compact_files``."""
        self._check_open(alone=True)
        compaction_options = CompactionOptions.of(options, self._snapshot.manifest.config)
        self._edits.append(compaction.stage(self._snapshot, compaction_options, progress))
        return self

    def _evolve(self, plan: schema_evolution.Plan, progress: Progress | None) -> Self:
        self._check_open(alone=True)
        self._edits.append(schema_evolution.staged(self._snapshot, plan, progress))
        return self

    def restore(self, version: int) -> Self:
        """Go back to an older version of this branch."""
        self._check_open(alone=True)
        self._edits.append(Replacement(Restore(version)))
        return self

    def include(self, *edits: Edit) -> Self:
        """Add edits that were made elsewhere for this version, by ``lance_nb.spark.run_edits``."""
        for edit in edits:
            self._check_open(alone=isinstance(edit, Replacement))
            self._edits.append(edit)
        return self

    def check_usable(self) -> None:
        """Refuse what is used up. Raises InvalidInputError."""
        if self._state != OPEN:
            raise InvalidInputError(
                f"this stage is {self._state}; create a new one with ds.stage()"
            )

    def _check_open(self, *, alone: bool = False) -> None:
        self.check_usable()
        stands_alone = any(isinstance(edit, Replacement) for edit in self._edits)
        if self._edits and (alone or stands_alone):
            raise InvalidInputError(
                "overwrite, restore, compact and column changes cannot be combined with other "
                "edits in one transaction: commit or discard this stage, and create another one"
            )


_OFFERED, _UNKNOWN, _COMMITTED = (
    "offered to a commit",
    "of unknown outcome",
    "committed",
)


class Stage(StageEdits):
    """Edits of one dataset that are not committed. Created by ``LanceDataset.stage``."""

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        dataset_type: type[LanceDataset],
        edits: Iterable[Edit] = (),
        parts: tuple[Callable[[str], None], ...] = (),
        on_commit: tuple[Callable[[Snapshot], None], ...] = (),
    ) -> None:
        super().__init__(session, snapshot, edits)
        self._dataset_type = dataset_type
        self._on_commit = on_commit  # called with the new version
        self._uuid = new_uuid()
        self._parts = parts  # called with the final state

    def joined(self, *stages: Stage) -> Stage:
        """Return one stage with the edits of all, which one commit makes one version of.

        The others are used up by it. Raises InvalidInputError when they are of different versions,
        or when one transaction cannot say all of it; every stage is as it was then.
        """
        every = (self, *stages)
        for stage in every:
            stage.check_usable()
            if (stage.read_version, stage.branch) != (self.read_version, self.branch):
                raise InvalidInputError(
                    f"all edits of a transaction must be based on the same version: {stage!r} is "
                    f"not based on version {self.read_version}"
                )
        edits = [edit for stage in every for edit in stage.edits]
        combine(self._snapshot, edits)
        parts = tuple(stage.settle for stage in every)
        followers = tuple(follow for stage in every for follow in stage._on_commit)  # noqa: SLF001
        return Stage(
            self._session,
            self._snapshot,
            self._dataset_type,
            edits=edits,
            parts=parts,
            on_commit=followers,
        )

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
        with self._explaining_clean_up():
            return preview_of(self._session, self._snapshot, self.staged, num_rows)

    def meetings(self, *, progress: Progress | None = None) -> tuple[Meeting, ...]:
        """Forecast a commit: what others have committed since, and whether it is in the way.

        The conflict check is that of the commit, on the rows that both change. ``progress`` gets
        versions read and versions in all.
        """
        return meetings_of(self._session, self._snapshot, self.staged, progress)

    def newest_version(self) -> int:
        """Return the newest version of the branch, which a commit would follow."""
        head = source_of(self._session, self._snapshot).head(self.read_version)
        return self.read_version if head is None else head.version

    def commit(
        self,
        message: str | None = None,
        *,
        transaction_properties: Mapping[str, str] = NO_PROPERTIES,
        check_expectations: bool = True,
    ) -> int:
        """Commit and return the number of the new version, to which the dataset moves.

        ``check_expectations``: ask the gate of the expectations, where the dataset has closed it.

        Raises ExpectationFailedError (the stage stays open), CommitConflictError,
        RetryableCommitConflictError (nothing is lost: stage again on the newest version),
        CommitStateUnknownError (``look_again``, or commit again: it is made once), StorageError.
        """
        if self._state != _UNKNOWN:
            self.check_usable()
        staged = self.staged
        if check_expectations and self._state != _UNKNOWN:
            checking.refuse_broken(self.broken_expectations())
        self.settle(_OFFERED)
        try:
            with self._explaining_clean_up():
                snapshot = self._committed(staged, message, transaction_properties)
        except CommitStateUnknownError as error:
            self._uuid = error.transaction_uuid or self._uuid
            self.settle(_UNKNOWN)
            raise
        self.settle(_COMMITTED)
        self._follow(snapshot)
        return snapshot.version

    @contextmanager
    def _explaining_clean_up(self) -> Iterator[None]:
        """Say why the version of the stage is not there."""
        try:
            yield
        except VersionNotFoundError as error:
            if error.version == self.read_version:
                error.add_note(
                    f"a clean-up removed version {error.version}, which this stage was made for: "
                    "stage the edits again on the newest version"
                )
            raise

    def broken_expectations(self) -> list[CheckOutcome]:
        """Return the expectations that a commit would break; none where the gate is open.

        The gate of the newest version counts. Compaction changes no rows and is not checked.
        """
        configured = checking.newest_expectations(self._session, self._snapshot.branch)
        if not configured.is_gated:
            return []
        return list(self._check(configured, 0, None).broken)

    def check(self, *, num_rows: int = 5, progress: Progress | None = None) -> StagedCheck:
        """Say which expectations a commit would break, whether or not the gate is closed.

        The expectations of the newest version are evaluated on the version that the edits were made
        for, with the edits. Nothing is committed. What others commit meanwhile is not part of it.

        Args:
            num_rows: how many rows that fail to read for each broken expectation.
            progress: called with expectations evaluated and their number.

        Raises InvalidInputError, StorageError.
        """
        configured = checking.newest_expectations(self._session, self._snapshot.branch)
        return self._check(configured, num_rows, progress)

    def _check(
        self, configured: ConfiguredExpectations, num_rows: int, progress: Progress | None
    ) -> StagedCheck:
        is_compaction = any(isinstance(edit, compaction.StagedCompaction) for edit in self._edits)
        if is_compaction or not (configured.expectations or configured.problems):
            return checking.StagedCheck(0, configured.is_gated)
        after = applied(self._session, self._snapshot, self.staged)
        before, after_dataset = (
            self._dataset_type.from_opened(self._session, snapshot)
            for snapshot in (self._snapshot, after)
        )
        return checking.staged_check(
            before, after_dataset, configured, num_rows=num_rows, progress=progress
        )

    def look_again(self) -> int | None:
        """After an unknown outcome, return the version that the commit made, None if it did not."""
        source = source_of(self._session, self._snapshot)
        version = landed(source, self.read_version, self._uuid)
        if version is not None:
            self.settle(_COMMITTED)
            self._follow(self._session.load(Target(self.branch, version)))
        return version

    def _committed(
        self, staged: StagedWrite, message: str | None, transaction_properties: Mapping[str, str]
    ) -> Snapshot:
        environment = replace(Environment(), new_uuid=lambda: self._uuid)
        branch = self._snapshot.branch
        options = CommitOptions(message=message, environment=environment, checks_files=True)
        first = self._edits[0]
        if isinstance(first, compaction.StagedCompaction):
            options = CommitOptions(message=message, checks_files=True)  # it may make two versions
            return first.commit(self._session, branch, options, transaction_properties)
        return commit_staged(
            self._session, branch, staged, options=options, properties=transaction_properties
        )

    def _follow(self, snapshot: Snapshot) -> None:
        for follow in self._on_commit:
            follow(snapshot)

    def settle(self, state: str) -> None:
        """Take note of how a stage that this one was joined to ended."""
        self._state = state
        for settle in self._parts:
            settle(state)

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
