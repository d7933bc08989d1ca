"""Add or cast columns: each task writes one column file for each of its fragments.

New values come from SQL expressions, or from a function of record batches. A function is sent to
the workers by cloudpickle, so one that is defined in a notebook arrives too.
Source: lance_nb.writing.schema_evolution; ``LanceDataset.alter_columns`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.spark.engine import PickledValue
from lance_nb.spark.plan import (
    TASK_BYTES,
    Label,
    PinnedVersion,
    Plan,
    commit_write,
    fragment_groups,
    select_fragments,
)
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.schema_change import Alteration, extend_schema, preserves_nullability
from lance_nb.value_classes import dataclass
from lance_nb.writing import schema_evolution
from lance_nb.writing.rewriting import write_columns
from lance_nb.writing.schema_evolution import (
    CastColumns,
    FragmentValues,
    look,
    null_fields,
    options_of,
    values_of,
)
from lance_nb.writing.staged import StagedWrite

Values = Mapping[str, str] | Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class FilledFragments:
    """Fragments with their new column files, and the new schema."""

    fragments: tuple[Fragment, ...]
    schema: Schema

    @property
    def num_rows(self) -> int:
        """Rows of these fragments, deleted ones included."""
        return sum(fragment.physical_rows for fragment in self.fragments)


def fill_fragments(
    snapshot: Snapshot, part: Schema, values: FragmentValues, ids: tuple[int, ...], after: Schema
) -> FilledFragments:
    """Write the columns ``part`` of some fragments; ``after`` is the new schema."""
    home, options = snapshot.locations.home, options_of(snapshot)
    filled = [
        write_columns(home, fragment, part, batches=values.batches(fragment), options=options)
        for fragment in select_fragments(snapshot, ids)
    ]
    return FilledFragments(tuple(filled), after)


@dataclass(frozen=True, slots=True)
class FillColumns:
    """Compute new columns for some fragments.

    ``part`` are the columns with their field ids, ``after`` is the new schema: new ids depend on
    all fragments, which the plan looks at once for all tasks.
    """

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    values: PickledValue
    read_columns: tuple[str, ...] | None
    part: Schema
    after: Schema
    size_bytes: int

    @property
    def calls_user_code(self) -> bool:
        """Whether it calls a user function, which must not run in parallel threads."""
        return callable(self.values.value)

    def run(self) -> FilledFragments:
        """Write the column files."""
        _, snapshot = self.pinned.open()
        if null_fields(snapshot, self.values.value) is not None:  # columns of nulls need no files
            return FilledFragments(tuple(select_fragments(snapshot, self.fragment_ids)), self.after)
        values = values_of(
            snapshot, self.values.value, columns=self.read_columns, batch_size=None,
            reader_schema=None,
        )  # fmt: skip
        return fill_fragments(snapshot, self.part, values, ids=self.fragment_ids, after=self.after)


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
            'expected SQL expressions such as {"area": "width * height"}, or a function of batches'
        )
    checked = values_of(snapshot, values, columns=read_columns, batch_size=None, reader_schema=None)
    after, part = extend_schema(snapshot.manifest, checked.schema)
    pinned = PinnedVersion.of(dataset)
    pickled = PickledValue.of(dict(values) if isinstance(values, Mapping) else values)
    columns = None if read_columns is None else tuple(read_columns)
    tasks = tuple(
        FillColumns(
            pinned=pinned,
            fragment_ids=ids,
            values=pickled,
            read_columns=columns,
            part=part,
            after=after,
            size_bytes=size,
        )
        for ids, size in fragment_groups(snapshot, task_bytes)
    )
    detail = ", ".join(checked.schema.names)
    return Plan(
        "add_columns", detail, pinned, tasks=tasks, finish=commit_columns, as_edits=stage_columns
    )


def commit_columns(plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
    """Commit the new columns of all fragments as one version."""
    merge = _merge_of(plan.pinned.open()[1], results)
    return commit_write(plan, StagedWrite(plan.pinned.version, merge), label)


def stage_columns(plan: Plan, results: Sequence[Any]) -> list[Any]:
    """Return the new columns of all fragments as one edit for a stage."""
    snapshot = plan.pinned.open()[1]
    return [schema_evolution.replacement(snapshot, _merge_of(snapshot, results))]


def _merge_of(snapshot: Snapshot, results: Sequence[Any]) -> Merge:
    filled = {fragment.id: fragment for result in results for fragment in result.fragments}
    schema = results[0].schema
    keeps = preserves_nullability(snapshot.manifest.schema, schema)
    fragments = tuple(filled[fragment.id] for fragment in snapshot.manifest.fragments)
    return Merge(fragments, schema, preserves_nullability=keeps)


@dataclass(frozen=True, slots=True)
class CastFragments:
    """Cast columns of some fragments.

    ``part`` are the columns with their new field ids, ``after`` is the new schema.
    """

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    part: Schema
    after: Schema
    size_bytes: int

    def run(self) -> FilledFragments:
        """Write the column files. Raises PredicateError for a value out of range."""
        _, snapshot = self.pinned.open()
        values = CastColumns(snapshot, self.part)
        return fill_fragments(snapshot, self.part, values, ids=self.fragment_ids, after=self.after)


def plan_cast(
    dataset: LanceDataset, types: Mapping[str, pa.DataType], *, task_bytes: int = TASK_BYTES
) -> Plan:
    """Plan to cast columns, given by dotted paths; no tasks if nothing changes.

    Raises as ``LanceDataset.alter_columns`` does.
    """
    if not types:
        raise InvalidInputError("name the columns to cast and their types: {'price': pa.float32()}")
    _, snapshot = dataset.opened
    alterations = [
        Alteration.of({"path": path, "data_type": type_}) for path, type_ in types.items()
    ]
    altered = look(snapshot, alterations)
    pinned, cast = PinnedVersion.of(dataset), altered.cast
    cut = () if cast is None else fragment_groups(snapshot, task_bytes)
    tasks = tuple(
        CastFragments(pinned, ids, cast.part, after=altered.schema, size_bytes=size)
        for ids, size in cut
        if cast is not None
    )
    detail = ", ".join(f"{path} to {type_}" for path, type_ in types.items())
    return Plan("cast", detail, pinned, tasks=tasks, finish=commit_columns, as_edits=stage_columns)
