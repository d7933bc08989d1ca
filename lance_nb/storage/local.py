"""Files of the local file system.

Reads: files up to ``SMALL_FILE_BYTES`` by one ``pread``; larger ones are mapped, and every range is
a view of the mapping. Mappings hold no file descriptor and are kept in a small LRU cache; an entry
is dropped when the file at the path has another inode, size or modification time.

Writes are durable: temporary file in the same folder, fsync, rename (``write``) or hard link
(``write_if_absent``), fsync of the folder; files of ``sync_later`` that are pending come first.
``os.link`` is atomic and fails if the name exists, which ``open(..., "xb")`` is not: that shows a
partial file to readers. ``local_naming`` determines what an error of one of these calls means.

Symbolic links are followed within the root and the places that the caller allows (links.py).

Limits: only regular files are opened (a FIFO or device would hang or never end). Sizes are checked
when a file is mapped; a file that is truncated *in place* later cannot be read safely through a
mapping (the system sends SIGBUS). Lance never does that: files are written once.
Not supported: file systems without hard links cannot take ``write_if_absent`` (FAT, some FUSE).
On Windows and WebAssembly files are not mapped, and names are taken by a rename: system_calls.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from lance_nb.errors import InvalidInputError, LanceError, ObjectNotFoundError, StorageError
from lance_nb.storage import meter
from lance_nb.storage.base import (
    Buffer,
    ByteRange,
    Folder,
    Listing,
    Names,
    ObjectInfo,
    absolute_path,
    check_path,
    check_prefix,
    check_range,
)
from lance_nb.storage.links import Boundary
from lance_nb.storage.local_files import (
    Mappings,
    check_regular,
    end_turn,
    locked_folder,
    read_file,
    read_ranges,
    translated,
    turn_in_folder,
    write_plainly,
    write_temporary,
)
from lance_nb.storage.local_naming import (
    link_if_absent,
    remove,
    rename_over,
    sync_name,
)
from lance_nb.storage.sync_later import settle
from lance_nb.storage.system_calls import MAPS_FILES, OpenFolder, check_names

if TYPE_CHECKING:
    from lance_nb.storage.local_writer import LocalObjectWriter

SMALL_FILE_BYTES = 64 * 1024
_CLOCK_TICK_S = 0.05
_NOT_PRUNED = (OSError, InvalidInputError)

_mappings = Mappings()

Entries = Sequence[os.DirEntry[str]]
Found = TypeVar("Found", Listing, Names)


class LocalStore(Folder):
    """A folder of the local file system (see the module for the guarantees).

    ``allowed`` are other local places that symbolic links may lead to. ``maps_files``: larger files
    are mapped, if the system can; mapped pages count as memory of the process.
    """

    def __init__(self, root: str, allowed: Sequence[str] = (), *, maps_files: bool = True) -> None:
        if "\0" in root:
            raise InvalidInputError("a local path cannot hold a NUL character")
        self._root = absolute_path(root)
        self._boundary = Boundary(self._root, allowed)
        self._maps_files = maps_files and MAPS_FILES

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
        store = LocalStore(self._full(path), maps_files=self._maps_files)
        store._boundary = self._boundary  # links may lead to all of the dataset
        return store

    def _full(self, path: str) -> str:
        check_names(path)
        return f"{self._root.rstrip('/')}/{check_path(path)}"

    def _folder(self, prefix: str) -> str:
        prefix = check_prefix(prefix)
        return self._full(prefix) if prefix else self._root

    # --- reading ------------------------------------------------------------------------------

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        full = self._full(path)
        with translated(full):
            status = self._boundary.status(full)
        check_regular(full, status)
        return status.st_size

    def mark(self, path: str) -> tuple[int, str | None]:
        """Return the size of a file and an entity tag made of its inode and times."""
        full = self._full(path)
        with translated(full):
            status = self._boundary.status(full)
        check_regular(full, status)
        now = time.time()
        e_tag = None if now - status.st_ctime < _CLOCK_TICK_S else _e_tag(status, now)
        return status.st_size, None if e_tag is None else f"{e_tag}-{status.st_ctime_ns:x}"

    def exists(self, path: str) -> bool:
        """Return whether ``path`` is a file."""
        try:
            return stat.S_ISREG(self._boundary.status(self._full(path)).st_mode)
        except OSError:
            return False

    def read(self, path: str) -> memoryview:
        """Return a whole file; a large one is mapped."""
        full = self._full(path)
        # Opened without a look at its size beforehand, which scans of many small files notice.
        most_bytes = SMALL_FILE_BYTES if self._maps_files else None
        data, size_bytes = read_file(full, self._boundary, most_bytes=most_bytes)
        meter.count(size_bytes)
        if most_bytes is not None and size_bytes > most_bytes:
            return self._mapped(full, self._status(full))
        return data

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one file."""
        full = self._full(path)
        status = self._status(full)
        for byte_range in byte_ranges:
            check_range(full, byte_range, status.st_size)
        meter.count(sum(byte_range.size_bytes for byte_range in byte_ranges), len(byte_ranges))
        if status.st_size > SMALL_FILE_BYTES:
            if not self._maps_files:
                return read_ranges(full, self._boundary, byte_ranges)
            view = self._mapped(full, status)
        else:
            view = read_file(full, self._boundary)[0]
            # Again: the file may have been replaced by a shorter one meanwhile.
            for byte_range in byte_ranges:
                check_range(full, byte_range, len(view))
        return [view[byte_range.start : byte_range.stop] for byte_range in byte_ranges]

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of a file and its size, with one open."""
        tail = read_file(self._full(path), self._boundary, max(size_bytes, 0))
        meter.count(len(tail[0]))
        return tail

    def map(self, path: str) -> memoryview | None:
        """Map a whole file (an empty one gives an empty view); None where files are not mapped."""
        full = self._full(path)
        status = self._status(full)
        if not self._maps_files:
            self._boundary.check_path(full)  # otherwise it is checked when it is mapped
            return None
        return self._mapped(full, status)

    def _status(self, full: str) -> os.stat_result:
        """Return the status of a file that is opened next, and checked then."""
        try:
            with translated(full):
                status = os.lstat(full)
                if stat.S_ISLNK(status.st_mode):
                    self._boundary.check_path(full)
                    status = os.stat(full)
        except (StorageError, ObjectNotFoundError):
            self._boundary.check_path(full)
            raise
        if not stat.S_ISREG(status.st_mode):
            self._boundary.check_path(full)
            check_regular(full, status)
        return status

    def _mapped(self, full: str, status: os.stat_result) -> memoryview:
        if status.st_size == 0:
            return memoryview(b"")
        with translated(full):
            return _mappings.get(full, status, self._boundary)

    # --- listing ------------------------------------------------------------------------------

    def list(self, prefix: str) -> Listing:
        """Return the regular files directly in a folder, and links that may not be followed."""
        return self._listed(prefix, self._infos)

    def list_names(self, prefix: str) -> Names:
        """Return the names of ``list(prefix)``, without a stat of each file."""
        return self._listed(prefix, self._names)

    def list_folders(self, prefix: str) -> Names:
        """Return the names of the folders directly in a folder; links to folders are left out."""
        return self._listed(
            prefix,
            lambda entries, _full: [
                entry.name for entry in entries if entry.is_dir(follow_symlinks=False)
            ],
        )

    def list_recursive(self, prefix: str) -> Listing:
        """Return all files below a folder; symbolic links to folders are not followed."""
        top = check_prefix(prefix)
        listing: Listing = []
        waiting = [""]
        while waiting:
            start = waiting.pop()
            folder = "/".join(component for component in (top, start) if component)

            def infos(entries: Entries, full: str, start: str = start) -> Listing:
                waiting.extend(
                    f"{start}/{entry.name}" if start else entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                )
                return self._infos(entries, full, f"{start}/" if start else "")

            listing += self._listed(folder, infos)
        return listing

    def _listed(self, prefix: str, read: Callable[[Entries, str], Found]) -> Found:
        """Return ``read`` of the entries of a folder, [] if there is no such folder."""
        meter.count()
        full = self._folder(prefix)
        try:
            with self._boundary.open_folder(full) as folder, folder.entries() as entries:
                return read(list(entries), full)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except LanceError:
            raise
        except OSError as error:
            raise StorageError(full, error.strerror or str(error)) from error

    def _names(self, entries: Entries, full: str) -> Names:
        return [
            entry.name
            for entry in entries
            if entry.is_file(follow_symlinks=False) or self._is_listed_link(entry, full)
        ]

    def _infos(self, entries: Entries, full: str, start: str = "") -> Listing:
        infos = []
        now = time.time()
        for entry in entries:
            is_plain = entry.is_file(follow_symlinks=False)
            if not is_plain and not self._is_listed_link(entry, full):
                continue
            is_followed = not is_plain and not self._leads_away(entry, full)
            try:
                status = entry.stat(follow_symlinks=is_followed)
            except FileNotFoundError:
                continue  # removed since the folder was read
            modified = datetime.fromtimestamp(status.st_mtime, UTC)
            name = start + entry.name
            infos.append(ObjectInfo(name, status.st_size, modified, _e_tag(status, now)))
        return infos

    def _is_listed_link(self, entry: os.DirEntry[str], folder: str) -> bool:
        """Return whether an entry is a link to a file, or one that may not be followed."""
        return entry.is_symlink() and (self._leads_away(entry, folder) or entry.is_file())

    def _leads_away(self, entry: os.DirEntry[str], folder: str) -> bool:
        return self._boundary.leads_away(f"{folder}/{entry.name}")

    # --- writing ------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace a file, durably."""
        meter.count_write(memoryview(data).nbytes)
        full = self._full(path)
        with self._opened(full) as folder:
            with translated(full):
                temporary = write_temporary(folder, data)
            try:
                with translated(full):
                    settle()
                rename_over(temporary, full, data)
            except StorageError:
                folder.remove_quietly(temporary.name)
                raise
            finally:
                _mappings.drop(full, self._boundary)
            sync_name(folder, full)

    def write_new(self, path: str, data: Buffer) -> None:
        """Create a file under a unique name; see ``write_new`` in base."""
        meter.count_write(memoryview(data).nbytes)
        writer = self.create(path)
        writer.write([data])
        writer.finish()

    def write_unsynced(self, path: str, data: Buffer) -> None:
        """Create or replace a file without waiting for the disk; see ``write_unsynced`` in base."""
        full = self._full(path)
        with self._opened(full) as folder, translated(full):
            write_plainly(folder, _name(full), data)
        _mappings.drop(full, self._boundary)

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create a file by hard link, durably; see Store for the outcomes."""
        meter.count_write(memoryview(data).nbytes)
        full = self._full(path)
        with self._opened(full) as folder:
            with translated(full):
                temporary = write_temporary(folder, data)
            try:
                with translated(full):
                    settle()
                link_if_absent(temporary, full, data)
                end_turn(full.rpartition("/")[0])  # several writers wait for the disk together
                sync_name(folder, full)
            finally:
                folder.remove_quietly(temporary.name)
                _mappings.drop(full, self._boundary)

    def create(self, path: str) -> LocalObjectWriter:
        """Begin a file that appears, durably, when it is finished."""
        from lance_nb.storage.local_writer import LocalObjectWriter  # not needed to read

        return LocalObjectWriter(self._full(path), self._boundary)

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace a file, durably, if it still holds ``expected``; return whether it did.

        Other callers of ``replace`` in this folder wait, also those of other processes. Raises
        ObjectNotFoundError.
        """
        full = self._full(path)
        with translated(full), locked_folder(os.path.dirname(full), self._boundary):
            if bytes(read_file(full, self._boundary)[0]) != bytes(expected):
                return False
            self.write(path, data)
        return True

    def delete(self, path: str) -> None:
        """Remove a file, or a link to one, if it exists; not through a link to a folder."""
        full = self._full(path)
        try:
            with translated(full):
                folder = self._boundary.open_own_folder(full.rpartition("/")[0] or "/")
        except ObjectNotFoundError:
            return
        try:
            with folder:
                remove(folder, full)
        finally:
            _mappings.drop(full, self._boundary)

    def turn(self, prefix: str) -> AbstractContextManager[None]:
        """Serialize the writers of a folder; see ``turn`` in base."""
        return turn_in_folder(self._folder(prefix), self._boundary)

    def sync_folder(self, prefix: str) -> None:
        """Make what was deleted in a folder durable."""
        full = self._folder(prefix)
        with translated(full), self._boundary.open_folder(full) as folder:
            folder.sync()

    def remove_empty_folder(self, prefix: str) -> None:
        """Remove a folder below the root that holds nothing; any other stays as it is."""
        full = self._full(prefix)
        with (
            suppress(*_NOT_PRUNED),
            self._boundary.open_own_folder(full.rpartition("/")[0]) as above,
        ):
            above.remove_folder(_name(full))

    def prune(self) -> None:
        """Remove the folders that hold no files, the root among them."""
        for full in reversed(list(self._folders())):
            with suppress(*_NOT_PRUNED):  # not empty, a link, or removed concurrently
                if full == self._boundary.root:
                    os.rmdir(full)
                    continue
                above = full.rpartition("/")[0]
                with self._boundary.open_own_folder(above) as folder:
                    folder.remove_folder(_name(full))

    def _folders(self) -> Iterator[str]:
        """Yield the root and all folders below it, each before what is in it; no links."""
        waiting = [self._root]
        while waiting:
            full = waiting.pop()
            yield full
            with (
                suppress(*_NOT_PRUNED),
                self._boundary.open_own_folder(full) as folder,
                folder.entries() as entries,
            ):
                waiting += [
                    f"{full}/{entry.name}"
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                ]

    def _opened(self, full: str) -> OpenFolder:
        """Open the folder that a file is written to, making it if need be. Raises StorageError."""
        above = full.rpartition("/")[0]
        with translated(full):
            return self._boundary.open_folder(above or "/", create=True)


def _name(full: str) -> str:
    return full.rpartition("/")[2]


def _e_tag(status: os.stat_result, now: float) -> str | None:
    """Return a tag of a file's state, None if a later change could have the same timestamp."""
    if now - status.st_mtime < _CLOCK_TICK_S:
        return None
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}"
