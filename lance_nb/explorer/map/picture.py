"""Draw the map of embeddings, with a legend, and the wall of pictures.

Limits: ``MAX_POINTS`` points are drawn, chosen at random. Pictures are drawn until
the room for them is used up (see ``drawing``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_nb.explorer.drawing import MARGIN, Panel, width_of
from lance_nb.explorer.map.placed_map import PlacedMap
from lance_nb.explorer.map.point_styles import (
    MISSING,
    NUMBER_MAX,
    OTHER,
    SIZE_MAX,
    size_factor,
    size_words,
)
from lance_nb.explorer.pictures.picture_wall import Tile

MAX_POINTS = 1800
HEIGHT = 360
NAME_ROOM = 16
SIDE = 2.4  # of a point, in pixels
TILE = 96
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
    for name in placed.names:
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
    if placed.clusters is not None:
        labels = placed.clusters.to_json()
        panel.paragraph(f"labels: {labels['column']}, {labels['words']}")


def draw_tiles(
    panel: Panel, words: str, shown_tiles: Sequence[Tile], sent: Sequence[bytes]
) -> Panel:
    """Draw rows as tiles with their captions; ``sent`` are the pictures of those that have one."""
    panel.heading(words)
    across = max(1, (panel.width - 2 * MARGIN + 8) // (TILE + 8))  # none follows the last one
    left = iter(sent)
    top = panel.height + 6
    for position, tile in enumerate(shown_tiles):
        x, y = MARGIN + position % across * (TILE + 8), top + position // across * (TILE + 22)
        panel.rect(x, y, TILE, TILE, "panel", stroke="line")
        is_drawn = (
            tile.picture
            and tile.media is not None
            and panel.image(x, y, TILE, tile.media, next(left))
        )
        label = tile.media.label if tile.media is not None else "null"
        if not is_drawn:
            panel.text(x + 4, y + TILE / 2, label, width=TILE - 8)
        panel.text(x, y + TILE + 12, tile.caption or f"row {tile.row:,}", width=TILE)
        panel.words.append(tile.caption or label)
    panel.height = top + -(-len(shown_tiles) // across) * (TILE + 22)
    return panel
