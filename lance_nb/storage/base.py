"""The store interface: named byte objects below one root URI.

Paths are relative to the root, with ``/`` between segments on every platform, for example
``_versions/1.manifest``. Objects are immutable by convention (Lance never changes a file in place),
so a store may return read-only views without copying.

Limits: a segment is any text without slash, backslash or NUL, and is not ``.`` or ``..``.
Not supported: appending to objects that exist, partial writes, renaming; the format needs none of
them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Protocol

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.storage.system_calls import plain_path
from lance_nb.value_classes import dataclass

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``[start, stop)`` of one object, counted from its beginning."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.stop:
            raise InvalidInputError(f"byte range [{self.start}, {self.stop}) is not a range")

    @property
    def size_bytes(self) -> int:
        """Number of bytes in the range."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing. ``name`` is relative to the folder that was listed.

    ``e_tag`` differs whenever the bytes may: what was read under one holds while it is listed.
    None if the store has none, or a local file is so recent that a change might not show in it.
    """

    name: str
    size_bytes: int
    modified: datetime | None = None
    e_tag: str | None = None


Listing = list[ObjectInfo]  # named, because Store.list hides the builtin inside its class
Names = list[str]


class ObjectWriter(Protocol):
    """An object that is written piece by piece and becomes visible when it is finished."""

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes, one after the other. A failure aborts."""
        ...

    def finish(self) -> None:
        """Make the object appear, whole and durable. Raises StorageError, leaving nothing."""
        ...

    def abort(self) -> None:
        """Drop what was written; does nothing after ``finish`` or a second time."""
        ...


class Store(Protocol):
    """Named byte objects below a root. Every method is safe to call from several threads.

    A missing object raises ObjectNotFoundError; any other failure raises StorageError, with the
    cause attached. A range that reaches past the end of its object raises CorruptFileError, because
    the size in the file that refers to it is wrong.
    """

    @property
    def uri(self) -> str:
        """The root, as text that ``open_store`` understands; free of secrets."""
        ...

    @property
    def scheme(self) -> str:
        """The URI scheme: ``file``, ``memory``, ``s3``..."""
        ...

    def child(self, path: str) -> Store:
        """Return the store rooted at the folder ``path`` below this root."""
        ...

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is an object (not a folder) at ``path``."""
        ...

    def read(self, path: str) -> memoryview:
        """Return a whole object (a read-only view, possibly mapped)."""
        ...

    def read_range(self, path: str, byte_range: ByteRange) -> memoryview:
        """Return one byte range (a read-only view)."""
        ...

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object, in the order asked for."""
        ...

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last ``size_bytes`` (or all, if it is shorter) and the size of the object."""
        ...

    def map(self, path: str) -> memoryview | None:
        """Return a view of a whole object without copying it, None where the store cannot."""
        ...

    def list(self, prefix: str) -> Listing:
        """Return the objects directly in the folder ``prefix`` ("" is the root), in no order.

        A folder that does not exist is empty. Sub-folders are left out.
        """
        ...

    def list_names(self, prefix: str) -> Names:
        """Return only the names of ``list(prefix)``: cheap with 10,000 objects."""
        ...

    def list_recursive(self, prefix: str) -> Listing:
        """Return all objects at any depth below ``prefix``; names hold ``/`` and start below it."""
        ...

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace an object; readers see the old bytes or the new ones, no mixture."""
        ...

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create an object unless there is one; of several racing callers exactly one succeeds.

        Three outcomes: it returns (created by us); it raises ObjectExistsError (another writer's
        exists, ours was not written); it raises StorageError, whose ``outcome`` is ``"unknown"``
        when the object may or may not have been created, and ``"unsynced"`` when it has been, but
        not durably.
        """
        ...

    def create(self, path: str) -> ObjectWriter:
        """Begin an object whose bytes come piece by piece; like ``write``, it replaces."""
        ...

    def delete(self, path: str) -> None:
        """Remove an object; does nothing if there is none."""
        ...


class Folder(Store):
    """What stores do in the same way; each is rooted at a folder."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def read_range(self, path: str, byte_range: ByteRange) -> memoryview:
        """Return one byte range."""
        return self.read_ranges(path, [byte_range])[0]

    def list_names(self, prefix: str) -> Names:
        """Return the names of the objects directly in a folder."""
        return [info.name for info in self.list(prefix)]


class RemoteFolder(Folder):
    """What stores on other machines do in the same way: they may hold secrets."""

    _uri: str
    _root: str

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError("a store is not pickled, it may hold secrets: open it by its URI")

    @property
    def uri(self) -> str:
        """The root URI without credentials."""
        return self._uri

    @property
    def scheme(self) -> str:
        """The URI scheme."""
        return self._uri.partition("://")[0]

    def _full(self, path: str) -> str:
        path = check_path(path)
        return f"{self._root}/{path}" if self._root else path

    def _folder(self, prefix: str) -> str:
        prefix = check_prefix(prefix)
        return self._full(prefix) if prefix else self._root

    def map(self, path: str) -> memoryview | None:
        """Return None: what is not on this machine cannot be mapped."""
        check_path(path)
        return None


