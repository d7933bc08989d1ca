"""Open golden datasets over stores that watch what is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.session.session import Session
from lance_nb.storage.base import ByteRange, Store
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import Ref
from lance_nb.table.snapshot import Snapshot


class WatchedStore:
    """A store that counts reads by path, and bytes; with ``remote`` it cannot map files."""

    def __init__(
        self, store: Store, *, remote: bool = True, log: WatchedStore | None = None
    ) -> None:
        self._store = store
        self._remote = remote
        self._log = log or self
        self._prefix = "" if log is None else store.uri.removeprefix(log.uri).strip("/") + "/"
        self.reads: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.num_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def child(self, path: str) -> WatchedStore:
        return WatchedStore(self._store.child(path), remote=self._remote, log=self._log)

    def map(self, path: str) -> memoryview | None:
        if self._remote:
            return None
        return self._seen(path, self._store.map(path))

    def read(self, path: str) -> memoryview:
        return self._seen(path, self._store.read(path))

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        data, size = self._store.read_tail(path, size_bytes)
        return self._seen(path, data), size

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        return self._seen(path, self._store.read_range(path, wanted))

    def read_ranges(self, path: str, wanted: Sequence[ByteRange]) -> list[memoryview]:
        found = self._store.read_ranges(path, wanted)
        self._log.num_bytes += sum(map(len, found[1:]))
        self._seen(path, found[0] if found else memoryview(b""))
        return found

    def list_names(self, prefix: str) -> list[str]:
        self._log.listed[f"{self._prefix}{prefix}"] += 1
        return self._store.list_names(prefix)

    def _seen(self, path: str, data: Any) -> Any:
        self._log.reads[f"{self._prefix}{path}"] += 1
        self._log.num_bytes += 0 if data is None else len(data)
        return data

    def forget(self) -> None:
        """Begin to count anew."""
        self.reads.clear()
        self.listed.clear()
        self.num_bytes = 0


def open_over(store: Any, ref: Ref | None = None) -> LanceDataset:
    """Open a dataset over a store of a test's own."""
    session = Session(store)
    return LanceDataset.from_opened(session, session.load(resolve(store, ref, None)))


def snapshot_of(store: Any, ref: Ref | None = None) -> Snapshot:
    """Load a snapshot over a store."""
    return Session(store).load(resolve(store, ref, None))
