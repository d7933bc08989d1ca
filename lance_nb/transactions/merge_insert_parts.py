"""An upsert in parts: each part looks at some of the target's rows, all together are one commit.

Two ways to take it apart:

=================  =================================  ======================================
way                a part sees                        new rows are
=================  =================================  ======================================
by fragments       some fragments, all of the source  source rows that no part has matched:
                                                      known when all parts are done
by keys            all rows whose key is in a bucket  source rows that the part has not
                                                      matched: nobody else sees their keys
=================  =================================  ======================================

A part writes the rows that it changes; ``united`` makes one plan of all, which commits like an
upsert that was done at once.

Source: lance_nb.transactions.merge_insert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.format.key_filter import KeyFilter
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.column_rewrite import ColumnRewrite
from lance_nb.transactions.deletion_plan import DeletionPlan, united_deletions
from lance_nb.transactions.fragment_writer import WriteOptions
from lance_nb.transactions.merge_insert import write_columns_anew, write_rows
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_join import KeyWindow, read_keys
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_search import Found, find_rows
from lance_nb.transactions.merge_insert_source import SourceRows

_NOTHING: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MergePart:
    """What some fragments become; ``unmatched``: source rows without a partner there, as bits."""

    plan: MergePlan
    unmatched: bytes

    @property
    def num_rows(self) -> int:
        """Rows that change or go."""
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
    found = find_rows(snapshot, source, replace(clauses, inserts=True), windows=windows)
    is_unmatched = np.zeros(source.num_rows, np.bool_)
    is_unmatched[found.new] = True
    write = write_columns_anew if clauses.write_mode == "rewrite_columns" else write_rows
    plan = write(snapshot, source, replace(clauses, key=()), replace(found, new=_NOTHING), options)
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
        bits = np.frombuffer(part.unmatched, np.uint8)
        is_new &= np.unpackbits(bits, count=source.num_rows).astype(np.bool_)
    new = np.flatnonzero(is_new) if clauses.inserts else _NOTHING
    return write_rows(snapshot, source, clauses, Found((), (), new), options)


def plan_bucket(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    options: WriteOptions,
    windows: Sequence[KeyWindow],
) -> MergePlan:
    """Write what changes for the keys of one bucket, new rows included."""
    found = find_rows(snapshot, source, clauses, windows=windows)
    return write_rows(snapshot, source, clauses, found, options)


def windows_of(snapshot: Snapshot, addresses: np.ndarray, keys: pa.Table) -> Iterator[KeyWindow]:
    """Yield the windows of rows that are known by their addresses, in the order of the fragments.

    Addresses are those of live rows of this version, each once; there may be none.
    """
    order = np.argsort(addresses, kind="stable")
    addresses = addresses[order]
    owners = (addresses >> np.uint64(32)).astype(np.int64)
    edges = np.append(np.flatnonzero(np.diff(owners, prepend=-1)), owners.size)
    known = snapshot.manifest.fragments.with_ids(owners[edges[:-1]].tolist())
    for start, stop in pairwise(edges.tolist()):
        physical = (addresses[start:stop] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        yield KeyWindow(
            known[int(owners[start])], physical, taken_rows(keys, pa.array(order[start:stop]))
        )


def united(plans: Sequence[MergePlan]) -> MergePlan:
    """Make one plan of the plans of all parts, of which there is one at least."""
    if len(plans) == 1:
        return plans[0]
    filters = [one.inserted_keys for one in plans if one.inserted_keys is not None]
    columns = [one.columns for one in plans if one.columns is not None]
    return MergePlan(
        united_deletions([one.deletion for one in plans]),
        tuple(fragment for one in plans for fragment in one.fragments),
        plans[0].fields,
        sum(one.num_updated_rows for one in plans),
        sum(one.num_inserted_rows for one in plans),
        KeyFilter.united(filters) if filters else None,
        _united_columns(columns) if columns else None,
        plans[0].logs,
    )


def _united_columns(parts: Sequence[ColumnRewrite]) -> ColumnRewrite:
    return ColumnRewrite(
        tuple(fragment for one in parts for fragment in one.fragments),
        parts[0].fields,
        sum(one.num_rows for one in parts),
        {fragment: rows for one in parts for fragment, rows in one.offsets.items()},
    )


def without_rows(snapshot: Snapshot, clauses: MergeClauses) -> MergePlan:
    """Return the plan that changes nothing."""
    nothing = DeletionPlan(snapshot.version, "", ())
    return MergePlan(nothing, (), (), logs=clauses.logs)
