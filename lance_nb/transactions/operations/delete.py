"""Delete: rows marked as deleted, and fragments taken out when all their rows are.

``updated_fragments`` carry their new deletion file, which holds the older deletions as well; they
come as they were at the read version. ``predicate`` is for people.

Source: message ``Transaction.Delete`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.format.fragment import Fragment
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, retain_useful
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint, listed
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Delete(BaseOperation):
    """Delete rows."""

    arm: ClassVar[str] = "delete"

    updated_fragments: Sequence[Fragment] = ()
    deleted_fragment_ids: Sequence[int] = ()
    predicate: str = ""
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "updated_fragments", listed(self.updated_fragments, Fragment, "updated_fragments")
        )
        object.__setattr__(
            self,
            "deleted_fragment_ids",
            listed(self.deleted_fragment_ids, int, "deleted_fragment_ids"),
        )

    @classmethod
    def from_pb(cls, message: pb.Transaction.Delete, path: str = "") -> Delete:
        """Read the message."""
        return cls(
            tuple(
                Fragment.from_pb(updated_fragment) for updated_fragment in message.updated_fragments
            ),
            tuple(message.deleted_fragment_ids),
            message.predicate,
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.Delete:
        """Return the message."""
        message = pb.Transaction.Delete(
            updated_fragments=[
                updated_fragment.to_pb() for updated_fragment in self.updated_fragments
            ],
            deleted_fragment_ids=self.deleted_fragment_ids,
            predicate=self.predicate,
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version without the rows. Raises InvalidInputError for unknown fragments.

        Of a fragment that is changed only the deletion file counts, as in pylance: its data files
        are those of the version that is there.
        """
        draft = Draft.of(ctx, self)
        draft.change_known(self._with_deletions(draft), self.deleted_fragment_ids)
        retain_useful(draft)
        return draft.finish()

    def _with_deletions(self, draft: Draft) -> list[Fragment]:
        current = draft.current.fragments.with_ids(
            fragment.id for fragment in self.updated_fragments
        )
        return [
            fragment
            if fragment.id not in current
            else replace(
                current[fragment.id],
                deletion_file=fragment.deletion_file,
                # Old releases did not record the number; who deletes has counted the rows.
                physical_rows=current[fragment.id].physical_rows or fragment.physical_rows,
            )
            for fragment in self.updated_fragments
        ]

    def footprint(self) -> Footprint:
        """Return the fragments it changes and removes."""
        return Footprint(
            changed_fragments=frozenset(
                updated_fragment.id for updated_fragment in self.updated_fragments
            ),
            removed_fragments=frozenset(self.deleted_fragment_ids),
        )
