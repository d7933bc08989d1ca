"""Payloads that are stored somewhere already and are copied into a new file, in bounded memory.

A writer is given objects by number; what it copies are ranges of them. Payloads up to
``COPY_BYTES`` are read in groups of about that size, larger ones piece by piece.

Limits: memory holds one group, at most twice ``COPY_BYTES`` of payloads, and the piece before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_nb.errors import InvalidInputError
from lance_nb.storage.base import ByteRange, Store

COPY_BYTES = 8 * 1024 * 1024


class StoredPayloads:
    """The objects that payloads are copied from, by number."""

    def __init__(self) -> None:
        self._objects: list[tuple[Store, str]] = []
        self._numbers: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, store: Store, path: str) -> int:
        """Return the number of an object."""
        key = (id(store), path)  # the store is kept, so its id is not used again
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._objects)
            self._objects.append((store, path))
        return number

    def read(self, number: int, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Read ``(start, stop)`` ranges of an object. Raises StorageError, CorruptFileError."""
        store, path = self._object(number)
        return store.read_ranges(path, [ByteRange(start, stop) for start, stop in ranges])

    def pieces(self, number: int, start: int, size_bytes: int) -> Iterator[memoryview]:
        """Read a range of an object piece by piece, each of at most ``COPY_BYTES``."""
        store, path = self._object(number)
        for first in range(start, start + size_bytes, COPY_BYTES):
            stop = min(first + COPY_BYTES, start + size_bytes)
            yield store.read_range(path, ByteRange(first, stop))

    def _object(self, number: int) -> tuple[Store, str]:
        if number >= len(self._objects):
            raise InvalidInputError(
                f"a blob refers to stored object {number} of {len(self._objects)}"
            )
        return self._objects[number]
