"""Symbolic links below the root of a local store: which are followed, and how that is enforced.

One rule for reading, listing and writing: a path may lead through symbolic links as long as it ends
below the root, or in a place that the caller allows (``allow_bases`` and ``LANCE_NB_ALLOW_BASES``,
see lance_nb.session.base_paths). Everything else is refused, whatever the link points to. The root
itself, and the folders above it, may be links. Nothing is deleted through a link to a folder,
wherever it leads: with two names of one folder, files in use could look unreferenced.

The name of a file that is written, replaced or deleted is never followed: a link of that name is
replaced or removed itself.

How: a folder directly in the root is opened without following links. Anything deeper, and every
link, is opened first; ``/proc/self/fd`` then gives the real path of the descriptor, so that a link
which is created in between changes nothing. Writes, renames and deletions are relative to the
folder's descriptor. Without ``/proc`` the path is resolved, and must lead to the very object that
was opened. Where a system cannot open folders (Windows, WebAssembly), the resolved path is used.

New folders are durable before anything in them is: the parent folder of each is synced.

Limits: hard links and bind mounts cannot be distinguished from files and folders of the dataset.
Anyone who may rename the root, or a folder above it, decides what the root is. Without opened
folders, a link that another process puts in the place of a folder after the check is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from lance_nb.errors import InvalidInputError, StorageError
from lance_nb.storage.system_calls import (
    FILE_FLAGS,
    FOLDER_FLAGS,
    HOLDS_FOLDERS,
    NO_LINKS,
    OpenFolder,
    open_folder,
    real_path,
)

KNOWN_MAX = 4096
_REMEDY_CHARS = 300
_IS_LINK = {errno.ELOOP, errno.ENOTDIR}  # of opening with O_NOFOLLOW
_OPENED = "/proc/self/fd/%d"
REPLACED_TRIES = 100


class _ReplacedError(StorageError):
    """What was opened is not what its path leads to now, which is below the root."""


def how_to_allow(allowed: Sequence[str], place: str, root: str | None = None) -> str:
    """Return the advice how to trust a place outside of the dataset at ``root``."""
    from lance_nb.code_lines import Python, literal, shell_variable

    places = [*allowed, place]
    if root is None:
        line = f"allow_bases={literal(places)}"
    else:
        line = Python("lance_nb.dataset").call(root, allow_bases=places).code
    if len(line) > _REMEDY_CHARS:  # what is cut must not look like a line to run
        return "if you trust it, name it in allow_bases=[...] when the dataset is opened"
    listed = ""
    if all(map(_is_one_in_a_list, places)):
        listed = shell_variable("LANCE_NB_ALLOW_BASES", os.pathsep.join(places))
    before = f", or before the process starts: {listed}" if listed else ""
    return f"if you trust it, open the dataset with {line}{before}"


def _is_one_in_a_list(place: str) -> bool:
    """Return whether a place stays one where places are separated as in ``PATH``.

    ``/data:/`` is a folder's name, and would allow every folder there.
    """
    scheme, mark, path = place.partition("://")
    return os.pathsep not in (path if mark and scheme.isalnum() else place)


class Boundary:
    """What belongs to a store: everything below ``root``, and below the ``allowed`` local paths."""

    __slots__ = ("_folders_inside", "_inside", "_places", "_start", "allowed", "key", "root")

    def __init__(self, root: str, allowed: Sequence[str] = ()) -> None:
        self.root = root
        self.allowed = tuple(place for place in allowed if "://" not in place)
        self.key = (root, *self.allowed)
        self._start = len(root.rstrip("/")) + 1  # of what is below the root, in a path
        # The real root, with a slash. Before it is looked up, the root as it was given: what lies
        # below that without any link is ours.
        self._inside = _with_slash(root)
        self._places: tuple[str, ...] = ()
        self._folders_inside: set[str] = set()

    # --- opening ------------------------------------------------------------------------------

    def open_folder(self, folder: str, *, create: bool = False) -> OpenFolder:
        """Open a folder that belongs to the store.

        ``create`` makes it, and those above it, if need be. Raises InvalidInputError for a link
        that leads away, and OSError as ``os.open`` does.
        """
        if folder == self.root:
            if create and not os.path.isdir(folder):
                _make_durably(folder)
            return open_folder(folder)
        is_direct = HOLDS_FOLDERS and self._is_direct(folder)
        try:
            if is_direct:
                return OpenFolder(os.open(folder, FOLDER_FLAGS | NO_LINKS))
            opened = open_folder(folder)
        except OSError as error:
            self.check_path(folder)
            if create and isinstance(error, FileNotFoundError):
                self._make(folder)
                return self.open_folder(folder)
            if not is_direct or error.errno not in _IS_LINK:
                raise
            opened = open_folder(folder)
        is_ours = False
        try:
            self._check_folder(opened, folder)
            is_ours = True
        finally:
            if not is_ours:
                opened.close()
        return opened

    def open_file(self, path: str) -> int:
        """Open a file that belongs to the store for reading; return its descriptor.

        It may be no regular file; opening does not wait for a FIFO. One that is replaced meanwhile
        is opened again. Raises as ``open_folder``.
        """
        for _ in range(REPLACED_TRIES - 1):
            with suppress(_ReplacedError):
                return self._open_once(path)
        return self._open_once(path)

    def _open_once(self, path: str) -> int:
        try:
            descriptor = os.open(path, FILE_FLAGS | NO_LINKS)
        except OSError as error:
            self.check_path(path)
            if error.errno not in _IS_LINK:
                raise
            descriptor = os.open(real_path(path), FILE_FLAGS | NO_LINKS)
        is_ours = False
        try:
            self.check(descriptor, path)
            is_ours = True
        finally:
            if not is_ours:
                os.close(descriptor)
        return descriptor

    def know_folder(self, folder: str) -> None:
        """Check once that a folder belongs to the store, for files that were checked before.

        Raises as ``open_folder``.
        """
        if folder not in self._folders_inside:
            self.open_folder(folder or "/").close()
            if len(self._folders_inside) >= KNOWN_MAX:
                self._folders_inside.clear()
            self._folders_inside.add(folder)

    def status(self, path: str) -> os.stat_result:
        """Return the status of a file or folder that belongs to the store. Raises the same."""
        above, _, name = path.rpartition("/")
        with self.open_folder(above or "/") as opened:
            status = opened.own_status(name)
            if stat.S_ISLNK(status.st_mode):
                self.check_path(path)
                status = opened.target_status(name)
        return status

    def open_own_folder(self, folder: str) -> OpenFolder:
        """Open a folder that is reached without any link below the root, to delete in it.

        Raises InvalidInputError, and OSError as ``os.open`` does.
        """
        opened = self.open_folder(folder)
        if folder == self.root or self._is_at(opened, folder):
            return opened
        opened.close()
        link = next(
            (component for component in self._components(folder) if os.path.islink(component)), None
        )
        if link is None:
            raise StorageError(folder, "it was moved while it was used")
        raise InvalidInputError(
            f"{link!r} is a symbolic link, to {real_path(link)!r}: nothing is deleted "
            "through a link; put the folder itself in its place"
        )

    def _make(self, folder: str) -> None:
        """Make a folder and its parents durably, each relative to its opened parent.

        Otherwise a power failure may lose it with the synced files in it.
        """
        above, _, name = folder.rpartition("/")
        with self.open_folder(above, create=True) as around:
            with suppress(FileExistsError):  # created concurrently, or it is no folder
                around.make_folder(name)
            around.sync()

    def _is_direct(self, folder: str) -> bool:
        """Return whether a folder is directly in the root, so that only it can be a link."""
        return "/" not in folder[self._start :]

    # --- checking -----------------------------------------------------------------------------

    def check(self, descriptor: int, path: str) -> None:
        """Refuse an opened file or folder that does not belong to the store.

        Raises InvalidInputError; StorageError where a path does not lead to it any more.
        """
        try:
            real = os.readlink(_OPENED % descriptor)
        except OSError:
            real = ""
        if f"{real}/".startswith(self._inside):
            return
        self._look_up_places()
        if real and self._holds(real):
            return
        self._check_resolved(path, lambda resolved: _is_same(resolved, os.fstat(descriptor)))

    def _check_folder(self, opened: OpenFolder, folder: str) -> None:
        """Refuse an opened folder that does not belong to the store, as ``check`` does."""
        if HOLDS_FOLDERS:
            self.check(opened.descriptor, folder)
            return
        self._look_up_places()
        self._check_resolved(folder, lambda resolved: _is_same(resolved, opened.status()))

    def _check_resolved(self, path: str, is_opened: Callable[[str], bool]) -> None:
        # What the system calls the opened file is not below the root. Before it is refused: another
        # name of the same file may be (a mount that is seen under two names).
        resolved = real_path(path)
        if self._holds(resolved) and is_opened(resolved):
            return
        self.check_path(path)
        kind = _ReplacedError if os.path.exists(resolved) else StorageError
        raise kind(path, "it was moved, replaced or linked to another place while it was opened")

    def check_path(self, path: str) -> None:
        """Refuse a path with a link that leads away, also to something that is not there.

        For what cannot be opened; a link may be put there afterwards. Raises InvalidInputError.
        """
        link = self._link_away(path)
        if link is None:
            return
        target = real_path(link)
        place = target.rpartition("/")[0] if link == path and not os.path.isdir(target) else target
        raise InvalidInputError(
            f"{link!r} is a symbolic link that leaves the dataset, to {target!r}; put the files "
            f"themselves there, or {how_to_allow(self.allowed, place or '/')}"
        )

    def leads_away(self, link: str) -> bool:
        """Return whether a symbolic link leads to something that does not belong to the store."""
        self._look_up_places()
        return not self._holds(real_path(link))

    def _link_away(self, path: str) -> str | None:
        """Return the first link on the way from the root that leads away."""
        return next(
            (
                component
                for component in self._components(path)
                if _is_link(component) and self.leads_away(component)
            ),
            None,
        )

    def _components(self, path: str) -> list[str]:
        """Return the paths of what lies between the root and ``path``, the latter included."""
        parts = path[self._start :].split("/") if len(path) > self._start else []
        return [path[: self._start] + "/".join(parts[:end]) for end in range(1, len(parts) + 1)]

    def _holds(self, real: str) -> bool:
        return f"{real}/".startswith((self._inside, *self._places))

    def _look_up_places(self) -> None:
        """Look up where the root is now: it may be a link that is changed while we run."""
        self._inside = _with_slash(real_path(self.root))
        self._places = tuple(_with_slash(real_path(place)) for place in self.allowed)

    def _is_at(self, opened: OpenFolder, folder: str) -> bool:
        """Return whether an opened folder is at its path without any link below the root."""
        inside = folder[self._start :]
        try:
            if os.readlink(_OPENED % opened.descriptor) == f"{self._inside}{inside}":
                return True
        except OSError:
            pass  # without /proc
        self._look_up_places()
        expected = f"{self._inside}{inside}"
        return real_path(folder) == expected and _is_same(expected, opened.status())


def _make_durably(folder: str) -> None:
    """Make a folder, and those above it; sync each folder that gets a new one."""
    new = []
    while not os.path.isdir(folder):
        new.append(folder)
        folder = os.path.dirname(folder)
    for new_folder in reversed(new):
        os.makedirs(new_folder, exist_ok=True)
        with open_folder(os.path.dirname(new_folder)) as around:
            around.sync()


def _with_slash(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False  # opening it will raise the error


def _is_same(path: str, opened: os.stat_result) -> bool:
    """Return whether a path without links leads to what is opened."""
    try:
        return os.path.samestat(os.lstat(path), opened)
    except OSError:
        return False
