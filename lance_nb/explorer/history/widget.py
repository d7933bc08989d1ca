"""Views of metadata that have no requests of their own: header, timeline, version, schema, value.

The ES modules are ``overview.js``, ``timeline.js``, ``version_detail.js``, ``schema_view.js`` and
``value.js``; their models are the parts named by the classes (see ``session.screen``). The trait
``screen`` of ``ValueView`` has one part, ``value`` (see ``models.value_facts``); that view sends no
request to the kernel, so that it works without one.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.drawing import svg_of
from lance_nb.explorer.history.picture import COLUMNS, DETAIL, HEADER, VERSIONS, draw_facts
from lance_nb.explorer.history.value_facts import ValueFacts
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.static_rendering import StaticRendering, render_facts
from lance_nb.explorer.widget import LanceWidget


class Overview(LanceWidget):
    """The header of a dataset: name, version shown, figures, and a box to go to another version."""

    entry: ClassVar[str] = "history/overview.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline")
    view: ClassVar[View] = HEADER


class Timeline(LanceWidget):
    """The versions of a dataset: one bar per version, tags as flags, a lane per branch."""

    entry: ClassVar[str] = "history/timeline.js"
    parts: ClassVar[tuple[str, ...]] = ("timeline",)
    view: ClassVar[View] = VERSIONS


class VersionDetail(LanceWidget):
    """One version of a dataset: operation, message, counts, schema, transaction."""

    entry: ClassVar[str] = "history/version_detail.js"
    parts: ClassVar[tuple[str, ...]] = ("detail",)
    view: ClassVar[View] = DETAIL


class SchemaTree(LanceWidget):
    """The columns of a version as a tree: names, types, nested fields.

    ``SchemaTree("photos.lance")`` or ``SchemaTree(ds)``, at the version that ``ds`` is at.
    """

    entry: ClassVar[str] = "history/schema_view.js"
    parts: ClassVar[tuple[str, ...]] = ("detail",)
    view: ClassVar[View] = COLUMNS


class ValueView(LanceWidget):
    """One value as a card that opens; made by the display of values."""

    entry: ClassVar[str] = "history/value.js"
    parts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, facts: ValueFacts, *, height: int | None = None) -> None:
        """Show the facts of a value."""
        self._facts = facts
        super().__init__(None, height=height)
        self.screen = {"error": None, "value": facts.to_json()}

    def picture(self) -> StaticRendering:
        """Return what a saved notebook keeps: the same as text and as static HTML."""
        return render_facts(self._facts)

    def to_svg(self) -> str:
        """Return the facts as one SVG."""
        return svg_of(self._facts.heading, [draw_facts(self._facts)])

    def _label(self) -> str:
        return self._facts.heading

    def __repr__(self) -> str:
        return self.picture().text
