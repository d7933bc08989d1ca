"""Decide whether a change fits although versions committed since have been cleaned up.

What was changed in a version that is gone is not recorded anywhere, so the rules for two operations
cannot be asked. Some changes depend on little, and the two versions around the gap say whether that
is as it was: an append needs the columns that it fills, a settings change the keys that it sets, an
overwrite nothing. Everything else has to be planned again on the newest version.

Where pylance and we differ: it does not look at what is gone, so that a settings change would
silently win over one of the same key.
Limits: an overwrite that left the same columns cannot be told from a compaction; rows are appended
after either.
Source: ``update_config``, ``insert`` and ``commit`` of pylance 14.0.2 on handles whose successor
versions were cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Field, Schema
from lance_nb.table.snapshot import storage_version
from lance_nb.transactions.footprint import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    TABLE_METADATA,
    Settings,
)
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.update_config import UpdateConfig

_NOT_KNOWN = "it was removed in the meantime"


def lost_change_problem(
    operation: Operation, before: Manifest | None, current: Manifest
) -> str | None:
    """Return why a change may not fit ``current`` over a gap, None if it does.

    ``before`` is the version that the change was made for, None if it is gone too.
    """
    if isinstance(operation, Overwrite):
        return None
    if isinstance(operation, UpdateConfig):
        return next(_settings_problems(operation.footprint().settings, before, current), None)
    if isinstance(operation, Append) and before is not None:
        return next(_append_problems(operation, before, current), None)
    return _NOT_KNOWN


# --- settings -------------------------------------------------------------------------------------


def _settings_problems(
    settings: Settings, before: Manifest | None, current: Manifest
) -> Iterator[str]:
    for kind, field_id in sorted(settings.maps):
        if kind == FIELD_METADATA:
            yield from _field_problems(field_id, before, current)
    for kind, field_id in sorted(settings.replaced):
        was: Mapping[str, object] = {} if before is None else _map(before, kind, field_id)
        if _map(current, kind, field_id) != was:
            yield f"the {kind}, which would be replaced, is not what it was"
    for kind, field_id, key in sorted(settings.keys):
        value = None if before is None else _map(before, kind, field_id).get(key)
        if _map(current, kind, field_id).get(key) != value:
            yield f"{kind} key {key!r} is not what it was"


def _field_problems(field_id: int, before: Manifest | None, current: Manifest) -> Iterator[str]:
    if before is None:
        yield _NOT_KNOWN
        return
    was, now = before.schema.field_by_id(field_id), current.schema.field_by_id(field_id)
    if was is None or now is None or (was.name, was.logical_type) != (now.name, now.logical_type):
        yield f"field {field_id} is not the column that it was"


def _map(manifest: Manifest, kind: str, field_id: int) -> Mapping[str, object]:
    if kind == CONFIG:
        return manifest.config
    if kind == TABLE_METADATA:
        return manifest.table_metadata
    if kind == SCHEMA_METADATA:
        return manifest.schema.metadata
    field = manifest.schema.field_by_id(field_id)
    return {} if field is None else field.metadata


# --- appended rows --------------------------------------------------------------------------------


def _append_problems(operation: Append, before: Manifest, current: Manifest) -> Iterator[str]:
    if storage_version(before) != storage_version(current):
        yield "the version of the data files is not what it was"
    for field in before.schema.walk():
        now = current.schema.field_by_id(field.id)
        if now is None or _kind(field) != _kind(now) or now.nullable < field.nullable:
            yield f"column {before.schema.path_of(field.id)!r} is not what it was"
    for field in _added(before.schema, current.schema):
        if not field.nullable:
            yield f"column {field.name!r} was added, which must not be null"
    new = operation.fragments
    if _paths(new) & _paths(current.fragments[-len(new) :] if new else ()):
        yield "the files of this change are in the dataset already"


def _kind(field: Field) -> tuple[str, str, int]:
    return field.name, field.logical_type, field.parent_id


def _added(before: Schema, current: Schema) -> Iterator[Field]:
    return (one for one in current.walk() if before.field_by_id(one.id) is None)


def _paths(fragments: Iterable[Fragment]) -> set[str]:
    return {file.path for one in fragments for file in one.files}
