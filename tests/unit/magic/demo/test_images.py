from __future__ import annotations

import zlib

import numpy as np

from lance_nb.magic.demo_photos import MOMENTS, SIDE, SUBJECTS, VARIANTS, draw, png


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
