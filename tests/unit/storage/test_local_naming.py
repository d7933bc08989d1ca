"""What a local write says when the system reports an error, before or after it did the work."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_nb.errors import ObjectExistsError, StorageError
from lance_nb.storage import local_naming, system_calls
from lance_nb.storage.local import LocalStore
from lance_nb.storage.local_files import write_temporary
from lance_nb.storage.system_calls import OpenFolder
from tests.support.faulty_system import FaultySystem

CODES = [
    getattr(errno, name) for name in ("EIO", "ENOSPC", "EINTR", "ESTALE", "ETIMEDOUT", "EACCES")
]
every_error = pytest.mark.parametrize("code", CODES, ids=[errno.errorcode[one] for one in CODES])


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(str(tmp_path))
    store.write("v/old", b"old")
    return store


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let calls of the system fail: by name, the error and whether the work is done first."""

    def install(**faults: tuple[int, bool]) -> None:
        monkeypatch.setattr(
            system_calls, "os", FaultySystem(lambda _number, name: faults.get(name))
        )

    return install


def outcome_of(act: Callable[..., object], *arguments: object) -> str:
    try:
        act(*arguments)
    except ObjectExistsError:
        return "exists"
    except StorageError as error:
        return error.outcome
    return "done"


@every_error
def test_a_link_is_judged_by_what_is_there(store: LocalStore, failing, code: int):
    failing(link=(code, True))
    assert outcome_of(store.write_if_absent, "v/1", b"x") == "done"
    failing(link=(code, False))
    assert outcome_of(store.write_if_absent, "v/2", b"x") == "failed"
    assert outcome_of(store.write_if_absent, "v/old", b"x") == "exists"
    assert sorted(store.list_names("v")) == ["1", "old"]


@pytest.mark.parametrize("write", ["write_if_absent", "write"])
def test_a_name_that_is_too_long_is_certainly_not_created(store: LocalStore, write: str):
    assert outcome_of(getattr(store, write), f"v/{'x' * 300}", b"x") == "failed"
    assert store.list_names("v") == ["old"]


@every_error
def test_a_link_that_cannot_be_looked_at_is_unknown(store: LocalStore, failing, code: int):
    for after in (False, True):
        failing(link=(code, after), lstat=(errno.EIO, False))
        assert outcome_of(store.write_if_absent, f"v/{after}", b"x") == "unknown"
    assert sorted(store.list_names("v")) == ["True", "old"]


def test_a_link_whose_source_cannot_be_removed_may_still_land(store: LocalStore, failing):
    failing(link=(errno.ETIMEDOUT, False), unlink=(errno.EIO, False))
    assert outcome_of(store.write_if_absent, "v/1", b"x") == "unknown"


