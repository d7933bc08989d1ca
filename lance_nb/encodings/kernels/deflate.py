"""Compress many small buffers with LZ4 or Zstandard: the mirror of ``kernels.inflate``.

Layout: LZ4: u32 size of the content, then one LZ4 block. Zstandard: u64 size of the content, then
one frame.
Limits: a buffer has less than 2 GiB. Source: files of pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels.ranges import starts_of

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Deflate = Callable[[memoryview], bytes]

_ZSTD_LEVEL = 3  # 0 means that too


def deflate_lz4(data: Bytes, starts: Ints, sizes: Ints, _level: int | None) -> tuple[Bytes, Ints]:
    """Return the compressed buffers back to back, and the size of each; LZ4 has no levels."""
    import lz4.block

    def deflate(source: memoryview) -> bytes:
        compressed: bytes = lz4.block.compress(source, store_size=True)
        return compressed

    return _deflate_all(data, starts, sizes, deflate)


def deflate_zstd(data: Bytes, starts: Ints, sizes: Ints, level: int | None) -> tuple[Bytes, Ints]:
    """Return the compressed buffers back to back, and the size of each."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=level or _ZSTD_LEVEL)

    def deflate(source: memoryview) -> bytes:
        return struct.pack("<Q", len(source)) + compressor.compress(source)

    return _deflate_all(data, starts, sizes, deflate)


def _deflate_all(data: Bytes, starts: Ints, sizes: Ints, deflate: Deflate) -> tuple[Bytes, Ints]:
    view = data.data
    places = zip(starts.tolist(), sizes.tolist(), strict=True)
    pieces = [deflate(view[start : start + size]) for start, size in places]
    out = np.frombuffer(b"".join(pieces), np.uint8)
    return out, np.diff(starts_of(np.array([len(piece) for piece in pieces], np.int64)))
