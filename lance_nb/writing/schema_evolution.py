"""Change the columns of a dataset: drop, rename, retype, add, join.

Dropping, renaming and changing nullability write no data. New values go to new column files, one
per fragment, beside the existing ones. A cast gives a column a new field id; its values are written
fragment by fragment, here or in tasks elsewhere.

Limits: files of version 2.0 cannot hold one field of a struct by itself; a column that has an index
is not cast.
Source: ``LanceDataset.drop_columns``, ``alter_columns``, ``add_columns``, ``merge`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of
from lance_nb.session.session import Session
from lance_nb.table.filtered_scan import RowChoice, count_selected
from lance_nb.table.indices import read_indices
from lance_nb.table.predicate import is_null_cast, null_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.schema_change import (
    Alteration,
    altered,
    extend_schema,
    next_field_id,
    preserves_nullability,
    with_former_paths,
    without_fields,
)
from lance_nb.value_classes import dataclass
from lance_nb.writing.column_rewrite import write_columns
from lance_nb.writing.column_values import (
    CastColumns,
    ColumnValues,
    JoinedColumns,
    options_of,
    values_of,
)
from lance_nb.writing.committing import commit_operation, replanned
from lance_nb.writing.fragment_writer import UncommittedFiles
from lance_nb.writing.input_data import reader_of, without_views
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.staged import Replacement
from lance_nb.writing.udf_columns import BatchUDF, FunctionColumns


@dataclass(frozen=True, slots=True)
class Altered:
    """The schema after alterations; ``cast`` are the columns to write for it, if any."""

    schema: Schema
    keeps_nullability: bool
    cast: CastColumns | None = None


def look(snapshot: Snapshot, alterations: Sequence[Alteration]) -> Altered:
    """Say what alterations come to; reads values only to find nulls where there must be none.

    Raises ColumnNotFoundError, SchemaMismatchError (nulls in a column that is to have none, a cast
    of a column that has an index), NotSupportedError.
    """
    before = snapshot.manifest.schema
    alterations = with_former_paths(before, alterations)
    after = altered(before, alterations, next_field_id(snapshot.manifest))
    for alteration in alterations:
        if alteration.nullable is False and before.field(alteration.path).nullable:
            _check_no_nulls(snapshot, alteration.path)
    keeps = preserves_nullability(before, after)
    retyped = [
        replace(alteration, name=None, nullable=None)
        for alteration in alterations
        if alteration.data_type
    ]
    typed = altered(before, retyped, next_field_id(snapshot.manifest))
    old = {field.id for field in before.walk()}
    new = [field.id for field in typed.walk() if field.id not in old]
    if not new:
        return Altered(after, keeps)
    _check_no_indices(snapshot, old - {field.id for field in typed.walk()})
    cast = CastColumns(snapshot, typed.project_by_ids(new))
    if any(top.id in old for top in cast.part) and storage_version(snapshot.manifest) == "2.0":
        raise NotSupportedError(
            "in files of version 2.0, a single field of a struct cannot be cast; overwrite the "
            "dataset with data_storage_version='2.2' first"
        )
    return Altered(after, keeps, cast)


def _check_no_indices(snapshot: Snapshot, fields: AbstractSet[int]) -> None:
    """Refuse to cast fields that indices are on: these could not be used any more."""
    affected = [index for index in read_indices(snapshot) if not fields.isdisjoint(index.fields)]
    if affected:
        schema = snapshot.manifest.schema
        ids = {field_id for index in affected for field_id in index.fields if field_id in fields}
        paths = sorted(schema.path_of(field_id) or str(field_id) for field_id in ids)
        names = sorted({index.name for index in affected})
        raise SchemaMismatchError(
            f"{', '.join(map(repr, paths))} cannot be cast: {', '.join(names)} would no longer fit "
            "the values; call drop_index() first, and create the index again after the cast"
        )


def _check_no_nulls(snapshot: Snapshot, path: str) -> None:
    names = tuple(field.name for field in snapshot.manifest.schema.resolve(path))
    condition = null_filter(names, project(snapshot.manifest.schema, None).schema)
    count = count_selected(snapshot, RowChoice(condition))
    if count:
        raise SchemaMismatchError(
            f"column {path!r} has {count_of(count, 'null')} and cannot be made non-nullable; "
            "delete or update those rows first"
        )


class Work:
    """One attempt: where new files are noted, and who is counter how far it is."""

    def __init__(self, files: UncommittedFiles, progress: Progress | None = None) -> None:
        self.files = files
        self._progress = progress

    def write(
        self, snapshot: Snapshot, part: Schema, values: FragmentValues
    ) -> tuple[Fragment, ...]:
        """Write the values of new columns for every fragment."""
        fragments = snapshot.manifest.fragments
        counter = ProgressCounter(
            sum(fragment.physical_rows for fragment in fragments), self._progress
        )
        return tuple(
            self._write_one(snapshot, fragment, part, values, counter) for fragment in fragments
        )

    def _write_one(
        self,
        snapshot: Snapshot,
        fragment: Fragment,
        part: Schema,
        values: FragmentValues,
        counter: ProgressCounter,
    ) -> Fragment:
        checkpointed = (
            values if isinstance(values, FunctionColumns) and values.is_checkpointed else None
        )
        stored = None if checkpointed is None else checkpointed.known_fragment(fragment, part)
        if stored is not None:
            counter.add(fragment.physical_rows)
            return stored
        batches = _counted(values.batches(fragment), counter)
        written = write_columns(
            snapshot.locations.home, fragment, part, batches, options_of(snapshot)
        )
        if checkpointed is None:
            self.files.add(_new_files(fragment, written))
        else:
            checkpointed.keep_fragment(written)
        return written


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
        with UncommittedFiles(base.locations.home) as files:
            operation = plan(base, Work(files, progress))
            files.offer()
            return commit_operation(session, base, operation)

    return replanned(session, snapshot, attempt)


def staged(snapshot: Snapshot, plan: Plan, progress: Progress | None = None) -> Replacement:
    """Make a change of columns as an edit that is not committed."""
    with UncommittedFiles(snapshot.locations.home) as files:
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
    paths = {file.path for file in before.files}
    return tuple(file for file in after.files if file.path not in paths)


def _counted(
    batches: Iterable[pa.RecordBatch], counter: ProgressCounter
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        counter.add(batch.num_rows)


def alterations_of(changes: Sequence[Any]) -> list[Alteration]:
    """Read the arguments of ``alter_columns``. Raises InvalidInputError."""
    return [Alteration.of(change) for change in changes]


def drop(snapshot: Snapshot, columns: Sequence[str]) -> Operation:
    """Drop columns. Raises ColumnNotFoundError, InvalidInputError."""
    return Project(without_fields(snapshot.manifest.schema, columns), preserves_nullability=True)


def alter(snapshot: Snapshot, alterations: Sequence[Alteration], work: Work) -> Operation:
    """Rename columns, change whether they may be null, or cast them; raises as ``look`` does."""
    changed = look(snapshot, alterations)
    if changed.cast is None:
        return Project(changed.schema, preserves_nullability=changed.keeps_nullability)
    fragments = work.write(snapshot, changed.cast.part, changed.cast)
    return Merge(fragments, changed.schema, preserves_nullability=changed.keeps_nullability)


@dataclass(frozen=True, slots=True)
class NewColumns:
    """What ``add_columns`` was asked for."""

    transforms: Any
    read_columns: Sequence[str] | None = None
    reader_schema: pa.Schema | None = None
    batch_size: int | None = None


def add(snapshot: Snapshot, new_columns: NewColumns, work: Work) -> Operation:
    """Add columns: of nulls, of SQL expressions, by a function, or streamed in row order."""
    fields = null_fields(snapshot, new_columns.transforms)
    if fields is not None:
        schema, part = extend_schema(snapshot.manifest, fields)
        for field in _topmost_new(snapshot.manifest.schema, part):
            if not field.nullable:
                raise SchemaMismatchError(
                    f"column {field.name!r} would contain only nulls: make it nullable"
                )
        return Merge(tuple(snapshot.manifest.fragments), schema, preserves_nullability=True)
    values = values_of(
        snapshot,
        new_columns.transforms,
        columns=new_columns.read_columns,
        batch_size=new_columns.batch_size,
        reader_schema=new_columns.reader_schema,
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
    lists = [field.name for field in part if field.logical_type.endswith("list.struct")]
    names = set(snapshot.manifest.schema.names)
    if names.intersection(lists):
        raise NotSupportedError(
            f"column {lists[0]!r} is a list of structs: a field can be added to them only as "
            "nulls (pass a schema), not with values"
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


def null_fields(snapshot: Snapshot, transforms: Any) -> pa.Schema | None:
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
    if is_list and all(isinstance(transform, pa.Field) for transform in transforms):
        return pa.schema(transforms)
    return None
