"""The demo dataset: a catalogue of street photographs with an instructive history.

::

    DEMO = demo_dataset("data/demo.lance")    writes it if it does not exist, in a few seconds
    ds = demo_copy("data/mine.lance", DEMO)   main with all its versions, to be changed freely

Layout: main has 26 versions, four tags, and three branches with commits of their own::

    1-3    imports                      raw-import is 2
    4-13   cleaned, spelling corrected, columns added, renamed and dropped, compacted
           training-v1 is 9; branch relabel starts at 9, augmented at 13
    14-20  checked captions, weekly imports; the one of week 45 is wrong: its
           scores are percentages, and a fifth of its labels are missing
    21-26  deletions, settings, a jury's scores, the newest rows in small files
           week-47 is 20, reviewed is 26; branch captions starts at 22

Every commit has an author and a message. Rows have stable ids, so their history can be shown.

A photograph is a subject, a place and a moment. Its caption names them, its picture shows them, and
its embedding is their sum plus noise, so that similar pictures are close to each other. A picture
is a small PNG: a shape for the label, a sky for the moment, in ``VARIANTS`` sizes and positions.

Layout of a PNG: signature; IHDR (width, height, 8 bits, palette); PLTE; IDAT (zlib of the rows,
each after a filter byte 0); IEND. A chunk is its size, its type, its data, and a CRC-32.

Limits: about 50,000 rows and 40 MB; ``EMBEDDING_DIM`` dimensions; the same seed gives the same
rows. A branch records the absolute path of its dataset, so the dataset is written in place instead
of being renamed at the end; a failed run removes what it wrote.
Source: PNG specification, sections 5 and 11.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.dataset import LanceDataset, dataset
from lance_nb.dataset.functions import write_dataset
from lance_nb.errors import InvalidInputError
from lance_nb.magic.provenance import provenance

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
    return np.array(
        [int(colour[position : position + 2], 16) for position in (1, 3, 5)], np.float64
    )


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


class PhotoSource:
    """Photos in the order in which they were taken; each call of ``take`` gives the next ones."""

    def __init__(
        self,
        rng: np.random.Generator,
        pictures: pa.Array,
        captions: pa.Array,
        meanings: tuple[Vectors, ...],
    ) -> None:
        self.rng = rng
        self.pictures = pictures
        self.captions = captions
        # One vector per label, per place and per moment; a subject's words add a smaller one.
        self.meanings = meanings
        self.next_id = 1

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
        names = pa.array([MISSPELT.get(label, label) for label in LABELS])
        tags = pa.array(TAG_LISTS, SCHEMA.field("tags").type)
        index = ((label * 4 + words) * len(PLACES) + place) * len(MOMENTS) + moment
        untitled = rng.random(count) < 0.025
        picture = (label * len(MOMENTS) + moment) * VARIANTS + rng.integers(0, VARIANTS, count)
        columns = [
            pa.array(ids),
            self._created(ids),
            self.captions.take(pa.array(index, mask=untitled)),
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


SEED = 20_240_517
# Created last: a dataset that has this tag is complete (the Makefile looks for it as well).
LAST_TAG = "reviewed"
BAD_ROWS = 3_500
TITLE = {"title": "Street photographs", "licence": "CC0", "owner": "demo data of lance_nb"}
INES, TOM, MARA = "Ines", "Tom", "Mara"


def ensure(path: Path, *, force: bool = False, is_ours: bool = False) -> str:
    """Write the dataset unless it exists; return one line about what was done.

    ``is_ours``: replace an incomplete one without ``force``. Raises InvalidInputError rather than
    delete something that is no dataset.
    """
    if path.exists() and not force and is_complete(path):
        return f"{path} already exists (--force replaces it)"
    if path.exists():
        if not force and not is_ours:
            raise InvalidInputError(
                f"{path} exists and is not a complete demo dataset; --force replaces it"
            )
        remove(path)
    dataset = write(path)
    return (
        f"wrote {path}: {dataset.count_rows():,} rows, {len(dataset.version_numbers())} versions, "
        f"{len(dataset.tags.names())} tags, {len(dataset.branches.names())} branches"
    )


def is_complete(path: Path) -> bool:
    """Whether an earlier run has completed ``path``."""
    return (path / "_refs" / "tags" / f"{LAST_TAG}.json").is_file()


def remove(path: Path) -> None:
    """Delete the dataset at ``path``. Raises InvalidInputError for any other folder."""
    if not path.is_dir() or (any(path.iterdir()) and not (path / "_versions").is_dir()):
        raise InvalidInputError(
            f"{path} is not a Lance dataset, so it is not replaced; choose another path"
        )
    shutil.rmtree(path)


def write(path: Path, seed: int = SEED) -> LanceDataset:
    """Write the whole demo dataset into ``path``, which must not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = PhotoSource.seeded(seed)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, path, ignore_errors=True)
        with _commit_as(INES, "Import the spring archive"):
            dataset = write_dataset(source.take(10_000), str(path), enable_stable_row_ids=True)
        _write_imports(dataset, source)
        _write_columns(dataset, source)
        _write_clean_up(dataset)
        _write_branches(dataset, source)
        _write_weeks(dataset, source)
        _write_end(dataset, source)
        undo.pop_all()
    return dataset


