"""How many bytes each field takes on disk, looked up fragment by fragment.

Source: lance_nb.table.data_statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_nb.dataset import LanceDataset
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan
from lance_nb.table.data_statistics import DataStatistics, FieldStatistics, data_statistics


@dataclass(frozen=True, slots=True)
class MeasureFragments:
    """Measure some fragments; reads metadata of their files, and descriptions of blobs."""

    place: Place
    fragment_ids: tuple[int, ...]
    size_bytes: int

    def run(self) -> DataStatistics:
        """Return the bytes of every field."""
        _, snapshot = self.place.open()
        return data_statistics(snapshot, among=chosen(snapshot, self.fragment_ids))


def plan_statistics(dataset: LanceDataset, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan to measure all fragments; nothing is committed."""
    _, snapshot = dataset.opened
    place = Place.of(dataset)
    tasks = tuple(MeasureFragments(place, ids, size) for ids, size in pack(snapshot, task_bytes))
    return Plan("statistics", dataset.name, place, tasks)


def added_up(dataset: LanceDataset, parts: Sequence[DataStatistics]) -> DataStatistics:
    """Add up what tasks have measured, in the order of the schema."""
    sizes = {one.id: (0, 0) for one in dataset.lance_schema.tree.walk()}
    for part in parts:
        for one in part.fields:
            stored, payloads = sizes[one.id]
            sizes[one.id] = stored + one.bytes_on_disk, payloads + one.payload_bytes
    return DataStatistics([FieldStatistics(one, *pair) for one, pair in sizes.items()])
