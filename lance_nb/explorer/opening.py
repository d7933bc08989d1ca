"""Opens what a person hands to the explorer: a path, a URI, or a dataset already open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lance_nb.dataset import dataset as open_dataset
from lance_nb.errors import InvalidInputError
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
        options = None if storage_options is None else dict(storage_options)
        source: Source = open_dataset(os.fspath(target), storage_options=options)
    else:
        source = target
    if version is None:
        return source
    if isinstance(version, str):
        return refs.resolve(source, version)
    return source.checkout_version(version)
