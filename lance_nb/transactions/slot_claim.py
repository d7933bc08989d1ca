"""Take a version slot, and find out whose it is when the answer was lost.

A request to create a slot has three outcomes, and a lost reply looks like a failure. What decides
is what lies in the slot: a manifest that carries our transaction id is ours, whatever the store
said. An empty slot after an unclear answer is claimed again with the same bytes, which cannot do
harm: whichever copy arrives first, there is one.

A version that is there and that the disk has not confirmed is told as such, with the same error:
it is not durable as a commit has to be, and the change must not be done a second time.

Commit under a lock of the caller's, for stores that cannot create exclusively.

The lock is called with the version about to be created and returns a context manager, which is held
while the slot is created. When the version turns out to be somebody else's, the context sees a
CommitConflictError; what it does with it changes nothing. A lock that raises CommitConflictError
when it is entered says that the version is taken.

Limits: after ``TRIES_MAX`` unclear answers the outcome is unknown: CommitStateUnknownError. Nothing
may be deleted then, because a version that appears later would need it. A store with exclusive
creation uses it all the same; without it, looking and writing are two steps and only the lock keeps
writers apart.
Source: reliability of pylance 14.0.2 (a manifest is recognised by its transaction's uuid).
``commit_lock`` of pylance (``CommitLock``).
"""

from __future__ import annotations

from dataclasses import dataclass

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
from lance_nb.format.layout import VERSIONS, ManifestName
from lance_nb.format.manifest import parse_manifest
from lance_nb.format.transaction_summary import summarize_transaction
from lance_nb.storage.base import Store, sync_folder
from lance_nb.transactions.commit_options import CommitLock
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.manifest_slots import ManifestSlots


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


TRIES_MAX = 5
WAIT_S = 0.1


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
                raise unsynced(slots.home, name.version, uuid, error) from error
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
        raise unsynced(home, version, uuid, error) from error


def unsynced(home: Store, version: int, uuid: str, problem: LanceError) -> CommitStateUnknownError:
    """Return what to raise when a version is there and may not survive a power failure."""
    return CommitStateUnknownError(
        f"version {version} of {home.uri!r} has been committed and every reader sees it, but "
        f"the disk did not confirm it ({problem}): after a power failure it may be gone. Do not do "
        f"the change again while the version is there (transaction {uuid}); committing the same "
        "transaction again is safe, and asks the disk once more.",
        uuid,
        version,
    )


def is_ours(found: bytes | memoryview, data: bytes, uuid: str) -> bool:
    """Tell whether the manifest in a slot is the one our transaction made."""
    if len(found) == len(data) and bytes(found) == data:
        return True
    try:
        return transaction_uuid(found) == uuid
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
