"""Draw the rows that the grid shows, with thumbnails, vectors and the profiles of their columns.

Limits: ``MAX_ROWS`` rows (``MAX_IMAGE_ROWS`` with thumbnails), ``MAX_COLUMNS`` columns; thumbnails
of ``MAX_IMAGE_COLUMNS`` columns are read. What is left out is counted below the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lance_nb.errors import NotSupportedError
from lance_nb.explorer import cells, media, text
from lance_nb.explorer.drawing import (
    LEAST_COLUMN,
    LINE,
    MARGIN,
    PAD,
    WIDTH,
    Panel,
    column_lefts,
    column_widths,
    draw_cell,
)
from lance_nb.explorer.media import Media
from lance_nb.explorer.messages import integer
from lance_nb.explorer.picture_view import Shown, View, is_near
from lance_nb.explorer.rows.column_profile import ColumnProfile, column_profiles
from lance_nb.explorer.rows.row_page import PageColumn, RowPage, Window, page_texts, row_page
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.session import FIRST_QUERY, MAX_COUNT, FirstRows, RecentAnswers, Session

MAX_ROWS = 12
MAX_IMAGE_ROWS = 8
MAX_COLUMNS = 9
_THUMBNAIL = 44
_PROFILE = 22
_ODD_BAR = 5.0  # of nulls, NaN and the like, on the right
_SPARK = 64
NULL = "null"
MAX_IMAGE_COLUMNS = 2
# Images of cells by row of the dataset and place of the column.
Images = Mapping[tuple[int, int], tuple[Media, bytes]]


def draw_rows_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the rows that the grid shows."""
    first, dataset = session.parts.get("rows"), session.dataset
    args = {"branch": dataset.branch, "version": dataset.version, **shown}
    row = integer({"row": shown.get("row", 0)}, "row", low=0, high=MAX_COUNT)
    query = session.query(args, (dataset.branch, dataset.version))
    recent, near = session.keep(RecentAnswers), is_near(session)
    page = recent.page(args, row)
    if page is None and isinstance(first, FirstRows) and query == FIRST_QUERY:
        holds = first.page.offset <= row < first.page.offset + max(1, first.page.num_rows)
        page = first.page if holds else None
    if page is None and not near:
        raise NotSupportedError("these rows are read when a browser asks for them")
    if page is None:
        page = row_page(dataset, Window(row, MAX_ROWS), query=query)
    num_rows = dataset.count_rows()
    if query.order is not None:
        num_rows = query.order.num_rows
    elif query.filter is not None:
        num_rows = page.offset + page.num_rows  # as far as is known
    profiles = recent.profiles(args) or recent.profiles({**args, "arranged": None})
    if not profiles and near and num_rows:
        drawn_profiles = column_profiles(
            dataset, page.first_column, len(page.columns), query=query, num_rows=num_rows
        )
        recent.add_profiles(args, drawn_profiles)
        profiles = recent.profiles(args)
    images = _images(session, page, query, row) if near else {}
    columns = len(query.names(dataset))
    drawn = draw_rows(
        page,
        num_rows=num_rows,
        num_columns=columns,
        first=row,
        filter=query.filter or "",
        search=text.line(query.search.request.text) if query.search else "",
        profiles=profiles,
        images=images,
    )
    return [drawn]


def _images(session: Session, page: RowPage, query: RowQuery, row: int) -> Images:
    """Read the thumbnails of the rows that are drawn, of the first columns that have any."""
    found_images: dict[tuple[int, int], tuple[media.Media, bytes]] = {}
    names = query.names(session.dataset)
    places = [
        position for position in drawn_columns(page) if "pictures" in page.columns[position].extra
    ]
    for position in places[:MAX_IMAGE_COLUMNS]:
        place = page.first_column + position
        table = query.rows(session.dataset, [names[place]], row, MAX_ROWS)
        column = cells.plain(table.column(0))
        if cells.is_binary(column.type):
            images = media.thumbnails(column)
            found_images |= {
                (row + image.row, place): (image.media, image.data) for image in images
            }
    return found_images


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
        [_short_cell(columns[column_index], texts[column_index][row]) for row in shown]
        for column_index in range(len(columns))
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
        low = _SPARK if column.encoding == "vector" else LEAST_COLUMN if profiles else 0
        least.append(_THUMBNAIL + 4 if has_images else low)
    widths = column_widths(column_texts, WIDTH - 2 * MARGIN, least)
    lefts = column_lefts(widths, MARGIN)
    top = panel.height
    for column_index, column in enumerate(columns):
        x, wide = lefts[column_index + 1], widths[column_index + 1]
        right = is_number(column)
        draw_cell(panel, x, wide, top + 12, column.name, right=right, weight=600)
        draw_cell(panel, x, wide, top + 27, column.type, right=right, colour="faint")
        profile = profiles.get(page.first_column + places[column_index])
        if profile is not None:
            _draw_profile(panel, x + 2, top + 31, width=wide - 2 * PAD + 4, profile=profile)
            panel.words.append(_said(column.name, profile))
    head = 32 + (_PROFILE + 16 if profiles else 0)
    panel.line(MARGIN, top + head, MARGIN + sum(widths), top + head)
    for number, row in enumerate(shown):
        y = top + head + number * tall
        base = y + tall / 2 + 4.5
        draw_cell(panel, lefts[0], widths[0], base, numbers[number], right=True, colour="faint")
        for column_index, column in enumerate(columns):
            image = images.get((page.offset + row, page.first_column + places[column_index]))
            x = lefts[column_index + 1]
            if image and panel.image(x + 2, y + 3, _THUMBNAIL, *image):
                continue
            if column.encoding == "vector" and cells[column_index][number] != NULL:
                points = int(column.extra["points"])
                shades = page.buffers[column.buffers[1]][row * points : (row + 1) * points]
                _draw_vector(panel, shades, x + 2, y + tall / 2 - 7)
                continue
            is_null = texts[column_index][row] is None
            draw_cell(panel, x, widths[column_index + 1], base, cells[column_index][number],
                  right=is_number(column), colour="faint" if is_null else "ink",
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


def cell_text(value: str | None) -> str:
    """Return what is drawn of a value."""
    return NULL if value is None else text.cut(value, 120)


def _short_cell(column: PageColumn, value: str | None) -> str:
    """Return a value as the grid shows it: a long number in four digits."""
    if value is None or not column.encoding.startswith("f") or len(value) <= 7:
        return cell_text(value)
    number = float(value)
    whole = len(str(int(abs(number)))) if math.isfinite(number) and abs(number) < 1e15 else 0
    return f"{number:.{max(4, whole)}g}"


def is_number(column: PageColumn) -> bool:
    """Whether a column stands on the right."""
    return not column.extra or column.extra.get("look") == "number"


def _draw_more(panel: Panel, rows: int, columns: int) -> None:
    left = [text.plural(count, f"more {noun}") for count, noun in ((rows, "row"),
            (columns, "column")) if count > 0]  # fmt: skip
    if left:
        panel.text(MARGIN, panel.height + 12, f"{text.ELLIPSIS} {' and '.join(left)}",
                   colour="faint")  # fmt: skip
        panel.height += LINE


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


VIEW = View("rows", draw_rows_view)
