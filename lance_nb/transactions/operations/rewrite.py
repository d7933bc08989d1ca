"""Rewrite: fragments replaced by others with the same live rows (compaction).

Each group of old fragments becomes a group of new ones. Fragments stand in the order of their ids,
so the new ones come behind the others. They carry ids that a ReserveFragments got for them; id 0
gets one now. ``rewritten_indices`` name the remapped copies of indices; with stable row ids, those
that know rows by id need none, and only their coverage moves.

Limits: ``frag_reuse_index`` (a new state of the fragment-reuse index that goes with the rewrite) is
known to the process that made it only: the message has no field for it.
Source: message ``Transaction.Rewrite`` of lance.table; fields 1 and 2 only in old transactions.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from lance_nb._pb import table
from lance_nb._pb import transaction as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, cover_rewritten, remap
from lance_nb.transactions.operation import (
    ApplyContext,
    BaseOperation,
    Built,
    Footprint,
    OperationValue,
    listed,
)
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class RewriteGroup(OperationValue):
    """Fragments, and what they were rewritten to."""

    old_fragments: Sequence[Fragment]
    new_fragments: Sequence[Fragment]
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "old_fragments", listed(self.old_fragments, Fragment, "old_fragments")
        )
        object.__setattr__(
            self, "new_fragments", listed(self.new_fragments, Fragment, "new_fragments")
        )

    @property
    def old_ids(self) -> frozenset[int]:
        """The ids of the old fragments."""
        return frozenset(old_fragment.id for old_fragment in self.old_fragments)


@dataclass(frozen=True, slots=True, repr=False)
class RewrittenIndex(OperationValue):
    """The remapped copy of an index; its other properties stay."""

    old_id: str
    new_id: str
    new_details_type_url: str = ""
    new_details_value: bytes = b""
    new_index_version: int = 0
    new_index_files: tuple[IndexFile, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, repr=False)
class Rewrite(BaseOperation):
    """Replace fragments by others with the same rows."""

    arm: ClassVar[str] = "rewrite"

    groups: Sequence[RewriteGroup]
    rewritten_indices: Sequence[RewrittenIndex] = ()
    frag_reuse_index: IndexMetadata | None = None
    legacy: RewriteGroup | None = None
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", listed(self.groups, RewriteGroup, "groups"))
        object.__setattr__(
            self,
            "rewritten_indices",
            listed(self.rewritten_indices, RewrittenIndex, "rewritten_indices"),
        )

    @classmethod
    def from_pb(cls, message: pb.Transaction.Rewrite, path: str = "") -> Rewrite:
        """Read the message. Raises CorruptFileError."""
        legacy = None
        if message.old_fragments or message.new_fragments:
            legacy = RewriteGroup(
                tuple(Fragment.from_pb(old_fragment) for old_fragment in message.old_fragments),
                tuple(Fragment.from_pb(new_fragment) for new_fragment in message.new_fragments),
            )
        return cls(
            tuple(
                RewriteGroup(
                    tuple(Fragment.from_pb(old_fragment) for old_fragment in group.old_fragments),
                    tuple(Fragment.from_pb(new_fragment) for new_fragment in group.new_fragments),
                    unknown_bytes(group),
                )
                for group in message.groups
            ),
            tuple(
                _index_from_pb(rewritten_index, path)
                for rewritten_index in message.rewritten_indices
            ),
            None,
            legacy,
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.Rewrite:
        """Return the message."""
        message = pb.Transaction.Rewrite(
            groups=[_group_to_pb(group) for group in self.groups],
            rewritten_indices=[
                _index_to_pb(rewritten_index) for rewritten_index in self.rewritten_indices
            ],
        )
        if self.legacy is not None:
            message.old_fragments.extend(
                old_fragment.to_pb() for old_fragment in self.legacy.old_fragments
            )
            message.new_fragments.extend(
                new_fragment.to_pb() for new_fragment in self.legacy.new_fragments
            )
        message.MergeFromString(self.unknown)
        return message

    @property
    def all_groups(self) -> tuple[RewriteGroup, ...]:
        """The groups, with that of an old transaction."""
        return (*self.groups,) if self.legacy is None else (*self.groups, self.legacy)

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the new fragments. Raises InvalidInputError."""
        draft = Draft.of(ctx, self)
        moves = []
        for group in self.all_groups:
            new = draft.number(group.new_fragments, keep_reserved=True)
            draft.change_known((), group.old_ids)
            draft.append(new)
            moves.append((group.old_ids, frozenset(fragment.id for fragment in new)))
        for rewritten_index in self.rewritten_indices:
            remap(
                draft,
                moves,
                rewritten_index.old_id,
                new_id=rewritten_index.new_id,
                files=rewritten_index.new_index_files,
            )
        if draft.has_row_ids:
            cover_rewritten(
                draft, moves, {rewritten_index.new_id for rewritten_index in self.rewritten_indices}
            )
        if self.frag_reuse_index is not None:
            name = self.frag_reuse_index.name
            remaining = [index for index in draft.indices if index.name != name]
            draft.indices = [*remaining, self.frag_reuse_index]
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return the fragments that are rewritten."""
        groups = tuple(group.old_ids for group in self.all_groups)
        return Footprint(
            removed_fragments=frozenset().union(*groups),
            groups=groups,
            carries_reuse_index=self.frag_reuse_index is not None,
        )


# --- parts of the message -------------------------------------------------------------------------


def _group_to_pb(group: RewriteGroup) -> pb.Transaction.Rewrite.RewriteGroup:
    message = pb.Transaction.Rewrite.RewriteGroup(
        old_fragments=[old_fragment.to_pb() for old_fragment in group.old_fragments],
        new_fragments=[new_fragment.to_pb() for new_fragment in group.new_fragments],
    )
    message.MergeFromString(group.unknown)
    return message


def _index_from_pb(message: pb.Transaction.Rewrite.RewrittenIndex, path: str) -> RewrittenIndex:
    for uuid_bytes in (message.old_id.uuid, message.new_id.uuid):
        if len(uuid_bytes) != 16:
            raise CorruptFileError(
                path, None, "an index id of 16 bytes", f"{len(uuid_bytes)} bytes"
            )
    return RewrittenIndex(
        str(uuid.UUID(bytes=message.old_id.uuid)),
        str(uuid.UUID(bytes=message.new_id.uuid)),
        message.new_index_details.type_url,
        message.new_index_details.value,
        message.new_index_version,
        tuple(IndexFile.from_pb(new_index_file) for new_index_file in message.new_index_files),
        unknown_bytes(message),
    )


def _index_to_pb(index: RewrittenIndex) -> pb.Transaction.Rewrite.RewrittenIndex:
    message = pb.Transaction.Rewrite.RewrittenIndex(
        old_id=table.UUID(uuid=uuid.UUID(index.old_id).bytes),
        new_id=table.UUID(uuid=uuid.UUID(index.new_id).bytes),
        new_index_version=index.new_index_version,
        new_index_files=[new_index_file.to_pb() for new_index_file in index.new_index_files],
    )
    if index.new_details_type_url or index.new_details_value:
        message.new_index_details.type_url = index.new_details_type_url
        message.new_index_details.value = index.new_details_value
    message.MergeFromString(index.unknown)
    return message
