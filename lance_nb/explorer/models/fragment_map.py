"""Draw the fragments of a version as bins, and the deleted rows of a fragment as pixels.

Layout of a map: ``to_json`` holds ``num_fragments``, ``first`` and ``stop`` (positions in the
manifest that the bins span), ``num_bins`` and totals; each column is one little-endian float64
buffer, in this order: ``id`` of the first fragment of a bin, ``count`` of fragments in it, ``rows``
stored, ``deleted``, ``bytes``, ``files``, ``covered`` (stored rows that every index covers; all if
there is no index). Up to ``MAX_BINS`` fragments have a bin each; of more, neighbors share one, and
the browser requests a narrower span to show them separately. All of it comes from the manifest.

Layout of a deletion bitmap: ``to_json`` holds ``num_rows`` (stored), ``num_deleted``, ``first`` and
``stop`` (the rows that the pixels span) and ``rows_per_pixel``; the buffer holds one byte per pixel
in row order, 0 (no row deleted) to 255 (all deleted). A pixel with any deleted row is at least 1.

Limits: ``MAX_BINS`` bins and ``MAX_PIXELS`` pixels, whatever the number of fragments and rows: the
rows are counted in the kernel. ``MAX_LISTED`` fragments are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.explorer.models.source import StoredSource, fragment_at
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.scan_tasks import counts_of

MAX_BINS = 4096
COLUMNS = ("id", "count", "rows", "deleted", "bytes", "files", "covered")

Values = npt.NDArray[np.float64]
MAX_PIXELS = 262_144
MAX_LISTED = 200
_FEW = 4_000_000


@dataclass(frozen=True, slots=True)
class FragmentMap:
    """A span of fragments, as bins."""

    num_fragments: int
    first: int
    stop: int
    totals: dict[str, int | None]
    columns: tuple[Values, ...]

    @property
    def buffers(self) -> tuple[bytes, ...]:
        """One buffer per column."""
        return tuple(column.astype("<f8").tobytes() for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """Return the map without its columns."""
        return {
            "num_fragments": self.num_fragments,
            "first": self.first,
            "stop": self.stop,
            "num_bins": len(self.columns[0]),
            "totals": self.totals,
        }


def fragment_map(dataset: StoredSource, first: int = 0, stop: int | None = None) -> FragmentMap:
    """Bin the fragments at positions ``[first, stop)`` of the manifest."""
    counts = counts_of(dataset.opened[1])
    total = len(counts.ids)
    stop = total if stop is None else min(stop, total)
    first = max(0, min(first, stop))
    indices = covered_ids(dataset)
    covered = np.where(covered_mask(indices, counts.ids), counts.physical_rows, 0)
    edges = _edges(first, stop)
    sums = [
        _sum(column, edges)
        for column in (
            counts.physical_rows,
            counts.num_deleted_rows,
            counts.size_bytes,
            counts.num_data_files,
            covered,
        )
    ]
    columns = (counts.ids[edges[:-1]].astype(np.float64), np.diff(edges).astype(np.float64), *sums)
    return FragmentMap(
        total, first, stop, _totals(counts, covered) | {"indices": len(indices)}, columns
    )


def _edges(first: int, stop: int) -> npt.NDArray[np.int64]:
    bins = min(stop - first, MAX_BINS)
    return np.linspace(first, stop, bins + 1).astype(np.int64)


def _sum(column: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> Values:
    before = np.concatenate(([0], np.cumsum(column)))
    return np.diff(before[edges]).astype(np.float64)


def _totals(counts: FragmentCounts, covered: npt.NDArray[np.int64]) -> dict[str, int | None]:
    is_unsized = (counts.size_bytes == 0) & (counts.num_data_files > 0)
    return {
        "rows": int(counts.physical_rows.sum()),
        "deleted": int(counts.num_deleted_rows.sum()),
        "bytes": None if is_unsized.any() else int(counts.size_bytes.sum()),
        "files": int(counts.num_data_files.sum()),
        "covered": int(covered.sum()),
    }


def covered_mask(
    indices: Mapping[str, set[int]], ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Tell for each fragment whether every index covers it; True where there is no index."""
    mask = np.ones(len(ids), np.bool_)
    for covered in indices.values():
        mask &= np.isin(ids, np.fromiter(covered, np.int64, len(covered)))
    return mask


def covered_ids(dataset: StoredSource) -> dict[str, set[int]]:
    """Return the ids of the fragments that each index covers, its segments taken together."""
    found: dict[str, set[int]] = {}
    for index in dataset.list_indices():
        if index["fragment_ids"] is not None:
            found.setdefault(index["name"], set()).update(index["fragment_ids"])
    return found


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
