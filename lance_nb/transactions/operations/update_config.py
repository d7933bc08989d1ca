"""UpdateConfig: entries of the config, table metadata, schema metadata or field metadata.

Each map is changed entry by entry (a key without a value is deleted) or replaced as a whole. Fields
are named by id.

Limits: values are texts here, bytes in the schema. The unenforced primary key is set through field
metadata, once; metadata that names it and sets none is refused. A clustering key is not set here.
Source: message ``Transaction.UpdateConfig`` of lance.table; fields 1 to 4 are the deprecated form:
upserts and deletes of the config, and complete schema and field metadata. Primary keys: measured
with pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.format.field import Field, Keys
from lance_nb.format.schema import Schema
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    TABLE_METADATA,
    ApplyContext,
    BaseOperation,
    Built,
    Footprint,
    OperationValue,
    Settings,
)
from lance_nb.value_classes import dataclass

NO_FIELD = -1
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
_TRUE = ("true", "1", "yes")

Change = Callable[[Mapping[str, str]], dict[str, str]]


@dataclass(frozen=True, slots=True, repr=False)
class UpdateMap(OperationValue):
    """Changes of one map: None deletes a key; with ``replace`` nothing of the old map stays."""

    updates: Mapping[str, str | None] = field(default_factory=dict)
    replace: bool = False
    unknown: bytes = b""

    def applied_to(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the map afterwards."""
        after = {} if self.replace else dict(before)
        for key, value in self.updates.items():
            if value is not None:
                after[key] = value
            else:
                after.pop(key, None)
        return after

    @classmethod
    def from_pb(cls, message: pb.Transaction.UpdateMap) -> UpdateMap:
        """Read the message."""
        updates = {
            update_entry.key: update_entry.value if update_entry.HasField("value") else None
            for update_entry in message.update_entries
        }
        return cls(updates, message.replace, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.UpdateMap:
        """Return the message."""
        message = pb.Transaction.UpdateMap(replace=self.replace)
        for key, value in self.updates.items():
            message.update_entries.add(key=key, value=value)
        message.MergeFromString(self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class DeprecatedUpdates:
    """What transactions of older writers say instead."""

    upsert_values: Mapping[str, str] = field(default_factory=dict)
    delete_keys: tuple[str, ...] = ()
    schema_metadata: Mapping[str, str] = field(default_factory=dict)
    field_metadata: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def from_pb(cls, message: pb.Transaction.UpdateConfig) -> DeprecatedUpdates | None:
        """Read the deprecated fields, None if there are none."""
        updates = cls(
            dict(message.upsert_values),
            tuple(message.delete_keys),
            dict(message.schema_metadata),
            {
                key: dict(field_metadata.metadata)
                for key, field_metadata in message.field_metadata.items()
            },
        )
        return None if updates == cls() else updates

    def write_to(self, message: pb.Transaction.UpdateConfig) -> None:
        """Set the deprecated fields."""
        message.upsert_values.update(self.upsert_values)
        message.delete_keys.extend(self.delete_keys)
        message.schema_metadata.update(self.schema_metadata)
        for key, metadata in self.field_metadata.items():
            message.field_metadata[key].SetInParent()
            message.field_metadata[key].metadata.update(metadata)


@dataclass(frozen=True, slots=True, repr=False)
class UpdateConfig(BaseOperation):
    """Change settings and metadata."""

    arm: ClassVar[str] = "update_config"

    config_updates: UpdateMap | None = None
    table_metadata_updates: UpdateMap | None = None
    schema_metadata_updates: UpdateMap | None = None
    field_metadata_updates: Mapping[int, UpdateMap] | None = None
    deprecated: DeprecatedUpdates | None = None
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.Transaction.UpdateConfig, path: str = "") -> UpdateConfig:
        """Read the message."""

        def read(name: str) -> UpdateMap | None:
            return UpdateMap.from_pb(getattr(message, name)) if message.HasField(name) else None

        fields = {
            key: UpdateMap.from_pb(update) for key, update in message.field_metadata_updates.items()
        }
        return cls(
            read("config_updates"),
            read("table_metadata_updates"),
            read("schema_metadata_updates"),
            fields or None,
            DeprecatedUpdates.from_pb(message),
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.UpdateConfig:
        """Return the message."""
        message: Any = pb.Transaction.UpdateConfig()
        for name in ("config_updates", "table_metadata_updates", "schema_metadata_updates"):
            map_update = getattr(self, name)
            if map_update is not None:
                getattr(message, name).CopyFrom(map_update.to_pb())
                getattr(message, name).SetInParent()
        for key, update in (self.field_metadata_updates or {}).items():
            message.field_metadata_updates[key].CopyFrom(update.to_pb())
        if self.deprecated is not None:
            self.deprecated.write_to(message)
        message.MergeFromString(self.unknown)
        return message  # type: ignore[no-any-return]

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the settings. Raises InvalidInputError for unknown fields."""
        draft = Draft.of(ctx, self)
        before = draft.manifest
        config, table, schema = self._maps()
        draft.manifest = replace(
            before,
            config=config.applied_to(before.config),
            table_metadata=table.applied_to(before.table_metadata),
        )
        if self._touches_schema():
            draft.set_schema(self._changed(before.schema, schema))
        return draft.finish()

    def _maps(self) -> tuple[UpdateMap, UpdateMap, UpdateMap]:
        """Return the changes of config, table metadata and schema metadata, in the newer form."""
        config = self.config_updates or UpdateMap()
        schema = self.schema_metadata_updates or UpdateMap()
        old = self.deprecated
        if old is not None and (old.upsert_values or old.delete_keys):
            deletes: dict[str, str | None] = dict.fromkeys(old.delete_keys)
            config = UpdateMap({**config.updates, **old.upsert_values, **deletes}, config.replace)
        if old is not None and old.schema_metadata:
            schema = UpdateMap(old.schema_metadata, replace=True)
        return config, self.table_metadata_updates or UpdateMap(), schema

    def _fields(self) -> dict[int, UpdateMap]:
        fields = dict(self.field_metadata_updates or {})
        if self.deprecated is not None:
            for key, metadata in self.deprecated.field_metadata.items():
                fields[key] = UpdateMap(metadata, replace=True)
        return fields

    def _touches_schema(self) -> bool:
        return self.footprint().settings.touches_schema

    def _changed(self, before: Schema, update: UpdateMap) -> Schema:
        texts = {key: value.decode("utf-8", "replace") for key, value in before.metadata.items()}
        after = update.applied_to(texts)
        # Untouched values stay the bytes they are, text or not.
        metadata = {
            key: before.metadata[key] if texts.get(key) == value else value.encode()
            for key, value in after.items()
        }
        updates = self._fields()
        for key in updates:
            if before.field_by_id(key) is None:
                raise InvalidInputError(f"there is no field {key} whose metadata could be changed")
        changes = {key: update.applied_to for key, update in updates.items()}
        return with_field_metadata(Schema(before.fields, metadata), changes)

    def footprint(self) -> Footprint:
        """Return the keys and maps it changes."""
        config, table, schema = self._maps()
        named = [(CONFIG, NO_FIELD, config), (TABLE_METADATA, NO_FIELD, table)]
        named += [(SCHEMA_METADATA, NO_FIELD, schema)]
        named += [(FIELD_METADATA, key, update) for key, update in self._fields().items()]
        keys = frozenset(
            (kind, field_id, key) for kind, field_id, update in named for key in update.updates
        )
        replaced = frozenset((kind, field_id) for kind, field_id, update in named if update.replace)
        return Footprint(settings=Settings(keys, replaced))


def with_field_metadata(schema: Schema, changes: Mapping[int, Change]) -> Schema:
    """Return the schema with the metadata of some fields changed. Raises InvalidInputError."""
    fields = tuple(_changed(field, changes) for field in schema.fields)
    after = Schema(fields, schema.metadata)
    before = _primary_key(schema)
    if before and _primary_key(after) != before:
        raise InvalidInputError("the unenforced primary key is set once and cannot be changed")
    return after


def _changed(field: Field, changes: Mapping[int, Change]) -> Field:
    children = tuple(_changed(child, changes) for child in field.children)
    if field.id not in changes:
        return replace(field, children=children)
    texts = {key: value.decode("utf-8", "replace") for key, value in field.metadata.items()}
    after = changes[field.id](texts)
    metadata = {
        key: field.metadata[key] if texts.get(key) == value else value.encode()
        for key, value in after.items()
    }
    return replace(field, children=children, metadata=metadata, keys=_keys(field, after))


def _keys(field: Field, metadata: Mapping[str, str]) -> Keys:
    position = _position(metadata)
    if position is None and metadata.get(PRIMARY_KEY, "").lower() in _TRUE:
        position = 0
    if position is None and not metadata.keys().isdisjoint((PRIMARY_KEY, PRIMARY_KEY_POSITION)):
        raise InvalidInputError(f"field {field.name!r}: the primary key metadata sets no key")
    return replace(field.keys, primary=position is not None, primary_position=position or 0)


def _position(metadata: Mapping[str, str]) -> int | None:
    text = metadata.get(PRIMARY_KEY_POSITION, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _primary_key(schema: Schema) -> set[tuple[int, int]]:
    return {
        (field.id, field.keys.primary_position) for field in schema.walk() if field.keys.primary
    }
