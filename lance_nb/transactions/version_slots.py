"""The versions of a branch: read as a commit needs them, and created exactly once, in slots.

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

``VersionSource`` reads manifest, indices and the transaction inside. Each version is read once,
whole, in one request: manifests never change. Of one that this process has read or written before,
only the end of the file is read, or nothing if the listing shows that the entity tag is that of
what was read.

Layout: names as in format/layout. V2 names for new branches unless told otherwise; a branch keeps
the scheme it has. A detached version has bit 63 set, is never listed and never the latest.

Limits: finding the latest version lists names; the hint file is written for others and never read.
After ``TRIES_MAX`` unclear answers the outcome is unknown: CommitStateUnknownError. Nothing may be
deleted then, because a version that appears later would need it. A store with exclusive creation
uses it also under a lock; without it, looking and writing are two steps and only the lock keeps
writers apart. The transaction is the inline one; else the ``.txn`` file that the manifest names.
Without either, whether a concurrent change can be combined with it cannot be known.
Source: spec page "transactions" (storage primitives, manifest naming schemes); pylance 14.0.2
recognises a manifest by its transaction's uuid; ``commit_lock`` of pylance (``CommitLock``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol, runtime_checkable

from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FormatError,
    LanceError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    RetryableCommitConflictError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format import layout
from lance_nb.format.index_metadata import IndexMetadata, parse_index_section
from lance_nb.format.layout import (
    VERSIONS,
    ManifestName,
    NamingScheme,
    latest_version,
    list_versions,
)
from lance_nb.format.manifest import TAIL_BYTES, Manifest, parse_manifest
from lance_nb.format.transaction_summary import summarize_transaction
from lance_nb.storage.base import ObjectInfo, Store, lists_marks, sync_folder
from lance_nb.storage.threads import run_all
from lance_nb.table.file_cache import cached_manifest, is_manifest_cached, manifest_with_mark
from lance_nb.table.indices import Locate, with_content
from lance_nb.table.locations import Locations
from lance_nb.table.versions import parse_whole
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.transaction import Transaction
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
        return claim(slots, name, data, uuid=uuid, environment=environment)
    ours = False
    try:
        with lock(name.version):
            ours = claim(LockedSlots(slots), name, data, uuid=uuid, environment=environment)
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


_NEAR = ("file", "memory")  # one after the other is as fast
_AHEAD_MAX = 64  # manifests of large tables are large


@dataclass(frozen=True, slots=True)
class Version:
    """One version that was read."""

    manifest: Manifest
    indices: tuple[IndexMetadata, ...]


class VersionSource:
    """Reads versions of one branch and remembers them for one commit.

    ``locations`` tells where the files of a version are, when other base paths may hold some.
    """

    def __init__(
        self, slots: ManifestSlots, locations: Callable[[Manifest], Locations] | None = None
    ) -> None:
        self._slots = slots
        self._locations = locations
        self._scheme: NamingScheme | None = None  # None: not known yet
        self._versions: dict[int, Version] = {}
        self._marked: ObjectInfo | None = None  # of the newest version, from the last listing

    def head(self, at_least: int) -> ManifestName | None:
        """Find the newest version, None where there is no dataset.

        A listing may lag behind: a version ``at_least`` that is known to be there counts too.
        """
        look: Callable[[], tuple[ManifestName, ObjectInfo | None] | None] | None = getattr(
            self._slots, "latest_marked", None
        )
        if look is None:
            latest = self._slots.latest()
        else:
            latest, self._marked = look() or (None, None)
        if latest is None:
            return self._probe(at_least) if at_least else None
        self._scheme = latest.scheme
        return latest if latest.version >= at_least else ManifestName(at_least, latest.scheme)

    def has(self, version: int) -> bool:
        """Return whether a version is there, whatever listings say."""
        try:
            self.load(version)
        except VersionNotFoundError:
            return False
        return True

    def load(self, version: int) -> Version:
        """Read a version. Raises VersionNotFoundError, CorruptFileError, NotSupportedError."""
        if version not in self._versions:
            self._versions[version] = self._read(version)
        return self._versions[version]

    def load_ahead(self, versions: Sequence[int]) -> None:
        """Read several versions at the same time; what cannot be read is left to ``load``."""
        if self._slots.home.scheme in _NEAR:
            return
        missing = [version for version in versions if version not in self._versions][:_AHEAD_MAX]
        if len(missing) > 1:
            run_all([lambda version=number: self.has(version) for number in missing])  # type: ignore[misc]

    def present_versions(self, first: int, head: ManifestName) -> Sequence[int]:
        """Return the versions from ``first`` to the newest one that were not cleaned up."""
        versions = range(first, head.version + 1)
        if all(map(self.has, versions)):  # they are read anyway, and a listing may lag behind
            return versions
        listed = {manifest_name.version for manifest_name in self._slots.list_names()} | {
            head.version
        }
        return [version for version in versions if version in listed]

    def snapshotted(self, version: int) -> tuple[Manifest, tuple[IndexMetadata, ...]]:
        """Read a version, as operations want it: its bases are named as they are now."""
        version_data = self.load(version)
        manifest = version_data.manifest
        if manifest.base_paths and self._locations is not None:
            bases = self._locations(manifest).present_bases()
            if bases != manifest.base_paths:
                manifest = replace(manifest, base_paths=bases)
        return manifest, version_data.indices

    def transaction(self, version: int) -> Transaction:
        """Return the transaction that made a version.

        Raises RetryableCommitConflictError when it cannot be found.
        """
        uri = self._slots.home.uri
        try:
            manifest = self.load(version).manifest
        except VersionNotFoundError as error:
            raise unknown_change_error(uri, version, "it was removed in the meantime") from error
        section = manifest.transaction_section
        if section is not None and section.data is not None:
            return Transaction.from_bytes(section.data, manifest.path)
        if not manifest.transaction_file:
            raise unknown_change_error(uri, version, "its writer recorded no transaction")
        path = layout.transaction_path(manifest.transaction_file, manifest.path)
        try:
            data = self._slots.home.read(path)
        except ObjectNotFoundError as error:
            raise unknown_change_error(uri, version, f"{path} is gone") from error
        return Transaction.from_bytes(data, f"{uri}/{path}")

    def _probe(self, version: int) -> ManifestName | None:
        """Look for a version by its name, when the listing does not show it."""
        for scheme in (NamingScheme.V2, NamingScheme.V1):
            self._scheme = scheme
            if self.has(version):
                return ManifestName(version, scheme)
        return None

    def _read(self, version: int) -> Version:
        remembered = self._remembered(version)
        if remembered is None:
            name, data = self._file(version)
            parsed = parse_version(data, name, f"{self._slots.home.uri}/{name.path}")
        else:
            parsed = _with_indices(remembered)
        indices = with_content(parsed.indices, self._locator(parsed.manifest), parsed.manifest.path)
        return Version(parsed.manifest, indices)

    def _remembered(self, version: int) -> Manifest | None:
        """Return a manifest that is known, if it still is what lies at its place."""
        if self._scheme is None:
            return None
        home, path = self._slots.home, ManifestName(version, self._scheme).path
        where = f"{home.uri}/{path}"
        if not is_manifest_cached(where):
            return None
        marked = self._marked
        if marked is not None and path.endswith(f"/{marked.name}"):
            remembered = manifest_with_mark(where, marked.size_bytes, marked.e_tag)
            if remembered is not None:
                return remembered
        try:
            tail, size = home.read_tail(path, TAIL_BYTES)
        except ObjectNotFoundError:
            return None
        return cached_manifest(where, tail, size, whole=True)

    def _file(self, version: int) -> tuple[ManifestName, memoryview]:
        """Read the manifest by its name, which depends on a scheme that may not be known yet."""
        schemes = (NamingScheme.V2, NamingScheme.V1) if self._scheme is None else (self._scheme,)
        for scheme in schemes:
            name = ManifestName(version, scheme)
            try:
                return name, self._slots.read(name)
            except ObjectNotFoundError as error:
                missing = error
        raise VersionNotFoundError(self._slots.home.uri, version) from missing

    def _locator(self, manifest: Manifest) -> Locate:
        if self._locations is None:
            return Locations(self._slots.home, self._slots.home).locate
        return self._locations(manifest).locate


def parse_version(data: bytes | memoryview, name: ManifestName, path: str) -> Version:
    """Parse a whole manifest file. Raises CorruptFileError, NotSupportedError."""
    return _with_indices(parse_whole(data, path, name.version))


def _with_indices(manifest: Manifest) -> Version:
    section = manifest.index_section
    if section is None or section.data is None:
        return Version(manifest, ())
    return Version(manifest, parse_index_section(section.data, manifest.path))


def unknown_change_error(uri: str, version: int, reason: str) -> RetryableCommitConflictError:
    """Return the error about a version whose change is not known."""
    return RetryableCommitConflictError(
        f"version {version} of {uri!r} was committed after the version this change was made for, "
        f"and what it changed is not known: {reason}. Read the newest version and do the change "
        "again."
    )
