"""Draw what changed between two versions: counts of each level, one level in detail, drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.changes.change_page import (
    ChangePage,
    change_level,
    change_page,
    changed_images,
    changed_rows,
)
from lance_nb.explorer.changes.change_summary import (
    ChangeCounts,
    Chip,
    DiffCache,
    Place,
    change_counts,
    change_drift,
    key_of,
)
from lance_nb.explorer.drawing import (
    LINE,
    MARGIN,
    PAD,
    WIDTH,
    Panel,
    column_lefts,
    column_widths,
    draw_cell,
    width_of,
)
from lance_nb.explorer.media import Thumbnail
from lance_nb.explorer.messages import words as checked_words
from lance_nb.explorer.picture_view import Shown, View, is_near
from lance_nb.explorer.rows.picture import (
    MAX_COLUMNS,
    MAX_IMAGE_COLUMNS,
    MAX_ROWS,
    cell_text,
    is_number,
)
from lance_nb.explorer.rows.row_page import Window, page_texts
from lance_nb.explorer.session import Session, place_of
from lance_nb.table.diff import Diff
from lance_nb.table.diff.row_level import KINDS

_CHIP_ROOM = 20
_DRIFT_COLUMNS = 3
_DRIFT_HEIGHT = 104
_BARS = 44
_THUMBNAIL = 44
# By row, column, and whether it was there before.
Images = Mapping[tuple[int, int, bool], Thumbnail]
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


def draw_level(
    title: str, page: ChangePage, num_rows: int | None, images: Images | None = None
) -> Panel:
    """Draw a window of one level: rows of the dataset, or of another table of changes."""
    panel = Panel(title)
    shown = page.page.num_rows
    panel.heading("" if num_rows is None else text.plural(num_rows, "change"))
    if not shown:
        panel.paragraph("Nothing differs here.")
        return panel
    left = (num_rows or shown) - min(shown, 12)
    draw_changed_rows(panel, page, f"{text.count(left)} more" if left > 0 else "", images)
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


# What a change is called in words, and the colours of its sign and of its row.
_CHANGES = {"+": ("added", "add", "new"), "-": ("removed", "remove", "old"),
            "~": ("changed", "change", "paper")}  # fmt: skip


MAX_COMPARED = 200_000


_LEVELS = ("rows", "drift", "schema", "transactions", "fragments", "deletions", "indices", "config")


def draw_changed_rows(
    panel: Panel, page: ChangePage, total: str, images: Images | None = None
) -> None:
    """Draw rows that differ: a sign and a colour for each, the old value above the new one.

    ``images`` by row, column and whether it was there before: both stand side by side.
    """
    images = images or {}
    columns = page.page.columns[:MAX_COLUMNS]
    new = page_texts(page.page)[: len(columns)]
    old = dict(zip(page.window.old, page_texts(page.old), strict=True))
    shown = range(min(page.page.num_rows, MAX_ROWS))
    before = {
        (row, column_index): cell_text(old[column_index][row])
        for column_index, mask in page.window.masks.items()
        for row in shown
        if column_index < len(columns) and mask[row : row + 1] == "1"
    }
    drawn = {(row, column_index) for row, column_index, _ in images}
    least = [0.0] + [
        _THUMBNAIL * (2 if column_index in old else 1) + 12
        if any(place[1] == column_index for place in drawn)
        else 0.0
        for column_index in range(len(columns))
    ]
    cells = [
        [cell_text(new[column_index][row]) for row in shown] for column_index in range(len(columns))
    ]
    column_texts = [
        ["changed"],
        *(
            [
                column.name,
                *(
                    value
                    for row, value in enumerate(cells[column_index])
                    if (row, column_index) not in drawn
                ),
                *(
                    value
                    for place, value in before.items()
                    if place[1] == column_index and place not in drawn
                ),
            ]
            for column_index, column in enumerate(columns)
        ),
    ]
    widths = column_widths(column_texts, WIDTH - 2 * MARGIN, least)
    lefts = column_lefts(widths, MARGIN)
    top = panel.height
    for column_index, column in enumerate(columns):
        draw_cell(
            panel,
            lefts[column_index + 1],
            widths[column_index + 1],
            top + 13,
            column.name,
            weight=600,
            right=is_number(column),
        )
    panel.line(MARGIN, top + LINE, MARGIN + sum(widths), top + LINE)
    y = top + LINE
    for row in shown:
        words, colour, wash = _CHANGES.get(page.window.kinds[row], ("", "soft", "paper"))
        tall = 2 * LINE if any(place[0] == row for place in before) else LINE
        if any(place[0] == row for place in drawn):
            tall = _THUMBNAIL + 6
        if wash != "paper":
            panel.rect(MARGIN, y + 1, sum(widths), tall - 1, wash)
        sign = page.window.kinds[row].replace("-", "−")
        panel.text(lefts[0] + 2, y + 13, sign, weight=600, colour=colour)
        panel.text(lefts[0] + 14, y + 13, words, size=10, colour=colour, width=widths[0] - 14)
        differences = []
        for column_index, column in enumerate(columns):
            x, wide, right = lefts[column_index + 1], widths[column_index + 1], is_number(column)
            was = before.get((row, column_index))
            sides = [images.get((row, column_index, is_old)) for is_old in (True, False)]
            sides = sides if was is not None else sides[1:]
            drawn_sides = [
                panel.image(
                    x + 2 + index * (_THUMBNAIL + 6), y + 3, _THUMBNAIL, media=side.media,
                    data=side.data,
                )
                for index, side in enumerate(sides)
                if side is not None
            ]  # fmt: skip
            if was is not None and any(drawn_sides):
                differences.append(f"{column.name} {was} → {cells[column_index][row]}")
            if any(drawn_sides):
                continue
            if was is not None:
                panel.rect(x - 2, y + 1, wide - PAD, LINE - 2, "old", radius=2)
                panel.rect(x - 2, y + LINE, wide - PAD, LINE - 2, "new", radius=2)
                draw_cell(panel, x, wide, y + 13, was, right=right, colour="remove")
                differences.append(f"{column.name} {was} → {cells[column_index][row]}")
            base = y + 13 + (LINE if was is not None else 0)
            draw_cell(panel, x, wide, base, cells[column_index][row], right=right)
        panel.words.append(
            f"{words}: {', '.join(differences) or ', '.join(c[row] for c in cells[:4])}"
        )
        y += tall
        panel.line(MARGIN, y, MARGIN + sum(widths), y, colour="panel")
    panel.height = y + 4
    if total:
        panel.text(MARGIN, panel.height + 12, f"{text.ELLIPSIS} {total}", colour="faint")
        panel.height += LINE


def draw_changes_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the counts of a comparison and the level that is open."""
    b = _end(shown, "b") or (session.dataset.branch, session.dataset.version)
    a = _end(shown, "a") or _before(session, b)
    if a is None:
        panel = Panel("Changes")
        panel.heading()
        panel.paragraph("This is the first version: there is nothing before it to compare with.")
        return [panel]
    diff = session.keep(DiffCache).diff(a, b, key_of(shown))
    counts = change_counts(diff, session.dataset.uri)
    panels = [draw_changes(counts)]
    if diff.a == diff.b or diff.counts.is_empty:
        return panels
    level = checked_words({"level": shown.get("level") or _first_level(counts.chips)}, "level", 40)
    if level not in _LEVELS:
        raise InvalidInputError(f"level must be one of {', '.join(_LEVELS)}")
    is_large = diff.counts.rows_before + diff.counts.rows_after > MAX_COMPARED
    is_known = level == "rows" and diff.found().is_finished
    if level in ("rows", "drift") and not is_known and (is_large or not is_near(session)):
        level = "transactions"
    if level == "rows":
        rows = changed_rows(diff, Window(limit=MAX_ROWS))
        known_counts = rows.rows_found
        total = sum(known_counts[kind] for kind in ("changed", "added", "removed")) if known_counts[
            "is_finished"] else None  # fmt: skip
        images = _images(diff, rows.page)
        return [*panels, draw_level("Rows that differ", rows.page, total, images)]
    if level == "drift":
        drift = change_drift(diff, 0, 12)
        labels = counts.to_json()
        return [*panels, draw_drift(drift["columns"], (labels["a"], labels["b"]))]
    level_page = change_level(diff, level, 0, MAX_ROWS)
    titles = {chip.id: chip.label for chip in counts.chips}
    page = change_page(level_page.window, 0)
    return [*panels, draw_level(titles[level], page, level_page.num_rows)]


