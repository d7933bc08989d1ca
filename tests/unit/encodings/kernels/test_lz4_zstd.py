"""Compressing and decompressing many buffers."""

from __future__ import annotations

import struct

import lz4.block
import numpy as np
import pytest
import zstandard

from lance_nb.encodings.kernels import lz4_zstd
from lance_nb.errors import CorruptFileError


def laid_out(*parts: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([len(part) for part in parts], np.int64)
    raw = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    return raw, np.cumsum(sizes) - sizes, sizes


def test_contents_come_back_to_back_with_their_sizes() -> None:
    parts = [b"a" * 1000, b"", b"xyz"]
    squeezed = [lz4.block.compress(part) if part else b"" for part in parts]
    data, sizes = lz4_zstd.decompress_lz4(*laid_out(*squeezed))
    assert (data.tobytes(), sizes.tolist()) == (b"a" * 1000 + b"xyz", [1000, 0, 3])
    squeezed = [
        struct.pack("<Q", len(part)) + zstandard.compress(part) if part else b"" for part in parts
    ]
    data, sizes = lz4_zstd.decompress_zstd(*laid_out(*squeezed))
    assert (data.tobytes(), sizes.tolist()) == (b"a" * 1000 + b"xyz", [1000, 0, 3])


@pytest.mark.parametrize("claimed", [2**32 - 1, 256 * 20])
def test_lz4_cannot_claim_more_than_it_can_expand_to(claimed: int) -> None:
    raw = struct.pack("<I", claimed) + bytes(20)
    with pytest.raises(CorruptFileError, match="at most 5100 bytes"):
        lz4_zstd.decompress_lz4(*laid_out(raw))


def test_zstandard_cannot_claim_more_than_it_can_expand_to() -> None:
    raw = struct.pack("<Q", 1 << 40) + zstandard.compress(b"x")
    with pytest.raises(CorruptFileError, match="at most"):
        lz4_zstd.decompress_zstd(*laid_out(raw))


def test_trailing_garbage_that_changes_nothing_is_harmless_and_short_content_is_not() -> None:
    short = struct.pack("<I", 6) + lz4.block.compress(b"xyz", store_size=False)
    with pytest.raises(CorruptFileError):
        lz4_zstd.decompress_lz4(*laid_out(short))


DATA = np.frombuffer(b"abc" * 500 + bytes(range(256)), np.uint8)
STARTS, SIZES = np.array([0, 1500, 1500, 10]), np.array([1500, 256, 0, 3])


@pytest.mark.parametrize("level", [None, 1, 9])
@pytest.mark.parametrize(
    ("compress", "decompress"),
    [
        (lz4_zstd.compress_lz4, lz4_zstd.decompress_lz4),
        (lz4_zstd.compress_zstd, lz4_zstd.decompress_zstd),
    ],
)
def test_the_reader_undoes_it(compress: object, decompress: object, level: int | None) -> None:
    packed, sizes = compress(DATA, STARTS, SIZES, level)  # type: ignore[operator]
    assert sizes[0] < 100
    starts = np.cumsum(sizes) - sizes
    found, found_sizes = decompress(packed, starts, sizes)  # type: ignore[operator]
    assert found_sizes.tolist() == SIZES.tolist()
    pieces = [DATA[a : a + n] for a, n in zip(STARTS, SIZES, strict=True)]
    assert found.tobytes() == np.concatenate(pieces).tobytes()
