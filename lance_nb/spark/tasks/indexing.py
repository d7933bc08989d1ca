"""Build a scalar index: every task sorts the column of some fragments into a segment of its own.

Segments share the index's name, and one commit makes all of them known; who looks something up
looks into each. A row that is written later is found by scanning, until pylance optimizes the
index.

Source: lance_nb.dataset.verbs.indexing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import indexing
from lance_nb.dataset.verbs.indexing import KIND, Wanted
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan, commit_write
from lance_nb.transactions.staged import StagedWrite

# Many segments make looking up slow, so a segment is more than other tasks have.
SEGMENT_BYTES = 8 * TASK_BYTES


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment whose files are written."""

    index: IndexMetadata
    num_rows: int


@dataclass(frozen=True, slots=True)
class BuildSegment:
    """Sort one column of these fragments of the pinned version."""

    place: Place
    wanted: Wanted
    fragment_ids: tuple[int, ...]
    size_bytes: int

    def run(self) -> BuiltSegment:
        """Write the files of the segment."""
        _, snapshot = self.place.open()
        fragments = chosen(snapshot, self.fragment_ids)
        return BuiltSegment(*indexing.write_segment(snapshot, self.wanted, fragments))


@dataclass(frozen=True, slots=True)
class CommitSegments:
    """Makes the segments known, in the place of those that the index had."""

    name: str

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit. Raises RetryableCommitConflictError when indexed rows were changed meanwhile."""
        _, snapshot = plan.place.open()
        segments = [one.index for one in results]
        operation = indexing.operation_of(snapshot, self.name, segments)
        return commit_write(plan, StagedWrite(plan.place.version, operation), label)


def plan_index(
    dataset: LanceDataset,
    column: str,
    index_type: str = KIND,
    name: str | None = None,
    *,
    replace: bool = True,
    task_bytes: int = SEGMENT_BYTES,
) -> Plan:
    """Plan an index on a column, by default named ``<column>_idx``.

    Raises ColumnNotFoundError, InvalidInputError (the type, or the name is taken),
    NotSupportedError (a kind other than BTREE; a column inside of a struct).
    """
    _, snapshot = dataset.opened
    uri, kind = dataset.uri, str(index_type)
    wanted = indexing.check(snapshot, uri, column, kind, name, replace=replace)
    place = Place.of(dataset)
    tasks = tuple(
        BuildSegment(place, wanted, ids, size) for ids, size in pack(snapshot, task_bytes)
    )
    detail = f"{wanted.name} on {column}"
    return Plan("create_index", detail, place, tasks, CommitSegments(wanted.name))
