"""Caches of what has been read from immutable files: data files, deletion vectors, manifests.

``FileCache`` and ``DeletionCache`` belong to one dataset handle and are shared by all versions that
it opens. Data and deletion files never change, so an entry stays valid until it is evicted, the
least recently used one first.

Manifests are cached for the whole process. They never change either, but a dataset may be removed
and another one created in its place. A cached manifest is therefore used only if the file has the
same size and the same last bytes: all bytes of a small file, the last 64 KiB of a larger one. These
must hold the name of the manifest's transaction, which is unique.

Limits: 16 small manifests and 2 larger ones of at most 16 MiB each are kept per process.
Source: spec page "table format" (``Manifest.transaction_file``); measured: parsing 10,000 fragments
twice was a quarter of an append. What scans found out about the columns of a cached manifest is
kept with it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lance_nb.file.opening import DataFileReader, open_data_file
from lance_nb.format.manifest import TAIL_BYTES, Manifest
from lance_nb.storage.base import Store
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.format.deletion_vector import DeletionVector

_FILES_MAX = 1024
_VECTORS_BYTES_MAX = 64 << 20
_LENGTHS_MAX = 200_000
_SMALL_MANIFESTS_MAX = 16
_LARGE_MANIFESTS_MAX = 2
_LARGE_MANIFEST_BYTES_MAX = 16 * 1024 * 1024


class FileCache:
    """A bounded map from (store, path) to an open file: footer, column metadata, opened pages."""

    def __init__(self, files_max: int = _FILES_MAX) -> None:
        self._files_max = files_max
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], DataFileReader] = OrderedDict()

    def get(self, store: Store, path: str, size_bytes: int = 0) -> DataFileReader:
        """Return the reader of a file, opening it when needed."""
        key = (store.uri, path)
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        reader = open_data_file(store, path, size_bytes)
        with self._lock:
            self._open[key] = reader
            while len(self._open) > self._files_max:
                self._open.popitem(last=False)
        return reader

    def size_bytes(self) -> int:
        """Return about how many bytes of metadata the open files hold."""
        with self._lock:
            readers = list(self._open.values())
        return sum(reader.metadata_bytes for reader in readers)


class DeletionCache:
    """A map from a deletion file to its vector, bounded by the bytes of the vectors.

    The number of rows that a vector deletes is kept longer than the vector itself.
    """

    def __init__(self, bytes_max: int = _VECTORS_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], tuple[DeletionVector, int]] = OrderedDict()
        self._size_bytes = 0
        self._lengths: dict[tuple[str, str], int] = {}

    def get(self, key: tuple[str, str]) -> DeletionVector | None:
        """Return the vector when it is known."""
        with self._lock:
            if key not in self._vectors:
                return None
            self._vectors.move_to_end(key)
            return self._vectors[key][0]

    def length(self, key: tuple[str, str]) -> int | None:
        """Return how many rows a vector deletes, when it has been read once."""
        with self._lock:
            return self._lengths.get(key)

    def put(self, key: tuple[str, str], vector: DeletionVector) -> None:
        """Remember a vector; the newest one stays, however large."""
        size_bytes = vector.size_bytes
        with self._lock:
            self._size_bytes += size_bytes - self._vectors.pop(key, (vector, 0))[1]
            self._vectors[key] = vector, size_bytes
            if len(self._lengths) >= _LENGTHS_MAX:
                self._lengths.clear()
            self._lengths[key] = len(vector)
            while self._size_bytes > self._bytes_max and len(self._vectors) > 1:
                self._size_bytes -= self._vectors.popitem(last=False)[1][1]

    def size_bytes(self) -> int:
        """Return about how many bytes the vectors hold."""
        return self._size_bytes


@dataclass(frozen=True, slots=True)
class _CachedManifest:
    size_bytes: int
    tail: bytes
    manifest: Manifest
    e_tag: str | None = None
    projections: dict[Hashable, Any] = field(default_factory=dict)
    plans: dict[int, Any] = field(default_factory=dict)


# By URI, the oldest first. Several threads use them without a lock: each step is atomic.
_small_manifests: OrderedDict[str, _CachedManifest] = OrderedDict()
_large_manifests: OrderedDict[str, _CachedManifest] = OrderedDict()


def is_manifest_cached(where: str) -> bool:
    """Tell whether a manifest of this URI is cached, perhaps of a file that was replaced since."""
    return where in _small_manifests or where in _large_manifests


def made_for(manifest: Manifest) -> tuple[dict[Hashable, Any], dict[int, Any]]:
    """Return the projections and read plans that were made for a cached manifest, or new dicts.

    A dataset is often opened again just to look at its first rows. Finding out which leaves of
    which file the columns are would take as long as decoding two of them.
    """
    for cached in (*_small_manifests.values(), *_large_manifests.values()):
        if cached.manifest is manifest:
            return cached.projections, cached.plans
    return {}, {}


def cached_manifest(
    where: str, tail: bytes | memoryview, size_bytes: int, *, whole: bool = False
) -> Manifest | None:
    """Return the cached manifest of a file of this size that ends with ``tail``, or None.

    ``tail`` is the last ``TAIL_BYTES`` of the file, or all of it. ``whole``: with the sections that
    lie before the manifest.
    """
    cached = (_large_manifests if size_bytes > TAIL_BYTES else _small_manifests).get(where)
    if cached is None or cached.size_bytes != size_bytes:
        return None
    if bytes(tail[-TAIL_BYTES:]) != cached.tail:
        return None
    return _complete(cached.manifest, whole=whole)


def manifest_with_mark(where: str, size_bytes: int, e_tag: str | None) -> Manifest | None:
    """Return the cached whole manifest of a file with this size and entity tag, or None.

    The tag comes from a listing and says what lies there now, so nothing has to be read.
    """
    cached = (_large_manifests if size_bytes > TAIL_BYTES else _small_manifests).get(where)
    if cached is None or e_tag is None or (cached.size_bytes, cached.e_tag) != (size_bytes, e_tag):
        return None
    return _complete(cached.manifest, whole=True)


def _complete(manifest: Manifest, *, whole: bool) -> Manifest | None:
    sections = (manifest.index_section, manifest.transaction_section)
    if whole and any(section is not None and section.data is None for section in sections):
        return None
    return manifest


def cache_manifest(
    where: str,
    tail: bytes | memoryview,
    size_bytes: int,
    manifest: Manifest,
    e_tag: str | None = None,
) -> None:
    """Cache the manifest of the file at ``where``, so that it is not parsed again."""
    end = bytes(tail[-TAIL_BYTES:])
    cached, most = _small_manifests, _SMALL_MANIFESTS_MAX
    if size_bytes > TAIL_BYTES:
        cached, most = _large_manifests, _LARGE_MANIFESTS_MAX
        name = manifest.transaction_file.encode()
        if size_bytes > _LARGE_MANIFEST_BYTES_MAX or not name or name not in end:
            return
    cached.pop(where, None)
    cached[where] = _CachedManifest(size_bytes, end, manifest, e_tag)
    with suppress(KeyError):  # another thread has evicted entries meanwhile
        while len(cached) > most:
            cached.popitem(last=False)
