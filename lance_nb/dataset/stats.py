"""Counts and tables about one version: ``ds.stats``, ``ds.inspect`` and ``ds.value_counts``.

Counts come from the manifest; ``inspect.pages`` and ``stats.data_stats`` read page metadata too.
Source: ``LanceStats`` of pylance 14.0.2; ``inspect`` is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_nb.dataset.refs import Tags
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.session.opened import OpenedVersion, VersionPart
from lance_nb.table.scan_tasks import counts_of
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.table.data_statistics import DataStatistics


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Counts of one version, from its manifest alone.

    ``num_small_files``: fragments of fewer than 1,024 live rows. ``size_bytes`` is None where a
    fragment's files are of no recorded size, as releases of 2023 wrote them.

    Examples:
        >>> ds.stats().num_data_files, ds.stats().num_small_files
        (2, 2)
    """

    num_rows: int
    num_deleted_rows: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int | None
    num_small_files: int

    def advice(self) -> list[str]:
        """Say why a compaction would help; nothing if it would not.

        Examples:
            >>> ds.stats().advice()
            []
        """
        lines = []
        stored = self.num_rows + self.num_deleted_rows
        if self.num_deleted_rows * 10 >= stored > 0:
            lines.append(f"{self.num_deleted_rows / stored:.0%} of the rows are deleted")
        if self.num_fragments >= 10 and stored < self.num_fragments * 100_000:
            lines.append(f"{self.num_fragments:,} small fragments")
        return lines


class LanceStats:
    """Counts of one version; the methods are those of pylance's ``ds.stats``.

    Ours: it is called too, ``ds.stats()``, and returns DatasetStats.

    Examples:
        >>> ds.stats().num_rows
        10
    """

    def __init__(self, dataset: OpenedVersion) -> None:
        self._dataset = dataset

    def __call__(self) -> DatasetStats:
        """Count rows, files and bytes, from the manifest."""
        snapshot = self._dataset.opened[1]
        counts = counts_of(snapshot)
        is_unsized = (counts.size_bytes == 0) & (counts.num_data_files > 0)
        return DatasetStats(
            num_rows=int(counts.num_rows.sum()),
            num_deleted_rows=int(counts.num_deleted_rows.sum()),
            num_fragments=len(counts.ids),
            num_data_files=int(counts.num_data_files.sum()),
            num_deletion_files=int(counts.num_deletion_files.sum()),
            size_bytes=None if is_unsized.any() else int(counts.size_bytes.sum()),
            num_small_files=self.dataset_stats()["num_small_files"],
        )

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Count deleted rows, fragments, and small fragments.

        Args:
            max_rows_per_group: fragments of fewer rows are small. The rows are those in its files,
                deleted ones too, as in pylance.

        Examples:
            >>> ds.stats.dataset_stats()
            {'num_deleted_rows': 0, 'num_fragments': 2, 'num_small_files': 2}
        """
        snapshot = self._dataset.opened[1]
        counts = snapshot.manifest.fragments.counts()
        return {
            "num_deleted_rows": int(counts.num_deleted_rows.sum()),
            "num_fragments": len(counts.ids),
            "num_small_files": int((counts.physical_rows < max_rows_per_group).sum()),
        }

    def data_stats(self, *, progress: Callable[[int, int], object] | None = None) -> DataStatistics:
        """Tell the bytes on disk of every field, from the page metadata; reads no page.

        Args:
            progress: called with fragments done and fragments in all. Not in pylance.

        Raises CorruptFileError, ObjectNotFoundError.

        Examples:
            >>> [field.id for field in ds.stats.data_stats().fields]
            [0, 1, 2]
        """
        from lance_nb.table import data_statistics

        return data_statistics.data_statistics(self._dataset.opened[1], progress)

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return what ``LanceDataset.index_statistics`` returns.

        Args:
            index_name: its name.

        Raises IndexNotFoundError.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE", name="by_id")
            >>> ds.stats.index_stats("by_id")["num_indexed_rows"]
            10
        """
        from lance_nb.indices.statistics import statistics

        return statistics(self._dataset.opened[1], index_name)


