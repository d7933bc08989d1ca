"""Upserts: what ``merge_insert`` does when it is executed, planned, explained or staged.

Source: ``MergeInsertBuilder`` of pylance 14.0.2.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa

from lance_nb.errors import ArgumentError, ColumnNotFoundError, InvalidInputError, LanceError
from lance_nb.format.merged_logs import MergedLog
from lance_nb.format.schema import Schema, primary_key
from lance_nb.session.session import Session
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot, added_version
from lance_nb.transactions.environment import new_uuid
from lance_nb.transactions.transaction import Transaction
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.input_data import reader_of, without_views
from lance_nb.writing.merge_insert import Progress, plan_merge
from lance_nb.writing.merge_insert_plan import (
    WRITE_MODES,
    MergeClauses,
    MergePlan,
    WhenMatched,
    check_clauses,
)
from lance_nb.writing.merge_insert_source import MEMORY_BYTES, SourceRows
from lance_nb.writing.staged import StagedWrite, combine
from lance_nb.writing.writing import WriteRequest

__all__ = [
    "WhenMatched",
    "analyze",
    "check_write_mode",
    "execute",
    "execute_uncommitted",
    "explain",
]


def start(schema: Schema, on: str | Iterable[str] | None) -> MergeClauses:
    """Return clauses that do nothing yet, for a key; None is the unenforced primary key.

    Raises ColumnNotFoundError, InvalidInputError, ArgumentError.
    """
    if on is not None and not isinstance(on, str | Iterable):
        raise ArgumentError(
            f"on must be a column name or a list of column names, not {type(on).__name__}"
        )
    names = [on] if isinstance(on, str) else list(on or ())
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError("on must be a column name or a list of column names")
    key = primary_key(schema)
    resolved = tuple(dict.fromkeys(_resolved(schema, name) for name in names)) or key
    if not resolved:
        raise InvalidInputError(
            "no columns to match rows by: pass merge_insert(on), or set the dataset's unenforced "
            "primary key (field metadata 'lance-schema:unenforced-primary-key')"
        )
    return MergeClauses(resolved, key if set(key) == set(resolved) else ())


def _resolved(schema: Schema, name: str) -> str:
    """Return the top-level column of that name, whatever its case."""
    if name in schema.names:
        return name
    near = [candidate for candidate in schema.names if candidate.lower() == name.lower()]
    if not near:
        raise ColumnNotFoundError(name, tuple(schema.names))
    return str(near[0])


def unmatched_filter(schema: Schema, expression: Any) -> Filter:
    """Compile the filter of ``when_not_matched_by_source_delete``. Raises PredicateError."""
    return compile_filter(expression, project(schema, None).schema)


def check_write_mode(mode: str) -> str:
    """Return the mode. Raises InvalidInputError if there is no such mode."""
    if mode not in WRITE_MODES:
        modes = ", ".join(map(repr, WRITE_MODES))
        raise InvalidInputError(f"invalid write_mode {mode!r}; expected one of {modes}")
    return mode


def logs_of(sstables: Iterable[Any]) -> tuple[MergedLog, ...]:
    """Return the logs that were merged. Raises InvalidInputError."""
    try:
        return tuple(
            MergedLog(str(UUID(sstable.shard_id)), int(sstable.generation)) for sstable in sstables
        )
    except (AttributeError, TypeError, ValueError) as exc:
        raise InvalidInputError(
            "each SSTable must have a shard_id (the text of a UUID) and a generation (an integer)"
        ) from exc


def source_of(data: Any, schema: pa.Schema | None) -> SourceRows:
    """Read a source: held as it is if it lies in memory, else within bounds."""
    if schema is None and hasattr(data, "__next__") and not isinstance(data, pa.RecordBatchReader):
        raise InvalidInputError("an iterator of record batches needs schema=...")
    lies_in_memory = isinstance(data, pa.Table | pa.RecordBatch | Mapping | list)
    return SourceRows(
        without_views(reader_of(data, schema)), None if lies_in_memory else MEMORY_BYTES
    )


def plan(
    snapshot: Snapshot, source: SourceRows, clauses: MergeClauses, progress: Progress | None = None
) -> MergePlan:
    """Write what changes; nothing is committed. Raises as ``plan_merge`` does."""
    if clauses.does_nothing:
        raise InvalidInputError(
            "this merge_insert does nothing: add when_matched_update_all(), "
            "when_not_matched_insert_all() or another clause"
        )
    return plan_merge(snapshot, source, clauses, _options(snapshot, clauses), progress)


def _options(snapshot: Snapshot, clauses: MergeClauses) -> WriteOptions:
    request = WriteRequest(target_bases=clauses.bases, target_all_bases=clauses.all_bases)
    places = request.places(snapshot.locations)
    manifest = snapshot.manifest
    version = added_version(manifest, clauses.file_version)
    return request.write_options(version, places, config=manifest.config)


def execute(
    session: Session,
    snapshot: Snapshot,
    clauses: MergeClauses,
    source: SourceRows,
    *,
    max_retries: int,
    timeout_s: float,
    progress: Progress | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Merge and commit; return the new version and the counts.

    Raises MergeInsertError, SchemaMismatchError, PredicateError, CommitConflictError,
    TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, dict[str, int]]:
        planned = plan(base, source, clauses, progress)
        staged = combine(base, [planned])
        return commit_staged(session, base.branch, staged), planned.stats

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)


def execute_uncommitted(
    session: Session,
    snapshot: Snapshot,
    clauses: MergeClauses,
    source: SourceRows,
    progress: Progress | None = None,
) -> tuple[Transaction, dict[str, int]]:
    """Merge without committing; return the transaction and the counts."""
    planned = plan(snapshot, source, clauses, progress)
    staged = combine(snapshot, [planned])
    staged.pending.write(session.home(snapshot.branch))
    return Transaction(staged.read_version, staged.operation, new_uuid()), planned.stats


# --- plans ----------------------------------------------------------------------------------------


def explain(snapshot: Snapshot, clauses: MergeClauses, schema: pa.Schema | None) -> str:
    """Describe what would be done for a source of this schema (None: the dataset's)."""
    mine = snapshot.manifest.schema
    source_schema = mine.to_arrow() if schema is None else schema
    if clauses.does_nothing:
        raise InvalidInputError("this merge_insert does nothing: it has no clause")
    check_clauses(clauses, source_schema, mine)
    counts = snapshot.manifest.fragments.counts()
    unchanged = [name for name in mine.names if name not in source_schema.names]
    mode = clauses.write_mode
    lines = [
        _headline(clauses),
        f"  WriteRows: columns={mine.names}, kept_from_target={unchanged}, mode={mode}",
        f"    KeyJoin: on={list(clauses.on)}, hashed=source, read_in_windows=target",
        f"      TargetKeys: fragments={len(counts.ids)}, rows={int(live_counts(snapshot).sum())}",
        f"      Source: columns={source_schema.names}, memory_bytes={MEMORY_BYTES}, then a file",
    ]
    return "\n".join(lines) + "\n"


def _headline(clauses: MergeClauses) -> str:
    matched = clauses.matched.value
    if clauses.condition is not None:
        matched = f"UpdateIf({clauses.condition})"
    unmatched = "Keep"
    if clauses.deletes_unmatched:
        unmatched = "Delete"
        if clauses.unmatched_filter is not None:
            unmatched = f"DeleteIf({clauses.unmatched_filter.text})"
    return (
        f"MergeInsert: on=[{', '.join(clauses.on)}], when_matched={matched}, "
        f"when_not_matched={'InsertAll' if clauses.inserts else 'DoNothing'}, "
        f"when_not_matched_by_source={unmatched}"
    )


def analyze(snapshot: Snapshot, clauses: MergeClauses, source: SourceRows) -> str:
    """Do everything but commit, remove what was written, and tell what it took."""
    began = time.perf_counter()
    planned = plan(snapshot, source, clauses)
    elapsed_s = time.perf_counter() - began
    staged = combine(snapshot, [planned])
    discard(snapshot, staged)
    metrics = {
        "elapsed_s": round(elapsed_s, 6),
        "bytes_written": staged.size_bytes,
        "num_files_written": len(staged.data_files),
        "source_rows": source.num_rows,
        "fragments_touched": len(staged.touched_fragments),
        **planned.stats,
    }
    shown = ", ".join(f"{name}={value}" for name, value in metrics.items())
    head, _, body = explain(snapshot, clauses, source.schema).partition("\n")
    return f"{head}, metrics=[{shown}]\n{body}"


def discard(snapshot: Snapshot, staged: StagedWrite) -> None:
    """Remove the data files of a write that was never offered to a commit."""
    for path in staged.data_files:
        try:
            snapshot.locations.home.delete(path)
        except LanceError:  # an orphan for cleanup
            continue


def with_clause(clauses: MergeClauses, **changes: Any) -> MergeClauses:
    """Return the clauses with some of them set."""
    return replace(clauses, **changes)
