"""Project: a schema with fewer, renamed or reordered columns; no data file is written.

Data files that hold none of the columns any more are no longer referred to; neither are indices on
a dropped column.

Limits: ``preserves_nullability`` as in Merge.
Source: message ``Transaction.Project`` of lance.table (schema metadata is not part of it).
"""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from lance_nb._pb import transaction as pb
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.schema import Schema
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, retain_useful
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Project(BaseOperation):
    """Drop, rename or reorder columns."""

    arm: ClassVar[str] = "project"

    schema: LanceSchema
    preserves_nullability: bool
    unknown: bytes

    def __init__(
        self,
        schema: LanceSchema | Schema | pa.Schema,
        preserves_nullability: bool = False,
        unknown: bytes = b"",
    ) -> None:
        """Take the schema with its ids, or an Arrow schema, whose fields are numbered from 0.

        Raises ArgumentError for other values.
        """
        object.__setattr__(self, "schema", LanceSchema.of(schema))
        object.__setattr__(self, "preserves_nullability", preserves_nullability)
        object.__setattr__(self, "unknown", unknown)

    @classmethod
    def from_pb(cls, message: pb.Transaction.Project, path: str = "") -> Project:
        """Read the message. Raises CorruptFileError."""
        schema = Schema.from_pb(message.schema, {}, path)
        return cls(schema, message.preserves_nullability, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.Project:
        """Return the message."""
        message = pb.Transaction.Project(
            schema=self.schema.tree.to_pb(), preserves_nullability=self.preserves_nullability
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the schema."""
        draft = Draft.of(ctx, self)
        draft.set_schema(Schema(self.schema.tree.fields, draft.current.schema.metadata))
        draft.drop_dead_files()
        retain_useful(draft)
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return what is left of the schema."""
        return Footprint(
            field_ids=frozenset(field.id for field in self.schema.tree.walk()),
            may_alter_nullability=not self.preserves_nullability,
        )
