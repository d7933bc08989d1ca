"""A folder that new data files go to: of the dataset itself, or of another base path.

Layout: below a dataset root files lie in ``data``, below a plain base path directly in it; a
fragment names them relative to that folder, with the id of the base.
Source: message ``BasePath`` of lance.table; files as pylance 14.0.2 places them.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.format import layout
from lance_nb.storage.base import Store


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A folder in a store ("" is its root), and the id of its base; None is the dataset's own."""

    store: Store
    folder: str = layout.DATA
    base_id: int | None = None

    def path(self, name: str) -> str:
        """Return the path of a file in the store."""
        return f"{self.folder}/{name}" if self.folder else name

    def name(self, path: str) -> str:
        """Return how a fragment names the file at a path."""
        return path.removeprefix(f"{self.folder}/") if self.folder else path
