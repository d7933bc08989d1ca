"""What an alteration of columns comes to, before a byte is written: the new schema, and the casts.

Renaming and a change of nullability are the schema alone. A cast gives a column a new field id, and
its values go to new column files, fragment by fragment, here or in tasks elsewhere.

Limits: files of version 2.0 cannot hold one field of a struct by itself; a column that has an index
is not cast.
Source: ``LanceDataset.alter_columns`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from lance_nb.dataset.verbs.column_values import CastColumns
from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.format.operation_details import count_of
from lance_nb.format.schema import Schema
from lance_nb.table.filtered_scan import RowChoice, count_selected
from lance_nb.table.indices import read_indices
from lance_nb.table.predicate import null_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.column_files import next_field_id
from lance_nb.transactions.schema_change import Alteration, altered, preserves_nullability


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
        return Altered(after, keeps)
    _check_no_indices(snapshot, old - {one.id for one in typed.walk()})
    cast = CastColumns(snapshot, typed.project_by_ids(new))
    if any(top.id in old for top in cast.part) and storage_version(snapshot.manifest) == "2.0":
        raise NotSupportedError(
            "in files of version 2.0 a field of a struct cannot be cast by itself; overwrite the "
            "dataset in version 2.2 first"
        )
    return Altered(after, keeps, cast)


def _check_no_indices(snapshot: Snapshot, fields: AbstractSet[int]) -> None:
    """Refuse to cast fields that indices are on: these could not be used any more."""
    found = [one for one in read_indices(snapshot) if not fields.isdisjoint(one.fields)]
    if found:
        schema = snapshot.manifest.schema
        ids = {one for index in found for one in index.fields if one in fields}
        paths = sorted(schema.path_of(one) or str(one) for one in ids)
        names = sorted({one.name for one in found})
        raise SchemaMismatchError(
            f"{', '.join(map(repr, paths))} cannot be cast: {', '.join(names)} would no longer fit "
            "the values; call drop_index() first, and create the index again after the cast"
        )


def _check_no_nulls(snapshot: Snapshot, path: str) -> None:
    names = tuple(one.name for one in snapshot.manifest.schema.resolve(path))
    condition = null_filter(names, project(snapshot.manifest.schema, None).schema)
    count = count_selected(snapshot, RowChoice(condition))
    if count:
        raise SchemaMismatchError(
            f"column {path!r} has {count_of(count, 'null')} and cannot be made non-nullable; "
            "delete or update those rows first"
        )
