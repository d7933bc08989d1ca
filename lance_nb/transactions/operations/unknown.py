"""An operation that this release does not know: of a newer writer, or none at all.

It is recognised, shown in histories and conflicts with everything; it cannot be applied. Its bytes
are carried by the transaction around it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from lance_nb.errors import NotSupportedError
from lance_nb.transactions.operation import (
    UNKNOWN_ARM,
    ApplyContext,
    BaseOperation,
    Built,
    Footprint,
)
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Unknown(BaseOperation):
    """``numbers`` are the field numbers of the operation, empty if none is recorded."""

    arm: ClassVar[str] = UNKNOWN_ARM

    numbers: tuple[int, ...] = ()
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: Any, path: str = "") -> Unknown:
        """Return the operation of a message that has none."""
        return cls()

    def to_pb(self) -> Any:
        """Refuse: there is no message. Raises NotSupportedError."""
        raise NotSupportedError(self._text("write"))

    def apply(self, ctx: ApplyContext) -> Built:
        """Refuse. Raises NotSupportedError."""
        raise NotSupportedError(self._text("apply"))

    def footprint(self) -> Footprint:
        """Return nothing: what it touches is not known."""
        return Footprint()

    def describe(self) -> str:
        """Say in one line what it does."""
        if not self.numbers:
            return "no operation recorded"
        shown = ", ".join(map(str, self.numbers))
        return f"an operation this release does not know (field {shown})"

    def _text(self, verb: str) -> str:
        return f"cannot {verb} {self.describe()}. Use a newer lance_nb."
