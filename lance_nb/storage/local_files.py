"""The system calls behind local.py: opening, mapping, and writing durably.

Limits: only regular files (a FIFO or device would hang or never end), opened without blocking.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lance_nb.errors import LanceError, ObjectExistsError, ObjectNotFoundError, StorageError
from lance_nb.storage.base import Buffer

MAPPINGS_MAX = 256
TEMPORARY_PREFIX = ".tmp-"

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # non-blocking: a FIFO must not hang us


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the errors of the operating system into ours."""
    try:
        yield
    except LanceError:
        raise  # several of ours are OSErrors as well
    except OSError as error:
        raise _ours(path, error) from error


def _ours(path: str, error: OSError) -> LanceError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ObjectNotFoundError(path)
    return StorageError(path, error.strerror or str(error))


def check_regular(path: str, status: os.stat_result) -> None:
    """Refuse everything but regular files. Raises StorageError."""
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(path, "it is not a regular file")


class Mappings:
    """The most recently used mapped files: path -> (identity, view)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[tuple[int, ...], memoryview]] = OrderedDict()

    def get(self, path: str, status: os.stat_result) -> memoryview:
        """Return the mapping of a file that is not empty and has this status."""
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            entry = self._entries.get(path)
            if entry is not None and entry[0] == identity:
                self._entries.move_to_end(path)
                return entry[1]
        view = self._map(path)
        with self._lock:
            self._entries[path] = (identity, view)
            self._entries.move_to_end(path)
            while len(self._entries) > MAPPINGS_MAX:
                self._entries.popitem(last=False)
        return view

    def drop(self, path: str) -> None:
        """Forget a file that has been replaced."""
        with self._lock:
            self._entries.pop(path, None)

    @staticmethod
    def _map(path: str) -> memoryview:
        # pyarrow closes the descriptor and keeps the mapping; Python's mmap holds one per mapping,
        # and a dataset of 1,000 files would run out of them.
        with pa.memory_map(path) as file:
            return memoryview(file.read_buffer()).cast("B")


def read_file(path: str, tail_bytes: int | None = None) -> tuple[memoryview, int]:
    """Read a file, or only its last ``tail_bytes``, with one open; also return its size."""
    try:  # not by `translated`: a scan of many small files notices what a context manager costs
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            status = os.fstat(descriptor)
            check_regular(path, status)
            start = 0 if tail_bytes is None else max(status.st_size - tail_bytes, 0)
            data = _pread_all(descriptor, start, status.st_size)
        finally:
            os.close(descriptor)
    except LanceError:
        raise
    except OSError as error:
        raise _ours(path, error) from error
    return memoryview(data), status.st_size


def _pread_all(descriptor: int, start: int, stop: int) -> bytes:
    data = os.pread(descriptor, stop - start, start)
    while len(data) < stop - start:  # one read returns at most 2 GiB, and a signal may shorten it
        more = os.pread(descriptor, stop - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def write_temporary(full: str, data: Buffer, *, durable: bool = True) -> str:
    """Write ``data`` beside ``full``, under a name no manifest has; return that path."""
    folder = os.path.dirname(full)
    temporary = f"{folder}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    with translated(full):
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                view = memoryview(data).cast("B")
                while view:
                    view = view[file.write(view) :]
                if durable:
                    os.fsync(file.fileno())
        except OSError:
            remove_quietly(temporary)
            raise
    return temporary


def link_if_absent(temporary: str, full: str) -> None:
    """Give a file a second name unless the name is taken. Raises ObjectExistsError."""
    try:
        os.link(temporary, full)
    except FileExistsError:
        # Network file systems may lose the reply and repeat the request: then the link is ours.
        if os.stat(temporary).st_nlink == 2:
            return
        raise ObjectExistsError(full) from None
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _NO_HARD_LINKS:
            reason = (
                f"this file system does not make hard links ({reason}), so a commit could not be "
                "made exclusive"
            )
        raise StorageError(full, reason) from error


def sync_folder(full: str) -> None:
    """Make the entry of ``full`` in its folder durable."""
    descriptor = os.open(os.path.dirname(full), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: str) -> Iterator[None]:
    """Hold the advisory lock of a folder; the system releases it when the process ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_quietly(path: str) -> None:
    """Remove a file if that is possible."""
    try:
        os.unlink(path)
    except OSError:
        return
