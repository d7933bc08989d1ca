"""Opens what a person hands to the explorer: a path, a URI, or a dataset already open."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lance_nb.dataset import dataset as open_dataset
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.explorer.models import refs
from lance_nb.explorer.models.source import Ref, Source

Target = str | os.PathLike[str] | Source


def check_target(target: object) -> None:
    """Refuse what cannot be a dataset, before anything is opened."""
    is_dataset = hasattr(target, "checkout_version") and hasattr(target, "version_numbers")
    if not is_dataset and not isinstance(target, (str, os.PathLike)):
        found = type(target).__name__
        raise InvalidInputError(f"expected a path, a URI or a lance_nb dataset, got {found}")


def open_source(
    target: Target, version: Ref | None = None, storage_options: Mapping[str, Any] | None = None
) -> Source:
    """Open ``target`` at ``version``, which may be any ref that ``models.refs`` describes."""
    if isinstance(target, (str, os.PathLike)):
        source = _open(os.fspath(target), storage_options)
    else:
        source = target
    if version is None:
        return source
    if isinstance(version, str):
        return refs.resolve(source, version)
    return source.checkout_version(version)


def _open(uri: str, storage_options: Mapping[str, Any] | None) -> Source:
    options = None if storage_options is None else dict(storage_options)
    try:
        source: Source = open_dataset(uri, storage_options=options)
    except DatasetNotFoundError as error:
        near = _near(uri)
        if near:
            error.add_note(f"did you mean {near!r}?")
        raise
    return source


def _near(uri: str) -> str:
    """Return a dataset with a similar name in the same local folder, or nothing."""
    if "://" in uri or "\0" in uri:
        return ""
    path = Path(uri)
    try:
        names = [
            one.name
            for one in path.parent.iterdir()
            if (one / "_versions").is_dir() and one != path
        ]
    except OSError:
        return ""
    found = difflib.get_close_matches(path.name, names, n=1)
    return str(path.with_name(found[0])) if found else ""
