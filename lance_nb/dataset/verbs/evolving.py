"""Change the columns of a dataset: drop, rename, retype, add, join.

Dropping and renaming write no data. New values go to new column files, one per fragment, beside
those that are there; other columns are not touched.

Source: ``LanceDataset.drop_columns``, ``alter_columns``, ``add_columns``, ``merge`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs import altering
from lance_nb.dataset.verbs.batch_udf import BatchUDF
from lance_nb.dataset.verbs.column_values import (
    ColumnValues,
    JoinedColumns,
    options_of,
    values_of,
)
from lance_nb.dataset.verbs.committing import commit_operation, replanned
from lance_nb.dataset.verbs.function_columns import FunctionColumns
from lance_nb.dataset.verbs.sources import reader_of, without_views
from lance_nb.dataset.verbs.telling import Progress, Told
from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.predicate import is_null_cast
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.column_files import extend_schema, write_columns
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.schema_change import (
    Alteration,
    preserves_nullability,
    without_fields,
)
from lance_nb.transactions.staged import Replacement
from lance_nb.transactions.unoffered_files import UnofferedFiles


class Work:
    """One attempt: where new files are noted, and who is told how far it is."""

    def __init__(self, files: UnofferedFiles, progress: Progress | None = None) -> None:
        self.files = files
        self._progress = progress

    def write(
        self, snapshot: Snapshot, part: Schema, values: FragmentValues
    ) -> tuple[Fragment, ...]:
        """Write the values of new columns for every fragment."""
        fragments = snapshot.manifest.fragments
        told = Told(sum(one.physical_rows for one in fragments), self._progress)
        return tuple(self._write_one(snapshot, one, part, values, told) for one in fragments)

    def _write_one(
        self, snapshot: Snapshot, one: Fragment, part: Schema, values: FragmentValues, told: Told
    ) -> Fragment:
        kept = values if isinstance(values, FunctionColumns) and values.is_checkpointed else None
        known = None if kept is None else kept.known_fragment(one, part)
        if known is not None:
            told.add(one.physical_rows)
            return known
        batches = _counted(values.batches(one), told)
        made = write_columns(snapshot.locations.home, one, part, batches, options_of(snapshot))
        if kept is None:
            self.files.add(_new_files(one, made))
        else:
            kept.keep_fragment(made)
        return made


Plan = Callable[[Snapshot, Work], Operation]


class FragmentValues(Protocol):
    """Values of new columns, fragment by fragment."""

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Yield the values for all physical rows of a fragment; fragments come in order."""
        ...


def evolve(
    session: Session, snapshot: Snapshot, plan: Plan, progress: Progress | None = None
) -> Snapshot:
    """Commit a change of columns, planned again after a retryable conflict."""

    def attempt(base: Snapshot) -> Snapshot:
        with UnofferedFiles(base.locations.home) as files:
            operation = plan(base, Work(files, progress))
            files.offer()
            return commit_operation(session, base, operation)

    return replanned(session, snapshot, attempt)


def staged(snapshot: Snapshot, plan: Plan, progress: Progress | None = None) -> Replacement:
    """Make a change of columns as an edit that is not committed."""
    with UnofferedFiles(snapshot.locations.home) as files:
        return replacement(snapshot, plan(snapshot, Work(files, progress)))


def replacement(snapshot: Snapshot, operation: Operation) -> Replacement:
    """Return a change of columns as an edit that owns the files that were written for it."""
    if not isinstance(operation, Merge):
        return Replacement(operation)
    written = tuple(
        Fragment(after.id, added, 0)
        for before, after in zip(snapshot.manifest.fragments, operation.fragments, strict=True)
        if (added := _new_files(before, after))
    )
    return Replacement(operation, written)


def _new_files(before: Fragment, after: Fragment) -> tuple[DataFile, ...]:
    known = {one.path for one in before.files}
    return tuple(one for one in after.files if one.path not in known)


def _counted(batches: Iterable[pa.RecordBatch], told: Told) -> Iterator[pa.RecordBatch]:
    for one in batches:
        yield one
        told.add(one.num_rows)


def alterations_of(given: Sequence[Any]) -> list[Alteration]:
    """Read the arguments of ``alter_columns``. Raises InvalidInputError."""
    return [Alteration.of(one) for one in given]


