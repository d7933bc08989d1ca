"""Rename, link and remove local files, and report reliably what became of them.

A file is written under a temporary name in its folder; a hard link or a rename makes it appear.
A network file system (soft NFS, FUSE) may do that and then report an error, because the reply was
lost. So after any error both names are looked up: the same device and inode number mean that the
call succeeded. If the name does not exist, the temporary file is removed and the name looked up
once more: without its source, a link or a rename that is still in progress cannot succeed. If
neither lookup decides, the outcome is ``"unknown"``.

The folder is synced after that. When this fails, every reader sees the file, but a power failure
may undo it: the outcome is ``"unsynced"``. The sync is not repeated, because a system that has
reported an error once may report success for data that it has dropped.

All names are relative to the opened folder, so that no link is followed (links.py).

Limits: file systems that cannot sync folders (EINVAL or "not supported") are assumed to need no
sync. Where two names of one file have different inode numbers (some FUSE), contents are compared;
an equal file may be that of another writer, so the outcome is unknown.
Source: link(2), rename(2), fsync(2); "Fsync Errors" of the PostgreSQL wiki.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum

from lance_nb.errors import ObjectExistsError, StorageError
from lance_nb.storage.base import Buffer
from lance_nb.storage.system_calls import OpenFolder, close_quietly, read_at
from lance_nb.value_classes import dataclass

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
# Errors that a system reports before it begins; after others, a removal may still be under way.
_REFUSALS = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EBUSY,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOSPC,
}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file under its temporary name, with its identity under any name."""

    folder: OpenFolder
    name: str
    device: int
    inode: int
    size_bytes: int

    @classmethod
    def of(cls, folder: OpenFolder, name: str, descriptor: int) -> WrittenFile:
        """Describe an open file in a folder."""
        status = os.fstat(descriptor)
        return cls(folder, name, status.st_dev, inode=status.st_ino, size_bytes=status.st_size)


class _Found(Enum):
    """What lies at a name after an error."""

    OURS = "the file itself"
    NOTHING = "no file"
    OTHER = "another file"
    EQUAL = "a file of the same content"
    UNCLEAR = "it could not be looked at"


def link_if_absent(file: WrittenFile, full: str, data: Buffer) -> None:
    """Hard-link a file to its name unless that exists; ``data`` is what the file holds.

    Raises ObjectExistsError, and StorageError with the outcome "failed" or "unknown".
    """
    name = full.rpartition("/")[2]
    try:
        file.folder.link(file.name, name)
    except OSError as error:
        problem = error
    else:
        return
    existing = _look(file, name, data)
    if existing is _Found.OURS:
        return
    if existing is _Found.OTHER or (isinstance(problem, FileExistsError) and _is_taken(existing)):
        raise ObjectExistsError(full) from problem
    if existing is _Found.NOTHING and _is_removed(file):
        existing = _look(file, name, data)
        if existing is _Found.OURS:
            return
        if existing is _Found.OTHER:
            raise ObjectExistsError(full) from problem
        if existing is _Found.NOTHING:
            raise StorageError(full, _why_not_linked(problem)) from problem
    raise StorageError(full, _reason(problem), "unknown") from problem


def rename_over(file: WrittenFile, full: str, data: Buffer | None = None) -> None:
    """Rename a file over any file of that name; ``data`` is what the file holds, if known.

    Raises StorageError with the outcome "failed" or "unknown".
    """
    name = full.rpartition("/")[2]
    try:
        file.folder.rename(file.name, name)
    except OSError as error:
        problem = error
    else:
        return
    before = _look(file, file.name, data)
    existing = _look(file, name, data)
    is_gone = before is _Found.NOTHING
    if existing is _Found.OURS or (existing is _Found.EQUAL and is_gone):
        return
    if existing is _Found.NOTHING and is_gone:
        raise StorageError(full, _reason(problem)) from problem
    if before in (_Found.OURS, _Found.EQUAL) and _is_removed(file):
        existing = _look(file, name, data)
        if existing is _Found.OURS:
            return
        if existing is not _Found.UNCLEAR:
            raise StorageError(full, _reason(problem)) from problem
    raise StorageError(full, _reason(problem), "unknown") from problem


def remove(folder: OpenFolder, full: str) -> None:
    """Remove a file in its folder if there is one.

    Raises StorageError, with the outcome "unknown" when the removal may still be under way.
    """
    name = full.rpartition("/")[2]
    try:
        folder.remove(name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if _is_gone(folder, name):
            return
        outcome = "failed" if error.errno in _REFUSALS else "unknown"
        raise StorageError(full, _reason(error), outcome) from error


def sync_name(folder: OpenFolder, full: str) -> None:
    """Make the new name of a file durable. Raises StorageError with the outcome "unsynced"."""
    try:
        folder.sync()
    except OSError as error:
        reason = f"written, but its folder could not be synced: {_reason(error)}"
        raise StorageError(full, reason, "unsynced") from error


def _look(file: WrittenFile, name: str, data: Buffer | None) -> _Found:
    """Return what is at a name now, compared with ``file``."""
    try:
        status = file.folder.own_status(name)
        if (status.st_dev, status.st_ino) == (file.device, file.inode):
            return _Found.OURS
        if stat.S_ISLNK(status.st_mode):  # we make none
            return _Found.OTHER
        if data is None:
            return _Found.EQUAL if status.st_size == file.size_bytes else _Found.OTHER
        return _Found.EQUAL if _holds(file.folder, name, data) else _Found.OTHER
    except (FileNotFoundError, NotADirectoryError):
        return _Found.NOTHING
    except OSError as error:  # no file can have a name that is too long
        return _Found.NOTHING if error.errno == errno.ENAMETOOLONG else _Found.UNCLEAR


def _holds(folder: OpenFolder, name: str, data: Buffer) -> bool:
    expected = memoryview(data).cast("B")
    descriptor = folder.open_file(name)
    try:
        if os.fstat(descriptor).st_size != len(expected):
            return False
        offset = 0
        while offset < len(expected):
            piece = read_at(descriptor, len(expected) - offset, offset)
            if not piece or piece != expected[offset : offset + len(piece)]:
                return False
            offset += len(piece)
        return True
    finally:
        close_quietly(descriptor)


def _is_taken(existing: _Found) -> bool:
    return existing in (_Found.EQUAL, _Found.NOTHING)  # nothing: it was taken a moment ago


def _is_removed(file: WrittenFile) -> bool:
    """Remove the temporary file; return whether it certainly does not exist any more."""
    file.folder.remove_quietly(file.name)
    return _is_gone(file.folder, file.name)


def _is_gone(folder: OpenFolder, name: str) -> bool:
    try:
        folder.own_status(name)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _why_not_linked(error: OSError) -> str:
    if error.errno not in _NO_HARD_LINKS:
        return _reason(error)
    return (
        f"this file system does not make hard links ({_reason(error)}), so a commit could not be "
        "made exclusive"
    )
