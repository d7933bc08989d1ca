"""A folder that only the current user can read and write, for files that outlive the process.

A name is no proof of ownership: the folder and its files must belong to the user, must not be
writable by others and must not be symbolic links. The folder has mode 700 and its files 600. A mode
that is too open is corrected, except that a file which others could write is refused. All steps use
the descriptor of the opened folder, so that it cannot be replaced in between.

Writes are atomic and durable: temporary file, fsync, rename, fsync of the folder.

Limits: access control lists are not checked. Windows has no file owners and modes of this kind: the
folder is in the user's profile there, which other users cannot read unless they were allowed to.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lance_nb.errors import StorageError
from lance_nb.storage.system_calls import HAS_OWNERS, OpenFolder, current_user, open_folder

_TEMPORARY = ".tmp-"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_LINK_ERRORS = {errno.ELOOP, errno.ENOTDIR}
_ELSEWHERE = "remove it, or set XDG_CACHE_HOME to another folder of your own"
_OLD_S = 24 * 3600.0


def cache_folder(configured: str | None, *parts: str) -> PrivateFolder:
    """Return a folder below ``lance_nb`` in the user's cache folder.

    ``configured``: the value of XDG_CACHE_HOME; ``~/.cache`` is used where there is none.
    """
    cache = Path(configured or "")
    if not cache.is_absolute():  # the XDG specification says to ignore a relative path
        cache = Path.home() / ".cache"
    return PrivateFolder(cache, "lance_nb", *parts)


class PrivateFolder:
    """The folder ``base/parts[0]/parts[1]/...``, opened per call; ``base`` is not checked."""

    def __init__(self, base: Path, *parts: str) -> None:
        self._base = base
        self._parts = parts

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return self._base.joinpath(*self._parts)

    def check(self) -> None:
        """Create the folder if needed. Raises StorageError if other users can access it."""
        with self._opened_or_created():
            pass

    def names(self) -> list[str]:
        """List the files, oldest first, without temporary files. Raises StorageError."""
        with self._opened() as folder:
            if folder is None:
                return []
            dated_names = []
            for name in _listed(folder):
                with suppress(FileNotFoundError):  # removed by another process
                    status = folder.own_status(name)
                    dated_names.append((status.st_mtime_ns, name))
        return [name for _, name in sorted(dated_names) if not name.startswith(_TEMPORARY)]

    def read(self, name: str, size_bytes_max: int) -> bytes | None:
        """Read a file; None if there is none. Raises StorageError if it may not be the user's."""
        with self._opened() as folder:
            if folder is None:
                return None
            path = str(self.path / name)
            try:
                file = folder.open_file(name)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise StorageError(path, _reason(error)) from error
            try:
                _check_file(path, os.fstat(file))
                with _storage_errors(Path(path)), os.fdopen(file, "rb", closefd=False) as opened:
                    data = opened.read(size_bytes_max + 1)
            finally:
                os.close(file)
        if len(data) > size_bytes_max:
            raise StorageError(path, f"it is larger than {size_bytes_max:,} bytes")
        return data

    def has(self, name: str) -> bool:
        """Whether a file, or anything else, has that name. Raises StorageError."""
        with self._opened() as folder:
            return folder is not None and folder.holds(name)

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file, durably. Raises StorageError."""
        with self._opened_or_created() as folder, _storage_errors(self.path / name):
            _remove_old(folder)
            temporary = f"{_TEMPORARY}{uuid.uuid4().hex}"
            file = folder.create(temporary, 0o600)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(data)
                    opened.flush()
                    os.fsync(file)
                folder.rename(temporary, name)
            except OSError:
                folder.remove_quietly(temporary)
                raise
            folder.sync()

    def remove(self, name: str) -> None:
        """Remove a file or link if it exists. Raises StorageError."""
        with self._opened() as folder, _storage_errors(self.path / name):
            if folder is not None:
                with suppress(FileNotFoundError):
                    folder.remove(name)

    @contextmanager
    def _opened_or_created(self) -> Iterator[OpenFolder]:
        """Open the folder; create it if needed."""
        with _storage_errors(self._base):
            self._base.mkdir(parents=True, exist_ok=True)
            folder = open_folder(str(self._base))
        try:
            path = self._base
            for part in self._parts:
                path /= part
                with _storage_errors(path), suppress(FileExistsError):
                    folder.make_folder(part, 0o700)
                folder = _inside(folder, path, is_last=part == self._parts[-1])
            yield folder
        finally:
            folder.close()

    @contextmanager
    def _opened(self) -> Iterator[OpenFolder | None]:
        """Open the folder; None if there is none."""
        try:
            folder = open_folder(str(self._base))
        except OSError:
            yield None
            return
        try:
            path = self._base
            for part in self._parts:
                path /= part
                with _storage_errors(path):
                    is_there = folder.holds(part)
                if not is_there:
                    yield None
                    return
                folder = _inside(folder, path, is_last=part == self._parts[-1])
            yield folder
        finally:
            folder.close()


def _inside(above: OpenFolder, path: Path, *, is_last: bool) -> OpenFolder:
    """Open a folder below another one, and close that one. Raises StorageError."""
    with _storage_errors(path):
        folder = above.open_folder(path.name)
    _check_folder(path, folder, is_last=is_last)
    above.close()
    return folder


def _check_folder(path: Path, folder: OpenFolder, *, is_last: bool) -> None:
    """Refuse a folder of another user, closing it; correct the mode of our own."""
    if not HAS_OWNERS:
        return
    is_ours = False
    try:
        with _storage_errors(path):
            status = folder.status()
            _check_owner(str(path), status)
            mode = 0o700 if is_last else stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS
            if stat.S_IMODE(status.st_mode) != mode:
                folder.set_mode(mode)
        is_ours = True
    finally:
        if not is_ours:
            folder.close()


def _check_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(path, "it is not a regular file")
    if not HAS_OWNERS:
        return
    _check_owner(path, status)
    if status.st_mode & _WRITABLE_BY_OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise StorageError(
            path, f"other users can write to it (mode {mode:o}): it may not be yours"
        )
    if status.st_nlink > 1:
        raise StorageError(path, "it has another hard link: it may not be yours")


def _check_owner(path: str, status: os.stat_result) -> None:
    mine = current_user()
    if status.st_uid != mine:
        raise StorageError(
            path,
            f"it belongs to user {status.st_uid}, not to the current user {mine}; {_ELSEWHERE}",
        )


def _listed(folder: OpenFolder) -> list[str]:
    with folder.entries() as entries:
        return [entry.name for entry in entries]


def _remove_old(folder: OpenFolder) -> None:
    """Remove temporary files of writers that were killed long ago."""
    for name in _listed(folder):
        if name.startswith(_TEMPORARY):
            with suppress(OSError):
                status = folder.own_status(name)
                if time.time() - status.st_mtime > _OLD_S:
                    folder.remove(name)


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    """Raise StorageError for an OSError. Several errors of ours are OSErrors themselves."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(str(path), _reason(error)) from error


def _reason(error: OSError) -> str:
    if error.errno in _LINK_ERRORS:
        return f"it is a symbolic link, which is not followed, or not a folder; {_ELSEWHERE}"
    return f"{error.strerror or error}; {_ELSEWHERE}"
