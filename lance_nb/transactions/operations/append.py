"""Append: new fragments after the existing ones.

Fragment ids, row ids and row versions are assigned when it is applied; the fragments come with id
0. Fragments that are there are not looked at, so that appending to 100,000 of them is cheap.

Source: message ``Transaction.Append`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.format.fragment import Fragment
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions import manifest_building as building
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint, listed
from lance_nb.transactions.row_lineage import check_new_row_ids
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Append(BaseOperation):
    """Add fragments."""

    arm: ClassVar[str] = "append"

    fragments: Sequence[Fragment]
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fragments", listed(self.fragments, Fragment, "fragments"))

    @classmethod
    def from_pb(cls, message: pb.Transaction.Append, path: str = "") -> Append:
        """Read the message."""
        fragments = tuple(Fragment.from_pb(fragment) for fragment in message.fragments)
        return cls(fragments, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.Append:
        """Return the message."""
        message = pb.Transaction.Append(fragments=[fragment.to_pb() for fragment in self.fragments])
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the fragments added.

        Raises InvalidInputError for row ids that other rows have.
        """
        draft = building.Draft.of(ctx, self)
        if draft.has_row_ids:
            check_new_row_ids(self.fragments, draft.manifest.next_row_id)
        draft.add(self.fragments)
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return what it touches: nothing that is there."""
        return Footprint(supplies_values=True)
