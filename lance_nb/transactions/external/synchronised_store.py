"""The store of a dataset with an external manifest store: listing versions finishes them first.

Everything but the folder of manifests passes through unchanged. Readers list versions as ever and
see only finished ones; commits ask for the slots.

Limits: manifests cannot be created here (that is what slots are for). Where the store has no
exclusive creation, other objects (tags, branches) are created by a look and a write.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_nb.errors import InternalError, NotSupportedError, ObjectExistsError
from lance_nb.format.layout import VERSIONS, parse_manifest_name
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
from lance_nb.transactions.external.base import ExternalManifestStore
from lance_nb.transactions.external.slots import ExternalSlots
from lance_nb.transactions.ref_writer import Replacing


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
        """Tell whether there is an object at ``path``."""
        return self._inner.exists(path)

    def read(self, path: str) -> memoryview:
        """Return a whole object."""
        return self._inner.read(path)

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        """Return one byte range."""
        return self._inner.read_range(path, wanted)

    def read_ranges(self, path: str, wanted: Sequence[ByteRange]) -> list[memoryview]:
        """Return several byte ranges of one object."""
        return self._inner.read_ranges(path, wanted)

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
        """Replace an object if it still is ``expected``; tell whether it was."""
        if not isinstance(self._inner, Replacing):
            raise InternalError(f"{self._inner!r} does not compare and replace")
        return self._inner.replace(path, expected, data)


def synchronised(inner: Store, entries: ExternalManifestStore, base_uri: str) -> SynchronisedStore:
    """Return ``inner`` with a manifest store in front of it."""
    kind = ReplacingSynchronisedStore if isinstance(inner, Replacing) else SynchronisedStore
    return kind(inner, entries, base_uri)
