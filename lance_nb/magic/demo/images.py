"""Small pictures of street scenes, drawn with numpy and encoded as PNG.

A picture shows what its row says: a shape for the label, a sky for the moment, and nothing is ever
downloaded. Every scene is drawn in ``VARIANTS`` ways: larger or smaller, more to the left or right.

Layout of a PNG: signature; IHDR (width, height, 8 bits, palette); PLTE; IDAT (zlib of the rows,
each behind a filter byte 0); IEND. A chunk is its size, its kind, its body, and a CRC-32.
Source: PNG specification, sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

SIDE = 40
VARIANTS = 8
_SKY_STEPS = 8
_GROUND, _SUBJECT, _DETAIL = _SKY_STEPS, _SKY_STEPS + 1, _SKY_STEPS + 2

Plane = np.ndarray[Any, np.dtype[np.float64]]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]

# The sky at the top and at the horizon, and the ground, of each moment.
MOMENTS: Mapping[str, tuple[str, str, str]] = {
    "at dawn": ("#5b6cae", "#f6b8a0", "#6d6a78"),
    "in the rain": ("#5f6b75", "#98a4ab", "#4f5658"),
    "on a foggy morning": ("#b9c0c4", "#dfe3e4", "#9aa09f"),
    "at noon": ("#3d8fe0", "#b5dcf7", "#8b8f77"),
    "in the last light": ("#6a3d72", "#f49a4c", "#4d3f4a"),
    "after the first snow": ("#9fc4e0", "#e9f3fa", "#f4f8fb"),
    "during the summer fair": ("#31a6c9", "#fbe59a", "#a6905c"),
    "late at night": ("#0d1230", "#2b315e", "#1d1f2c"),
}


def _bicycle(x: Plane, y: Plane) -> tuple[Any, Any]:
    wheels = [abs(np.hypot(x - side, y - 0.25) - 0.42) < 0.1 for side in (-0.5, 0.5)]
    frame = (abs(y + 0.15 + 0.2 * x) < 0.07) & (abs(x) < 0.5)
    return wheels[0] | wheels[1], frame | ((abs(x + 0.1) < 0.07) & (y > -0.5) & (y < 0.25))


def _cat(x: Plane, y: Plane) -> tuple[Any, Any]:
    head = np.hypot(x, y) < 0.55
    ears = (abs(abs(x) - 0.36) < 0.2 - 0.5 * (-0.35 - y)) & (y < -0.3) & (y > -0.85)
    return head | ears, np.hypot(abs(x) - 0.2, y + 0.08) < 0.1


def _dog(x: Plane, y: Plane) -> tuple[Any, Any]:
    body = (abs(x) < 0.7) & (abs(y - 0.1) < 0.27)
    legs = (abs(abs(x) - 0.55) < 0.12) & (y > 0) & (y < 0.8)
    head = np.hypot(x - 0.7, y + 0.3) < 0.3
    return body | legs | head, np.hypot(x - 0.78, y + 0.36) < 0.09


def _market(x: Plane, y: Plane) -> tuple[Any, Any]:
    awning = (abs(y + 0.45) < 0.25) & (abs(x) < 0.85)
    table = (abs(y - 0.45) < 0.15) & (abs(x) < 0.75)
    return awning | table, awning & (np.floor((x + 1) * 5) % 2 == 0)


def _street(x: Plane, y: Plane) -> tuple[Any, Any]:
    lane = abs(x) < 0.12 + 0.45 * (y + 1)
    return lane & (y > -0.6), lane & (abs(x) < 0.07 * (y + 1.2)) & (np.floor(y * 5) % 2 == 0)


def _tree(x: Plane, y: Plane) -> tuple[Any, Any]:
    crown = np.hypot(x, (y + 0.3) * 1.1) < 0.6
    return crown, (abs(x) < 0.11) & (y > 0.2) & (y < 0.95)


def _window(x: Plane, y: Plane) -> tuple[Any, Any]:
    pane = (abs(x) < 0.55) & (abs(y) < 0.75)
    return pane, pane & ((abs(x) < 0.06) | (abs(y) < 0.06))


# Shape, colour and second colour of each label.
SUBJECTS: Mapping[str, tuple[Callable[[Plane, Plane], tuple[Any, Any]], str, str]] = {
    "bicycle": (_bicycle, "#1f1f26", "#d23b3b"),
    "cat": (_cat, "#8a6f5a", "#f3e04a"),
    "dog": (_dog, "#c08a4e", "#241a14"),
    "market": (_market, "#e8e4da", "#cf3f45"),
    "street": (_street, "#55565b", "#f2efe4"),
    "tree": (_tree, "#3e7d3a", "#5b4030"),
    "window": (_window, "#ffd98a", "#2f7a63"),
}


def draw(label: str, moment: str, variant: int) -> bytes:
    """Draw one scene as a PNG of ``SIDE`` x ``SIDE`` pixels."""
    shape, colour, detail = SUBJECTS[label]
    top, horizon, ground = map(_rgb, MOMENTS[moment])
    size = 0.62 + 0.05 * (variant % 4)
    shift = 0.18 * (variant % 3 - 1)
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    steps = np.clip((y + 1) / 1.45 * _SKY_STEPS, 0, _SKY_STEPS - 1)
    pixels = np.where(y > 0.45, _GROUND, steps.astype(np.uint8))
    body, marks = shape((x - shift) / size, (y - 0.1) / size)
    pixels[body] = _SUBJECT
    pixels[marks] = _DETAIL
    blend = np.linspace(0, 1, _SKY_STEPS)[:, None]
    sky = top * (1 - blend) + horizon * blend
    palette = np.vstack([sky, ground, _rgb(colour), _rgb(detail)]).astype(np.uint8)
    return png(pixels.astype(np.uint8), palette)


def _rgb(colour: str) -> Plane:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], np.float64)


def png(pixels: Pixels, palette: Pixels) -> bytes:
    """Encode a picture. ``pixels``: height x width places in ``palette``, which is n x 3."""
    height, width = pixels.shape
    rows = np.zeros((height, 1 + width), np.uint8)
    rows[:, 1:] = pixels

    def chunk(kind: bytes, body: bytes) -> bytes:
        checksum = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"PLTE", palette.tobytes())
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
