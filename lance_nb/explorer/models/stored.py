"""What the storage view asks of a dataset beyond ``Source``: its manifest, files and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from lance_nb.errors import NotFoundError, NotSupportedError
from lance_nb.explorer.models.source import Source
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.fragment import Fragment
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.space import Space


class StoredSource(Source, Protocol):
    """A dataset whose files can be looked at."""

    @property
    def inspect(self) -> Any: ...
    @property
    def opened(self) -> tuple[Any, Snapshot]: ...
    def list_indices(self) -> list[dict[str, Any]]: ...
    def space(self, *, progress: Callable[[int, int], object] | None = None) -> Space: ...


def stored(dataset: Source) -> StoredSource:
    """Return the dataset as one whose files can be looked at. Raises NotSupportedError."""
    if not hasattr(dataset, "opened"):
        raise NotSupportedError(f"{type(dataset).__name__} does not tell where its bytes are")
    return cast("StoredSource", dataset)


def fragment_at(dataset: StoredSource, fragment_id: int) -> Fragment:
    """Return a fragment by its id. Raises NotFoundError."""
    fragments = dataset.opened[1].manifest.fragments
    ids = fragments.counts().ids
    for position in (ids == fragment_id).nonzero()[0][:1].tolist():
        found: Fragment = fragments[position]
        return found
    raise NotFoundError(f"version {dataset.version} has no fragment {fragment_id}")


def is_blob_column(dataset: Source, name: str) -> bool:
    """Tell whether the values of a column at the top lie apart, as blobs."""
    schema = getattr(dataset, "lance_schema", None)
    if schema is None:
        return False
    return any(field.name == name and is_blob(field) for field in schema.tree.fields)
