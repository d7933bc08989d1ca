"""Compressing many buffers: undone by the reader's kernel."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import deflate, inflate

DATA = np.frombuffer(b"abc" * 500 + bytes(range(256)), np.uint8)
STARTS, SIZES = np.array([0, 1500, 1500, 10]), np.array([1500, 256, 0, 3])


@pytest.mark.parametrize("level", [None, 1, 9])
@pytest.mark.parametrize(
    ("compress", "decompress"),
    [
        (deflate.deflate_lz4, inflate.inflate_lz4),
        (deflate.deflate_zstd, inflate.inflate_zstd),
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
