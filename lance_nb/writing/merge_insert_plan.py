"""What an upsert shall do (its clauses), and what it will change (its plan), as values.

A plan is ready to be committed: its files are written, its deletions are in memory.

Source: ``MergeInsertBuilder`` and ``MergeInsertBuilder.execute_uncommitted`` of pylance 14.0.2.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

from lance_nb.errors import MergeInsertError, NotSupportedError
from lance_nb.format.blob_fields import holds_blobs
from lance_nb.format.fragment import Fragment
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.merged_logs import MergedLog
from lance_nb.format.schema import Schema
from lance_nb.table.predicate import Filter
from lance_nb.value_classes import dataclass
from lance_nb.writing.column_rewrite import ColumnRewrite
from lance_nb.writing.deletion_plan import DeletionPlan
from lance_nb.writing.merge_insert_source import check_keys, check_schema

WRITE_MODES = ("auto", "rewrite_rows", "rewrite_columns")


class WhenMatched(Enum):
    """What becomes of target rows that have a partner; the value is the name in plans."""

    KEEP = "DoNothing"
    UPDATE = "UpdateAll"
    DELETE = "Delete"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """What an upsert does. ``unmatched`` rows are target rows without a partner.

    ``on`` are the columns of the key, ``key`` the unenforced primary key if it is the same columns.
    ``logs`` are write-ahead logs that the source comes from. ``bases`` (or ``all_bases``) are base
    paths that new rows go to, in turn. ``file_version`` names that of new files.
    """

    on: tuple[str, ...]
    key: tuple[str, ...] = ()
    matched: WhenMatched = WhenMatched.KEEP
    condition: str | None = None
    inserts: bool = False
    deletes_unmatched: bool = False
    unmatched_filter: Filter | None = None
    write_mode: str = "auto"
    logs: tuple[MergedLog, ...] = ()
    bases: tuple[str, ...] = ()
    all_bases: bool | None = None
    file_version: str | None = None

    @property
    def does_nothing(self) -> bool:
        """Whether no row can change."""
        return self.matched is WhenMatched.KEEP and not (self.inserts or self.deletes_unmatched)


def check_clauses(clauses: MergeClauses, source: pa.Schema, schema: Schema) -> None:
    """Check that a source of this schema can be merged.

    Raises SchemaMismatchError, MergeInsertError, NotSupportedError.
    """
    check_keys(source, clauses.on)
    for field in schema.fields:
        if field.name in clauses.on and holds_blobs(field):
            raise NotSupportedError(
                f"the key {field.name!r} holds blobs: rows are not matched by their bytes"
            )
    check_schema(source, schema, inserts=clauses.inserts)
    if clauses.write_mode == "rewrite_columns":
        obstacles = column_obstacles(clauses, source, schema)
        if obstacles:
            raise MergeInsertError(
                "write_mode('rewrite_columns') cannot express this: "
                + "; ".join(obstacles)
                + ". Use 'auto' or 'rewrite_rows'"
            )


def column_obstacles(clauses: MergeClauses, source: pa.Schema, schema: Schema) -> list[str]:
    """Say why columns of matched rows cannot be rewritten alone."""
    obstacles = []
    if clauses.matched is not WhenMatched.UPDATE:
        obstacles.append("matched rows are not updated")
    if clauses.inserts:
        obstacles.append("rows are inserted")
    if clauses.deletes_unmatched:
        obstacles.append("rows that are not matched are deleted")
    if set(schema.names) <= set(source.names):
        obstacles.append("the source has every column of the dataset")
    if set(source.names) <= set(clauses.on):
        obstacles.append("the source has no column besides the key")
    return obstacles


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
