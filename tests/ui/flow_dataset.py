"""A small dataset with something for every view, by pylance or by us with the same calls."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROWS, FILE_ROWS = 600, 200
NEWEST = 8


def png(width: int, height: int, red: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    lines = (b"\0" + bytes((red, 90, 160)) * width) * height
    body = chunk(b"IDAT", zlib.compress(lines))
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


def rows(start: int, count: int) -> pa.Table:
    """Numbers with nulls, texts, pictures, vectors, nested values."""
    ids = range(start, start + count)
    vectors = np.sin(np.arange(start * 8, (start + count) * 8, dtype=np.float32) / 9)
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "label": [("cat", "dog", "bird")[n % 3] for n in ids],
        "score": [None if n % 10 == 7 else n % 100 / 100 for n in ids],
        "picture": [png(40, 30, n % 256) for n in ids],
        "vector": pa.FixedSizeListArray.from_arrays(vectors, 8),
        "who": [{"name": f"n{n}", "seen": [n, n + 1]} for n in ids],
        "note": [f"note {n}" for n in ids],
    })  # fmt: skip


def write_flows(engine: Any, path: Path) -> Any:
    """Write eight versions, three tags and a branch with ``engine`` (lance or lance_nb)."""
    uri = str(path)
    shutil.rmtree(path, ignore_errors=True)  # a test that runs again begins anew
    options = {"enable_stable_row_ids": True, "max_rows_per_file": FILE_ROWS}
    engine.write_dataset(rows(0, ROWS), uri, **options)
    engine.write_dataset(rows(ROWS, FILE_ROWS), uri, mode="append")
    dataset = engine.dataset(uri)
    dataset.update({"label": "'fox'"}, where="id % 50 = 0")
    dataset.delete("id >= 200 AND id < 260")
    dataset.add_columns({"double": "score * 2"})
    dataset.update_config({"team": "vision"})
    engine.write_dataset(rows(800, 100), uri, mode="append")
    dataset = engine.dataset(uri)
    dataset.drop_columns(["note"])
    for name, version in (("imported", 2), ("second-jury", 7), ("reviewed", NEWEST)):
        dataset.tags.create(name, version)
    dataset.create_branch("dev", 4).delete("id < 10")
    return dataset
