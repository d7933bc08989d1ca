"""Version slots: where manifests are found, read, and created exactly once.

A slot is the name of one version's manifest. Whoever creates it has committed that version. The
commit loop knows slots only; what creates them exclusively is behind the protocol: the store itself
(``StoreSlots``), or an external manifest store for stores that cannot.

Layout: names as in format/layout. V2 names for new branches unless told otherwise; a branch keeps
the scheme it has. A detached version has bit 63 set, is never listed and never the latest.

Limits: finding the latest version lists names; the hint file is written for others and never read.
Source: spec page "transactions" (storage primitives, manifest naming schemes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lance_nb.format.layout import VERSIONS, ManifestName, latest_version, list_versions
from lance_nb.storage.base import Store


class ManifestSlots(Protocol):
    """The version slots of one branch. Every method is safe to call from several threads."""

    @property
    def home(self) -> Store:
        """The folder of the branch, where manifests, transactions and data lie."""
        ...

    def list_names(self) -> list[ManifestName]:
        """List the versions that exist now, oldest first, without detached ones.

        Empty where there is no dataset. Raises CorruptFileError when both naming schemes occur.
        """
        ...

    def latest(self) -> ManifestName | None:
        """Find the newest version now, None where there is no dataset.

        Every version committed before the call began is taken into account.
        """
        ...

    def read(self, name: ManifestName) -> memoryview:
        """Return the whole manifest file of a version. Raises ObjectNotFoundError."""
        ...

    def create(self, name: ManifestName, data: bytes, transaction_uuid: str) -> None:
        """Create a version; of several racing callers exactly one succeeds.

        Three outcomes: it returns (created by us, readable by everybody, durable); it raises
        ObjectExistsError (the slot is taken: by somebody else, or by us when an earlier reply was
        lost, so the caller must look whose it is); it raises StorageError, whose ``outcome`` is
        ``"unknown"`` when the version may have been created, now or a little later.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreSlots:
    """Slots in a store whose ``write_if_absent`` is exclusive."""

    home: Store

    def list_names(self) -> list[ManifestName]:
        """List the versions by one listing of the folder."""
        return list_versions(self.home.list_names(VERSIONS), self._folder)

    def latest(self) -> ManifestName | None:
        """Find the newest version by one listing of the folder."""
        return latest_version(self.home.list_names(VERSIONS), self._folder)

    def read(self, name: ManifestName) -> memoryview:
        """Read the manifest file."""
        return self.home.read(name.path)

    def create(self, name: ManifestName, data: bytes, transaction_uuid: str) -> None:
        """Create the manifest file by one exclusive write."""
        self.home.write_if_absent(name.path, data)

    @property
    def _folder(self) -> str:
        return f"{self.home.uri}/{VERSIONS}"


@runtime_checkable
class SlotKeeper(Protocol):
    """A store whose versions are created by something else than itself."""

    def manifest_slots(self) -> ManifestSlots:
        """Return the version slots of this folder."""
        ...

    def forget_versions(self) -> None:
        """Forget the versions of this folder, whose files have been deleted."""
        ...


def slots_of(home: Store) -> ManifestSlots:
    """Return the version slots of a branch's folder."""
    make: Callable[[], ManifestSlots] | None = getattr(home, "manifest_slots", None)
    return StoreSlots(home) if make is None else make()


def forget_versions(home: Store) -> None:
    """Free the version numbers of a branch whose files have been deleted."""
    forget: Callable[[], None] | None = getattr(home, "forget_versions", None)
    if forget is not None:
        forget()
