"""Objects in the memory of this process: for tests, demonstrations, and as the reference model.

``memory://name/path`` is folder ``path`` of the process-wide root ``name``; two stores opened with
the same name share their objects. This store defines the behaviour of all others.

Limits: objects are lost when the process ends. ``clear`` empties one root.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from lance_nb.errors import InternalError, ObjectExistsError, ObjectNotFoundError
from lance_nb.storage import meter
from lance_nb.storage.base import (
    Buffer,
    ByteRange,
    Folder,
    Listing,
    ObjectInfo,
    check_path,
    check_prefix,
    check_range,
    join_uri,
)


class _Root:
    """The objects of one name, with the lock that makes each method atomic."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.objects: dict[str, tuple[bytes, datetime]] = {}


_roots: dict[str, _Root] = {}
_roots_lock = threading.Lock()


def clear(name: str) -> None:
    """Forget every object of the root ``memory://name``."""
    with _roots_lock:
        _roots.pop(name, None)


class MemoryStore(Folder):
    """A folder of a named, process-wide root."""

    def __init__(self, location: str) -> None:
        self._name, _, folder = location.strip("/").partition("/")
        self._folder = check_prefix(folder)
        with _roots_lock:
            self._root = _roots.setdefault(self._name, _Root())

    @property
    def uri(self) -> str:
        """``memory://name/path``."""
        return join_uri(f"memory://{self._name}", self._folder)

    @property
    def scheme(self) -> str:
        """Always ``memory``."""
        return "memory"

    def child(self, path: str) -> MemoryStore:
        """Return the store rooted at the folder ``path``."""
        return MemoryStore(f"{self._name}/{self._key(path)}")

    def _key(self, path: str) -> str:
        return f"{self._folder}/{check_path(path)}" if self._folder else check_path(path)

    def _bytes(self, path: str) -> bytes:
        key = self._key(path)
        with self._root.lock:
            stored = self._root.objects.get(key)
        if stored is None:
            raise ObjectNotFoundError(join_uri(self.uri, path))
        return stored[0]

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        return len(self._bytes(path))

    def mark(self, path: str) -> tuple[int, str | None]:
        """Return the size of an object, and when it was written."""
        key = self._key(path)
        with self._root.lock:
            stored = self._root.objects.get(key)
        if stored is None:
            raise ObjectNotFoundError(join_uri(self.uri, path))
        return len(stored[0]), f"{id(stored[0]):x}-{stored[1].isoformat()}"

    def exists(self, path: str) -> bool:
        """Return whether there is an object at ``path``."""
        key = self._key(path)
        with self._root.lock:
            return key in self._root.objects

    def read(self, path: str) -> memoryview:
        """Return a whole object."""
        data = self._bytes(path)
        meter.count(len(data))
        return memoryview(data)

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object."""
        view = memoryview(self._bytes(path))
        for byte_range in byte_ranges:
            check_range(join_uri(self.uri, path), byte_range, len(view))
        meter.count(sum(byte_range.size_bytes for byte_range in byte_ranges), len(byte_ranges))
        return [view[byte_range.start : byte_range.stop] for byte_range in byte_ranges]

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of an object and its size."""
        view = memoryview(self._bytes(path))
        tail = view[max(len(view) - max(size_bytes, 0), 0) :]
        meter.count(len(tail))
        return tail, len(view)

    def map(self, path: str) -> memoryview | None:
        """Return the object itself: memory needs no mapping."""
        return self.read(path)

    def list(self, prefix: str) -> Listing:
        """Return the objects directly in a folder."""
        return [info for info in self.list_recursive(prefix) if "/" not in info.name]

    def list_recursive(self, prefix: str) -> Listing:
        """Return all objects below a folder."""
        prefix = check_prefix(prefix)
        meter.count()
        folder = self._key(prefix) if prefix else self._folder
        start = f"{folder}/" if folder else ""
        with self._root.lock:
            objects = list(self._root.objects.items())
        return [
            ObjectInfo(key[len(start) :], len(data), modified, modified.isoformat())
            for key, (data, modified) in objects
            if key.startswith(start)
        ]

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace an object."""
        key = self._key(path)
        entry = (bytes(data), datetime.now(UTC))
        meter.count_write(len(entry[0]))
        with self._root.lock:
            self._root.objects[key] = entry

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create an object unless there is one."""
        key = self._key(path)
        entry = (bytes(data), datetime.now(UTC))
        meter.count_write(len(entry[0]))
        with self._root.lock:
            if self._root.objects.setdefault(key, entry) is not entry:
                raise ObjectExistsError(join_uri(self.uri, path))

    def create(self, path: str) -> MemoryObjectWriter:
        """Begin an object that appears when it is finished."""
        self._key(path)
        return MemoryObjectWriter(self, path)

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace an object if it still is ``expected``; return whether it was."""
        key = self._key(path)
        with self._root.lock:
            stored = self._root.objects.get(key)
            if stored is None:
                raise ObjectNotFoundError(join_uri(self.uri, path))
            if stored[0] != bytes(expected):
                return False
            self._root.objects[key] = (bytes(data), datetime.now(UTC))
        return True

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        key = self._key(path)
        with self._root.lock:
            self._root.objects.pop(key, None)


class MemoryObjectWriter:
    """An object under construction; see ObjectWriter in base.py."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._data: bytearray | None = bytearray()

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes."""
        if self._data is None:
            raise InternalError(f"{self._path} is written to after its end")
        for piece in pieces:
            self._data += memoryview(piece).cast("B")

    def finish(self) -> None:
        """Make the object appear."""
        if self._data is None:
            raise InternalError(f"{self._path} is finished twice")
        data, self._data = self._data, None
        self._store.write(self._path, data)

    def abort(self) -> None:
        """Forget what was written."""
        self._data = None
