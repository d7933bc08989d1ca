"""Write the rows that a filter passes again, with new values, fragment by fragment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import updating
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan
from lance_nb.table.computed_columns import shape_of
from lance_nb.transactions.row_rewrite import RowRewrite


@dataclass(frozen=True, slots=True)
class UpdateRows:
    """Give columns new values where ``where`` passes (None: everywhere), in these fragments."""

    place: Place
    fragment_ids: tuple[int, ...]
    updates: tuple[tuple[str, str], ...]
    where: str | None
    size_bytes: int

    def run(self) -> RowRewrite | None:
        """Write the changed rows to new files."""
        _, snapshot = self.place.open()
        fragments = chosen(snapshot, self.fragment_ids)
        found = updating.plan(snapshot, dict(self.updates), self.where, fragments)
        return found if found.num_rows else None


def plan_update(
    dataset: LanceDataset,
    updates: Mapping[str, str],
    where: str | None = None,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan an update. Raises PredicateError, ColumnNotFoundError, InvalidInputError."""
    _, snapshot = dataset.opened
    updating.check(snapshot, updates, where)
    shape_of(snapshot.manifest.schema, dict(updates))  # an expression that cannot be computed
    place = Place.of(dataset)
    said = tuple(updates.items())
    tasks = tuple(
        UpdateRows(place, ids, said, where, size) for ids, size in pack(snapshot, task_bytes)
    )
    detail = ", ".join(updates) + (f" where {where}" if where else "")
    return Plan("update", detail, place, tasks)
