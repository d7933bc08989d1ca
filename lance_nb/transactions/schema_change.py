"""Schemas with fields added, dropped, renamed, made nullable or not, or given another type.

Pure: from a schema to a schema. A field keeps its id when it is renamed or its nullability changes;
with another type it is a new field with a new id, because its values are written anew.

Limits: a type may become wider or narrower within its family (integers, floats, decimals, text,
bytes, dates, timestamps, lists of such), not another kind of value.
Source: ``LanceDataset.add_columns``, ``alter_columns`` and ``drop_columns`` of pylance 14.0.2.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, SchemaMismatchError
from lance_nb.file.versions import file_version_of
from lance_nb.format.blob_fields import BLOB_KEY, is_blob_v1, with_blobs
from lance_nb.format.field import Field
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.table.projection import ROW_COLUMNS
from lance_nb.table.snapshot import storage_version
from lance_nb.value_classes import dataclass

_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    lambda one: pa.types.is_string(one) or pa.types.is_large_string(one),
    lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one),
)
_LEGACY = "0.1"
_KEYS = frozenset({"path", "name", "nullable", "data_type"})


@dataclass(frozen=True, slots=True)
class Alteration:
    """What becomes of one field; None leaves that part as it is."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None

    @classmethod
    def of(cls, given: Any) -> Alteration:
        """Read a dict as ``alter_columns`` takes it. Raises InvalidInputError."""
        if not isinstance(given, Mapping) or "path" not in given or set(given) - _KEYS:
            raise InvalidInputError(
                'an alteration is a dict such as {"path": "price", "data_type": pa.float32()} with '
                f"the keys path, name, nullable, data_type; got {given!r:.200}"
            )
        if all(given.get(key) is None for key in ("name", "nullable", "data_type")):
            raise InvalidInputError(
                "At least one of name, nullable, or data_type must be specified"
            )
        return cls(**given)


def extend_schema(manifest: Manifest, added: pa.Schema) -> tuple[Schema, Schema]:
    """Return the schema with columns added at its end, and the added part, with new field ids.

    A struct that is there already gets the new ones of its fields (files of version 2.2 only).
    Metadata of the added schema (that of pandas, for one) joins that of the dataset, whose entries
    stay, as in pylance. Raises SchemaMismatchError for a column that exists already.
    """
    schema, version = manifest.schema, storage_version(manifest)
    # As in new datasets, marked bytes become blobs of the file version. pylance 14.0.2 leaves them
    # as they are, and cannot read what it has written to files of 2.2.
    if version != _LEGACY:
        added = with_blobs(added, file_version_of(version))
    new = Schema.from_arrow(added)
    new.check_text_metadata()
    made = new.fields
    grows = next((one.name for one in made if one.name in schema.names), None)
    after, part = extended(schema, made, next_field_id(manifest))
    if grows is not None and version != "2.2":
        raise SchemaMismatchError(
            f"column {grows!r} is a struct: a field can be added to it in files of version 2.2, "
            f"not in those of version {version}"
        )
    metadata = {**new.metadata, **schema.metadata}
    return Schema(after.fields, metadata), part


def next_field_id(manifest: Manifest) -> int:
    """Return the first id that no column has had, as far as schema and files tell."""
    known = manifest.max_allocated_field_id or -1
    return max(manifest.schema.max_field_id, known, manifest.fragments.largest_field_id()) + 1


def extended(schema: Schema, added: Iterable[Field], next_id: int) -> tuple[Schema, Schema]:
    """Return the schema with fields added, and the added part, with ids from ``next_id`` on.

    A struct, or a list of structs, that is there gets the new ones of its fields. Raises
    SchemaMismatchError for a field that is there already.
    """
    ids = itertools.count(next_id)
    after, part = _grown(schema.fields, tuple(added), -1, ids)
    return Schema(after, schema.metadata), Schema(part, schema.metadata)


