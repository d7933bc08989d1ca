from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lance_nb.errors import StorageError
from lance_nb.storage.private_folder import PrivateFolder

MAX = 100


@pytest.fixture
def folder(tmp_path: Path) -> PrivateFolder:
    return PrivateFolder(tmp_path / "cache", "lance_nb", "jobs")


@pytest.fixture(autouse=True)
def any_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_what_is_written_is_the_users_alone(folder: PrivateFolder) -> None:
    folder.write("x", b"one")
    folder.write("x", b"two")
    assert folder.read("x", MAX) == b"two"
    assert mode(folder.path) == 0o700
    assert mode(folder.path / "x") == 0o600
    assert folder.names() == ["x"]
    folder.remove("x")
    folder.remove("x")
    assert folder.read("x", MAX) is None
    assert folder.names() == []


def test_nothing_is_there_before_something_is_written(folder: PrivateFolder) -> None:
    assert folder.names() == []
    assert folder.read("x", MAX) is None
    assert not folder.has("x")
    folder.remove("x")
    assert not folder.path.exists()
    folder.check()
    assert mode(folder.path) == 0o700


@pytest.mark.parametrize("opened", [0o777, 0o755, 0o770, 0o1777])
def test_a_folder_of_ours_that_is_too_open_is_closed(folder: PrivateFolder, opened: int) -> None:
    folder.write("x", b"1")
    folder.path.chmod(opened)
    folder.path.parent.chmod(opened)
    assert folder.names() == ["x"]
    assert mode(folder.path) == 0o700
    assert mode(folder.path.parent) & 0o022 == 0


CALLS: list[Callable[[PrivateFolder], object]] = [
    lambda folder: folder.check(),
    lambda folder: folder.names(),
    lambda folder: folder.has("x"),
    lambda folder: folder.read("x", MAX),
    lambda folder: folder.write("x", b"2"),
    lambda folder: folder.remove("x"),
]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("call", CALLS, ids=["check", "names", "has", "read", "write", "remove"])
def test_a_folder_of_somebody_else_is_refused(
    folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch, call: Callable[..., object], depth: int
) -> None:
    folder.write("x", b"1")
    real, strange = os.fstat, folder.path if depth == 2 else folder.path.parent
    inode = strange.stat().st_ino

    def another(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if found.st_ino != inode:
            return found
        return os.stat_result([*found[:4], found.st_uid + 1, *found[5:]])

    monkeypatch.setattr(os, "fstat", another)
    with pytest.raises(StorageError, match=r"belongs to user \d+, not .*XDG_CACHE_HOME"):
        call(folder)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("call", CALLS, ids=["check", "names", "has", "read", "write", "remove"])
def test_a_folder_that_is_a_link_is_refused(
    folder: PrivateFolder, tmp_path: Path, call: Callable[..., object], depth: int
) -> None:
    folder.write("x", b"1")
    pinned = folder.path if depth == 2 else folder.path.parent
    pinned.rename(tmp_path / "elsewhere")
    pinned.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="symbolic link, which is not followed"):
        call(folder)
    (found,) = (tmp_path / "elsewhere").rglob("x")
    assert found.read_bytes() == b"1"


def test_a_file_that_is_a_link_is_neither_read_nor_written(
    folder: PrivateFolder, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_bytes(b"keep")
    folder.check()
    (folder.path / "x").symlink_to(tmp_path / "precious")
    with pytest.raises(StorageError, match="symbolic link"):
        folder.read("x", MAX)
    folder.write("x", b"new")
    assert folder.read("x", MAX) == b"new"
    (folder.path / "y").symlink_to(tmp_path / "precious")
    folder.remove("y")
    assert (tmp_path / "precious").read_bytes() == b"keep"


@pytest.mark.parametrize("opened", [0o622, 0o660, 0o606, 0o666])
def test_a_file_that_others_could_write_is_refused(folder: PrivateFolder, opened: int) -> None:
    folder.write("x", b"1")
    (folder.path / "x").chmod(opened)
    with pytest.raises(StorageError, match="other users can write to it"):
        folder.read("x", MAX)


def test_a_file_of_somebody_else_is_refused(
    folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("x", b"1")
    real, inode = os.fstat, (folder.path / "x").stat().st_ino

    def another(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        uid = found.st_uid + (found.st_ino == inode)
        return os.stat_result([*found[:4], uid, *found[5:]])

    monkeypatch.setattr(os, "fstat", another)
    with pytest.raises(StorageError, match="belongs to user"):
        folder.read("x", MAX)


def test_what_is_no_file_of_its_own_is_refused(folder: PrivateFolder, tmp_path: Path) -> None:
    folder.write("x", b"1")
    os.link(folder.path / "x", tmp_path / "second")
    with pytest.raises(StorageError, match="hard link"):
        folder.read("x", MAX)
    os.mkfifo(folder.path / "pipe")
    with pytest.raises(StorageError, match="not a regular file"):
        folder.read("pipe", MAX)
    (folder.path / "inner").mkdir()
    with pytest.raises(StorageError, match="not a regular file"):
        folder.read("inner", MAX)


def test_a_file_is_bounded(folder: PrivateFolder) -> None:
    folder.write("x", b"1" * (MAX + 1))
    with pytest.raises(StorageError, match="larger than 100 bytes"):
        folder.read("x", MAX)
    assert folder.read("x", MAX + 1) == b"1" * (MAX + 1)


def test_a_write_that_fails_leaves_the_old_file_alone(
    folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("x", b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("rename", "fsync"):
        with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
            patch.setattr(os, name, full)
            folder.write("x", b"new")
        assert folder.read("x", MAX) == b"old"
    assert [one.name for one in folder.path.iterdir()] == ["x"]


def test_what_killed_writes_left_behind_is_not_listed_and_goes_after_a_day(
    folder: PrivateFolder,
) -> None:
    folder.check()
    for name, age_s in ((".tmp-old", 2 * 86400), (".tmp-young", 60)):
        (folder.path / name).write_bytes(b"half")
        then = time.time() - age_s
        os.utime(folder.path / name, (then, then))
    assert folder.names() == []
    folder.write("x", b"1")
    assert sorted(one.name for one in folder.path.iterdir()) == [".tmp-young", "x"]


def test_a_name_that_is_taken_by_a_link_before_the_write_is_not_followed(
    folder: PrivateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even the random name: it is created exclusively."""
    folder.check()
    monkeypatch.setattr("uuid.uuid4", lambda: type("Known", (), {"hex": "known"}))
    (folder.path / ".tmp-known").symlink_to(tmp_path / "created")
    with pytest.raises(StorageError, match="exists"):
        folder.write("x", b"1")
    assert not (tmp_path / "created").exists()


def test_a_base_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="XDG_CACHE_HOME"):
        PrivateFolder(tmp_path / "file" / "cache", "a").check()


def test_the_oldest_comes_first(folder: PrivateFolder) -> None:
    for number, name in enumerate(("c", "a", "b")):
        folder.write(name, b"")
        os.utime(folder.path / name, (number, number))
    assert folder.names() == ["c", "a", "b"]


def test_no_descriptor_stays_open(folder: PrivateFolder, tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    folder.write("x", b"1")
    (folder.path / "y").symlink_to(tmp_path)
    before = count()
    for call in CALLS:
        call(folder)
    with pytest.raises(StorageError):
        folder.read("y", MAX)
    folder.path.rename(tmp_path / "moved")
    folder.path.symlink_to(tmp_path / "moved")
    for call in CALLS:
        with pytest.raises(StorageError):
            call(folder)
    assert count() == before
