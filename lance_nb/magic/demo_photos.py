"""The rows of the demo dataset: invented street photographs, drawn with numpy.

A photograph is a subject, a place and a moment. Its caption names them, its picture shows them, and
its embedding is their sum plus noise, so that similar pictures are close to each other. A picture
is a small PNG: a shape for the label, a sky for the moment, in ``VARIANTS`` sizes and positions.

Layout of a PNG: signature; IHDR (width, height, 8 bits, palette); PLTE; IDAT (zlib of the rows,
each after a filter byte 0); IEND. A chunk is its size, its type, its data, and a CRC-32.

Limits: ``EMBEDDING_DIM`` dimensions; the same seed gives the same rows.
Source: PNG specification, sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

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


# --- rows -----------------------------------------------------------------------------------------

EMBEDDING_DIM = 32
LABELS = tuple(SUBJECTS)
# One label is misspelt at first, so that there is something for an update to correct.
MISSPELT = {"bicycle": "bycicle"}
SUBJECT_WORDS = {
    "bicycle": ("a red racing bike", "an old city bicycle", "a cargo bike", "a child's first bike"),
    "cat": ("a grey cat", "a sleepy tabby", "two kittens", "a black cat with white paws"),
    "dog": ("a wet retriever", "a small terrier", "a husky", "two greyhounds on one leash"),
    "market": ("a fruit stall", "a fishmonger", "crates of tomatoes", "a flower stand"),
    "street": ("a narrow alley", "a tram line", "a row of scooters", "a zebra crossing"),
    "tree": ("a plane tree", "a row of poplars", "a cherry tree in bloom", "a bare oak"),
    "window": ("green shutters", "a lit shop window", "laundry on a line", "a bay window"),
}
PLACES = (
    "outside the station", "by the canal", "on the market square", "under the old bridge",
    "in a back yard", "at the tram stop", "next to the library", "behind the theatre",
)  # fmt: skip
TAG_LISTS: tuple[list[str] | None, ...] = (
    None, [], ["blue-hour"], ["colour"], ["crowd"], ["film"], ["night"], ["portrait"], ["rain"],
    ["colour", "sharp"], ["crowd", "night"], ["film", "rain"], ["portrait", "sharp"], ["snow"],
    ["blue-hour", "night", "sharp"], ["colour", "crowd", "sharp"], ["film", "portrait", "snow"],
)  # fmt: skip
CAMERAS = ("Leica Q2", "Fujifilm X100V", "Pixel 8", "Nikon FM2")
CAMERA_SHARES = (0.25, 0.4, 0.3, 0.05)
FILM_CAMERA = 3  # notes no ISO value
SIZES = np.array([(6000, 4000), (4000, 6000), (4080, 3072), (3072, 4080), (2048, 2048)], np.int32)
ISO_STEPS = np.array([100, 200, 400, 800, 1600, 3200, 6400], np.int32)
SECONDS_APART = 413

META = pa.struct([("camera", pa.string()), ("iso", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("created", pa.timestamp("us", tz="UTC")),
        pa.field("caption", pa.string()),
        pa.field("label", pa.string()),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("score", pa.float32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("meta", META),
        pa.field("embedding", pa.list_(pa.float32(), EMBEDDING_DIM)),
        pa.field("thumbnail", pa.binary()),
    ]
)

Indices = np.ndarray[Any, np.dtype[np.int64]]
Vectors = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(slots=True)
class PhotoSource:
    """Photos in the order in which they were taken; each call of ``take`` gives the next ones."""

    rng: np.random.Generator
    pictures: pa.Array
    captions: pa.Array
    # One vector per label, per place and per moment; a subject's words add a smaller one.
    meanings: tuple[Vectors, ...]
    next_id: int = 1

    @classmethod
    def seeded(cls, seed: int) -> PhotoSource:
        """Make the source that ``seed`` stands for."""
        rng = np.random.default_rng(seed)
        counts = (len(LABELS), len(PLACES), len(MOMENTS), len(LABELS) * 4)
        weights = (1.0, 0.35, 0.45, 0.3)
        meanings = tuple(
            (weight * rng.normal(size=(count, EMBEDDING_DIM))).astype(np.float32)
            for count, weight in zip(counts, weights, strict=True)
        )
        pictures = [
            draw(label, moment, variant)
            for label in LABELS for moment in MOMENTS for variant in range(VARIANTS)
        ]  # fmt: skip
        captions = [
            f"{words[0].upper()}{words[1:]} {place} {moment}"
            for label in LABELS for words in SUBJECT_WORDS[label]
            for place in PLACES for moment in MOMENTS
        ]  # fmt: skip
        return cls(rng, pa.array(pictures), pa.array(captions), meanings)

    def take(self, count: int) -> pa.Table:
        """Return the next ``count`` photos."""
        rng = self.rng
        ids = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        label, words = rng.integers(0, len(LABELS), count), rng.integers(0, 4, count)
        place, moment = rng.integers(0, len(PLACES), count), rng.integers(0, len(MOMENTS), count)
        sizes = SIZES[rng.integers(0, len(SIZES), count)]
        names = pa.array([MISSPELT.get(one, one) for one in LABELS])
        tags = pa.array(TAG_LISTS, SCHEMA.field("tags").type)
        said = ((label * 4 + words) * len(PLACES) + place) * len(MOMENTS) + moment
        untitled = rng.random(count) < 0.025
        picture = (label * len(MOMENTS) + moment) * VARIANTS + rng.integers(0, VARIANTS, count)
        columns = [
            pa.array(ids),
            self._created(ids),
            self.captions.take(pa.array(said, mask=untitled)),
            names.take(pa.array(label)),
            pa.array(sizes[:, 0]),
            pa.array(sizes[:, 1]),
            pa.array(rng.beta(4, 2, count).astype(np.float32), mask=rng.random(count) < 0.02),
            tags.take(pa.array(rng.integers(0, len(TAG_LISTS), count))),
            self._meta(count),
            self._embeddings(label, place, moment, label * 4 + words),
            self.pictures.take(pa.array(picture)),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _created(self, ids: Indices) -> pa.Array:
        start = int(datetime(2024, 3, 1, 6, tzinfo=UTC).timestamp())
        seconds = start + ids * SECONDS_APART + self.rng.integers(0, 400, len(ids))
        return pa.array(seconds * 1_000_000, pa.timestamp("us", tz="UTC"))

    def _meta(self, count: int) -> pa.Array:
        camera = self.rng.choice(len(CAMERAS), count, p=CAMERA_SHARES)
        iso = ISO_STEPS[self.rng.integers(0, len(ISO_STEPS), count)]
        fields = [
            pa.array(CAMERAS).take(pa.array(camera)),
            pa.array(iso, mask=camera == FILM_CAMERA),
        ]
        lost = pa.array(self.rng.random(count) < 0.01)
        return pa.StructArray.from_arrays(fields, fields=list(META), mask=lost)

    def _embeddings(self, *features: Indices) -> pa.Array:
        """Add up what the features mean, and make unit vectors of it."""
        count = len(features[0])
        vectors = self.rng.normal(scale=0.15, size=(count, EMBEDDING_DIM)).astype(np.float32)
        for meaning, feature in zip(self.meanings, features, strict=True):
            vectors += meaning[feature]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), EMBEDDING_DIM)