def _images(diff: Diff, page: ChangePage) -> dict[tuple[int, int, bool], Thumbnail]:
    """Read the small images of the rows that are drawn, of the first columns that have any."""
    images: dict[tuple[int, int, bool], Thumbnail] = {}
    old = dict(zip(page.window.old, page.old.columns, strict=True))
    drawn_columns = list(enumerate(page.page.columns[:MAX_COLUMNS]))
    pictured = [
        (index, [is_old for is_old, side in ((False, column), (True, old.get(index)))
                 if side is not None and "pictures" in side.extra])
        for index, column in drawn_columns
    ]  # fmt: skip
    for index, sides in [place for place in pictured if place[1]][:MAX_IMAGE_COLUMNS]:
        for is_old in sides:
            for image in changed_images(diff, KINDS, index, range(MAX_ROWS), old=is_old):
                images[image.row, index, is_old] = image
    return images


def _first_level(chips: Sequence[Any]) -> str:
    """Return the first level in which something differs, as the tab opens it."""
    for chip in chips:
        if chip.id != "transactions" and (chip.added or chip.removed or chip.changed or chip.note):
            return str(chip.id)
    return "transactions"


def _end(shown: Shown, name: str) -> Place | None:
    place = shown.get(name)
    return place_of(place) if isinstance(place, Mapping) else None


def _before(session: Session, place: Place) -> Place | None:
    """Return the version before one on its branch, or where the branch started."""
    source = session.open(place)
    earlier = [number for number in source.version_numbers() if number < place[1]]
    if earlier:
        return place[0], earlier[-1]
    if place[0] is None:
        return None
    record = source.branches.list().get(place[0])
    return None if record is None else (record.get("parent_branch"), int(record["parent_version"]))


VIEW = View("changes", draw_changes_view)
