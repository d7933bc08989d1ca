"""xxHash-128 of objects: taken while they are written, or of what is there.

The sum is taken of the same pieces, in the same order, that the store is handed; a store only
appends, so this is the order of the bytes in the object.

Source: xxHash 0.8 (XXH3, 128 bits, seed 0); python-xxhash lets other threads run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lance_nb.storage.base import Buffer, ByteRange, ObjectWriter, Store
from lance_nb.storage.threads import begin

BLOCK_BYTES = 4 * 1024 * 1024
_BESIDE_BYTES = 256 * 1024  # from here on a thread takes the sum while the store writes


class SummedWriter:
    """An ObjectWriter that hands everything to another one, and sums it up."""

    def __init__(self, inner: ObjectWriter, path: str) -> None:
        import xxhash

        self.path = path
        self.size_bytes = 0
        self._inner = inner
        self._sum = xxhash.xxh3_128()

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes, one after the other."""
        size_bytes = sum(len(one) for one in pieces)
        self.size_bytes += size_bytes
        beside = begin(partial(self._add, pieces)) if size_bytes >= _BESIDE_BYTES else None
        try:
            self._inner.write(pieces)
        finally:
            # Pieces may change when this returns; a sum that waits for a thread is taken here.
            if beside is None or beside.cancel():
                self._add(pieces)
            else:
                beside.result()

    def _add(self, pieces: Sequence[Buffer]) -> None:
        for piece in pieces:
            self._sum.update(piece)

    def finish(self) -> None:
        """Make the object appear, whole and durable."""
        self._inner.finish()

    def abort(self) -> None:
        """Drop what was written."""
        self._inner.abort()

    @property
    def digest(self) -> str:
        """The sum of what was written so far, as hex digits."""
        return self._sum.hexdigest()


def stored_digest(
    store: Store, path: str, size_bytes: int, told: Callable[[int], object] = lambda _: None
) -> str:
    """Return the xxHash-128 of an object, read in blocks; ``told`` is called with sizes of blocks.

    Raises ObjectNotFoundError, StorageError, CorruptFileError if it is shorter than ``size_bytes``.
    """
    import xxhash

    found = xxhash.xxh3_128()
    for start in range(0, size_bytes, BLOCK_BYTES):
        stop = min(start + BLOCK_BYTES, size_bytes)
        found.update(store.read_range(path, ByteRange(start, stop)))
        told(stop - start)
    return found.hexdigest()
