"""Chunks of a page with flipped bits, cut buffers or wrong numbers of values."""

from __future__ import annotations

import random

import numpy as np

from lance_nb.encodings.base import ChunkBuffer, Chunks

COUNTS = [0, 1, 7, 1023, 1025, 2**31, 2**40, 2**62, 2**63 - 1]


def damaged_bytes(chance: random.Random, raw: bytes) -> bytes:
    out = bytearray(raw)
    for _ in range(chance.choice([1, 1, 2, 8])):
        if out:
            out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.1 and len(out) >= 8:
        at = chance.randrange(len(out) - 7)
        out[at : at + 8] = b"\xff" * 8
    return bytes(out)


def damaged_chunks(chance: random.Random, chunks: Chunks) -> Chunks:
    """Flip bits, cut buffers, or lie about the number of values."""
    kind = chance.choice(["bits", "bits", "cut", "count"])
    counts = chunks.num_values.copy()
    if kind == "count":
        counts[chance.randrange(counts.size)] = chance.choice(COUNTS)
    buffers = []
    for buffer in chunks.buffers:
        data, sizes = buffer.data, buffer.sizes.copy()
        if kind == "bits":
            data = np.frombuffer(damaged_bytes(chance, data.tobytes()), np.uint8)
        if kind == "cut":
            at = chance.randrange(sizes.size)
            sizes[at] = chance.randrange(int(sizes[at]) + 1)
        buffers.append(ChunkBuffer(data, buffer.starts, sizes))
    return Chunks(tuple(buffers), counts)
