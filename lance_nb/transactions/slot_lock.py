"""Commit under a lock of the caller's, for stores that cannot create exclusively.

The lock is called with the version about to be created and returns a context manager, which is held
while the slot is created. When the version turns out to be somebody else's, the context sees a
CommitConflictError; what it does with it changes nothing. A lock that raises CommitConflictError
when it is entered says that the version is taken.

Limits: a store with exclusive creation uses it all the same; without it, looking and writing are
two steps and only the lock keeps writers apart.
Source: ``commit_lock`` of pylance (``CommitLock``).
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.errors import (
    CommitConflictError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from lance_nb.format.layout import ManifestName
from lance_nb.storage.base import Store
from lance_nb.transactions.commit_options import CommitLock
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.manifest_slots import ManifestSlots
from lance_nb.transactions.slot_claim import claim


@dataclass(frozen=True, slots=True)
class LockedSlots:
    """Slots that are created under a lock: exclusively if the store can, else after a look."""

    slots: ManifestSlots

    @property
    def home(self) -> Store:
        """The folder of the branch."""
        return self.slots.home

    def list_names(self) -> list[ManifestName]:
        """List the versions."""
        return self.slots.list_names()

    def latest(self) -> ManifestName | None:
        """Find the newest version."""
        return self.slots.latest()

    def read(self, name: ManifestName) -> memoryview:
        """Read the manifest file."""
        return self.slots.read(name)

    def create(self, name: ManifestName, data: bytes, transaction_uuid: str) -> None:
        """Create a version; the caller holds the lock."""
        try:
            self.slots.create(name, data, transaction_uuid)
        except NotSupportedError:
            if self._is_taken(name):
                raise ObjectExistsError(f"{self.home.uri}/{name.path}") from None
            self.home.write(name.path, data)

    def _is_taken(self, name: ManifestName) -> bool:
        try:
            self.slots.read(name)
        except ObjectNotFoundError:
            return False
        return True


def claim_under_lock(
    lock: CommitLock | None,
    slots: ManifestSlots,
    name: ManifestName,
    data: bytes,
    *,
    uuid: str,
    environment: Environment,
) -> bool:
    """Take a version slot while the lock (if there is one) is held; True when it is ours.

    Raises as ``claim`` does.
    """
    if lock is None:
        return claim(slots, name, data, uuid, environment)
    ours = False
    try:
        with lock(name.version):
            ours = claim(LockedSlots(slots), name, data, uuid, environment)
            if not ours:
                raise CommitConflictError(f"version {name.version} is somebody else's")
    except CommitConflictError:
        return ours
    return ours
