"""Draw tables: rows of a dataset with thumbnails and profiles, changed rows, lists of facts.

A column is as wide as its texts, up to ``MAX_COLUMN`` pixels; if all do not fit, the wide ones give
way. Limits: ``MAX_ROWS`` rows (``MAX_IMAGE_ROWS`` with
thumbnails) and ``MAX_COLUMNS`` columns of a dataset, ``MAX_LINES`` lines of another table; what is
left out is counted below the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_nb.explorer import text
from lance_nb.explorer.changes.change_page import ChangePage
from lance_nb.explorer.drawing import LINE, MARGIN, WIDTH, Panel, width_of
from lance_nb.explorer.history.value_facts import ValueFacts
from lance_nb.explorer.media import Media
from lance_nb.explorer.rows.column_profile import ColumnProfile
from lance_nb.explorer.rows.row_page import PageColumn, RowPage, page_texts

MAX_ROWS = 12
MAX_IMAGE_ROWS = 8
MAX_COLUMNS = 9
MAX_LINES = 40
MAX_COLUMN = 280
_LEAST_COLUMN = 46
_PAD = 8
_THUMBNAIL = 44
_PROFILE = 22
_ODD_BAR = 5.0  # of nulls, NaN and the like, on the right
_SPARK = 64
NULL = "null"
# What a change is called in words, and the colours of its sign and of its row.
_CHANGES = {"+": ("added", "add", "new"), "-": ("removed", "remove", "old"),
            "~": ("changed", "change", "paper")}  # fmt: skip


# Images of cells by row of the dataset and place of the column.
Images = Mapping[tuple[int, int], tuple[Media, bytes]]


def draw_table(
    panel: Panel,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: frozenset[int] = frozenset(),
    note: str = "",
    left: float = MARGIN,
    width: float = WIDTH - 2 * MARGIN,
) -> None:
    """Draw a table of texts below what the panel has; columns in ``numeric`` stand to the right."""
    shown = rows[:MAX_LINES]
    if not shown:
        return
    widths = _widths(
        [[title, *(row[column_index] for row in shown)] for column_index, title in enumerate(head)],
        width,
    )
    lefts = _lefts(widths, left)
    top = panel.height
    for column_index, title in enumerate(head):
        _cell(
            panel,
            lefts[column_index],
            widths[column_index],
            top + 13,
            title,
            right=column_index in numeric,
            colour="faint",
        )
    panel.line(left, top + LINE, left + sum(widths), top + LINE)
    for number, row in enumerate(shown, 1):
        base = top + number * LINE + 14
        for column_index, value in enumerate(row):
            _cell(
                panel,
                lefts[column_index],
                widths[column_index],
                base,
                value,
                right=column_index in numeric,
            )
    panel.height = top + (len(shown) + 1) * LINE + 6
    hidden = len(rows) - len(shown)
    note_text = note or (f"{text.count(hidden)} more" if hidden > 0 else "")
    if note_text:
        panel.text(left, panel.height + 8, f"{text.ELLIPSIS} {note_text}", colour="faint")
        panel.height += LINE
    panel.words += [" ".join(filter(None, row)) for row in shown[:12]]


def draw_terms(panel: Panel, terms: Sequence[tuple[str, str]], *, columns: int = 4) -> None:
    """Draw labels with their values, several beside each other."""
    room = (WIDTH - 2 * MARGIN) / columns
    for line_number, (label, value) in enumerate(terms[:MAX_LINES]):
        x = MARGIN + room * (line_number % columns)
        base = panel.height + 13 + LINE * (line_number // columns)
        panel.text(x, base, label, colour="faint", width=room * 0.55)
        used = min(width_of(label), room * 0.55) + 8
        panel.text(x + used, base, value, width=room - used - 8)
        panel.words.append(f"{label} {value}")
    panel.height += LINE * -(-len(terms[:MAX_LINES]) // columns) + 4


def draw_facts(facts: ValueFacts) -> Panel:
    """Draw a single value: its heading, lines of prose, and labels with their values."""
    panel = Panel(facts.heading)
    panel.heading()
    for line in facts.lines:
        panel.paragraph(line, lines=2)
    hidden = max(0, len(facts.rows) - MAX_LINES)
    note = f"{text.count(hidden)} more" if hidden else ""
    draw_table(panel, ("", ""), facts.rows, note=note)
    return panel


def draw_rows(
    page: RowPage,
    *,
    num_rows: int,
    num_columns: int,
    first: int = 0,
    filter: str = "",
    search: str = "",
    profiles: Mapping[int, ColumnProfile] | None = None,
    images: Images | None = None,
) -> Panel:
    """Draw rows from ``first`` on, as the grid shows them, with the profiles of their columns.

    ``search``: the words that have found them, which the page has marked.
    """
    profiles, images = profiles or {}, images or {}
    panel = Panel("Rows")
    start = min(max(0, first - page.offset), max(0, page.num_rows - 1))
    shown = range(start, min(page.num_rows, start + (MAX_IMAGE_ROWS if images else MAX_ROWS)))
    places = drawn_columns(page)
    columns = [page.columns[index] for index in places]
    panel.heading(_span(page.offset, shown, num_rows, filter))
    if search:
        panel.paragraph(f"search: {search}", colour="accent", lines=2)
    if filter:
        panel.paragraph(f"filter: {filter}", colour="accent", lines=2)
    if not shown:
        why = "has these words" if search else "passes the filter"
        panel.paragraph(f"No row {why}." if search or filter else "This version has no rows.")
        return panel
    every = page_texts(page)
    texts = [every[index] for index in places]
    cells = [
        [_shown(texts[column_index][row]) for row in shown] for column_index in range(len(columns))
    ]
    numbers = [text.count(page.offset + row) for row in shown]
    tall = _THUMBNAIL + 6 if images else LINE
    with_images = [
        page.first_column + index in {image_column for _, image_column in images}
        for index in places
    ]
    column_texts, least = [numbers], [0.0]
    for column, values, has_images in zip(columns, cells, with_images, strict=True):
        is_drawn = has_images or column.encoding == "vector"
        column_texts.append([f"{column.name}  ", *(() if is_drawn else values)])
        low = _SPARK if column.encoding == "vector" else _LEAST_COLUMN if profiles else 0
        least.append(_THUMBNAIL + 4 if has_images else low)
    widths = _widths(column_texts, WIDTH - 2 * MARGIN, least)
    lefts = _lefts(widths, MARGIN)
    top = panel.height
    for column_index, column in enumerate(columns):
        x, wide = lefts[column_index + 1], widths[column_index + 1]
        right = _is_number(column)
        _cell(panel, x, wide, top + 12, column.name, right=right, weight=600)
        _cell(panel, x, wide, top + 27, column.type, right=right, colour="faint")
        profile = profiles.get(page.first_column + places[column_index])
        if profile is not None:
            _draw_profile(panel, x + 2, top + 31, wide - 2 * _PAD + 4, profile)
            panel.words.append(_said(column.name, profile))
    head = 32 + (_PROFILE + 16 if profiles else 0)
    panel.line(MARGIN, top + head, MARGIN + sum(widths), top + head)
    for number, row in enumerate(shown):
        y = top + head + number * tall
        base = y + tall / 2 + 4.5
        _cell(panel, lefts[0], widths[0], base, numbers[number], right=True, colour="faint")
        for column_index, column in enumerate(columns):
            image = images.get((page.offset + row, page.first_column + places[column_index]))
            x = lefts[column_index + 1]
            if image and panel.image(x + 2, y + 3, _THUMBNAIL, *image):
                continue
            if column.encoding == "vector" and cells[column_index][number] != NULL:
                _draw_vector(panel, _outline(page, column, row), x + 2, y + tall / 2 - 7)
                continue
            is_null = texts[column_index][row] is None
            _cell(panel, x, widths[column_index + 1], base, cells[column_index][number],
                  right=_is_number(column), colour="faint" if is_null else "ink",
                  marks=_marks(column, row, texts[column_index][row]))  # fmt: skip
        panel.line(MARGIN, y + tall, MARGIN + sum(widths), y + tall, colour="panel")
    panel.height = top + head + len(shown) * tall + 4
    _draw_more(panel, num_rows - len(shown), num_columns - len(columns))
    names = ", ".join(column.name for column in columns)
    panel.words.append(f"columns {names}")
    panel.words += [
        ", ".join(column[number] for column in cells) for number in range(min(4, len(shown)))
    ]
    return panel


def drawn_columns(page: RowPage) -> list[int]:
    """Return which columns of a page are drawn: the first ones, and those with images or vectors.

    What is seen at once says most, so one column of each kind is drawn wherever it stands.
    """
    kinds: dict[str, int] = {}
    for index, column in enumerate(page.columns):
        kind = "image" if "pictures" in column.extra else column.encoding
        if kind in ("image", "vector"):
            kinds.setdefault(kind, index)
    late_columns = [index for index in kinds.values() if index >= MAX_COLUMNS]
    first = range(min(len(page.columns), MAX_COLUMNS - len(late_columns)))
    return sorted({*first, *late_columns})


def _marks(column: PageColumn, row: int, value: str | None) -> list[tuple[int, int]]:
    """Return where words that were searched for stand in a cell, in characters."""
    ends = column.extra.get("marks", {}).get(str(row), ())
    units = (value or "").encode("utf-16-le") if ends else b""
    places = [len(units[: 2 * end].decode("utf-16-le", "ignore")) for end in ends]
    return list(zip(places[::2], places[1::2], strict=True))


def _span(offset: int, shown: range, num_rows: int, filter: str) -> str:
    if not shown:
        return ""
    ends = f"{text.count(offset + shown.start)} – {text.count(offset + shown.stop - 1)}"
    return f"rows {ends} of {text.count(num_rows)}{' that pass' if filter else ''}"


def _shown(value: str | None) -> str:
    return NULL if value is None else text.cut(value, 120)


def _is_number(column: PageColumn) -> bool:
    return not column.extra or column.extra.get("look") == "number"


def _draw_more(panel: Panel, rows: int, columns: int) -> None:
    left = [text.plural(count, f"more {noun}") for count, noun in ((rows, "row"),
            (columns, "column")) if count > 0]  # fmt: skip
    if left:
        panel.text(MARGIN, panel.height + 12, f"{text.ELLIPSIS} {' and '.join(left)}",
                   colour="faint")  # fmt: skip
        panel.height += LINE


def _outline(page: RowPage, column: PageColumn, row: int) -> bytes:
    """Return the outline of a vector, 0 to 255."""
    points = int(column.extra["points"])
    return page.buffers[column.buffers[1]][row * points : (row + 1) * points]


def _draw_vector(panel: Panel, shades: bytes, x: float, y: float) -> None:
    """Draw the outline of a vector."""
    step = (_SPARK - 4) / max(1, len(shades) - 1)
    places = [
        (x + position * step, y + 14 - 14 * shade / 255) for position, shade in enumerate(shades)
    ]
    panel.curve(places, "accent", 1)


def _draw_profile(panel: Panel, x: float, y: float, width: float, profile: ColumnProfile) -> None:
    """Draw a histogram or the most frequent values, and bars for nulls and other odd values."""
    odd_width = _ODD_BAR * (len(profile.odd) + 1) if profile.odd else 0.0
    for kind, colour in (("null", "remove"), ("", "faint")):
        odd = [
            (
                x + width + _ODD_BAR * (position - len(profile.odd)),
                y + _PROFILE - high,
                _ODD_BAR - 1,
                high,
            )
            for position, values in enumerate(profile.odd)
            if (values["kind"] == "null") == bool(kind)
            for high in (_PROFILE * values["height"] / 255,)
        ]
        if odd:
            panel.area(odd, colour)
    if profile.bars:
        step = min(26.0, (width - odd_width) / len(profile.bars))
        bars = [
            (x + bar_index * step, y + _PROFILE - high, max(1.0, step - 1), high)
            for bar_index, high in enumerate(_PROFILE * bar / 255 for bar in profile.bars)
            if high
        ]
        panel.area(bars, "unknown" if profile.kind == "text" else "accent")
    ends = f"{profile.low} – {profile.high}" if profile.low else ""
    if not ends and profile.distinct >= 0:
        ends = f"{'about ' * profile.estimated}{text.count(profile.distinct)} distinct"
    nulls = f"{100 * profile.nulls:.3g} % null" if profile.nulls else ""
    panel.text(x, y + _PROFILE + 11, " · ".join(filter(None, (nulls, ends))), size=10,
               colour="faint", width=width)  # fmt: skip


def _said(name: str, profile: ColumnProfile) -> str:
    span = f" from {profile.low} to {profile.high}" if profile.low else ""
    distinct = (
        "many"
        if profile.distinct < 0
        else f"{'about ' * profile.estimated}{text.count(profile.distinct)}"
    )
    common = f", most often {', '.join(profile.labels[:3])}" if profile.labels else ""
    return f"column {name}{span}: {distinct} distinct, {100 * profile.nulls:.3g} % null{common}"


def draw_changed_rows(panel: Panel, page: ChangePage, total: str) -> None:
    """Draw rows that differ: a sign and a colour for each, the old value above the new one."""
    columns = page.page.columns[:MAX_COLUMNS]
    new = page_texts(page.page)[: len(columns)]
    old = dict(zip(page.window.old, page_texts(page.old), strict=True))
    shown = range(min(page.page.num_rows, MAX_ROWS))
    before = {
        (row, column_index): _shown(old[column_index][row])
        for column_index, mask in page.window.masks.items()
        for row in shown
        if column_index < len(columns) and mask[row : row + 1] == "1"
    }
    cells = [
        [_shown(new[column_index][row]) for row in shown] for column_index in range(len(columns))
    ]
    column_texts = [
        ["changed"],
        *(
            [
                column.name,
                *cells[column_index],
                *(
                    value
                    for (_, changed_index), value in before.items()
                    if changed_index == column_index
                ),
            ]
            for column_index, column in enumerate(columns)
        ),
    ]
    widths = _widths(column_texts, WIDTH - 2 * MARGIN)
    lefts = _lefts(widths, MARGIN)
    top = panel.height
    for column_index, column in enumerate(columns):
        _cell(
            panel,
            lefts[column_index + 1],
            widths[column_index + 1],
            top + 13,
            column.name,
            weight=600,
            right=_is_number(column),
        )
    panel.line(MARGIN, top + LINE, MARGIN + sum(widths), top + LINE)
    y = top + LINE
    for row in shown:
        words, colour, wash = _CHANGES.get(page.window.kinds[row], ("", "soft", "paper"))
        tall = 2 * LINE if any(place[0] == row for place in before) else LINE
        if wash != "paper":
            panel.rect(MARGIN, y + 1, sum(widths), tall - 1, wash)
        sign = page.window.kinds[row].replace("-", "−")
        panel.text(lefts[0] + 2, y + 13, sign, weight=600, colour=colour)
        panel.text(lefts[0] + 14, y + 13, words, size=10, colour=colour, width=widths[0] - 14)
        differences = []
        for column_index, column in enumerate(columns):
            x, wide, right = lefts[column_index + 1], widths[column_index + 1], _is_number(column)
            was = before.get((row, column_index))
            if was is not None:
                panel.rect(x - 2, y + 1, wide - _PAD, LINE - 2, "old", radius=2)
                panel.rect(x - 2, y + LINE, wide - _PAD, LINE - 2, "new", radius=2)
                _cell(panel, x, wide, y + 13, was, right=right, colour="remove")
                differences.append(f"{column.name} {was} → {cells[column_index][row]}")
            base = y + 13 + (LINE if was is not None else 0)
            _cell(panel, x, wide, base, cells[column_index][row], right=right)
        panel.words.append(
            f"{words}: {', '.join(differences) or ', '.join(c[row] for c in cells[:4])}"
        )
        y += tall
        panel.line(MARGIN, y, MARGIN + sum(widths), y, colour="panel")
    panel.height = y + 4
    if total:
        panel.text(MARGIN, panel.height + 12, f"{text.ELLIPSIS} {total}", colour="faint")
        panel.height += LINE


def _widths(
    columns: Sequence[Sequence[str]], room: float, least: Sequence[float] | None = None
) -> list[float]:
    """Return the widths of columns that hold these texts; together they fit into ``room``."""
    least = least or [0.0] * len(columns)
    widths = [
        max(min(MAX_COLUMN, max(width_of(value) for value in column) + 4), low) + 2 * _PAD
        for column, low in zip(columns, least, strict=True)
    ]
    excess = sum(widths) - room
    if excess <= 0:
        return widths
    # What is wider than a fair share gives way, in proportion.
    floor = [max(_LEAST_COLUMN, low + 2 * _PAD, min(wide, room / len(columns) * 0.6))
             for wide, low in zip(widths, least, strict=True)]  # fmt: skip
    spare = sum(max(0.0, wide - low) for wide, low in zip(widths, floor, strict=True))
    factor = min(1.0, excess / spare) if spare else 0.0
    return [wide - max(0.0, wide - low) * factor for wide, low in zip(widths, floor, strict=True)]


def _lefts(widths: Sequence[float], left: float) -> list[float]:
    lefts = []
    for width in widths:
        lefts.append(left)
        left += width
    return lefts


def _cell(
    panel: Panel,
    x: float,
    width: float,
    base: float,
    value: str,
    *,
    right: bool = False,
    colour: str = "ink",
    weight: int = 400,
    marks: Sequence[tuple[int, int]] = (),
) -> None:
    """Draw the text of a cell, cut to its column."""
    room = width - 2 * _PAD
    if right:
        panel.text(x + room, base, value, anchor="end", width=room, colour=colour, weight=weight)
    else:
        panel.text(x, base, value, width=room, colour=colour, weight=weight, marks=marks)
