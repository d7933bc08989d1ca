"""Look up the checksums of files, and compare files with them.

Records lie in the store of the files they tell of (format/checksums.py): those of a branch in its
folder, those of files under another base path there. So the sums of inherited and cloned files are
found wherever the files are.

Limits: the records of a store are read once, when the first of its sums is asked for. A record
that cannot be read tells nothing, and is kept in ``damaged``. Several threads may look up sums.
Source: format/checksums.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lance_nb.errors import CorruptFileError, LanceError, ObjectNotFoundError
from lance_nb.format.checksums import (
    ALGORITHM,
    FOLDER,
    RECORD_BYTES_MAX,
    FileSum,
    is_record_name,
    parse_record,
)
from lance_nb.storage.base import Store
from lance_nb.storage.summed_writer import stored_digest
from lance_nb.storage.threads import THREADS_MAX, run_side_by_side

_ADVICE = "put the file back from a copy, or restore a version that does not use it"


class DamagedRecord(NamedTuple):
    """A record that cannot be used: its store, its path there, and why."""

    store: Store
    path: str
    error: LanceError


class _StoreSums:
    """The sums that the records of one store hold. Two records may tell of one file."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read: set[str] = set()
        self.sums: dict[str, tuple[FileSum, ...]] = {}


def _add(sums: dict[str, tuple[FileSum, ...]], record: list[FileSum]) -> None:
    for one in record:
        known = sums.get(one.path, ())
        if one not in known:
            sums[one.path] = (*known, one)


class Checksums:
    """The sums of files, as far as records tell them."""

    def __init__(self) -> None:
        self.damaged: list[DamagedRecord] = []
        self._lock = threading.Lock()
        self._stores: dict[str, _StoreSums] = {}

    def of(self, store: Store, path: str) -> tuple[FileSum, ...]:
        """Return what records say of a file: usually one sum, none of an unknown file.

        Raises StorageError.
        """
        return self._known(store).sums.get(path, ())

    def renew(self, home: Store) -> None:
        """Read new records of ``home`` and of the stores that were asked for so far.

        Raises StorageError.
        """
        self._stores.setdefault(home.uri, _StoreSums(home))
        for known in list(self._stores.values()):
            self._read(known)

    def below(self, store: Store, folder: str) -> list[str]:
        """Return the paths below a folder that records tell of, in their order."""
        return sorted(one for one in self._known(store).sums if one.startswith(f"{folder}/"))

    def _known(self, store: Store) -> _StoreSums:
        return self._stores.get(store.uri) or self._read(_StoreSums(store))

    def _read(self, known: _StoreSums) -> _StoreSums:
        """Read the records that ``known`` lacks, and return what is known of that store now.

        Without the lock: threads of the pool, which read records too, may be waiting for it.
        """
        store = known.store
        listing = [one for one in store.list(FOLDER) if is_record_name(one.name)]
        new = [one for one in listing if one.name not in known.read]
        tasks = (partial(self._record, store, one.name, one.size_bytes) for one in new)
        found = list(zip(new, run_side_by_side(tasks, THREADS_MAX), strict=True))
        with self._lock:
            known = self._stores.get(store.uri, known)
            sums = dict(known.sums)
            for info, record in found:
                if info.name not in known.read:
                    known.read.add(info.name)
                    if isinstance(record, DamagedRecord):
                        self.damaged.append(record)
                    else:
                        _add(sums, record)
            known.sums = sums  # in one step: others are reading it
            self._stores[store.uri] = known
        return known

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
        self, store: Store, path: str, told: Callable[[int], object] = lambda _: None
    ) -> bool:
        """Compare a file with its sum; False if it has none. ``told``: see ``stored_digest``.

        Reads the file in blocks. Raises CorruptFileError, ObjectNotFoundError, StorageError.
        """
        sums = self.of(store, path)
        if not sums:
            return False
        size = store.size(path)
        knows_size = any(one.size_bytes == size for one in sums)
        digest = stored_digest(store, path, size, told) if knows_size else ""
        check_sum(sums, f"{store.uri}/{path}", FileSum(path, digest, size))
        return True


def check_sum(known: Sequence[FileSum], shown: str, found: FileSum) -> None:
    """Compare what a file holds with what records say of it; ``shown`` is its place in messages.

    Raises CorruptFileError, unless nothing is known.
    """
    if not known or any(found[1:] == one[1:] for one in known):
        return
    wanted = " or ".join(_words(one) for one in known)
    raise CorruptFileError(shown, None, wanted, _words(found), advice=_ADVICE)


def _words(one: FileSum) -> str:
    digest = f"{ALGORITHM} {one.digest} of " if one.digest else ""
    return f"{digest}{one.size_bytes} bytes"


def files_beside(sums: Checksums, store: Store, path: str) -> Iterator[str]:
    """Yield a data file and the blob files beside it that records tell of."""
    yield path
    if path.endswith(".lance"):
        yield from sums.below(store, path.removesuffix(".lance"))
