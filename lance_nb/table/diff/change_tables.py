"""The tables of a diff: schema, indices, settings, deletions, and the transactions between.

Each table has a constant with its schema; ``change`` is ``added``, ``removed``, ``changed`` or, for
a field that kept its id, ``renamed``. Schema, indices and settings come from the two manifests.
``transactions`` has one row per version after the common ancestor, oldest first, side by side for
forks; a version that was cleaned up has no row.

Limits: values of settings are shown as text; one that is not UTF-8 with replacement characters. As
many manifests are read as there are versions between, and none twice.
Source: messages Manifest and Transaction of lance.table; table/history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import VersionNotFoundError
from lance_nb.format.field import Field
from lance_nb.format.index_metadata import IndexMetadata, index_type
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.table.diff.fragments import Pair, deleted_offsets
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"

TRANSACTIONS = pa.schema([
    ("side", pa.string()), ("branch", pa.string()), ("version", pa.uint64()),
    ("timestamp", pa.timestamp("us", "UTC")), ("operation", pa.string()), ("message", pa.string()),
    ("description", pa.string()), ("read_version", pa.uint64()), ("uuid", pa.string()),
])  # fmt: skip
DELETIONS = pa.schema([
    ("fragment_id", pa.uint64()), ("physical_rows", pa.uint64()), ("deleted_before", pa.uint64()),
    ("deleted_after", pa.uint64()), ("rows_deleted", pa.uint64()), ("rows_undeleted", pa.uint64()),
])  # fmt: skip
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
    left = {a.path_of(field.id) or field.name: field for field in a.walk()}
    right = {b.path_of(field.id) or field.name: field for field in b.walk()}
    for path, other in right.items():
        old_path = renamed.get(path, path)
        old_field = left.pop(old_path, None)
        if old_field is None:
            yield _field_row(ADDED, path, None, old=None, other=other)
        elif old_field.name != other.name:
            yield _field_row(RENAMED, path, old_path, old=old_field, other=other)
        elif _shown(old_field) != _shown(other):
            yield _field_row(CHANGED, path, old_path, old=old_field, other=other)
    for path, old_field in left.items():
        yield _field_row(REMOVED, path, path, old=old_field, other=None)


def _shown(field: Field) -> tuple[object, ...]:
    """Return what makes a field another one; its id is no part of it."""
    return field.logical_type, field.nullable, dict(field.metadata), field.keys


def _field_row(
    change: str, path: str, old_path: str | None, old: Field | None, other: Field | None
) -> Row:
    return {
        "change": change,
        "column": path,
        "old_column": old_path,
        "old_type": None if old is None else old.logical_type,
        "new_type": None if other is None else other.logical_type,
        "old_nullable": None if old is None else old.nullable,
        "new_nullable": None if other is None else other.nullable,
        "old_field_id": None if old is None else old.id,
        "new_field_id": None if other is None else other.id,
        "metadata_changed": old is not None
        and other is not None
        and (dict(old.metadata) != dict(other.metadata) or old.keys != other.keys),
    }


def indices_table(a: Snapshot, b: Snapshot) -> pa.Table:
    """One row per index segment that came, went or changed, by name."""
    before = {index.uuid: index for index in read_indices(a)}
    after = {index.uuid: index for index in read_indices(b)}
    rows = []
    for key in dict.fromkeys((*after, *before)):
        old, other = before.get(key), after.get(key)
        if old == other:
            continue
        change = ADDED if old is None else REMOVED if other is None else CHANGED
        rows.append(_index_row(change, (a, old), (b, other)))
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


@dataclass(frozen=True, slots=True)
class VersionBetween:
    """A version after the common ancestor, on side "a" or "b"."""

    side: str
    branch: str | None
    version: int


def versions_between(ends: Ends) -> list[VersionBetween]:
    """List the versions between, oldest first; lists names only."""
    versions = []
    for stretch in ends.between:
        numbers = ends.source.log(stretch.branch).numbers()
        first, stop = bisect_right(numbers, stretch.after), bisect_right(numbers, stretch.upto)
        versions += [
            VersionBetween(stretch.side, stretch.branch, number) for number in numbers[first:stop]
        ]
    return versions


def transactions_table(ends: Ends, versions: Sequence[VersionBetween]) -> pa.Table:
    """Describe the transactions of some versions. Raises CorruptFileError."""
    rows = [row for version in versions if (row := _transaction(ends, version)) is not None]
    return pa.Table.from_pylist(rows, schema=TRANSACTIONS)


def _transaction(ends: Ends, version: VersionBetween) -> dict[str, Any] | None:
    log = ends.source.log(version.branch)
    try:
        info, done = log.describe(version.version, {}), log.transaction(version.version)
    except VersionNotFoundError:
        return None  # cleaned up since it was listed
    return {
        "side": version.side,
        "branch": version.branch,
        "version": version.version,
        "timestamp": info.timestamp,
        "operation": info.operation,
        "message": info.message,
        "description": None if done is None else done.description,
        "read_version": None if done is None else done.read_version,
        "uuid": None if done is None else done.uuid,
    }


def deletions_table(ends: Ends, pairs: Sequence[Pair]) -> pa.Table:
    """One row per shared fragment; those of a diff whose deletions differ. Reads deletion files."""
    rows = []
    for pair in pairs:
        before, after = deleted_offsets(ends.a, pair.a), deleted_offsets(ends.b, pair.b)
        rows.append(
            {
                "fragment_id": pair.b.id,
                "physical_rows": pair.b.physical_rows or None,
                "deleted_before": before.size,
                "deleted_after": after.size,
                "rows_deleted": np.setdiff1d(after, before, assume_unique=True).size,
                "rows_undeleted": np.setdiff1d(before, after, assume_unique=True).size,
            }
        )
    return pa.Table.from_pylist(rows, schema=DELETIONS)
