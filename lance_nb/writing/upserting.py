"""Upserts: rows of a source matched to rows of the target by key, and what is written for each.

The target's key columns are joined with the source's (upsert_join.py). The matches say which
target rows are deleted and which source rows are written: first those that replace rows, in the
order of the target, with the row ids of these; then the new ones, in the order of the source. Where
only some columns of matched rows change, these can be rewritten alone instead.

An upsert can be made in parts, which are one commit all together (``united_plans``):

=================  =================================  ======================================
way                a part reads                       new rows are
=================  =================================  ======================================
by fragments       some fragments, all of the source  source rows that no part has matched:
                                                      known when all parts are done
by keys            all rows whose key is in a bucket  source rows that the part has not
                                                      matched: no other part has their keys
=================  =================================  ======================================

Limits: memory holds the source's keys, two numbers per match, one window of rows.
Source: ``MergeInsertBuilder`` of pylance 14.0.2; message ``Transaction.Update`` of lance.table.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.errors import ArgumentError, ColumnNotFoundError, InvalidInputError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.merged_logs import MergedLog
from lance_nb.format.schema import Schema, primary_key
from lance_nb.session.session import Session
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot, added_version
from lance_nb.transactions.environment import new_uuid
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.deleting import deletion_of
from lance_nb.writing.fragment_writer import FragmentWriter, WriteOptions, copying, delete_unused
from lance_nb.writing.input_data import reader_of, without_views
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.rewriting import columns_are_cheaper, rewrite_columns, with_row_ids
from lance_nb.writing.staged import (
    ColumnRewrite,
    DeletionPlan,
    MergePlan,
    combine,
    united_deletions,
)
from lance_nb.writing.upsert_join import (
    NOTHING,
    JoinResult,
    KeyWindow,
    Matches,
    find_rows,
    read_keys,
    typed,
)
from lance_nb.writing.upsert_source import (
    MEMORY_BYTES,
    WRITE_MODES,
    MergeClauses,
    RowMaker,
    SourceRows,
    check_clauses,
    column_obstacles,
    windows,
)
from lance_nb.writing.writing import WriteRequest


def plan_merge(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    options: WriteOptions,
    progress: Progress | None = None,
) -> MergePlan:
    """Find the matches and write what changes; nothing is committed.

    Raises SchemaMismatchError, MergeInsertError, PredicateError, NotSupportedError, StorageError;
    no file remains then.
    """
    check_clauses(clauses, source.schema, snapshot.manifest.schema)
    total = int(snapshot.manifest.fragments.counts().num_rows.sum()) + source.num_rows
    joined = find_rows(snapshot, source, clauses, ProgressCounter(total, progress).add)
    if _by_columns(snapshot, source, clauses, joined):
        plan = write_columns_anew(snapshot, source, clauses, joined=joined, options=options)
    else:
        plan = write_rows(snapshot, source, clauses, joined=joined, options=options)
    if progress is not None:
        progress(total, total)
    return replace(plan, logs=clauses.logs)


# --- written as rows ------------------------------------------------------------------------------


def write_rows(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    joined: JoinResult,
    options: WriteOptions,
) -> MergePlan:
    """Write matched rows with their new values, and new ones; no file remains after an error."""
    schema = snapshot.manifest.schema
    copies = BlobCopies(snapshot)
    maker = RowMaker.of(snapshot, source, schema, copies)
    ids = []
    with FragmentWriter(schema, snapshot.locations.home, copying(options, copies)) as writer:
        for matches in joined.changes:
            ids.append(_row_ids(snapshot, matches))
            for start, stop in windows(matches.source.size, source.row_bytes):
                rows = matches.physical[start:stop], matches.source[start:stop]
                _write(writer, maker.updated(matches.fragment, *rows))
        for start, stop in windows(joined.new.size, source.row_bytes):
            _write(writer, maker.inserted(joined.new[start:stop]))
        fragments = writer.finish()
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        fragments = list(with_row_ids(fragments, ids))
    return MergePlan(
        _deletion(snapshot, joined),
        tuple(fragments),
        tuple(field.id for field in schema.walk()),
        num_updated_rows=joined.num_updated_rows,
        num_inserted_rows=int(joined.new.size),
        inserted_keys=_inserted_keys(snapshot, source, clauses, joined.new),
    )


def _write(writer: FragmentWriter, rows: pa.Table) -> None:
    for batch in rows.to_batches():
        writer.write(batch)


def _row_ids(snapshot: Snapshot, matches: Matches) -> np.ndarray:
    from lance_nb.table import row_ids

    ids = row_ids.fragment_row_ids(snapshot, matches.fragment)
    return np.zeros(0, np.uint64) if ids is None else ids[matches.physical]


def _deletion(snapshot: Snapshot, joined: JoinResult) -> DeletionPlan:
    """Return the deletion of replaced and deleted rows, in the order of the scan."""
    by_id: dict[int, tuple[Fragment, list[Ints]]] = {}
    moved = [(change.fragment, change.physical) for change in joined.changes]
    for fragment, rows in (*moved, *joined.deleted):
        by_id.setdefault(fragment.id, (fragment, []))[1].append(rows)
    plans = tuple(
        deletion_of(snapshot, fragment, np.concatenate(rows)) for fragment, rows in by_id.values()
    )
    return DeletionPlan(snapshot.version, "", plans)


def _inserted_keys(
    snapshot: Snapshot, source: SourceRows, clauses: MergeClauses, new: Ints
) -> KeyFilter | None:
    """Return the keys that are inserted, if the key is the unenforced primary key."""
    if not clauses.key:
        return None
    schema = snapshot.manifest.schema
    keys = typed(source.take(new, clauses.key), schema)
    columns = [keys[name].combine_chunks() for name in clauses.key]
    return KeyFilter.of_keys([schema.field(name).id for name in clauses.key], columns)


# --- written as columns ---------------------------------------------------------------------------


def _by_columns(
    snapshot: Snapshot, source: SourceRows, clauses: MergeClauses, joined: JoinResult
) -> bool:
    if clauses.write_mode == "rewrite_columns":
        return True
    schema = snapshot.manifest.schema
    if clauses.write_mode == "rewrite_rows" or column_obstacles(clauses, source.schema, schema):
        return False
    touched = [(change.fragment, int(change.physical.size)) for change in joined.changes]
    return columns_are_cheaper(snapshot, touched, _changing(source, clauses, schema))


def _changing(source: SourceRows, clauses: MergeClauses, schema: Schema) -> Schema:
    names = [name for name in source.schema.names if name not in clauses.on]
    return Schema(tuple(field for field in schema if field.name in names), schema.metadata)


def write_columns_anew(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    joined: JoinResult,
    options: WriteOptions,
) -> MergePlan:
    """Write the columns that the source has anew for every fragment with a matched row."""
    part = _changing(source, clauses, snapshot.manifest.schema)
    copies = BlobCopies(snapshot)
    maker = RowMaker.of(snapshot, source, part, copies)
    partners = {change.fragment.id: change for change in joined.changes}

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        partner = partners[fragment.id]
        return maker.updated(fragment, partner.physical[first:last], partner.source[first:last])

    touched = [(change.fragment, change.physical) for change in joined.changes]
    rewritten = rewrite_columns(
        snapshot, part, touched, values=values, options=options, copies=copies
    )
    return MergePlan(
        DeletionPlan(snapshot.version, "", ()),
        (),
        rewritten.fields,
        rewritten.num_rows,
        inserted_keys=_inserted_keys(snapshot, source, clauses, joined.new),
        columns=rewritten,
    )


# --- in parts -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergePart:
    """What some fragments become; ``unmatched_source``: source rows without a partner, as bits."""

    plan: MergePlan
    unmatched_source: bytes

    @property
    def num_rows(self) -> int:
        """Rows that change or are deleted."""
        return self.plan.num_updated_rows + self.plan.num_deleted_rows


def plan_fragments(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    options: WriteOptions,
    fragments: Sequence[Fragment],
) -> MergePart:
    """Write what changes in some fragments; nothing is inserted.

    Raises as ``plan_merge`` does; no file remains then.
    """
    windows = read_keys(snapshot, clauses.on, fragments)
    joined = find_rows(snapshot, source, replace(clauses, inserts=True), windows=windows)
    is_unmatched = np.zeros(source.num_rows, np.bool_)
    is_unmatched[joined.new] = True
    write = write_columns_anew if clauses.write_mode == "rewrite_columns" else write_rows
    plan = write(snapshot, source, replace(clauses, key=()), replace(joined, new=NOTHING), options)
    return MergePart(plan, np.packbits(is_unmatched).tobytes())


def plan_inserts(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    options: WriteOptions,
    parts: Sequence[MergePart],
) -> MergePlan:
    """Write the source rows that no part has matched; all of them if there is no part."""
    is_new = np.ones(source.num_rows, np.bool_)
    for part in parts:
        bits = np.frombuffer(part.unmatched_source, np.uint8)
        is_new &= np.unpackbits(bits, count=source.num_rows).astype(np.bool_)
    new = np.flatnonzero(is_new) if clauses.inserts else NOTHING
    return write_rows(snapshot, source, clauses, joined=JoinResult((), (), new), options=options)


def plan_bucket(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    options: WriteOptions,
    windows: Sequence[KeyWindow],
) -> MergePlan:
    """Write what changes for the keys of one bucket, new rows included."""
    joined = find_rows(snapshot, source, clauses, windows=windows)
    return write_rows(snapshot, source, clauses, joined=joined, options=options)


def windows_of(snapshot: Snapshot, addresses: np.ndarray, keys: pa.Table) -> Iterator[KeyWindow]:
    """Yield the windows of rows that are known by their addresses, in the order of the fragments.

    Addresses are those of live rows of this version, each once; there may be none.
    """
    order = np.argsort(addresses, kind="stable")
    addresses = addresses[order]
    owners = (addresses >> np.uint64(32)).astype(np.int64)
    edges = np.append(np.flatnonzero(np.diff(owners, prepend=-1)), owners.size)
    fragments = snapshot.manifest.fragments.with_ids(owners[edges[:-1]].tolist())
    for start, stop in pairwise(edges.tolist()):
        physical = (addresses[start:stop] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        yield KeyWindow(
            fragments[int(owners[start])], physical, taken_rows(keys, pa.array(order[start:stop]))
        )


def united_plans(plans: Sequence[MergePlan]) -> MergePlan:
    """Make one plan of the plans of all parts, of which there is one at least."""
    if len(plans) == 1:
        return plans[0]
    filters = [plan.inserted_keys for plan in plans if plan.inserted_keys is not None]
    columns = [plan.columns for plan in plans if plan.columns is not None]
    return MergePlan(
        deletion=united_deletions([plan.deletion for plan in plans]),
        fragments=tuple(fragment for plan in plans for fragment in plan.fragments),
        fields=plans[0].fields,
        num_updated_rows=sum(plan.num_updated_rows for plan in plans),
        num_inserted_rows=sum(plan.num_inserted_rows for plan in plans),
        inserted_keys=KeyFilter.united(filters) if filters else None,
        columns=_united_columns(columns) if columns else None,
        logs=plans[0].logs,
    )


def _united_columns(parts: Sequence[ColumnRewrite]) -> ColumnRewrite:
    return ColumnRewrite(
        tuple(fragment for part in parts for fragment in part.fragments),
        parts[0].fields,
        sum(part.num_rows for part in parts),
        {fragment: rows for part in parts for fragment, rows in part.offsets.items()},
    )


def without_rows(snapshot: Snapshot, clauses: MergeClauses) -> MergePlan:
    """Return the plan that changes nothing."""
    nothing = DeletionPlan(snapshot.version, "", ())
    return MergePlan(nothing, (), (), logs=clauses.logs)


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
    return plan_merge(
        snapshot, source, clauses, options=_write_options(snapshot, clauses), progress=progress
    )


def _write_options(snapshot: Snapshot, clauses: MergeClauses) -> WriteOptions:
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
    delete_unused((snapshot.locations.home, path) for path in staged.data_files)
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
