"""Draw panels and tables of texts, and join them into one SVG.

GitHub and older viewers take an SVG apart before they show it: scripts, style sheets, ``style``
attributes and ``foreignObject`` are removed, sometimes ``viewBox`` as well. So a picture has
elements with presentation attributes only, in pixels, on a background of its own, which makes it
readable on a light and on a dark page. Images stand in it as ``data:`` addresses.

Layout: ``<svg role="img" aria-label>``, ``<title>``, ``<desc>`` (what is drawn, in words), the
background, and a ``<g>`` for each panel. Text is text: it can be selected, found and translated.
Every text is escaped in ``_escaped`` and nowhere else; numbers go through ``_number``; colours are
names of ``COLOURS``.

The width of text is estimated, because the font of the reader is not known: texts are cut so that
they fit with a wide one.

Limits: ``WIDTH`` pixels; ``MAX_PARTS`` elements and ``MAX_IMAGE_BYTES`` of images for a panel, what
comes later is left out; ``DESCRIPTION_CHARS`` of description.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from unicodedata import east_asian_width

from lance_nb.explorer import text
from lance_nb.explorer.media import Media
from lance_nb.shown_text import visible

WIDTH = 960
MARGIN = 16
SIZE = 12
LINE = 18
MAX_PARTS = 2500
MAX_IMAGE_BYTES = 120_000
DESCRIPTION_CHARS = 4000
MAX_LINES = 40  # of a table of texts
MAX_COLUMN = 280  # pixels; where not all columns fit, the wide ones give way
LEAST_COLUMN = 46
PAD = 8
TERM_COLUMNS = 4

COLOURS = {
    "paper": "#ffffff",
    "panel": "#f6f7f9",
    "line": "#d9dde2",
    "ink": "#1c2024",
    "soft": "#414952",
    "faint": "#5d6670",
    "accent": "#1a66c2",
    "wash": "#e4eefa",
    "add": "#1f8a5b",
    "remove": "#c4473a",
    "change": "#b7791f",
    "replace": "#2f6fd0",
    "schema": "#7d55c7",
    "upkeep": "#7b8794",
    "fork": "#0f8b8d",
    "flag": "#8f5206",
    "unknown": "#c3c9d0",
    "new": "#dcf5e0",
    "old": "#ffe3e0",
    "changed": "#fff1d6",
}
# The same names in a page of ours that is dark; see dark_rules.
DARK_COLOURS = {
    "paper": "#16191d",
    "panel": "#22272d",
    "line": "#3a4048",
    "ink": "#e6e9ec",
    "soft": "#c4cad0",
    "faint": "#9aa4ae",
    "accent": "#6cb0ff",
    "wash": "#1d2f45",
    "add": "#4cc38a",
    "remove": "#f2786d",
    "change": "#e0aa4e",
    "replace": "#74a9ff",
    "schema": "#b79bf2",
    "upkeep": "#98a2ad",
    "fork": "#4fc4c6",
    "flag": "#f0b35f",
    "unknown": "#4a525b",
    "new": "#1d3524",
    "old": "#3d2422",
    "changed": "#3b3220",
}
# What the reader of XML refuses, beyond what ``visible`` replaces.
_NOT_XML = re.compile("[\ufffe\uffff]")
_NARROW = frozenset(" .,:;!|'`ijlftrI()[]{}/\\-")
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"


class Panel:
    """One part of a picture: elements, its height, and the same in words."""

    def __init__(self, title: str, *, width: int = WIDTH) -> None:
        self.title = title
        self.width = width
        self.height = 0.0
        self.words: list[str] = [title] if title else []
        self._parts: list[str] = []
        self._image_bytes = MAX_IMAGE_BYTES

    @property
    def markup(self) -> str:
        """All elements."""
        return "".join(self._parts)

    def heading(self, note: str = "") -> None:
        """Draw the title, and a note behind it."""
        self.text(MARGIN, self.height + 16, self.title, size=13, weight=600)
        if note:
            left = MARGIN + width_of(self.title, 13, bold=True) + 12
            self.text(left, self.height + 16, note, colour="faint", width=self.width - left - 8)
            self.words.append(note)
        self.height += 26

    def paragraph(self, words: str, *, colour: str = "soft", lines: int = 4) -> None:
        """Draw prose over the whole width, in at most ``lines`` lines."""
        for line in wrapped(words, self.width - 2 * MARGIN, lines):
            self.text(MARGIN, self.height + 13, line, colour=colour)
            self.height += LINE
        self.words.append(words)

    def text(
        self,
        x: float,
        y: float,
        value: str,
        *,
        size: int = SIZE,
        colour: str = "ink",
        weight: int = 400,
        anchor: str = "start",
        width: float | None = None,
        marks: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Draw one line of text with its base line at ``y``, cut to ``width`` pixels.

        ``marks``: starts and stops of words that are set off, in order, in a text that is fit to
        show as it is.
        """
        shown = visible(value)
        marks = marks if shown == value else ()
        shown = shown if width is None else fitted(shown, width, size)
        if not shown:
            return
        looks = "" if size == SIZE else f' font-size="{size}"'
        looks += "" if weight == 400 else f' font-weight="{weight}"'
        looks += "" if anchor == "start" else f' text-anchor="{anchor}"'
        place = f'x="{_number(x)}" y="{_number(y)}"'
        self._add(f'<text {place} fill="{COLOURS[colour]}"{looks}>{_marked(shown, marks)}</text>')

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        colour: str,
        *,
        stroke: str = "",
        opacity: float = 1,
        radius: float = 0,
        tip: str = "",
    ) -> None:
        """Draw a rectangle; ``tip`` is what a pointer over it shows."""
        looks = f' stroke="{COLOURS[stroke]}"' if stroke else ""
        looks += f' fill-opacity="{_number(opacity)}"' if opacity < 1 else ""
        looks += f' rx="{_number(radius)}"' if radius else ""
        size = f'width="{_number(max(width, 0.4))}" height="{_number(max(height, 0.4))}"'
        start = f'<rect x="{_number(x)}" y="{_number(y)}" {size} fill="{COLOURS[colour]}"{looks}'
        self._add(f"{start}><title>{_text(tip)}</title></rect>" if tip else f"{start}/>")

    def line(self, x1: float, y1: float, x2: float, y2: float, *, colour: str = "line") -> None:
        """Draw a straight line."""
        places = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
        ends = " ".join(f'{name}="{_number(value)}"' for name, value in places)
        self._add(f'<line {ends} stroke="{COLOURS[colour]}"/>')

    def curve(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.5) -> None:
        """Draw a line through points."""
        places = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        looks = f'fill="none" stroke="{COLOURS[colour]}" stroke-width="{_number(width)}"'
        self._add(f'<polyline points="{places}" {looks}/>')

    def area(self, rows: Iterable[tuple[float, float, float, float]], colour: str) -> None:
        """Draw many rectangles ``(x, y, width, height)`` of one colour as one element."""
        steps = "".join(
            f"M{_number(x)} {_number(y)}h{_number(w)}v{_number(h)}h{_number(-w)}z"
            for x, y, w, h in rows
        )
        if steps:
            self._add(f'<path d="{steps}" fill="{COLOURS[colour]}"/>')

    def image(self, x: float, y: float, side: float, media: Media, data: bytes) -> bool:
        """Draw an image, fitted into a square; return False if there is no more room for it."""
        if media.kind != "image" or media.why or len(data) > self._image_bytes:
            return False
        self._image_bytes -= len(data)
        address = f"data:{media.mime};base64,{base64.b64encode(data).decode()}"
        place = f'x="{_number(x)}" y="{_number(y)}" width="{side}" height="{side}"'
        title = f"<title>{_text(media.label)}</title>"
        self._add(f'<image {place} href="{address}">{title}</image>')
        return True

    def _add(self, part: str) -> None:
        if len(self._parts) < MAX_PARTS:
            self._parts.append(part)


