"""Upserts: rows of a source matched to rows of the target by key, and what becomes of each.

How: the source is at hand (SourceRows), the target's key columns are joined with its keys, and the
matches say which target rows go and which source rows are written: first those that replace rows,
in the order of the target, with the row ids of these; then the new ones, in the order of the
source. Where only some columns of matched rows change, these can be rewritten alone instead.

Limits: memory holds the source's keys, two numbers per match, one window of rows.
Source: ``MergeInsertBuilder`` of pylance 14.0.2; message ``Transaction.Update`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, RowIdMeta
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.format.schema import Schema
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.column_rewrite import rewrite_columns
from lance_nb.transactions.deletion_plan import DeletionPlan, deletion_of
from lance_nb.transactions.fragment_writer import FragmentWriter, WriteOptions, copying
from lance_nb.transactions.merge_insert_clauses import (
    MergeClauses,
    check_clauses,
    column_obstacles,
)
from lance_nb.transactions.merge_insert_join import Matches
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_rows import RowMaker, windows
from lance_nb.transactions.merge_insert_search import Found, find_rows, typed
from lance_nb.transactions.merge_insert_source import SourceRows
from lance_nb.transactions.row_rewrite import columns_are_cheaper

Progress = Callable[[int, int], object]


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
    found = find_rows(snapshot, source, clauses, _counter(snapshot, source, progress))
    if _by_columns(snapshot, source, clauses, found):
        plan = write_columns_anew(snapshot, source, clauses, found, options)
    else:
        plan = write_rows(snapshot, source, clauses, found, options)
    if progress is not None:
        total = _total(snapshot, source)
        progress(total, total)
    return replace(plan, logs=clauses.logs)


def _total(snapshot: Snapshot, source: SourceRows) -> int:
    return int(snapshot.manifest.fragments.counts().num_rows.sum()) + source.num_rows


def _counter(
    snapshot: Snapshot, source: SourceRows, progress: Progress | None
) -> Callable[[int], None]:
    """Return what counts rows of the target as they are read."""
    total, done = _total(snapshot, source), 0

    def seen(num_rows: int) -> None:
        nonlocal done
        done += num_rows
        if progress is not None:
            progress(done, total)

    return seen


# --- written as rows ------------------------------------------------------------------------------


def write_rows(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    found: Found,
    options: WriteOptions,
) -> MergePlan:
    """Write matched rows with their new values, and new ones; no file remains after an error."""
    schema = snapshot.manifest.schema
    copies = BlobCopies(snapshot)
    maker = RowMaker.of(snapshot, source, schema, copies)
    ids = []
    with FragmentWriter(schema, snapshot.locations.home, copying(options, copies)) as writer:
        for matches in found.changes:
            ids.append(_row_ids(snapshot, matches))
            for start, stop in windows(matches.source.size, source.row_bytes):
                rows = matches.physical[start:stop], matches.source[start:stop]
                _write(writer, maker.updated(matches.fragment, *rows))
        for start, stop in windows(found.new.size, source.row_bytes):
            _write(writer, maker.inserted(found.new[start:stop]))
        fragments = writer.finish()
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        fragments = list(_with_known_ids(fragments, ids))
    return MergePlan(
        _deletion(snapshot, found),
        tuple(fragments),
        tuple(one.id for one in schema.walk()),
        found.num_updated_rows,
        int(found.new.size),
        _inserted_keys(snapshot, source, clauses, found.new),
    )


def _write(writer: FragmentWriter, rows: pa.Table) -> None:
    for batch in rows.to_batches():
        writer.write(batch)


def _row_ids(snapshot: Snapshot, matches: Matches) -> np.ndarray:
    from lance_nb.table import row_ids

    ids = row_ids.fragment_row_ids(snapshot, matches.fragment)
    return np.zeros(0, np.uint64) if ids is None else ids[matches.physical]


def _with_known_ids(fragments: Sequence[Fragment], ids: list[np.ndarray]) -> Iterator[Fragment]:
    """Give the rows that moved, which come first, their ids; new rows get theirs at the commit."""
    known = np.concatenate([np.zeros(0, np.uint64), *ids])
    start = 0
    for one in fragments:
        mine = known[start : start + one.physical_rows].astype(np.uint64)
        start += one.physical_rows
        if not mine.size:
            yield one
            continue
        sequence = RowIdSegments.from_numpy(mine)
        yield replace(one, row_id_meta=RowIdMeta.inline(sequence.to_bytes()))


def _deletion(snapshot: Snapshot, found: Found) -> DeletionPlan:
    """Delete what is replaced and what goes, in the order of the scan."""
    by_id: dict[int, tuple[Fragment, list[Ints]]] = {}
    moved = [(one.fragment, one.physical) for one in found.changes]
    for fragment, rows in (*moved, *found.gone):
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
    snapshot: Snapshot, source: SourceRows, clauses: MergeClauses, found: Found
) -> bool:
    if clauses.write_mode == "rewrite_columns":
        return True
    schema = snapshot.manifest.schema
    if clauses.write_mode == "rewrite_rows" or column_obstacles(clauses, source.schema, schema):
        return False
    touched = [(one.fragment, int(one.physical.size)) for one in found.changes]
    return columns_are_cheaper(snapshot, touched, _changing(source, clauses, schema))


def _changing(source: SourceRows, clauses: MergeClauses, schema: Schema) -> Schema:
    names = [one for one in source.schema.names if one not in clauses.on]
    return Schema(tuple(one for one in schema if one.name in names), schema.metadata)


def write_columns_anew(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    found: Found,
    options: WriteOptions,
) -> MergePlan:
    """Write the columns that the source has anew for every fragment with a matched row."""
    part = _changing(source, clauses, snapshot.manifest.schema)
    copies = BlobCopies(snapshot)
    maker = RowMaker.of(snapshot, source, part, copies)
    partners = {one.fragment.id: one for one in found.changes}

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        one = partners[fragment.id]
        return maker.updated(fragment, one.physical[first:last], one.source[first:last])

    touched = [(one.fragment, one.physical) for one in found.changes]
    made = rewrite_columns(snapshot, part, touched, values, options, copies=copies)
    return MergePlan(
        DeletionPlan(snapshot.version, "", ()),
        (),
        made.fields,
        made.num_rows,
        inserted_keys=_inserted_keys(snapshot, source, clauses, found.new),
        columns=made,
    )
