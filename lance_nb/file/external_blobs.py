"""Blobs that a table refers to by URI: where below the base paths they lie, or what they hold.

A base path that is no dataset root takes references to what lies below it; of several the longest.
What is stored then is the id of the base and the path below it.

References to what lies below no base are written only where the caller allows them. ``BlobUris``
holds these, so that the process that wrote them may read them (lance_nb.session.base_paths).

Limits: a URI names one object; ``position`` and ``size`` choose a part of it, which must lie in it.
Source: external blobs and ``external_blob_mode="ingest"`` of pylance 14.0.2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Self

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import Store
from lance_nb.storage.registry import (
    StorageOptions,
    open_store,
    split_object_uri,
    split_uri,
)
from lance_nb.storage.system_calls import real_path
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class BlobBases:
    """Base paths that external blobs may lie below: (id, scheme, place), the longest first."""

    places: tuple[tuple[int, str, str], ...] = ()

    @classmethod
    def of(cls, bases: Iterable[BasePath]) -> Self:
        """Choose those that are no dataset roots."""
        base_places = [
            (base.id, *split_uri(base.path)) for base in bases if not base.is_dataset_root
        ]
        return cls(tuple(sorted(base_places, key=lambda base: len(base[2]), reverse=True)))

    def place_of(self, uri: str) -> tuple[int, str] | None:
        """Return the id of the base that a URI lies below, and the path there."""
        if not self.places:
            return None
        scheme, place = split_uri(uri)
        for number, base_scheme, base in self.places:
            inside = place.removeprefix(f"{base.rstrip('/')}/")
            if scheme == base_scheme and inside != place and ".." not in inside.split("/"):
                return number, inside
        return None


NO_BASES = BlobBases()


URIS_MAX = 100_000


class BlobUris:
    """External blobs, each by its whole URI and where that leads.

    Blobs are held by hashes, which bounds the memory also of long URIs and keeps no signature that
    is part of one. ``is_cut``: some were left out.
    """

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}  # in the order in which they came
        self.is_cut = False

    def __len__(self) -> int:
        return len(self._digests)

    def target(self, uri: str) -> str | None:
        """Return where a URI that is held leads: a local path without links, or the URI itself.

        None for one that is not held, or leads elsewhere since. Raises InvalidInputError,
        NotSupportedError for a URI that no store opens.
        """
        if not self._digests:
            return None
        scheme, path = split_uri(uri)
        target = real_path(path) if scheme == "file" else uri
        return target if _digest(uri, target) in self._digests else None

    def add(self, uris: Iterable[str], limit: int) -> None:
        """Hold URIs, but no more than ``limit`` in all; none that no store opens."""
        self._add((_digest(uri, target) for uri, target in _targets(uris)), limit)

    def add_all(self, blobs: BlobUris, limit: int) -> None:
        """Hold what another one holds, but no more than ``limit`` in all."""
        self._add(blobs._digests, limit)
        self.is_cut = self.is_cut or blobs.is_cut

    def _add(self, digests: Iterable[bytes], limit: int) -> None:
        for digest in tuple(digests):
            if digest in self._digests or len(self._digests) < limit:
                self._digests[digest] = None
            else:
                self.is_cut = True


NO_URIS = BlobUris()


def _digest(uri: str, target: str) -> bytes:
    return hashlib.sha256(f"{uri}\0{target}".encode("utf-8", "surrogatepass")).digest()


def _targets(uris: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield URIs with where they lead."""
    real_folders: dict[str, str] = {}  # looking up each file whole takes several times as long
    for uri in uris:
        try:
            scheme, target = split_uri(uri)
        except LanceError:
            continue
        if scheme != "file":
            yield uri, uri
            continue
        folder, _, name = target.rpartition("/")
        if folder not in real_folders:
            real_folders[folder] = real_path(folder or "/").rstrip("/")
        target = f"{real_folders[folder]}/{name}"
        is_link = os.path.islink(target)  # noqa: PTH114  Path's raises for names that are too long
        yield uri, real_path(target) if is_link else target


@dataclass(frozen=True, slots=True)
class ExternalPayload:
    """A part of an object somewhere."""

    store: Store
    path: str
    start: int
    size_bytes: int


class ExternalBlobs:
    """Finds objects by URI, and keeps the stores that it has opened."""

    def __init__(self, options: StorageOptions | None = None) -> None:
        self._options = options
        self._stores: dict[str, Store] = {}

    def locate(self, uri: str, position: int, size: int | None) -> ExternalPayload:
        """Look for an object; ``size`` None means all from ``position`` on.

        Raises InvalidInputError for a part that it does not have, ObjectNotFoundError,
        NotSupportedError for a scheme that no installed package serves.
        """
        folder, name = split_object_uri(uri)
        if folder not in self._stores:
            # The URI of a file names it on purpose, also where links lead there.
            self._stores[folder] = open_store(folder, self._options, ("/",))
        store = self._stores[folder]
        whole = store.size(name)
        size = whole - position if size is None else size
        if position + size > whole or size < 0:
            raise InvalidInputError(
                f"external blob {uri!r} has {whole} bytes, and {size} from {position} on were "
                "asked for"
            )
        return ExternalPayload(store, name, position, size)
