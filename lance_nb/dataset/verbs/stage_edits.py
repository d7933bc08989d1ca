"""The edits of a stage: what can be laid beside each other before one commit makes a version of it.

Data files of new rows and columns are written at once, under names that no version knows; nothing
else is written before the commit.

Limits: predicates do not see rows that are staged beside them. What one transaction cannot say is
refused: overwrite, restore, compaction and changes of columns stand alone.
Source: lance_nb.transactions.staged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Self

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs import compacting, deleting, evolving, updating, upserting, writing
from lance_nb.dataset.verbs.sources import fitted
from lance_nb.dataset.verbs.staged_merge import StagedMerge
from lance_nb.dataset.verbs.telling import Progress
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.compaction_options import CompactionOptions
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_source import SourceRows
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.staged import Edit, Replacement

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
            "a stage is not copied or pickled, as its files must be committed once: commit it "
            "here, or write fragments elsewhere and commit them with LanceOperation"
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
                "two upserts in one stage do not see each other's rows: commit the one first, "
                "then stage the other on the version that it makes"
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
        wanted = evolving.NewColumns(transforms, **options)
        return self._evolve(lambda base, work: evolving.add(base, wanted, work), progress)

    def alter_columns(
        self, *alterations: Mapping[str, Any], progress: Progress | None = None
    ) -> Self:
        """Rename, cast or change columns, as ``LanceDataset.alter_columns`` does."""
        wanted = evolving.alterations_of(alterations)
        return self._evolve(lambda base, work: evolving.alter(base, wanted, work), progress)

    def drop_columns(self, columns: Sequence[str]) -> Self:
        """Drop columns, by name or dotted path."""
        return self._evolve(lambda base, _: evolving.drop(base, columns), None)

    def compact(self, *, progress: Progress | None = None, **options: Any) -> Self:
        """Join small fragments, with the options of ``ds.optimize.compact_files``."""
        self._check_open(alone=True)
        wanted = CompactionOptions.of(options, self._snapshot.manifest.config)
        self._edits.append(compacting.stage(self._snapshot, wanted, progress))
        return self

    def _evolve(self, plan: evolving.Plan, progress: Progress | None) -> Self:
        self._check_open(alone=True)
        self._edits.append(evolving.staged(self._snapshot, plan, progress))
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
            raise InvalidInputError(f"this stage is {self._state}; make a new one: ds.stage()")

    def _check_open(self, *, alone: bool = False) -> None:
        self.check_usable()
        stands_alone = any(isinstance(edit, Replacement) for edit in self._edits)
        if self._edits and (alone or stands_alone):
            raise InvalidInputError(
                "overwrite, restore, compact and changes of columns cannot be combined with other "
                "edits in one transaction: commit or discard this stage, and make another one"
            )
