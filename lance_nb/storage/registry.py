"""Open the store of a URI; one line per scheme, its module imported when it is first needed.

``open_store("s3://bucket/data.lance")`` is the entry point for the other packages. Plain paths,
``~``, relative paths and ``file://`` are local. A scheme that is not in ``STORES`` goes to fsspec,
which supports many more.

Limits: ``storage_options`` are for remote stores; local ones have ``map_files`` alone.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast
from urllib.parse import unquote

from lance_nb.errors import ArgumentError, InvalidInputError, MissingPackageError, NotSupportedError
from lance_nb.storage.base import Store, absolute_path
from lance_nb.storage.system_calls import real_path

StorageOptions = Mapping[str, Any]

MAP_FILES = "map_files"  # storage option of local files
_FSSPEC = "lance_nb.storage.fsspec_store:FsspecStore"
_OBJECT_STORE = "lance_nb.storage.object_store:open_object_store"

# scheme -> (module:Class, the optional package that it needs, what `pip install` gets it by)
STORES: dict[str, tuple[str, str, str]] = {
    "file": ("lance_nb.storage.local:LocalStore", "", ""),
    "memory": ("lance_nb.storage.memory:MemoryStore", "", ""),
    "s3": (_OBJECT_STORE, "obstore", "lance-nb[s3]"),
    "s3a": (_OBJECT_STORE, "obstore", "lance-nb[s3]"),
    "gs": (_OBJECT_STORE, "obstore", "lance-nb[gcs]"),
    "gcs": (_OBJECT_STORE, "obstore", "lance-nb[gcs]"),
    "az": (_OBJECT_STORE, "obstore", "lance-nb[azure]"),
    "abfs": (_OBJECT_STORE, "obstore", "lance-nb[azure]"),
    "abfss": (_OBJECT_STORE, "obstore", "lance-nb[azure]"),
    "http": (_FSSPEC, "aiohttp", "aiohttp"),
    "https": (_FSSPEC, "aiohttp", "aiohttp"),
    "hf": (_FSSPEC, "huggingface_hub", "huggingface_hub"),
}

_SAME_STORE = {"s3a": "s3", "gcs": "gs"}  # two names of one scheme
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # one letter is a drive of Windows
_DRIVE = re.compile(r"/[A-Za-z]:(?=/|$)")


def open_store(
    uri: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    allowed: Sequence[str] = (),
) -> Store:
    """Return the store rooted at ``uri`` (nothing is read yet).

    ``allowed`` are local places outside of it that symbolic links may lead to (see links.py).
    Raises InvalidInputError for something that is no URI, NotSupportedError for a scheme that no
    installed package serves (with the pip line).
    """
    scheme, location = split_uri(uri)
    if scheme in ("file", "memory"):
        factory = _load(STORES[scheme][0])
        if scheme == "memory":
            return cast("Store", factory(location))
        maps_files = _maps_files((storage_options or {}).get(MAP_FILES, "true"))
        return cast("Store", factory(location, allowed, maps_files=maps_files))
    target, package, install = STORES.get(scheme, (_FSSPEC, "", ""))
    factory = _load(target)
    missing = MissingPackageError(f"opening {scheme}://", package, install) if install else None
    return cast("Store", factory(location, dict(storage_options or {}), missing))


def _maps_files(setting: object) -> bool:
    """Return what the storage option says, true or false."""
    text = str(setting).lower()
    if text not in ("true", "false"):
        raise InvalidInputError(
            f"storage option {MAP_FILES!r} must be true or false, got {setting!r}"
        )
    return text == "true"


def split_uri(uri: str | os.PathLike[str]) -> tuple[str, str]:
    """Return (scheme in lower case, what that scheme's store is opened with).

    That is a path for ``file``, the name after ``memory://``, else the whole URI.
    """
    if not isinstance(uri, (str, os.PathLike)):
        raise ArgumentError(f"a dataset URI is text or a path, not {type(uri).__name__}")
    text = os.fspath(uri)
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("the dataset URI is empty")
    if "\0" in text:
        raise InvalidInputError("a dataset URI cannot hold a NUL character")
    match = _SCHEME.match(text) if "://" in text else None
    if match is None:
        return "file", absolute_path(os.path.expanduser(text) if text[0] == "~" else text)
    scheme = match.group(1).lower()
    path = text[match.end() :]
    if scheme in ("file", "file-object-store", "local"):  # the last is fsspec's name of it
        return "file", _local_path(text, path)
    if scheme == "memory":
        return "memory", path.strip("/")
    if "+" in scheme:
        raise NotSupportedError(
            f"{scheme}:// names an external manifest store, which only datasets have; "
            f"plain files are at {scheme.split('+')[0]}://"
        )
    return scheme, f"{scheme}://{path.rstrip('/')}"


def split_object_uri(uri: str) -> tuple[str, str]:
    """Return the folder that the URI of an object lies in, and the object's name there.

    A local folder is returned as a path, because its URI may be percent-encoded: ``file:///a%20b``.
    Raises InvalidInputError, NotSupportedError.
    """
    scheme, path = split_uri(uri)
    folder, _, name = (path if scheme == "file" else uri).rpartition("/")
    if folder.endswith(":/"):  # of "s3://bucket", which would be taken for a local folder
        raise InvalidInputError(f"{uri!r} names a whole store, not an object in one")
    return folder or "/", name


def relative_uri(uri: str, root: str) -> str | None:
    """Return ``uri`` relative to ``root`` ("" when equal), None when it is not at or below it.

    Local paths are compared without symbolic links.
    """
    scheme, place = split_uri(uri)
    root_scheme, root_place = split_uri(root)
    if _SAME_STORE.get(scheme, scheme) != _SAME_STORE.get(root_scheme, root_scheme):
        return None
    if scheme == "file":
        place, root_place = real_path(place), real_path(root_place)
    elif scheme != root_scheme:
        place, root_place = place.partition("://")[2], root_place.partition("://")[2]
    place, root_place = place.rstrip("/"), root_place.rstrip("/")
    if place == root_place:
        return ""
    inside = place.removeprefix(f"{root_place}/")
    if inside == place or not {"", ".", ".."}.isdisjoint(inside.split("/")):
        return None
    return inside


def _local_path(uri: str, after_scheme: str) -> str:
    host, slash, path = after_scheme.partition("/")
    if host not in ("", "localhost") or not slash:
        raise InvalidInputError(
            f"{uri!r} names the host {host!r}; a local file URI is file:///path"
        )
    place = "/" + unquote(path)
    if os.sep != "/" and _DRIVE.match(place):  # file:///C:/data/photos.lance
        place = place[1:]
    return absolute_path(place)


@cache
def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
