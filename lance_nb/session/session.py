"""The session of an opened dataset: stores, options, and caches of immutable parts.

Checking out another version keeps the session, so that nothing immutable is read twice.
``CacheSession`` (``lance_nb.Session``, after pylance's class) shares the caches between handles:
open data files with their metadata, and deletion vectors.

Limits: the caches are bounded by their number of entries, so the sizes that pylance takes have no
effect. Files are identified by their URI: share a session only between datasets that may read them
alike.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lance_nb.errors import (
    DatasetNotFoundError,
    LanceError,
    NotSupportedError,
    VersionNotFoundError,
)
from lance_nb.format.manifest import BasePath, Manifest
from lance_nb.session.base_paths import created_bases, trusted_bases, written_blobs
from lance_nb.session.storage_access import IOCounter
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage.base import Store
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.table import refs, versions
from lance_nb.table.file_cache import DeletionCache, FileCache, made_for
from lance_nb.table.locations import Locations
from lance_nb.table.refs import Target, branch_store
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions import external
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.checksums import ReadChecks
    from lance_nb.table.history import VersionLog
    from lance_nb.table.refs import RefCache
    from lance_nb.transactions.commit_options import CommitPlace
    from lance_nb.transactions.version_slots import CommitLock


class CacheSession:
    """Caches to open datasets with: ``dataset(uri, session=session)``; ``lance_nb.Session``.

    Args:
        index_cache_size_bytes, metadata_cache_size_bytes: accepted, without effect.
        index_cache_backend, metadata_cache_backend, store_registry: pylance's, and refused.

    Raises NotSupportedError for what is refused.

    Examples:
        >>> session = lance_nb.Session()
        >>> session.size_bytes()
        0
        >>> old = lance_nb.dataset(uri, 1, session=session)
        >>> new = lance_nb.dataset(uri, session=session)
        >>> old.session().is_same_as(new.session())
        True
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: str | dict[str, Any] | None = None,
        metadata_cache_backend: str | dict[str, Any] | None = None,
        store_registry: object = None,
    ) -> None:
        """Make empty caches. The sizes are accepted and have no effect.

        Raises NotSupportedError for a cache backend or a store registry of pylance's.
        """
        if index_cache_backend is not None or metadata_cache_backend is not None:
            raise NotSupportedError(
                "caches are always kept in memory; leave the cache backends out"
            )
        if store_registry is not None:
            raise NotSupportedError(
                "stores are not shared between sessions; leave store_registry out"
            )
        self.files = FileCache()
        self.deletions = DeletionCache()

    @classmethod
    def of(cls, files: FileCache, deletions: DeletionCache) -> CacheSession:
        """Return the session of caches that are in use."""
        session = cls()
        session.files, session.deletions = files, deletions
        return session

    def is_same_as(self, other: CacheSession) -> bool:
        """Tell whether another session shares these caches.

        Args:
            other: the other session.
        """
        return self.files is other.files

    def size_bytes(self) -> int:
        """Return about how many bytes the caches hold."""
        return self.files.size_bytes() + self.deletions.size_bytes()

    def index_cache_size_bytes(self) -> int:
        """Return 0: what is cached of indices is not measured.

        Examples:
            >>> lance_nb.Session().index_cache_size_bytes()
            0
        """
        return 0

    def __repr__(self) -> str:
        return f"Session(index_cache_size_bytes=0, metadata_cache_size_bytes={self.size_bytes()})"


