"""DataOverlay: single cells replaced by files beside the data files.

Recognised and carried, but never applied: readers of pylance 14.0.2 and of this release refuse
datasets with overlays. It conflicts with everything.

Source: message ``Transaction.DataOverlay`` of lance.table; feature flag 6.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import NotSupportedError
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class DataOverlay(BaseOperation):
    """``data`` is the serialized message."""

    arm: ClassVar[str] = "data_overlay"

    data: bytes
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.Transaction.DataOverlay, path: str = "") -> DataOverlay:
        """Keep the message as bytes."""
        return cls(message.SerializeToString(deterministic=True))

    def to_pb(self) -> pb.Transaction.DataOverlay:
        """Return the message."""
        return pb.Transaction.DataOverlay.FromString(self.data)

    def apply(self, ctx: ApplyContext) -> Built:
        """Refuse. Raises NotSupportedError."""
        raise NotSupportedError("data overlays are not supported: no cell can be replaced this way")

    def footprint(self) -> Footprint:
        """Return nothing: it is never compared."""
        return Footprint()
