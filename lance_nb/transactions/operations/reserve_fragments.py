"""ReserveFragments: fragment ids set aside, for a Rewrite that is still being made.

The ids are the ``num_fragments`` highest ones afterwards.

Limits: fragment ids fit 32 bits.
Source: message ``Transaction.ReserveFragments`` of lance.table.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class ReserveFragments(BaseOperation):
    """Set fragment ids aside."""

    arm: ClassVar[str] = "reserve_fragments"

    num_fragments: int
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.Transaction.ReserveFragments, path: str = "") -> ReserveFragments:
        """Read the message."""
        return cls(message.num_fragments, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.ReserveFragments:
        """Return the message."""
        message = pb.Transaction.ReserveFragments(num_fragments=self.num_fragments)
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the ids set aside. Raises InvalidInputError beyond 32 bits."""
        draft = Draft.of(ctx, self)
        # From 0 even if no id was ever used: what pylance's compaction counts back from.
        draft.use_fragment_ids([max(draft.max_fragment_id, 0) + self.num_fragments])
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return nothing: it touches no fragment."""
        return Footprint()
