"""Blobs that a table refers to by URI: where below the base paths they lie, or what they hold.

A base path that is no dataset root takes references to what lies below it; of several the longest.
What is stored then is the id of the base and the path below it.

Limits: a URI names one object; ``position`` and ``size`` choose a part of it, which must lie in it.
Source: external blobs and ``external_blob_mode="ingest"`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from lance_nb.errors import InvalidInputError
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import Store
from lance_nb.storage.registry import StorageOptions, open_store, split_uri
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
        NotSupportedError for a scheme that nobody serves.
        """
        scheme, place = split_uri(uri)
        folder, _, name = (place if scheme == "file" else uri).rpartition("/")
        if folder not in self._stores:
            # Whoever writes the URI of a file means it, whatever links lead there.
            self._stores[folder] = open_store(folder or "/", self._options, ("/",))
        store = self._stores[folder]
        whole = store.size(name)
        size = whole - position if size is None else size
        if position + size > whole or size < 0:
            raise InvalidInputError(
                f"external blob {uri!r} has {whole} bytes, and {size} from {position} on were "
                "asked for"
            )
        return ExternalPayload(store, name, position, size)