def drop(snapshot: Snapshot, columns: Sequence[str]) -> Operation:
    """Drop columns. Raises ColumnNotFoundError, InvalidInputError."""
    return Project(without_fields(snapshot.manifest.schema, columns), preserves_nullability=True)


def alter(snapshot: Snapshot, alterations: Sequence[Alteration], work: Work) -> Operation:
    """Rename columns, change whether they may be null, or cast them; raises as ``look`` does."""
    wanted = altering.look(snapshot, alterations)
    if wanted.cast is None:
        return Project(wanted.schema, preserves_nullability=wanted.keeps_nullability)
    fragments = work.write(snapshot, wanted.cast.part, wanted.cast)
    return Merge(fragments, wanted.schema, preserves_nullability=wanted.keeps_nullability)


@dataclass(frozen=True, slots=True)
class NewColumns:
    """What ``add_columns`` was asked for."""

    transforms: Any
    read_columns: Sequence[str] | None = None
    reader_schema: pa.Schema | None = None
    batch_size: int | None = None


def add(snapshot: Snapshot, wanted: NewColumns, work: Work) -> Operation:
    """Add columns: of nulls, of SQL expressions, by a function, or streamed in row order."""
    fields = _null_fields(snapshot, wanted.transforms)
    if fields is not None:
        schema, part = extend_schema(snapshot.manifest, fields)
        for one in _topmost_new(snapshot.manifest.schema, part):
            if not one.nullable:
                raise SchemaMismatchError(
                    f"column {one.name!r} would be all null: make it nullable"
                )
        return Merge(tuple(snapshot.manifest.fragments), schema, preserves_nullability=True)
    values = values_of(
        snapshot,
        wanted.transforms,
        columns=wanted.read_columns,
        batch_size=wanted.batch_size,
        reader_schema=wanted.reader_schema,
    )
    return _merged(snapshot, values, work)


def merge(snapshot: Snapshot, right: pa.Table, on: tuple[str, str], work: Work) -> Operation:
    """Add the columns of a table by a left join. Raises ColumnNotFoundError."""
    return _merged(snapshot, JoinedColumns(snapshot, right, on), work)


def forget(transforms: Any) -> None:
    """Remove the checkpoint of a function whose columns are committed."""
    if isinstance(transforms, BatchUDF) and transforms.cache is not None:
        transforms.cache.cleanup()


def read_right(data: Any, schema: pa.Schema | None) -> pa.Table:
    """Return the table that is joined."""
    return without_views(reader_of(data, schema)).read_all()


def _merged(snapshot: Snapshot, values: ColumnValues, work: Work) -> Operation:
    schema, part = extend_schema(snapshot.manifest, values.schema)
    lists = [one.name for one in part if one.logical_type.endswith("list.struct")]
    known = set(snapshot.manifest.schema.names)
    if known.intersection(lists):
        raise NotSupportedError(
            f"column {lists[0]!r} is a list: a field of its structs can be added as null (hand in "
            "a schema), not with values"
        )
    fragments = work.write(snapshot, part, values)
    values.finish()
    keeps = preserves_nullability(snapshot.manifest.schema, schema)
    return Merge(fragments, schema, preserves_nullability=keeps)


def _topmost_new(schema: Schema, fields: Iterable[Field]) -> Iterator[Field]:
    """Yield new fields whose parents are not new: what is below a null need not be nullable."""
    for field in fields:
        if schema.field_by_id(field.id) is None:
            yield field
        else:
            yield from _topmost_new(schema, field.children)


def _null_fields(snapshot: Snapshot, transforms: Any) -> pa.Schema | None:
    """Return columns that are null in every row and need no files, None for others."""
    if isinstance(transforms, pa.Schema):
        return transforms
    if isinstance(transforms, Mapping) and not transforms:
        return pa.schema([])
    if isinstance(transforms, Mapping) and all(isinstance(v, str) for v in transforms.values()):
        if all(map(is_null_cast, transforms.values())):
            return values_of(
                snapshot, transforms, columns=None, batch_size=None, reader_schema=None
            ).schema
        return None
    if isinstance(transforms, pa.Field):
        return pa.schema([transforms])
    is_list = isinstance(transforms, list) and transforms
    if is_list and all(isinstance(one, pa.Field) for one in transforms):
        return pa.schema(transforms)
    return None
