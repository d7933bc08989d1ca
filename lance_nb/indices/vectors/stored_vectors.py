"""How the vectors of one segment are stored: as they are, or coded.

``StoredVectors`` is the protocol of ``flat``, ``product`` and ``scalar``. A partition is a matrix
with the bytes (or numbers) of a row for each vector, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

Floats = npt.NDArray[Any]
Matrix = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the files of a segment say of all vectors together.

    ``centroids`` is a matrix with a row for each partition; ``storage`` are the settings of the
    way in which vectors are stored; ``path`` is the file that holds them.
    """

    path: str
    metric: str
    centroids: Floats
    storage: dict[str, Any]

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.centroids.shape[1])

    def number(self, name: str, least: float, most: float) -> float:
        """Return a number among the settings. Raises CorruptFileError."""
        value = self.storage.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CorruptFileError(self.path, None, f"a number {name!r}", str(value)[:40])
        if not least <= value <= most:
            raise CorruptFileError(
                self.path, None, f"{name} from {least:g} to {most:g}", str(value)
            )
        return value


class StoredVectors(Protocol):
    """Computes what is stored of vectors, and distances from that."""

    width: int
    """Values of a row of the column."""

    is_transposed: bool
    """Whether a partition has the first byte of every vector first, then the second, and so on."""

    def encode(self, vectors: Floats, partitions: npt.NDArray[np.int64]) -> Matrix:
        """Return a row for each vector, given the partition of each."""
        ...

    def distances(
        self, query: Floats, partitions: Sequence[int], rows: Sequence[Matrix]
    ) -> list[npt.NDArray[np.float32]]:
        """Return the distance of every row of some partitions to a query.

        ``query`` has length one if the metric is cosine.
        """
        ...
