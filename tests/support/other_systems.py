"""Python as on Windows or in WebAssembly, as far as local files, locks and threads are concerned.

    become("windows")   # before lance_nb is imported; the process stays so

What the system lacks is taken out of ``os`` and of the importable modules, and its file system
refuses what that of the other system refuses: opening a folder, ``dir_fd``, renaming over a taken
name, renaming or removing a file that is open or mapped. Locks of ``msvcrt`` are made of ``flock``.

As a plugin of pytest, for the unit tests: ``LANCE_NB_TEST_SYSTEM=windows python -m pytest -p
tests.support.other_systems tests/unit/storage``.

Limits: paths have no drive letters and backslashes; names are compared with their case.
Source: the modules ``os`` and ``msvcrt`` of Python's documentation; MoveFileExW; Pyodide's list of
modules that are missing or do nothing.
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
import sys
import threading
import types
from pathlib import Path
from typing import Any

# What looks at the system when it is imported, and is none of ours.
_IMPORTED_BEFORE = (
    "concurrent.futures.thread", "logging", "multiprocessing.util", "random", "tempfile",
    "multiprocessing.resource_tracker", "google.protobuf.message", "numpy", "pyarrow.compute",
)  # fmt: skip
SYSTEMS = ("windows", "webassembly", "no-fcntl")
_MISSING_MODULES = {
    "windows": ("fcntl", "resource", "termios", "pwd", "grp", "pty", "syslog", "_posixshmem"),
    "webassembly": ("fcntl", "resource", "termios", "grp", "pty", "syslog", "_posixshmem"),
    "no-fcntl": ("fcntl", "msvcrt"),
}
_MISSING_CALLS = {
    "windows": (
        "fork", "forkpty", "register_at_fork", "pread", "preadv", "pwrite", "pwritev", "readv",
        "writev", "fchmod", "fchown", "fchdir", "chown", "lchown", "geteuid",
        "getegid", "sched_getaffinity", "mkfifo", "mknod", "uname", "statvfs",
        "fstatvfs", "fdatasync", "sync", "posix_fadvise", "posix_fallocate", "lockf", "openpty",
        "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_SYNC", "O_DSYNC", "O_NOCTTY",
    ),
    "webassembly": (
        "fork", "forkpty", "register_at_fork", "sched_getaffinity", "posix_fadvise", "lockf",
        "posix_fallocate", "openpty", "O_CLOEXEC",
    ),
    "no-fcntl": (),
}  # fmt: skip


def become(system: str) -> None:
    """Make this process one of ``system``; import the module that looks what there is."""
    fcntl = importlib.import_module("fcntl")
    for name in _IMPORTED_BEFORE:
        importlib.import_module(name)
    for name in _MISSING_MODULES[system]:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in _MISSING_CALLS[system]:
        if hasattr(os, name):
            delattr(os, name)
    if system == "windows":
        sys.modules["msvcrt"] = _locks(fcntl)
        _restrict_files(fcntl)
        _import_as("os.name", "nt")
    elif system == "webassembly":
        os.link = _no_links
        threading.Thread.start = _no_threads  # type: ignore[method-assign, assignment]
        _import_as("sys.platform", "emscripten")
    else:
        importlib.import_module("lance_nb.storage.system_calls")


def _import_as(attribute: str, value: str) -> None:
    """Import the module of system calls while Python says that this is another system."""
    module = sys.modules[attribute.partition(".")[0]]
    name = attribute.partition(".")[2]
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        importlib.import_module("lance_nb.storage.system_calls")
    finally:
        setattr(module, name, before)


def _no_links(*_: Any, **__: Any) -> None:
    raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))


def _no_threads(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def _locks(fcntl: Any) -> types.ModuleType:
    """Return ``msvcrt`` with its locks of the bytes of a file, here of the whole file."""
    unlock, lock = 0, 2

    def locking(descriptor: int, mode: int, size_bytes: int) -> None:
        assert size_bytes == 1
        if mode == unlock:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise PermissionError(errno.EACCES, "Permission denied") from exc

    module = types.ModuleType("msvcrt")
    module.__dict__.update(LK_UNLCK=unlock, LK_NBLCK=lock, locking=locking)
    return module


def _restrict_files(fcntl: Any) -> None:
    """Let the calls of ``os`` refuse what those of Windows refuse."""
    real: Any = types.SimpleNamespace(**os.__dict__)
    os.supports_dir_fd = set()
    os.supports_fd = {os.stat, os.truncate} if hasattr(os, "supports_fd") else set()

    def no_descriptor(options: dict[str, Any]) -> None:
        if any(options.get(name) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError("dir_fd unavailable on this platform")

    def check_not_used(path: Any) -> None:
        if _is_used(real, path):
            raise PermissionError(errno.EACCES, "the file is used by another process", str(path))

    def opened(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        no_descriptor(options)
        try:
            is_folder = stat.S_ISDIR(real.stat(path).st_mode)
        except OSError:
            is_folder = False
        if is_folder:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        descriptor: int = real.open(path, flags, mode)
        return descriptor

    def renamed(source: Any, target: Any, **options: Any) -> None:
        no_descriptor(options)
        check_not_used(source)
        if Path(source).is_dir():
            real.rename(source, target)
            return
        real.link(source, target)  # refuses a name that is taken, at once
        real.unlink(source)

    def replaced(source: Any, target: Any, **options: Any) -> None:
        no_descriptor(options)
        check_not_used(source)
        check_not_used(target)
        real.replace(source, target)

    def removed(path: Any, **options: Any) -> None:
        no_descriptor(options)
        check_not_used(path)
        real.unlink(path)

    def synced(descriptor: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & real.O_ACCMODE == real.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real.fsync(descriptor)

    def scanned(path: Any = ".") -> Any:
        if isinstance(path, int):
            raise TypeError("scandir: path should be string, bytes, os.PathLike or None, not int")
        return real.scandir(path)

    def read_link(path: Any, **options: Any) -> Any:
        no_descriptor(options)
        if str(path).startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, "The system cannot find the path", str(path))
        return real.readlink(path)

    changed: dict[str, Any] = {
        "open": opened, "rename": renamed, "replace": replaced, "unlink": removed,
        "remove": removed, "fsync": synced, "scandir": scanned, "readlink": read_link,
    }  # fmt: skip

    def without_descriptor(call: Any) -> Any:
        def plain(*arguments: Any, **options: Any) -> Any:
            no_descriptor(options)
            return call(*arguments, **options)

        return plain

    for name in ("stat", "lstat", "mkdir", "rmdir", "link", "chmod", "access"):
        changed[name] = without_descriptor(getattr(real, name))
    for name, call in changed.items():
        setattr(os, name, call)


def _is_used(real: Any, path: Any) -> bool:
    """Return whether a file is open or mapped in this process."""
    try:
        wanted = real.stat(path)
    except OSError:
        return False
    for name in real.listdir("/proc/self/fd"):
        try:
            found = real.stat(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return any(f" {wanted.st_ino} " in line and str(path) in line for line in maps.splitlines())


if os.environ.get("LANCE_NB_TEST_SYSTEM"):  # a plugin is imported before any conftest is
    become(os.environ["LANCE_NB_TEST_SYSTEM"])
