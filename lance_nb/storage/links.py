"""Symbolic links below the root of a local store: which are followed, and how that is enforced.

One rule for reading, listing and writing: a path may lead through symbolic links as long as it ends
below the root, or in a place that the caller allows (``allow_bases`` and ``LANCE_NB_ALLOW_BASES``,
see lance_nb.dataset.base_paths). Everything else is refused, whatever the link points to. The root
itself, and the folders above it, may be links. Nothing is deleted through a link to a folder,
wherever it leads: with two names of one folder, files in use could look unreferenced.

The name of a file that is written, replaced or deleted is never followed: a link of that name is
replaced or removed itself.

How: a folder directly in the root is opened without following links. Anything deeper, and every
link, is opened first; ``/proc/self/fd`` then gives the real path of the descriptor, so that a link
which is created in between changes nothing. Writes, renames and deletions are relative to the
folder's descriptor. Without ``/proc`` the path is resolved, and must lead to the very object that
was opened.

New folders are durable before anything in them is: the parent folder of each is synced.

Limits: hard links and bind mounts cannot be distinguished from files and folders of the dataset.
Anyone who may rename the root, or a folder above it, decides what the root is.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from lance_nb.errors import InvalidInputError, StorageError
from lance_nb.storage.local_naming import OpenFolder

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not block
KNOWN_MAX = 4096
_REMEDY_CHARS = 300
_IS_LINK = {errno.ELOOP, errno.ENOTDIR}  # of opening with O_NOFOLLOW
_OPENED = "/proc/self/fd/%d"


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
    scheme, mark, rest = place.partition("://")
    return os.pathsep not in (rest if mark and scheme.isalnum() else place)


class Boundary:
    """What belongs to a store: everything below ``root``, and below the ``allowed`` local paths."""

    __slots__ = ("_inside", "_known", "_places", "_start", "allowed", "key", "root")

    def __init__(self, root: str, allowed: Sequence[str] = ()) -> None:
        self.root = root
        self.allowed = tuple(one for one in allowed if "://" not in one)
        self.key = (root, *self.allowed)
        self._start = len(root.rstrip("/")) + 1  # of what is below the root, in a path
        # The real root, with a slash. Before it is looked up, the root as it was given: what lies
        # below that without any link is ours.
        self._inside = _with_slash(root)
        self._places: tuple[str, ...] = ()
        self._known: set[str] = set()

    # --- opening ------------------------------------------------------------------------------

    def open_folder(self, folder: str, *, create: bool = False) -> int:
        """Open a folder that belongs to the store; return its descriptor.

        ``create`` makes it, and those above it, if need be. Raises InvalidInputError for a link
        that leads away, and OSError as ``os.open`` does.
        """
        if folder == self.root:
            if create and not os.path.isdir(folder):
                _make_durably(folder)
            return os.open(folder, _FOLDER_FLAGS)
        is_direct = self._is_direct(folder)
        try:
            if is_direct:
                return os.open(folder, _FOLDER_FLAGS | os.O_NOFOLLOW)
            descriptor = os.open(folder, _FOLDER_FLAGS)
        except OSError as error:
            self.check_path(folder)
            if create and isinstance(error, FileNotFoundError):
                self._make(folder)
                return self.open_folder(folder)
            if not is_direct or error.errno not in _IS_LINK:
                raise
            descriptor = os.open(folder, _FOLDER_FLAGS)
        return self._checked(descriptor, folder)

    def open_file(self, path: str) -> int:
        """Open a file that belongs to the store for reading; return its descriptor.

        It may be no regular file; opening does not wait for a FIFO. Raises as ``open_folder``.
        """
        try:
            descriptor = os.open(path, _FILE_FLAGS | os.O_NOFOLLOW)
        except OSError as error:
            self.check_path(path)
            if error.errno not in _IS_LINK:
                raise
            descriptor = os.open(os.path.realpath(path), _FILE_FLAGS | os.O_NOFOLLOW)
        return self._checked(descriptor, path)

    def know_folder(self, folder: str) -> None:
        """Check once that a folder belongs to the store, for files that were checked before.

        Raises as ``open_folder``.
        """
        if folder not in self._known:
            os.close(self.open_folder(folder or "/"))
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known.add(folder)

    def status(self, path: str) -> os.stat_result:
        """Return the status of a file or folder that belongs to the store. Raises the same."""
        above, _, name = path.rpartition("/")
        descriptor = self.open_folder(above or "/")
        try:
            found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                self.check_path(path)
                found = os.stat(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        return found

    def open_own_folder(self, folder: str) -> int:
        """Open a folder that is reached without any link below the root, to delete in it.

        Raises InvalidInputError, and OSError as ``os.open`` does.
        """
        descriptor = self.open_folder(folder)
        if folder == self.root or self._is_at(descriptor, folder):
            return descriptor
        os.close(descriptor)
        link = next((one for one in self._components(folder) if os.path.islink(one)), None)
        if link is None:
            raise StorageError(folder, "it was moved while it was used")
        raise InvalidInputError(
            f"{link!r} is a symbolic link, to {os.path.realpath(link)!r}: nothing is deleted "
            "through a link; put the folder itself in its place"
        )

    def _make(self, folder: str) -> None:
        """Make a folder and its parents durably, each relative to its opened parent.

        Otherwise a power failure may lose it with the synced files in it.
        """
        above, _, name = folder.rpartition("/")
        with OpenFolder(self.open_folder(above, create=True)) as around:
            with suppress(FileExistsError):  # created concurrently, or it is no folder
                os.mkdir(name, dir_fd=around.descriptor)
            around.sync()

    def _is_direct(self, folder: str) -> bool:
        """Return whether a folder is directly in the root, so that only it can be a link."""
        return "/" not in folder[self._start :]

    def _checked(self, descriptor: int, path: str) -> int:
        is_ours = False
        try:
            self.check(descriptor, path)
            is_ours = True
        finally:
            if not is_ours:
                os.close(descriptor)
        return descriptor

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
        # What the system calls the opened file is not below the root. Before it is refused: another
        # name of the same file may be (a mount that is seen under two names).
        resolved = os.path.realpath(path)
        if self._holds(resolved) and _is_same(descriptor, resolved):
            return
        self.check_path(path)
        raise StorageError(path, "it was moved, or linked to another place, while it was opened")

    def check_path(self, path: str) -> None:
        """Refuse a path with a link that leads away, also to something that is not there.

        For what cannot be opened; a link may be put there afterwards. Raises InvalidInputError.
        """
        link = self._link_away(path)
        if link is None:
            return
        target = os.path.realpath(link)
        place = target.rpartition("/")[0] if link == path and not os.path.isdir(target) else target
        raise InvalidInputError(
            f"{link!r} is a symbolic link that leaves the dataset, to {target!r}; put the files "
            f"themselves there, or {how_to_allow(self.allowed, place or '/')}"
        )

    def leads_away(self, link: str) -> bool:
        """Return whether a symbolic link leads to something that does not belong to the store."""
        self._look_up_places()
        return not self._holds(os.path.realpath(link))

    def _link_away(self, path: str) -> str | None:
        """Return the first link on the way from the root that leads away."""
        return next(
            (one for one in self._components(path) if _is_link(one) and self.leads_away(one)), None
        )

    def _components(self, path: str) -> list[str]:
        """Return the paths of what lies between the root and ``path``, the latter included."""
        parts = path[self._start :].split("/") if len(path) > self._start else []
        return [path[: self._start] + "/".join(parts[:end]) for end in range(1, len(parts) + 1)]

    def _holds(self, real: str) -> bool:
        return f"{real}/".startswith((self._inside, *self._places))

    def _look_up_places(self) -> None:
        """Look up where the root is now: it may be a link that is changed while we run."""
        self._inside = _with_slash(os.path.realpath(self.root))
        self._places = tuple(_with_slash(os.path.realpath(one)) for one in self.allowed)

    def _is_at(self, descriptor: int, folder: str) -> bool:
        """Return whether an opened folder is at its path without any link below the root."""
        inside = folder[self._start :]
        try:
            if os.readlink(_OPENED % descriptor) == f"{self._inside}{inside}":
                return True
        except OSError:
            pass  # without /proc
        self._look_up_places()
        expected = f"{self._inside}{inside}"
        return os.path.realpath(folder) == expected and _is_same(descriptor, expected)


def _make_durably(folder: str) -> None:
    """Make a folder, and those above it; sync each folder that gets a new one."""
    new = []
    while not os.path.isdir(folder):
        new.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(new):
        os.makedirs(one, exist_ok=True)
        with OpenFolder(os.open(os.path.dirname(one), _FOLDER_FLAGS)) as around:
            around.sync()


def _with_slash(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False  # opening it will raise the error


def _is_same(descriptor: int, path: str) -> bool:
    """Return whether a path without links leads to what is opened."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
