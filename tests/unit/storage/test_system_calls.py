"""The forms of local files for systems without folder descriptors, links, locks or threads."""

from __future__ import annotations

import ntpath
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.storage import base, registry, system_calls
from lance_nb.storage.system_calls import (
    FolderByPath,
    LockByFile,
    LockInProcess,
    check_names,
    folder_lock,
    open_folder,
    plain_path,
)
from tests.support.other_systems import SYSTEMS

LIFE = """
import sys
from datetime import timedelta
from tests.support.other_systems import become

become(sys.argv[1])
import pyarrow as pa
import lance_nb
from lance_nb.storage import system_calls

uri = sys.argv[2] + "/rows.lance"
rows = pa.table({"id": range(20_000), "name": [f"name {one}" for one in range(20_000)]})
ds = lance_nb.write_dataset(rows, uri, enable_stable_row_ids=True)
ds.insert(rows.slice(0, 2))
ds.delete("id = 1")
ds.update({"name": "'changed'"}, where="id = 5")
ds.merge_insert("id").when_matched_update_all().execute(rows.slice(7, 1))
ds.tags.create("old", 2)
ds.tags.update("old", 3)
dev = ds.create_branch("dev")
dev.delete("id = 9")
ds.branches.merge("dev")
ds.expectations.add("id >= 0")
assert ds.check().ok
assert ds.check().ok  # from the cache in a folder of the user
ds.optimize.compact_files()
ds.tags.delete("old")
ds.branches.delete("dev", force=True)
removed = ds.cleanup_old_versions(timedelta(0), delete_unverified=True)
assert removed.old_versions > 3, removed
copy = ds.deep_clone(sys.argv[2] + "/copy.lance")
report = lance_nb.verify(uri)
assert report.ok, report
print(ds.count_rows(), sorted(copy.to_table(filter="id in (0, 1, 5, 9)")["name"].to_pylist()))
print(system_calls.HOLDS_FOLDERS, system_calls.MAPS_FILES, system_calls.HAS_THREADS)
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_dataset_lives_on_every_system(tmp_path: Path, system: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIFE, system, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows, form = done.stdout.splitlines()
    assert rows == "19999 ['changed', 'name 0', 'name 0']"
    assert form == {
        "windows": "False False True", "webassembly": "False False False",
        "no-fcntl": "True True True",
    }[system]  # fmt: skip
    assert not list(tmp_path.rglob(".tmp-*"))


def test_the_store_behaves_on_windows_as_everywhere() -> None:
    command = ["-qs", "-p", "tests.support.other_systems", "-p", "no:cacheprovider", "-k"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *command, "TestLocalStore", str(_store_tests())],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "LANCE_NB_TEST_SYSTEM": "windows"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 40


def _store_tests() -> Path:
    return Path(__file__).with_name("test_local.py")


# --- folders by their path ------------------------------------------------------------------------


def test_a_folder_by_its_path_does_what_an_open_one_does(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for folder in (FolderByPath(f"{tmp_path}/link"), open_folder(str(tmp_path))):
        with folder, folder.duplicate() as same:
            os.close(folder.create("a"))
            with pytest.raises(FileExistsError):
                folder.create("a")
            folder.rename("a", "b")
            assert same.holds("b")
            assert not same.holds("a")
            folder.make_folder("inside")
            with folder.open_folder("inside") as inside:
                os.close(inside.create("x"))
                assert inside.own_status("x").st_size == 0
                inside.remove("x")
            with folder.entries() as entries:
                assert sorted(one.name for one in entries) == ["b", "inside", "link"]
            for name in ("link",):
                with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
                    folder.open_folder(name)
                with pytest.raises(OSError, match="symbolic links"):
                    folder.open_file(name)
            folder.sync()
            folder.remove("b")
            folder.remove_quietly("b")
            folder.remove_folder("inside")
    with pytest.raises(NotADirectoryError):
        FolderByPath(__file__)


@pytest.mark.parametrize(
    ("is_windows", "is_webassembly"), [(False, False), (False, True)], ids=["posix", "webassembly"]
)
def test_a_name_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_windows: bool, is_webassembly: bool
) -> None:
    monkeypatch.setattr(system_calls, "IS_WINDOWS", is_windows)
    monkeypatch.setattr(system_calls, "IS_WEBASSEMBLY", is_webassembly)
    folder = FolderByPath(str(tmp_path))
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    folder.link("one", "taken")
    with pytest.raises(FileExistsError):
        folder.link("two", "taken")
    assert (tmp_path / "taken").read_text() == "one"


def test_a_file_that_another_process_reads_is_replaced_a_little_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = os.replace

    def shared(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) < 3:
            raise PermissionError(13, "the file is used by another process")
        real(source, target)

    monkeypatch.setattr(os, "replace", shared)
    monkeypatch.setattr(system_calls, "IS_WINDOWS", True)
    (tmp_path / "a").touch()
    FolderByPath(str(tmp_path)).rename("a", "b")
    assert len(calls) == 3
    monkeypatch.setattr(system_calls, "SHARED_S_MAX", 0.0)
    calls.clear()
    (tmp_path / "a").touch()
    with pytest.raises(PermissionError):
        FolderByPath(str(tmp_path)).rename("a", "b")


# --- locks ----------------------------------------------------------------------------------------


def _file_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def locking(descriptor: int, mode: int, size_bytes: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN if mode else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise PermissionError(13, "locked") from exc

    monkeypatch.setattr(system_calls, "fcntl", None)
    fake = SimpleNamespace(LK_NBLCK=0, LK_UNLCK=1, locking=locking)
    monkeypatch.setattr(system_calls, "msvcrt", fake)


@pytest.mark.parametrize("kind", ["system", LockByFile, LockInProcess])
def test_a_lock_has_one_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type | str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "data").mkdir()
    if kind is LockByFile:
        _file_lock(monkeypatch)
    elif kind is LockInProcess:
        monkeypatch.setattr(system_calls, "fcntl", None)
    place = str(tmp_path / "data")
    first, second = (folder_lock(open_folder(place), place) for _ in range(2))
    if isinstance(kind, type):
        assert isinstance(first, kind)
    first.acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    assert not first.try_acquire()
    second.close()
    assert first.try_acquire()
    first.close()
    assert not list((tmp_path / "data").iterdir())


# --- paths of Windows -----------------------------------------------------------------------------


@pytest.fixture
def windows_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the modules that read paths use those of Windows; the current folder is C:/here."""
    module = SimpleNamespace(
        **{name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
    )
    module.path, module.sep = ntpath, "\\"
    monkeypatch.setattr(ntpath, "abspath", lambda path: ntpath.normpath(_from_here(path)))
    for used in (base, registry, system_calls):
        monkeypatch.setattr(used, "os", module)


def _from_here(path: str) -> str:
    drive, rest = ntpath.splitdrive(path)
    return path if drive and rest[:1] in ("/", "\\") else ntpath.join("C:\\here", path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (r"C:\data\photos.lance", "C:/data/photos.lance"),
        ("C:/data/photos.lance/", "C:/data/photos.lance"),
        (r"C:\data\..\x", "C:/x"),
        (r"data\photos.lance", "C:/here/data/photos.lance"),
        (r"\\server\share\x.lance", "//server/share/x.lance"),
        ("c://data/x", "c:/data/x"),
        ("file:///C:/data/x%20y.lance", "C:/data/x y.lance"),
        ("file://localhost/D:/x", "D:/x"),
    ],
)
def test_paths_of_windows_are_understood(windows_paths: None, given: str, expected: str) -> None:
    assert registry.split_uri(given) == ("file", expected)


def test_long_paths_are_written_as_usual(windows_paths: None) -> None:
    assert plain_path("\\\\?\\C:\\data") == "C:/data"
    assert plain_path("\\\\?\\UNC\\server\\share") == "//server/share"


@pytest.mark.parametrize(
    "name", ["con", "tree/NUL.lance", "com1", "a:b", "data/x.", "data/x ", "a?", "a|b", "LPT9.txt"]
)
def test_names_that_windows_reads_otherwise_are_refused(windows_paths: None, name: str) -> None:
    with pytest.raises(InvalidInputError, match="Windows"):
        check_names(name)


def test_other_names_are_no_matter(windows_paths: None) -> None:
    check_names("_versions/18446744073709551614.manifest")
    check_names("tree/console/COM10/data.x")


def test_other_systems_take_every_name() -> None:
    check_names("tree/con/a:b")
    assert registry.split_uri("/data/C:/x") == ("file", "/data/C:/x")


def test_waits_of_this_thread_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = system_calls.count_waits()
    for _ in range(5):
        time.sleep(0.001)
    assert system_calls.count_waits() >= before + 5
    monkeypatch.setattr(system_calls, "resource", None)
    assert system_calls.count_waits() == 0
