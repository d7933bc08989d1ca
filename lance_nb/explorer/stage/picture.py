"""Draw what is staged, card by card, and the log of what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lance_nb.explorer import text
from lance_nb.explorer.drawing import LINE, MARGIN, WIDTH, Panel, width_of
from lance_nb.explorer.table_drawing import draw_table

MAX_CARDS = 12
MAX_ENTRIES = 20
_SIGNS = {"+": "add", "−": "remove", "~": "change"}
_VERDICTS = {"compatible": "add", "rebasable": "add", "retryable": "change",
             "incompatible": "remove"}  # fmt: skip


def draw_stage(cards: Sequence[Mapping[str, Any]]) -> Panel:
    """Draw cards as ``card_json`` describes them."""
    panel = Panel("Stage")
    panel.heading(text.plural(len(cards), "card"))
    if not cards:
        panel.paragraph("Nothing is staged.")
    for card in cards[:MAX_CARDS]:
        _draw_card(panel, card)
    if len(cards) > MAX_CARDS:
        panel.paragraph(f"{text.ELLIPSIS} {text.count(len(cards) - MAX_CARDS)} more")
    return panel


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


def draw_log(entries: Sequence[Mapping[str, Any]]) -> Panel:
    """Draw the log of what was done from this explorer."""
    panel = Panel("Log")
    panel.heading(f"{text.count(len(entries))} done from here" if entries else "")
    rows = [
        (str(entry["what"]), str(entry["label"]), str(entry["who"]), str(entry["state"]))
        for entry in entries[:MAX_ENTRIES]
    ]
    if rows:
        draw_table(panel, ("what was done", "version", "by", "state"), rows)
    else:
        panel.paragraph("Nothing was done from here.")
    return panel
