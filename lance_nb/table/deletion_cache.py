"""Deletion vectors that have been read, shared by every version of one dataset handle.

Deletion files never change. The least recently used vectors go first; how many rows a vector
deletes stays known for longer, as it is a number.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.format.deletion_vector import DeletionVector

_VECTORS_MAX = 256
_LENGTHS_MAX = 200_000


class DeletionCache:
    """A bounded map from a deletion file to its vector; files never change."""

    def __init__(self, vectors_max: int = _VECTORS_MAX) -> None:
        self._vectors_max = vectors_max
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], DeletionVector] = OrderedDict()
        self._lengths: dict[tuple[str, str], int] = {}

    def get(self, key: tuple[str, str]) -> DeletionVector | None:
        """Return the vector when it is known."""
        with self._lock:
            if key in self._vectors:
                self._vectors.move_to_end(key)
            return self._vectors.get(key)

    def length(self, key: tuple[str, str]) -> int | None:
        """Return how many rows a vector deletes, when it has been read once."""
        with self._lock:
            return self._lengths.get(key)

    def put(self, key: tuple[str, str], vector: DeletionVector) -> None:
        """Remember a vector."""
        with self._lock:
            self._vectors[key] = vector
            if len(self._lengths) >= _LENGTHS_MAX:
                self._lengths.clear()
            self._lengths[key] = len(vector)
            while len(self._vectors) > self._vectors_max:
                self._vectors.popitem(last=False)

    def size_bytes(self) -> int:
        """Return about how many bytes the vectors hold."""
        with self._lock:
            return sum(vector.size_bytes for vector in self._vectors.values())
