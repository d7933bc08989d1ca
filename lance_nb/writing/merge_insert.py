"""Upserts: rows of a source matched to rows of the target by key, and what is written for each.

The target's key columns are joined with the source's (merge_insert_join.py). The matches say which
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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, RowIdMeta
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.format.schema import Schema
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass
from lance_nb.writing.column_rewrite import ColumnRewrite, rewrite_columns
from lance_nb.writing.deletion_plan import DeletionPlan, deletion_of, united_deletions
from lance_nb.writing.fragment_writer import FragmentWriter, WriteOptions, copying
from lance_nb.writing.merge_insert_join import (
    NOTHING,
    JoinResult,
    KeyWindow,
    Matches,
    find_rows,
    read_keys,
    typed,
)
from lance_nb.writing.merge_insert_plan import (
    MergeClauses,
    MergePlan,
    check_clauses,
    column_obstacles,
)
from lance_nb.writing.merge_insert_source import RowMaker, SourceRows, windows
from lance_nb.writing.row_rewrite import columns_are_cheaper

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
    joined = find_rows(snapshot, source, clauses, _counter(snapshot, source, progress))
    if _by_columns(snapshot, source, clauses, joined):
        plan = write_columns_anew(snapshot, source, clauses, joined, options)
    else:
        plan = write_rows(snapshot, source, clauses, joined, options)
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
        fragments = list(_with_known_ids(fragments, ids))
    return MergePlan(
        _deletion(snapshot, joined),
        tuple(fragments),
        tuple(field.id for field in schema.walk()),
        joined.num_updated_rows,
        int(joined.new.size),
        _inserted_keys(snapshot, source, clauses, joined.new),
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
    row_ids = np.concatenate([np.zeros(0, np.uint64), *ids])
    start = 0
    for fragment in fragments:
        mine = row_ids[start : start + fragment.physical_rows].astype(np.uint64)
        start += fragment.physical_rows
        if not mine.size:
            yield fragment
            continue
        sequence = RowIdSegments.from_numpy(mine)
        yield replace(fragment, row_id_meta=RowIdMeta.inline(sequence.to_bytes()))


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
    rewritten = rewrite_columns(snapshot, part, touched, values, options, copies=copies)
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
    return write_rows(snapshot, source, clauses, JoinResult((), (), new), options)


def plan_bucket(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    options: WriteOptions,
    windows: Sequence[KeyWindow],
) -> MergePlan:
    """Write what changes for the keys of one bucket, new rows included."""
    joined = find_rows(snapshot, source, clauses, windows=windows)
    return write_rows(snapshot, source, clauses, joined, options)


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
        united_deletions([plan.deletion for plan in plans]),
        tuple(fragment for plan in plans for fragment in plan.fragments),
        plans[0].fields,
        sum(plan.num_updated_rows for plan in plans),
        sum(plan.num_inserted_rows for plan in plans),
        KeyFilter.united(filters) if filters else None,
        _united_columns(columns) if columns else None,
        plans[0].logs,
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
