"""A view as a picture: what it shows of a session, as far as the browser has said it.

Each feature has its functions in ``picture.py``. ``shown`` is what the view says of itself (see
``on_screen`` in ``js/view.js``), empty before it has said anything; it comes from the browser, so
it is checked.

===================== ======================================================================
``shown`` of          holds
===================== ======================================================================
rows                  filter, system, arranged, as in a request for rows; row: the one on top
changes               a, b, key, level
storage               fragment: the one that is open
pictures              filter, arranged and so on, as in a request for rows; column, caption, row
map                   box: the left, bottom, right and top of the part in sight
deletions             fragment
===================== ======================================================================

What the browser got is not read again. More is read only from a dataset on this machine, within the
limits of each view: of another one the picture has what was sent. A report, which nobody has looked
at, has a map by the first column of vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lance_nb.errors import LanceError
from lance_nb.explorer.drawing import MARGIN, Panel
from lance_nb.explorer.error_card import ErrorCard, error_card
from lance_nb.explorer.session import Session
from lance_nb.explorer.source import is_on_this_machine
from lance_nb.value_classes import dataclass

Shown = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """A view by the name under which the browser says what it shows, and how it is drawn."""

    name: str
    draw: Callable[[Session, Shown], list[Panel]]

    def panels(self, session: Session, on_screen: Shown) -> list[Panel]:
        """Draw the view; if that is not possible, why."""
        shown = on_screen.get(self.name) if self.name else on_screen
        try:
            return self.draw(session, shown if isinstance(shown, Mapping) else {})
        except LanceError as error:
            return [draw_error(error_card(error))]


def is_near(session: Session) -> bool:
    """Whether a picture may read a little more: the dataset lies here, or that was asked for."""
    return session.reads_for_pictures or is_on_this_machine(session.dataset.uri)


def draw_error(card: ErrorCard, title: str = "") -> Panel:
    """Draw why something cannot be shown, and what to do."""
    panel = Panel(title or card.title)
    panel.heading()
    panel.rect(MARGIN - 8, 4, 3, 20, "remove")
    if title:
        panel.paragraph(card.title)
    panel.paragraph(card.message)
    if card.where:
        panel.paragraph(f"Where: {card.where}")
    if card.hint:
        panel.paragraph(f"What to do: {card.hint}")
    return panel
