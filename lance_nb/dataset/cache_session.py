"""CacheSession: caches that several datasets share; ``lance_nb.Session``, after pylance's class.

It holds what never changes: open data files with their metadata, and deletion vectors. Checking out
another version of a dataset always keeps its caches; a session keeps them for other handles too.

Limits: the caches are bounded by their number of entries, so the sizes that pylance takes have no
effect. Files are known by their URI: give a session only to datasets that may read them alike.
"""

from __future__ import annotations

from typing import Any

from lance_nb.errors import NotSupportedError
from lance_nb.table.deletion_cache import DeletionCache
from lance_nb.table.file_cache import FileCache


class CacheSession:
    """Caches to open datasets with: ``dataset(uri, session=session)``.

    Example::

        session = lance_nb.Session()
        old = lance_nb.dataset(uri, 1, session=session)
        new = lance_nb.dataset(uri, session=session)
        old.session().is_same_as(new.session())
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
            raise NotSupportedError("caches are kept in memory: leave the cache backends out")
        if store_registry is not None:
            raise NotSupportedError("stores are not shared: leave store_registry out")
        self.files = FileCache()
        self.deletions = DeletionCache()

    @classmethod
    def of(cls, files: FileCache, deletions: DeletionCache) -> CacheSession:
        """Return the session of caches that are in use."""
        made = cls()
        made.files, made.deletions = files, deletions
        return made

    def is_same_as(self, other: CacheSession) -> bool:
        """Tell whether another session shares these caches."""
        return self.files is other.files

    def size_bytes(self) -> int:
        """Return about how many bytes the caches hold."""
        return self.files.size_bytes() + self.deletions.size_bytes()

    def index_cache_size_bytes(self) -> int:
        """Return 0: scans do not read indices, so none is cached."""
        return 0

    def __repr__(self) -> str:
        return f"Session(index_cache_size_bytes=0, metadata_cache_size_bytes={self.size_bytes()})"
