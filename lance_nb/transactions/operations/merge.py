"""Merge: columns added or changed; the schema and the complete list of fragments are handed in.

The list says everything: which fragments there are, in which order, with which files. Fragments
that are new get row ids and versions; those whose files changed count as updated now. An index on a
field that moved to another file no longer covers that fragment.

Limits: schema metadata that is left out stays as it is (pylance 14.0.2 always leaves it out). No
fragment of the current version may be missing. ``preserves_nullability`` says that the
new schema accepts whatever rows concurrent writers add; without it they conflict.
Source: message ``Transaction.Merge`` of lance.table.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import ClassVar

import pyarrow as pa

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.schema import Schema
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, prune_fields, retain_useful
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint, listed
from lance_nb.transactions.row_lineage import stamp_all_updated, stamp_new_rows
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Merge(BaseOperation):
    """Add or change columns."""

    arm: ClassVar[str] = "merge"

    fragments: Sequence[Fragment]
    schema: LanceSchema
    preserves_nullability: bool
    unknown: bytes

    def __init__(
        self,
        fragments: Iterable[Fragment],
        schema: LanceSchema | Schema | pa.Schema,
        preserves_nullability: bool = False,
        unknown: bytes = b"",
    ) -> None:
        """Take the schema with its ids; an Arrow schema, whose fields are numbered from 0, warns.

        Raises ArgumentError for other values.
        """
        if isinstance(schema, pa.Schema):
            warnings.warn(
                "Merge with a pyarrow.Schema numbers its fields anew; give a LanceSchema",
                DeprecationWarning,
                stacklevel=2,
            )
        object.__setattr__(self, "fragments", listed(fragments, Fragment, "fragments"))
        object.__setattr__(self, "schema", LanceSchema.of(schema))
        object.__setattr__(self, "preserves_nullability", preserves_nullability)
        object.__setattr__(self, "unknown", unknown)

    @classmethod
    def from_pb(cls, message: pb.Transaction.Merge, path: str = "") -> Merge:
        """Read the message. Raises CorruptFileError."""
        return cls(
            [Fragment.from_pb(fragment) for fragment in message.fragments],
            Schema.from_pb(message.schema, message.schema_metadata, path),
            message.preserves_nullability,
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.Merge:
        """Return the message."""
        message = pb.Transaction.Merge(
            fragments=[fragment.to_pb() for fragment in self.fragments],
            schema=self.schema.tree.to_pb(),
            schema_metadata=dict(self.schema.tree.metadata),
            preserves_nullability=self.preserves_nullability,
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the columns. Raises InvalidInputError for missing fragments."""
        draft = Draft.of(ctx, self)
        before = {fragment.id: fragment for fragment in draft.current.fragments}
        missing = before.keys() - {fragment.id for fragment in self.fragments}
        if missing:
            raise InvalidInputError(
                f"a Merge lists every fragment, but fragment {min(missing)} is not among its "
                f"{len(self.fragments)}"
            )
        for fragment in self.fragments:
            old = before.get(fragment.id)
            if old is not None and 0 < old.physical_rows != fragment.physical_rows > 0:
                raise InvalidInputError(
                    f"a Merge keeps the rows of every fragment, but fragment {fragment.id} has "
                    f"{old.physical_rows} of them and is to have {fragment.physical_rows}"
                )
        metadata = self.schema.tree.metadata or draft.current.schema.metadata
        draft.set_schema(Schema(self.schema.tree.fields, metadata))
        merged = draft.assign_row_ids(list(self.fragments))
        if draft.has_row_ids:
            merged = [
                _stamped(before.get(fragment.id), fragment, draft.version) for fragment in merged
            ]
        draft.set_all(merged)
        draft.use_fragment_ids(fragment.id for fragment in merged)
        for merged_fragment in merged:
            old = before.get(merged_fragment.id)
            if old is not None and old.files != merged_fragment.files:
                prune_fields(draft, {merged_fragment.id}, _moved_fields(old, merged_fragment))
        retain_useful(draft)
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return what is left of the schema: rules treat it as touching everything else."""
        return Footprint(
            changed_fragments=frozenset(fragment.id for fragment in self.fragments),
            field_ids=frozenset(field.id for field in self.schema.tree.walk()),
            may_alter_nullability=not self.preserves_nullability,
        )


def _stamped(old: Fragment | None, new: Fragment, version: int) -> Fragment:
    if old is None:
        return stamp_new_rows([new], version)[0]
    return new if _same_files(old, new) else stamp_all_updated(new, version)


def _same_files(old: Fragment, new: Fragment) -> bool:
    """Whether no column was written; a size that became known is no change."""

    def identity(fragment: Fragment) -> list[tuple[object, ...]]:
        return [
            (file.path, file.fields, file.column_indices, file.file_version, file.base_id)
            for file in fragment.files
        ]

    return identity(old) == identity(new)


def _moved_fields(old: Fragment, new: Fragment) -> set[int]:
    """Return the fields that are in both, in files of different names."""
    before, after = _file_of_field(old), _file_of_field(new)
    return {field for field, path in before.items() if after.get(field, path) != path}


def _file_of_field(fragment: Fragment) -> dict[int, str]:
    return {field: file.path for file in fragment.files for field in file.fields if field >= 0}
