"""Edits as values, and a staged write: everything that a change needs to be committed.

Its data files are written (under names that no version knows), its deletion vectors are pending. So
it can be previewed, compared with what others have committed meanwhile, committed, or discarded
with the files that it wrote.

Several edits of one stage become one transaction: appends are one Append, deletions and appends one
Update, and so is an upsert. Others (Overwrite, Restore, columns written anew) stand alone, and are
refused beside other edits, so that a stage is committed as a whole or not at all.

Limits: predicates are evaluated on the version that was read, so that a staged deletion does not
see rows staged beside it.
Source: messages of ``Transaction`` in lance.table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import TypeAlias

from lance_nb.errors import InvalidInputError
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.merged_logs import MergedLog
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.deletion_files import PendingDeletions
from lance_nb.transactions.operation import Operation, operation_name
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class FragmentDeletion:
    """Rows that one fragment loses.

    ``rows`` are the offsets that are deleted now, ``merged`` those and the ones deleted before.
    """

    fragment: Fragment
    rows: DeletionVector
    merged: DeletionVector

    @property
    def is_whole(self) -> bool:
        """Whether no row is left."""
        return len(self.rows) == self.fragment.num_rows


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """Rows to delete, by fragment, in the order of the scan."""

    read_version: int
    predicate: str
    fragments: tuple[FragmentDeletion, ...]

    @property
    def num_rows(self) -> int:
        """Rows that are deleted."""
        return sum(len(deletion.rows) for deletion in self.fragments)

    @property
    def affected_rows(self) -> Mapping[int, DeletionVector]:
        """Offsets that are deleted, by fragment id."""
        return {deletion.fragment.id: deletion.rows for deletion in self.fragments}

    def changes(self, pending: PendingDeletions) -> tuple[tuple[Fragment, ...], tuple[int, ...]]:
        """Return the fragments that change and the ids of those that vanish.

        The vectors of the fragments that change are added to ``pending``.
        """
        updated, removed = [], []
        for deletion in self.fragments:
            if deletion.is_whole:
                removed.append(deletion.fragment.id)
                continue
            file = pending.add(deletion.fragment.id, self.read_version, deletion.merged)
            updated.append(replace(deletion.fragment, deletion_file=file))
        return tuple(updated), tuple(removed)

    def operation(self, pending: PendingDeletions) -> Delete:
        """Return the operation."""
        updated, removed = self.changes(pending)
        return Delete(updated, removed, self.predicate)


def united_deletions(plans: Sequence[DeletionPlan]) -> DeletionPlan:
    """Delete what any of the plans deletes."""
    if len(plans) == 1:
        return plans[0]
    by_fragment: dict[int, FragmentDeletion] = {}
    for deletion in chain.from_iterable(plan.fragments for plan in plans):
        united = by_fragment.get(deletion.fragment.id, deletion)
        rows, merged = united.rows | deletion.rows, united.merged | deletion.merged
        by_fragment[deletion.fragment.id] = FragmentDeletion(deletion.fragment, rows, merged)
    texts = list(dict.fromkeys(plan.predicate for plan in plans))
    text = texts[0] if len(texts) == 1 else " OR ".join(f"({term})" for term in texts)
    return DeletionPlan(plans[0].read_version, text, tuple(by_fragment.values()))


@dataclass(frozen=True, slots=True)
class Addition:
    """Rows to add: fragments whose data files are written and durable, with id 0."""

    fragments: tuple[Fragment, ...]

    @property
    def num_rows(self) -> int:
        """Rows that are added."""
        return sum(fragment.physical_rows for fragment in self.fragments)


@dataclass(frozen=True, slots=True)
class RowRewrite:
    """Rows that move: where they are deleted, and the fragments that hold them with new values.

    ``fields`` are the ids of the fields that got new values.
    """

    deletion: DeletionPlan
    fragments: tuple[Fragment, ...]
    fields: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """Rows that change."""
        return self.deletion.num_rows


@dataclass(frozen=True, slots=True)
class ColumnRewrite:
    """Fragments with another file for some columns, not committed.

    ``offsets`` are the rows that changed, by fragment id, as Roaring bitmaps; only datasets with
    stable row ids record them.
    """

    fragments: tuple[Fragment, ...]
    fields: tuple[int, ...]
    num_rows: int
    offsets: Mapping[int, bytes]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that were written."""
        return tuple(fragment.files[-1] for fragment in self.fragments)

    def operation(self) -> Update:
        """Return the operation."""
        return Update(
            updated_fragments=self.fragments,
            fields_modified=self.fields,
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_fragment_offsets=self.offsets,
        )


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What an upsert changes: its files are written, its deletions are in memory.

    ``fields`` are the ids of the fields that may have new values; ``columns`` is set when columns
    were written anew instead of rows.
    """

    deletion: DeletionPlan
    fragments: tuple[Fragment, ...]
    fields: tuple[int, ...]
    num_updated_rows: int = 0
    num_inserted_rows: int = 0
    inserted_keys: KeyFilter | None = None
    columns: ColumnRewrite | None = None
    logs: tuple[MergedLog, ...] = ()

    @property
    def num_deleted_rows(self) -> int:
        """Rows that go without being replaced."""
        moved = 0 if self.columns is not None else self.num_updated_rows
        return self.deletion.num_rows - moved

    @property
    def stats(self) -> dict[str, int]:
        """The counts as pylance gives them."""
        return {
            "num_inserted_rows": self.num_inserted_rows,
            "num_updated_rows": self.num_updated_rows,
            "num_deleted_rows": self.num_deleted_rows,
        }


@dataclass(frozen=True, slots=True)
class Replacement:
    """An operation that stands alone: Overwrite, Restore, a change of schema or configuration."""

    operation: Operation
    fragments: tuple[Fragment, ...] = ()

    @property
    def num_rows(self) -> int:
        """Rows that are written."""
        return sum(fragment.physical_rows for fragment in self.fragments)


Edit: TypeAlias = "Addition | DeletionPlan | RowRewrite | ColumnRewrite | MergePlan | Replacement"


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """One transaction that is ready to be committed.

    ``num_updated_rows`` are counted among the added and the deleted ones too, unless they stay
    where they are and get ``column_files``. ``affected_rows`` are the offsets that it deletes, by
    fragment id: with them, another writer's deletions in the same fragment are no conflict.
    """

    read_version: int
    operation: Operation
    num_added_rows: int = 0
    num_deleted_rows: int = 0
    num_updated_rows: int = 0
    touched_fragments: tuple[int, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    column_files: tuple[DataFile, ...] = ()
    affected_rows: Mapping[int, DeletionVector] | None = None
    pending: PendingDeletions = field(default_factory=PendingDeletions, repr=False)

    @property
    def data_files(self) -> list[str]:
        """Paths of the data files that were written for it, below the branch's folder."""
        return [file.location() for file in self.files]

    @property
    def size_bytes(self) -> int:
        """Bytes of those files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def num_deletion_files(self) -> int:
        """Deletion files that the commit writes; a rebased one may write others instead."""
        return len(self.pending.vectors)

    @property
    def deletion_bytes(self) -> int:
        """Bytes of those deletion files."""
        return self.pending.size_bytes

    @property
    def files(self) -> list[DataFile]:
        """The data files that were written for it."""
        return [file for new_fragment in self.new_fragments for file in new_fragment.files] + list(
            self.column_files
        )


def combine(snapshot: Snapshot, edits: Sequence[Edit]) -> StagedWrite:
    """Turn edits into the one transaction that says them.

    Raises InvalidInputError when there is nothing to do, or when one transaction cannot say it.
    """
    if not edits:
        raise InvalidInputError("nothing is staged: add an edit, for example stage.delete('a > 3')")
    alone = [edit for edit in edits if isinstance(edit, Replacement)]
    if alone and len(edits) > 1:
        name = operation_name(alone[0].operation.arm)
        raise InvalidInputError(
            f"one transaction holds one operation, and {name} cannot be combined with other edits: "
            "commit it first, then stage the others on the version that it makes"
        )
    if alone:
        return StagedWrite(
            snapshot.version,
            alone[0].operation,
            alone[0].num_rows,
            new_fragments=alone[0].fragments,
        )
    by_columns = [columns for edit in edits if (columns := columns_of(edit)) is not None]
    if by_columns and len(edits) > 1:
        raise InvalidInputError(
            "columns that are written anew stand alone in a transaction: rewrite rows instead "
            "(mode='rows'), or commit the one edit before the other"
        )
    if by_columns:
        return _column_write(snapshot, edits[0], by_columns[0])
    if sum(isinstance(edit, MergePlan) for edit in edits) > 1:
        raise InvalidInputError(
            "two upserts in one stage do not see each other's rows, and could insert a key twice: "
            "commit the first, then stage the second on the new version"
        )
    rewrites = [edit for edit in edits if isinstance(edit, RowRewrite | MergePlan)]
    plans = [edit for edit in edits if isinstance(edit, DeletionPlan)]
    _check_rows_change_once(rewrites, plans)
    return _combined(snapshot, edits, rewrites, plans)


def files_of(edit: Edit) -> tuple[DataFile, ...]:
    """Return the data files that were written for an edit."""
    if isinstance(edit, DeletionPlan):
        return ()
    columns = columns_of(edit)
    if columns is not None:
        return columns.files
    fragments = () if isinstance(edit, ColumnRewrite) else edit.fragments
    return tuple(file for fragment in fragments for file in fragment.files)


def columns_of(edit: Edit) -> ColumnRewrite | None:
    """Return the columns that an edit writes anew, if it does not write rows."""
    if isinstance(edit, ColumnRewrite):
        return edit
    return edit.columns if isinstance(edit, MergePlan) else None


def _column_write(snapshot: Snapshot, edit: Edit, columns: ColumnRewrite) -> StagedWrite:
    operation = columns.operation()
    if isinstance(edit, MergePlan):
        operation = replace(
            operation, inserted_rows=edit.inserted_keys, compacted_sstables=edit.logs
        )
    return StagedWrite(
        snapshot.version,
        operation,
        num_updated_rows=columns.num_rows,
        touched_fragments=tuple(fragment.id for fragment in columns.fragments),
        column_files=columns.files,
    )


def _check_rows_change_once(
    rewrites: Sequence[RowRewrite | MergePlan], plans: Sequence[DeletionPlan]
) -> None:
    """Refuse edits of the same rows: which of them counts could not be said."""
    seen: dict[int, DeletionVector] = {}
    for plan in [*(rewrite.deletion for rewrite in rewrites), *(plans if rewrites else ())]:
        for fragment, rows in plan.affected_rows.items():
            deleted = seen.get(fragment, DeletionVector.of(()))
            if deleted.contains(rows.offsets()).any():
                raise InvalidInputError(
                    "an update and another edit of this stage change the same rows: commit the "
                    "one first, then stage the other on the version that it makes"
                )
            seen[fragment] = deleted | rows


def _combined(
    snapshot: Snapshot,
    edits: Sequence[Edit],
    rewrites: Sequence[RowRewrite | MergePlan],
    plans: Sequence[DeletionPlan],
) -> StagedWrite:
    plans = [*plans, *(rewrite.deletion for rewrite in rewrites)]
    adding = (edit for edit in edits if isinstance(edit, Addition | RowRewrite | MergePlan))
    added = tuple(fragment for edit in adding for fragment in edit.fragments)
    num_added = sum(fragment.physical_rows for fragment in added)
    if not plans:
        return StagedWrite(snapshot.version, Append(added), num_added, new_fragments=added)
    plan = united_deletions(plans)
    pending = PendingDeletions(checksums=wants_checksums(snapshot.manifest.config))
    operation: Operation
    if added or rewrites:
        updated_fragments, removed_ids = plan.changes(pending)
        fields = {field for rewrite in rewrites for field in rewrite.fields}
        merge = next((rewrite for rewrite in rewrites if isinstance(rewrite, MergePlan)), None)
        operation = Update(
            removed_fragment_ids=removed_ids,
            updated_fragments=updated_fragments,
            new_fragments=added,
            fields_for_preserving_frag_bitmap=tuple(sorted(fields)),
            inserted_rows=None if merge is None else merge.inserted_keys,
            compacted_sstables=() if merge is None else merge.logs,
        )
    else:
        operation = plan.operation(pending)
    return StagedWrite(
        read_version=snapshot.version,
        operation=operation,
        num_added_rows=num_added,
        num_deleted_rows=plan.num_rows,
        num_updated_rows=sum(
            rewrite.num_updated_rows if isinstance(rewrite, MergePlan) else rewrite.num_rows
            for rewrite in rewrites
        ),
        touched_fragments=tuple(plan.affected_rows),
        new_fragments=added,
        affected_rows=plan.affected_rows,
        pending=pending,
    )
