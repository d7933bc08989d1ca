"""Schemas that change, and schemas of data: what a dataset's becomes, and whether data fits it.

Fields are added, dropped, renamed, made nullable or not, or given another type: from a schema to a
schema. A field keeps its id when it is renamed or its nullability changes;
with another type it is a new field with a new id, because its values are written anew.

Data is checked by the schemas, before any file is begun. Columns may come in another order, and
those that may be null may be missing, at every level of nesting; nullability may differ as long as
there is no null. Everything else must be the same: names to the letter, and logical types (text
views are text). Types are never converted.

Limits: a type may become wider or narrower within its family (integers, floats, decimals, text,
bytes, dates, timestamps, lists of such), not another kind of value.
Source: ``LanceDataset.add_columns``, ``alter_columns`` and ``drop_columns`` of pylance 14.0.2; what
its ``lance.write_dataset(mode="append")`` accepts and refuses.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, SchemaMismatchError
from lance_nb.file.versions import file_version_of
from lance_nb.format.blob_fields import BLOB_KEY, is_blob_v1, is_blob_v2, with_blobs
from lance_nb.format.field import Field
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema, check_primary_key
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
    lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_),
    lambda type_: pa.types.is_binary(type_) or pa.types.is_large_binary(type_),
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
    def of(cls, change: Any) -> Alteration:
        """Read a dict as ``alter_columns`` takes it. Raises InvalidInputError."""
        if not isinstance(change, Mapping) or "path" not in change or set(change) - _KEYS:
            raise InvalidInputError(
                'an alteration is a dict such as {"path": "price", "data_type": pa.float32()} with '
                f"the keys path, name, nullable, data_type; got {change!r:.200}"
            )
        if all(change.get(key) is None for key in ("name", "nullable", "data_type")):
            raise InvalidInputError(
                "At least one of name, nullable, or data_type must be specified"
            )
        return cls(**change)


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
    new_fields = new.fields
    grows = next((field.name for field in new_fields if field.name in schema.names), None)
    after, part = extended(schema, new_fields, next_field_id(manifest))
    if grows is not None and version != "2.2":
        raise SchemaMismatchError(
            f"column {grows!r} is a struct: a field can be added to it in files of version 2.2, "
            f"not in those of version {version}"
        )
    metadata = {**new.metadata, **schema.metadata}
    return Schema(after.fields, metadata), part


def next_field_id(manifest: Manifest) -> int:
    """Return the first id that no column has had, as far as schema and files tell."""
    highest_id = manifest.max_allocated_field_id or -1
    return max(manifest.schema.max_field_id, highest_id, manifest.fragments.largest_field_id()) + 1


def extended(schema: Schema, added: Iterable[Field], next_id: int) -> tuple[Schema, Schema]:
    """Return the schema with fields added, and the added part, with ids from ``next_id`` on.

    A struct, or a list of structs, that is there gets the new ones of its fields. Raises
    SchemaMismatchError for a field that is there already.
    """
    ids = itertools.count(next_id)
    after, part = _grown(schema.fields, tuple(added), -1, ids)
    return Schema(after, schema.metadata), Schema(part, schema.metadata)


def _grown(
    fields: tuple[Field, ...], added: tuple[Field, ...], parent_id: int, ids: Iterator[int]
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    by_name = {field.name: field for field in fields}
    parts = []
    for field in added:
        existing = by_name.get(field.name)
        if existing is None:
            if parent_id < 0:
                check_not_reserved([field.name])
            by_name[field.name] = part = _numbered(field, parent_id, ids)
        elif _has_parts(existing) and existing.logical_type == field.logical_type:
            after, below = _grown(existing.children, field.children, existing.id, ids)
            by_name[field.name] = replace(existing, children=after)
            part = replace(existing, children=below)
        else:
            raise SchemaMismatchError(f"column {field.name!r} already exists in the dataset")
        parts.append(part)
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
    children = tuple(_numbered(child, number, ids) for child in field.children)
    return replace(field, id=number, parent_id=parent_id, children=children)


def without_fields(schema: Schema, paths: Iterable[str]) -> Schema:
    """Return the schema without the fields named; a struct without fields goes too.

    Raises ColumnNotFoundError, InvalidInputError when nothing would be left.
    """
    removed_ids = {schema.field(path).id for path in paths}
    left = tuple(
        field
        for field in (_without(top, removed_ids) for top in schema.fields)
        if field is not None
    )
    if not left:
        raise InvalidInputError("all columns would be dropped: a dataset has at least one")
    return Schema(left, schema.metadata)


def _without(field: Field, removed_ids: set[int]) -> Field | None:
    if field.id in removed_ids:
        return None
    if not field.children:
        return field
    left = tuple(
        child for child in (_without(child, removed_ids) for child in field.children) if child
    )
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
    for alteration in alterations:
        before = schema.field(alteration.path)
        field = after.field_by_id(new_ids.get(before.id, before.id))
        if field is None:
            raise InvalidInputError(
                f"column {alteration.path!r} is inside of a column that gets another type: give "
                "the type of the whole column once"
            )
        changed = field
        if alteration.name is not None:
            changed = replace(changed, name=check_name(alteration.name, field))
        if alteration.nullable is not None:
            changed = replace(changed, nullable=alteration.nullable)
        retyped = alteration.data_type is not None and alteration.data_type != _arrow_type(field)
        if retyped or (
            alteration.data_type is not None and is_blob_v1(field)
        ):  # a plain column then
            changed = _retyped(changed, alteration, next_id)
            next_id = max(inner.id for inner in changed.walk()) + 1
            new_ids[before.id] = changed.id
        after = Schema(_replaced(after.fields, field.id, changed), schema.metadata)
    _check_names(after.fields)
    return after


def _retyped(field: Field, alteration: Alteration, next_id: int) -> Field:
    current_type = _arrow_type(field)
    if not can_become(current_type, alteration.data_type):
        raise SchemaMismatchError(
            f"column {alteration.path!r} is {current_type} and cannot become "
            f"{alteration.data_type}: its values "
            "would be of another kind. Add a column with add_columns and a CAST instead"
        )
    arrow = pa.schema([pa.field(field.name, alteration.data_type, field.nullable)])
    new_field = Schema.from_arrow(arrow, first_id=next_id).fields[0]
    metadata = {key: text for key, text in field.metadata.items() if not key.startswith(BLOB_KEY)}
    return replace(new_field, metadata=metadata, parent_id=field.parent_id)


def can_become(old_type: pa.DataType, new_type: pa.DataType) -> bool:
    """Return whether a column may change from the one type to the other."""
    if pa.types.is_dictionary(old_type):
        return can_become(old_type.value_type, new_type)
    if _is_list(old_type) and _is_list(new_type):
        return can_become(old_type.value_type, new_type.value_type)
    if pa.types.is_fixed_size_list(old_type) and pa.types.is_fixed_size_list(new_type):
        return bool(old_type.list_size == new_type.list_size) and can_become(
            old_type.value_type, new_type.value_type
        )
    # Not to a zone, whose midnight it would be, nor to date64, which holds whole days only.
    if pa.types.is_date(old_type) and pa.types.is_timestamp(new_type):
        return new_type.tz is None
    if pa.types.is_timestamp(old_type) and pa.types.is_date32(new_type):
        return True
    return old_type == new_type or any(
        family(old_type) and family(new_type) for family in _FAMILIES
    )


def preserves_nullability(before: Schema, after: Schema) -> bool:
    """Return whether rows written for ``before`` would be right in ``after``.

    They are when no field became stricter and every new one may be null.
    """
    could_be_null = {field.id: field.nullable for field in before.walk()}
    return all(
        field.nullable or not could_be_null.get(field.id, True)
        for field in after.walk()
        if field.id in could_be_null or after.field_by_id(field.parent_id) is None
    )


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


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
        if field.id == field_id
        else replace(field, children=_replaced(field.children, field_id, changed))
        for field in fields
    )


def _check_names(fields: Sequence[Field]) -> None:
    repeated = [
        name for name, count in Counter(field.name for field in fields).items() if count > 1
    ]
    if repeated:
        raise SchemaMismatchError(f"there is a column named {repeated[0]!r} already")
    for field in fields:
        _check_names(field.children)


_SHOWN = 20


@dataclass(frozen=True, slots=True)
class _Fitting:
    """Data of one schema was found to fill a part of another."""

    source: pa.Schema
    target: Schema
    part: Schema


_fitting: deque[_Fitting] = deque(maxlen=8)  # who appends does it again and again


def writable_part(given_schema: pa.Schema, schema: Schema) -> Schema:
    """Return the columns of ``schema`` that data of schema ``given_schema`` fills.

    Raises SchemaMismatchError that lists every difference.
    """
    for cached in tuple(_fitting):
        if cached.target is schema and cached.source.equals(given_schema, check_metadata=True):
            return cached.part
    part = _part(given_schema, schema)
    _fitting.append(_Fitting(given_schema, schema, part))
    return part


def _part(given_schema: pa.Schema, schema: Schema) -> Schema:
    given_fields = Schema.from_arrow(given_schema)
    problems = list(_differences(schema.fields, given_fields.fields, ""))
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        listed = "; ".join(problems[:_SHOWN])
        raise SchemaMismatchError(f"the data does not have the dataset's schema: {listed}{more}")
    names = set(given_fields.names)
    return Schema(tuple(field for field in schema if field.name in names), schema.metadata)


def _differences(
    fields: Sequence[Field], given_fields: Sequence[Field], above: str
) -> Iterator[str]:
    by_name = {field.name: field for field in given_fields}
    for field in fields:
        path = above + field.name
        other = by_name.pop(field.name, None)
        if other is None:
            if not field.nullable:
                yield f"column {path!r} is missing, and it must not be null"
        elif is_blob_v2(field):
            if not is_blob_v2(other) and not _is_marked(other):
                yield f"column {path!r} holds blobs, and the data has {other.logical_type} there"
        elif _kind(other) != _kind(field):
            yield f"column {path!r} must have type {field.logical_type}, not {other.logical_type}"
        else:
            yield from _differences(field.children, other.children, f"{path}.")
    for name in by_name:
        yield f"column {above + name!r} is not in the dataset"


def _kind(field: Field) -> str:
    """Return the logical type; of lists whatever their items are, which are looked at next."""
    return field.logical_type.removesuffix(".struct") if field.children else field.logical_type


def _is_marked(field: Field) -> bool:
    """Return whether plain binary is meant to become blobs."""
    return is_blob_v1(field) and field.logical_type in ("binary", "large_binary")


def new_schema(given_schema: pa.Schema, file_version: tuple[int, int]) -> Schema:
    """Return the schema of a new dataset for data of this schema, with field ids.

    In 2.2, binary columns that are marked as blobs become blobs of the second generation. Raises
    NotSupportedError, InvalidInputError.
    """
    check_not_reserved(given_schema.names)
    schema = Schema.from_arrow(with_blobs(given_schema, file_version))
    schema.check_text_metadata()
    check_primary_key(schema)
    _fitting.append(_Fitting(given_schema, schema, schema))
    return schema
