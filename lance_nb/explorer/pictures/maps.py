"""Draw the map of embeddings: a sample of the points, the names of their categories, a legend.

Limits: ``MAX_POINTS`` points are drawn, spread evenly over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_nb.explorer.models.embedding_map import MISSING, NUMBER_MAX, OTHER, PlacedMap
from lance_nb.explorer.pictures.drawing import MARGIN, Panel, width_of

MAX_POINTS = 1800
HEIGHT = 360
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
    inside = inside[:: max(1, -(-inside.size // MAX_POINTS))]
    width, first = panel.width - 2 * MARGIN, panel.height + 6
    panel.rect(MARGIN, first, width, HEIGHT, "panel", stroke="line")
    x = MARGIN + (xy[inside, 0] - left) / max(1, right - left) * (width - SIDE)
    y = first + (top - xy[inside, 1]) / max(1, top - bottom) * (HEIGHT - SIDE)
    for at, across, down in zip(inside, x.tolist(), y.tolist(), strict=True):
        panel.rect(across, down, SIDE, SIDE, _colour(placed.colouring.kind, int(codes[at])))
    panel.height = first + HEIGHT + 8
    _legend(panel, placed)
    return panel


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
    entries = [(_colour(colouring.kind, one.code), f"{one.label} ({one.count:,})")
               for one in colouring.legend]  # fmt: skip
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
