"""The system calls of local files, in the form that the operating system has.

Everything that differs between systems is here, so that the other modules of ``storage`` are the
same everywhere:

=====================  ==========================  ========================  ======================
what                   POSIX                       Windows                   WebAssembly
=====================  ==========================  ========================  ======================
a folder is held by    a descriptor (``dir_fd``)   its path, without links   its path, without links
a name is taken once   ``os.link``                 ``os.rename``, which      look, then rename: one
                                                   refuses a taken name      process, no threads
names are durable      fsync of the folder         the file system's log     not at all
locks of a folder      ``flock``                   ``msvcrt.locking`` of a   among the threads
                                                   file beside temporary
                                                   files of the user
large files            mapped                      read by ranges: a mapped  read by ranges
                                                   file cannot be removed
ownership of caches    owner and mode              the user's profile        the process itself
threads                yes                         yes                       none
=====================  ==========================  ========================  ======================

Limits of a folder that is held by its path: a symbolic link (or junction) which another process
puts in its place between the check and the use is followed. Locks on Windows hold among the
processes of one user on one machine. A file that a process has open cannot be replaced on Windows;
the call is repeated for ``SHARED_S_MAX``.
Source: Windows: MoveFileExW, LockFile, "Naming Files, Paths, and Namespaces"; openat(2), flock(2).
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from lance_nb.errors import InvalidInputError


def _module(name: str) -> Any:
    """Import a module that only some systems have; None for the others."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl = _module("fcntl")
resource: Any = _module("resource")
msvcrt: Any = None if fcntl is not None else _module("msvcrt")
IS_WINDOWS = os.name == "nt"
IS_WEBASSEMBLY = sys.platform in ("emscripten", "wasi")
HOLDS_FOLDERS = (
    not (IS_WINDOWS or IS_WEBASSEMBLY)
    and {os.open, os.stat, os.rename, os.unlink, os.mkdir} <= os.supports_dir_fd
)
MAPS_FILES = not (IS_WINDOWS or IS_WEBASSEMBLY)
RENAMES_OPEN_FILES = not IS_WINDOWS
HAS_THREADS = not IS_WEBASSEMBLY
HAS_OWNERS = hasattr(os, "geteuid") and not IS_WEBASSEMBLY
SHARED_S_MAX = 1.0
_SHARED_LOOK_S = 0.005


def _flags(*names: str) -> int:
    """Return the flags of ``os.open`` that this system has, always for bytes."""
    flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", getattr(os, "O_NOINHERIT", 0))
    for name in names:
        flags |= getattr(os, name, 0)
    return flags


FOLDER_FLAGS = _flags("O_RDONLY", "O_DIRECTORY")
FILE_FLAGS = _flags("O_RDONLY", "O_NONBLOCK")  # a FIFO must not block
CREATE_FLAGS = _flags("O_WRONLY", "O_CREAT", "O_EXCL")
NO_LINKS = _flags("O_NOFOLLOW")
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


# --- paths ----------------------------------------------------------------------------------------

_LONG_PATH = "//?/"
_LONG_SHARE = "//?/UNC/"
_RESERVED_NAMES = {"CON", "PRN", "AUX", "NUL"} | {
    f"{kind}{number}" for kind in ("COM", "LPT") for number in range(1, 10)
}


def plain_path(path: str) -> str:
    """Return an absolute path of this system with ``/`` between its parts, as all our paths."""
    if os.sep == "/":
        return path
    path = path.replace(os.sep, "/")
    if path.startswith(_LONG_SHARE):
        return f"//{path[len(_LONG_SHARE) :]}"
    return path.removeprefix(_LONG_PATH)


def real_path(path: str) -> str:
    """Return an absolute path without symbolic links."""
    return plain_path(os.path.realpath(path))


def check_names(path: str) -> None:
    """Refuse a relative path that Windows would understand as something else.

    Raises InvalidInputError there; other systems take every name.
    """
    if os.sep == "/":
        return
    for name in path.split("/"):
        if name.partition(".")[0].rstrip(" ").upper() in _RESERVED_NAMES:
            raise InvalidInputError(f"path {path!r}: Windows reserves the name {name!r}")
        if name[-1:] in {".", " "} or not set(name).isdisjoint('<>:"|?*'):
            raise InvalidInputError(f"path {path!r}: Windows has no files named {name!r}")


