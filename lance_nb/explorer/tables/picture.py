"""Draw the tables of a database as cards: name, figures, health, the newest versions as bars.

Limits: ``MAX_CARDS`` cards; what comes later is counted below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    MARGIN,
    WIDTH,
    Panel,
    width_of,
    wrapped,
)
from lance_nb.explorer.history.picture import look_of_operation
from lance_nb.explorer.tables.table_list import LOOKED_AT, MAX_BARS, TableCard

MAX_CARDS = 60
_COLUMNS = 3
_GAP = 10
_HEIGHT = 112
_BARS = 24
_ERROR_LINES = 5
_STATES = {"ok": ("✓", "add"), "advice": ("!", "change"), "error": ("✕", "remove")}


def draw_tables(
    name: str,
    num_tables: int,
    cards: Sequence[tuple[str, TableCard | None]],
    *,
    hidden_above: int = 0,
) -> Panel:
    """Draw the cards of tables; without a card there is only the label."""
    panel = Panel(f"Tables of {name}")
    panel.heading(text.plural(num_tables, "table"))
    if not cards:
        panel.paragraph("No table here." if not num_tables else "No table matches the filter.")
    wide = (WIDTH - 2 * MARGIN - (_COLUMNS - 1) * _GAP) / _COLUMNS
    top = panel.height
    for number, (label, card) in enumerate(cards[:MAX_CARDS]):
        row, column = divmod(number, _COLUMNS)
        x, y = MARGIN + column * (wide + _GAP), top + row * (_HEIGHT + _GAP)
        panel.rect(x, y, wide, _HEIGHT, "paper", stroke="line", radius=6)
        panel.text(x + _GAP, y + 19, label, size=13, weight=600, width=wide - 2 * _GAP - 20)
        if card is None:
            panel.text(x + _GAP, y + 38, "not described", colour="faint")
            panel.words.append(label)
        else:
            _draw_card(panel, x, y, wide=wide, card=card)
        panel.height = y + _HEIGHT + _GAP
    left = len(cards) - MAX_CARDS
    if hidden_above or left > 0:
        hidden = [f"{text.count(hidden_above)} before"] if hidden_above else []
        hidden += [f"{text.count(left)} after"] if left > 0 else []
        panel.paragraph(f"{text.ELLIPSIS} {', '.join(hidden)}", colour="faint", lines=1)
    if cards:
        panel.paragraph(LOOKED_AT, colour="faint", lines=2)
    return panel


def _draw_card(panel: Panel, x: float, y: float, wide: float, card: TableCard) -> None:
    room = wide - 2 * _GAP
    sign, colour = _STATES[card.state]
    panel.text(x + wide - _GAP, y + 19, sign, weight=600, colour=colour, anchor="end")
    health = card.health if card.state != "ok" else "manifest ok"
    if card.error is None:
        _draw_figures(panel, x, y, room=room, card=card)
        _draw_bars(panel, x + _GAP, y + _HEIGHT - 28, room=room, card=card)
        panel.text(x + _GAP, y + _HEIGHT - 9, health, size=11, colour=colour, width=room - 8)
    else:
        for line_number, line in enumerate(wrapped(health, room - 8, _ERROR_LINES)):
            panel.text(x + _GAP, y + 38 + 16 * line_number, line, size=11, colour=colour)
    figures = ", ".join(words for line in figure_lines(card) for words in line)
    panel.words.append(", ".join(filter(None, (card.label, figures, health))))


def figure_lines(card: TableCard) -> list[list[str]]:
    """Return the figures of a card in two lines; what is not known is left out."""
    summary = card.summary
    if card.error is not None:
        return []
    first = [
        text.plural(summary.num_rows or 0, "row"),
        text.plural(summary.num_columns or 0, "column"),
    ]
    if summary.num_bytes is not None:
        first.append(text.size(summary.num_bytes))
    second = [text.plural(summary.num_versions or 0, "version")]
    if summary.committed is not None:
        second.append(text.moment(summary.committed))
    return [first, second]


def _draw_figures(panel: Panel, x: float, y: float, room: float, card: TableCard) -> None:
    for line, figures in enumerate(figure_lines(card)):
        left = x + _GAP
        for words in figures:
            if left + width_of(words) > x + _GAP + room:
                break
            panel.text(left, y + 38 + 17 * line, words, colour="faint" if line else "soft")
            left += width_of(words) + 14


def _draw_bars(panel: Panel, x: float, base: float, room: float, card: TableCard) -> None:
    """Draw the newest versions: height is rows changed, colour the operation."""
    most = max((changed or 0 for _, _, changed in card.bars), default=0)
    slot = min(12.0, room / MAX_BARS)
    for bar_index, (version, operation, changed) in enumerate(card.bars):
        high = 4 + (_BARS - 4) * sqrt((changed or 0) / most) if most else 4.0
        colour = look_of_operation(operation)[0] if operation else "unknown"
        tip = f"version {version} {operation}".rstrip()
        panel.rect(x + bar_index * slot, base - high, slot - 2, high, colour, radius=1, tip=tip)
