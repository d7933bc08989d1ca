"""A table with an external manifest store, both sides of which fail where they are told to."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

from lance_nb.errors import ObjectExistsError, ObjectNotFoundError, StorageError
from lance_nb.storage.base import Store
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.external.base import ExternalManifestStore, ManifestEntry
from lance_nb.transactions.external.synchronised_store import SynchronisedStore
from tests.support.committing import Table
from tests.support.faulty_store import Crash, Fault, Plan, World, _quietly, no_faults


class MemoryEntries:
    """Manifest entries in the memory of this process: the model of the others."""

    place = "memory entries"

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], ManifestEntry] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MemoryEntries({self.place})"

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        return self.rows.get((base_uri, version))

    def latest(self, base_uri: str) -> ManifestEntry | None:
        with self._lock:
            found = [version for base, version in self.rows if base == base_uri]
        return self.get(base_uri, max(found)) if found else None

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        with self._lock:
            if self.rows.setdefault((base_uri, entry.version), entry) is not entry:
                raise ObjectExistsError(entry.path)

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        with self._lock:
            if (base_uri, entry.version) not in self.rows:
                raise ObjectNotFoundError(entry.path)
            self.rows[base_uri, entry.version] = entry

    def forget(self, base_uri: str) -> None:
        with self._lock:
            self.rows = {key: row for key, row in self.rows.items() if key[0] != base_uri}


class FaultyEntries:
    """A manifest store with faults in front of it; it shares the steps of a FaultyStore."""

    def __init__(self, inner: ExternalManifestStore, world: World) -> None:
        self.inner = inner
        self.world = world

    @property
    def place(self) -> str:
        return self.inner.place

    def _read(self, method: str, version: object, act: Callable[[], Any]) -> Any:
        _, fault = self.world.begin(method, f"entries/{version}")
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            raise Crash(method)
        if fault not in (None, Fault.STALE_LIST, Fault.EMPTY_LIST):
            raise StorageError(self.place, fault.value, "unknown")
        return act()

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        return self._read("get", version, lambda: self.inner.get(base_uri, version))

    def latest(self, base_uri: str) -> ManifestEntry | None:
        return self._read("latest", "newest", lambda: self.inner.latest(base_uri))

    def _write(self, method: str, version: object, act: Callable[[], None]) -> None:
        step, fault = self.world.begin(method, f"entries/{version}")
        match fault:
            case None | Fault.STALE_LIST | Fault.EMPTY_LIST:
                act()
            case Fault.ERROR_BEFORE | Fault.NO_SPACE:
                raise StorageError(self.place, fault.value)
            case Fault.UNKNOWN_BEFORE:
                raise StorageError(self.place, fault.value, "unknown")
            case Fault.LOST_REPLY:
                act()
                raise StorageError(self.place, fault.value, "unknown")
            case Fault.LOST_REPLY_REPEATED:
                act()
                act()
            case Fault.ARRIVES_LATER:
                self.world.late.append((step.number + self.world.delay_steps, _quietly(act)))
                raise StorageError(self.place, fault.value, "unknown")
            case Fault.CRASH_BEFORE:
                raise Crash(f"{step}")
            case Fault.CRASH_AFTER:
                act()
                raise Crash(f"{step}")

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        act = lambda: self.inner.put_if_not_exists(base_uri, entry)
        self._write("put_if_not_exists", entry.version, act)

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        act = lambda: self.inner.put_if_exists(base_uri, entry)
        self._write("put_if_exists", entry.version, act)

    def forget(self, base_uri: str) -> None:
        self._write("forget", "all", lambda: self.inner.forget(base_uri))


class ExternalTable(Table):
    """A table whose versions are decided in ``entries``."""

    def __init__(
        self,
        entries: ExternalManifestStore,
        plan: Plan = no_faults,
        seed: int = 0,
        inner: Store | None = None,
    ) -> None:
        super().__init__(plan, seed, inner)
        self.entries = entries
        self.base = f"tables/{uuid.uuid4().hex}"
        faulty = FaultyEntries(entries, self.root.world)
        self.guarded = SynchronisedStore(self.root, faulty, self.base)
        self.reader = SynchronisedStore(self.inner, entries, self.base)

    @property
    def place(self) -> CommitPlace:
        return CommitPlace.of(self.guarded)

    @property
    def sound(self) -> CommitPlace:
        return CommitPlace.of(self.reader)
