"""Verbs that describe a version: counts, configuration, fragments, indices. Reads the manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_nb import table
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.table.scan_plan import live_counts
from lance_nb.table.storage_version import storage_version

if TYPE_CHECKING:
    from lance_nb.table.indices import IndexDescription


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Counts of one version, from its manifest alone."""

    num_rows: int
    num_deleted_rows: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int


class Describing(OpenedVersion):
    """What a version is made of."""

    @property
    def data_storage_version(self) -> str:
        """File version of newly written data, for example "2.2"."""
        return storage_version(self._snapshot.manifest)

    @property
    def metadata(self) -> dict[str, str]:
        """Table metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    def config(self) -> dict[str, str]:
        """Table configuration."""
        return dict(self._snapshot.manifest.config)

    def stats(self) -> DatasetStats:
        """Count rows, files and bytes, from the manifest."""
        counts = self._snapshot.manifest.fragments.counts()
        return DatasetStats(
            int(live_counts(self._snapshot).sum()),
            int(counts.num_deleted_rows.sum()),
            len(counts.ids),
            int(counts.num_data_files.sum()),
            int(counts.num_deletion_files.sum()),
            int(counts.size_bytes.sum()),
        )

    def list_indices(self) -> list[dict[str, Any]]:
        """List the segments of the secondary indices of this version, as pylance does."""
        return table.indices.list_indices(self._snapshot)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe every index with all its segments: type, fields, rows and fragments covered."""
        return table.indices.describe_indices(self._snapshot)
