"""Draw the log of what was done."""

from __future__ import annotations

from lance_nb.dataset import LanceDataset
from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    Panel,
    draw_table,
)
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.picture_view import Shown, View
from lance_nb.explorer.session import Session

MAX_ENTRIES = 20


def draw_log(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the log of what was done from this explorer."""
    dataset, panel = session.dataset, Panel("Log")
    entries = (
        operations_log_of(dataset.uri).to_json(dataset)["entries"]
        if isinstance(dataset, LanceDataset)
        else []
    )
    panel.heading(f"{text.count(len(entries))} done from here" if entries else "")
    rows = [
        (str(entry["what"]), str(entry["label"]), str(entry["who"]), str(entry["state"]))
        for entry in entries[:MAX_ENTRIES]
    ]
    if rows:
        draw_table(panel, ("what was done", "version", "by", "state"), rows)
    else:
        panel.paragraph("Nothing was done from here.")
    return [panel]


VIEW = View("", draw_log)
