from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from lance_nb.explorer.media import (
    MAX_BYTES,
    THUMBNAIL_BYTES,
    THUMBNAIL_PIXELS,
    image_marks,
    media_of,
    thumbnails,
)
from tests.support.explorer_samples import GIF, JPEG, PNG, VP8, VP8L, VP8X
from tests.support.markup_payloads import PAYLOADS

WEBM = bytes.fromhex("1a45dfa39f4286810142f7810142f2810442f381084282847765626d")


@pytest.mark.parametrize(
    ("head", "mime", "label"),
    [
        (PNG, "image/png", "PNG 640 × 480"),
        (GIF, "image/gif", "GIF 3 × 5"),
        (JPEG, "image/jpeg", "JPEG 640 × 480"),
        (VP8X, "image/webp", "WebP 640 × 480"),
        (VP8L, "image/webp", "WebP 640 × 480"),
        (VP8, "image/webp", "WebP 640 × 480"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", "WAV"),
        (b"ID3\4\0", "audio/mpeg", "MP3"),
        (b"\xff\xfb\x90\x44", "audio/mpeg", "MP3"),
        (b"OggS\0", "audio/ogg", "OGG"),
        (b"fLaC\0", "audio/flac", "FLAC"),
        (b"\0\0\0\x20ftypM4A \0", "audio/mp4", "M4A"),
        (b"\0\0\0\x20ftypisom\0\0\2\0isomavc1", "video/mp4", "MP4"),
        (b"\0\0\0\x18ftypmp42", "video/mp4", "MP4"),
        (b"OggS\0\2" + bytes(22) + b"\x80theora", "video/ogg", "OGV"),
        (WEBM, "video/webm", "WebM"),
    ],
)
def test_the_first_bytes_tell_what_it_is(head: bytes, mime: str, label: str) -> None:
    found = media_of(head, len(head))
    assert (found.mime, found.label, found.why) == (mime, label, "")


@pytest.mark.parametrize(
    "head",
    [
        b"", b"\x89PNG", b"GIF", b"RIFF\0\0\0\0AVI ", b"\xff\xfe\x00a", b"<svg xmlns='x'/>", b"PK",
        WEBM[:-1], WEBM[:-4] + b"html", b"\x1a\x45\xdf\xa3\x9fmatroska", b"\0\0\0\x20ftypavif",
        b"\0\0\0\x20ftypheic", b"\0\0\0\x20ftyp", b"\0\0\0\x20ftyphtml",
        b"<!doctype html>", b"%PDF-1.7", *(text.encode("utf-8", "replace") for text in PAYLOADS),
    ],
)  # fmt: skip
def test_everything_else_is_bytes(head: bytes) -> None:
    assert media_of(head, len(head)).kind == "bytes"


def test_what_is_too_large_is_described_and_not_shown() -> None:
    huge = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 100_000, 100_000)
    assert media_of(huge, 1000).why == "too many pixels"
    assert media_of(PNG, MAX_BYTES + 1).why == "larger than 16 MB"
    assert media_of(b"OggS", MAX_BYTES + 1).why
    assert media_of(WEBM, MAX_BYTES + 1).why == "larger than 16 MB"


@pytest.mark.parametrize("whole", [PNG, GIF, JPEG, VP8X, VP8L, VP8])
def test_a_header_cut_short_gives_no_size_and_no_picture(whole: bytes) -> None:
    for stop in range(len(whole)):
        found = media_of(whole[:stop], stop)
        assert found.kind in ("bytes", "image")
        assert found.kind == "bytes" or found.why
    loop = media_of(b"\xff\xd8\xff\xff\xff\xff" * 5000, 30_000)
    assert loop.why == "its size in pixels is not known"


def png(width: int, height: int, size: int = 60) -> bytes:
    head = (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, height)
    )
    return head.ljust(size, b"\0")


def test_small_pictures_are_marked_and_given_as_they_are() -> None:
    values = [
        png(4, 3),
        None,
        b"<svg onload=alert(1)>",
        png(9, 9, THUMBNAIL_BYTES + 1),
        b"",
        png(5, 5),
    ]
    column = pa.array(values, pa.binary())
    assert image_marks(column) == "100001"
    found = thumbnails(column)
    assert [(one.row, one.media.mime, one.media.width, one.media.height) for one in found] == [
        (0, "image/png", 4, 3),
        (5, "image/png", 5, 5),
    ]
    assert found[0].data == values[0]
    assert image_marks(pa.array([b"abc", None])) == ""


def test_a_picture_that_would_be_huge_when_decoded_is_not_given() -> None:
    side = int(THUMBNAIL_PIXELS**0.5) + 1
    column = pa.array([png(side, side), png(0, 7), b"\xff\xd8\xff"], pa.large_binary())
    assert thumbnails(column) == []


def test_slices_and_views_are_read_in_place() -> None:
    column = pa.array([b"x", png(1, 2), png(3, 4)], pa.binary())
    assert image_marks(column.slice(1)) == "11"
    assert [one.row for one in thumbnails(column.slice(2))] == [0]
    assert image_marks(column.cast(pa.binary_view())) == "011"