class Inspection(VersionPart):
    """Tables about one version; the schemas are in lance_nb.table.metadata_tables."""

    def versions(self) -> pa.Table:
        """One row per version of the branch: time, operation, message, counts, tags."""
        from lance_nb.table import history

        log = self._session.log(self._snapshot.branch)
        return history.versions_table(log, Tags(*self._version.opened).list())

    def fragments(self) -> pa.Table:
        """One row per fragment: rows, deletions, files, bytes."""
        from lance_nb.table import metadata_tables

        return metadata_tables.fragments(self._snapshot)

    def data_files(self) -> pa.Table:
        """One row per data file: fragment, path, version, bytes, columns."""
        from lance_nb.table import metadata_tables

        return metadata_tables.data_files(self._snapshot)

    def columns(self) -> pa.Table:
        """One row per field: id, dotted name, logical type, nullability, files that hold it."""
        from lance_nb.table import metadata_tables

        return metadata_tables.columns(self._snapshot)

    def pages(self, path: str) -> pa.Table:
        """One row per page of a data file: rows, bytes, encoding."""
        from lance_nb.table import metadata_tables

        return metadata_tables.pages(self._snapshot, path)


def value_counts(dataset: LanceDataset, column: str) -> pa.Table:
    """See ``LanceDataset.value_counts``."""
    schema = dataset.schema
    if column not in schema.names:
        raise ColumnNotFoundError(column, tuple(schema.names))
    kind = schema.field(column).type
    indexed = indexed_value_counts(dataset, column)
    if indexed is not None:
        counts = indexed[0]
    elif pa.types.is_nested(kind):
        raise NotSupportedError(f"values of {kind} are not counted")
    else:
        counts = _counted(
            pa.table([pa.nulls(0, kind), pa.nulls(0, pa.int64())], _NAMES), dataset, column
        )
    ordered = counts.append_column("place", from_integers(np.arange(len(counts))))
    ordered = ordered.sort_by([("count", "descending"), ("place", "ascending")])
    return ordered.select(_NAMES)  # equal counts stay as they come: Arrow's order of them varies


def indexed_value_counts(
    dataset: LanceDataset, column: str, where: str | None = None
) -> tuple[pa.Table, str] | None:
    """Count the rows of each value that pass a condition by indices, and say in words by which.

    Fragments that they do not cover are read. None where no BITMAP index is on the column, it is of
    a type that cannot be grouped, or the condition is not decided by indices.
    """
    from lance_nb.indices.search import scalar_search
    from lance_nb.table.predicate import compile_filter

    kind = dataset.schema.field(column).type
    search = None if pa.types.is_nested(kind) else scalar_search(dataset.opened[1])
    if search is None:
        return None
    condition = None if where is None else compile_filter(where, dataset.schema)
    counted = search.value_counts(column, condition)
    if counted is None:
        return None
    counts = pa.table([counted.values, from_integers(counted.counts)], _NAMES)
    covered = set(counted.covered.tolist())
    uncovered = [
        fragment for fragment in dataset.get_fragments() if fragment.fragment_id not in covered
    ]
    if uncovered:
        counts = _counted(counts, dataset, column, filter=where, fragments=uncovered)
    words = f"{len(covered)} of {len(covered) + len(uncovered)} fragments covered"
    return counts, f"{counted.words}, {words}{', the others are read' if uncovered else ''}"


_NAMES = ["value", "count"]


def _counted(counts: pa.Table, dataset: LanceDataset, column: str, **options: Any) -> pa.Table:
    """Add the values of a scan to counts of values."""
    for batch in dataset.to_batches([column], **options):
        some = batch.column(0).value_counts()
        more = pa.table([some.field("values"), some.field("counts")], _NAMES)
        grouped = pa.concat_tables([counts, more]).group_by("value", use_threads=False)
        counts = grouped.aggregate([("count", "sum")]).rename_columns(_NAMES)
    return counts
