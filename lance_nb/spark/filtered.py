"""Plans work on the rows that a filter passes: the filter is checked, the fragments are packed."""

from __future__ import annotations

from collections.abc import Callable

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import deleting
from lance_nb.spark.packing import pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan, Task

# Made of the place, the ids of fragments, the filter, and the bytes of these fragments.
MakeTask = Callable[[Place, tuple[int, ...], str, int], Task]


def plan_where(
    what: str, task: MakeTask, dataset: LanceDataset, predicate: str, task_bytes: int
) -> Plan:
    """Plan one task for each group of fragments. Raises PredicateError."""
    _, snapshot = dataset.opened
    deleting.check(snapshot, predicate)
    place = Place.of(dataset)
    tasks = tuple(task(place, ids, predicate, size) for ids, size in pack(snapshot, task_bytes))
    return Plan(what, f"where {predicate}", place, tasks)