def svg_of(label: str, panels: Sequence[Panel]) -> str:
    """Join panels, from top to bottom, into one SVG."""
    groups, y = [], 10.0
    for number, panel in enumerate(panels):
        if number:
            groups.append(
                f'<line x1="0" y1="{_number(y)}" x2="{WIDTH}" y2="{_number(y)}" '
                f'stroke="{COLOURS["line"]}"/>'
            )
            y += 6
        groups.append(f'<g transform="translate(0 {_number(y)})">{panel.markup}</g>')
        y += panel.height + 8
    height = _number(y + 2)
    words = "; ".join(word for panel in panels for word in panel.words if word)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_text(label)}" '
        f'font-family="{_FONT}" font-size="{SIZE}">'
        f"<title>{_text(label)}</title><desc>{_text(text.cut(words, DESCRIPTION_CHARS))}</desc>"
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{_number(y + 1)}" rx="6" '
        f'fill="{COLOURS["paper"]}" stroke="{COLOURS["line"]}"/>{"".join(groups)}</svg>'
    )


def dark_rules(picture: str) -> str:
    """Return rules of a style sheet that give a picture the colours of a dark page.

    ``picture`` is the selector of the SVG. Only for pages of our own: viewers remove style sheets.
    """
    return "\n".join(
        f'{picture} [{use}="{COLOURS[name]}"] {{ {use}: {dark}; }}'
        for name, dark in DARK_COLOURS.items()
        for use in ("fill", "stroke")
    )


def width_of(value: str, size: float = SIZE, *, bold: bool = False) -> float:
    """Estimate the width of a text in pixels, for a wide font."""
    units = 0.0
    for character in value:
        if character in _NARROW:
            units += 0.36
        elif character.isascii():
            units += 0.68 if character.isupper() or character in "mwMW@%" else 0.58
        else:
            units += 1.0 if east_asian_width(character) in "WF" else 0.62
    return units * size * (1.14 if bold else 1)


def fitted(value: str, width: float, size: int = SIZE) -> str:
    """Cut a text so that it is about ``width`` pixels wide at the most."""
    most = max(0, int(width / (0.3 * size)))
    shown = text.cut(value, most) if len(value) > most else value
    while shown and width_of(shown, size) > width:
        left = int(len(shown) * width / width_of(shown, size))
        shown = text.cut(value, min(left, len(shown) - 1))
    return shown if shown != text.ELLIPSIS or width >= size else ""


