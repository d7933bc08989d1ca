"""The fragments of a version as a strip: width is rows, height bytes per row, hatch deletions.

Layout: ``to_json`` holds ``num_fragments``, ``first`` and ``stop`` (positions in the manifest that
the bins span), ``num_bins`` and totals; each column is one little-endian float64 buffer, in this
order: ``id`` of the first fragment of a bin, ``count`` of fragments in it, ``rows`` stored,
``deleted``, ``bytes``, ``files``, ``covered`` (stored rows that every index covers; all without).

Up to ``MAX_BINS`` fragments have a bin each; of more, neighbours share one, and the browser asks
for a narrower span to see them apart. Everything comes from the manifest: no other file is read.

Limits: ``MAX_BINS`` bins, whatever the number of fragments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.explorer.models.source import StoredSource
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.scan_plan import counts_of

MAX_BINS = 4096
COLUMNS = ("id", "count", "rows", "deleted", "bytes", "files", "covered")

Values = npt.NDArray[np.float64]


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
