"""Find the rows that a filter passes in some fragments, to delete them."""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import deleting
from lance_nb.spark.filtered import plan_where
from lance_nb.spark.packing import TASK_BYTES, chosen
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan
from lance_nb.transactions.deletion_plan import DeletionPlan


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Delete where ``predicate`` passes, in these fragments of the pinned version."""

    place: Place
    fragment_ids: tuple[int, ...]
    predicate: str
    size_bytes: int

    def run(self) -> DeletionPlan | None:
        """Return the rows that go; writes nothing."""
        _, snapshot = self.place.open()
        found = deleting.plan(snapshot, self.predicate, chosen(snapshot, self.fragment_ids))
        return found if found.num_rows else None


def plan_delete(dataset: LanceDataset, predicate: str, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan a deletion. Raises PredicateError."""
    return plan_where("delete", DeleteRows, dataset, predicate, task_bytes)
