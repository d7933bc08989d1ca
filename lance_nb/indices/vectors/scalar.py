"""Scalar quantization: each number of a vector is a byte between two bounds.

Column ``__sq_code``: a fixed-size list of uint8, as many as a vector has numbers. A number x has
the code ``(x - start) * 255 / (end - start)``, cut to a whole number from 0 to 255. Distances are
those of the codes, scaled (for dot: of the query and the numbers that codes stand for). Where the
metric is cosine, vectors have length one before they are coded, and the distance is the squared
Euclidean one.
Source: files and answers of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError
from lance_nb.indices.vectors.stored_vectors import Floats, Matrix, Settings

COLUMN = "__sq_code"
_LEVELS = 255
_BLOCK_VALUES = 1 << 20


class ScalarCodes:
    """Bytes between two bounds."""

    is_transposed = False

    def __init__(self, settings: Settings) -> None:
        self.width = settings.dimension
        self._metric = settings.metric
        settings.number("num_bits", 8, 8)
        bounds = settings.storage.get("bounds")
        inner = Settings(
            settings.path, "", settings.centroids, bounds if isinstance(bounds, dict) else {}
        )
        self._start = inner.number("start", -1e300, 1e300)
        self._end = inner.number("end", -1e300, 1e300)
        if self._end < self._start:
            raise CorruptFileError(settings.path, None, "bounds in order", str(bounds)[:80])

    def encode(
        self, vectors: Floats, partitions: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.uint8]:
        """Return the codes of vectors."""
        scale = _LEVELS / (self._end - self._start) if self._end > self._start else 0.0
        codes = (vectors.astype(np.float64) - self._start) * scale
        return np.clip(codes, 0, _LEVELS).astype(np.uint8)

    def distances(
        self, query: Floats, partitions: Sequence[int], rows: Sequence[Matrix]
    ) -> list[npt.NDArray[np.float32]]:
        """Compare codes with the code of the query, or with the query itself for dot."""
        step = (self._end - self._start) / _LEVELS
        if self._metric == "dot":
            constant = 1.0 - self._start * float(query.sum(dtype=np.float64))
            return [self._of(part, query.astype(np.float32), step, constant) for part in rows]
        code = self.encode(query).astype(np.float32)
        return [self._of(part, code, step * step, 0.0) for part in rows]

    def _of(
        self, rows: Matrix, compared: Floats, scale: float, constant: float
    ) -> npt.NDArray[np.float32]:
        distances = np.empty(len(rows), np.float32)
        size = max(_BLOCK_VALUES // self.width, 1)
        for start in range(0, len(rows), size):
            block = rows[start : start + size].astype(np.float32)
            if self._metric == "dot":
                distances[start : start + size] = constant - (block @ compared) * scale
            else:
                block -= compared
                distances[start : start + size] = np.einsum("ij,ij->i", block, block) * scale
        return distances
