"""Base paths: other places that may hold files of a dataset, and which of them are trusted.

A manifest can name any folder or bucket as a base path, and reading it would use the reader's own
credentials (see lance_nb.table.locations). Trusted are:

* what the caller names: ``allow_bases=["/data/shared", "s3://bucket/table.lance"]``;
* what the environment variable ``LANCE_NB_ALLOW_BASES`` lists, separated as in ``PATH`` (":" on
  Linux and macOS, ";" on Windows); URIs may stand in the list as they are:
  ``/data/shared:s3://bucket/a:/data/more``;
* what this process itself added to the dataset, by ``shallow_clone``, ``initial_bases``,
  ``target_bases`` or ``add_bases``. That holds for this dataset only: another one that names the
  same base is refused;
* single external blobs that this process itself referred to, where the caller allowed URIs below no
  base path (``allow_external_blob_outside_bases``): each by its whole URI, in this dataset and in
  what this process clones from it, as long as no symbolic link leads elsewhere since. Their
  neighbours are refused.

The first two are also where symbolic links of a local dataset may lead, for reading and writing
(see lance_nb.storage.links). Each entry covers the place itself and everything below it. Local
paths are compared without symbolic links, ".." or trailing slashes, and schemes without regard to
case.

Limits: a list in the environment cannot hold local paths that contain the separator, nor URIs with
":" after the host; ``allow_bases`` can. A process remembers 100,000 external blobs, of all datasets
together, and reading another one says so; pickled handles do not take them along, nor do tasks of
Spark bring them to the driver from another process. The dataset assigns the id of a base path when
it is registered; 0 or None asks for the next one.
Source: ``lance.DatasetBasePath`` of pylance 14.0.2.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from typing import Any

from lance_nb.errors import BasePathError, InvalidInputError
from lance_nb.file.external_blobs import NO_URIS, URIS_MAX, BlobUris
from lance_nb.format.manifest import BasePath
from lance_nb.storage.registry import split_uri
from lance_nb.storage.system_calls import real_path
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class DatasetBasePath:
    """A folder or bucket, by its URI. ``is_dataset_root``: files lie in its usual folders.

    Examples:
        >>> lance_nb.DatasetBasePath("s3://archive/points", name="archive").name
        'archive'
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None


def registered(places: Iterable[Any]) -> tuple[BasePath, ...]:
    """Return the base paths of a new dataset, numbered from 1; pylance's values will do too.

    Raises BasePathError when two have the same name, path or id.
    """
    bases: list[BasePath] = []
    for place in as_values(places):
        taken = {base.id for base in bases}
        number = place.id or max(taken, default=0) + 1
        is_twice = any(
            base.path == place.path or (place.name is not None and base.name == place.name)
            for base in bases
        )
        if is_twice or number in taken:
            raise BasePathError(
                f"base path {place.name or place.path!r}: its name, path and id must differ from "
                "those of the other base paths"
            )
        bases.append(BasePath(number, place.path, place.is_dataset_root, place.name))
    return tuple(bases)


def as_values(places: Iterable[Any]) -> tuple[BasePath, ...]:
    """Return base paths that have no id yet as such with id 0. Raises BasePathError."""
    bases = []
    for place in places:
        path, number = getattr(place, "path", None), getattr(place, "id", None)
        if not isinstance(path, str) or not path:
            raise BasePathError(f"{place!r:.80} is not a DatasetBasePath")
        if number is not None and not 0 <= number < 2**32:
            raise BasePathError(f"the id of base path {path!r} must fit in 32 bits, got {number}")
        bases.append(BasePath(number or 0, path, bool(place.is_dataset_root), place.name))
    return tuple(bases)


VARIABLE = "LANCE_NB_ALLOW_BASES"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST_ONLY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
_PORT = re.compile(r"\d{1,5}(/.*)?")


class _Created:
    """What this process put into a dataset: base paths, and references to external blobs."""

    __slots__ = ("bases", "blobs")

    def __init__(self) -> None:
        self.bases: tuple[str, ...] = ()
        self.blobs = BlobUris()


_created: dict[str, _Created] = {}  # by the root of the dataset
_lock = threading.Lock()


def trusted_bases(allow_bases: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return the places that a call and the environment allow, local ones as absolute paths.

    Raises InvalidInputError.
    """
    if isinstance(allow_bases, (str, bytes, os.PathLike)):
        raise InvalidInputError(
            f"allow_bases must be a list of locations: allow_bases=[{allow_bases!r}]"
        )
    named = [_absolute(place, "allow_bases") for place in allow_bases]
    listed = [_absolute(place, VARIABLE) for place in split_list(os.environ.get(VARIABLE, ""))]
    return tuple(dict.fromkeys((*named, *listed)))


def split_list(text: str, separator: str = os.pathsep) -> list[str]:
    """Split a list of places as ``PATH`` is split, but leave URIs whole."""
    places: list[str] = []
    is_open = False  # the last part may go on behind the separator
    for part in text.split(separator):
        if is_open and separator == ":" and _continues(places[-1], part):
            places[-1] = f"{places[-1]}:{part}"
        elif part:
            places.append(part)
        is_open = bool(part)
    return places


def _continues(place: str, part: str) -> bool:
    if part.startswith("//"):
        return _SCHEME.fullmatch(place) is not None
    return _HOST_ONLY.fullmatch(place) is not None and _PORT.fullmatch(part) is not None


def _absolute(place: str | os.PathLike[str], source: str) -> str:
    try:
        scheme, path = split_uri(place)
    except InvalidInputError as exc:
        raise InvalidInputError(f"{source}: {exc}") from exc
    return path if scheme == "file" else os.fspath(place)


def remember_created(root: str, bases: Iterable[str]) -> None:
    """Note that this process put base paths into the dataset at ``root``."""
    bases = tuple(bases)
    if not bases:  # where nothing is noted at all, no root has to be looked up
        return
    key = _key(root)
    with _lock:
        created = _created.setdefault(key, _Created())
        created.bases = tuple(dict.fromkeys((*created.bases, *bases)))


def created_bases(root: str) -> tuple[str, ...]:
    """Return the base paths that this process put into the dataset at ``root``."""
    created = _created.get(_key(root)) if _created else None
    return () if created is None else created.bases


def remember_blobs(root: str, uris: Iterable[str]) -> None:
    """Note that this process wrote references to external blobs into the dataset at ``root``."""
    written = BlobUris()
    written.add(uris, URIS_MAX)  # follows links, so it is done outside of the lock
    _remember(root, written)


def inherit_blobs(root: str, source_root: str) -> None:
    """Note that a dataset has the references to external blobs of the one it was cloned from."""
    _remember(root, written_blobs(source_root))


def _remember(root: str, written: BlobUris) -> None:
    if not written:
        return
    key = _key(root)
    with _lock:
        blobs = _created.setdefault(key, _Created()).blobs
        blobs.add_all(written, _most_blobs(blobs))


def _most_blobs(blobs: BlobUris) -> int:
    """Return how many blobs of one dataset may be held, so that all have ``URIS_MAX``."""
    num_all = sum(len(created.blobs) for created in _created.values())
    return URIS_MAX - num_all + len(blobs)


def written_blobs(root: str) -> BlobUris:
    """Return the external blobs that this process referred to in the dataset at ``root``."""
    created = _created.get(_key(root)) if _created else None
    return NO_URIS if created is None else created.blobs


def _key(root: str) -> str:
    return root if "://" in root else real_path(root)
