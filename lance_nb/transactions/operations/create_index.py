"""CreateIndex: indices added, replaced or removed.

``removed_indices`` go out by their uuid; of ``new_indices``, one whose uuid is there already takes
its place. The index files exist already: this only makes them known.

Source: message ``Transaction.CreateIndex`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.format.frozen_list import FrozenList
from lance_nb.format.index_metadata import Index, IndexMetadata
from lance_nb.format.merged_logs import WAL_INDEX, merged_logs
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False, init=False)
class CreateIndex(BaseOperation):
    """Add indices to the manifest, or remove them."""

    arm: ClassVar[str] = "create_index"

    new_indices: Sequence[Index]
    removed_indices: Sequence[Index]
    unknown: bytes

    def __init__(
        self,
        new_indices: Iterable[Index | IndexMetadata] = (),
        removed_indices: Iterable[Index | IndexMetadata] = (),
        unknown: bytes = b"",
    ) -> None:
        """Take indices as users or manifests describe them. Raises ArgumentError."""
        object.__setattr__(self, "new_indices", FrozenList(map(Index.of, new_indices)))
        object.__setattr__(self, "removed_indices", FrozenList(map(Index.of, removed_indices)))
        object.__setattr__(self, "unknown", unknown)

    @property
    def added(self) -> tuple[IndexMetadata, ...]:
        """What the manifest gets of the new indices."""
        return tuple(index.metadata for index in self.new_indices)

    @property
    def removed(self) -> tuple[IndexMetadata, ...]:
        """What the manifest had of the removed indices."""
        return tuple(index.metadata for index in self.removed_indices)

    @classmethod
    def from_pb(cls, message: pb.Transaction.CreateIndex, path: str = "") -> CreateIndex:
        """Read the message. Raises CorruptFileError."""
        return cls(
            tuple(IndexMetadata.from_pb(index, path) for index in message.new_indices),
            tuple(IndexMetadata.from_pb(index, path) for index in message.removed_indices),
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.CreateIndex:
        """Return the message."""
        message = pb.Transaction.CreateIndex(
            new_indices=[index.to_pb() for index in self.added],
            removed_indices=[index.to_pb() for index in self.removed],
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the indices. Raises InvalidInputError for unknown fields."""
        draft = Draft.of(ctx, self)
        for index in self.added:
            field_by_id = draft.manifest.schema.field_by_id
            missing = [field for field in index.fields if field_by_id(field) is None]
            if missing and not index.is_system:
                raise InvalidInputError(
                    f"index {index.name!r} is on field {missing[0]}, which the schema does not have"
                )
        removed_uuids = {index.uuid for index in (*self.new_indices, *self.removed_indices)}
        remaining = [index for index in draft.indices if index.uuid not in removed_uuids]
        draft.indices = [*remaining, *self.added]
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return the indices."""
        logs = [merged_logs(index.details) for index in self.added if index.name == WAL_INDEX]
        return Footprint(
            new_indices=self.added,
            removed_indices=self.removed,
            compacted=tuple((log.shard_id, log.generation) for part in logs for log in part),
        )
