"""LanceFragment: one fragment of a dataset at one version."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from lance_nb import table
from lance_nb.dataset import verbs
from lance_nb.dataset.scanner import LanceScanner
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.fragment import DataFile, DeletionFile, Fragment
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.projection import project_nested
from lance_nb.table.scan_plan import first_rows, num_live_rows

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.format.lance_schema import LanceSchema


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
    def schema(self) -> pa.Schema:
        """Arrow schema of the dataset."""
        return self._dataset.schema

    @property
    def physical_schema(self) -> NoReturn:
        """Raise NotSupportedError, as pylance does; ``schema`` is what is read."""
        raise NotSupportedError("fragments are read in the dataset's schema; see .schema")

    @property
    def partition_expression(self) -> NoReturn:
        """Raise NotSupportedError: Lance has no partitions."""
        raise NotSupportedError("Lance datasets are not partitioned")

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

    def take(
        self, indices: Sequence[int] | pa.Array | np.ndarray, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Read the rows at positions of this fragment (deleted rows are not counted), in order.

        Raises InvalidInputError for a position that does not exist.
        """
        snapshot = self._dataset.opened[1]
        first = next(first_rows(snapshot, [self._metadata]))
        wanted = np.asarray(indices, np.int64)
        count = self.count_rows()
        if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < count:
            raise InvalidInputError(f"positions of fragment {self.fragment_id} are below {count}")
        projection = project_nested(snapshot.manifest.schema, columns)
        return table.take.take_rows(snapshot, projection, wanted + first)

    def to_pandas(
        self, columns: Sequence[str] | Mapping[str, str] | None = None, **options: Any
    ) -> Any:
        """Read rows of this fragment into a pandas DataFrame; as ``LanceDataset.to_pandas``."""
        return self._dataset.to_pandas(columns, fragments=[self], **options)

    def head(self, num_rows: int, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Read the first rows of this fragment."""
        return self.to_table(columns, limit=num_rows, **options)

    # --- steps of a distributed write: fragments out, committed by LanceDataset.commit -----------

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str] | LanceDataset,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        *,
        mode: str = "append",
        **options: Any,
    ) -> Fragment:
        """Write rows as one fragment; options as for ``lance_nb.write_fragments``.

        Raises SchemaMismatchError, InvalidInputError, StorageError.
        """
        made = verbs.fragments.create_one(dataset_uri, data, schema, mode=mode, **options)
        return made if fragment_id is None else verbs.fragments.numbered(made, fragment_id)

    @staticmethod
    def create_from_file(filename: str, dataset: LanceDataset, fragment_id: int) -> Fragment:
        """Describe a data file that lies in the dataset's ``data`` folder as a fragment.

        For files that a version has lost. Raises ObjectNotFoundError, SchemaMismatchError.
        """
        return verbs.fragments.from_file(dataset.opened[1], filename, fragment_id)

    def delete(self, predicate: Any) -> Fragment | None:
        """Delete the rows that pass a filter; None when no row is left.

        Writes a deletion file and commits nothing. Raises PredicateError.
        """
        return verbs.fragments.delete(self._dataset.opened[1], self._metadata, predicate)

    def delete_rows(self, offsets: Iterable[int]) -> Fragment | None:
        """Delete rows by physical offset in this fragment; None when no row is left.

        Raises InvalidInputError for an offset outside of the fragment.
        """
        return verbs.fragments.delete_rows(self._dataset.opened[1], self._metadata, offsets)

    def merge_columns(
        self,
        value_func: Any,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[Fragment, LanceSchema]:
        """Add columns; return the fragment and the schema, for ``LanceOperation.Merge``.

        ``value_func``: a dict of name to SQL expression; a function of record batches (of
        ``columns``), called for deleted rows too; or rows to stream, one per live row in order.
        Raises InvalidInputError, PredicateError.
        """
        return verbs.fragments.merge_columns(
            self._dataset.opened[1],
            self._metadata,
            value_func,
            columns=columns,
            batch_size=batch_size,
            reader_schema=reader_schema,
        )

    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
    ) -> tuple[Fragment, LanceSchema]:
        """Add the columns of a table by a left join; rows without a partner get null.

        Of several partners the last counts. Raises InvalidInputError, ColumnNotFoundError.
        """
        on = (left_on, right_on or left_on)
        return verbs.fragments.merge(self._dataset.opened[1], self._metadata, data_obj, on, schema)

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> Any:
        """Replace values of columns where a row has a partner in a table.

        Returns (fragment, ids of the fields that changed) for ``LanceOperation.Update``, and with
        ``with_offsets`` the changed offsets as a Roaring bitmap. Raises ColumnNotFoundError,
        SchemaMismatchError.
        """
        on = (left_on, right_on or left_on)
        changed, fields, offsets = verbs.fragments.update_columns(
            self._dataset.opened[1], self._metadata, data_obj, on, schema
        )
        return (changed, fields, offsets) if with_offsets else (changed, fields)

    def __repr__(self) -> str:
        return f"<lance_nb.LanceFragment {self.fragment_id}: {self.count_rows()} rows>"
