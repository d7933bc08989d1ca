"""Upserts by fragments: every task gets the whole source and looks at some fragments of the target.

Fits sources of up to ``SOURCE_BYTES``, which travel in the descriptors, once for all tasks of a
worker; larger ones are shuffled by key (lance_nb.spark.shuffle). Which source rows are new is known
when all tasks are done; those are written here, before the commit.

Source: lance_nb.transactions.merge_insert_parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs.upserting import lonely_filter
from lance_nb.dataset.verbs.writing import own_options
from lance_nb.errors import InvalidInputError
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan, commit_edits
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.fragment_writer import WriteOptions
from lance_nb.transactions.merge_insert_clauses import MergeClauses, check_clauses
from lance_nb.transactions.merge_insert_parts import (
    MergePart,
    plan_fragments,
    plan_inserts,
    united,
)
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_source import SourceRows

SOURCE_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of an upsert as a value that travels: its filter is text."""

    clauses: MergeClauses
    lonely_filter: str | None

    @classmethod
    def of(cls, clauses: MergeClauses) -> Clauses:
        """Take the filter apart. Raises InvalidInputError for one that is no SQL."""
        found = clauses.lonely_filter
        if found is not None and found.expression is None:
            raise InvalidInputError(
                "the filter of when_not_matched_by_source_delete is SQL text here: expressions of "
                "pyarrow do not travel to other processes"
            )
        return cls(replace(clauses, lonely_filter=None), None if found is None else found.text)

    def bound(self, snapshot: Snapshot) -> MergeClauses:
        """Return the clauses for a version."""
        if self.lonely_filter is None:
            return self.clauses
        found = lonely_filter(snapshot.manifest.schema, self.lonely_filter)
        return replace(self.clauses, lonely_filter=found)


@dataclass(frozen=True, slots=True)
class MergeFragments:
    """Match the source with the rows of some fragments, and write those that change."""

    place: Place
    fragment_ids: tuple[int, ...]
    clauses: Clauses
    source: bytes
    size_bytes: int

    def run(self) -> MergePart:
        """Write the changed rows."""
        _, snapshot = self.place.open()
        with read_source(self.source) as rows:
            return plan_fragments(
                snapshot,
                rows,
                self.clauses.bound(snapshot),
                file_options(snapshot),
                chosen(snapshot, self.fragment_ids),
            )


@dataclass(frozen=True, slots=True)
class InsertRest:
    """Writes the rows that no task has matched, and makes one plan of all parts."""

    clauses: Clauses
    source: bytes

    def __call__(self, plan: Plan, results: Sequence[Any]) -> list[MergePlan]:
        """Return the one plan."""
        _, snapshot = plan.place.open()
        parts: list[MergePart] = list(results)
        clauses = self.clauses.bound(snapshot)
        with read_source(self.source) as rows:
            rest = plan_inserts(snapshot, rows, clauses, file_options(snapshot), parts)
        made = united([*(one.plan for one in parts), rest])
        return [replace(made, logs=clauses.logs)]


def plan_merge(
    dataset: LanceDataset, clauses: MergeClauses, source: pa.Table, *, task_bytes: int = TASK_BYTES
) -> Plan:
    """Plan an upsert of a source that every task gets. Raises as ``merge_insert`` does."""
    _, snapshot = dataset.opened
    check(snapshot, clauses, source.schema)
    place, said, payload = Place.of(dataset), Clauses.of(clauses), ipc_bytes(source)
    weight = len(payload)
    tasks = tuple(
        MergeFragments(place, ids, said, payload, size + weight)
        for ids, size in pack(snapshot, task_bytes)
    )
    detail = f"{source.num_rows:,} rows on {', '.join(clauses.on)}"
    rest = InsertRest(said, payload)
    return Plan("merge_insert", detail, place, tasks, commit_edits, settle=rest, is_empty_too=True)


def check(snapshot: Snapshot, clauses: MergeClauses, source: pa.Schema) -> None:
    """Check an upsert before anything is read. Raises as ``merge_insert`` does."""
    if clauses.does_nothing:
        raise InvalidInputError(
            "this merge does nothing: add when_matched_update_all(), when_not_matched_insert_all() "
            "or another clause"
        )
    check_clauses(clauses, source, snapshot.manifest.schema)


def file_options(snapshot: Snapshot) -> WriteOptions:
    """Return how new files of a dataset are written."""
    return own_options(snapshot)


def ipc_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def read_source(payload: bytes) -> SourceRows:
    """Return the rows of an Arrow stream, which is not copied."""
    return SourceRows(pa.ipc.open_stream(pa.py_buffer(payload)), None)
