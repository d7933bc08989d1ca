"""Version slots: where manifests are found, read, and created exactly once.

A slot is the name of one version's manifest. The writer that creates it has committed that version.
The commit loop knows slots only; what creates them exclusively is behind the protocol: the store
itself (``StoreSlots``), or an external manifest store for stores that cannot.

A request to create a slot has three outcomes, and a lost reply looks like a failure. What decides
is the content of the slot: a manifest that carries our transaction id is ours, whatever the store
answered. An empty slot after an unclear answer is claimed again with the same bytes, which is
harmless: whichever copy arrives first, there is one.

A version that exists and that the disk has not confirmed is reported as such, with the same error:
it is not as durable as a commit has to be, and the change must not be made a second time.

A caller may hold a lock of its own, for stores that cannot create exclusively. The lock is called
with the version about to be created and returns a context manager, which is held while the slot is
created. When the version turns out to be somebody else's, the context sees a CommitConflictError;
what it does with it changes nothing. A lock that raises CommitConflictError when it is entered says
that the version is taken.

Layout: names as in format/layout. V2 names for new branches unless told otherwise; a branch keeps
the scheme it has. A detached version has bit 63 set, is never listed and never the latest.

Limits: finding the latest version lists names; the hint file is written for others and never read.
After ``TRIES_MAX`` unclear answers the outcome is unknown: CommitStateUnknownError. Nothing may be
deleted then, because a version that appears later would need it. A store with exclusive creation
uses it also under a lock; without it, looking and writing are two steps and only the lock keeps
writers apart.
Source: spec page "transactions" (storage primitives, manifest naming schemes); pylance 14.0.2
recognises a manifest by its transaction's uuid; ``commit_lock`` of pylance (``CommitLock``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FormatError,
    LanceError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.format.layout import VERSIONS, ManifestName, latest_version, list_versions
from lance_nb.format.manifest import parse_manifest
from lance_nb.format.transaction_summary import summarize_transaction
from lance_nb.storage.base import ObjectInfo, Store, lists_marks, sync_folder
from lance_nb.transactions.environment import Environment
from lance_nb.value_classes import dataclass

# Called with the version about to be written; held while its slot is created.
CommitLock = Callable[[int], AbstractContextManager[object]]

TRIES_MAX = 5
WAIT_S = 0.1


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

    def latest_marked(self) -> tuple[ManifestName, ObjectInfo | None] | None:
        """Find the newest version, with its size and entity tag where the listing has them."""
        if not lists_marks(self.home):
            name = self.latest()
            return None if name is None else (name, None)
        listed = {f"{VERSIONS}/{info.name}": info for info in self.home.list(VERSIONS)}
        name = latest_version((info.name for info in listed.values()), self._folder)
        return None if name is None else (name, listed.get(name.path))

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


# --- create a slot, or find out whose it is -------------------------------------------------------


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


def claim(
    slots: ManifestSlots, name: ManifestName, data: bytes, uuid: str, environment: Environment
) -> bool:
    """Create a version; True when it is ours, False when the slot is somebody else's.

    Raises StorageError (it certainly was not created), CommitStateUnknownError.
    """
    problem: StorageError | None = None
    for number in range(TRIES_MAX):
        if number:
            environment.sleep(WAIT_S * 2 ** (number - 1))
        try:
            slots.create(name, data, uuid)
            return True
        except ObjectExistsError:
            pass
        except StorageError as error:
            if error.outcome == "unsynced":
                raise _unsynced(slots.home, name.version, uuid, error) from error
            if error.outcome == "failed" and problem is None:
                raise
            problem = problem or error
        try:
            if not is_ours(slots.read(name), data, uuid):
                return False
        except ObjectNotFoundError:
            continue  # not there, or not to be seen yet
        except StorageError as error:
            problem = problem or error
            continue
        sync_version(slots.home, name.version, uuid)
        return True
    raise CommitStateUnknownError(
        f"the outcome of committing version {name.version} of {slots.home.uri!r} is unknown"
        f"{f' ({problem})' if problem else ''}: it may have been committed, now or a little later. "
        f"Delete nothing that it wrote. Look for transaction {uuid} before doing the change again;"
        " committing the same transaction again is safe.",
        uuid,
        name.version,
    ) from problem


def sync_version(home: Store, version: int, uuid: str) -> None:
    """Make the name of a version durable that was found to be ours.

    The reply that was lost came before the folder was synced. Raises CommitStateUnknownError.
    """
    try:
        sync_folder(home, VERSIONS)
    except StorageError as error:
        raise _unsynced(home, version, uuid, error) from error


def _unsynced(home: Store, version: int, uuid: str, problem: LanceError) -> CommitStateUnknownError:
    """Return the error for a version that exists and may not survive a power failure."""
    return CommitStateUnknownError(
        f"version {version} of {home.uri!r} has been committed and every reader sees it, but "
        f"the disk did not confirm it ({problem}): after a power failure it may be gone. Do not do "
        f"the change again while the version is there (transaction {uuid}); committing the same "
        "transaction again is safe, and asks the disk once more.",
        uuid,
        version,
    )


def is_ours(stored: bytes | memoryview, data: bytes, uuid: str) -> bool:
    """Return whether the manifest in a slot is the one our transaction made."""
    if len(stored) == len(data) and bytes(stored) == data:
        return True
    try:
        return transaction_uuid(stored) == uuid
    except (FormatError, NotSupportedError):
        return False  # damaged or from the future: either way we did not write it


def transaction_uuid(data: bytes | memoryview, path: str = "") -> str | None:
    """Return the id of the transaction that made a manifest, None if it recorded none.

    Raises CorruptFileError.
    """
    manifest = parse_manifest(data, path)
    section = manifest.transaction_section
    if section is not None and section.data is not None:
        return summarize_transaction(section.data, path).uuid
    return manifest.transaction_file.partition("-")[2].removesuffix(".txn") or None
