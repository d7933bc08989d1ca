"""The sum that is taken while an object is written is the sum of its bytes, whatever the pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from lance_nb.format.checksums import digest_of
from lance_nb.storage import summed_writer
from lance_nb.storage.base import Buffer, ObjectWriter
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.summed_writer import SummedWriter, stored_digest


class Noted:
    """Keeps the sizes of what it is handed."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.data = b""

    def write(self, pieces: Sequence[Buffer]) -> None:
        self.calls.append([len(one) for one in pieces])
        self.data += b"".join(pieces)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_writer, "_HOT_BYTES", 10)


@pytest.mark.parametrize(
    ("sizes", "calls"),
    [
        ([], []),
        ([0, 0], []),
        ([3, 4, 3], [[3, 4, 3]]),
        ([3, 4, 4], [[3, 4], [4]]),
        ([25], [[10], [10], [5]]),
        ([4, 25, 5, 0, 1], [[4], [10], [10], [5, 5], [1]]),
    ],
)
def test_pieces_are_summed_and_written_a_block_at_a_time(
    sizes: list[int], calls: list[list[int]]
) -> None:
    data = np.random.default_rng(1).bytes(sum(sizes))
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    pieces = [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    noted = Noted()
    writer = SummedWriter(cast("ObjectWriter", noted), "x")

    writer.write(pieces)

    assert noted.calls == calls
    assert noted.data == data
    assert (writer.digest, writer.size_bytes) == (digest_of(data), len(data))


def test_pieces_that_are_not_bytes_are_counted_in_bytes() -> None:
    numbers = np.arange(7, dtype=np.int64)
    store = MemoryStore("summed")
    writer = SummedWriter(store.create("x"), "x")

    writer.write([numbers.data, b"tail"])
    writer.finish()

    stored = bytes(store.read("x"))
    assert stored == numbers.tobytes() + b"tail"
    assert (writer.digest, writer.size_bytes) == (digest_of(stored), 60)
    assert stored_digest(store, "x", 60) == writer.digest
