"""Draw the wall of pictures.

Pictures are drawn until the room for them is used up (see ``drawing``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    MARGIN,
    Panel,
)
from lance_nb.explorer.messages import integer, words
from lance_nb.explorer.picture_view import Shown, View, is_near
from lance_nb.explorer.pictures.picture_wall import MAX_TILES, Tile, picture_columns, tiles
from lance_nb.explorer.session import MAX_COUNT, Session, place_of

TILE = 96


def draw_wall_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the pictures that are in sight on the wall."""
    dataset = session.dataset
    panel = Panel("Pictures")
    columns = picture_columns(dataset) if is_near(session) else []
    column = shown.get("column") or (columns[0] if columns else None)
    if column is None or not is_near(session):
        panel.heading()
        panel.paragraph("The pictures are read when their tab is opened with a kernel.")
        return [panel]
    dataset_place = {"branch": dataset.branch, "version": dataset.version}
    place = shown.get("place")
    args = {**dataset_place, **shown, **(place if isinstance(place, Mapping) else {})}
    source, query = session.open(place_of(args)), session.query(args)
    row = integer({"row": shown.get("row", 0)}, "row", low=0, high=MAX_COUNT)
    caption = None if shown.get("caption") is None else words(shown, "caption", 4000)
    name = words({"column": column}, "column", 4000)
    found_tiles, sent = tiles(source, query, name, caption, range(row, row + MAX_TILES))
    title = words(shown, "words", 400) if shown.get("words") else text.name(name)
    return [draw_tiles(panel, title, found_tiles, sent)]


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


VIEW = View("pictures", draw_wall_view)
