"""Draw the expectations of a version."""

from __future__ import annotations

from lance_nb.dataset import LanceDataset
from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    Panel,
    draw_table,
)
from lance_nb.explorer.picture_view import Shown, View
from lance_nb.explorer.session import Session


def draw_checks(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the expectations of the version shown."""
    dataset, panel = session.dataset, Panel("Checks")
    expectations = dataset.expectations if isinstance(dataset, LanceDataset) else None
    rows = (
        [(name, expectation.statement) for name, expectation in expectations.list().items()]
        if expectations
        else []
    )
    gate = "the gate is closed" if expectations and expectations.gate else "the gate is open"
    panel.heading(f"{text.plural(len(rows), 'expectation')} · {gate}")
    draw_table(panel, ("name", "expectation"), rows)
    return [panel]


VIEW = View("", draw_checks)
