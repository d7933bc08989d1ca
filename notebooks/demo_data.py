"""Write the demo dataset: a catalogue of street photographs with a history worth looking at.

Run ``python notebooks/demo_data.py [PATH] [--force]``; ``make lab`` and ``make demo`` do. The rows
come from a seed, so everybody sees the same dataset.

Layout: about 20,000 photos; scalars, nulls, a list, a struct, a 64-dimensional embedding and a PNG
thumbnail per row. More than a dozen versions (appends, deletes, an update, an upsert, columns
added, renamed and dropped, a compaction), three tags, two branches with commits of their own.

Limits: writes in place. A branch records the absolute path of its dataset, so writing elsewhere
and renaming would break both branches; a run that fails removes what it wrote instead.

Not supported: writing without pylance. lance_nb itself does not write yet.
"""

from __future__ import annotations

import argparse
import colorsys
import shutil
import struct
import sys
import time
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import lance

DEFAULT_PATH = Path(__file__).resolve().parent / "data" / "demo.lance"
SEED = 20_240_517
EMBEDDING_DIM = 64
THUMBNAIL_SIDE = 32
NUM_THUMBNAILS = 480

# Created last: a dataset that has this tag is complete (the Makefile looks for it as well).
LAST_TAG = "reviewed"

SUBJECTS = {
    "bicycle": ["a red racing bike", "an old city bicycle", "a cargo bike", "a child's first bike"],
    "cat": ["a grey cat", "a sleepy tabby", "two kittens", "a black cat with white paws"],
    "dog": ["a wet retriever", "a small terrier", "a husky", "two greyhounds on one leash"],
    "market": ["a fruit stall", "a fishmonger", "crates of tomatoes", "a flower stand"],
    "street": ["a narrow alley", "a tram line", "a row of scooters", "a zebra crossing"],
    "tree": ["a plane tree", "a row of poplars", "a cherry tree in bloom", "a bare oak"],
    "window": ["green shutters", "a lit shop window", "laundry on a line", "a bay window"],
}
LABELS = list(SUBJECTS)
# One label is misspelt at first, so that there is something for an update to correct.
MISSPELT = {"bicycle": "bycicle"}
PLACES = [
    "outside the station", "by the canal", "on the market square", "under the old bridge",
    "in a back yard", "at the tram stop", "next to the library", "behind the theatre",
]  # fmt: skip
MOMENTS = [
    "at dawn", "in the rain", "on a foggy morning", "at noon", "in the last light",
    "after the first snow", "during the summer fair", "late at night",
]  # fmt: skip
TAGS = ["blue-hour", "colour", "crowd", "film", "night", "portrait", "rain", "sharp", "snow"]
CAMERAS = [("Leica Q2", 0.25), ("Fujifilm X100V", 0.4), ("Pixel 8", 0.3), ("Nikon FM2", 0.05)]
SIZES = [(6000, 4000), (4000, 6000), (4080, 3072), (3072, 4080), (2048, 2048)]
ISO_STEPS = [100, 200, 400, 800, 1600, 3200, 6400]

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
        pa.field("meta", pa.struct([("camera", pa.string()), ("iso", pa.int32())])),
        pa.field("embedding", pa.list_(pa.float32(), EMBEDDING_DIM)),
        pa.field("thumbnail", pa.binary()),
    ]
)


