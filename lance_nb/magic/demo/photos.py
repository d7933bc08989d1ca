"""The rows of the demo dataset: street photographs that nobody took.

A photograph is a subject, a place and a moment. Its caption says them, its picture shows them, and
its embedding is their sum and a little noise, so that what looks alike lies close together.

Limits: ``EMBEDDING_DIM`` dimensions; the same seed gives the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.magic.demo.images import MOMENTS, SUBJECTS, VARIANTS, draw

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
