"""Packing bits: against the slow packer, and undone by the reader's kernel."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import bitpack, compiled, pack
from tests.property.encodings.reference_encoders import pack_block

CASES = [
    (bits, width)
    for bits in (8, 16, 32, 64)
    for width in {1, 3, 7, bits // 8 + 1, bits // 4, bits // 4 + 1, bits // 2, bits - 1, bits}
]


def random_blocks(bits: int, width: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(bits + width)
    words = rng.integers(0, 2**64 - 1, (count, 1024), np.uint64, endpoint=True)
    return (words & np.uint64((1 << width) - 1)).astype(f"u{bits // 8}")


@pytest.mark.parametrize(("bits", "width"), CASES)
def test_blocks_are_packed_as_the_format_says(bits: int, width: int) -> None:
    blocks = random_blocks(bits, width, 2)
    out = np.empty((2, 1024 * width // bits), blocks.dtype)
    pack.pack(blocks, width, out)
    for block, packed in zip(blocks, out, strict=True):
        assert packed.tobytes() == pack_block(block.tolist(), bits, width)


@pytest.mark.parametrize("mode", [compiled.Mode.NEVER, compiled.Mode.ALWAYS])
@pytest.mark.parametrize(("bits", "width"), [(8, 5), (16, 1), (32, 31), (64, 10), (64, 64)])
def test_the_readers_kernel_undoes_it(bits: int, width: int, mode: compiled.Mode) -> None:
    blocks = random_blocks(bits, width, 700)
    size = 1024 * width // bits
    rows = np.empty((700, size + 1), blocks.dtype)  # a word in front of each block, as in chunks
    with compiled.forced(mode):
        pack.pack(blocks, width, rows[:, 1:])
    found = np.empty_like(blocks)
    starts = (np.arange(700) * (size + 1) + 1) * blocks.itemsize
    bitpack.unpack(rows.reshape(-1).view(np.uint8), starts, width, found)
    assert np.array_equal(found, blocks)


def test_no_bits_are_no_words() -> None:
    pack.pack(np.zeros((2, 1024), np.uint32), 0, np.empty((2, 0), np.uint32))


def test_the_compiled_loop_is_asked_for_blocks_back_to_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(compiled, "kernel", lambda name, _args: asked.append(name))
    blocks = random_blocks(32, 7, 3)
    apart = np.zeros((3, 1030), np.uint32)
    apart[:, 6:] = blocks
    for given, found in ((blocks, ["pack_bits"]), (apart[:, 6:], [])):
        out = np.zeros((3, 230), np.uint32)[:, 6:]
        asked.clear()
        with compiled.forced(compiled.Mode.ALWAYS):
            pack.pack(given, 7, out)
        assert asked == found
        for block, packed in zip(blocks, out, strict=True):
            assert packed.tobytes() == pack_block(block.tolist(), 32, 7)
