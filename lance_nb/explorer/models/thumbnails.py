"""Small pictures for the cells of the grid: which values are pictures, and their bytes.

A page of rows only says which values are (``picture_marks``); the bytes of those in sight are asked
for apart, a few at a time. The kernel changes nothing about them: the browser makes them small.

Limits: only what the first bytes prove to be a picture (see ``media``), of ``MAX_BYTES`` and
``MAX_PIXELS`` at most: larger ones are told in words and shown when the cell is opened. A request
is about ``MAX_ROWS`` rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_nb.explorer.models.arrow_buffers import heads_of
from lance_nb.explorer.models.media import Media, media_of

MAX_ROWS = 12
MAX_BYTES = 64_000
MAX_PIXELS = 4_000_000
_HEAD_BYTES = 32


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """One picture: the position of its row, what it is, its bytes."""

    at: int
    media: Media
    data: bytes


def picture_marks(column: pa.Array) -> str:
    """Return "1" for every binary value that is a small picture and "0" for others; "" if none is.

    The size in pixels is looked at when the picture is asked for.
    """
    marks = "".join(
        "1" if head is not None and _is_small_picture(*head) else "0"
        for head in heads_of(column, _HEAD_BYTES)
    )
    return marks if "1" in marks else ""


def _is_small_picture(head: bytes, size_bytes: int) -> bool:
    return size_bytes <= MAX_BYTES and media_of(head, size_bytes).kind == "image"


def thumbnails(column: pa.Array) -> list[Thumbnail]:
    """Return the pictures among binary values, as they are stored."""
    found = []
    for at, value in enumerate(heads_of(column, MAX_BYTES + 1)):
        if value is None or value[1] > MAX_BYTES:
            continue
        media = media_of(*value)
        if media.kind == "image" and not media.why and media.width * media.height <= MAX_PIXELS:
            found.append(Thumbnail(at, media, value[0]))
    return found
