"""Draw the lists of branches and tags."""

from __future__ import annotations

from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    LINE,
    Panel,
    draw_table,
)
from lance_nb.explorer.picture_view import Shown, View
from lance_nb.explorer.refs.ref_list import RefQuery, ref_book, ref_page
from lance_nb.explorer.session import Session

MAX_REFS = 24


def draw_refs(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the lists of branches and tags."""
    book = ref_book(session.dataset)
    panel = Panel("Branches and tags")
    branches, tags = (
        ref_page(book, RefQuery(kind=kind, count=MAX_REFS)) for kind in ("branch", "tag")
    )
    noun = "branch" if branches.matching == 1 else "branches"
    panel.heading(f"{text.count(branches.matching)} {noun}, {text.plural(tags.matching, 'tag')}")
    rows = [
        (str(line["label"]), line["fork"]["label"] if line["fork"] else "", str(line["note"]))
        for line in branches.lines
    ]
    draw_table(panel, ("branch", "started at", "note"), rows)
    if tags.lines:
        panel.height += LINE / 2
        rows = [
            (str(line["label"]), str(line["place"]["label"]), str(line["note"]))
            for line in tags.lines
        ]
        draw_table(panel, ("tag", "version", "note"), rows)
    return [panel]


VIEW = View("", draw_refs)
