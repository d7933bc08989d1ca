"""Recognize images, sounds and films in binary values, and select the small images for the grid.

Only what the first bytes prove is named: PNG, JPEG, GIF, WebP; WAV, MP3, OGG, FLAC, M4A; MP4, WebM,
OGV. Text that a browser could run (SVG, HTML) is never recognized, whatever a column or a file name
says. Whether a browser has the codec of a film is known when it tries.

A page of rows only marks which values are small images (``image_marks``); the bytes of those in
view are requested separately, a few at a time (``thumbnails``). The kernel does not decode or scale
them: the browser does.

Limits: ``MAX_BYTES`` of a value are shown, ``PIECE_BYTES`` travel at a time; an image with more
than ``MAX_PIXELS`` pixels, or of unknown size, is not drawn. A thumbnail has at most
``THUMBNAIL_BYTES`` and ``THUMBNAIL_PIXELS``; a request covers ``THUMBNAIL_ROWS`` rows.
Source: the formats' own headers.
"""

from __future__ import annotations

import base64
import struct
from typing import Any

import pyarrow as pa

from lance_nb.explorer.arrow_buffers import heads_of
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.value_classes import dataclass

MAX_BYTES = 16_000_000
PIECE_BYTES = 700_000
MAX_PIXELS = 50_000_000
HEAD_BYTES = 65_536
# Markers of a JPEG's frame header; 0xC4, 0xC8 and 0xCC are something else.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
THUMBNAIL_ROWS = 12
THUMBNAIL_BYTES = 64_000
THUMBNAIL_PIXELS = 4_000_000
_MARK_BYTES = 32
# Brands of ISO base media files: films and sounds, not the pictures HEIC and AVIF.
_FILMS = frozenset(
    {b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"av01",
     b"M4V ", b"M4VP", b"dash", b"MSNV", b"3gp4", b"3gp5"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Media(JsonFields):
    """The media type of a value: ``kind`` image, audio, video or bytes; ``why`` it is not shown."""

    kind: str
    mime: str
    label: str
    width: int = 0
    height: int = 0
    why: str = ""


def media_of(head: bytes, size_bytes: int) -> Media:
    """Recognize a value of ``size_bytes`` by its first bytes (``HEAD_BYTES`` are enough)."""
    media = _image(head) or _video(head) or _audio(head)
    if media is None:
        return Media("bytes", "application/octet-stream", "bytes")
    if size_bytes > MAX_BYTES:
        return _refused(media, f"larger than {MAX_BYTES // 1_000_000} MB")
    pixels = media.width * media.height
    if media.kind == "image" and not 0 < pixels <= MAX_PIXELS:
        return _refused(
            media, "its size in pixels is not known" if not pixels else "too many pixels"
        )
    return media


def _refused(media: Media, why: str) -> Media:
    return Media(media.kind, media.mime, media.label, media.width, media.height, why)


def _image(head: bytes) -> Media | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        is_complete = head[12:16] == b"IHDR" and len(head) >= 24
        return _image_media("PNG", *(struct.unpack(">II", head[16:24]) if is_complete else (0, 0)))
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return _image_media(
            "GIF", *(struct.unpack("<HH", head[6:10]) if len(head) >= 10 else (0, 0))
        )
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _image_media("WebP", *_webp_size(head))
    if head.startswith(b"\xff\xd8\xff"):
        return _image_media("JPEG", *_jpeg_size(head))
    return None


def _image_media(name: str, width: int, height: int) -> Media:
    size = f" {width} × {height}" if width and height else ""
    return Media("image", f"image/{name.lower()}", f"{name}{size}", width, height)


def _webp_size(head: bytes) -> tuple[int, int]:
    form = head[12:16]
    if form == b"VP8X" and len(head) >= 30:
        width = int.from_bytes(head[24:27], "little") + 1
        return width, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 " and len(head) >= 30:
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _jpeg_size(head: bytes) -> tuple[int, int]:
    position = 2
    while position + 9 <= len(head) and head[position] == 0xFF:
        marker = head[position + 1]
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", head[position + 5 : position + 9])
            return width, height
        length = (
            0 if marker == 0xFF else int.from_bytes(head[position + 2 : position + 4], "big") + 1
        )
        position += 1 + length
    return 0, 0


def _video(head: bytes) -> Media | None:
    if head[4:8] == b"ftyp" and head[8:12] in _FILMS:
        return Media("video", "video/mp4", "MP4")
    if head.startswith(b"\x1a\x45\xdf\xa3") and b"\x42\x82\x84webm" in head[:64]:
        return Media("video", "video/webm", "WebM")
    if head[:4] == b"OggS" and head[28:35] == b"\x80theora":
        return Media("video", "video/ogg", "OGV")
    return None


def _audio(head: bytes) -> Media | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return Media("audio", "audio/wav", "WAV")
    if head[:4] == b"fLaC":
        return Media("audio", "audio/flac", "FLAC")
    if head[4:12] in (b"ftypM4A ", b"ftypM4B "):
        return Media("audio", "audio/mp4", "M4A")
    if head[:4] == b"OggS":
        return Media("audio", "audio/ogg", "OGG")
    frame = len(head) >= 4 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0
    layer = frame and (head[1] >> 1 & 3) == 1 and head[2] >> 4 != 15 and (head[2] >> 2 & 3) != 3
    return Media("audio", "audio/mpeg", "MP3") if head[:3] == b"ID3" or layer else None


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """One image: the position of its row, its media type, its bytes."""

    row: int
    media: Media
    data: bytes

    def to_json(self, first_row: int) -> dict[str, Any]:
        """Return what a page needs beside the bytes; ``first_row`` is that of the column."""
        size = {"width": self.media.width, "height": self.media.height}
        return {"at": first_row + self.row, "mime": self.media.mime, **size}

    @property
    def base64(self) -> str:
        """The bytes as text."""
        return base64.b64encode(self.data).decode()


def image_marks(column: pa.Array) -> str:
    """Return "1" for every binary value that is a small image and "0" for others; "" if none is.

    The size in pixels is checked when the image is requested.
    """
    heads = heads_of(column, _MARK_BYTES)
    marks = "".join(
        "1"
        if head is not None and head[1] <= THUMBNAIL_BYTES and media_of(*head).kind == "image"
        else "0"
        for head in heads
    )
    return marks if "1" in marks else ""


def thumbnails(column: pa.Array) -> list[Thumbnail]:
    """Return the small images among binary values, as they are stored."""
    images = []
    for row, value in enumerate(heads_of(column, THUMBNAIL_BYTES + 1)):
        if value is None or value[1] > THUMBNAIL_BYTES:
            continue
        media = media_of(*value)
        if (
            media.kind == "image"
            and not media.why
            and media.width * media.height <= THUMBNAIL_PIXELS
        ):
            images.append(Thumbnail(row, media, value[0]))
    return images
