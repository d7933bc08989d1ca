"""A snapshot: one version of a dataset with everything that is needed to read it.

Immutable; every reader below receives one. Versions of the same handle share the cache of open data
files, because data files never change.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from lance_nb.errors import NotSupportedError
from lance_nb.format.manifest import Manifest
from lance_nb.table.deletion_cache import DeletionCache
from lance_nb.table.file_cache import FileCache
from lance_nb.table.locations import Locations


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version: its manifest, where its files are, and the files that are open."""

    manifest: Manifest
    locations: Locations
    branch: str | None = None
    files: FileCache = field(default_factory=FileCache)
    deletions: DeletionCache = field(default_factory=DeletionCache)
    # Columns asked for -> what scans of them read; see table.projection.
    projections: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    # By the identity of columns: how fragments hold them; see table.fragment_reader.
    plans: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)

    # The live rows of every fragment, as far as they are known; see table.scan_plan.
    live_rows: list[Any] = field(default_factory=list, compare=False, repr=False)

    def __copy__(self) -> Snapshot:
        return self

    def __deepcopy__(self, memo: object) -> Snapshot:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError(
            "the content of an opened version is not pickled: pickle the dataset (or a fragment or "
            "scanner of it), which is opened again where it is used"
        )

    @property
    def version(self) -> int:
        """The version number."""
        return self.manifest.version