def wrapped(value: str, width: float, lines: int) -> list[str]:
    """Break prose between words into at most ``lines`` lines, the last one cut."""
    wrapped_lines: list[str] = []
    left = visible(value).split(" ")
    while left and len(wrapped_lines) < lines - 1:
        taken = 1
        while taken < len(left) and width_of(" ".join(left[: taken + 1])) <= width:
            taken += 1
        wrapped_lines.append(fitted(" ".join(left[:taken]), width))
        left = left[taken:]
    return [*wrapped_lines, fitted(" ".join(left), width)] if left else wrapped_lines


def _marked(shown: str, marks: Sequence[tuple[int, int]]) -> str:
    """Set words of a text off; what is left of a word that was cut is set off, too."""
    parts, done = [], 0
    for start, stop in marks:
        word = _escaped(shown[max(done, start) : stop])
        if not word:
            continue
        look = 'font-weight="700" text-decoration="underline"'
        parts.append(f"{_escaped(shown[done:start])}<tspan {look}>{word}</tspan>")
        done = stop
    # A joiner may stand beside a mark: it is looked at in the whole text only.
    return "".join([*parts, _escaped(shown[done:])]) if parts else _text(shown)


def _text(value: str) -> str:
    """Make a text safe between tags and inside of quoted attributes of XML."""
    return _escaped(visible(value))


def _escaped(shown: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", shown), quote=True)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def draw_table(
    panel: Panel,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: frozenset[int] = frozenset(),
    note: str = "",
    width: float = WIDTH - 2 * MARGIN,
) -> None:
    """Draw a table of texts below what the panel has; columns in ``numeric`` stand to the right."""
    shown = rows[:MAX_LINES]
    if not shown:
        return
    widths = column_widths(
        [[title, *(row[column_index] for row in shown)] for column_index, title in enumerate(head)],
        width,
    )
    lefts = column_lefts(widths, MARGIN)
    top = panel.height
    for column_index, title in enumerate(head):
        draw_cell(
            panel,
            lefts[column_index],
            widths[column_index],
            top + 13,
            title,
            right=column_index in numeric,
            colour="faint",
        )
    panel.line(MARGIN, top + LINE, MARGIN + sum(widths), top + LINE)
    for number, row in enumerate(shown, 1):
        base = top + number * LINE + 14
        for column_index, value in enumerate(row):
            draw_cell(
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
        panel.text(MARGIN, panel.height + 8, f"{text.ELLIPSIS} {note_text}", colour="faint")
        panel.height += LINE
    panel.words += [" ".join(filter(None, row)) for row in shown[:12]]


def draw_terms(panel: Panel, terms: Sequence[tuple[str, str]]) -> None:
    """Draw labels with their values, ``TERM_COLUMNS`` beside each other."""
    room = (WIDTH - 2 * MARGIN) / TERM_COLUMNS
    for line_number, (label, value) in enumerate(terms[:MAX_LINES]):
        x = MARGIN + room * (line_number % TERM_COLUMNS)
        base = panel.height + 13 + LINE * (line_number // TERM_COLUMNS)
        panel.text(x, base, label, colour="faint", width=room * 0.55)
        used = min(width_of(label), room * 0.55) + 8
        panel.text(x + used, base, value, width=room - used - 8)
        panel.words.append(f"{label} {value}")
    panel.height += LINE * -(-len(terms[:MAX_LINES]) // TERM_COLUMNS) + 4


def column_widths(
    columns: Sequence[Sequence[str]], room: float, least: Sequence[float] | None = None
) -> list[float]:
    """Return the widths of columns that hold these texts; together they fit into ``room``."""
    least = least or [0.0] * len(columns)
    widths = [
        max(min(MAX_COLUMN, max(width_of(value) for value in column) + 4), low) + 2 * PAD
        for column, low in zip(columns, least, strict=True)
    ]
    excess = sum(widths) - room
    if excess <= 0:
        return widths
    # What is wider than a fair share gives way, in proportion.
    floor = [max(LEAST_COLUMN, low + 2 * PAD, min(wide, room / len(columns) * 0.6))
             for wide, low in zip(widths, least, strict=True)]  # fmt: skip
    spare = sum(max(0.0, wide - low) for wide, low in zip(widths, floor, strict=True))
    factor = min(1.0, excess / spare) if spare else 0.0
    return [wide - max(0.0, wide - low) * factor for wide, low in zip(widths, floor, strict=True)]


def column_lefts(widths: Sequence[float], left: float) -> list[float]:
    """Return where columns of these widths begin."""
    lefts = []
    for width in widths:
        lefts.append(left)
        left += width
    return lefts


def draw_cell(
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
    room = width - 2 * PAD
    if right:
        panel.text(x + room, base, value, anchor="end", width=room, colour=colour, weight=weight)
    else:
        panel.text(x, base, value, width=room, colour=colour, weight=weight, marks=marks)
