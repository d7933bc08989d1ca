"""System calls of the local store: opening, mapping, durable writes, folder locks.

Limits: only regular files (a FIFO or device would hang or never end), opened without blocking.
"""

from __future__ import annotations

import os
import stat
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType

import pyarrow as pa

from lance_nb.errors import LanceError, ObjectNotFoundError, StorageError
from lance_nb.storage.base import Buffer, ByteRange, check_range
from lance_nb.storage.links import Boundary
from lance_nb.storage.local_naming import WrittenFile
from lance_nb.storage.system_calls import FolderLock, OpenFolder, folder_lock, read_at

MAPPINGS_MAX = 256
TEMPORARY_PREFIX = ".tmp-"
TURN_S_MAX = 2.0
_TURN_LOOK_S = 0.0005


class translated:  # noqa: N801 - reads as the statement that it is
    """Turn the errors of the operating system into ours.

    A class, because a generator costs three times as much, and every small write has a dozen.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Several LanceErrors are OSErrors too.
        if isinstance(error, OSError) and not isinstance(error, LanceError):
            raise _ours(self._path, error) from error


def _ours(path: str, error: OSError) -> LanceError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ObjectNotFoundError(path)
    return StorageError(path, error.strerror or str(error))


def check_regular(path: str, status: os.stat_result) -> None:
    """Refuse everything but regular files. Raises StorageError."""
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(path, "it is not a regular file")


_Identity = tuple[int, int, int, int]
_Key = tuple[tuple[str, ...], str]


class Mappings:
    """The most recently used mapped files: (boundary, path) -> (identity, view)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, tuple[_Identity, memoryview]] = OrderedDict()

    def get(self, path: str, status: os.stat_result, boundary: Boundary) -> memoryview:
        """Return the mapping of a file that is not empty and has this status.

        The status is that of the path now: of the same file that was checked when it was mapped,
        or it is mapped again.
        """
        boundary.know_folder(path.rpartition("/")[0])
        key = (boundary.key, path)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] == identity:
                self._entries.move_to_end(key)
                return entry[1]
        view = self._map(path, boundary)
        with self._lock:
            self._entries[key] = (identity, view)
            self._entries.move_to_end(key)
            while len(self._entries) > MAPPINGS_MAX:
                self._entries.popitem(last=False)
        return view

    def drop(self, path: str, boundary: Boundary) -> None:
        """Forget a file that has been replaced."""
        with self._lock:
            self._entries.pop((boundary.key, path), None)

    @staticmethod
    def _map(path: str, boundary: Boundary) -> memoryview:
        # pyarrow closes the descriptor and keeps the mapping; Python's mmap holds one per mapping,
        # and a dataset of 1,000 files would run out of them.
        with pa.memory_map(path) as file:
            boundary.check(file.fileno(), path)
            return memoryview(file.read_buffer()).cast("B")


def read_file(
    path: str, boundary: Boundary, tail_bytes: int | None = None, most_bytes: int | None = None
) -> tuple[memoryview, int]:
    """Read a file, or only its last ``tail_bytes``, with one open; also return its size.

    Of a file of more than ``most_bytes`` nothing is read.
    """
    try:  # not by `translated`: a scan of many small files notices what a context manager costs
        descriptor = boundary.open_file(path)
        try:
            status = os.fstat(descriptor)
            check_regular(path, status)
            start = 0 if tail_bytes is None else max(status.st_size - tail_bytes, 0)
            if most_bytes is not None and status.st_size > most_bytes:
                start = status.st_size
            data = _pread_all(descriptor, start, status.st_size)
        finally:
            os.close(descriptor)
    except LanceError:
        raise
    except OSError as error:
        raise _ours(path, error) from error
    return memoryview(data), status.st_size


def read_ranges(
    path: str, boundary: Boundary, byte_ranges: Sequence[ByteRange]
) -> list[memoryview]:
    """Read ranges of a file that is not mapped, with one open. Raises for one behind its end."""
    with translated(path):
        descriptor = boundary.open_file(path)
        try:
            status = os.fstat(descriptor)
            check_regular(path, status)
            for byte_range in byte_ranges:
                check_range(path, byte_range, status.st_size)
            return [
                memoryview(_pread_all(descriptor, byte_range.start, byte_range.stop))
                for byte_range in byte_ranges
            ]
        finally:
            os.close(descriptor)


def _pread_all(descriptor: int, start: int, stop: int) -> bytes:
    data = read_at(descriptor, stop - start, start)
    while len(data) < stop - start:  # one read returns at most 2 GiB, and a signal may shorten it
        more = read_at(descriptor, stop - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def temporary_name() -> str:
    """Return a unique name that no manifest has."""
    return f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"


def write_temporary(folder: OpenFolder, data: Buffer) -> WrittenFile:
    """Write a file durably, under a name that no manifest has. Raises OSError."""
    temporary = temporary_name()
    is_written = False
    try:
        descriptor = folder.create(temporary)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
            file = WrittenFile.of(folder, temporary, descriptor)
        finally:
            os.close(descriptor)
        is_written = True
    finally:
        if not is_written:  # also when opening it failed: it may exist despite the error
            folder.remove_quietly(temporary)
    return file


def write_plainly(folder: OpenFolder, name: str, data: Buffer) -> None:
    """Write a file in place without fsync; readers must tolerate a partial file.

    An existing file is removed first, not replaced: ext4 flushes a file that replaces another one
    at once, which costs as much as fsync. A file that another process creates in between stays.
    Raises OSError.
    """
    with suppress(FileNotFoundError):
        folder.remove(name)
    try:
        descriptor = folder.create(name)
    except FileExistsError:
        return
    try:
        _write_all(descriptor, data)
    except OSError:
        folder.remove_quietly(name)
        raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: Buffer) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def locked_folder(folder: str, boundary: Boundary) -> Iterator[None]:
    """Hold the advisory lock of a folder; the system releases it when the process ends."""
    lock = folder_lock(boundary.open_folder(folder), folder)
    try:
        lock.acquire()
        yield
    finally:
        lock.close()


class _Turns(threading.local):
    """The folders that this thread has locked."""

    def __init__(self) -> None:
        self.held: dict[str, FolderLock] = {}


_turns = _Turns()


@contextmanager
def turn_in_folder(folder: str, boundary: Boundary) -> Iterator[None]:
    """Hold the advisory lock of a folder if it can be had within ``TURN_S_MAX``.

    The lock is polled, because a blocking wait could not be ended: its holder may be a process that
    has been stopped. ``end_turn`` releases it before the block ends.
    """
    try:
        lock = folder_lock(boundary.open_folder(folder), folder)
    except OSError:  # no folder yet, or an unreadable one: no lock
        yield
        return
    try:
        _lock_for_a_while(lock)
        _turns.held[folder] = lock
        yield
    finally:
        _turns.held.pop(folder, None)
        lock.close()


def end_turn(folder: str) -> None:
    """Release the lock of a folder for the next writer, if this thread holds it."""
    lock = _turns.held.pop(folder, None)
    if lock is not None:
        with suppress(OSError):
            lock.release()


def _lock_for_a_while(lock: FolderLock) -> None:
    end = time.monotonic() + TURN_S_MAX
    with suppress(OSError):  # a file system without locks
        while not lock.try_acquire() and time.monotonic() <= end:
            time.sleep(_TURN_LOOK_S)
