"""Deletion vectors that have been read, shared by every version of one dataset handle.

Deletion files never change. The least recently used vectors go first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.format.deletion_vector import DeletionVector

_VECTORS_MAX = 256


class DeletionCache:
    """A bounded map from a deletion file to its vector; files never change."""

    def __init__(self, vectors_max: int = _VECTORS_MAX) -> None:
        self._vectors_max = vectors_max
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], DeletionVector] = OrderedDict()

    def get(self, key: tuple[str, str]) -> DeletionVector | None:
        """Return the vector when it is known."""
        with self._lock:
            if key in self._vectors:
                self._vectors.move_to_end(key)
            return self._vectors.get(key)

    def put(self, key: tuple[str, str], vector: DeletionVector) -> None:
        """Remember a vector."""
        with self._lock:
            self._vectors[key] = vector
            while len(self._vectors) > self._vectors_max:
                self._vectors.popitem(last=False)
