"""Files of the local file system.

Reads: files up to ``SMALL_FILE_BYTES`` by one ``pread``; larger ones are mapped, and every range is
a view of the mapping. Mappings hold no file descriptor and are kept in a small LRU; an entry is
dropped when the file behind the path has another inode, size or modification time.

Writes are durable: temporary file in the same folder, fsync, rename (``write``) or hard link
(``write_if_absent``), fsync of the folder; what waits in ``sync_later`` comes first. ``os.link`` is
atomic and fails if the name is taken, which ``open(..., "xb")`` is not: that shows a partial file
to readers. What an error of one of these calls means is found out in ``local_naming``.

Limits: only regular files are opened (a FIFO or device would hang or never end). Sizes are checked
when a file is mapped; a file that somebody truncates *in place* later cannot be read safely through
a mapping (the system sends SIGBUS). Lance never does that: files are written once.
Not supported: file systems without hard links cannot take ``write_if_absent`` (FAT, some FUSE).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

from lance_nb.errors import InvalidInputError, StorageError
from lance_nb.storage import meter
from lance_nb.storage.base import (
    Buffer,
    ByteRange,
    Listing,
    Names,
    ObjectInfo,
    absolute_path,
    check_path,
    check_prefix,
    check_range,
)
from lance_nb.storage.local_files import (
    Mappings,
    check_regular,
    end_turn,
    locked_folder,
    read_file,
    translated,
    turn_in_folder,
    write_plainly,
    write_temporary,
)
from lance_nb.storage.local_naming import (
    link_if_absent,
    remove,
    remove_quietly,
    rename_over,
    sync_folder,
    sync_name,
)
from lance_nb.storage.local_writer import LocalObjectWriter
from lance_nb.storage.sync_later import settle

SMALL_FILE_BYTES = 64 * 1024
_CLOCK_TICK_S = 0.05

_mappings = Mappings()


class LocalStore:
    """A folder of the local file system (see the module for the guarantees)."""

    def __init__(self, root: str) -> None:
        if "\0" in root:
            raise InvalidInputError("a local path cannot hold a NUL character")
        self._root = absolute_path(root)

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
        meter.count(status.st_size)
        if status.st_size > SMALL_FILE_BYTES:
            return self._mapped(full, status)
        return read_file(full)[0]

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        """Return one byte range; of a large file, a view of its mapping."""
        return self.read_ranges(path, [wanted])[0]

    def read_ranges(self, path: str, wanted: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one file."""
        full = self._full(path)
        status = self._status(full)
        for one in wanted:
            check_range(full, one, status.st_size)
        meter.count(sum(one.size_bytes for one in wanted), len(wanted))
        if status.st_size > SMALL_FILE_BYTES:
            view = self._mapped(full, status)
        else:
            view = read_file(full)[0]
            for one in wanted:  # again: it may have been replaced by a shorter one in between
                check_range(full, one, len(view))
        return [view[one.start : one.stop] for one in wanted]

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of a file and its size, with one open."""
        tail = read_file(self._full(path), max(size_bytes, 0))
        meter.count(len(tail[0]))
        return tail

    def map(self, path: str) -> memoryview | None:
        """Map a whole file (an empty one gives an empty view)."""
        full = self._full(path)
        return self._mapped(full, self._status(full))

    @staticmethod
    def _status(full: str) -> os.stat_result:
        with translated(full):
            status = os.stat(full)
        check_regular(full, status)
        return status

    @staticmethod
    def _mapped(full: str, status: os.stat_result) -> memoryview:
        if status.st_size == 0:
            return memoryview(b"")
        with translated(full):
            return _mappings.get(full, status)

    # --- listing ------------------------------------------------------------------------------

    def list(self, prefix: str) -> Listing:
        """Return the regular files directly in a folder."""
        return _infos(_scan(self._folder(prefix)))

    def list_names(self, prefix: str) -> Names:
        """Return the names of the regular files directly in a folder, without asking each file."""
        return [entry.name for entry in _scan(self._folder(prefix))]

    def list_recursive(self, prefix: str) -> Listing:
        """Return all files below a folder; symbolic links to folders are not followed."""
        top = self._folder(prefix)
        found: Listing = []
        for folder, _, _ in os.walk(top):
            start = "" if folder == top else os.path.relpath(folder, top) + "/"
            found += _infos(_scan(folder), start)
        return found

    # --- writing ------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace a file, durably."""
        meter.count_write(memoryview(data).nbytes)
        full = self._full(path)
        temporary = write_temporary(full, data)
        try:
            with translated(full):
                settle()
            rename_over(temporary, full, data)
        except StorageError:
            remove_quietly(temporary.path)
            raise
        finally:
            _mappings.drop(full)
        sync_name(full)

    def write_new(self, path: str, data: Buffer) -> None:
        """Create a file of a name that nobody has; see ``write_new`` in base."""
        meter.count_write(memoryview(data).nbytes)
        writer = self.create(path)
        writer.write([data])
        writer.finish()

    def write_unsynced(self, path: str, data: Buffer) -> None:
        """Create or replace a file without waiting for the disk; see ``write_unsynced`` in base."""
        full = self._full(path)
        write_plainly(full, data)
        _mappings.drop(full)

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create a file by hard link, durably; see Store for the outcomes."""
        meter.count_write(memoryview(data).nbytes)
        full = self._full(path)
        temporary = write_temporary(full, data)
        try:
            with translated(full):
                settle()
            link_if_absent(temporary, full, data)
            end_turn(os.path.dirname(full))  # several writers wait for the disk together
            sync_name(full)
        finally:
            remove_quietly(temporary.path)
            _mappings.drop(full)

    def create(self, path: str) -> LocalObjectWriter:
        """Begin a file that appears, durably, when it is finished."""
        return LocalObjectWriter(self._full(path))

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace a file, durably, if it still holds ``expected``; tell whether it did.

        Other callers of ``replace`` in this folder wait, also those of other processes. Raises
        ObjectNotFoundError.
        """
        full = self._full(path)
        with translated(full), locked_folder(os.path.dirname(full)):
            if bytes(read_file(full)[0]) != bytes(expected):
                return False
            self.write(path, data)
        return True

    def delete(self, path: str) -> None:
        """Remove a file if it exists."""
        full = self._full(path)
        try:
            remove(full)
        finally:
            _mappings.drop(full)

    def turn(self, prefix: str) -> AbstractContextManager[None]:
        """Let the writers of a folder go one after the other; see ``turn`` in base."""
        return turn_in_folder(self._folder(prefix))

    def sync_folder(self, prefix: str) -> None:
        """Make what was deleted in a folder durable."""
        full = f"{self._folder(prefix)}/"
        with translated(full):
            sync_folder(full)

    def prune(self) -> None:
        """Remove the folders that hold no files, the root among them."""
        for folder, _, _ in os.walk(self._root, topdown=False):
            with suppress(OSError):  # not empty, or somebody else was faster
                os.rmdir(folder)


def _scan(folder: str) -> list[os.DirEntry[str]]:
    meter.count()
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(folder, error.strerror or str(error)) from error


def _e_tag(status: os.stat_result, now: float) -> str | None:
    """Tell states of a file apart; None within the time that two changes may share on its clock."""
    if now - status.st_mtime < _CLOCK_TICK_S:
        return None
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}"


def _infos(entries: Sequence[os.DirEntry[str]], start: str = "") -> list[ObjectInfo]:
    found = []
    now = time.time()
    for entry in entries:
        try:
            status = entry.stat()
        except FileNotFoundError:
            continue  # removed since the folder was read
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        name = start + entry.name
        found.append(ObjectInfo(name, status.st_size, modified, _e_tag(status, now)))
    return found
