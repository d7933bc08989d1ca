"""Vectors stored as they are; of length one where the metric is cosine.

Column ``flat``: a fixed-size list of the type of the vectors.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_nb.indices.vectors.stored_vectors import Floats, Matrix, Settings
from lance_nb.table.nearest import distances

COLUMN = "flat"


class FlatVectors:
    """The vectors themselves."""

    is_transposed = False

    def __init__(self, settings: Settings) -> None:
        self.width = settings.dimension
        self._metric = settings.metric

    def encode(self, vectors: Floats, partitions: npt.NDArray[np.int64]) -> Matrix:
        """Return the vectors."""
        return vectors

    def distances(
        self, query: Floats, partitions: Sequence[int], rows: Sequence[Matrix]
    ) -> list[npt.NDArray[np.float32]]:
        """Compute exact distances."""
        return [distances(part, query, self._metric) for part in rows]