def test_a_link_that_lands_between_the_looks_is_created(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    """The request was still under way when the name was looked at first."""

    class Late(FaultySystem):
        waiting: tuple[str, str, dict[str, Any]] | None = None

        def link(self, source: str, target: str, **where: Any) -> None:
            self.waiting = (source, target, where)
            raise OSError(errno.ETIMEDOUT, "timed out")

        def unlink(self, path: str, *, dir_fd: int) -> None:
            if self.waiting:
                source, target, where = self.waiting
                os.link(source, target, **where)
            os.unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(system_calls, "os", Late(lambda *_: None))
    store.write_if_absent("v/1", b"x")
    assert bytes(store.read("v/1")) == b"x"


@pytest.mark.parametrize(("code", "told"), [(errno.EEXIST, "exists"), (errno.EIO, "unknown")])
def test_equal_bytes_alone_are_no_proof(tmp_path: Path, monkeypatch, code: int, told: str):
    """Another inode: a system without stable ones, or somebody else who wrote the same."""

    class Copying(FaultySystem):
        def link(self, source: str, target: str, **_: Any) -> None:
            (tmp_path / target).write_bytes((tmp_path / source).read_bytes())
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(system_calls, "os", Copying(lambda *_: None))
    assert outcome_of(LocalStore(str(tmp_path)).write_if_absent, "x", b"data") == told


@every_error
def test_a_rename_is_judged_by_what_is_there(store: LocalStore, failing, code: int):
    failing(rename=(code, True))
    assert outcome_of(store.write, "v/old", b"new") == "done"
    assert bytes(store.read("v/old")) == b"new"
    failing(rename=(code, False))
    assert outcome_of(store.write, "v/old", b"newer") == "failed"
    assert outcome_of(store.write, "v/fresh", b"newer") == "failed"
    assert bytes(store.read("v/old")) == b"new"
    assert store.list_names("v") == ["old"]


@every_error
def test_a_rename_that_cannot_be_looked_at_is_unknown(store: LocalStore, failing, code: int):
    for after in (False, True):
        failing(rename=(code, after), lstat=(errno.EIO, False))
        assert outcome_of(store.write, "v/old", b"new") == "unknown"
    assert bytes(store.read("v/old")) == b"new"


def test_a_rename_whose_file_has_gone_and_is_not_there_has_failed(tmp_path: Path):
    with OpenFolder(os.open(tmp_path, os.O_RDONLY)) as folder:
        file = write_temporary(folder, b"1")
        held = os.open(tmp_path / file.name, os.O_RDONLY)  # its inode is not given to another file
        (tmp_path / file.name).unlink()
        assert outcome_of(local_naming.rename_over, file, f"{tmp_path}/x") == "failed"
        (tmp_path / "x").write_bytes(b"another")
        assert outcome_of(local_naming.rename_over, file, f"{tmp_path}/x") == "unknown"
        os.close(held)


@every_error
@pytest.mark.parametrize("method", ["write", "write_if_absent", "replace"])
def test_what_the_disk_does_not_confirm_is_reported_and_kept(
    store: LocalStore, failing, code: int, method: str
):
    failing(fsync=(code, False))
    if method == "replace":
        assert outcome_of(store.replace, "v/old", b"old", b"new") == "unsynced"
        assert bytes(store.read("v/old")) == b"new"
        return
    assert outcome_of(getattr(store, method), "v/1", b"x") == "unsynced"
    assert bytes(store.read("v/1")) == b"x"
    assert sorted(store.list_names("v")) == ["1", "old"]


@pytest.mark.parametrize("after", [False, True])
@every_error
def test_a_removal_is_judged_by_what_is_there(store: LocalStore, failing, code: int, after: bool):
    failing(unlink=(code, after))
    refused = code in (errno.EACCES, errno.ENOSPC)
    expected = "done" if after else "failed" if refused else "unknown"
    assert outcome_of(store.delete, "v/old") == expected
    assert store.exists("v/old") is not after


def test_a_removal_that_cannot_be_looked_at_is_unknown(store: LocalStore, failing):
    failing(unlink=(errno.EIO, True), lstat=(errno.EIO, False))
    assert outcome_of(store.delete, "v/old") == "unknown"


@every_error
@pytest.mark.parametrize("after", [False, True])
def test_a_file_written_in_pieces_is_finished_or_gone(
    store: LocalStore, failing, code: int, after: bool
):
    failing(rename=(code, after))
    writer = store.create("v/1")
    writer.write([b"x"])
    assert outcome_of(writer.finish) == ("done" if after else "failed")
    assert sorted(store.list_names("v")) == (["1", "old"] if after else ["old"])


def test_a_file_in_pieces_that_replaced_another_and_is_not_confirmed_stays(
    store: LocalStore, failing
):
    failing(fsync=(errno.EIO, False))
    writer = store.create("v/old")
    writer.write([b"new"])
    assert outcome_of(writer.finish) == "unsynced"
    assert bytes(store.read("v/old")) == b"new"
    fresh = store.create("v/fresh")
    fresh.write([b"new"])
    assert outcome_of(fresh.finish) == "failed"
    assert store.list_names("v") == ["old"]


def test_a_symbolic_link_at_the_name_is_somebody_elses(store: LocalStore, tmp_path: Path, failing):
    (tmp_path / "v" / "1").symlink_to(tmp_path / "v" / "old")
    failing(link=(errno.EIO, False))
    assert outcome_of(store.write_if_absent, "v/1", b"old") == "exists"
