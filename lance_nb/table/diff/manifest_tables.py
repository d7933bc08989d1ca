"""The manifest level of a diff as Arrow tables: schema, fragments, files, indices, settings.

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
from lance_nb.format.index_details import index_type
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.fragments import FileKey, FragmentMatch, Places
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot

ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"

SCHEMA = pa.schema([
    ("change", pa.string()), ("column", pa.string()), ("old_column", pa.string()),
    ("old_type", pa.string()), ("new_type", pa.string()), ("old_nullable", pa.bool_()),
    ("new_nullable", pa.bool_()), ("old_field_id", pa.int32()), ("new_field_id", pa.int32()),
    ("metadata_changed", pa.bool_()),
])  # fmt: skip
FRAGMENTS = pa.schema([
    ("change", pa.string()), ("fragment_id", pa.uint64()), ("rows_before", pa.uint64()),
    ("rows_after", pa.uint64()), ("deleted_before", pa.uint64()), ("deleted_after", pa.uint64()),
    ("files_before", pa.uint32()), ("files_after", pa.uint32()), ("bytes_before", pa.uint64()),
    ("bytes_after", pa.uint64()), ("files_differ", pa.bool_()), ("deletions_differ", pa.bool_()),
])  # fmt: skip
FILES = pa.schema([
    ("change", pa.string()), ("fragment_id", pa.uint64()), ("path", pa.string()),
    ("size_bytes", pa.uint64()), ("file_version", pa.string()), ("columns", pa.list_(pa.string())),
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


def fragments_table(ends: Ends, match: FragmentMatch) -> pa.Table:
    """One row per fragment that came, went or changed, ascending by id."""
    rows = [_fragment_row(ADDED, None, one) for one in fragments_at(ends.b, match.only_b)]
    rows += [_fragment_row(REMOVED, one, None) for one in fragments_at(ends.a, match.only_a)]
    for pair in match.changed:
        row = _fragment_row(CHANGED, pair.a, pair.b)
        rows.append(
            row | {"files_differ": pair.files_differ, "deletions_differ": pair.deletions_differ}
        )
    rows.sort(key=lambda row: (row["fragment_id"], row["change"]))
    return pa.Table.from_pylist(rows, schema=FRAGMENTS)


def fragments_at(snapshot: Snapshot, positions: Any) -> Iterator[Fragment]:
    """Yield the fragments at some positions of a version."""
    return (snapshot.manifest.fragments[at] for at in positions.tolist())


def _fragment_row(change: str, one: Fragment | None, other: Fragment | None) -> Row:
    row: Row = {"change": change, "fragment_id": (one or other).id}  # type: ignore[union-attr]
    for when, fragment in (("before", one), ("after", other)):
        if fragment is not None:
            row |= {
                f"rows_{when}": max(fragment.num_rows, 0),
                f"deleted_{when}": fragment.num_deleted_rows,
                f"files_{when}": len(fragment.files),
                f"bytes_{when}": sum(file.size_bytes for file in fragment.files),
            }
    return row


def files_table(ends: Ends, match: FragmentMatch) -> pa.Table:
    """One row per data file that came or went."""
    rows: list[Row] = []
    before: dict[FileKey, Row] = {}
    after: dict[FileKey, Row] = {}
    changed_a = [pair.a for pair in match.changed if pair.files_differ]
    changed_b = [pair.b for pair in match.changed if pair.files_differ]
    for fragment in (*fragments_at(ends.a, match.only_a), *changed_a):
        before |= _file_rows(REMOVED, ends.a, fragment)
    for fragment in (*fragments_at(ends.b, match.only_b), *changed_b):
        after |= _file_rows(ADDED, ends.b, fragment)
    rows += [row for key, row in after.items() if key not in before]
    rows += [row for key, row in before.items() if key not in after]
    rows.sort(key=lambda row: (row["fragment_id"], row["change"]))
    return pa.Table.from_pylist(rows, schema=FILES)


def _file_rows(change: str, snapshot: Snapshot, fragment: Fragment) -> dict[FileKey, Row]:
    schema, places = snapshot.manifest.schema, Places(snapshot.locations)
    found = {}
    for file in fragment.files:
        names = [schema.path_of(field_id) for field_id in file.fields]
        found[places.of_file(file)] = {
            "change": change,
            "fragment_id": fragment.id,
            "path": file.path,
            "size_bytes": file.size_bytes or None,
            "file_version": f"{file.file_version[0]}.{file.file_version[1]}",
            "columns": [name for name in names if name is not None],
        }
    return found


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
