"""The store of a dataset with an external manifest store, which decides who owns a version slot.

A commit takes four steps, and is committed by the second::

    1  write the manifest to   _versions/2.manifest-<uuid>     no reader sees it
    2  put if absent           version 2 -> that path          committed
    3  write the manifest to   _versions/2.manifest            every reader sees it
    4  change                  version 2 -> the final path     in step again; 1 is deleted

A reader that finds a staged path in the newest entry does steps 3 and 4 first, and does not load
the version when that fails: a copy of the folder must always hold what has been read. So listing
versions finishes them first; everything but the folder of manifests passes through unchanged.

What an error leaves behind: before step 2 nothing. In step 2 the entry is read back, since a driver
may have repeated a request whose reply was lost: our path means committed, another path means
taken, no entry means unknown, and then the staged manifest stays. After step 2 the version is
committed whatever happens; a failure is logged, and the next reader puts the manifest in place.

Limits: manifests cannot be created as files (that is what slots are for). Where the store has no
exclusive creation, other objects (tags, branches) are created by a look and a write. A manifest
that a writer who knows nothing of the manifest store left in our slot is noticed and counts as
taken, unless both write at the same moment. Detached versions have random numbers and need no
entry.
Source: spec page "transactions", external manifest store; pylance 14.0.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lance_nb.errors import (
    CorruptFileError,
    InternalError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    describe_bytes,
)
from lance_nb.format.layout import (
    VERSIONS,
    ManifestName,
    latest_version,
    list_versions,
    parse_manifest_name,
)
from lance_nb.format.manifest import message_position
from lance_nb.shown_text import visible
from lance_nb.storage.base import (
    Buffer,
    ByteRange,
    Listing,
    Names,
    ObjectWriter,
    Store,
    check_prefix,
    join_uri,
    mark_of,
    prune,
    sync_folder,
)
from lance_nb.transactions.environment import new_uuid
from lance_nb.transactions.external.base import ExternalManifestStore, ManifestEntry
from lance_nb.transactions.ref_writer import Replacing
from lance_nb.value_classes import dataclass

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExternalSlots:
    """The slots of one branch; see ManifestSlots. ``home`` is the plain store of its folder."""

    home: Store
    entries: ExternalManifestStore
    base_uri: str
    new_uuid: Callable[[], str] = new_uuid

    # --- finding and reading ----------------------------------------------------------------------

    def list_names(self) -> list[ManifestName]:
        """List the versions, after the newest has been put in place."""
        return list_versions(self.file_names(), self._folder)

    def latest(self) -> ManifestName | None:
        """Find the newest version, and put it in place if need be."""
        return latest_version(self.file_names(), self._folder)

    def file_names(self) -> list[str]:
        """List the files beside the manifests, after the newest manifest has been put in place.

        Raises CorruptFileError when the manifest of the newest entry is gone.
        """
        newest = self.synchronise()
        names = self.home.list_names(VERSIONS)
        if newest is None or newest.object_path.rpartition("/")[2] in names:
            return names
        latest = latest_version(names, self._folder)
        if latest is not None and latest.version < newest.version:
            self._require(newest)
            return [*names, newest.object_path.rpartition("/")[2]]
        return names

    def synchronise(self) -> ManifestEntry | None:
        """Put the newest version in place; return its entry, None where there is none."""
        newest = self.entries.latest(self.base_uri)
        if newest is None:
            return None
        newest.name(self.entries.place)
        return self.finish(newest) if newest.is_staged else newest

    def read(self, name: ManifestName) -> memoryview:
        """Return the manifest of a version, put in place if need be."""
        try:
            return self.home.read(name.path)
        except ObjectNotFoundError:
            entry = None if name.detached else self.entries.get(self.base_uri, name.version)
            if entry is None or not entry.is_staged:
                raise
            self.finish(entry)
        return self.home.read(name.path)

    def finish(self, entry: ManifestEntry) -> ManifestEntry:
        """Do the last two steps of somebody's commit; return the entry as it is then.

        Raises CorruptFileError, StorageError: the version must not be loaded.
        """
        final = entry.finished(self.entries.place)
        try:
            data = bytes(self.home.read(entry.object_path))
        except ObjectNotFoundError:
            return self._finished_by_others(entry)
        self._check(entry, data)
        try:
            self._place(final, data)
        except StorageError as error:
            problem = (
                f"version {entry.version} is committed in {self.entries.place} and could not be "
                f"put in place, so it is not loaded: {error.problem}"
            )
            raise StorageError(error.path, problem, error.outcome) from error
        self._point(entry, final)
        return final

    def _finished_by_others(self, entry: ManifestEntry) -> ManifestEntry:
        """Return the entry of a version whose staged manifest has been removed."""
        again = self.entries.get(self.base_uri, entry.version)
        if again is not None and not again.is_staged:
            self._require(again)
            return again
        final = entry.finished(self.entries.place)
        self._require(final)
        self._point(entry, final)
        return final

    def _require(self, entry: ManifestEntry) -> None:
        """Check that the manifest of an entry is where the entry says, and whole."""
        try:
            size = self.home.size(entry.object_path)
        except ObjectNotFoundError:
            size = None
        if size is None or (entry.size_bytes is not None and size != entry.size_bytes):
            raise CorruptFileError(
                self._uri(entry.object_path),
                None,
                f"the manifest that {self.entries.place} has for version {entry.version} of "
                f"{self.base_uri!r} (of {entry.size_bytes or 'unknown'} bytes)",
                "no file" if size is None else f"a file of {size} bytes",
            )

    def _check(self, entry: ManifestEntry, data: bytes) -> None:
        if entry.size_bytes not in (None, len(data)):
            expected = f"the {entry.size_bytes} bytes that {self.entries.place} tells"
            stored = f"{len(data)} bytes"
            raise CorruptFileError(self._uri(entry.object_path), None, expected, stored)
        message_position(memoryview(data), len(data), self._uri(entry.object_path))

    def _place(self, final: ManifestEntry, data: bytes) -> None:
        try:
            stored = bytes(self.home.read(final.object_path))
        except ObjectNotFoundError:
            self.home.write(final.object_path, data)
            return
        if stored != data:
            raise CorruptFileError(
                self._uri(final.object_path),
                None,
                f"the manifest that was committed in {self.entries.place}",
                f"{describe_bytes(stored)}, written without the manifest store",
            )

    # --- committing -------------------------------------------------------------------------------

    def create(self, name: ManifestName, data: bytes, transaction_uuid: str) -> None:
        """Commit a version in four steps; see the module for what errors mean."""
        if self.home.exists(name.path):
            raise ObjectExistsError(self._uri(name.path))
        if name.detached:
            self.home.write(name.path, data)
            return
        staged = f"{name.path}-{self.new_uuid()}"
        self._stage(staged, data)
        entry = ManifestEntry(name.version, join_uri(self.base_uri, staged), len(data))
        final = entry.finished(self.entries.place)
        if self._register(entry, final, data):
            try:
                self.home.write(name.path, data)
            except StorageError as error:
                _log.warning(
                    "%s, which the next reader will put in place", visible(_landed(entry, error))
                )
                return
            self._point(entry, final)

    def _stage(self, path: str, data: bytes) -> None:
        try:
            self.home.write(path, data)
        except StorageError as error:
            # No entry names a staged manifest, so whether it exists makes no difference.
            raise StorageError(error.path, error.problem) from error

    def _register(self, entry: ManifestEntry, final: ManifestEntry, data: bytes) -> bool:
        """Do step 2; return whether steps 3 and 4 are left to do.

        Raises ObjectExistsError, StorageError.
        """
        problem: StorageError | None = None
        try:
            self.entries.put_if_not_exists(self.base_uri, entry)
            return True
        except ObjectExistsError:
            pass
        except StorageError as error:
            if error.outcome != "unknown":
                self._discard(entry)
                raise
            problem = error
        registered = self._registered_path(entry, problem)
        if registered == entry.path:
            return True
        if registered == final.path and self._holds(final, data):
            self._discard(entry)  # a reader was faster than we
            return False
        self._discard(entry)
        raise ObjectExistsError(self._uri(final.object_path))

    def _registered_path(self, entry: ManifestEntry, problem: StorageError | None) -> str:
        """Return the path that a version has after an answer that may be wrong."""
        reason = problem.problem if problem else "refused as taken, but absent"
        try:
            registered = self.entries.get(self.base_uri, entry.version)
        except StorageError as error:
            raise StorageError(self.entries.place, error.problem, "unknown") from error
        if registered is None:
            raise StorageError(self.entries.place, reason, "unknown") from problem
        registered.name(self.entries.place)
        return registered.path

    def _holds(self, final: ManifestEntry, data: bytes) -> bool:
        try:
            return bytes(self.home.read(final.object_path)) == data
        except ObjectNotFoundError as error:
            raise StorageError(
                self._uri(final.object_path),
                f"{self.entries.place} still has version {final.version} of a dataset that was at "
                f"{self.base_uri!r}, and its manifest is gone; if the dataset was deleted on "
                "purpose, call lance_nb.transactions.external.registry.forget(uri, "
                "storage_options)",
            ) from error
        except StorageError as error:
            raise StorageError(error.path, error.problem, "unknown") from error

    # --- tidying up, which may fail ---------------------------------------------------------------

    def _point(self, entry: ManifestEntry, final: ManifestEntry) -> None:
        """Do step 4 and delete the staged manifest, which is only kept while it is referred to."""
        try:
            self.entries.put_if_exists(self.base_uri, final)
        except (StorageError, ObjectNotFoundError) as error:
            _log.warning(
                "%s, which is in place but not noted as such", visible(_landed(entry, error))
            )
            return
        self._discard(entry)

    def _discard(self, entry: ManifestEntry) -> None:
        try:
            self.home.delete(entry.object_path)
        except StorageError as error:
            _log.warning("a staged manifest stays behind: %s", visible(str(error)))

    @property
    def _folder(self) -> str:
        return self._uri(VERSIONS)

    def _uri(self, path: str) -> str:
        return join_uri(self.home.uri, path)


def _landed(entry: ManifestEntry, error: Exception) -> str:
    return f"{error}; this concerns version {entry.version}, {entry.path}"


class SynchronisedStore:
    """A store in front of which an external manifest store stands."""

    def __init__(self, inner: Store, entries: ExternalManifestStore, base_uri: str) -> None:
        self._inner = inner
        self._slots = ExternalSlots(inner, entries, base_uri)

    def __repr__(self) -> str:
        return f"SynchronisedStore({self._inner!r}, {self._slots.entries.place!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError("a store is not pickled, it may hold secrets: open it by its URI")

    def manifest_slots(self) -> ExternalSlots:
        """Return the version slots of this folder."""
        return self._slots

    def forget_versions(self) -> None:
        """Remove the entries of this folder, whose files have been deleted."""
        self._slots.entries.forget(self._slots.base_uri)

    @property
    def uri(self) -> str:
        """The root of the store behind."""
        return self._inner.uri

    @property
    def scheme(self) -> str:
        """The scheme of the store behind."""
        return self._inner.scheme

    def child(self, path: str) -> SynchronisedStore:
        """Return the store of a folder; a branch has entries of its own."""
        base_uri = join_uri(self._slots.base_uri, path)
        return type(self)(self._inner.child(path), self._slots.entries, base_uri)

    # --- reading ----------------------------------------------------------------------------------

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        return self._inner.size(path)

    def mark(self, path: str) -> tuple[int, str | None]:
        """Return the size of an object, and what differs whenever its bytes may."""
        return mark_of(self._inner, path)

    def exists(self, path: str) -> bool:
        """Return whether there is an object at ``path``."""
        return self._inner.exists(path)

    def read(self, path: str) -> memoryview:
        """Return a whole object."""
        return self._inner.read(path)

    def read_range(self, path: str, byte_range: ByteRange) -> memoryview:
        """Return one byte range."""
        return self._inner.read_range(path, byte_range)

    def read_ranges(self, path: str, byte_ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object."""
        return self._inner.read_ranges(path, byte_ranges)

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        """Return the last bytes of an object and its size."""
        return self._inner.read_tail(path, size_bytes)

    def map(self, path: str) -> memoryview | None:
        """Return a view of a whole object, None where the store cannot."""
        return self._inner.map(path)

    def list(self, prefix: str) -> Listing:
        """Return the objects directly in a folder, manifests finished."""
        if check_prefix(prefix) == VERSIONS:
            self._slots.synchronise()
        return self._inner.list(prefix)

    def list_names(self, prefix: str) -> Names:
        """Return the names of the objects directly in a folder, manifests finished."""
        if check_prefix(prefix) == VERSIONS:
            return self._slots.file_names()
        return self._inner.list_names(prefix)

    def list_recursive(self, prefix: str) -> Listing:
        """Return all objects below a folder."""
        return self._inner.list_recursive(prefix)

    # --- writing ----------------------------------------------------------------------------------

    def write(self, path: str, data: Buffer) -> None:
        """Create or replace an object."""
        self._inner.write(path, data)

    def write_if_absent(self, path: str, data: Buffer) -> None:
        """Create an object that is no manifest; exclusively where the store can."""
        folder, _, name = path.rpartition("/")
        if folder == VERSIONS and parse_manifest_name(name) is not None:
            raise NotSupportedError(
                f"manifests of {self.uri!r} are committed through {self._slots.entries.place}, "
                "not by creating their files"
            )
        try:
            self._inner.write_if_absent(path, data)
        except NotSupportedError:
            if self._inner.exists(path):
                raise ObjectExistsError(join_uri(self.uri, path)) from None
            self._inner.write(path, data)

    def create(self, path: str) -> ObjectWriter:
        """Begin an object whose bytes come piece by piece."""
        return self._inner.create(path)

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self._inner.delete(path)

    def prune(self) -> None:
        """Remove folders without files, where the store has folders."""
        prune(self._inner)

    def sync_folder(self, prefix: str) -> None:
        """Make deletions in a folder durable, where the store behind can tell."""
        sync_folder(self._inner, prefix)


class ReplacingSynchronisedStore(SynchronisedStore):
    """The same over a store that compares and replaces in one step."""

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace an object if it still is ``expected``; return whether it was."""
        if not isinstance(self._inner, Replacing):
            raise InternalError(f"{self._inner!r} does not compare and replace")
        return self._inner.replace(path, expected, data)


def synchronised(inner: Store, entries: ExternalManifestStore, base_uri: str) -> SynchronisedStore:
    """Return ``inner`` with a manifest store in front of it."""
    kind = ReplacingSynchronisedStore if isinstance(inner, Replacing) else SynchronisedStore
    return kind(inner, entries, base_uri)
