"""Find the rows that a filter passes in some fragments, to delete them."""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import deleting
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
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
    _, snapshot = dataset.opened
    deleting.check(snapshot, predicate)
    place = Place.of(dataset)
    tasks = tuple(
        DeleteRows(place, ids, predicate, size) for ids, size in pack(snapshot, task_bytes)
    )
    return Plan("delete", f"where {predicate}", place, tasks)
