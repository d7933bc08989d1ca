"""The small images in a few rows of a table, for JSON and for static HTML.

Layout in JSON: ``{row, column, mime, width, height, data}``, the bytes as base64.
Limits: ``INLINE_BYTES`` of images of one table; see media for one image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lance_nb.explorer import cells
from lance_nb.explorer.media import Thumbnail, thumbnails

INLINE_BYTES = 300_000


def table_images(
    columns: Sequence[pa.Array], max_bytes: int | None = None
) -> dict[tuple[int, int], Thumbnail]:
    """Return the small images of a few rows by row and column, up to ``INLINE_BYTES`` in all."""
    left, images = INLINE_BYTES if max_bytes is None else max_bytes, {}
    for position, column in enumerate(map(cells.plain, columns)):
        for image in thumbnails(column) if cells.is_binary(column.type) else ():
            if len(image.data) <= left:
                left -= len(image.data)
                images[image.row, position] = image
    return images


def images_json(columns: Sequence[pa.Array], max_bytes: int | None = None) -> list[dict[str, Any]]:
    """Return the images of a table in JSON."""
    return [
        image.to_json(0) | {"row": row, "column": column, "data": image.base64}
        for (row, column), image in table_images(columns, max_bytes).items()
    ]
