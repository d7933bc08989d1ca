"""Compare files with their checksums before the first read of them.

What ``lance_nb.dataset(uri, check=True)`` reads goes through these stores. The whole file is read
once, in blocks, before any of its bytes is handed out, so that damage is an error and never a
value. Later reads cost a look into a set.

A file counts as known, for every handle of this process, as long as its size and the store's mark
for its content (entity tag, or inode and times) are the same; where a store has no mark, or the
file is too young for one, each handle compares it once.

Limits: files without a record are read without a check. A file that is changed after its first
read through a handle is not compared again by that handle. Records are looked for when a version is
opened: what has been recorded since is known to versions that are opened later.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from lance_nb.format.checksums import FileSum
from lance_nb.storage.base import Buffer, ByteRange, Listing, Names, ObjectWriter, Store, mark_of
from lance_nb.storage.summed_writer import stored_digest
from lance_nb.table.checksums import Checksums, check_sum

_DIGESTS_MAX = 200_000

# (URI of the store, path, size in bytes, mark) -> digest, of files that this process has read.
_digests: dict[tuple[str, str, int, str], str] = {}


class ReadChecks:
    """The files that one dataset handle has compared. Several threads may read."""

    def __init__(self) -> None:
        self._sums = Checksums()
        self._lock = threading.Lock()
        self._passed: set[tuple[str, str]] = set()
        self._running: dict[tuple[str, str], threading.Lock] = {}

    def store(self, inner: Store) -> Store:
        """Return a store that compares files of ``inner`` before it reads them."""
        return inner if isinstance(inner, CheckedStore) else CheckedStore(inner, self)

    def renew(self, home: Store) -> None:
        """Look for new records, in ``home`` and in the stores that files were read from.

        Raises StorageError.
        """
        self._sums.renew(home)

    def before_read(self, store: Store, path: str) -> None:
        """Compare a file with its checksum, unless this was done.

        Raises CorruptFileError, ObjectNotFoundError, StorageError.
        """
        key = (store.uri, path)
        if key in self._passed or not self._sums.of(store, path):
            return
        with self._lock:
            turn = self._running.setdefault(key, threading.Lock())
        with turn:
            if key not in self._passed:
                self._compare(store, path)
                self._passed.add(key)
        with self._lock:
            self._running.pop(key, None)

    def _compare(self, store: Store, path: str) -> None:
        sums = self._sums.of(store, path)
        size, mark = mark_of(store, path)
        known = None if mark is None else (store.uri, path, size, mark)
        digest = "" if known is None else _digests.get(known, "")
        if not digest and any(one.size_bytes == size for one in sums):
            digest = stored_digest(store, path, size)
        check_sum(sums, f"{store.uri}/{path}", FileSum(path, digest, size))
        if known is not None and mark_of(store, path) == (size, mark):
            if len(_digests) >= _DIGESTS_MAX:
                _digests.clear()
            _digests[known] = digest


class CheckedStore:
    """A store whose files are compared with their checksums before they are first read."""

    def __init__(self, inner: Store, checks: ReadChecks) -> None:
        self._inner = inner
        self._checks = checks

    def __repr__(self) -> str:
        return f"CheckedStore({self._inner!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)  # what only some stores have: see storage/base.py

    def __reduce__(self) -> tuple[object, ...]:
        return self._inner.__reduce__()  # type: ignore[return-value]

    @property
    def uri(self) -> str:
        """The root of the store behind."""
        return self._inner.uri

    @property
    def scheme(self) -> str:
        """The scheme of the store behind."""
        return self._inner.scheme

    def child(self, path: str) -> Store:
        """Return the store of a folder, with the same checks."""
        return CheckedStore(self._inner.child(path), self._checks)

    # --- reading ----------------------------------------------------------------------------------

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        return self._inner.size(path)

    def exists(self, path: str) -> bool:
        """Tell whether there is an object at ``path``."""
        return self._inner.exists(path)

    def read(self, path: str) -> memoryview:
        """Return a whole object."""
        self._checks.before_read(self._inner, path)
        return self._inner.read(path)

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        """Return one byte range."""
        self._checks.before_read(self._inner, path)
        return self._inner.read_range(path, wanted)

    def read_ranges(self, path: str, wanted: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object."""
        self._checks.before_read(self._inner, path)
        return self._inner.read_ranges(path, wanted)

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of an object and its size."""
        self._checks.before_read(self._inner, path)
        return self._inner.read_tail(path, size_bytes)

    def map(self, path: str) -> memoryview | None:
        """Return a view of a whole object, None where the store cannot."""
        self._checks.before_read(self._inner, path)
        return self._inner.map(path)

    def list(self, prefix: str) -> Listing:
        """Return the objects directly in a folder."""
        return self._inner.list(prefix)

    def list_names(self, prefix: str) -> Names:
        """Return the names of the objects directly in a folder."""
        return self._inner.list_names(prefix)

    def list_recursive(self, prefix: str) -> Listing:
        """Return all objects below a folder."""
        return self._inner.list_recursive(prefix)

    # --- writing ----------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace an object."""
        self._inner.write(path, data)

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create an object unless there is one."""
        self._inner.write_if_absent(path, data)

    def create(self, path: str) -> ObjectWriter:
        """Begin an object whose bytes come piece by piece."""
        return self._inner.create(path)

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self._inner.delete(path)
