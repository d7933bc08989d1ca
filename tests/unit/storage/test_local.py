"""Local files: the common behaviour, durability, and files that are not regular."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, ObjectNotFoundError, StorageError
from lance_nb.storage import local_files
from lance_nb.storage.base import ByteRange, turn, write_unsynced
from lance_nb.storage.local import SMALL_FILE_BYTES, LocalStore
from lance_nb.storage.registry import open_store
from lance_nb.storage.system_calls import folder_lock, open_folder
from tests.conformance.replacing_tests import ReplacingTests
from tests.conformance.store_tests import BIG, StoreTests


class TestLocalStore(StoreTests, ReplacingTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(str(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def test_the_uri_is_the_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert LocalStore("some/../folder").uri == str(tmp_path / "folder")


def test_a_path_with_a_nul_is_refused():
    with pytest.raises(InvalidInputError):
        LocalStore("/tmp/a\0b")


def test_a_fifo_is_refused_and_does_not_hang(store: LocalStore, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for read in (store.read, store.size, store.map, lambda path: store.read_tail(path, 10)):
        with pytest.raises(StorageError, match="regular"):
            read("pipe")
    assert not store.exists("pipe")
    assert store.list_names("") == []


def test_a_device_is_refused():
    with pytest.raises(StorageError, match="regular"):
        LocalStore("/dev").read("zero")


def test_a_folder_is_not_read_as_a_file(store: LocalStore, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="regular"):
        store.read("folder")


def test_a_file_used_as_a_folder_is_missing(store: LocalStore):
    store.write("x", b"1")
    with pytest.raises(ObjectNotFoundError):
        store.read("x/y")
    assert store.list("x") == []


def test_a_replaced_file_is_mapped_anew(store: LocalStore):
    store.write("x", BIG)
    first = store.map("x")
    store.write("x", BIG[::-1])
    second = store.map("x")
    assert bytes(first) == BIG
    assert bytes(second) == BIG[::-1]
    assert store.map("x") is second


def test_a_file_replaced_behind_our_back_is_noticed(store: LocalStore, tmp_path: Path):
    store.write("x", BIG)
    assert bytes(store.read_range("x", ByteRange(0, 4))) == BIG[:4]
    (tmp_path / "other").write_bytes(b"z" * len(BIG))
    (tmp_path / "other").replace(tmp_path / "x")
    assert bytes(store.read_range("x", ByteRange(0, 4))) == b"zzzz"


def test_a_commit_is_synced_before_and_after_it_becomes_visible(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    store.write("v/0", b"")
    calls: list[str] = []
    for name in ("fsync", "link", "unlink"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os,
            name,
            lambda *a, name=name, original=original, **k: (calls.append(name), original(*a, **k))[
                1
            ],
        )
    store.write_if_absent("v/1", b"x")
    assert calls == ["fsync", "link", "fsync", "unlink"]


def test_a_file_system_without_hard_links_is_reported_as_the_reason(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    def no_links(source: str, target: str, **_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StorageError, match="hard links") as caught:
        store.write_if_absent("v/1", b"x")
    assert caught.value.outcome == "failed"
    assert store.list_names("v") == []


def test_a_link_whose_reply_was_lost_is_recognised_as_ours(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    link = os.link

    def lost_reply(source: str, target: str, **where: Any) -> None:
        link(source, target, **where)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", lost_reply)
    store.write_if_absent("v/1", b"x")
    assert bytes(store.read("v/1")) == b"x"
    assert store.list_names("v") == ["1"]


def test_a_folder_that_cannot_be_synced_is_reported_although_the_file_is_there(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    store.write("v/0", b"")
    fsync, calls = os.fsync, []

    def second_fails(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(StorageError) as caught:
        store.write_if_absent("v/1", b"x")
    assert caught.value.outcome == "unsynced"
    assert bytes(store.read("v/1")) == b"x"


@pytest.mark.parametrize("failing", ["fsync", "rename"])
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, failing: str
):
    store.write("a/x", b"old")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full_disk)
        with pytest.raises(StorageError, match="No space left"):
            store.write("a/x", b"new")
    assert bytes(store.read("a/x")) == b"old"
    assert store.list_names("a") == ["x"]


def test_a_folder_without_permission_is_a_storage_error(store: LocalStore, tmp_path: Path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(StorageError, match="Permission denied"):
        store.list("closed")


def test_many_threads_read_the_same_file(store: LocalStore):
    store.write("x", BIG)
    wrong: list[object] = []

    def read() -> None:
        for start in range(0, 2000, 100):
            data = bytes(store.read_range("x", ByteRange(start, start + 50)))
            if data != BIG[start : start + 50]:
                wrong.append(data)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_symbolic_links_to_files_are_followed(store: LocalStore, tmp_path: Path):
    store.write("x", b"1")
    (tmp_path / "y").symlink_to(tmp_path / "x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert bytes(store.read("y")) == b"1"
    assert sorted(store.list_names("")) == ["x", "y"]


def test_new_folders_are_synced_before_what_is_in_them(tmp_path, monkeypatch):
    fsync, synced = os.fsync, []

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    LocalStore(f"{tmp_path}/a/b").write_if_absent("v/1", b"x")
    above = [str(tmp_path), f"{tmp_path}/a", f"{tmp_path}/a/b"]
    assert synced[:3] == above
    assert synced[-1] == f"{tmp_path}/a/b/v"


def test_what_nothing_is_lost_without_is_written_without_waiting(tmp_path, monkeypatch):
    def no_sync(_descriptor: int) -> None:
        raise AssertionError("the disk was waited for")

    store = LocalStore(str(tmp_path))
    (tmp_path / "_versions").mkdir()
    monkeypatch.setattr(os, "fsync", no_sync)
    for content in (b"first", b"second"):
        write_unsynced(store, "_versions/hint", content)
        assert bytes(store.read("_versions/hint")) == content
    assert store.list_names("_versions") == ["hint"]


def test_writers_of_a_folder_take_turns(store: LocalStore):
    store.write("_versions/a", b"1")
    order: list[str] = []

    def other() -> None:
        with turn(store, "_versions"):
            order.append("other")

    with turn(store, "_versions"):
        waiting = threading.Thread(target=other)
        waiting.start()
        waiting.join(0.05)
        order.append("first")
    waiting.join(5)
    assert order == ["first", "other"]


def test_who_has_created_its_file_ends_its_turn(store: LocalStore, tmp_path: Path):
    store.write("_versions/0", b"")
    place = str(tmp_path / "_versions")
    lock = folder_lock(open_folder(place), place)
    with turn(store, "_versions"):
        assert not lock.try_acquire()
        store.write_if_absent("_versions/1", b"data")
        assert lock.try_acquire()
    lock.close()


def test_who_has_waited_too_long_for_a_turn_goes_ahead(store: LocalStore, monkeypatch):
    monkeypatch.setattr(local_files, "TURN_S_MAX", 0.01)
    store.write("_versions/a", b"1")
    with turn(store, "_versions"), turn(store, "_versions"):
        assert store.exists("_versions/a")


def test_turns_of_a_folder_that_is_not_there_are_free(store: LocalStore):
    with turn(store, "nowhere"):
        assert store.list_names("nowhere") == []


def test_a_hint_never_goes_through_a_link(store: LocalStore, tmp_path):
    (tmp_path / "precious").write_bytes(b"keep")
    (tmp_path / "hint").symlink_to(tmp_path / "precious")
    write_unsynced(store, "hint", b"new")
    assert (tmp_path / "precious").read_bytes() == b"keep"
    assert (tmp_path / "hint").read_bytes() == b"new"


def test_larger_files_are_mapped_unless_an_option_says_otherwise(tmp_path):
    data = os.urandom(SMALL_FILE_BYTES + 100)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "f").write_bytes(data)
    for options in (None, {}, {"map_files": "true"}):
        assert open_store(tmp_path, options).map("inside/f") == data
    for setting in ("false", False):
        store = open_store(tmp_path, {"map_files": setting})
        assert store.map("inside/f") is None
        assert store.child("inside").map("f") is None
        assert store.read("inside/f") == data
        assert store.read_range("inside/f", ByteRange(7, SMALL_FILE_BYTES + 90)) == data[7:-10]
    with pytest.raises(InvalidInputError, match="'map_files' must be true or false, got 'no'"):
        open_store(tmp_path, {"map_files": "no"})


MEMORY = """
import sys
import lance_nb

dataset = lance_nb.dataset(sys.argv[1], storage_options={"map_files": sys.argv[2]})
total = sum(batch.column(0).flatten().to_numpy().sum() for batch in dataset.to_batches())
lines = dict(line.split(":") for line in open("/proc/self/status"))
mapped = sum(int(lines[name].split()[0]) for name in ("RssFile", "RssShmem"))
print(total, mapped // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_batches_of_files_that_are_not_mapped_leave_no_pages_behind(tmp_path):
    values = np.random.default_rng(1).random(1 << 24).astype(np.float32)  # 64 MiB
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 256)
    lance_nb.write_dataset(pa.table({"v": vectors}), tmp_path / "d")

    def read(setting: str) -> tuple[str, int]:
        command = [sys.executable, "-c", MEMORY, str(tmp_path / "d"), setting]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        total, megabytes = done.stdout.split()
        return total, int(megabytes)

    (mapped_total, mapped), (total, unmapped) = read("true"), read("false")
    assert total == mapped_total
    assert mapped - unmapped > 56
