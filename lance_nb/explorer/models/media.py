"""Pictures and sounds in cells: what they are by their first bytes, and their bytes in pieces.

Only what the first bytes prove is named: PNG, JPEG, GIF, WebP; WAV, MP3, OGG, FLAC. Text that a
browser could run (SVG, HTML) is never one of them, whatever a column or a file name says.

Limits: ``MAX_BYTES`` of a value are shown, ``PIECE_BYTES`` travel at a time; a picture that says it
has more than ``MAX_PIXELS`` pixels, or does not say, is not drawn.
Source: the formats' own headers.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass
from typing import Any

MAX_BYTES = 16_000_000
PIECE_BYTES = 700_000
MAX_PIXELS = 50_000_000
HEAD_BYTES = 65_536
# Markers of a JPEG's frame header; 0xC4, 0xC8 and 0xCC are something else.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


@dataclass(frozen=True, slots=True)
class Media:
    """What a value is: ``kind`` image, audio or bytes; ``why`` says why it is not shown."""

    kind: str
    mime: str
    label: str
    width: int = 0
    height: int = 0
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self)


def media_of(head: bytes, size_bytes: int) -> Media:
    """Tell what a value of ``size_bytes`` is by its first bytes (``HEAD_BYTES`` are enough)."""
    found = _image(head) or _audio(head)
    if found is None:
        return Media("bytes", "application/octet-stream", "bytes")
    if size_bytes > MAX_BYTES:
        return _refused(found, f"larger than {MAX_BYTES // 1_000_000} MB")
    pixels = found.width * found.height
    if found.kind == "image" and not 0 < pixels <= MAX_PIXELS:
        return _refused(
            found, "its size in pixels is not known" if not pixels else "too many pixels"
        )
    return found


def _refused(found: Media, why: str) -> Media:
    return Media(found.kind, found.mime, found.label, found.width, found.height, why)


def _image(head: bytes) -> Media | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        known = head[12:16] == b"IHDR" and len(head) >= 24
        return _picture("PNG", *(struct.unpack(">II", head[16:24]) if known else (0, 0)))
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return _picture("GIF", *(struct.unpack("<HH", head[6:10]) if len(head) >= 10 else (0, 0)))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _picture("WebP", *_webp_size(head))
    if head.startswith(b"\xff\xd8\xff"):
        return _picture("JPEG", *_jpeg_size(head))
    return None


def _picture(name: str, width: int, height: int) -> Media:
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
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        length = 0 if marker == 0xFF else int.from_bytes(head[at + 2 : at + 4], "big") + 1
        at += 1 + length
    return 0, 0


def _audio(head: bytes) -> Media | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return Media("audio", "audio/wav", "WAV")
    if head[:4] == b"fLaC":
        return Media("audio", "audio/flac", "FLAC")
    if head[:4] == b"OggS":
        return Media("audio", "audio/ogg", "OGG")
    frame = len(head) >= 4 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0
    layer = frame and (head[1] >> 1 & 3) == 1 and head[2] >> 4 != 15 and (head[2] >> 2 & 3) != 3
    return Media("audio", "audio/mpeg", "MP3") if head[:3] == b"ID3" or layer else None
