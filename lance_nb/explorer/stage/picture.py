"""Draw what is staged, card by card, and the log of what was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    LINE,
    MARGIN,
    WIDTH,
    Panel,
    draw_table,
    width_of,
)
from lance_nb.explorer.picture_view import Shown, View
from lance_nb.explorer.session import Session
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.staging_area import staging_area_of

MAX_CARDS = 12
_SIGNS = {"+": "add", "−": "remove", "~": "change"}
_VERDICTS = {"compatible": "add", "rebasable": "add", "retryable": "change",
             "incompatible": "remove"}  # fmt: skip


def draw_stage(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the cards of the dataset's staging area."""
    dataset, panel = session.dataset, Panel("Stage")
    cards = staging_area_of(dataset).cards if isinstance(dataset, LanceDataset) else ()
    panel.heading(text.plural(len(cards), "card"))
    if not cards:
        panel.paragraph("Nothing is staged.")
    for card in cards[:MAX_CARDS]:
        _draw_card(panel, card_json(card))
    if len(cards) > MAX_CARDS:
        panel.paragraph(f"{text.ELLIPSIS} {text.count(len(cards) - MAX_CARDS)} more")
    return [panel]


def _draw_card(panel: Panel, card: Mapping[str, Any]) -> None:
    top = panel.height
    bar_at = MARGIN - 8
    panel.text(MARGIN, top + 14, card["title"], weight=600, width=WIDTH - 300)
    panel.text(WIDTH - MARGIN, top + 14, f"{card['state']} · on {card['on']}", colour="faint",
               anchor="end", width=270)  # fmt: skip
    panel.words.append(f"{card['title']}, {card['state']}, on {card['on']}")
    panel.height += LINE + 4
    if card["message"]:
        panel.paragraph(card["message"], lines=2)
    left = float(MARGIN)
    for fact in card["facts"]:
        words = f"{fact['label']} {fact['value']}"
        if left + width_of(words) > WIDTH - MARGIN:
            left, panel.height = float(MARGIN), panel.height + LINE
        panel.text(left, panel.height + 13, fact["label"], colour="faint")
        panel.text(left + width_of(fact["label"]) + 5, panel.height + 13, fact["value"])
        panel.words.append(words)
        left += width_of(words) + 22
    panel.height += LINE + 2 if card["facts"] else 0
    for line in card["lines"]:
        panel.paragraph(line, lines=2)
    review = card["review"]
    for consequence in review["consequences"] if review else ():
        panel.paragraph(consequence["text"], colour="remove", lines=2)
    for sample in card["samples"]:
        _draw_sample(panel, sample)
    for meeting in card["meetings"]:
        words = f"version {meeting['version']} {meeting['operation']}: {meeting['words']}"
        panel.text(MARGIN, panel.height + 13, words, width=WIDTH - 2 * MARGIN,
                   colour=_VERDICTS.get(meeting["verdict"], "soft"))  # fmt: skip
        panel.words.append(f"version {meeting['version']} {meeting['words']}")
        panel.height += LINE
    if card["problem"]:
        panel.paragraph(f"{card['problem']['title']}: {card['problem']['message']}",
                        colour="remove")  # fmt: skip
    if card["outcome"]:
        panel.paragraph(card["outcome"]["text"], colour="add", lines=1)
    panel.text(MARGIN, panel.height + 12, card["code"]["python"], size=11, colour="accent",
               width=WIDTH - 2 * MARGIN)  # fmt: skip
    panel.height += LINE
    panel.rect(bar_at, top + 2, 3, panel.height - top - 2, "accent", radius=1)
    panel.height += 10


def _draw_sample(panel: Panel, sample: Mapping[str, Any]) -> None:
    """Draw some rows before or after a change."""
    sign = sample["sign"]
    panel.text(MARGIN, panel.height + 12, f"{sign} {sample['label']}", size=11,
               colour=_SIGNS.get(sign, "soft"), weight=600)  # fmt: skip
    panel.height += LINE
    rows = [["null" if value is None else value for value in row] for row in sample["rows"]]
    note = f"{text.plural(sample['cut'], 'more column')}" if sample["cut"] else ""
    draw_table(panel, [column["name"] for column in sample["columns"]], rows, note=note)


VIEW = View("", draw_stage)
