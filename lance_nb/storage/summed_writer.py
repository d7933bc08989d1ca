"""xxHash-128 of objects: computed while they are written, or by reading them.

A ``SummedWriter`` hashes the same pieces, in the same order, that the store is given; a store only
appends, so this is the order of the bytes in the object. A block is hashed just before it is
written, so the system copies it out of the processor's cache: hashing costs about 15 ms per GB.
(A separate thread costs twice as much, since both read memory.)

Source: xxHash 0.8 (XXH3, 128 bits, seed 0); python-xxhash releases the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lance_nb.storage.base import Buffer, ByteRange, ObjectWriter, Store

BLOCK_BYTES = 4 * 1024 * 1024
_HOT_BYTES = 1024 * 1024  # fits the cache of a core; smaller writes cost a file system more


class SummedWriter:
    """An ObjectWriter that forwards everything to another one and hashes it."""

    def __init__(self, inner: ObjectWriter, path: str) -> None:
        import xxhash

        self.path = path
        self.size_bytes = 0
        self._inner = inner
        self._sum = xxhash.xxh3_128()

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes, one after the other."""
        for block in _blocks(pieces):
            for piece in block:
                self._sum.update(piece)
                self.size_bytes += len(piece)
            self._inner.write(block)

    def finish(self) -> None:
        """Make the object appear, whole and durable."""
        self._inner.finish()

    def abort(self) -> None:
        """Drop what was written."""
        self._inner.abort()

    @property
    def digest(self) -> str:
        """The hash of what was written so far, as hex digits."""
        return self._sum.hexdigest()


def _blocks(pieces: Sequence[Buffer]) -> Iterator[list[memoryview]]:
    """Yield pieces in groups of about ``_HOT_BYTES``, those that are larger in parts."""
    block: list[memoryview] = []
    size_bytes = 0
    for piece in pieces:
        view = memoryview(piece).cast("B")
        for start in range(0, len(view), _HOT_BYTES):
            part = view[start : start + _HOT_BYTES]
            if block and size_bytes + len(part) > _HOT_BYTES:
                yield block
                block, size_bytes = [], 0
            block.append(part)
            size_bytes += len(part)
    if block:
        yield block


def stored_digest(
    store: Store, path: str, size_bytes: int, on_block: Callable[[int], object] = lambda _: None
) -> str:
    """Return the xxHash-128 of an object; ``on_block`` gets the size of each block that is read.

    Raises ObjectNotFoundError, StorageError, CorruptFileError if it is shorter than ``size_bytes``.
    """
    import xxhash

    digest = xxhash.xxh3_128()
    for start in range(0, size_bytes, BLOCK_BYTES):
        stop = min(start + BLOCK_BYTES, size_bytes)
        digest.update(store.read_range(path, ByteRange(start, stop)))
        on_block(stop - start)
    return digest.hexdigest()