def write_unsynced(store: Store, path: str, data: Buffer) -> None:
    """Write an object without durability, as cheaply as the store can: for copies and hints.

    After a power failure, and for concurrent readers, it may be missing, empty or truncated.
    """
    getattr(store, "write_unsynced", store.write)(path, data)


def write_new(store: Store, path: str, data: Buffer) -> None:
    """Write an object under a unique name, which a later write will refer to.

    Durable like ``write``; inside ``synced_together``, durable when that block ends.
    """
    getattr(store, "write_new", store.write)(path, data)


def turn(store: Store, folder: str) -> AbstractContextManager[None]:
    """Serialize the writers of a folder with an advisory lock, if the store has one.

    Correctness must not depend on it: other writers may not lock, and a writer that has waited too
    long proceeds. It saves writers that race for one name the work that all but one do in vain.
    """
    take: Callable[[str], AbstractContextManager[None]] | None = getattr(store, "turn", None)
    return nullcontext() if take is None else take(folder)


def sync_folder(store: Store, folder: str) -> None:
    """Make the deletions in a folder durable before others follow, if the store supports it."""
    sync = getattr(store, "sync_folder", None)
    if sync is not None:
        sync(folder)


def list_folders(store: Store, prefix: str) -> Names:
    """Return the names of the folders directly in a folder, by one request where possible."""
    look: Callable[[str], Names] | None = getattr(store, "list_folders", None)
    if look is not None:
        return look(prefix)
    parts = (info.name.partition("/") for info in store.list_recursive(prefix))
    return sorted({first for first, slash, _ in parts if slash})


def mark_of(store: Store, path: str) -> tuple[int, str | None]:
    """Return the size of an object, and an entity tag that differs whenever its bytes may.

    The tag is None if the store has none, or the object changed so recently that another change
    might not show in it. Raises ObjectNotFoundError, StorageError.
    """
    look: Callable[[str], tuple[int, str | None]] | None = getattr(store, "mark", None)
    return (store.size(path), None) if look is None else look(path)


def read_marked_tail(
    store: Store, path: str, size_bytes: int, known_size_bytes: int = 0
) -> tuple[memoryview, int, str | None]:
    """Return the last bytes of an object, its size, and its entity tag if that costs nothing.

    ``known_size_bytes`` is the recorded size (0: not known), which may spare a
    request; the size that is returned is the true one.
    """
    read: Callable[[str, int, int], tuple[memoryview, int, str | None]] | None = getattr(
        store, "read_marked_tail", None
    )
    if read is None:
        return (*store.read_tail(path, size_bytes), None)
    return read(path, size_bytes, known_size_bytes)


def lists_marks(store: Store) -> bool:
    """Return whether ``list`` costs no more than ``list_names`` and has entity tags."""
    return bool(getattr(store, "lists_marks", False))


def is_far(store: Store) -> bool:
    """Return whether requests to a store take so long that independent ones are overlapped."""
    return bool(getattr(store, "is_far", False))


def prune(store: Store) -> None:
    """Remove folders without files, including the root, if the store has folders."""
    remove = getattr(store, "prune", None)
    if remove is not None:
        remove()


def remove_empty_folder(store: Store, folder: str) -> None:
    """Remove a folder that holds nothing, if the store has folders; any other stays as it is."""
    remove = getattr(store, "remove_empty_folder", None)
    if remove is not None:
        remove(folder)


def check_path(path: str) -> str:
    """Return ``path`` if it names an object below the root. Raises InvalidInputError."""
    if not path:
        raise InvalidInputError("the path of a stored object is empty")
    if "\0" in path or "\\" in path:
        raise InvalidInputError(f"path {path!r} holds a NUL or a backslash")
    segments = path.split("/")
    if "" in segments or "." in segments or ".." in segments:
        raise InvalidInputError(
            f"path {path!r} is not a plain relative path: empty, '.' or '..' segments are refused"
        )
    if len(path) > 1 and path[1] == ":" and path[0].isalpha():
        raise InvalidInputError(f"path {path!r} starts with a drive letter")
    return path


def absolute_path(path: str) -> str:
    """Return an absolute local path without ``.``, ``..``, doubled and trailing slashes.

    Its parts are separated by ``/``, also on Windows: ``C:/data/photos.lance``.
    Most paths have this form already, which is quick to see; ``os.path`` takes much longer.
    """
    if os.sep == "/" and path[:1] == "/" and "//" not in path and "/." not in path:
        return path if path[-1] != "/" else os.path.abspath(path)
    return plain_path(os.path.abspath(path))


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` without a trailing slash if it names a folder; "" is the root."""
    prefix = prefix.removesuffix("/")
    return check_path(prefix) if prefix else ""


def join_uri(uri: str, path: str) -> str:
    """Join a root URI and a relative path for messages and for ``child``."""
    return f"{uri.rstrip('/')}/{path}" if path else uri


def check_range(path: str, byte_range: ByteRange, size_bytes: int) -> None:
    """Refuse a range past the end of its object, before any allocation. Raises CorruptFileError."""
    if byte_range.stop > size_bytes:
        raise CorruptFileError(
            path,
            byte_range.start,
            f"{byte_range.size_bytes} bytes there",
            f"a file of {size_bytes} bytes",
        )
