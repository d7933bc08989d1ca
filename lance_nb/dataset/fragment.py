"""LanceFragment: one fragment of a dataset at one version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.format.fragment import DataFile, DeletionFile, Fragment

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset


class LanceFragment:
    """A group of rows that were written together. Created by ``LanceDataset.get_fragments``."""

    def __init__(self, dataset: LanceDataset, metadata: Fragment) -> None:
        self._dataset = dataset
        self._metadata = metadata

    @property
    def fragment_id(self) -> int:
        """Id of the fragment, never used again in this dataset."""
        return self._metadata.id

    @property
    def metadata(self) -> Fragment:
        """What the manifest says about the fragment."""
        return self._metadata

    @property
    def physical_rows(self) -> int:
        """Rows stored, deleted ones included."""
        return self._metadata.physical_rows

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted."""
        return self._metadata.num_deleted_rows

    def count_rows(self) -> int:
        """Rows that are not deleted."""
        return self._metadata.num_rows

    def data_files(self) -> list[DataFile]:
        """List the data files."""
        return list(self._metadata.files)

    def deletion_file(self) -> DeletionFile | None:
        """Return the deletion file, None if no row is deleted."""
        return self._metadata.deletion_file

    def to_table(self, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Read rows of this fragment; options as for ``LanceDataset.scanner``."""
        return self._dataset.to_table(columns, fragments=[self], **options)

    def to_batches(
        self, columns: Sequence[str] | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Read rows of this fragment batch by batch."""
        return self._dataset.to_batches(columns, fragments=[self], **options)

    def head(self, num_rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the first rows of this fragment."""
        return self.to_table(columns, limit=num_rows)

    def __repr__(self) -> str:
        return f"<lance_nb.LanceFragment {self.fragment_id}: {self.count_rows()} rows>"