# --- descriptors ----------------------------------------------------------------------------------

_DESCRIPTORS_UNLIMITED = 8192  # the most files that a process of Windows has open


def descriptors_max() -> int:
    """Return how many files this process may have open; the limit may change while it runs."""
    if resource is None:
        return _DESCRIPTORS_UNLIMITED
    limit = int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return _DESCRIPTORS_UNLIMITED if limit == resource.RLIM_INFINITY else limit


# --- folders --------------------------------------------------------------------------------------


class OpenFolder:
    """A folder that is opened, so that what is done in it is done in no other."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; does nothing a second time."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            close_quietly(descriptor)

    def duplicate(self) -> OpenFolder:
        """Return the same folder, to be closed on its own. Raises OSError."""
        return OpenFolder(os.dup(self.descriptor))

    def open_folder(self, name: str) -> OpenFolder:
        """Open a folder in it that is no link. Raises OSError."""
        return OpenFolder(os.open(name, FOLDER_FLAGS | NO_LINKS, dir_fd=self.descriptor))

    def open_file(self, name: str) -> int:
        """Open a file in it that is no link, for reading; return the descriptor. Raises OSError."""
        return os.open(name, FILE_FLAGS | NO_LINKS, dir_fd=self.descriptor)

    def create(self, name: str, mode: int = 0o666) -> int:
        """Create a file that is not there; return its descriptor. Raises OSError."""
        return os.open(name, CREATE_FLAGS, mode, dir_fd=self.descriptor)

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Create a folder in it. Raises OSError."""
        os.mkdir(name, mode=mode, dir_fd=self.descriptor)

    def holds(self, name: str) -> bool:
        """Return whether a name is taken, be it by a link that leads nowhere. Raises OSError."""
        try:
            self.own_status(name)
        except FileNotFoundError:
            return False
        return True

    def own_status(self, name: str) -> os.stat_result:
        """Return the status of a file, folder or link. Raises OSError."""
        return os.lstat(name, dir_fd=self.descriptor)

    def target_status(self, name: str) -> os.stat_result:
        """Return the status of a file or folder, or of what a link leads to. Raises OSError."""
        return os.stat(name, dir_fd=self.descriptor)

    def status(self) -> os.stat_result:
        """Return the status of the folder itself. Raises OSError."""
        return os.fstat(self.descriptor)

    def set_mode(self, mode: int) -> None:
        """Change who may use the folder. Raises OSError."""
        os.fchmod(self.descriptor, mode)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """List the folder; the entries are asked for in the opened folder. Raises OSError."""
        with os.scandir(self.descriptor) as scanner:
            yield scanner

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, in the place of whatever has it. Raises OSError."""
        os.rename(name, new_name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def link(self, name: str, new_name: str) -> None:
        """Give a file a name that must be free; it may lose its present one. Raises OSError."""
        own_descriptor = self.descriptor
        os.link(
            name,
            new_name,
            src_dir_fd=own_descriptor,
            dst_dir_fd=own_descriptor,
            follow_symlinks=False,
        )

    def remove(self, name: str) -> None:
        """Remove a file, or a link of that name. Raises OSError."""
        os.unlink(name, dir_fd=self.descriptor)

    def remove_quietly(self, name: str) -> None:
        """Remove a file if that is possible."""
        with suppress(OSError):
            self.remove(name)

    def remove_folder(self, name: str) -> None:
        """Remove a folder in it that is empty. Raises OSError."""
        os.rmdir(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Make what was created, renamed and removed in it durable. Raises OSError."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise


class FolderByPath(OpenFolder):
    """A folder that is held by its path without links, where a system cannot open folders."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        """Look the folder up. Raises FileNotFoundError and NotADirectoryError."""
        super().__init__(-1)
        self._path = real_path(path)
        if not stat.S_ISDIR(os.stat(self._path).st_mode):
            raise _refusal(errno.ENOTDIR, path)

    def _path_of(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def duplicate(self) -> OpenFolder:
        """Return the same folder."""
        return FolderByPath(self._path)

    def open_folder(self, name: str) -> OpenFolder:
        """Open a folder in it that is no link. Raises OSError."""
        self._refuse_link(name)
        return FolderByPath(self._path_of(name))

    def open_file(self, name: str) -> int:
        """Open a file in it that is no link, for reading; return the descriptor. Raises OSError."""
        self._refuse_link(name)
        return os.open(self._path_of(name), FILE_FLAGS)

    def _refuse_link(self, name: str) -> None:
        if stat.S_ISLNK(self.own_status(name).st_mode):
            raise _refusal(errno.ELOOP, self._path_of(name))

    def create(self, name: str, mode: int = 0o666) -> int:
        """Create a file that is not there; return its descriptor. Raises OSError."""
        return os.open(self._path_of(name), CREATE_FLAGS, mode)

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Create a folder in it. Raises OSError."""
        os.mkdir(self._path_of(name), mode)

    def own_status(self, name: str) -> os.stat_result:
        """Return the status of a file, folder or link. Raises OSError."""
        return os.lstat(self._path_of(name))

    def target_status(self, name: str) -> os.stat_result:
        """Return the status of a file or folder, or of what a link leads to. Raises OSError."""
        return os.stat(self._path_of(name))

    def status(self) -> os.stat_result:
        """Return the status of the folder itself. Raises OSError."""
        return os.stat(self._path)

    def set_mode(self, mode: int) -> None:
        """Change who may use the folder. Raises OSError."""
        os.chmod(self._path, mode)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """List the folder. Raises OSError."""
        with os.scandir(self._path) as scanner:
            yield scanner

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, in the place of whatever has it. Raises OSError."""
        _when_not_shared(lambda: os.replace(self._path_of(name), self._path_of(new_name)))

    def link(self, name: str, new_name: str) -> None:
        """Give a file a name that must be free; it may lose its present one. Raises OSError."""
        if IS_WINDOWS:
            os.rename(self._path_of(name), self._path_of(new_name))  # refuses a name that is taken
        elif not IS_WEBASSEMBLY:
            os.link(self._path_of(name), self._path_of(new_name), follow_symlinks=False)
        elif self.holds(new_name):  # no process or thread can come between
            raise _refusal(errno.EEXIST, self._path_of(new_name))
        else:
            os.rename(self._path_of(name), self._path_of(new_name))

    def remove(self, name: str) -> None:
        """Remove a file, or a link of that name. Raises OSError."""
        _when_not_shared(lambda: os.unlink(self._path_of(name)))

    def remove_folder(self, name: str) -> None:
        """Remove a folder in it that is empty. Raises OSError."""
        os.rmdir(self._path_of(name))

    def sync(self) -> None:
        """Do nothing: neither Windows nor WebAssembly can sync a folder."""


def open_folder(path: str) -> OpenFolder:
    """Open a folder, or what a link leads to. Raises OSError."""
    return OpenFolder(os.open(path, FOLDER_FLAGS)) if HOLDS_FOLDERS else FolderByPath(path)


def _refusal(code: int, path: str) -> OSError:
    """Return the error that a system gives which has the call; callers translate it."""
    return OSError(code, os.strerror(code), path)


def close_quietly(descriptor: int) -> None:
    """Close a descriptor and ignore errors: only a sync reports whether writes succeeded."""
    with suppress(OSError):
        os.close(descriptor)


def _when_not_shared(call: Callable[[], None]) -> None:
    """Repeat a call while Windows refuses it because another process reads the file."""
    end = time.monotonic() + (SHARED_S_MAX if IS_WINDOWS else 0.0)
    while True:
        try:
            return call()
        except PermissionError:
            if time.monotonic() >= end:
                raise
        time.sleep(_SHARED_LOOK_S)


# --- contents -------------------------------------------------------------------------------------


def read_at(descriptor: int, size_bytes: int, start: int) -> bytes:
    """Read up to ``size_bytes`` from a position of a file. Raises OSError."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size_bytes, start)
    os.lseek(descriptor, start, os.SEEK_SET)  # nobody else uses the descriptor
    return os.read(descriptor, size_bytes)


