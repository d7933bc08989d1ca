"""What a change drops without naming it: indices, the primary key, metadata of columns and schema.

An overwrite keeps config, table metadata, tags and branches, and drops whatever belongs to the
schema that it replaces, as pylance does. Dropped columns take their indices along, a restore those
that were built since, and rows that all move those that cannot follow.

Said in three places: in the preview of a stage, by a warning before the version is written (so that
a program which turns warnings into errors commits nothing), and as a property of the transaction
(``DROPPED_PROPERTY``), which histories show. The last one is what remains of a commit on a Spark
driver, whose warnings are in its log.

Limits: changes that name what they drop are silent (CreateIndex, UpdateConfig), and so is a branch
merge, whose plan lists its findings. At most ``PARTS_MAX`` parts of a kind are named.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lance_nb.errors import SideEffectWarning
from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema, primary_key
from lance_nb.format.transaction_summary import DROPPED_PROPERTY, count_of, operation_name
from lance_nb.shown_text import visible
from lance_nb.transactions.operation import Built
from lance_nb.transactions.transaction import Transaction

PARTS_MAX = 10
_SILENT_ARMS = frozenset({"create_index", "update_config", "clone"})
# The key is named by itself, types are seen in the schema, and pandas' metadata is of the rows.
_IGNORED_PREFIXES = ("lance-schema:unenforced-primary-key", "ARROW:", "pandas")


def dropped_parts(
    transaction: Transaction,
    before: Manifest | None,
    indices: Sequence[IndexMetadata],
    built: Built,
) -> tuple[str, ...]:
    """Name what a version has and the next one, ``built`` of it by a transaction, has not."""
    if before is None or transaction.operation.arm in _SILENT_ARMS:
        return ()
    parts = list(_dropped_indices(before.schema, indices, built.indices))
    schema = built.manifest.schema
    if schema is not before.schema and schema != before.schema:
        keeps_ids = transaction.operation.arm != "overwrite"
        parts += _dropped_of_schema(before.schema, schema, keeps_ids=keeps_ids)
    return tuple(parts)


def with_dropped(transaction: Transaction, parts: Sequence[str]) -> Transaction:
    """Return the transaction with its dropped parts as a property; itself if it has them."""
    text = "; ".join(parts)
    if transaction.properties.get(DROPPED_PROPERTY, "") == text:
        return transaction
    properties = {**transaction.properties, DROPPED_PROPERTY: text}
    if not text:
        del properties[DROPPED_PROPERTY]
    return replace(transaction, transaction_properties=properties)


def warn_of_dropped(transaction: Transaction, parts: Sequence[str], uri: str, version: int) -> None:
    """Warn that a change is about to drop parts that a version of a dataset has."""
    if parts:
        text = (
            f"{operation_name(transaction.operation.arm)} on version {version} of {uri!r} drops "
            f"{'; '.join(parts)}. Version {version} still has them; declare or build again what "
            "is needed"
        )
        warnings.warn(SideEffectWarning(text), stacklevel=2)


def _dropped_indices(
    schema: Schema, before: Sequence[IndexMetadata], after: Iterable[IndexMetadata]
) -> Iterator[str]:
    names = {index.name for index in after}
    fields = {index.name: index.fields for index in before if index.name not in names}
    fields.pop(REUSE_INDEX, None)  # addresses of the rows of other indices
    parts = []
    for name, ids in sorted(fields.items()):
        paths = [schema.path_of(number) or f"field {number}" for number in ids]
        parts.append(f"index {_quoted([name])}" + (f" on {_quoted(paths)}" if paths else ""))
    yield from _limited(parts, "index")


def _dropped_of_schema(before: Schema, after: Schema, *, keeps_ids: bool) -> Iterator[str]:
    key = primary_key(before)
    if key and not primary_key(after):
        yield f"the unenforced primary key {_quoted(key)}"
    fields = {after.path_of(field.id): field for field in after.walk()}
    parts = []
    for field in before.walk():
        path = before.path_of(field.id)
        successor = fields.get(path)
        if path is not None and field.metadata and successor is not None:
            renamed = after.field_by_id(field.id) if keeps_ids else None
            remaining = {**successor.metadata, **({} if renamed is None else renamed.metadata)}
            keys = _dropped_keys(field.metadata, remaining)
            if keys:
                parts.append(f"metadata {_quoted(keys)} of column {_quoted([path])}")
    yield from _limited(parts, "column")
    keys = _dropped_keys(before.metadata, after.metadata)
    if keys:
        yield f"metadata {_quoted(keys)} of the schema"


def _dropped_keys(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    return sorted(
        key for key in before if key not in after and not key.startswith(_IGNORED_PREFIXES)
    )


def _limited(parts: Sequence[str], noun: str) -> Iterator[str]:
    yield from parts[:PARTS_MAX]
    if len(parts) > PARTS_MAX:
        yield count_of(len(parts) - PARTS_MAX, f"more {noun}")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(visible(repr(name)) for name in names)
