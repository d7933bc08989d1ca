"""Files become durable in the background, and always before the write that tells of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path

import pytest

from lance_nb.errors import StorageError
from lance_nb.storage import sync_later as module
from lance_nb.storage.base import write_new
from lance_nb.storage.links import Boundary
from lance_nb.storage.local import LocalStore
from lance_nb.storage.local_writer import LocalObjectWriter
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.sync_later import _waiting, settle, sync_later, synced_together


@pytest.fixture
def store(tmp_path) -> LocalStore:
    for folder in ("data", "_versions"):  # a new one is made durable by itself
        (tmp_path / folder).mkdir()
    return LocalStore(str(tmp_path))


@pytest.fixture
def slow(monkeypatch):
    """Hold every sync in the pool back until it is set; lists what has been synced."""
    gate, done, real = threading.Event(), [], os.fsync

    def sync(descriptor: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            gate.wait(10)
        real(descriptor)
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", sync)
    yield gate, done
    gate.set()


def put(store: LocalStore, path: str) -> None:
    writer = store.create(path)
    writer.write([b"data"])
    writer.finish()


def test_outside_of_a_block_a_finished_file_is_durable(store, slow, tmp_path):
    gate, done = slow
    gate.set()
    put(store, "data/a")
    assert sorted(done) == [str(tmp_path / "data"), str(tmp_path / "data/a")]


def test_inside_of_a_block_nobody_waits_until_it_ends(store, slow, tmp_path):
    gate, done = slow
    with synced_together():
        put(store, "data/a")
        write_new(store, "data/b", b"more")
        assert bytes(store.read("data/a")) == b"data"
        assert done == []
        gate.set()
    assert {str(tmp_path / name) for name in ("data", "data/a", "data/b")} == set(done)


@pytest.mark.parametrize("name", ["write", "write_if_absent"])
def test_a_durable_write_comes_after_what_waits(store, slow, monkeypatch, name):
    gate, done = slow
    named = []
    for call in ("rename", "link"):
        real = getattr(os, call)

        def step(source, target, real=real, **where):
            named.append((Path(target).name, len(done)))
            real(source, target, **where)

        monkeypatch.setattr(os, call, step)
    with synced_together():
        put(store, "data/a")
        threading.Timer(0.05, gate.set).start()
        getattr(store, name)("manifest", b"x")
    assert named[0] == ("a", 0)  # finished before anything was synced
    assert named[1] == ("manifest", 3)  # after data file, its folder, and the manifest's own bytes


def test_a_sync_that_fails_is_an_error_of_the_write_that_needs_it(store, monkeypatch):
    def broken(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    real = os.fsync
    with pytest.raises(StorageError, match="Input/output error"), synced_together():
        monkeypatch.setattr(os, "fsync", broken)
        put(store, "data/a")
        wait(_waiting.syncs)
        monkeypatch.setattr(os, "fsync", real)
        store.write_if_absent("manifest", b"x")
    assert not store.exists("manifest")


def test_a_block_inside_a_block_leaves_waiting_to_the_outer_one(store, slow):
    gate, done = slow
    with synced_together():
        with synced_together():
            put(store, "data/a")
        assert done == []
        gate.set()
    assert len(done) == 2


def test_a_file_that_takes_the_place_of_another_is_synced_at_once(store):
    put(store, "a")
    writer = store.create("a")
    writer.write([b"newer"])
    writer.finish()
    assert bytes(store.read("a")) == b"newer"


def test_outside_of_a_block_nothing_is_taken_over():
    assert not sync_later(-1, os.close)
    settle()


def test_stores_without_disks_write_as_ever():
    store = MemoryStore("later")
    with synced_together():
        write_new(store, "a", b"1")
    assert bytes(store.read("a")) == b"1"


def test_an_interrupt_while_a_sync_is_handed_over_closes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done_then_interrupted(task: Callable[[], None]) -> None:
        task()
        raise KeyboardInterrupt

    monkeypatch.setattr("lance_nb.storage.sync_later.begin", done_then_interrupted)
    writer = LocalObjectWriter(str(tmp_path / "x"), Boundary(str(tmp_path)))
    writer.write([b"abc"])
    before = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(KeyboardInterrupt), synced_together():
        writer.finish()
    writer.abort()
    os.close(before)  # a descriptor of somebody else's is still open
    assert list(tmp_path.iterdir()) == []


def test_threads_share_the_descriptors_that_pending_syncs_may_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def waiting_max(limit: int, threads: int) -> int:
        monkeypatch.setattr(module, "descriptors_max", lambda: limit)
        monkeypatch.setattr(module, "_blocks", set(range(threads)))
        return module._waiting_max()

    assert waiting_max(1024, 0) == waiting_max(1024, 1) == module.WAITING_MAX
    assert waiting_max(1024, 4) == 16
    assert waiting_max(256, 1) == 16
    assert waiting_max(64, 8) == 1
