"""Overwrite: a new dataset, or new rows and a new schema in the place of all old ones.

The config, table metadata, base paths and branch of the dataset stay; indices do not. Fragment ids
continue after the highest ever used, field ids start anew with the schema that is handed in, and
stable row ids continue. The data files say which format version the dataset has from now on.

Limits: bases can be added when the dataset is created, not later (``UpdateBases`` does that). All
data files have the same file version, unless a feature flag says that they are mixed. 2.0 files
record 0.3 in their footers and 2.0 in the manifest; both mean 2.0.
Source: message ``Transaction.Overwrite`` of lance.table; ``Manifest.data_format``; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.file.versions import recorded_version
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.frozen_list import FrozenList
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.manifest import BasePath, DataStorageFormat, Manifest
from lance_nb.format.schema import Schema
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import (
    CONFIG,
    DEFAULT_FILE_VERSION,
    ApplyContext,
    BaseOperation,
    Built,
    Footprint,
    Settings,
    listed,
)
from lance_nb.transactions.schema_change import new_schema as dataset_schema
from lance_nb.value_classes import dataclass

FILE_FORMAT = "lance"
_DEFAULT_VERSION = (2, 2)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Overwrite(BaseOperation):
    """Create a dataset, or replace all its rows."""

    arm: ClassVar[str] = "overwrite"

    new_schema: LanceSchema
    fragments: Sequence[Fragment]
    initial_bases: Sequence[BasePath] | None
    config_upsert_values: Mapping[str, str]
    unknown: bytes

    def __init__(
        self,
        new_schema: LanceSchema | Schema | pa.Schema,
        fragments: Iterable[Fragment],
        initial_bases: Iterable[BasePath] | None = None,
        config_upsert_values: Mapping[str, str] | None = None,
        unknown: bytes = b"",
    ) -> None:
        """Take the schema with its ids, or an Arrow schema that is numbered anew.

        Raises ArgumentError for other values.
        """
        added = listed(fragments, Fragment, "fragments")
        if isinstance(new_schema, pa.Schema):
            new_schema = _numbered(new_schema, added)
        bases = FrozenList(initial_bases or ()) or None
        object.__setattr__(self, "new_schema", LanceSchema.of(new_schema))
        object.__setattr__(self, "fragments", added)
        object.__setattr__(self, "initial_bases", bases)
        object.__setattr__(self, "config_upsert_values", config_upsert_values or {})
        object.__setattr__(self, "unknown", unknown)

    @classmethod
    def from_pb(cls, message: pb.Transaction.Overwrite, path: str = "") -> Overwrite:
        """Read the message. Raises CorruptFileError."""
        return cls(
            Schema.from_pb(message.schema, message.schema_metadata, path),
            [Fragment.from_pb(fragment) for fragment in message.fragments],
            [BasePath.from_pb(initial_base) for initial_base in message.initial_bases],
            config_upsert_values=dict(message.config_upsert_values),
            unknown=unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.Overwrite:
        """Return the message."""
        message = pb.Transaction.Overwrite(
            schema=self.new_schema.tree.to_pb(),
            schema_metadata=dict(self.new_schema.tree.metadata),
            fragments=[fragment.to_pb() for fragment in self.fragments],
            config_upsert_values=dict(self.config_upsert_values),
            initial_bases=[initial_base.to_pb() for initial_base in self.initial_bases or ()],
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with only the new rows.

        Raises InvalidInputError for data files of different or unwanted format versions.
        """
        draft = self._start(ctx)
        # As in pylance: rows that bring ids keep them.
        brings_ids = all(fragment.row_ids is not None for fragment in self.fragments)
        draft.begins_row_ids = bool(self.fragments) and brings_ids
        draft.set_fragments(FragmentList())
        draft.indices = []
        draft.set_schema(self.new_schema.tree)
        data_format = storage_format(self.fragments, ctx.options.file_version, draft.manifest)
        config = {**draft.manifest.config, **self.config_upsert_values}
        draft.manifest = replace(draft.manifest, data_format=data_format, config=config)
        draft.add(self.fragments)
        return draft.finish()

    def _start(self, ctx: ApplyContext) -> Draft:
        if ctx.current is None:
            bases = tuple(self.initial_bases or ())
            ids = [base.id for base in bases]
            if len(set(ids)) != len(ids):
                raise InvalidInputError(f"the ids of base paths must differ, not {ids}")
            return Draft(ctx, Manifest(0, self.new_schema.tree, base_paths=bases))
        if self.initial_bases:
            raise InvalidInputError(
                "base paths are registered when a dataset is created; to add some later, use "
                "UpdateBases"
            )
        return Draft.of(ctx, self)

    def footprint(self) -> Footprint:
        """Return the config keys it sets: everything else it replaces."""
        keys = frozenset((CONFIG, -1, key) for key in self.config_upsert_values)
        return Footprint(
            supplies_values=True,
            settings=Settings(keys),
            field_ids=frozenset(field.id for field in self.new_schema.tree.walk()),
        )


def _numbered(schema: pa.Schema, fragments: Sequence[Fragment]) -> LanceSchema:
    """Return the schema of a dataset from an Arrow one, blobs as the given files have them."""
    files = [file for fragment in fragments for file in fragment.files]
    version = files[0].file_version if files else _DEFAULT_VERSION
    return LanceSchema(dataset_schema(schema, version))


def storage_format(
    fragments: Iterable[Fragment], version: str | None, before: Manifest
) -> DataStorageFormat:
    """Return the format to record. Raises InvalidInputError for files of other versions."""
    stored_versions = {
        recorded_version(file.file_version) for part in fragments for file in part.files
    }
    if len(stored_versions) > 1 or (version is not None and stored_versions - {version}):
        versions = ", ".join(sorted(stored_versions))
        expected = "of one version" if version is None else f"of version {version}"
        raise InvalidInputError(f"the new data files are to be {expected}, and are {versions}")
    if stored_versions or version is not None:
        return DataStorageFormat(FILE_FORMAT, version or stored_versions.pop())
    return before.data_format or DataStorageFormat(FILE_FORMAT, DEFAULT_FILE_VERSION)
