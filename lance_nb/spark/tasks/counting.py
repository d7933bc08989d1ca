"""Count the rows that a filter passes, some fragments by each task. Only its columns are read.

Without a filter nothing of this is needed: the number is in the manifest.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.dataset import LanceDataset
from lance_nb.spark.filtered import plan_where
from lance_nb.spark.packing import TASK_BYTES
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows of some fragments pass."""

    num_rows: int


@dataclass(frozen=True, slots=True)
class CountRows:
    """Count where ``predicate`` passes, in these fragments of the pinned version."""

    place: Place
    fragment_ids: tuple[int, ...]
    predicate: str
    size_bytes: int

    def run(self) -> Counted:
        """Count."""
        fragments = self.place.fragments(set(self.fragment_ids))
        return Counted(self.place.dataset().count_rows(self.predicate, fragments=fragments))


def plan_count(dataset: LanceDataset, predicate: str, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan to count; nothing is committed. Raises PredicateError."""
    return plan_where("count", CountRows, dataset, predicate, task_bytes)
