"""Change the columns of a dataset: drop, rename, retype, add, join.

Dropping and renaming write no data. New values go to new column files, one per fragment, beside
those that are there; other columns are not touched.

Source: ``LanceDataset.drop_columns``, ``alter_columns``, ``add_columns``, ``merge`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.column_values import (
    CastColumns,
    ColumnValues,
    JoinedColumns,
    options_of,
    values_of,
)
from lance_nb.dataset.verbs.committing import commit_operation, replanned
from lance_nb.dataset.verbs.sources import reader_of
from lance_nb.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_nb.table.filtered_scan import RowChoice, count_selected
from lance_nb.table.predicate import compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.column_files import extend_schema, next_field_id, write_columns
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.schema_change import (
    Alteration,
    altered,
    preserves_nullability,
    without_fields,
)


def evolve(session: Session, snapshot: Snapshot, plan: Callable[[Snapshot], Operation]) -> Snapshot:
    """Commit a change of columns, planned again after a retryable conflict."""
    return replanned(session, snapshot, lambda base: commit_operation(session, base, plan(base)))


def alterations_of(given: Sequence[Any]) -> list[Alteration]:
    """Read the arguments of ``alter_columns``. Raises InvalidInputError."""
    return [Alteration.of(one) for one in given]


def drop(snapshot: Snapshot, columns: Sequence[str]) -> Operation:
    """Drop columns. Raises ColumnNotFoundError, InvalidInputError."""
    return Project(without_fields(snapshot.manifest.schema, columns), preserves_nullability=True)


def alter(snapshot: Snapshot, alterations: Sequence[Alteration]) -> Operation:
    """Rename columns, change whether they may be null, or cast them.

    Raises ColumnNotFoundError, InvalidInputError (nulls in a column that is to have none).
    """
    before = snapshot.manifest.schema
    if not alterations:
        raise InvalidInputError("alter_columns takes at least one alteration")
    after = altered(before, alterations, next_field_id(snapshot.manifest))
    for one in alterations:
        if one.nullable is False and before.field(one.path).nullable:
            _check_no_nulls(snapshot, one.path)
    keeps = preserves_nullability(before, after)
    retyped = [replace(one, name=None, nullable=None) for one in alterations if one.data_type]
    typed = altered(before, retyped, next_field_id(snapshot.manifest))
    old = {one.id for one in before.walk()}
    new = [one.id for one in typed.walk() if one.id not in old]
    if not new:
        return Project(after, preserves_nullability=keeps)
    cast = CastColumns(snapshot, typed.project_by_ids(new))
    if any(top.id in old for top in cast.part) and storage_version(snapshot.manifest) == "2.0":
        raise NotSupportedError(
            "in files of version 2.0 a field of a struct cannot be cast by itself; overwrite the "
            "dataset in version 2.2 first"
        )
    home, options = snapshot.locations.home, options_of(snapshot)
    fragments = [
        write_columns(home, one, cast.part, cast.batches(one), options)
        for one in snapshot.manifest.fragments
    ]
    return Merge(tuple(fragments), after, preserves_nullability=keeps)


def add(
    snapshot: Snapshot,
    transforms: Any,
    read_columns: Sequence[str] | None,
    reader_schema: pa.Schema | None,
    batch_size: int | None,
) -> Operation:
    """Add columns: of nulls, of SQL expressions, by a function, or streamed in row order."""
    fields = _null_fields(transforms)
    if fields is not None:
        for one in fields:
            if not one.nullable:
                raise SchemaMismatchError(
                    f"column {one.name!r} would be all null: make it nullable"
                )
        schema, _ = extend_schema(snapshot.manifest, fields)
        return Merge(tuple(snapshot.manifest.fragments), schema, preserves_nullability=True)
    values = values_of(
        snapshot,
        transforms,
        columns=read_columns,
        batch_size=batch_size,
        reader_schema=reader_schema,
    )
    return _merged(snapshot, values)


def merge(snapshot: Snapshot, right: pa.Table, on: tuple[str, str]) -> Operation:
    """Add the columns of a table by a left join. Raises ColumnNotFoundError."""
    return _merged(snapshot, JoinedColumns(snapshot, right, on))


def read_right(data: Any, schema: pa.Schema | None) -> pa.Table:
    """Return the table that is joined."""
    return reader_of(data, schema).read_all()


def _merged(snapshot: Snapshot, values: ColumnValues) -> Operation:
    schema, part = extend_schema(snapshot.manifest, values.schema)
    home, options = snapshot.locations.home, options_of(snapshot)
    fragments = tuple(
        write_columns(home, one, part, values.batches(one), options)
        for one in snapshot.manifest.fragments
    )
    values.finish()
    keeps = preserves_nullability(snapshot.manifest.schema, schema)
    return Merge(fragments, schema, preserves_nullability=keeps)


def _null_fields(transforms: Any) -> pa.Schema | None:
    if isinstance(transforms, pa.Schema):
        return transforms
    if isinstance(transforms, pa.Field):
        return pa.schema([transforms])
    is_list = isinstance(transforms, list) and transforms
    if is_list and all(isinstance(one, pa.Field) for one in transforms):
        return pa.schema(transforms)
    return None


def _check_no_nulls(snapshot: Snapshot, path: str) -> None:
    condition = compile_filter(f"{path} IS NULL", project(snapshot.manifest.schema, None).schema)
    count = count_selected(snapshot, RowChoice(condition))
    if count:
        raise SchemaMismatchError(
            f"column {path!r} has {count:,} nulls and cannot be made non-nullable; delete or "
            "update those rows first"
        )
