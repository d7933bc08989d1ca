"""LanceFragment: one fragment of a dataset at one version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset.scanner import LanceScanner
from lance_nb.format.fragment import DataFile, DeletionFile, Fragment
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.scan_plan import num_live_rows

if TYPE_CHECKING:
    from lance_nb.dataset.reading import Reading


class LanceFragment:
    """A group of rows that were written together. Created by ``LanceDataset.get_fragments``."""

    def __init__(self, dataset: Reading, metadata: Fragment) -> None:
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
        return num_physical_rows(self._dataset._snapshot, self._metadata)  # noqa: SLF001

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted, as the manifest counts them (releases of 2023 did not)."""
        if self._metadata.deletion_file is None or self._metadata.num_deleted_rows:
            return self._metadata.num_deleted_rows
        return self.physical_rows - num_live_rows(self._dataset._snapshot, self._metadata)  # noqa: SLF001

    def count_rows(self, filter: Any = None) -> int:
        """Rows that are not deleted; with a filter, those that pass it."""
        if filter is None:
            return self.physical_rows - self.num_deletions
        return self._dataset.count_rows(filter, fragments=[self])

    def data_files(self) -> list[DataFile]:
        """List the data files."""
        return list(self._metadata.files)

    def deletion_file(self) -> DeletionFile | None:
        """Return the deletion file, None if no row is deleted."""
        return self._metadata.deletion_file

    def scanner(self, **options: Any) -> LanceScanner:
        """Describe a scan of this fragment; options as for ``LanceDataset.scanner``."""
        return self._dataset.scanner(fragments=[self], **options)

    def to_table(
        self, columns: Sequence[str] | Mapping[str, str] | None = None, **options: Any
    ) -> pa.Table:
        """Read rows of this fragment; options as for ``LanceDataset.scanner``."""
        return self.scanner(columns=columns, **options).to_table()

    def to_batches(
        self, columns: Sequence[str] | Mapping[str, str] | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Read rows of this fragment batch by batch."""
        return self.scanner(columns=columns, **options).to_batches()

    def head(self, num_rows: int, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Read the first rows of this fragment."""
        return self.to_table(columns, limit=num_rows, **options)

    def __repr__(self) -> str:
        return f"<lance_nb.LanceFragment {self.fragment_id}: {self.count_rows()} rows>"