def _grown(
    known: tuple[Field, ...], added: tuple[Field, ...], parent_id: int, ids: Iterator[int]
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    by_name = {one.name: one for one in known}
    parts = []
    for one in added:
        found = by_name.get(one.name)
        if found is None:
            if parent_id < 0:
                check_not_reserved([one.name])
            by_name[one.name] = made = _numbered(one, parent_id, ids)
        elif _has_parts(found) and found.logical_type == one.logical_type:
            after, below = _grown(found.children, one.children, found.id, ids)
            by_name[one.name] = replace(found, children=after)
            made = replace(found, children=below)
        else:
            raise SchemaMismatchError(f"column {one.name!r} already exists in the dataset")
        parts.append(made)
    return tuple(by_name.values()), tuple(parts)


def _has_parts(field: Field) -> bool:
    """Return whether fields can be added: to a struct, or to the structs in a list."""
    return not field.extension_name and field.logical_type in (
        "struct",
        "list.struct",
        "large_list.struct",
    )


def _numbered(field: Field, parent_id: int, ids: Iterator[int]) -> Field:
    number = next(ids)
    children = tuple(_numbered(one, number, ids) for one in field.children)
    return replace(field, id=number, parent_id=parent_id, children=children)


def without_fields(schema: Schema, paths: Iterable[str]) -> Schema:
    """Return the schema without the fields named; a struct without fields goes too.

    Raises ColumnNotFoundError, InvalidInputError when nothing would be left.
    """
    gone = {schema.field(path).id for path in paths}
    left = tuple(one for one in (_without(top, gone) for top in schema.fields) if one is not None)
    if not left:
        raise InvalidInputError("all columns would be dropped: a dataset has at least one")
    return Schema(left, schema.metadata)


def _without(field: Field, gone: set[int]) -> Field | None:
    if field.id in gone:
        return None
    if not field.children:
        return field
    left = tuple(one for one in (_without(child, gone) for child in field.children) if one)
    return replace(field, children=left) if left else None


def with_former_paths(schema: Schema, alterations: Iterable[Alteration]) -> list[Alteration]:
    """Return alterations whose paths are those of the schema before any of them, as in pylance.

    So two columns can swap their names. A path that is not there may be of a column that was
    renamed by an alteration before. Raises ColumnNotFoundError.
    """
    renamed = schema
    resolved = []
    for alteration in alterations:
        try:
            field = schema.field(alteration.path)
        except ColumnNotFoundError:
            field = renamed.field(alteration.path)
        if alteration.name is not None:
            changed = replace(renamed.field_by_id(field.id) or field, name=alteration.name)
            fields = _replaced(renamed.fields, field.id, changed)
            renamed = Schema(fields, schema.metadata)
        path = schema.path_of(field.id) or alteration.path
        resolved.append(replace(alteration, path=path))
    return resolved


def altered(schema: Schema, alterations: Iterable[Alteration], next_id: int) -> Schema:
    """Return the schema with fields altered; those of another type get ids from ``next_id`` on.

    Paths are those of ``schema``; several alterations of a field add up. Raises
    ColumnNotFoundError, InvalidInputError, SchemaMismatchError for a name that would occur twice.
    """
    new_ids: dict[int, int] = {}
    after = schema
    for one in alterations:
        before = schema.field(one.path)
        field = after.field_by_id(new_ids.get(before.id, before.id))
        if field is None:
            raise InvalidInputError(
                f"column {one.path!r} is inside of a column that gets another type: give the type "
                "of the whole column once"
            )
        changed = field
        if one.name is not None:
            changed = replace(changed, name=check_name(one.name, field))
        if one.nullable is not None:
            changed = replace(changed, nullable=one.nullable)
        retyped = one.data_type is not None and one.data_type != _arrow_type(field)
        if retyped or (one.data_type is not None and is_blob_v1(field)):  # a plain column then
            changed = _retyped(changed, one, next_id)
            next_id = max(inner.id for inner in changed.walk()) + 1
            new_ids[before.id] = changed.id
        after = Schema(_replaced(after.fields, field.id, changed), schema.metadata)
    _check_names(after.fields)
    return after


def _retyped(field: Field, wanted: Alteration, next_id: int) -> Field:
    found = _arrow_type(field)
    if not can_become(found, wanted.data_type):
        raise SchemaMismatchError(
            f"column {wanted.path!r} is {found} and cannot become {wanted.data_type}: its values "
            "would be of another kind. Add a column with add_columns and a CAST instead"
        )
    arrow = pa.schema([pa.field(field.name, wanted.data_type, field.nullable)])
    made = Schema.from_arrow(arrow, first_id=next_id).fields[0]
    kept = {key: one for key, one in field.metadata.items() if not key.startswith(BLOB_KEY)}
    return replace(made, metadata=kept, parent_id=field.parent_id)


def can_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a column may change from the one type to the other."""
    if pa.types.is_dictionary(found):
        return can_become(found.value_type, wanted)
    if _is_list(found) and _is_list(wanted):
        return can_become(found.value_type, wanted.value_type)
    if pa.types.is_fixed_size_list(found) and pa.types.is_fixed_size_list(wanted):
        return bool(found.list_size == wanted.list_size) and can_become(
            found.value_type, wanted.value_type
        )
    # Not to a zone, whose midnight it would be, nor to date64, which holds whole days only.
    if pa.types.is_date(found) and pa.types.is_timestamp(wanted):
        return wanted.tz is None
    if pa.types.is_timestamp(found) and pa.types.is_date32(wanted):
        return True
    return found == wanted or any(family(found) and family(wanted) for family in _FAMILIES)


def preserves_nullability(before: Schema, after: Schema) -> bool:
    """Return whether rows written for ``before`` would be right in ``after``.

    They are when no field became stricter and every new one may be null.
    """
    could_be_null = {one.id: one.nullable for one in before.walk()}
    return all(
        one.nullable or not could_be_null.get(one.id, True)
        for one in after.walk()
        if one.id in could_be_null or after.field_by_id(one.parent_id) is None
    )


def _is_list(one: pa.DataType) -> bool:
    return bool(pa.types.is_list(one) or pa.types.is_large_list(one))


def _arrow_type(field: Field) -> pa.DataType:
    return Schema((field,), {}).to_arrow(storage=True).field(0).type


def check_not_reserved(names: Iterable[str]) -> None:
    """Refuse new columns that scans would take for row columns. Raises InvalidInputError."""
    for name in names:
        if name in ROW_COLUMNS:
            raise InvalidInputError(
                f"the column name {name!r} is reserved: scans compute a column of that name; "
                "use another one"
            )


def check_name(name: str, field: Field) -> str:
    """Return a name that a field can have. Raises InvalidInputError, SchemaMismatchError."""
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"a column name is a text, not {name!r}")
    if field.parent_id < 0:
        check_not_reserved([name])
    if "." in name and field.parent_id < 0:
        raise SchemaMismatchError(
            f"top-level column {name!r} cannot contain '.': did you mean a field of a struct?"
        )
    return name


def _replaced(fields: tuple[Field, ...], field_id: int, changed: Field) -> tuple[Field, ...]:
    return tuple(
        changed
        if one.id == field_id
        else replace(one, children=_replaced(one.children, field_id, changed))
        for one in fields
    )


def _check_names(fields: Sequence[Field]) -> None:
    repeated = [name for name, count in Counter(one.name for one in fields).items() if count > 1]
    if repeated:
        raise SchemaMismatchError(f"there is a column named {repeated[0]!r} already")
    for field in fields:
        _check_names(field.children)