def _write_imports(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 2 to 5: the raw data comes in and is cleaned."""
    with _commit_as(INES, "Import the summer archive"):
        dataset.insert(source.take(9_000))
    dataset.tags.create("raw-import", dataset.version)
    with _commit_as(TOM, "Import the phone pictures"):
        dataset.insert(source.take(6_000))
    with _commit_as(MARA, "Delete pictures that are out of focus"):
        dataset.delete("score < 0.2")
    with _commit_as(MARA, "Correct the spelling of bicycle"):
        dataset.update({"label": "'bicycle'"}, where="label = 'bycicle'")


def _write_columns(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 6 to 11: a column stays under a better name, another comes and goes."""
    with _commit_as(TOM, "Add the ratio of width to height"):
        dataset.add_columns({"ratio": "CAST(width AS FLOAT) / CAST(height AS FLOAT)"})
    with _commit_as(INES, "Import the autumn archive"):
        dataset.insert(correct_labels(with_ratio(source.take(5_000), "ratio")))
    with _commit_as(MARA, "Add a title and a description"):
        dataset.update_metadata(TITLE)
    with _commit_as(TOM, "Rename ratio to aspect_ratio"):
        dataset.alter_columns({"path": "ratio", "name": "aspect_ratio"})
    dataset.tags.create("training-v1", dataset.version)
    with _commit_as(TOM, "Try a flag for wide pictures"):
        dataset.add_columns({"is_wide": "aspect_ratio > 1.4"})
    with _commit_as(TOM, "Drop the flag for wide pictures"):
        dataset.drop_columns(["is_wide"])


def _write_clean_up(dataset: LanceDataset) -> None:
    """Versions 12 and 13."""
    with _commit_as(MARA, "Delete film scans that are upside down"):
        dataset.delete("meta.camera = 'Nikon FM2' AND score < 0.6")
    with _commit_as(TOM, "Compact the archives into larger fragments"):
        dataset.optimize.compact_files(target_rows_per_fragment=15_000)


def _write_branches(dataset: LanceDataset, source: PhotoSource) -> None:
    """Make two branches that go their own way."""
    relabel = dataset.create_branch("relabel", "training-v1")
    with _commit_as(MARA, "Relabel cats and dogs as pets"):
        relabel.update({"label": "'pet'"}, where="label = 'cat' OR label = 'dog'")
    with _commit_as(MARA, "Delete windows with low scores"):
        relabel.delete("label = 'window' AND score < 0.4")
    augmented = dataset.create_branch("augmented", dataset.version)
    for count, message in ((600, "Add mirrored pictures"), (400, "Add cropped pictures")):
        with _commit_as(TOM, message):
            augmented.insert(correct_labels(with_ratio(source.take(count))))


def _write_weeks(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 14 to 20: captions are checked, and imported every week; one week went wrong."""
    checked = dataset.to_table(filter="id >= 2000 AND id < 2200").combine_chunks()
    with _commit_as(INES, "Update checked captions, add late pictures"):
        late = correct_labels(with_ratio(source.take(100)))
        _upsert(dataset, pa.concat_tables([_with_checked_captions(checked), late]))
    with _commit_as(INES, "Import week 44"):
        dataset.insert(correct_labels(with_ratio(source.take(4_000))))
    with _commit_as(TOM, "Import week 45 with the new script"):
        dataset.insert(with_bad_import(correct_labels(with_ratio(source.take(BAD_ROWS)))))
    with _commit_as(INES, "Import week 46"):
        dataset.insert(correct_labels(with_ratio(source.take(4_000))))
    with _commit_as(MARA, "Mark poplars by the canal as the landmark"):
        dataset.update(
            {"caption": "concat(caption, ', the landmark')"},
            where="caption LIKE '%poplars by the canal%' AND id < 20000",
        )
    with _commit_as(TOM, "Add the size in megapixels"):
        dataset.add_columns({"megapixels": "CAST(width * height / 1000000 AS FLOAT)"})
    with _commit_as(INES, "Import week 47"):
        dataset.insert(correct_labels(_with_megapixels(source.take(5_000))))
    dataset.tags.create("week-47", dataset.version)


def _write_end(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 21 to 26, and the third branch."""
    with _commit_as(MARA, "Delete pictures on request of the people shown"):
        dataset.delete("id >= 21000 AND id < 21040 OR label = 'street' AND score < 0.3")
    with _commit_as(TOM, "Name the photo desk as the owner"):
        dataset.update_config({"team": "photo desk"})
    captions = dataset.create_branch("captions", dataset.version)
    with _commit_as(MARA, "Try captions in capitals"):
        captions.update({"caption": "upper(caption)"}, where="label = 'cat'")
    with _commit_as(MARA, "Add the length of captions"):
        captions.add_columns({"caption_length": "CAST(length(caption) AS INT)"})
    jury = dataset.to_table(filter="id >= 5000 AND id < 6500").combine_chunks()
    with _commit_as(INES, "Update the scores of the second jury"):
        _upsert(dataset, _with_lower_scores(jury))
    with _commit_as(TOM, "Describe the column of scores"):
        dataset.update_field_metadata({"score": {"description": "0 to 1, by a jury of three"}})
    with _commit_as(
        INES, "Import the winter archive"
    ):  # in small files, as many small jobs write them
        dataset.insert(correct_labels(_with_megapixels(source.take(4_000))), max_rows_per_file=800)
    with _commit_as(MARA, "Delete weak pictures without a caption"):
        dataset.delete("caption IS NULL AND score < 0.5")
    dataset.tags.create(LAST_TAG, dataset.version)


# --- rows -----------------------------------------------------------------------------------------


def correct_labels(photos: pa.Table) -> pa.Table:
    """Return ``photos`` with every misspelt label corrected."""
    from pyarrow import compute

    labels = photos["label"]
    for label, wrong in MISSPELT.items():
        labels = compute.if_else(compute.equal(labels, wrong), label, labels)
    return _with(photos, "label", labels)


def with_ratio(photos: pa.Table, name: str = "aspect_ratio") -> pa.Table:
    """Return ``photos`` with their width to height ratio as column ``name``."""
    ratio = photos["width"].to_numpy() / photos["height"].to_numpy()
    return photos.append_column(name, pa.array(ratio.astype(np.float32)))


def with_bad_import(photos: pa.Table) -> pa.Table:
    """Return ``photos`` as a faulty script imports them: scores in percent, labels missing."""
    from pyarrow import compute

    is_fifth = compute.less(compute.bit_wise_and(photos["id"], 63), 13)
    labels = compute.if_else(is_fifth, pa.scalar(None, pa.string()), photos["label"])
    scores = compute.cast(compute.round(compute.multiply(photos["score"], 100)), pa.float32())
    return _with(_with(photos, "label", labels), "score", scores)


def _with_checked_captions(photos: pa.Table) -> pa.Table:
    from pyarrow import compute

    captions = compute.fill_null(photos["caption"], "Untitled")
    words = compute.binary_join_element_wise(captions, "(checked)", " ")
    return _with(photos, "caption", words)


def _with_lower_scores(photos: pa.Table) -> pa.Table:
    from pyarrow import compute

    scores = compute.cast(compute.multiply(photos["score"], 0.9), pa.float32())
    return _with(photos, "score", scores)


def _with_megapixels(photos: pa.Table) -> pa.Table:
    area = photos["width"].to_numpy() * photos["height"].to_numpy() // 1_000_000
    return with_ratio(photos).append_column("megapixels", pa.array(area.astype(np.float32)))


def _with(photos: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    position = photos.schema.get_field_index(name)
    return photos.set_column(position, photos.schema.field(position), values)


def _upsert(dataset: LanceDataset, photos: pa.Table) -> None:
    verb = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    verb.execute(photos)
    dataset.checkout_latest()


@contextmanager
def _commit_as(author: str, message: str) -> Iterator[None]:
    """Let the commits of a block say who made them and why."""
    with provenance.context(author=author, message=message, notebook=False):
        yield


__all__ = ["demo_copy", "demo_dataset"]


def demo_dataset(path: str | os.PathLike[str] = "data/demo.lance") -> str:
    """Write the demo dataset unless it exists, and return its path.

    Raises InvalidInputError if something else is at ``path``.
    """
    ensure(Path(path))
    return os.fspath(path)


def demo_copy(
    path: str | os.PathLike[str], source: str | os.PathLike[str] = "data/demo.lance"
) -> LanceDataset:
    """Copy main of the demo dataset with its whole history and tags; an older copy is replaced.

    Branches are not copied: their versions refer to the source dataset by its absolute path. Raises
    InvalidInputError if something else is at ``path``.
    """
    place = Path(path)
    if place.exists():
        remove(place)
    shutil.copytree(source, place, ignore=shutil.ignore_patterns("tree", "branches"))
    return dataset(place)
