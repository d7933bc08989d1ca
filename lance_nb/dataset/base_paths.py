"""DatasetBasePath: another place that files of a dataset may lie in, as users name it.

Limits: the id is given by the dataset when the place is registered; 0 or None asks for the next.
Source: ``lance.DatasetBasePath`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lance_nb.errors import BasePathError
from lance_nb.format.manifest_values import BasePath


@dataclass(frozen=True, slots=True)
class DatasetBasePath:
    """A folder or bucket, by its URI. ``is_dataset_root``: files lie in its usual folders."""

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None


def registered(places: Iterable[Any]) -> tuple[BasePath, ...]:
    """Return the base paths of a new dataset, numbered from 1; pylance's values will do too.

    Raises BasePathError when two have the same name, path or id.
    """
    found: list[BasePath] = []
    for place in as_values(places):
        taken = {one.id for one in found}
        number = place.id or max(taken, default=0) + 1
        is_twice = any(
            one.path == place.path or (place.name is not None and one.name == place.name)
            for one in found
        )
        if is_twice or number in taken:
            raise BasePathError(
                f"base path {place.name or place.path!r}: name, path and id must differ from those "
                "of the others"
            )
        found.append(BasePath(number, place.path, place.is_dataset_root, place.name))
    return tuple(found)


def as_values(places: Iterable[Any]) -> tuple[BasePath, ...]:
    """Return base paths that have no id yet as such with id 0. Raises BasePathError."""
    found = []
    for one in places:
        path, number = getattr(one, "path", None), getattr(one, "id", None)
        if not isinstance(path, str) or not path:
            raise BasePathError(f"{one!r:.80} is not a DatasetBasePath")
        if number is not None and not 0 <= number < 2**32:
            raise BasePathError(f"the id of base path {path!r} does not fit 32 bits: {number}")
        found.append(BasePath(number or 0, path, bool(one.is_dataset_root), one.name))
    return tuple(found)
