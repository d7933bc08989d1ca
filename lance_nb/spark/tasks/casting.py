"""Cast columns fragment by fragment: each task writes one column file beside the others.

Source: lance_nb.dataset.verbs.schema_evolution; ``LanceDataset.alter_columns`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs.column_values import CastColumns
from lance_nb.dataset.verbs.schema_evolution import look
from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema
from lance_nb.spark.packing import TASK_BYTES, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan
from lance_nb.spark.tasks.columns import FilledFragments, commit_columns, filled, stage_columns
from lance_nb.transactions.schema_change import Alteration


@dataclass(frozen=True, slots=True)
class CastFragments:
    """Write columns in other types for these fragments of the pinned version.

    ``part`` are the columns with their new field ids, ``after`` is the schema of the next version.
    """

    place: Place
    fragment_ids: tuple[int, ...]
    part: Schema
    after: Schema
    size_bytes: int

    def run(self) -> FilledFragments:
        """Write the column files. Raises PredicateError for a value that does not fit."""
        _, snapshot = self.place.open()
        values = CastColumns(snapshot, self.part)
        return filled(snapshot, self.part, values, self.fragment_ids, self.after)


def plan_cast(
    dataset: LanceDataset, types: Mapping[str, pa.DataType], *, task_bytes: int = TASK_BYTES
) -> Plan:
    """Plan to give columns, by dotted path, other types; without a change there is no task.

    Raises as ``LanceDataset.alter_columns`` does.
    """
    if not types:
        raise InvalidInputError("name the columns to cast and their types: {'price': pa.float32()}")
    _, snapshot = dataset.opened
    asked = [Alteration.of({"path": path, "data_type": one}) for path, one in types.items()]
    wanted = look(snapshot, asked)
    place, cast = Place.of(dataset), wanted.cast
    cut = () if cast is None else pack(snapshot, task_bytes)
    tasks = tuple(
        CastFragments(place, ids, cast.part, wanted.schema, size)
        for ids, size in cut
        if cast is not None
    )
    detail = ", ".join(f"{path} to {one}" for path, one in types.items())
    return Plan("cast", detail, place, tasks, commit_columns, as_edits=stage_columns)
