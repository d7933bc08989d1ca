"""UpdateBases: more roots that files of the dataset may live under.

A base with id 0 gets the next free id, from 1.

Limits: neither a name nor a path may be there twice; bases are never changed or removed.
Source: message ``Transaction.UpdateBases`` of lance.table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import BasePathError
from lance_nb.format.manifest import BasePath
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class UpdateBases(BaseOperation):
    """Add base paths."""

    arm: ClassVar[str] = "update_bases"

    new_bases: tuple[BasePath, ...]
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.Transaction.UpdateBases, path: str = "") -> UpdateBases:
        """Read the message."""
        bases = tuple(BasePath.from_pb(new_base) for new_base in message.new_bases)
        return cls(bases, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.UpdateBases:
        """Return the message."""
        message = pb.Transaction.UpdateBases(
            new_bases=[new_base.to_pb() for new_base in self.new_bases]
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the bases. Raises BasePathError for one that is there."""
        draft = Draft.of(ctx, self)
        bases = list(draft.manifest.base_paths)
        for new in self.new_bases:
            for base in bases:
                if new.path == base.path or (new.name is not None and new.name == base.name):
                    raise BasePathError(
                        f"base {new.name or new.path!r} is there already, with id {base.id} and "
                        f"path {base.path!r}"
                    )
            taken = {base.id for base in bases}
            base_id = new.id or max(taken, default=0) + 1
            if base_id in taken:
                raise BasePathError(f"there is a base with id {base_id} already")
            bases.append(replace(new, id=base_id))
        draft.manifest = replace(draft.manifest, base_paths=tuple(bases))
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return the bases."""
        return Footprint(new_bases=self.new_bases)
