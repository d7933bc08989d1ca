"""Compare the rows of two versions: each task compares its share of the candidate rows.

Manifests, deletion files and (where rows are matched by key) keys tell which rows may differ. Every
task computes that for itself, and reads and compares the values of its share only.

Limits: every task reads the key columns completely.
Source: lance_nb.table.diff.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.spark.plan import PinnedVersion, Plan
from lance_nb.table.diff import Diff
from lance_nb.table.diff.row_level import KINDS, Compared, Page, RowLevel

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
    found: Diff = after.dataset().diff(before.dataset(), key=list(key) or None)
    return found


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
    before, after = PinnedVersion.at(session, diff.ends.a), PinnedVersion.at(session, diff.ends.b)
    names = (key,) if isinstance(key, str) else tuple(key or ())
    counts = diff.counts
    num_rows = counts.rows_in + counts.rows_out + counts.rows_deleted
    of = max(1, -(-num_rows // task_rows))
    size = (counts.bytes_added + counts.bytes_removed) // of
    shown = None if columns is None else tuple(columns)
    tasks = tuple(DiffRows(before, after, names, shown, at, of, size) for at in range(of))
    return Plan("diff", f"{_named(diff.a)} to {_named(diff.b)}", after, tasks)


def _named(version: tuple[str | None, int]) -> str:
    return f"{version[0] or 'main'}:{version[1]}"