@dataclass(frozen=True, slots=True)
class Session:
    """The root of a dataset and the caches of its immutable files.

    ``checks``: files are compared with their checksums before they are read. ``secret_uri``: the
    URI with its password or signature, empty if it has none. ``check_results``: the caches of
    expectations, where they are not on disk.
    """

    root: Store
    allow_bases: tuple[str, ...] = ()
    storage_options: StorageOptions | None = field(default=None, repr=False)
    files: FileCache = field(default_factory=FileCache, repr=False)
    deletions: DeletionCache = field(default_factory=DeletionCache, repr=False)
    logs: dict[str | None, VersionLog] = field(default_factory=dict, repr=False)
    asked_uri: str = field(default="", repr=False)
    secret_uri: str = field(default="", repr=False)
    commit_lock: CommitLock | None = field(default=None, repr=False)
    io: IOCounter = field(default_factory=IOCounter, repr=False, compare=False)
    checks: ReadChecks | None = field(default=None, repr=False, compare=False)
    check_results: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _ref_cache: list[RefCache] = field(default_factory=list, repr=False, compare=False)

    @property
    def trusted_bases(self) -> tuple[str, ...]:
        """Places outside of the dataset that may be read: allowed, or added by this process."""
        created = created_bases(self.root.uri)
        return tuple(dict.fromkeys((*self.allow_bases, *created))) if created else self.allow_bases

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, memo: object) -> Session:
        return self  # its stores and caches are made to be shared

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError(
            "a session cannot be pickled, because it may hold credentials; pickle the dataset "
            "instead"
        )

    @property
    def uri(self) -> str:
        """What opens this dataset again, with the same options: names its manifest store too.

        It is without passwords and signatures.
        """
        return without_url_secrets(self.asked_uri) or self.root.uri

    @property
    def opening_uri(self) -> str:
        """The URI with its password or signature: to open the dataset with, never to be shown."""
        return self.secret_uri or self.uri

    def home(self, branch: str | None) -> Store:
        """Return the store of a branch's folder (None is main)."""
        return branch_store(self.root, branch)

    def place(self, branch: str | None) -> CommitPlace:
        """Return where commits to a branch go."""
        from lance_nb.transactions.commit_options import CommitPlace  # readers need none

        return CommitPlace.of(
            self.root,
            branch,
            allow_bases=self.trusted_bases,
            storage_options=self.storage_options,
            commit_lock=self.commit_lock,
            checks=self.checks,
        )

    @property
    def refs(self) -> RefCache:
        """The tags and branches, with what has been read of them."""
        if not self._ref_cache:
            from lance_nb.table.refs import RefCache

            self._ref_cache.append(RefCache(self.root))
        return self._ref_cache[0]

    def log(self, branch: str | None) -> VersionLog:
        """Return the versions of a branch, with what has been read of them."""
        if branch not in self.logs:
            from lance_nb.table.history import VersionLog

            self.logs[branch] = VersionLog(self.home(branch), branch)
        return self.logs[branch]

    def load(self, target: Target) -> Snapshot:
        """Load the version that a ref resolved to.

        Raises DatasetNotFoundError, also for a branch that is unfinished, VersionNotFoundError.
        """
        home = self.home(target.branch)
        try:
            if target.version is None:
                manifest = versions.load_latest(home)
            else:
                manifest = versions.load_version(home, target.version)
        except DatasetNotFoundError as error:
            raise self.without_versions(target.branch, error) from error
        except VersionNotFoundError as error:
            if target.tag is None:
                raise
            raise VersionNotFoundError(
                error.uri, error.version, error.available, target.tag
            ) from error
        return self.snapshot(manifest, target.branch)

    def without_versions(self, branch: str | None, error: LanceError) -> LanceError:
        """Return what to raise for a branch without versions, instead of ``error``."""
        problem = None if branch is None else refs.unfinished_problem(self.root, branch)
        return error if problem is None else DatasetNotFoundError(self.home(branch).uri, problem)

    def locations(self, branch: str | None, bases: tuple[BasePath, ...]) -> Locations:
        """Return where the files of a version with these base paths are."""
        home = self.home(branch)
        return Locations(
            self.root,
            home,
            bases,
            allowed=self.trusted_bases,
            options=self.storage_options,
            checks=self.checks,
            written_blobs=written_blobs(self.root.uri),
        )

    def snapshot(self, manifest: Manifest, branch: str | None) -> Snapshot:
        """Wrap a manifest of a branch."""
        if self.checks is not None:
            self.checks.renew(self.home(branch))
        locations = self.locations(branch, manifest.base_paths)
        prepared = made_for(manifest)
        return Snapshot(manifest, locations, branch, self.files, self.deletions, *prepared)


def open_session(
    uri: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
    *,
    caches: CacheSession | None = None,
    commit_lock: CommitLock | None = None,
    check: bool = False,
) -> Session:
    """Return the session of a dataset that may or may not exist (nothing is read yet).

    ``allow_bases``: see lance_nb.session.base_paths, which adds those of the environment.
    ``caches`` are shared with other datasets; ``commit_lock`` is taken by every commit. ``check``:
    files are compared with their checksums before they are read; what others have opened without
    that is not shared. Raises InvalidInputError, NotSupportedError.
    """
    bases = trusted_bases(allow_bases)
    root: Store
    if external.is_configured(uri, storage_options):
        from lance_nb.transactions.external import registry

        root = registry.open_root(uri, storage_options, bases)
        asked_uri = "" if registry.is_plain(uri) else str(uri)
    else:
        root, asked_uri = open_store(uri, storage_options, bases), ""
    if check:
        caches = None
    text = os.fspath(uri)
    return Session(
        root,
        bases,
        storage_options,
        files=FileCache() if caches is None else caches.files,
        deletions=DeletionCache() if caches is None else caches.deletions,
        asked_uri=asked_uri,
        secret_uri="" if without_url_secrets(text) == text else text,
        commit_lock=commit_lock,
        checks=_read_checks() if check else None,
    )


def _read_checks() -> ReadChecks:
    from lance_nb.table.checksums import ReadChecks  # few handles check

    return ReadChecks()
