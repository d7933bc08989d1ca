"""Delete, update or count the rows that pass a filter, some fragments per task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import deleting, updating
from lance_nb.spark.plan import (
    TASK_BYTES,
    PinnedVersion,
    Plan,
    fragment_groups,
    plan_where,
    select_fragments,
)
from lance_nb.table.computed_columns import shape_of
from lance_nb.transactions.deletion_plan import DeletionPlan
from lance_nb.transactions.row_rewrite import RowRewrite


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Find the rows of some fragments that pass ``predicate``, to delete them."""

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    predicate: str
    size_bytes: int

    def run(self) -> DeletionPlan | None:
        """Return the rows to delete; writes nothing."""
        _, snapshot = self.pinned.open()
        found = deleting.plan(
            snapshot, self.predicate, select_fragments(snapshot, self.fragment_ids)
        )
        return found if found.num_rows else None


def plan_delete(dataset: LanceDataset, predicate: str, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan a deletion. Raises PredicateError."""
    return plan_where("delete", DeleteRows, dataset, predicate, task_bytes)


@dataclass(frozen=True, slots=True)
class UpdateRows:
    """Update columns of the rows of some fragments that pass ``where`` (None: all rows)."""

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    updates: tuple[tuple[str, str], ...]
    where: str | None
    size_bytes: int

    def run(self) -> RowRewrite | None:
        """Write the updated rows to new files."""
        _, snapshot = self.pinned.open()
        fragments = select_fragments(snapshot, self.fragment_ids)
        found = updating.plan(snapshot, dict(self.updates), self.where, fragments)
        return found if found.num_rows else None


def plan_update(
    dataset: LanceDataset,
    updates: Mapping[str, str],
    where: str | None = None,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan an update. Raises PredicateError, ColumnNotFoundError, InvalidInputError."""
    _, snapshot = dataset.opened
    updating.check(snapshot, updates, where)
    shape_of(
        snapshot.manifest.schema, dict(updates)
    )  # raises for an expression that cannot be computed
    pinned = PinnedVersion.of(dataset)
    said = tuple(updates.items())
    tasks = tuple(
        UpdateRows(pinned, ids, said, where, size)
        for ids, size in fragment_groups(snapshot, task_bytes)
    )
    detail = ", ".join(updates) + (f" where {where}" if where else "")
    return Plan("update", detail, pinned, tasks)


@dataclass(frozen=True, slots=True)
class RowCount:
    """The number of rows of some fragments that pass a filter."""

    num_rows: int


@dataclass(frozen=True, slots=True)
class CountRows:
    """Count the rows of some fragments that pass ``predicate``. Reads only its columns."""

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    predicate: str
    size_bytes: int

    def run(self) -> RowCount:
        """Return the count."""
        fragments = self.pinned.fragments(set(self.fragment_ids))
        return RowCount(self.pinned.dataset().count_rows(self.predicate, fragments=fragments))


def plan_count(dataset: LanceDataset, predicate: str, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan a count; nothing is committed. Raises PredicateError."""
    return plan_where("count", CountRows, dataset, predicate, task_bytes)
