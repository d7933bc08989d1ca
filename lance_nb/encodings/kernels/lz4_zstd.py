"""LZ4 and Zstandard on many small buffers; when decompressing, every claimed size is checked first.

Layout: LZ4: u32 size of the content, then one LZ4 block. Zstandard: u64 size of the content, then
one frame; very old files have the bare frame, known by its magic number.
Limits: neither format can expand more than a known factor, so a larger claim is refused, and all
buffers of one call together stay below ``MOST_BYTES``. A buffer to compress has less than 2 GiB.
Source: measured on files of pylance 14.0.2; the ratios follow from the two formats.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import corrupt
from lance_nb.encodings.kernels.memory import allocate
from lance_nb.encodings.kernels.ranges import starts_of

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Decompress = Callable[[memoryview, int], bytes]

MOST_BYTES = (1 << 31) - 1
_LZ4_RATIO = 255  # one byte of a match length stands for at most 255 bytes
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK_BYTES = 1 << 17  # a block expands to at most 128 KiB ...
_ZSTD_LEAST_BLOCK = 4  # ... and takes a header of three bytes and at least one of content
Compress = Callable[[memoryview], bytes]
_ZSTD_LEVEL = 3  # 0 means that too


def decompress_lz4(data: Bytes, starts: Ints, sizes: Ints) -> tuple[Bytes, Ints]:
    """Return the contents of all buffers back to back, and the size of each."""
    import lz4.block

    view = data.data
    heads = [_lz4_head(view[a : a + n]) for a, n in _pairs(starts, sizes)]

    def decompress(source: memoryview, size: int) -> bytes:
        try:
            content: bytes = lz4.block.decompress(source, uncompressed_size=size)
        except lz4.block.LZ4BlockError as error:
            raise corrupt("an LZ4 block", str(error)) from error
        return content

    return _decompress_all(view, starts, sizes, heads=heads, decompress=decompress)


def decompress_zstd(data: Bytes, starts: Ints, sizes: Ints) -> tuple[Bytes, Ints]:
    """Return the contents of all buffers back to back, and the size of each."""
    import zstandard

    view = data.data
    decompressor = zstandard.ZstdDecompressor()
    heads = [_zstd_head(view[a : a + n]) for a, n in _pairs(starts, sizes)]

    def decompress(source: memoryview, size: int) -> bytes:
        try:
            declared = zstandard.get_frame_parameters(source).content_size
            if declared not in {zstandard.CONTENTSIZE_UNKNOWN, size}:
                raise corrupt(f"a Zstandard frame of {size} bytes", f"{declared} bytes")
            return decompressor.decompress(source, max_output_size=size)
        except zstandard.ZstdError as error:
            raise corrupt("a Zstandard frame", str(error)) from error

    return _decompress_all(view, starts, sizes, heads=heads, decompress=decompress)


def _pairs(starts: Ints, sizes: Ints) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), sizes.tolist(), strict=True))


def _lz4_head(source: memoryview) -> tuple[int, int]:
    """Return the bytes of the header and the size of the content."""
    if not source:
        return 0, 0
    if len(source) < 4:
        raise corrupt("an LZ4 buffer with its size", f"{len(source)} bytes")
    (size,) = struct.unpack_from("<I", source)
    most = (len(source) - 4) * _LZ4_RATIO
    if size > most:
        raise corrupt(f"LZ4 content of at most {most} bytes", f"{size} bytes")
    return 4, size


def _zstd_head(source: memoryview) -> tuple[int, int]:
    """Return the bytes of the header and the size of the content."""
    if not source:
        return 0, 0
    if source[:4] == _ZSTD_MAGIC:
        return 0, _bare_size(source)
    if len(source) < 8:
        raise corrupt("a Zstandard buffer with its size", f"{len(source)} bytes")
    (size,) = struct.unpack_from("<Q", source)
    most = (len(source) // _ZSTD_LEAST_BLOCK + 1) * _ZSTD_BLOCK_BYTES
    if size > most:
        raise corrupt(f"Zstandard content of at most {most} bytes", f"{size} bytes")
    return 8, size


def _bare_size(source: memoryview) -> int:
    """Measure the content of a frame that may not say its size, in bounded memory."""
    import zstandard

    total = 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(source) as reader:
            while total <= MOST_BYTES and (piece := reader.read(_ZSTD_BLOCK_BYTES)):
                total += len(piece)
    except zstandard.ZstdError as error:
        raise corrupt("a Zstandard frame", str(error)) from error
    return total


def _decompress_all(
    data: memoryview,
    starts: Ints,
    sizes: Ints,
    heads: list[tuple[int, int]],
    decompress: Decompress,
) -> tuple[Bytes, Ints]:
    ends = starts_of(np.array([size for _, size in heads], np.int64))
    if int(ends[-1]) > MOST_BYTES:
        raise corrupt(f"at most {MOST_BYTES} bytes in a page", f"{int(ends[-1])} bytes")
    out = allocate(int(ends[-1]))
    target = out.data
    position = 0
    for (start, length), (skip, size) in zip(_pairs(starts, sizes), heads, strict=True):
        if size == 0:
            continue
        content = decompress(data[start + skip : start + length], size)
        if len(content) != size:
            raise corrupt(f"{size} bytes of content", f"{len(content)} bytes")
        target[position : position + size] = content
        position += size
    return out, np.diff(ends)


def compress_lz4(data: Bytes, starts: Ints, sizes: Ints, _level: int | None) -> tuple[Bytes, Ints]:
    """Return the compressed buffers back to back, and the size of each; LZ4 has no levels."""
    import lz4.block

    def compress(source: memoryview) -> bytes:
        compressed: bytes = lz4.block.compress(source, store_size=True)
        return compressed

    return _compress_all(data, starts, sizes, compress)


def compress_zstd(data: Bytes, starts: Ints, sizes: Ints, level: int | None) -> tuple[Bytes, Ints]:
    """Return the compressed buffers back to back, and the size of each."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=level or _ZSTD_LEVEL)

    def compress(source: memoryview) -> bytes:
        return struct.pack("<Q", len(source)) + compressor.compress(source)

    return _compress_all(data, starts, sizes, compress)


def _compress_all(data: Bytes, starts: Ints, sizes: Ints, compress: Compress) -> tuple[Bytes, Ints]:
    view = data.data
    places = zip(starts.tolist(), sizes.tolist(), strict=True)
    pieces = [compress(view[start : start + size]) for start, size in places]
    out = np.frombuffer(b"".join(pieces), np.uint8)
    return out, np.diff(starts_of(np.array([len(piece) for piece in pieces], np.int64)))
