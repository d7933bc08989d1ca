"""Give a finished local file its name, take a name away, and say truly what became of it.

A file is written under a temporary name beside its place; a hard link or a rename makes it appear.
A network file system (soft NFS, FUSE) may do that and then report an error, because the reply was
lost. So after any error the two names are looked at: the same device and inode number mean that
the call did its work. If the name is not there, the temporary file is removed and the name looked
for once more: without its source, a link or a rename that is still under way cannot land. What
neither look decides is told as an outcome ``"unknown"``.

The folder is synced after that. When this fails, every reader sees the file, and a power failure
may undo it: the outcome is ``"unsynced"``. The sync is not repeated, because a system that has
reported an error once may report success for what it has dropped.

Limits: file systems that cannot sync folders (they say EINVAL or "not supported") are taken to need
none. Where two names of one file have different inode numbers (some FUSE), contents are compared,
and what is equal may be somebody else's: unknown.
Source: link(2), rename(2), fsync(2); "Fsync Errors" of the PostgreSQL wiki.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from lance_nb.errors import ObjectExistsError, StorageError
from lance_nb.storage.base import Buffer

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
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
    """A file under its temporary name: what it is known by whatever it is called."""

    path: str
    device: int
    inode: int
    size_bytes: int

    @classmethod
    def of(cls, path: str, descriptor: int) -> WrittenFile:
        """Describe an open file."""
        status = os.fstat(descriptor)
        return cls(path, status.st_dev, status.st_ino, status.st_size)


class _Found(Enum):
    """What lies at a name after an error."""

    OURS = "the file itself"
    NOTHING = "no file"
    OTHER = "another file"
    EQUAL = "a file of the same content"
    UNCLEAR = "it could not be looked at"


def link_if_absent(file: WrittenFile, full: str, data: Buffer) -> None:
    """Give a file a second name unless that is taken; ``data`` is what the file holds.

    Raises ObjectExistsError, and StorageError with the outcome "failed" or "unknown".
    """
    try:
        os.link(file.path, full)
    except OSError as error:
        problem = error
    else:
        return
    found = _look(file, full, data)
    if found is _Found.OURS:
        return
    if found is _Found.OTHER or (isinstance(problem, FileExistsError) and _is_taken(found)):
        raise ObjectExistsError(full) from problem
    if found is _Found.NOTHING and _is_removed(file):
        found = _look(file, full, data)
        if found is _Found.OURS:
            return
        if found is _Found.OTHER:
            raise ObjectExistsError(full) from problem
        if found is _Found.NOTHING:
            raise StorageError(full, _why_not_linked(problem)) from problem
    raise StorageError(full, _reason(problem), "unknown") from problem


def rename_over(file: WrittenFile, full: str, data: Buffer | None = None) -> None:
    """Give a file its name, in place of what had it; ``data`` is what the file holds, if known.

    Raises StorageError with the outcome "failed" or "unknown".
    """
    try:
        os.rename(file.path, full)
    except OSError as error:
        problem = error
    else:
        return
    before = _look(file, file.path, data)
    found = _look(file, full, data)
    is_gone = before is _Found.NOTHING
    if found is _Found.OURS or (found is _Found.EQUAL and is_gone):
        return
    if found is _Found.NOTHING and is_gone:
        raise StorageError(full, _reason(problem)) from problem
    if before in (_Found.OURS, _Found.EQUAL) and _is_removed(file):
        found = _look(file, full, data)
        if found is _Found.OURS:
            return
        if found is not _Found.UNCLEAR:
            raise StorageError(full, _reason(problem)) from problem
    raise StorageError(full, _reason(problem), "unknown") from problem


def remove(full: str) -> None:
    """Remove a file if there is one.

    Raises StorageError, with the outcome "unknown" when the removal may still be under way.
    """
    try:
        os.unlink(full)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if _is_gone(full):
            return
        outcome = "failed" if error.errno in _REFUSALS else "unknown"
        raise StorageError(full, _reason(error), outcome) from error


def remove_quietly(path: str) -> None:
    """Remove a file if that is possible."""
    with suppress(OSError):
        os.unlink(path)


def sync_folder(full: str) -> None:
    """Make the entry of ``full`` in its folder durable. Raises OSError."""
    descriptor = os.open(os.path.dirname(full), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        close_quietly(descriptor)


def close_quietly(descriptor: int) -> None:
    """Close a descriptor; an error says nothing of what was done before, a sync does."""
    with suppress(OSError):
        os.close(descriptor)


def sync_name(full: str) -> None:
    """Make the new name of a file durable. Raises StorageError with the outcome "unsynced"."""
    try:
        sync_folder(full)
    except OSError as error:
        reason = f"written, but its folder could not be synced: {_reason(error)}"
        raise StorageError(full, reason, "unsynced") from error


def _look(file: WrittenFile, full: str, data: Buffer | None) -> _Found:
    """Say what lies at a name, as it is now."""
    try:
        status = os.lstat(full)
        if (status.st_dev, status.st_ino) == (file.device, file.inode):
            return _Found.OURS
        if data is None:
            return _Found.EQUAL if status.st_size == file.size_bytes else _Found.OTHER
        return _Found.EQUAL if _holds(full, data) else _Found.OTHER
    except (FileNotFoundError, NotADirectoryError):
        return _Found.NOTHING
    except OSError:
        return _Found.UNCLEAR


def _holds(full: str, data: Buffer) -> bool:
    expected = memoryview(data).cast("B")
    descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_size != len(expected):
            return False
        at = 0
        while at < len(expected):
            piece = os.pread(descriptor, len(expected) - at, at)
            if not piece or piece != expected[at : at + len(piece)]:
                return False
            at += len(piece)
        return True
    finally:
        close_quietly(descriptor)


def _is_taken(found: _Found) -> bool:
    return found in (_Found.EQUAL, _Found.NOTHING)  # nothing: it was taken a moment ago


def _is_removed(file: WrittenFile) -> bool:
    """Remove the temporary file; tell whether it is gone for certain."""
    remove_quietly(file.path)
    return _is_gone(file.path)


def _is_gone(path: str) -> bool:
    try:
        os.lstat(path)
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
