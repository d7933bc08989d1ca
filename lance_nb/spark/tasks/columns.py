"""Add columns fragment by fragment: each task writes one column file beside the others.

Values are SQL expressions, or a function of record batches; the function travels to the workers by
cloudpickle, so that one that is written in a notebook arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import schema_evolution
from lance_nb.dataset.verbs.column_values import options_of, values_of
from lance_nb.dataset.verbs.schema_evolution import FragmentValues
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.spark.packing import TASK_BYTES, chosen, pack
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan, commit_write
from lance_nb.spark.travelling import Travelling
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.column_files import extend_schema, write_columns
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.schema_change import preserves_nullability
from lance_nb.transactions.staged import StagedWrite

Values = Mapping[str, str] | Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class FilledFragments:
    """Fragments with their new column files, and the schema that they have then."""

    fragments: tuple[Fragment, ...]
    schema: Schema

    @property
    def num_rows(self) -> int:
        """Rows of these fragments, deleted ones included."""
        return sum(one.physical_rows for one in self.fragments)


def filled(
    snapshot: Snapshot, part: Schema, values: FragmentValues, ids: tuple[int, ...], after: Schema
) -> FilledFragments:
    """Write ``part`` for some fragments; ``after`` is the schema that they have then."""
    home, options = snapshot.locations.home, options_of(snapshot)
    made = [
        write_columns(home, one, part, values.batches(one), options)
        for one in chosen(snapshot, ids)
    ]
    return FilledFragments(tuple(made), after)


@dataclass(frozen=True, slots=True)
class FillColumns:
    """Compute columns for these fragments of the pinned version."""

    place: Place
    fragment_ids: tuple[int, ...]
    values: Travelling
    read_columns: tuple[str, ...] | None
    size_bytes: int

    @property
    def calls_user_code(self) -> bool:
        """Whether it calls a function of the user's, of which one call is made at a time."""
        return callable(self.values.value)

    def run(self) -> FilledFragments:
        """Write the column files."""
        _, snapshot = self.place.open()
        values = values_of(
            snapshot, self.values.value, columns=self.read_columns, batch_size=None,
            reader_schema=None,
        )  # fmt: skip
        schema, part = extend_schema(snapshot.manifest, values.schema)
        return filled(snapshot, part, values, self.fragment_ids, schema)


def plan_columns(
    dataset: LanceDataset,
    values: Values,
    read_columns: Sequence[str] | None = None,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan a backfill. Raises InvalidInputError, PredicateError, ColumnNotFoundError."""
    _, snapshot = dataset.opened
    if not callable(values) and not isinstance(values, Mapping):
        raise InvalidInputError(
            'a backfill takes expressions, {"area": "width * height"}, or a function of batches'
        )
    checked = values_of(snapshot, values, columns=read_columns, batch_size=None, reader_schema=None)
    extend_schema(snapshot.manifest, checked.schema)
    place = Place.of(dataset)
    said = Travelling.of(dict(values) if isinstance(values, Mapping) else values)
    columns = None if read_columns is None else tuple(read_columns)
    tasks = tuple(
        FillColumns(place, ids, said, columns, size) for ids, size in pack(snapshot, task_bytes)
    )
    detail = ", ".join(checked.schema.names)
    return Plan("add_columns", detail, place, tasks, commit_columns, as_edits=stage_columns)


def commit_columns(plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
    """Commit the new columns of all fragments."""
    merge = _merge_of(plan.place.open()[1], results)
    return commit_write(plan, StagedWrite(plan.place.version, merge), label)


def stage_columns(plan: Plan, results: Sequence[Any]) -> list[Any]:
    """Return the new columns of all fragments as an edit that is not committed."""
    snapshot = plan.place.open()[1]
    return [schema_evolution.replacement(snapshot, _merge_of(snapshot, results))]


def _merge_of(snapshot: Snapshot, results: Sequence[Any]) -> Merge:
    filled = {one.id: one for result in results for one in result.fragments}
    schema = results[0].schema
    keeps = preserves_nullability(snapshot.manifest.schema, schema)
    fragments = tuple(filled[one.id] for one in snapshot.manifest.fragments)
    return Merge(fragments, schema, preserves_nullability=keeps)
