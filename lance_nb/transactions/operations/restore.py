"""Restore: an older version becomes the newest again, under a new number.

Fragments, schema, config and indices are those of the old version. Nothing that was counted goes
back: the highest fragment id, the next row id and the highest field id stay as high as they ever
were, so that no id is given out twice. The merges that the configuration names stay, too: the next
merge of the same branch goes on from them, and does not bring back what was restored away.

Source: message ``Transaction.Restore`` of lance.table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.format.merge_record import only_marks, without_marks
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, check_changeable
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Restore(BaseOperation):
    """Go back to a version."""

    arm: ClassVar[str] = "restore"

    version: int
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.Transaction.Restore, path: str = "") -> Restore:
        """Read the message."""
        return cls(message.version, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.Restore:
        """Return the message."""
        message = pb.Transaction.Restore(version=self.version)
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the old version as the next one. Raises VersionNotFoundError."""
        draft = Draft.of(ctx, self)
        old, indices = ctx.load_version(self.version)
        check_changeable(old)
        now = draft.current
        draft.manifest = replace(
            old,
            max_fragment_id=_highest(old.max_fragment_id, now.max_fragment_id),
            next_row_id=max(old.next_row_id, now.next_row_id),
            max_allocated_field_id=_highest(old.max_allocated_field_id, now.max_allocated_field_id),
            config={**without_marks(old.config), **only_marks(now.config)},
            branch=now.branch,
            reader_feature_flags=old.reader_feature_flags | now.reader_feature_flags,
            writer_feature_flags=old.writer_feature_flags | now.writer_feature_flags,
        )
        draft.set_fragments(old.fragments)
        draft.indices = list(indices)
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return nothing: it replaces everything."""
        return Footprint()


def _highest(number: int | None, other: int | None) -> int | None:
    values = [value for value in (number, other) if value is not None]
    return max(values, default=None)