def png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Encode an image as PNG. ``pixels``: height x width x 3, uint8."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + width * 3), np.uint8)  # first byte of a row: filter 0, none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        checksum = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def thumbnails(rng: np.random.Generator) -> list[list[bytes]]:
    """Draw a few dozen thumbnails per label: a sky in the label's hue and a sun somewhere."""
    side = THUMBNAIL_SIDE
    y, x = np.mgrid[0:side, 0:side]
    drawn = []
    for index in range(len(LABELS)):
        hue = index / len(LABELS)
        images = []
        for _ in range(NUM_THUMBNAILS // len(LABELS)):
            light = rng.uniform(0.45, 0.95)
            top = np.array(colorsys.hsv_to_rgb(hue, 0.65, light))
            bottom = np.array(colorsys.hsv_to_rgb(hue, 0.25, light * 0.6))
            blend = (y / (side - 1))[..., None]
            image = top * (1 - blend) + bottom * blend
            centre_x, centre_y = rng.uniform(0.2, 0.8, 2) * side
            sun = (x - centre_x) ** 2 + (y - centre_y) ** 2 < rng.uniform(3, 8) ** 2
            image[sun] = colorsys.hsv_to_rgb((hue + 0.5) % 1, 0.5, 1)
            images.append(png((image * 255).astype(np.uint8)))
        drawn.append(images)
    return drawn


@dataclass
class PhotoSource:
    """Photos in the order in which they were taken; each call of ``take`` gives the next ones."""

    rng: np.random.Generator
    thumbnails: list[list[bytes]]
    centres: np.ndarray[Any, np.dtype[np.float32]]
    next_id: int = 1

    @classmethod
    def seeded(cls, seed: int) -> PhotoSource:
        """Make the source that ``seed`` stands for."""
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(len(LABELS), EMBEDDING_DIM)).astype(np.float32)
        return cls(rng, thumbnails(rng), centres)

    def take(self, count: int) -> pa.Table:
        """Return the next ``count`` photos."""
        rng = self.rng
        labels = rng.integers(0, len(LABELS), count)
        sizes = np.array(SIZES, np.int32)[rng.integers(0, len(SIZES), count)]
        ids = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        names = np.array([MISSPELT.get(label, label) for label in LABELS])
        score = rng.beta(4, 2, count).astype(np.float32)
        columns = [
            pa.array(ids),
            self._created(ids),
            self._captions(labels),
            pa.array(names[labels]),
            pa.array(sizes[:, 0]),
            pa.array(sizes[:, 1]),
            pa.array(score, mask=rng.random(count) < 0.02),
            self._tags(count),
            self._meta(count),
            self._embeddings(labels),
            pa.array([self._thumbnail(label) for label in labels], pa.binary()),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _created(self, ids: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
        start = datetime(2024, 3, 1, 6, tzinfo=UTC)
        seconds = ids * 413 + self.rng.integers(0, 400, len(ids))
        micros = int(start.timestamp()) * 1_000_000 + seconds * 1_000_000
        return pa.array(micros, pa.timestamp("us", tz="UTC"))

    def _captions(self, labels: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
        picks = self.rng.integers(0, 1 << 30, (len(labels), 3))
        captions: list[str | None] = []
        for label, (subject, place, moment) in zip(labels, picks, strict=True):
            if subject % 40 == 0:  # a photo that nobody has described
                captions.append(None)
                continue
            subjects = SUBJECTS[LABELS[label]]
            text = (
                f"{subjects[subject % len(subjects)]} {PLACES[place % len(PLACES)]} "
                f"{MOMENTS[moment % len(MOMENTS)]}"
            )
            captions.append(text[0].upper() + text[1:])
        return pa.array(captions, pa.string())

    def _tags(self, count: int) -> pa.Array:
        lengths = self.rng.integers(-1, 4, count)  # -1: no list at all; 0: an empty one
        picks = self.rng.integers(0, len(TAGS), (count, 3))
        values = [
            None if length < 0 else sorted({TAGS[pick] for pick in row[:length]})
            for length, row in zip(lengths, picks, strict=True)
        ]
        return pa.array(values, pa.list_(pa.string()))

    def _meta(self, count: int) -> pa.Array:
        names = np.array([name for name, _ in CAMERAS])
        camera = names[self.rng.choice(len(CAMERAS), count, p=[share for _, share in CAMERAS])]
        iso = np.array(ISO_STEPS, np.int32)[self.rng.integers(0, len(ISO_STEPS), count)]
        film = camera == "Nikon FM2"  # a film camera notes no ISO value
        fields = [pa.array(camera, pa.string()), pa.array(iso, mask=film)]
        lost = pa.array(self.rng.random(count) < 0.01)
        return pa.StructArray.from_arrays(fields, fields=list(SCHEMA.field("meta").type), mask=lost)

    def _embeddings(self, labels: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
        noise = self.rng.normal(scale=0.6, size=(len(labels), EMBEDDING_DIM))
        vectors = self.centres[labels] + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        flat = pa.array(vectors.astype(np.float32).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, EMBEDDING_DIM)

    def _thumbnail(self, label: int) -> bytes:
        choices = self.thumbnails[label]
        return choices[int(self.rng.integers(0, len(choices)))]


def with_ratio(photos: pa.Table, name: str) -> pa.Table:
    """Return ``photos`` with their width to height ratio as column ``name``."""
    ratio = photos["width"].to_numpy() / photos["height"].to_numpy()
    return photos.append_column(name, pa.array(ratio.astype(np.float32)))


def append(dataset: lance.LanceDataset, photos: pa.Table, message: str) -> None:
    """Append with a message that the transaction keeps."""
    dataset.insert(photos, commit_message=message, transaction_properties={"job": "photo-import"})


def write_imports(path: Path, source: PhotoSource) -> lance.LanceDataset:
    """Write the first versions: three imports, then the raw data is cleaned."""
    import lance

    dataset = lance.write_dataset(
        source.take(8_000), path, commit_message="Import the spring archive"
    )
    append(dataset, source.take(5_000), "Import the summer archive")
    dataset.tags.create("raw-import", dataset.version)
    append(dataset, source.take(3_500), "Import the phone pictures")
    dataset.delete("score < 0.2")
    dataset.update({"label": "'bicycle'"}, where="label = 'bycicle'")
    return dataset


def write_columns(dataset: lance.LanceDataset, source: PhotoSource) -> None:
    """Change the schema: one column stays under a better name, another comes and goes."""
    dataset.add_columns({"ratio": "CAST(width AS FLOAT) / CAST(height AS FLOAT)"})
    append(dataset, with_ratio(spelt(source.take(3_000)), "ratio"), "Import the autumn archive")
    dataset.update_metadata(
        {"title": "Street photographs", "licence": "CC0", "owner": "demo data of lance_nb"}
    )
    dataset.alter_columns({"path": "ratio", "name": "aspect_ratio"})
    dataset.tags.create("training-v1", dataset.version)
    dataset.add_columns({"is_wide": "aspect_ratio > 1.4"})
    dataset.drop_columns(["is_wide"])


def spelt(photos: pa.Table) -> pa.Table:
    """Return ``photos`` with every label spelt right."""
    right = {wrong: label for label, wrong in MISSPELT.items()}
    labels = [right.get(label, label) for label in photos["label"].to_pylist()]
    index = photos.schema.get_field_index("label")
    return photos.set_column(index, photos.schema.field(index), pa.array(labels, pa.string()))


def write_branches(dataset: lance.LanceDataset, source: PhotoSource) -> None:
    """Make two branches that go their own way."""
    relabel = dataset.create_branch("relabel", "training-v1")
    relabel.update({"label": "'pet'"}, where="label = 'cat' OR label = 'dog'")
    relabel.delete("label = 'window' AND score < 0.4")
    augmented = dataset.create_branch("augmented", dataset.version)
    append(augmented, with_ratio(spelt(source.take(600)), "aspect_ratio"), "Add mirrored pictures")
    append(augmented, with_ratio(spelt(source.take(400)), "aspect_ratio"), "Add cropped pictures")


def write_corrections(dataset: lance.LanceDataset, source: PhotoSource) -> None:
    """Write the last versions of main: compaction, an upsert, one more import, a clean-up."""
    dataset.delete("meta.camera = 'Nikon FM2' AND score < 0.5")
    dataset.optimize.compact_files(target_rows_per_fragment=12_000)
    write_branches(dataset, source)
    changed = dataset.to_table(filter="id >= 2000 AND id < 2200").combine_chunks()
    captions = [f"{text or 'Untitled'} (checked)" for text in changed["caption"].to_pylist()]
    changed = changed.set_column(
        changed.schema.get_field_index("caption"),
        changed.schema.field("caption"),
        pa.array(captions, pa.string()),
    )
    new = with_ratio(spelt(source.take(100)), "aspect_ratio")
    upsert = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    upsert.execute(pa.concat_tables([changed, new]))
    dataset.checkout_latest()
    late = with_ratio(spelt(source.take(1_800)), "aspect_ratio")
    append(dataset, late, "Import the winter archive")
    dataset.delete("caption IS NULL AND score < 0.35")
    dataset.tags.create(LAST_TAG, dataset.version)


def write(path: Path, seed: int = SEED) -> lance.LanceDataset:
    """Write the whole demo dataset into ``path``, which must not exist."""
    source = PhotoSource.seeded(seed)
    dataset = write_imports(path, source)
    write_columns(dataset, source)
    write_corrections(dataset, source)
    return dataset


def is_complete(path: Path) -> bool:
    """Tell whether an earlier run wrote ``path`` to its end."""
    return (path / "_refs" / "tags" / f"{LAST_TAG}.json").is_file()


def remove(path: Path) -> None:
    """Delete the dataset at ``path``; refuse a folder that is something else."""
    if not path.is_dir() or (any(path.iterdir()) and not (path / "_versions").is_dir()):
        sys.exit(f"{path} is not a Lance dataset, so it is not replaced; choose another path")
    shutil.rmtree(path)


def main(arguments: list[str] | None = None) -> None:
    """Write the dataset unless it is there."""
    parser = argparse.ArgumentParser(description="Write the demo dataset of lance_nb.")
    parser.add_argument("path", nargs="?", type=Path, default=DEFAULT_PATH, metavar="PATH")
    parser.add_argument("--force", action="store_true", help="replace a dataset that is there")
    options = parser.parse_args(arguments)
    path: Path = options.path.resolve()

    if path.exists() and not options.force and is_complete(path):
        print(f"{path} is there already (--force writes it again)")
        return
    try:
        import lance  # noqa: F401 - asked for before anything is deleted
    except ImportError:
        sys.exit(
            "The demo dataset is written by pylance, which is not installed here.\n"
            "Install it with: pip install 'lance-nb[lab]'"
        )
    if path.exists():
        if not options.force and path != DEFAULT_PATH:
            sys.exit(f"{path} exists and is not a complete demo dataset; --force replaces it")
        remove(path)

    started = time.perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, path, ignore_errors=True)
        dataset = write(path)
        undo.pop_all()
    print(
        f"wrote {path}: {dataset.count_rows():,} rows, {len(dataset.versions())} versions, "
        f"{len(dataset.tags.list())} tags, {len(dataset.branches.list())} branches "
        f"in {time.perf_counter() - started:.1f} s"
    )


if __name__ == "__main__":
    main()
