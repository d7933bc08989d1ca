"""Writing the demo dataset around its rows; the whole of it is counted in tests/interop."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.magic import demo
from lance_nb.magic.demo import (
    EMBEDDING_DIM,
    MOMENTS,
    SIDE,
    SUBJECTS,
    VARIANTS,
    PhotoSource,
    draw,
    png,
)


def test_a_complete_dataset_is_left_alone(tmp_path: Path) -> None:
    tag = tmp_path / "_refs" / "tags" / f"{demo.LAST_TAG}.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{}")

    assert "already exists" in demo.ensure(tmp_path)
    assert tag.exists()


def test_a_folder_that_is_no_dataset_is_never_deleted(tmp_path: Path) -> None:
    keep = tmp_path / "thesis.txt"
    keep.write_text("years of work")

    for options in ({}, {"force": True}, {"is_ours": True}):
        with pytest.raises(InvalidInputError, match=r"not a (Lance|complete)"):
            demo.ensure(tmp_path, **options)
    assert keep.exists()


def test_a_run_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    take = PhotoSource.take
    monkeypatch.setattr(demo, "_write_imports", full)
    monkeypatch.setattr(PhotoSource, "take", lambda self, count: take(self, min(count, 20)))
    with pytest.raises(OSError, match="disk full"):
        demo.write(tmp_path / "demo.lance")
    assert not (tmp_path / "demo.lance").exists()


def test_labels_are_spelt_right_and_the_bad_ingest_is_wrong() -> None:
    photos = PhotoSource.seeded(3).take(200)
    assert "bycicle" in photos["label"].to_pylist()
    right = demo.correct_labels(photos)
    assert "bycicle" not in right["label"].to_pylist()
    assert "bicycle" in right["label"].to_pylist()

    wrong = demo.with_bad_import(right)
    assert wrong.schema == photos.schema
    assert 0 < wrong["label"].null_count < 100
    scores = [one for one in wrong["score"].to_pylist() if one is not None]
    assert min(scores) > 1
    assert max(scores) <= 100


def chunks_of(image: bytes) -> dict[bytes, bytes]:
    """Take a PNG apart, checking its signature and every checksum."""
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    rest, chunks = image[8:], {}
    while rest:
        size = int.from_bytes(rest[:4], "big")
        kind, body = rest[4:8], rest[8 : 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(rest[8 + size : 12 + size], "big")
        chunks[kind], rest = body, rest[12 + size :]
    return chunks


def test_a_picture_is_a_png_with_true_checksums() -> None:
    pixels = np.array([[0, 1, 2], [2, 1, 0]], np.uint8)
    palette = np.arange(9, dtype=np.uint8).reshape(3, 3)
    chunks = chunks_of(png(pixels, palette))

    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    assert chunks[b"IHDR"][:8] == (3).to_bytes(4, "big") + (2).to_bytes(4, "big")
    assert chunks[b"PLTE"] == palette.tobytes()
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(2, 4)
    assert not rows[:, 0].any()
    assert (rows[:, 1:] == pixels).all()


def test_every_scene_has_a_picture_of_its_own_in_bounds() -> None:
    drawn = [draw(label, moment, 0) for label in SUBJECTS for moment in MOMENTS]
    drawn += [draw("cat", "at noon", variant) for variant in range(1, VARIANTS)]

    assert len(set(drawn)) == len(drawn)
    for image in drawn:
        chunks = chunks_of(image)
        places = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8)
        assert places.size == SIDE * (SIDE + 1)
        assert places.max() < len(chunks[b"PLTE"]) // 3


def test_the_same_seed_gives_the_same_photos() -> None:
    first = PhotoSource.seeded(3).take(50)

    assert first.equals(PhotoSource.seeded(3).take(50))
    assert not first.equals(PhotoSource.seeded(4).take(50))


def test_photos_go_on_where_the_last_ones_ended() -> None:
    source = PhotoSource.seeded(3)
    ids = source.take(30)["id"].to_pylist() + source.take(20)["id"].to_pylist()

    assert ids == list(range(1, 51))


def test_photos_have_gaps_where_real_ones_have() -> None:
    photos = PhotoSource.seeded(3).take(2000)

    for name in ("caption", "score", "tags", "meta"):
        assert 0 < photos[name].null_count < 1000, name
    assert photos["id"].null_count == photos["embedding"].null_count == 0
    assert [] in photos["tags"].to_pylist()
    photos.validate(full=True)


def test_embeddings_are_unit_vectors_and_neighbours_show_the_same() -> None:
    photos = PhotoSource.seeded(3).take(3000).combine_chunks()
    flat = photos["embedding"].combine_chunks().flatten().to_numpy()
    vectors = flat.reshape(-1, EMBEDDING_DIM)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    likeness = vectors[:200] @ vectors.T
    nearest = np.argsort(-likeness, axis=1)[:, 1:6]
    labels = np.array(photos["label"].to_pylist())
    assert (labels[nearest] == labels[:200, None]).mean() > 0.95


def test_a_caption_says_what_the_label_says() -> None:
    photos = PhotoSource.seeded(3).take(500).to_pylist()
    cats = [one["caption"] for one in photos if one["label"] == "cat" and one["caption"]]

    assert cats
    assert all("cat" in one or "tabby" in one or "kittens" in one for one in cats)
