"""The sum that is taken while an object is written is the sum of its bytes, whatever the pieces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pytest

from lance_nb.errors import StorageError
from lance_nb.format.checksums import digest_of
from lance_nb.storage import summed_writer
from lance_nb.storage.base import Buffer, ObjectWriter
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.summed_writer import SummedWriter, stored_digest
from lance_nb.storage.threads import run_all


class Noted:
    """Keeps what it is handed; ``before`` runs at the start of each write."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.data = b""
        self.before = before

    def write(self, pieces: Sequence[Buffer]) -> None:
        self.before()
        self.data += b"".join(pieces)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_writer, "_BESIDE_BYTES", 10)


@pytest.mark.parametrize("sizes", [[], [0, 0], [3, 4], [3, 4, 4], [25], [4, 25, 5, 0, 1]])
@pytest.mark.parametrize("is_in_pool", [False, True])
def test_pieces_are_summed_in_their_order(sizes: list[int], is_in_pool: bool) -> None:
    data = np.random.default_rng(1).bytes(sum(sizes))
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    pieces = [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    noted = Noted()
    writer = SummedWriter(cast("ObjectWriter", noted), "x")

    def write_twice() -> None:
        writer.write(pieces)
        writer.write(pieces)

    if is_in_pool:
        run_all([write_twice, lambda: None])  # no thread is asked for in the pool itself
    else:
        write_twice()

    assert noted.data == data * 2
    assert (writer.digest, writer.size_bytes) == (digest_of(data * 2), len(data) * 2)


def test_large_pieces_are_hashed_while_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = threading.Event()
    original = SummedWriter._hash

    def noting(self: SummedWriter, views: Sequence[memoryview]) -> None:
        original(self, views)
        hashed.set()

    monkeypatch.setattr(SummedWriter, "_hash", noting)
    seen: list[bool] = []
    noted = Noted(before=lambda: seen.append(hashed.wait(10)))
    SummedWriter(cast("ObjectWriter", noted), "x").write([bytes(100)])
    assert seen == [True]


def test_small_pieces_take_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_writer, "begin", None)
    writer = SummedWriter(cast("ObjectWriter", Noted()), "x")
    writer.write([b"12345", b"6789"])
    assert writer.digest == digest_of(b"123456789")


def test_memory_may_be_reused_when_write_returns_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    is_hashing = threading.Event()
    may_go_on = threading.Event()
    was_writing: list[bool] = []
    original = SummedWriter._hash

    def slow(self: SummedWriter, views: Sequence[memoryview]) -> None:
        is_hashing.set()
        was_writing.append(may_go_on.wait(10))
        original(self, views)

    def fail() -> None:
        is_hashing.wait(10)
        may_go_on.set()
        raise StorageError("x", "the disk is full")

    monkeypatch.setattr(SummedWriter, "_hash", slow)
    memory = bytearray(b"0123456789" * 10)
    writer = SummedWriter(cast("ObjectWriter", Noted(before=fail)), "x")
    with pytest.raises(StorageError, match="disk is full"):
        writer.write([memory])
    assert was_writing == [True]
    digest = writer.digest
    memory[:] = bytes(100)
    assert writer.digest == digest == digest_of(b"0123456789" * 10)


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
