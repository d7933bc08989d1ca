"""Where a data file's bytes come from: a mapped local file, or ranges of a remote object.

A mapped file hands out views and never copies. A remote one reads its tail once (which for small
files is the whole file) and then the ranges it is asked for, coalesced by the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_nb.encodings.base import Bytes
from lance_nb.errors import CorruptFileError
from lance_nb.storage import meter
from lance_nb.storage.base import ByteRange, Store, read_marked_tail

_TAIL_BYTES = 64 * 1024
_MEMORY_PAGE_BYTES = 4096


class FileSource:
    """The bytes of one immutable data file; ``mapped`` is the mapping of a local one.

    ``path`` is the whole path, root included, as errors name it. ``known_size_bytes`` is what a
    manifest says (0: not known); ``size_bytes`` is what the file has.
    """

    def __init__(self, store: Store, path: str, known_size_bytes: int = 0) -> None:
        self.path = store.uri + "/" * (not store.uri.endswith("/")) + path
        self._path = path
        self._store = store
        self.mapped = mapped = store.map(path)
        self.is_mapped = mapped is not None
        if mapped is not None:
            self._tail, self.size_bytes = mapped, len(mapped)
        else:
            self._tail, self.size_bytes, _ = read_marked_tail(
                store, path, _TAIL_BYTES, known_size_bytes
            )
        self._tail_start = self.size_bytes - len(self._tail)

    def tail(self, size_bytes: int) -> memoryview:
        """Return the last ``size_bytes`` bytes (fewer when the file is shorter)."""
        return self.view(max(0, self.size_bytes - size_bytes), self.size_bytes)

    def view(self, start: int, stop: int) -> memoryview:
        """Return bytes ``[start, stop)`` of the file. Raises CorruptFileError outside of it."""
        self._check(start, stop)
        if self.is_mapped:
            meter.count(stop - start)
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : stop - self._tail_start]
        return self._store.read_range(self._path, ByteRange(start, stop))

    def arrays(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return each range as a uint8 array, reading all that is missing in one go."""
        arrays: list[Bytes | None] = []
        missing: list[ByteRange] = []
        for start, stop in ranges:
            self._check(start, stop)
            if start >= self._tail_start:
                piece = self._tail[start - self._tail_start : stop - self._tail_start]
                arrays.append(np.frombuffer(piece, np.uint8))
            else:
                arrays.append(None)
                missing.append(ByteRange(start, stop))
        if self.is_mapped:
            meter.count(sum(stop - start for start, stop in ranges), len(ranges))
        if missing:
            fetched = iter(self._store.read_ranges(self._path, missing))
            return [
                np.frombuffer(next(fetched), np.uint8) if piece is None else piece
                for piece in arrays
            ]
        return [piece for piece in arrays if piece is not None]

    def views(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return ranges of a mapped file; what is read of them is counted by ``count_view``."""
        for start, stop in ranges:
            self._check(start, stop)
        return [np.frombuffer(self._tail[start:stop], np.uint8) for start, stop in ranges]

    @staticmethod
    def count_view(size_bytes: int, wanted_bytes: int, requests: int) -> None:
        """Count a look into ``size_bytes`` of a mapped file of which a share is wanted.

        The system reads a mapped file by pages of memory: what is wanted is rounded up to them.
        """
        num_bytes = -(-wanted_bytes // _MEMORY_PAGE_BYTES) * _MEMORY_PAGE_BYTES
        meter.count(min(size_bytes, num_bytes), requests)

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.size_bytes:
            raise CorruptFileError(
                self.path, start, f"bytes inside the file ({self.size_bytes})", f"up to {stop}"
            )
