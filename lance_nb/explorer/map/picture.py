"""Draw the map of embeddings, with a legend, and the wall of pictures.

Limits: ``MAX_POINTS`` points are drawn, chosen at random. Pictures are drawn until
the room for them is used up (see ``drawing``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_nb.explorer import cells
from lance_nb.explorer.drawing import (
    MARGIN,
    Panel,
    width_of,
)
from lance_nb.explorer.map.embedding_map import (
    SCALE,
    divisor_of,
    fit_projection,
    place_rows,
)
from lance_nb.explorer.map.placed_map import PlacedMap
from lance_nb.explorer.map.point_styles import (
    MISSING,
    NUMBER_MAX,
    OTHER,
    SIZE_MAX,
    plain_colouring,
    size_factor,
    size_words,
)
from lance_nb.explorer.messages import integer
from lance_nb.explorer.picture_view import Shown, View
from lance_nb.explorer.session import RecentAnswers, Session
from lance_nb.explorer.source import scanned_source

MAX_POINTS = 1800
HEIGHT = 360
NAME_ROOM = 16
SIDE = 2.4  # of a point, in pixels
_CATEGORIES = ("replace", "change", "add", "remove", "schema", "fork", "flag", "accent", "upkeep",
               "soft", "unknown", "ink")  # fmt: skip
_NUMBERS = ("wash", "replace", "accent", "schema", "ink")


def draw_map(placed: PlacedMap, box: Sequence[int]) -> Panel:
    """Draw the points inside of ``box``: left, bottom, right, top in coordinates of the map."""
    panel = Panel("Map")
    panel.heading()
    panel.paragraph(placed.to_json()["words"])
    left, bottom, right, top = box
    xy, codes = placed.points.xy.astype(np.int64), placed.colouring.codes
    inside = np.flatnonzero(((xy >= (left, bottom)) & (xy <= (right, top))).all(1))
    if inside.size > MAX_POINTS:
        # At random: every n-th row would be of one kind where rows of different kinds take turns.
        random = np.random.default_rng(0)
        inside = np.sort(random.choice(inside, MAX_POINTS, replace=False))
    width, first = panel.width - 2 * MARGIN, panel.height + 6
    panel.rect(MARGIN, first, width, HEIGHT, "panel", stroke="line")
    side = np.full(inside.size, SIDE)
    if placed.sizing is not None:
        widths = np.array([SIDE * size_factor(code) for code in range(SIZE_MAX + 1)])
        side = widths[placed.sizing.codes[inside]]
    x = MARGIN + (xy[inside, 0] - left) / max(1, right - left) * (width - side)
    y = first + (top - xy[inside, 1]) / max(1, top - bottom) * (HEIGHT - side)
    squares = zip(inside, x.tolist(), y.tolist(), side.tolist(), strict=True)
    for point, across, down, wide in squares:
        panel.rect(across, down, wide, wide, _colour(placed.colouring.kind, int(codes[point])))
    _names(panel, placed, box, (MARGIN, first, width))
    panel.height = first + HEIGHT + 8
    _legend(panel, placed)
    return panel


def _names(
    panel: Panel, placed: PlacedMap, box: Sequence[int], frame: tuple[float, float, float]
) -> None:
    """Write the names of categories where most of their points are, unless they would overlap."""
    left, bottom, right, top = box
    x, y, width = frame
    taken: list[tuple[float, float, float]] = []
    for name in placed.colouring.names:
        if not (left <= name.x <= right and bottom <= name.y <= top):
            continue
        reach = width_of(name.label) / 2
        middle = x + (name.x - left) / max(1, right - left) * width
        line = y + (top - name.y) / max(1, top - bottom) * HEIGHT + 4
        overlaps = (abs(across - middle) < wide + reach and abs(down - line) < NAME_ROOM
                    for across, down, wide in taken)  # fmt: skip
        if middle - reach < x or middle + reach > x + width or any(overlaps):
            continue
        taken.append((middle, line, reach))
        panel.rect(middle - reach - 2, line - 11, 2 * reach + 4, 14, "panel")
        panel.text(middle - reach, line, name.label, width=2 * reach + 4)


def _colour(kind: str, code: int) -> str:
    if kind == "plain":
        return "replace"
    if code == MISSING or (kind == "category" and code >= OTHER):
        return "unknown"
    if kind == "category":
        return _CATEGORIES[code]
    return _NUMBERS[code * len(_NUMBERS) // (NUMBER_MAX + 1)]


def _legend(panel: Panel, placed: PlacedMap) -> None:
    colouring = placed.colouring
    left = float(MARGIN)
    entries = [(_colour(colouring.kind, entry.code), f"{entry.label} ({entry.count:,})")
               for entry in colouring.legend]  # fmt: skip
    if colouring.kind == "number":
        entries = [(_NUMBERS[0], colouring.low), (_NUMBERS[-1], colouring.high)]
    for colour, label in entries:
        wide = width_of(label) + 30
        if left + wide > panel.width - MARGIN and left > MARGIN:
            left, panel.height = float(MARGIN), panel.height + 18
        panel.rect(left, panel.height + 4, 10, 10, colour)
        panel.text(left + 15, panel.height + 13, label, width=panel.width - left - 30)
        panel.words.append(label)
        left += wide
    panel.height += 22 if entries else 0
    if placed.sizing is not None:
        panel.paragraph(f"size: {size_words(placed.sizing)}")


MAX_PLACED = 200_000


def draw_map_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the points of the map that was opened last, in the part that is in sight."""
    placed, dataset = session.keep(RecentAnswers).placed_map, session.dataset
    if placed is None and session.reads_for_pictures:
        placed = _placed(session)
    if placed is None or placed.place != (dataset.branch, dataset.version):
        panel = Panel("Map")
        panel.heading()
        panel.paragraph("The rows are placed when the tab of the map is opened with a kernel.")
        return [panel]
    box = shown.get("box")
    sides = box if isinstance(box, list) and len(box) == 4 else [0, 0, SCALE, SCALE]
    inside = [integer({"side": side}, "side", low=0, high=SCALE) for side in sides]
    return [draw_map(placed, inside)]


def _placed(session: Session) -> PlacedMap | None:
    """Place the rows of a dataset that is not large by its first column of vectors."""
    source = scanned_source(session.dataset)
    num_rows, columns = source.stats().num_rows, cells.vector_columns(source.schema)
    if not columns or num_rows > MAX_PLACED:
        return None

    def progress(_done: int, _total: int) -> None:
        """Nobody waits for it."""

    plane = fit_projection(source, columns[0], progress)
    points = place_rows(source, plane, divisor_of(num_rows), progress)
    place = session.dataset.branch, session.dataset.version
    return PlacedMap(place, points, plain_colouring(points))


VIEW = View("map", draw_map_view)
