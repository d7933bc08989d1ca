"""Files of the local file system.

Reads: files up to ``SMALL_FILE_BYTES`` by one ``pread``; larger ones are mapped, and every range is
a view of the mapping. Mappings hold no file descriptor and are kept in a small LRU; an entry is
dropped when the file behind the path has another inode, size or modification time.

Writes are durable: temporary file in the same folder, fsync, rename (``write``) or hard link
(``write_if_absent``), fsync of the folder. ``os.link`` is atomic and fails if the name is taken,
which ``open(..., "xb")`` is not: that shows a partial file to readers.

Limits: only regular files are opened (a FIFO or device would hang or never end). Sizes are checked
when a file is mapped; a file that somebody truncates *in place* later cannot be read safely through
a mapping (the system sends SIGBUS). Lance never does that: files are written once.
Not supported: file systems without hard links cannot take ``write_if_absent`` (FAT, some FUSE).
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa

from lance_nb.errors import (
    InvalidInputError,
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.storage.base import (
    Buffer,
    ByteRange,
    ObjectInfo,
    check_path,
    check_prefix,
    check_range,
)

SMALL_FILE_BYTES = 64 * 1024
MAPPINGS_MAX = 256
TEMPORARY_PREFIX = ".tmp-"

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # non-blocking: a FIFO must not hang us


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn the errors of the operating system into ours."""
    try:
        yield
    except LanceError:
        raise  # several of ours are OSErrors as well
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ObjectNotFoundError(path) from error
    except OSError as error:
        raise StorageError(path, error.strerror or str(error)) from error


