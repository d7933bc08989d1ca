"""The manifest level of a diff as Arrow tables: schema, indices, settings.

Each function spells out the schema of its table; ``change`` is ``added``, ``removed``, ``changed``
or, for a field that kept its id, ``renamed``. Everything comes from the two manifests.

Limits: values of settings are shown as text; one that is not UTF-8 with replacement characters.
Source: message Manifest of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lance_nb.format.field import Field
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata, index_type
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot

ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"

SCHEMA = pa.schema([
    ("change", pa.string()), ("column", pa.string()), ("old_column", pa.string()),
    ("old_type", pa.string()), ("new_type", pa.string()), ("old_nullable", pa.bool_()),
    ("new_nullable", pa.bool_()), ("old_field_id", pa.int32()), ("new_field_id", pa.int32()),
    ("metadata_changed", pa.bool_()),
])  # fmt: skip
INDICES = pa.schema([
    ("change", pa.string()), ("name", pa.string()), ("uuid", pa.string()), ("type", pa.string()),
    ("columns", pa.list_(pa.string())), ("fragments_before", pa.uint64()),
    ("fragments_after", pa.uint64()),
])  # fmt: skip
CONFIG = pa.schema([
    ("change", pa.string()), ("kind", pa.string()), ("key", pa.string()), ("old", pa.string()),
    ("new", pa.string()),
])  # fmt: skip

Row = dict[str, Any]


def schema_table(a: Schema, b: Schema, renamed: Mapping[str, str]) -> pa.Table:
    """One row per field that differs, in the order of ``b``, then those that went."""
    return pa.Table.from_pylist(list(_fields(a, b, renamed)), schema=SCHEMA)


def _fields(a: Schema, b: Schema, renamed: Mapping[str, str]) -> Iterator[Row]:
    left = {a.path_of(one.id) or one.name: one for one in a.walk()}
    right = {b.path_of(one.id) or one.name: one for one in b.walk()}
    for path, other in right.items():
        old_path = renamed.get(path, path)
        one = left.pop(old_path, None)
        if one is None:
            yield _field_row(ADDED, path, None, None, other)
        elif one.name != other.name:
            yield _field_row(RENAMED, path, old_path, one, other)
        elif _shown(one) != _shown(other):
            yield _field_row(CHANGED, path, old_path, one, other)
    for path, one in left.items():
        yield _field_row(REMOVED, path, path, one, None)


def _shown(field: Field) -> tuple[object, ...]:
    """Return what makes a field another one; its id is no part of it."""
    return field.logical_type, field.nullable, dict(field.metadata), field.keys


def _field_row(
    change: str, path: str, old_path: str | None, one: Field | None, other: Field | None
) -> Row:
    return {
        "change": change,
        "column": path,
        "old_column": old_path,
        "old_type": None if one is None else one.logical_type,
        "new_type": None if other is None else other.logical_type,
        "old_nullable": None if one is None else one.nullable,
        "new_nullable": None if other is None else other.nullable,
        "old_field_id": None if one is None else one.id,
        "new_field_id": None if other is None else other.id,
        "metadata_changed": one is not None
        and other is not None
        and (dict(one.metadata) != dict(other.metadata) or one.keys != other.keys),
    }


def fragments_at(snapshot: Snapshot, positions: Any) -> Iterator[Fragment]:
    """Yield the fragments at some positions of a version."""
    return (snapshot.manifest.fragments[at] for at in positions.tolist())


def indices_table(a: Snapshot, b: Snapshot) -> pa.Table:
    """One row per index segment that came, went or changed, by name."""
    before = {one.uuid: one for one in read_indices(a)}
    after = {one.uuid: one for one in read_indices(b)}
    rows = []
    for key in dict.fromkeys((*after, *before)):
        one, other = before.get(key), after.get(key)
        if one == other:
            continue
        change = ADDED if one is None else REMOVED if other is None else CHANGED
        rows.append(_index_row(change, (a, one), (b, other)))
    rows.sort(key=lambda row: (row["name"], row["change"]))
    return pa.Table.from_pylist(rows, schema=INDICES)


def _index_row(
    change: str,
    before: tuple[Snapshot, IndexMetadata | None],
    after: tuple[Snapshot, IndexMetadata | None],
) -> Row:
    snapshot, shown = after if after[1] is not None else before
    if shown is None:
        return {}
    schema, path = snapshot.manifest.schema, snapshot.manifest.path
    names = [schema.path_of(field_id) for field_id in shown.fields]
    return {
        "change": change,
        "name": shown.name,
        "uuid": shown.uuid,
        "type": index_type(shown, path),
        "columns": [name for name in names if name is not None],
        "fragments_before": _covered(*before),
        "fragments_after": _covered(*after),
    }


def _covered(snapshot: Snapshot, index: IndexMetadata | None) -> int | None:
    """Count the live fragments that a segment covers."""
    if index is None:
        return None
    named = index.fragment_ids(snapshot.manifest.path)
    return None if named is None else len(snapshot.manifest.fragments.positions_of(named))


def config_table(a: Manifest, b: Manifest) -> pa.Table:
    """One row per setting that differs: configuration, table metadata, schema metadata."""
    kinds: tuple[tuple[str, Mapping[str, Any], Mapping[str, Any]], ...] = (
        ("config", a.config, b.config),
        ("metadata", a.table_metadata, b.table_metadata),
        ("schema metadata", a.schema.metadata, b.schema.metadata),
    )
    rows = []
    for kind, old, new in kinds:
        for key in sorted({*old, *new}):
            if old.get(key) == new.get(key):
                continue
            change = ADDED if key not in old else REMOVED if key not in new else CHANGED
            texts = {"old": _text(old.get(key)), "new": _text(new.get(key))}
            rows.append({"change": change, "kind": kind, "key": key, **texts})
    return pa.Table.from_pylist(rows, schema=CONFIG)


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
