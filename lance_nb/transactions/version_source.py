"""The versions of a branch as a commit needs them: manifest, indices, and the transaction inside.

Each version is read once, whole, in one request: manifests never change. Of one that this process
has read or written before, only the end of the file is read, or nothing if the listing shows that
the entity tag is that of what was read.

Limits: the transaction is the inline one; else the ``.txn`` file that the manifest names. Without
either, whether a concurrent change can be combined with it cannot be known.
Source: format/manifest.py; spec page "transactions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lance_nb.errors import (
    ObjectNotFoundError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.format import layout
from lance_nb.format.index_metadata import IndexMetadata, parse_index_section
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest import TAIL_BYTES, Manifest
from lance_nb.storage.base import ObjectInfo
from lance_nb.storage.threads import run_all
from lance_nb.table.file_cache import cached_manifest, is_manifest_cached, manifest_with_mark
from lance_nb.table.indices import Locate, with_content
from lance_nb.table.locations import Locations
from lance_nb.table.versions import parse_whole
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import ManifestSlots
from lance_nb.value_classes import dataclass

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