def write_pieces(descriptor: int, pieces: Sequence[memoryview]) -> int:
    """Write some of the pieces, which are not empty; return how many bytes. Raises OSError."""
    if hasattr(os, "writev"):
        return os.writev(descriptor, pieces)
    return os.write(descriptor, pieces[0])


# --- locks ----------------------------------------------------------------------------------------


class FolderLock:
    """The advisory lock of an opened folder; the system releases it when the process ends."""

    __slots__ = ("_folder",)

    def __init__(self, folder: OpenFolder) -> None:
        self._folder = folder

    def acquire(self) -> None:
        """Wait for the lock. Raises OSError."""
        fcntl.flock(self._folder.descriptor, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it was. Raises OSError."""
        try:
            fcntl.flock(self._folder.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock for the next one. Raises OSError."""
        fcntl.flock(self._folder.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the folder, and so release the lock."""
        self._folder.close()


class LockByFile(FolderLock):
    """The lock of a file of the user that stands for the folder, outside of the dataset (Windows).

    Its first byte is locked; the file stays.
    """

    __slots__ = ("_file",)

    def __init__(self, folder: OpenFolder, path: str) -> None:
        """Open the file. Raises OSError."""
        import hashlib
        import tempfile

        super().__init__(folder)
        name = hashlib.sha256(os.path.normcase(real_path(path)).encode()).hexdigest()
        around = os.path.join(tempfile.gettempdir(), "lance_nb-locks")
        os.makedirs(around, exist_ok=True)
        self._file = os.open(os.path.join(around, name), _flags("O_RDWR", "O_CREAT"), 0o600)

    def acquire(self) -> None:
        """Wait for the lock. Raises OSError."""
        while not self.try_acquire():
            time.sleep(_SHARED_LOOK_S)

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it was. Raises OSError."""
        os.lseek(self._file, 0, os.SEEK_SET)
        try:
            msvcrt.locking(self._file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def release(self) -> None:
        """Release the lock for the next one. Raises OSError."""
        os.lseek(self._file, 0, os.SEEK_SET)
        msvcrt.locking(self._file, msvcrt.LK_UNLCK, 1)

    def close(self) -> None:
        """Close the file, and so release the lock."""
        super().close()
        file, self._file = self._file, -1
        if file >= 0:
            close_quietly(file)


class LockInProcess(FolderLock):
    """A lock among the threads of this process, where a system has no locks of files."""

    __slots__ = ("_is_held", "_lock")

    def __init__(self, folder: OpenFolder, path: str) -> None:
        super().__init__(folder)
        self._lock = _process_locks.setdefault(real_path(path), threading.Lock())
        self._is_held = False

    def acquire(self) -> None:
        """Wait for the lock."""
        self._is_held = self._lock.acquire()

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        self._is_held = self._lock.acquire(blocking=False)
        return self._is_held

    def release(self) -> None:
        """Release the lock for the next one, if it is held."""
        if self._is_held:
            self._is_held = False
            self._lock.release()

    def close(self) -> None:
        """Close the folder and release the lock."""
        super().close()
        self.release()


_process_locks: dict[str, threading.Lock] = {}


def folder_lock(folder: OpenFolder, path: str) -> FolderLock:
    """Return the lock of an opened folder, which it closes. Raises OSError."""
    if fcntl is not None and folder.descriptor >= 0:
        return FolderLock(folder)
    return LockInProcess(folder, path) if msvcrt is None else LockByFile(folder, path)


# --- the process ----------------------------------------------------------------------------------


def count_waits() -> int:
    """Return how often this thread has waited for a disk or a server; 0 where none tells.

    What is interrupted by other programs does not wait.
    """
    if not hasattr(resource, "RUSAGE_THREAD"):  # Linux has it
        return 0
    waits: int = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    return waits


def call_in_forked_children(function: Callable[[], object]) -> None:
    """Let a function be called in each process that is forked from this one, where any can be."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def current_user() -> int | None:
    """Return the number of the user whose files are ours; None where files have no such owner."""
    return os.geteuid() if HAS_OWNERS else None
