"""Values that tests of the explorer share: heads of media files, records of refs, staged edits."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)
GIF = b"GIF89a" + struct.pack("<HH", 3, 5)
JPEG = b"\xff\xd8\xff\xe0\0\x10" + b"JFIF" + bytes(10) + b"\xff\xc0\0\x11\x08" + struct.pack(
    ">HH", 480, 640
)  # fmt: skip
VP8X = (
    b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
)
VP8L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0/" + (639 | 479 << 14).to_bytes(4, "little")
VP8 = b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480)


def moment(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


def branch(parent: str | None, version: int, created: int = 0, **metadata: str) -> dict[str, Any]:
    return {
        "parent_branch": parent,
        "parent_version": version,
        "create_at": created,
        "metadata": metadata,
    }


def tag(on: str | None, version: int, day: int = 1, moved: int = 1) -> dict[str, Any]:
    return {
        "branch": on,
        "version": version,
        "created_at": moment(day),
        "updated_at": moment(moved),
        "metadata": {},
    }


EVERY: list[tuple[str, dict[str, Any], int | None]] = [
    ("append", {"source": "more"}, 22),
    ("delete", {"where": "id < 3"}, 17),
    ("update", {"set": {"price": "0"}, "where": "id < 3"}, 20),
    ("upsert", {"source": "more", "on": ["id"]}, 22),
    ("overwrite", {"source": "more"}, 2),
    ("add_column", {"name": "twice", "sql": "price * 2"}, 20),
    ("add_column", {"name": "empty", "type": "float16[4]"}, 20),
    ("rename_column", {"column": "price", "name": "cost"}, 20),
    ("cast_column", {"column": "id", "type": "int32"}, 20),
    ("drop_columns", {"columns": ["price"]}, 20),
    ("restore", {"version": "1"}, 20),
    ("compact", {"target_rows_per_fragment": 1000}, 20),
    ("cleanup", {"keep": 1}, None),
    ("tag", {"action": "create", "name": "v1", "ref": "1"}, None),
    ("branch", {"action": "create", "name": "dev"}, None),
]
