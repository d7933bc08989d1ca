"""Verbs that describe a version: counts, configuration, fragments, files. Reads the manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb import table
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.manifest_values import BasePath
from lance_nb.table.refs import Target
from lance_nb.table.scan_plan import live_counts
from lance_nb.table.storage_version import storage_version

if TYPE_CHECKING:
    from lance_nb.table.data_statistics import DataStatistics


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Counts of one version, from its manifest alone."""

    num_rows: int
    num_deleted_rows: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int


class LanceStats:
    """Counts of one version; the methods are those of pylance's ``ds.stats``.

    Ours: it is called too, ``ds.stats()``, and returns DatasetStats.
    """

    def __init__(self, dataset: Describing) -> None:
        self._dataset = dataset

    def __call__(self) -> DatasetStats:
        """Count rows, files and bytes, from the manifest."""
        snapshot = self._dataset.opened[1]
        counts = snapshot.manifest.fragments.counts()
        return DatasetStats(
            int(live_counts(snapshot).sum()),
            int(counts.num_deleted_rows.sum()),
            len(counts.ids),
            int(counts.num_data_files.sum()),
            int(counts.num_deletion_files.sum()),
            int(counts.size_bytes.sum()),
        )

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Count deleted rows, fragments, and those of fewer rows than ``max_rows_per_group``."""
        snapshot = self._dataset.opened[1]
        counts = snapshot.manifest.fragments.counts()
        return {
            "num_deleted_rows": int(counts.num_deleted_rows.sum()),
            "num_fragments": len(counts.ids),
            "num_small_files": int((live_counts(snapshot) < max_rows_per_group).sum()),
        }

    def data_stats(self, *, progress: Callable[[int, int], object] | None = None) -> DataStatistics:
        """Tell the bytes on disk of every field, from the page metadata; reads no page.

        ``progress`` (ours) is called with fragments done and fragments in all. Raises
        CorruptFileError, ObjectNotFoundError.
        """
        return table.data_statistics.data_statistics(self._dataset.opened[1], progress)

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return what ``LanceDataset.index_statistics`` returns. Raises IndexNotFoundError."""
        return table.indices.statistics(self._dataset.opened[1], index_name)


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

    @property
    def stats(self) -> LanceStats:
        """Counts of this version, as an object that is called: ``ds.stats()``."""
        return LanceStats(self)

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether row ids stay the same when rows move."""
        return bool(self._snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)

    @property
    def max_field_id(self) -> int:
        """The largest field id of the schema and of the data files."""
        manifest = self._snapshot.manifest
        found = {
            number for one in manifest.fragments for file in one.files for number in file.fields
        }
        return max(manifest.schema.max_field_id, *found, -1)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the Arrow schema, as text."""
        found = self.schema.metadata or {}
        return {key.decode(): value.decode(errors="replace") for key, value in found.items()}

    def get_version(self) -> dict[str, Any]:
        """Describe this version as ``versions`` describes it."""
        return self._session.log(self.branch).as_pylance(self.version)

    def base_paths(self) -> dict[int, BasePath]:
        """Return the base paths that are registered, by id."""
        return {one.id: one for one in self._snapshot.manifest.base_paths}

    def all_files(self) -> pa.RecordBatchReader:
        """List the files below the dataset's root; the columns are in lance_nb.table.files."""
        files = table.files
        return pa.RecordBatchReader.from_batches(files.ALL, files.all_files(self._session.root))

    def tracked_files(
        self,
        *,
        min_version: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> pa.RecordBatchReader:
        """List the files that the versions of this branch refer to, from ``min_version`` on.

        ``progress`` is called with the versions done and those there are. The columns are in
        lance_nb.table.files.
        """
        log = self._session.log(self.branch)
        numbers = [one for one in log.numbers() if min_version is None or one >= min_version]
        found = table.files.tracked_files(
            numbers, lambda one: self._session.load(Target(self.branch, one)), progress
        )
        return pa.RecordBatchReader.from_batches(table.files.TRACKED, found)
