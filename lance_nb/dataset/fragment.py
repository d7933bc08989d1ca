"""LanceFragment: one fragment of a dataset at one version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from lance_nb.dataset.refused import refused_property
from lance_nb.dataset.scanner import BlobHandling, LanceScanner
from lance_nb.dataset.scanner_builder import SCAN_ARGUMENTS, scan
from lance_nb.errors import (
    ArgumentError,
    InvalidInputError,
    RowRangeError,
)
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.session.opening import (
    check_refused,
    check_session,
    storage_version_of,
)
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.projection import ROW_ADDRESS, project_nested
from lance_nb.table.scan_tasks import first_rows, num_live_rows

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.format.lance_schema import LanceSchema
    from lance_nb.session.session import CacheSession
    from lance_nb.storage.registry import StorageOptions

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | None

FragmentMetadata = Fragment  # its public name


class FragmentSession:
    """Repeated reads of rows of one fragment. Created by ``LanceFragment.open_session``.

    Examples:
        >>> session = ds.get_fragment(0).open_session(["id"])
        >>> session.take([0, 3])["id"].to_pylist()
        [0, 3]
    """

    def __init__(
        self, fragment: LanceFragment, columns: Sequence[str] | None, *, with_row_address: bool
    ) -> None:
        self._fragment = fragment
        self._columns = columns
        self._with_row_address = with_row_address

    def take(self, indices: Sequence[int] | pa.Array | np.ndarray) -> pa.Table:
        """Read the rows at positions of the fragment, in that order; as ``LanceFragment.take``.

        Args:
            indices: positions in the fragment, from 0; deleted rows are not counted.

        Raises InvalidInputError for a position that does not exist.
        """
        return self._fragment._taken(  # noqa: SLF001 - made for it
            indices, self._columns, [ROW_ADDRESS] if self._with_row_address else []
        )


class LanceFragment:
    """A group of rows that were written together, at one version of a dataset.

    Created by ``LanceDataset.get_fragments`` or from an id.

    Examples:
        >>> fragment = lance_nb.LanceFragment(ds, 1)
        >>> fragment.count_rows(), len(fragment.data_files())
        (5, 1)
    """

    def __init__(
        self,
        dataset: LanceDataset,
        fragment_id: int | None = None,
        *,
        fragment: Fragment | None = None,
    ) -> None:
        """Describe the fragment with that id, or one whose metadata is known.

        Raises InvalidInputError when there is none.
        """
        if fragment is None:
            if fragment_id is None:
                raise InvalidInputError("either fragment or fragment_id must be specified")
            opened_fragment = dataset.get_fragment(fragment_id)
            if opened_fragment is None:
                raise InvalidInputError(
                    f"fragment {fragment_id} does not exist in version {dataset.version}: "
                    "ds.fragment_ids() lists the fragments"
                )
            dataset, fragment = opened_fragment.dataset, opened_fragment.metadata
        self._dataset: LanceDataset = dataset
        self._metadata: Fragment = fragment

    @property
    def dataset(self) -> LanceDataset:
        """The dataset, at the version that the fragment was listed in. Not in pylance.

        Examples:
            >>> ds.get_fragment(1).dataset.version
            1
        """
        return self._dataset

    @property
    def fragment_id(self) -> int:
        """Id of the fragment, never used again in this dataset.

        Examples:
            >>> ds.get_fragments()[1].fragment_id
            1
        """
        return self._metadata.id

    @property
    def metadata(self) -> Fragment:
        """What the manifest says about the fragment.

        Examples:
            >>> ds.get_fragment(1).metadata.physical_rows
            5
        """
        return self._metadata

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the dataset.

        Examples:
            >>> ds.get_fragment(1).schema.names
            ['id', 'label', 'vector']
        """
        return self._dataset.stored_schema

    physical_schema = refused_property(
        "fragments are read with the schema of the dataset; use .schema"
    )
    partition_expression = refused_property("Lance datasets are not partitioned")

    @property
    def physical_rows(self) -> int:
        """Rows stored, deleted ones included.

        Examples:
            >>> ds.get_fragment(1).physical_rows
            5
        """
        return num_physical_rows(self._dataset._snapshot, self._metadata)  # noqa: SLF001

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted, as the manifest counts them (releases of 2023 did not).

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.get_fragment(1).num_deletions
            1
        """
        if self._metadata.deletion_file is None or self._metadata.num_deleted_rows:
            return self._metadata.num_deleted_rows
        return self.physical_rows - num_live_rows(self._dataset._snapshot, self._metadata)  # noqa: SLF001

    def count_rows(self, filter: Any = None) -> int:
        """Count the rows that are not deleted.

        Args:
            filter: SQL text or a pyarrow expression; only rows that pass it are counted.

        Raises PredicateError, ColumnNotFoundError.

        Examples:
            >>> ds.get_fragment(1).count_rows("id > 6")
            3
        """
        if filter is None:
            return self.physical_rows - self.num_deletions
        return self._dataset.count_rows(filter, fragments=[self])

    def data_files(self) -> list[DataFile]:
        """List the data files.

        Examples:
            >>> [file.file_version for file in ds.get_fragment(0).data_files()]
            [(2, 2)]
        """
        return list(self._metadata.files)

    def deletion_file(self) -> str | None:
        """Return the path of the deletion file below its root, None if no row is deleted.

        ``metadata.deletion_file`` describes it.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.get_fragment(0).deletion_file(), ds.get_fragment(1).deletion_file()[:11]
            (None, '_deletions/')
        """
        file = self._metadata.deletion_file
        return None if file is None else file.location(self._metadata.id)

    def scanner(
        self,
        *,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: BlobHandling | None = None,
        order_by: Any = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        keep_dictionaries: bool | None = None,
    ) -> LanceScanner:
        """Describe a scan of this fragment; nothing is read until its result is asked for.

        The arguments are those of ``LanceDataset.scanner``; ``default_scan_options`` of the dataset
        do not matter. Raises PredicateError, ColumnNotFoundError, InvalidInputError.

        Examples:
            >>> ds.get_fragment(1).scanner(columns=["id"], limit=2).to_table()["id"].to_pylist()
            [5, 6]
        """
        arguments = {**locals(), "fragments": [self]}
        return scan(self._dataset, arguments)

    def to_table(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: BlobHandling | None = None,
        order_by: Any = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        *,
        keep_dictionaries: bool | None = None,
    ) -> pa.Table:
        """Read rows of this fragment into one table. Arguments and errors are those of ``scanner``.

        Examples:
            >>> ds.get_fragment(1).to_table(["id"], filter="id > 7").to_pydict()
            {'id': [8, 9]}
        """
        arguments = {**locals(), "fragments": [self]}
        return scan(self._dataset, arguments).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        *,
        batch_size: int | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: BlobHandling | None = None,
        order_by: Any = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        keep_dictionaries: bool | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows of this fragment batch by batch. Arguments and errors as for ``scanner``.

        Examples:
            >>> [batch.num_rows for batch in ds.get_fragment(1).to_batches(["id"], batch_size=3)]
            [3, 2]
        """
        arguments = {**locals(), "fragments": [self]}
        return scan(self._dataset, arguments).to_batches()

    def take(
        self,
        indices: Sequence[int] | pa.Array | np.ndarray,
        columns: Columns = None,
    ) -> pa.Table:
        """Read the rows at positions of this fragment, in that order.

        Args:
            indices: positions in the fragment, from 0; deleted rows are not counted.
            columns: names, or a dict of name to SQL expression. Blobs that are named are read as
                bytes.

        Raises InvalidInputError for a position that does not exist, ColumnNotFoundError.

        Examples:
            >>> ds.get_fragment(1).take([2, 0], columns=["id"])["id"].to_pylist()
            [7, 5]
        """
        return self._taken(indices, columns, [])

    def open_session(
        self, columns: Sequence[str] | None = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """Return a session that takes rows of this fragment.

        Args:
            columns: names of the columns to read; all by default.
            with_row_address: add the column ``_rowaddr``.

        Examples:
            >>> session = ds.get_fragment(1).open_session(["id"])
            >>> session.take([0]).to_pylist(), session.take([1]).to_pylist()
            ([{'id': 5}], [{'id': 6}])
        """
        return FragmentSession(self, columns, with_row_address=bool(with_row_address))

    def validate(self) -> None:
        """Check the files of this fragment without decoding values; as ``LanceDataset.validate``.

        Raises CorruptFileError, ObjectNotFoundError (both OSErrors).

        Examples:
            >>> ds.get_fragment(1).validate()
        """
        from lance_nb.dataset import verifying

        verifying.validate(self._dataset.opened[1], [self._metadata])

    def _taken(
        self,
        indices: Sequence[int] | pa.Array | np.ndarray,
        columns: Columns,
        row_columns: Sequence[str],
    ) -> pa.Table:
        from lance_nb.table import blob_scan, take

        snapshot = self._dataset.opened[1]
        first = next(first_rows(snapshot, [self._metadata]))
        row_offsets = np.asarray(indices, np.int64)
        count = self.count_rows()
        if row_offsets.size and int(row_offsets.min()) < 0:
            raise ArgumentError(f"row {row_offsets.min()} does not exist: row positions start at 0")
        if row_offsets.size and int(row_offsets.max()) >= count:
            raise RowRangeError(
                f"row {row_offsets.max()} does not exist; fragment {self.fragment_id} has {count} "
                "rows"
            )
        if isinstance(columns, Mapping):
            from lance_nb.table.computed_columns import take_columns

            return take_columns(snapshot, columns, row_offsets + first)
        projection = project_nested(snapshot.manifest.schema, columns, row_columns)
        rows = take.take_rows(snapshot, projection, row_offsets + first)
        schema = blob_scan.binary_schema(projection)
        if schema.equals(rows.schema):
            return rows
        batches = [
            blob_scan.batch_with_payloads(snapshot, projection, batch, self.fragment_id)
            for batch in rows.to_batches()
        ]
        return pa.Table.from_batches(batches, schema)

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: str = "lazy",
        order_by: Any = None,
        *,
        memory_pool: pa.MemoryPool | None = None,
        categories: Sequence[str] | None = None,
        strings_to_categorical: bool = False,
        zero_copy_only: bool = False,
        integer_object_nulls: bool = False,
        date_as_object: bool = True,
        timestamp_as_object: bool = False,
        use_threads: bool = True,
        deduplicate_objects: bool = True,
        ignore_metadata: bool = False,
        safe: bool = True,
        split_blocks: bool = False,
        self_destruct: bool = False,
        maps_as_pydicts: Literal["lossy", "strict"] | None = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
        coerce_temporal_nanoseconds: bool = False,
    ) -> Any:
        """Read rows of this fragment into a pandas DataFrame.

        The arguments up to ``order_by`` are those of ``scanner``; ``blob_mode`` is that of
        ``LanceDataset.to_pandas``; the others go to ``pyarrow.Table.to_pandas``.

        Examples:
            >>> ds.get_fragment(1).to_pandas(["id"], limit=2).shape
            (2, 1)
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        options = {name: arguments.pop(name) for name in arguments.keys() - SCAN_ARGUMENTS}
        return self.scanner(**arguments).to_pandas(**options)

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        *,
        batch_size: int | None = None,
        filter: Any = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: BlobHandling | None = None,
        order_by: Any = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        keep_dictionaries: bool | None = None,
    ) -> pa.Table:
        """Read the first rows of this fragment, or the first that pass ``filter``.

        Args:
            num_rows: how many rows; fewer come where there are fewer.

        The other arguments are those of ``scanner``; pylance has none of them.

        Examples:
            >>> ds.get_fragment(1).head(2, columns=["id"]).to_pydict()
            {'id': [5, 6]}
        """
        arguments = {**locals(), "limit": num_rows, "fragments": [self]}
        return scan(self._dataset, arguments).to_table()

    # --- steps of a distributed write: fragments out, committed by LanceDataset.commit -----------

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str] | LanceDataset,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: Any = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: StorageOptions | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        session: CacheSession | None = None,
        max_page_bytes: int | None = None,
        enable_stable_row_ids: bool = False,
        external_blob_mode: Literal["reference", "ingest"] = "reference",
        allow_external_blob_outside_bases: bool = False,
        allow_bases: Sequence[str] = (),
    ) -> Fragment:
        """Write all rows as one fragment; nothing is committed.

        Args:
            dataset_uri: the dataset, or its URI.
            data: the rows, as for ``write_dataset``.
            fragment_id: the id of the result, 0 by default; a commit gives it another one.
            allow_bases: see ``lance_nb.dataset``.

        The other arguments are those of ``lance_nb.write_fragments``. Raises SchemaMismatchError,
        InvalidInputError, StorageError.

        Examples:
            >>> fragment = lance_nb.LanceFragment.create(ds, rows)
            >>> fragment.physical_rows, lance_nb.LanceOperation.Append([fragment]).fragments[0].id
            (2, 0)
        """
        from lance_nb.writing import fragments

        check_refused({"namespace_client": namespace_client, "table_id": table_id})
        check_session(session)
        if fragment_id is not None:
            # It imports pyarrow's file systems, which readers need not.
            from lance_nb.writing.progress import FragmentWriteProgress, NumberedProgress

            fragments.check_id(fragment_id)
            if isinstance(progress, FragmentWriteProgress):
                progress = NumberedProgress(progress, fragment_id)
        options: dict[str, Any] = {
            "mode": mode,
            "storage_options": storage_options,
            "allow_bases": allow_bases,
            "progress": progress,
            "data_storage_version": storage_version_of(data_storage_version, use_legacy_format),
            "max_page_bytes": max_page_bytes,
            "enable_stable_row_ids": enable_stable_row_ids,
            "external_blob_mode": external_blob_mode,
            "allow_external_blob_outside_bases": allow_external_blob_outside_bases,
        }
        fragment = fragments.create_one(dataset_uri, data, schema, **options)
        return fragment if fragment_id is None else fragments.numbered(fragment, fragment_id)

    @staticmethod
    def create_from_file(filename: str, dataset: LanceDataset, fragment_id: int) -> Fragment:
        """Describe a data file in the dataset's ``data`` folder as a fragment.

        For files that a version has lost.

        Args:
            filename: its path below the folder.
            dataset: the dataset.
            fragment_id: the id of the result.

        Raises ObjectNotFoundError, SchemaMismatchError, CorruptFileError.

        Examples:
            >>> path = ds.get_fragment(0).data_files()[0].path
            >>> lance_nb.LanceFragment.create_from_file(path, ds, 7).physical_rows
            5
        """
        from lance_nb.writing import fragments

        return fragments.from_file(dataset.opened[1], filename, fragment_id)

    def delete(self, predicate: Any) -> Fragment | None:
        """Delete the rows that pass a filter; return the new fragment, None when no row is left.

        Writes a deletion file and commits nothing.

        Args:
            predicate: SQL text or a pyarrow expression.

        Raises PredicateError, ColumnNotFoundError, StorageError.

        Examples:
            >>> ds.get_fragment(0).delete("id = 3").num_deletions
            1
        """
        from lance_nb.writing import fragments

        return fragments.delete(self._dataset.opened[1], self._metadata, predicate)

    def delete_rows(self, offsets: Iterable[int]) -> Fragment | None:
        """Delete rows by offset; return the new fragment, None when no row is left.

        Args:
            offsets: physical offsets in this fragment, from 0, deleted rows counted.

        Raises InvalidInputError for an offset outside of the fragment.

        Examples:
            >>> ds.get_fragment(0).delete_rows([0, 2]).num_rows
            3
        """
        from lance_nb.writing import fragments

        return fragments.delete_rows(self._dataset.opened[1], self._metadata, offsets)

    def merge_columns(
        self,
        value_func: Any,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[Fragment, LanceSchema]:
        """Add columns; return the fragment and the schema, for ``LanceOperation.Merge``.

        Args:
            value_func: a dict of name to SQL expression; a function of record batches, called for
                deleted rows too; or rows to stream, one per live row in order.
            columns: what a function is given; all columns by default.
            batch_size: the most rows of a batch that a function is given.
            reader_schema: the schema of rows to stream, where they do not say.

        Raises InvalidInputError, PredicateError.

        Examples:
            >>> fragment, schema = ds.get_fragment(0).merge_columns({"twice": "id * 2"})
            >>> len(fragment.files), schema.names
            (2, ['id', 'label', 'vector', 'twice'])
        """
        from lance_nb.writing import fragments

        return fragments.merge_columns(
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
        """Add the columns of a table by a left join; rows without a matching key get null.

        Args:
            data_obj: the table, or rows that Arrow can stream; of several partners the last counts.
            left_on: the key column here.
            right_on: the key column there; the same name by default.
            schema: of ``data_obj``, where it does not say.

        Returns the fragment and the schema, for ``LanceOperation.Merge``. Raises InvalidInputError,
        ColumnNotFoundError.

        Examples:
            >>> names = pa.table({"id": [1, 2], "name": ["one", "two"]})
            >>> fragment, schema = ds.get_fragment(0).merge(names, "id")
            >>> schema.names
            ['id', 'label', 'vector', 'name']
        """
        from lance_nb.writing import fragments

        on = (left_on, right_on or left_on)
        return fragments.merge(
            self._dataset.opened[1], self._metadata, data_obj, on=on, schema=schema
        )

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> Any:
        """Replace values of columns in rows that have a matching key in a table.

        Args:
            data_obj: the table, or rows that Arrow can stream: the key and the new values.
            left_on: the key column here; row ids by default.
            right_on: the key column there; the same name by default.
            schema: of ``data_obj``, where it does not say.
            with_offsets: return the changed offsets too, as a Roaring bitmap.

        Returns (fragment, ids of the fields that changed) for ``LanceOperation.Update``. Raises
        ColumnNotFoundError, SchemaMismatchError.

        Examples:
            >>> values = pa.table({"id": [3], "label": ["new"]})
            >>> fragment, fields = ds.get_fragment(0).update_columns(values, "id")
            >>> fields
            [1]
        """
        from lance_nb.writing import fragments

        on = (left_on, right_on or left_on)
        changed, fields, offsets = fragments.update_columns(
            self._dataset.opened[1], self._metadata, data_obj, on=on, schema=schema
        )
        return (changed, fields, offsets) if with_offsets else (changed, fields)

    def __repr__(self) -> str:
        return f"<lance_nb.LanceFragment {self.fragment_id}: {self.count_rows()} rows>"
