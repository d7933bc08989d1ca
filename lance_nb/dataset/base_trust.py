"""Which base paths outside of a dataset are trusted, beside those that a call names.

A manifest can name any folder or bucket as a base path, and reading it would use the reader's own
credentials (see lance_nb.table.locations). Trusted are:

* what the caller names: ``allow_bases=["/data/shared", "s3://bucket/table.lance"]``;
* what the environment variable ``LANCE_NB_ALLOW_BASES`` lists, separated as in ``PATH`` (":" on
  Linux and macOS, ";" on Windows); URIs may stand in the list as they are:
  ``/data/shared:s3://bucket/a:/data/more``;
* what this process itself put into the dataset, by ``shallow_clone``, ``initial_bases``,
  ``target_bases`` or ``add_bases``. That holds for this dataset only: another one that names the
  same base is refused.

The first two are also where symbolic links of a local dataset may lead, to be read and written
(see lance_nb.storage.links).

Each entry stands for the place itself and everything below it. Local paths are compared without
symbolic links, ".." or trailing slashes, and schemes without regard to case.

Limits: a list in the environment cannot hold local paths with the separator in them, nor URIs with
":" behind the host; ``allow_bases`` can.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable

from lance_nb.errors import InvalidInputError
from lance_nb.storage.registry import split_uri

VARIABLE = "LANCE_NB_ALLOW_BASES"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST_ONLY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
_PORT = re.compile(r"\d{1,5}(/.*)?")

# Root of a dataset -> bases that this process put into it.
_created: dict[str, tuple[str, ...]] = {}
_lock = threading.Lock()


def trusted_bases(allow_bases: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return the places that a call and the environment allow, local ones as absolute paths.

    Raises InvalidInputError.
    """
    if isinstance(allow_bases, (str, bytes, os.PathLike)):
        raise InvalidInputError(f"allow_bases is a list of places: allow_bases=[{allow_bases!r}]")
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
    key = _key(root)
    with _lock:
        _created[key] = tuple(dict.fromkeys((*_created.get(key, ()), *bases)))


def created_bases(root: str) -> tuple[str, ...]:
    """Return the base paths that this process put into the dataset at ``root``."""
    return _created.get(_key(root), ()) if _created else ()


def _key(root: str) -> str:
    return root if "://" in root else os.path.realpath(root)
