"""Check the schema of an operation that a caller put together, before the commit.

A schema names columns of data files by field id. Where an id stands for another type, another
parent or two fields, or a name cannot be selected, the version cannot be read any more, or values
are read wrongly. pylance refuses most of this in a Merge and nothing of it in a Project or an
Overwrite.

Limits: of an Overwrite, whose field ids start anew, types are compared with the new data files
only (file_presence.py). Extension types and dictionaries are compared by their names.
Source: pylance 14.0.2, schema by schema (tests/interop/test_odd_fragments.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import TOP, Field
from lance_nb.format.logical_types import LARGE_LISTS, LISTS
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.fragments import READ_AS, check_stored, check_values
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.schema_change import check_name

_ADVICE = "Nothing was committed; derive the schema from lance_schema of the dataset"


def check_schema(snapshot: Snapshot, operation: Operation, current: Manifest | None) -> None:
    """Check the schema of the version ``snapshot``, which an operation of a caller makes.

    Raises InvalidInputError for a schema by which rows could not be read, or be read wrongly,
    SchemaMismatchError for a name.
    """
    schema = snapshot.manifest.schema
    before = None if current is None else current.schema
    if schema == before:
        return
    problem = next(_problems(schema), None)
    if before is not None and problem is None and not isinstance(operation, Overwrite):
        problem = next(_changes(before, schema), None)
    if problem is not None:
        raise InvalidInputError(f"{problem}. {_ADVICE}")
    for field in schema.walk():
        field_before = None if before is None else before.field_by_id(field.id)
        if field_before is None or field_before.name != field.name:
            check_name(field.name, field)
    if before is not None and not isinstance(operation, Overwrite):
        _check_required(snapshot, before)


def _problems(schema: Schema) -> Iterator[str]:
    ids = Counter(field.id for field in schema.walk() if field.id >= 0)
    for field_id, count in ids.items():
        if count > 1:
            yield f"{count} fields of the schema have the id {field_id}"
    yield from _level_problems(schema.fields, TOP, is_below_blob=False)
    try:
        schema.to_arrow()
    except (NotSupportedError, CorruptFileError) as error:
        yield f"the schema cannot be read: {error}"


def _level_problems(fields: Sequence[Field], parent: int, *, is_below_blob: bool) -> Iterator[str]:
    names = Counter(field.name for field in fields)
    for name, count in names.items():
        if count > 1:
            yield f"{count} fields beside each other are named {name!r}"
    for field in fields:
        if field.id < 0 and not is_below_blob:  # fields of a description have no identity
            yield f"field {field.name!r} has the id {field.id}"
        if field.parent_id != parent and not is_below_blob:
            yield f"field {field.name!r} names {field.parent_id} as its parent, not {parent}"
        below = is_below_blob or is_blob(field)
        yield from _level_problems(field.children, field.id, is_below_blob=below)


def _changes(before: Schema, after: Schema) -> Iterator[str]:
    for field in after.walk():
        field_before = before.field_by_id(field.id)
        if field_before is None:
            continue
        if field_before.parent_id != field.parent_id:
            places = f"{field_before.parent_id} to {field.parent_id}"
            yield f"field {field.id} ({field.name!r}) moves from {places}"
        types = field_before.logical_type, field.logical_type
        if field_before.extension_name != field.extension_name or not _is_readable_as(*types):
            yield f"field {field.id} ({field.name!r}) changes from {types[0]} to {types[1]}"


def _is_readable_as(stored: str, logical_type: str) -> bool:
    are_lists = any(stored in names and logical_type in names for names in (LISTS, LARGE_LISTS))
    return stored == logical_type or are_lists or logical_type in READ_AS.get(stored, ())


def _check_required(snapshot: Snapshot, before: Schema) -> None:
    """Look for nulls where the schema allows none any more: pylance could not read the column."""
    for top in snapshot.manifest.schema:
        if not any(_is_stricter(before.field_by_id(field.id), field) for field in top.walk()):
            continue
        for fragment in snapshot.manifest.fragments:
            try:
                check_stored(snapshot, fragment)
                check_values(snapshot, fragment, top.name)
            except CorruptFileError as error:
                raise InvalidInputError(
                    f"column {top.name!r} has nulls, and the schema allows none: {error.path}: "
                    f"expected {error.expected}, found {error.found}. {_ADVICE}"
                ) from error


def _is_stricter(before: Field | None, field: Field) -> bool:
    return not field.nullable and (before is None or before.nullable)
