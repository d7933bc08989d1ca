"""Delete, update or count the rows that pass a filter, and compare the rows of two versions.

A filter runs on some fragments per task. Of a comparison each task has its share of the candidate
rows: manifests, deletion files and (where rows are matched by key) keys tell which rows may differ.
Every task computes that for itself, and reads and compares the values of its share only.

Limits: every task of a comparison reads the key columns completely.
Source: lance_nb.table.diff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.spark.plan import (
    TASK_BYTES,
    PinnedVersion,
    Plan,
    group_fragments,
    may_pass,
    plan_where,
    select_fragments,
)
from lance_nb.table.computed_columns import shape_of
from lance_nb.table.diff import Diff
from lance_nb.table.diff.row_level import KINDS, Compared, Page, RowLevel
from lance_nb.value_classes import dataclass
from lance_nb.writing import deleting, updating
from lance_nb.writing.staged import DeletionPlan, RowRewrite


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
        deletion_plan = deleting.plan(
            snapshot, self.predicate, select_fragments(snapshot, self.fragment_ids)
        )
        return deletion_plan if deletion_plan.num_rows else None


def plan_delete(dataset: LanceDataset, predicate: str, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan a deletion. Raises PredicateError."""
    return plan_where("delete", DeleteRows, dataset, predicate=predicate, task_bytes=task_bytes)


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
        update_plan = updating.plan(snapshot, dict(self.updates), self.where, fragments)
        return update_plan if update_plan.num_rows else None


def plan_update(
    dataset: LanceDataset,
    updates: Mapping[str, str],
    where: str | None = None,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan an update. Raises PredicateError, ColumnNotFoundError, InvalidInputError."""
    _, snapshot = dataset.opened
    selects = may_pass(snapshot, updating.check(snapshot, updates, where))
    shape_of(
        snapshot.manifest.schema, dict(updates)
    )  # raises for an expression that cannot be computed
    pinned = PinnedVersion.of(dataset)
    assignments = tuple(updates.items())
    tasks = tuple(
        UpdateRows(pinned, ids, assignments, where=where, size_bytes=size)
        for ids, size in group_fragments(snapshot, task_bytes, selects)
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
    return plan_where("count", CountRows, dataset, predicate=predicate, task_bytes=task_bytes)


TASK_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class DiffRows:
    """Compare share ``number`` of ``of``; ``columns`` None: all common columns."""

    before: PinnedVersion
    after: PinnedVersion
    key: tuple[str, ...]
    columns: tuple[str, ...] | None
    number: int
    of: int
    size_bytes: int = 0

    def run(self) -> pa.Table:
        """Return the rows that differ."""
        return pa.Table.from_batches(self.batches(), self.schema())

    def schema(self) -> pa.Schema:
        """Return the columns of the result."""
        return self._rows(Page(limit=0)).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that differ."""
        yield from self._rows(Page())

    def _rows(self, page: Page) -> pa.RecordBatchReader:
        diff = diff_of(self.before, self.after, self.key)
        level = RowLevel(diff.ends, diff.match, diff.column_pairs, diff.matched_by)
        columns = None if self.columns is None else list(self.columns)
        return level.share(self.number, self.of).rows(
            Compared(columns, new_columns=False), KINDS, page
        )


def diff_of(before: PinnedVersion, after: PinnedVersion, key: Sequence[str]) -> Diff:
    """Compare two pinned versions."""
    diff: Diff = after.dataset().diff(before.dataset(), key=list(key) or None)
    return diff


def plan_diff(
    dataset: LanceDataset,
    a: Any,
    b: Any = None,
    *,
    key: Sequence[str] | str | None = None,
    columns: Sequence[str] | None = None,
    task_rows: int = TASK_ROWS,
) -> Plan:
    """Plan to compare version ``a`` with ``b``; nothing is committed.

    Raises VersionNotFoundError, RefNotFoundError, InvalidInputError.
    """
    diff = dataset.diff(a, b, key=key)
    session, _ = dataset.opened
    before, after = (
        PinnedVersion.of_snapshot(session, diff.ends.a),
        PinnedVersion.of_snapshot(session, diff.ends.b),
    )
    names = (key,) if isinstance(key, str) else tuple(key or ())
    counts = diff.counts
    num_rows = counts.rows_in + counts.rows_out + counts.rows_deleted
    of = max(1, -(-num_rows // task_rows))
    size = (counts.bytes_added + counts.bytes_removed) // of
    shown = None if columns is None else tuple(columns)
    tasks = tuple(
        DiffRows(
            before=before,
            after=after,
            key=names,
            columns=shown,
            number=index,
            of=of,
            size_bytes=size,
        )
        for index in range(of)
    )
    return Plan("diff", f"{_named(diff.a)} to {_named(diff.b)}", after, tasks)


def _named(version: tuple[str | None, int]) -> str:
    return f"{version[0] or 'main'}:{version[1]}"
