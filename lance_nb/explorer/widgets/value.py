"""One value as a card that opens: a version, a transaction, a fragment, a schema, a staged write.

Its ES module is ``value.js``; the trait ``screen`` has one part, ``value`` (see
``models.value_facts``). It asks nothing of the kernel, so that it works without one.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.models.value_facts import ValueFacts
from lance_nb.explorer.pictures import Picture, picture_of_facts
from lance_nb.explorer.widget import LanceWidget


class ValueView(LanceWidget):
    """One value as a card that opens; made by the display of values."""

    entry: ClassVar[str] = "widgets/value.js"
    parts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, facts: ValueFacts, *, height: int | None = None) -> None:
        """Show what is told of a value."""
        self._facts = facts
        super().__init__(None, height=height)
        self.screen = {"error": None, "value": facts.to_json()}

    def picture(self) -> Picture:
        """Return what a saved notebook keeps: the same as text and as static HTML."""
        return picture_of_facts(self._facts)

    def __repr__(self) -> str:
        return self.picture().text
