"""The deleted rows of a fragment as a picture: one byte per pixel, 0 all live to 255 all deleted.

Layout: ``to_json`` holds ``num_rows`` (stored), ``num_deleted``, ``first`` and ``stop`` (the rows
that the picture spans) and ``rows_per_pixel``; the buffer holds the pixels, row after row of the
picture in the order of the rows. A pixel with any deleted row is at least 1.

Limits: ``MAX_PIXELS`` pixels, whatever the number of rows: 100 million rows are counted where the
deletion file is, and only the picture travels. ``MAX_LISTED`` fragments are listed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.explorer.models.source import StoredSource, fragment_at
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.scan_plan import counts_of

MAX_PIXELS = 262_144
MAX_LISTED = 200
_FEW = 4_000_000


@dataclass(frozen=True, slots=True)
class DeletionBitmap:
    """A span of the rows of one fragment, as pixels."""

    num_rows: int
    num_deleted: int
    first: int
    stop: int
    rows_per_pixel: int
    pixels: bytes

    def to_json(self) -> dict[str, Any]:
        """Return the bitmap without its pixels."""
        return {
            "num_rows": self.num_rows,
            "num_deleted": self.num_deleted,
            "first": self.first,
            "stop": self.stop,
            "rows_per_pixel": self.rows_per_pixel,
            "num_pixels": len(self.pixels),
        }


def deletion_bitmap(
    dataset: StoredSource, fragment_id: int, first: int, num_rows: int, max_pixels: int
) -> DeletionBitmap:
    """Picture the rows ``[first, first + num_rows)`` of a fragment in at most ``max_pixels``."""
    snapshot = dataset.opened[1]
    fragment = fragment_at(dataset, fragment_id)
    total = num_physical_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, total)
    first = min(max(first, 0), total)
    stop = min(first + num_rows, total)
    pixels_max = max(1, min(max_pixels, MAX_PIXELS))
    rows_per_pixel = max(1, -(-(stop - first) // pixels_max))
    pixels = b""
    if stop > first:
        edges = np.append(np.arange(first, stop, rows_per_pixel, dtype=np.int64), stop)
        pixels = _shades(_deleted_between(vector, edges, total), np.diff(edges)).tobytes()
    deleted = 0 if vector is None else len(vector)
    return DeletionBitmap(total, deleted, first, stop, rows_per_pixel, pixels)


def _deleted_between(
    vector: DeletionVector | None, edges: npt.NDArray[np.int64], total: int
) -> npt.NDArray[np.int64]:
    """Count the deleted rows between neighbouring edges."""
    if vector is None:
        return np.zeros(len(edges) - 1, np.int64)
    if len(vector) <= _FEW:
        return np.diff(np.searchsorted(vector.offsets(), edges))
    mask = vector.to_mask(total)[edges[0] : edges[-1]]
    return np.add.reduceat(mask, edges[:-1] - edges[0], dtype=np.int64)


def _shades(deleted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    shades = (deleted * 255 // np.maximum(rows, 1)).astype(np.uint8)
    shades[(shades == 0) & (deleted > 0)] = 1
    return shades


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """How many rows of a fragment are deleted."""

    id: int
    rows: int
    deleted: int

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON-able values."""
        return asdict(self)


def most_deleted(dataset: StoredSource) -> list[DeletedRows]:
    """List the fragments with most deleted rows, at most ``MAX_LISTED``; none without any."""
    counts = counts_of(dataset.opened[1])
    deleted = counts.num_deleted_rows
    order = np.argsort(-deleted, kind="stable")[:MAX_LISTED]
    return [
        DeletedRows(int(counts.ids[at]), int(counts.physical_rows[at]), int(deleted[at]))
        for at in order.tolist()
        if deleted[at]
    ]
