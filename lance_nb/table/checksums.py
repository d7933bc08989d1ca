"""Look up the checksums of files, and compare files with them before they are first read.

The records of checksums (format/checksums.py) lie in the store of the files they are about: those
of a branch in its folder, those of files under another base path there. So the sums of inherited
and cloned files are found wherever the files are.

What ``lance_nb.dataset(uri, check=True)`` reads goes through ``CheckedStore``. A file is read whole
once, in blocks, before any of its bytes is returned, so that damage is an error and never a value.
Later reads cost a look into a set. A file counts as compared, for every handle of this process, as
long as its size and the store's mark for its content (entity tag, or inode and times) are the same;
where a store has no mark, or the file is too young for one, each handle compares it once.

Limits: files without a record are read without a check. A file that is changed after its first
read through a handle is not compared again by that handle. The records of a store are read once,
when the first of its sums is needed, and again when a version is opened. A record that cannot be
read is kept in ``damaged``. Several threads may look up sums.
Source: format/checksums.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from lance_nb.errors import CorruptFileError, LanceError, ObjectNotFoundError
from lance_nb.format.checksums import (
    ALGORITHM,
    FOLDER,
    RECORD_BYTES_MAX,
    FileSum,
    is_record_name,
    parse_record,
)
from lance_nb.storage.base import Buffer, ByteRange, Listing, Names, ObjectWriter, Store, mark_of
from lance_nb.storage.summed_writer import stored_digest
from lance_nb.storage.threads import THREADS_MAX, run_side_by_side

_ADVICE = "put the file back from a copy, or restore a version that does not use it"
_DIGESTS_MAX = 200_000

# (URI of the store, path, size in bytes, mark) -> digest, of files that this process has read.
_digests: dict[tuple[str, str, int, str], str] = {}


class DamagedRecord(NamedTuple):
    """A record that cannot be used: its store, its path there, and why."""

    store: Store
    path: str
    error: LanceError


class _StoreSums:
    """The sums that the records of one store hold. Two records may be about one file."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read: set[str] = set()
        self.sums: dict[str, tuple[FileSum, ...]] = {}


def _add(sums: dict[str, tuple[FileSum, ...]], record: list[FileSum]) -> None:
    for file_sum in record:
        file_sums = sums.get(file_sum.path, ())
        if file_sum not in file_sums:
            sums[file_sum.path] = (*file_sums, file_sum)


class Checksums:
    """The checksums that the records of the stores hold, read when they are first needed."""

    def __init__(self) -> None:
        self.damaged: list[DamagedRecord] = []
        self._lock = threading.Lock()
        self._stores: dict[str, _StoreSums] = {}

    def of(self, store: Store, path: str) -> tuple[FileSum, ...]:
        """Return what records say of a file: usually one sum, none of an unknown file.

        Raises StorageError.
        """
        return self._sums_of_store(store).sums.get(path, ())

    def renew(self, home: Store) -> None:
        """Read new records of ``home`` and of the stores that were asked for so far.

        Raises StorageError.
        """
        self._stores.setdefault(home.uri, _StoreSums(home))
        for store_sums in list(self._stores.values()):
            self._read(store_sums)

    def below(self, store: Store, folder: str) -> list[str]:
        """Return the paths below a folder that records name, sorted."""
        return sorted(
            path for path in self._sums_of_store(store).sums if path.startswith(f"{folder}/")
        )

    def _sums_of_store(self, store: Store) -> _StoreSums:
        return self._stores.get(store.uri) or self._read(_StoreSums(store))

    def _read(self, store_sums: _StoreSums) -> _StoreSums:
        """Read the records that ``store_sums`` lacks, and return what is known of that store now.

        Without the lock: threads of the pool, which read records too, may be waiting for it.
        """
        store = store_sums.store
        listing = [entry for entry in store.list(FOLDER) if is_record_name(entry.name)]
        new = [entry for entry in listing if entry.name not in store_sums.read]
        tasks = (partial(self._record, store, entry.name, entry.size_bytes) for entry in new)
        records = list(zip(new, run_side_by_side(tasks, THREADS_MAX), strict=True))
        with self._lock:
            store_sums = self._stores.get(store.uri, store_sums)
            sums = dict(store_sums.sums)
            for info, record in records:
                if info.name not in store_sums.read:
                    store_sums.read.add(info.name)
                    if isinstance(record, DamagedRecord):
                        self.damaged.append(record)
                    else:
                        _add(sums, record)
            store_sums.sums = sums  # in one step: others are reading it
            self._stores[store.uri] = store_sums
        return store_sums

    def _record(self, store: Store, name: str, size_bytes: int) -> list[FileSum] | DamagedRecord:
        path = f"{FOLDER}/{name}"
        shown = f"{store.uri}/{path}"
        try:
            if size_bytes > RECORD_BYTES_MAX:
                expected = f"a record of at most {RECORD_BYTES_MAX} bytes"
                raise CorruptFileError(shown, None, expected, f"{size_bytes} bytes")
            return parse_record(store.read(path), shown, name)
        except ObjectNotFoundError:
            return []  # merged into another one meanwhile
        except LanceError as error:
            return DamagedRecord(store, path, error)

    def check(
        self, store: Store, path: str, progress: Callable[[int], object] = lambda _: None
    ) -> bool:
        """Compare a file with its sum; False if it has none. ``progress``: see ``stored_digest``.

        Reads the file in blocks. Raises CorruptFileError, ObjectNotFoundError, StorageError.
        """
        sums = self.of(store, path)
        if not sums:
            return False
        size = store.size(path)
        knows_size = any(file_sum.size_bytes == size for file_sum in sums)
        digest = stored_digest(store, path, size, progress) if knows_size else ""
        check_sum(sums, f"{store.uri}/{path}", FileSum(path, digest, size))
        return True


def check_sum(recorded: Sequence[FileSum], shown: str, computed: FileSum) -> None:
    """Compare what a file holds with what records say of it; ``shown`` is its place in messages.

    Raises CorruptFileError, unless nothing is known.
    """
    if not recorded or any(computed[1:] == file_sum[1:] for file_sum in recorded):
        return
    expected = " or ".join(_words(file_sum) for file_sum in recorded)
    raise CorruptFileError(shown, None, expected, _words(computed), advice=_ADVICE)


def _words(file_sum: FileSum) -> str:
    digest = f"{ALGORITHM} {file_sum.digest} of " if file_sum.digest else ""
    return f"{digest}{file_sum.size_bytes} bytes"


def files_beside(sums: Checksums, store: Store, path: str) -> Iterator[str]:
    """Yield a data file and the blob files beside it that records name."""
    yield path
    if path.endswith(".lance"):
        yield from sums.below(store, path.removesuffix(".lance"))


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
        memo_key = None if mark is None else (store.uri, path, size, mark)
        digest = "" if memo_key is None else _digests.get(memo_key, "")
        if not digest and any(file_sum.size_bytes == size for file_sum in sums):
            digest = stored_digest(store, path, size)
        check_sum(sums, f"{store.uri}/{path}", FileSum(path, digest, size))
        if memo_key is not None and mark_of(store, path) == (size, mark):
            if len(_digests) >= _DIGESTS_MAX:
                _digests.clear()
            _digests[memo_key] = digest


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

    def read_range(self, path: str, byte_range: ByteRange) -> memoryview:
        """Return one byte range."""
        self._checks.before_read(self._inner, path)
        return self._inner.read_range(path, byte_range)

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object."""
        self._checks.before_read(self._inner, path)
        return self._inner.read_ranges(path, byte_ranges)

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