def _check_regular(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(path, "it is not a regular file")


class _Mappings:
    """The most recently used mapped files of the process: path -> (identity, view)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[tuple[int, ...], memoryview]] = OrderedDict()

    def get(self, path: str, status: os.stat_result) -> memoryview:
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
        with self._lock:
            self._entries.pop(path, None)

    @staticmethod
    def _map(path: str) -> memoryview:
        # pyarrow closes the descriptor and keeps the mapping; Python's mmap holds one per mapping,
        # and a dataset of 1,000 files would run out of them.
        with pa.memory_map(path) as file:
            return memoryview(file.read_buffer()).cast("B")


_mappings = _Mappings()


class LocalStore:
    """A folder of the local file system (see the module for the guarantees)."""

    def __init__(self, root: str) -> None:
        if "\0" in root:
            raise InvalidInputError("a local path cannot hold a NUL character")
        self._root = os.path.abspath(root)

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    @property
    def uri(self) -> str:
        """The absolute path of the root folder."""
        return self._root

    @property
    def scheme(self) -> str:
        """Always ``file``."""
        return "file"

    def child(self, path: str) -> LocalStore:
        """Return the store rooted at the folder ``path``."""
        return LocalStore(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{check_path(path)}"

    def _folder(self, prefix: str) -> str:
        prefix = check_prefix(prefix)
        return self._full(prefix) if prefix else self._root

    # --- reading ------------------------------------------------------------------------------

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self._status(self._full(path)).st_size

    def exists(self, path: str) -> bool:
        """Tell whether ``path`` is a file."""
        return os.path.isfile(self._full(path))

    def read(self, path: str) -> memoryview:
        """Return a whole file; a large one is mapped."""
        full = self._full(path)
        status = self._status(full)
        if status.st_size > SMALL_FILE_BYTES:
            return self._mapped(full, status)
        return self._pread(full, None)[0]

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        """Return one byte range; of a large file, a view of its mapping."""
        return self.read_ranges(path, [wanted])[0]

    def read_ranges(self, path: str, wanted: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one file."""
        full = self._full(path)
        status = self._status(full)
        for one in wanted:
            check_range(full, one, status.st_size)
        if status.st_size > SMALL_FILE_BYTES:
            view = self._mapped(full, status)
        else:
            view = self._pread(full, None)[0]
            for one in wanted:  # again: it may have been replaced by a shorter one in between
                check_range(full, one, len(view))
        return [view[one.start : one.stop] for one in wanted]

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of a file and its size, with one open."""
        return self._pread(self._full(path), max(size_bytes, 0))

    def map(self, path: str) -> memoryview | None:
        """Map a whole file (an empty one gives an empty view)."""
        full = self._full(path)
        return self._mapped(full, self._status(full))

    @staticmethod
    def _status(full: str) -> os.stat_result:
        with _translated(full):
            status = os.stat(full)
        _check_regular(full, status)
        return status

    @staticmethod
    def _mapped(full: str, status: os.stat_result) -> memoryview:
        if status.st_size == 0:
            return memoryview(b"")
        with _translated(full):
            return _mappings.get(full, status)

    @staticmethod
    def _pread(full: str, tail_bytes: int | None) -> tuple[memoryview, int]:
        with _translated(full):
            descriptor = os.open(full, _OPEN_FLAGS)
            try:
                status = os.fstat(descriptor)
                _check_regular(full, status)
                start = 0 if tail_bytes is None else max(status.st_size - tail_bytes, 0)
                data = _pread_all(descriptor, start, status.st_size)
            finally:
                os.close(descriptor)
        return memoryview(data), status.st_size

    # --- listing ------------------------------------------------------------------------------

    def list(self, prefix: str) -> list[ObjectInfo]:
        """Return the regular files directly in a folder."""
        found = []
        for entry in self._scan(prefix):
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue  # removed since the folder was read
            modified = datetime.fromtimestamp(status.st_mtime, UTC)
            found.append(ObjectInfo(entry.name, status.st_size, modified))
        return found

    def list_names(self, prefix: str) -> list[str]:
        """Return the names of the regular files directly in a folder, without asking each file."""
        return [entry.name for entry in self._scan(prefix)]

    def _scan(self, prefix: str) -> list[os.DirEntry[str]]:
        folder = self._folder(prefix)
        try:
            with os.scandir(folder) as entries:
                return [entry for entry in entries if entry.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StorageError(folder, error.strerror or str(error)) from error

    def list_recursive(self, prefix: str) -> list[ObjectInfo]:
        """Return all files below a folder; symbolic links to folders are not followed."""
        top = self._folder(prefix)
        found = []
        for folder, _, _ in os.walk(top):
            below = os.path.relpath(folder, self._root).replace(os.sep, "/")
            start = "" if folder == top else os.path.relpath(folder, top).replace(os.sep, "/") + "/"
            found += [
                ObjectInfo(start + info.name, info.size_bytes, info.modified)
                for info in self.list("" if below == "." else below)
            ]
        return found

    # --- writing ------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace a file, durably."""
        full = self._full(path)
        temporary = _write_temporary(full, data)
        try:
            with _translated(full):
                os.rename(temporary, full)
                _sync_folder(full)
        except StorageError:
            _remove_quietly(temporary)
            raise
        _mappings.drop(full)

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create a file by hard link, durably; see Store for the outcomes."""
        full = self._full(path)
        temporary = _write_temporary(full, data)
        try:
            _link_if_absent(temporary, full)
            try:
                _sync_folder(full)
            except OSError as error:
                reason = f"created, but its folder could not be synced: {error.strerror}"
                raise StorageError(full, reason, "unknown") from error
        finally:
            _remove_quietly(temporary)
        _mappings.drop(full)

    def delete(self, path: str) -> None:
        """Remove a file if it exists."""
        full = self._full(path)
        try:
            os.unlink(full)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise StorageError(full, error.strerror or str(error)) from error
        _mappings.drop(full)


def _pread_all(descriptor: int, start: int, stop: int) -> bytes:
    data = os.pread(descriptor, stop - start, start)
    while len(data) < stop - start:  # one read returns at most 2 GiB, and a signal may shorten it
        more = os.pread(descriptor, stop - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def _write_temporary(full: str, data: Buffer) -> str:
    folder = os.path.dirname(full)
    temporary = f"{folder}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    with _translated(full):
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                view = memoryview(data).cast("B")
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
        except OSError:
            _remove_quietly(temporary)
            raise
    return temporary


def _link_if_absent(temporary: str, full: str) -> None:
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


def _sync_folder(full: str) -> None:
    descriptor = os.open(os.path.dirname(full), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
