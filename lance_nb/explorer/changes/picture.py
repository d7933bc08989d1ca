"""Draw what changed between two versions: counts of each level, one level in detail, drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lance_nb.explorer import text
from lance_nb.explorer.changes.change_page import ChangePage
from lance_nb.explorer.changes.change_summary import ChangeCounts, Chip
from lance_nb.explorer.drawing import LINE, MARGIN, WIDTH, Panel, width_of
from lance_nb.explorer.table_drawing import draw_changed_rows

_CHIP_ROOM = 20
_DRIFT_COLUMNS = 3
_DRIFT_HEIGHT = 104
_BARS = 44
# The usual reading of the population stability index.
_STABLE, _SHIFTED = 0.1, 0.25


def draw_changes(counts: ChangeCounts) -> Panel:
    """Draw the two versions, how their rows are told apart, and the counts of each level."""
    shown = counts.to_json()
    panel = Panel("Changes")
    panel.heading(f"{shown['a']} → {shown['b']}")
    before, after = shown["rows"]
    identity = shown["identity"]
    panel.paragraph(
        f"{text.count(before)} → {text.plural(after, 'row')} · rows are told apart by "
        f"{identity['label']}" + (f" ({identity['reason']})" if identity["reason"] else ""),
        colour="faint", lines=2,
    )  # fmt: skip
    if shown["same"] or shown["empty"]:
        panel.paragraph("Nothing differs.")
        return panel
    x, y = float(MARGIN), panel.height + 6
    for chip in counts.chips:
        numbers = _numbers(chip)
        if not numbers:
            continue
        name = width_of(chip.label, bold=True) + 8
        wide = name + sum(width_of(words) + 8 for words, _ in numbers) + _CHIP_ROOM
        if x + wide > WIDTH - MARGIN:
            x, y = float(MARGIN), y + 32
        panel.rect(x, y, wide, 26, "panel", stroke="line", radius=13)
        panel.text(x + 11, y + 17, chip.label, weight=600)
        left = x + 11 + name
        for words, colour in numbers:
            panel.text(left, y + 17, words, colour=colour)
            left += width_of(words) + 8
        panel.words.append(f"{chip.label}: {' '.join(words for words, _ in numbers)}")
        x += wide + 8
    panel.height = y + 34
    return panel


def _numbers(chip: Chip) -> list[tuple[str, str]]:
    """Return what a level counts, with the colour of each number; none where nothing differs."""
    about = "≤ " if chip.bound else ""
    parts = (("+", chip.added, "add"), ("−", chip.removed, "remove"), ("~", chip.changed, "change"))
    numbers = [
        (f"{sign}{about}{text.count(value)}", colour) for sign, value, colour in parts if value
    ]
    return [*numbers, *([(chip.note, "faint")] if chip.note else [])]


def draw_level(title: str, page: ChangePage, num_rows: int | None) -> Panel:
    """Draw a window of one level: rows of the dataset, or of another table of changes."""
    panel = Panel(title)
    shown = page.page.num_rows
    panel.heading("" if num_rows is None else text.plural(num_rows, "change"))
    if not shown:
        panel.paragraph("Nothing differs here.")
        return panel
    left = (num_rows or shown) - min(shown, 12)
    draw_changed_rows(panel, page, f"{text.count(left)} more" if left > 0 else "")
    return panel


def draw_drift(columns: Sequence[Mapping[str, Any]], labels: tuple[str, str]) -> Panel:
    """Draw the distribution of each column on both sides, and how far they are apart."""
    panel = Panel("Drift")
    panel.heading(f"{labels[0]} (grey) against {labels[1]} (blue)")
    room = (WIDTH - 2 * MARGIN) / _DRIFT_COLUMNS
    top = panel.height
    for index, column in enumerate(columns[:12]):
        x = MARGIN + room * (index % _DRIFT_COLUMNS)
        y = top + _DRIFT_HEIGHT * (index // _DRIFT_COLUMNS)
        psi = column["psi"]
        words = "no index" if psi is None else f"PSI {psi:.3f}"
        colour = "faint" if psi is None or psi < _STABLE else "change"
        colour = "remove" if psi is not None and psi >= _SHIFTED else colour
        panel.text(x, y + 13, column["name"], weight=600, width=room - 110)
        panel.text(x + room - 16, y + 13, words, colour=colour, anchor="end")
        for side in ("before", "after"):
            bars = column[side]["bars"]
            _draw_bars(panel, bars, (x, y + 20), room - 20, is_after=side == "after")
        facts = ", ".join(
            f"{label} {value}" if value == other else f"{label} {value} → {other}"
            for (label, value), (_, other) in zip(
                column["before"]["facts"], column["after"]["facts"], strict=False
            )
        )
        panel.text(x, y + 20 + _BARS + 15, facts, size=10, colour="faint", width=room - 20)
        panel.words.append(f"{column['name']}: {words}, {facts}")
    panel.height = top + _DRIFT_HEIGHT * -(-len(columns[:12]) // _DRIFT_COLUMNS)
    if not columns:
        panel.paragraph("The versions have no column in common.")
        panel.height += LINE
    return panel


def _draw_bars(
    panel: Panel,
    bars: Sequence[int],
    corner: tuple[float, float],
    width: float,
    *,
    is_after: bool,
) -> None:
    """Draw the bars of one side, each beside that of the other side."""
    if not bars:
        return
    x, y = corner
    step = min(24.0, width / len(bars))
    wide = max(1.0, (step - 2) / 2)
    x += wide if is_after else 0
    panel.area(
        (
            (x + number * step, y + _BARS - _BARS * bar / 1000, wide, _BARS * bar / 1000)
            for number, bar in enumerate(bars)
            if bar
        ),
        "accent" if is_after else "unknown",
    )
