"""An upsert that is worked out: files written, deletions in memory, nothing committed.

Source: ``MergeInsertBuilder.execute_uncommitted`` of pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.format.fragment import Fragment
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.merged_logs import MergedLog
from lance_nb.transactions.column_rewrite import ColumnRewrite
from lance_nb.transactions.deletion_plan import DeletionPlan


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What changes.

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
