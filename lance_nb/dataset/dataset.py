"""LanceDataset: one version of a dataset, the object that users hold.

Names, arguments and behaviour follow pylance 14.0.2 wherever the concept is the same. What pylance
lacks has a name of its own (``history``, ``version_info``, ``inspect``, ``transaction``). Every
method is a short call of a function of ``lance_nb.writing`` or of a floor below.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Self,
    TypeAlias,
    TypedDict,
    Unpack,
    overload,
)

import numpy as np
import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.dataset import display
from lance_nb.dataset.fragment import LanceFragment
from lance_nb.dataset.merge_insert import MergeInsertBuilder
from lance_nb.dataset.refs import Branches, Tags
from lance_nb.dataset.refused import refused, refused_property
from lance_nb.dataset.scanner import BlobHandling, LanceScanner, ScanStatistics
from lance_nb.dataset.scanner_builder import SCAN_ARGUMENTS, scan
from lance_nb.dataset.sql import SqlQueryBuilder
from lance_nb.dataset.stats import Inspection, LanceStats, value_counts
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.manifest import BasePath
from lance_nb.session.base_paths import DatasetBasePath, as_values
from lance_nb.session.opened import OpenedVersion
from lance_nb.session.opening import (
    Destination,
    check_lock,
    check_refused,
    destination,
    open_version,
    warn_deprecated_cache_size,
)
from lance_nb.session.session import CacheSession
from lance_nb.session.storage_access import IOStats, StorageOptionsAccessor
from lance_nb.shown_text import visible
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import Ref, Target
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import storage_version

if TYPE_CHECKING:
    from lance_nb.dataset.bisecting import Bisection, Nulls, Statement
    from lance_nb.dataset.checks.result import CheckResult
    from lance_nb.dataset.comparing import DatasetDelta
    from lance_nb.dataset.expectations import Expectations
    from lance_nb.dataset.exporting import ExportedRows
    from lance_nb.dataset.file_session import LanceFileSession
    from lance_nb.dataset.optimize import DatasetOptimizer
    from lance_nb.dataset.result_types import (
        BulkCommitResult,
        DeleteResult,
        UpdateResult,
    )
    from lance_nb.dataset.staging import Stage
    from lance_nb.format.bitmap import Bitmap
    from lance_nb.format.fragment import DataFile
    from lance_nb.format.index_metadata import Index
    from lance_nb.format.transaction_summary import TransactionSummary
    from lance_nb.merging.merge_plan import MergePlan, Resolve
    from lance_nb.session.session import Session
    from lance_nb.table.blobs import BlobFile
    from lance_nb.table.diff import Diff
    from lance_nb.table.diff.row_history import RowHistory
    from lance_nb.table.history import VersionInfo
    from lance_nb.table.indices import IndexDescription
    from lance_nb.table.snapshot import Snapshot
    from lance_nb.table.space_usage import Space
    from lance_nb.table.verification.findings import Verification
    from lance_nb.transactions.checksum_records import AddedChecksums
    from lance_nb.transactions.operation import Operation
    from lance_nb.transactions.transaction import Transaction
    from lance_nb.transactions.version_slots import CommitLock
    from lance_nb.writing.cleanup import CleanupExplanation, CleanupStats
    from lance_nb.writing.cloning import CopyProgress, MovedBranch
    from lance_nb.writing.compaction import CompactionMetrics
    from lance_nb.writing.editing import EditResult

__all__ = ["LanceDataset"]

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | None
# Row ids, row addresses or positions.
Rows: TypeAlias = "Sequence[int] | pa.Array | np.ndarray"
Values: TypeAlias = Mapping[str, str | None]
# 512 KiB; a number, because the module of blobs is loaded when it is needed.
DEFAULT_BLOB_BUFFER_SIZE = 524288
# Called with what is done and what there is to do.
Progress: TypeAlias = Callable[[int, int], object]

_COMMIT_RETRIES = 20
_COMMIT_TIMEOUT = timedelta(seconds=1800)
_RETRY_TIMEOUT = timedelta(seconds=30)


class CleanupArguments(TypedDict, total=False):
    """The arguments of ``cleanup_old_versions`` that go by name, whatever it returns."""

    delete_unverified: bool
    error_if_tagged_old_versions: bool
    delete_rate_limit: int | None
    versions: Collection[int] | None
    delete_concurrency: int | None
    progress: Progress | None


class LanceDataset(OpenedVersion):
    """A dataset at one version. Open one with ``lance_nb.dataset(uri)`` or ``LanceDataset(uri)``.

    Examples:
        >>> ds = lance_nb.LanceDataset(uri, version=1)
        >>> ds.count_rows(), ds.schema.names
        (10, ['id', 'label', 'vector'])
    """

    _default_scan_options: Mapping[str, Any] | None = None

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: Ref | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: Mapping[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: Mapping[str, Any] | None = None,
        session: CacheSession | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
        *,
        allow_bases: Sequence[str] = (),
        check: bool = False,
    ) -> None:
        """Open a version; the arguments are those of ``lance_nb.dataset``, which has ``asof`` too.

        ``serialized_manifest`` has no effect: the manifest is read from the dataset.
        """
        warn_deprecated_cache_size(index_cache_size)
        check_refused(
            {
                "namespace_client": namespace_client,
                "table_id": table_id,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
            }
        )
        opened = open_version(
            uri,
            version,
            storage_options=storage_options,
            allow_bases=allow_bases,
            session=session,
            commit_lock=commit_lock,
            check=check,
        )
        super().__init__(*opened)
        self._default_scan_options = default_scan_options

    @classmethod
    def from_opened(
        cls,
        session: Session,
        snapshot: Snapshot,
        default_scan_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return a handle of a version that is open already."""
        dataset = cls.__new__(cls)
        OpenedVersion.__init__(dataset, session, snapshot)
        dataset._default_scan_options = default_scan_options  # noqa: SLF001 - its own class
        return dataset

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of what a scan returns: ``default_scan_options`` may add or leave columns.

        Raises as ``scanner`` does where they do not fit.

        Examples:
            >>> ds.schema.names
            ['id', 'label', 'vector']
        """
        if self._default_scan_options is None:
            return self.stored_schema
        return self.scanner().projected_schema

    def __repr__(self) -> str:
        where = f"{self.branch or 'main'}:{self.version}"
        return visible(f"<lance_nb.LanceDataset {self.uri!r} at {where}>")

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any] | None:
        return display.mime_bundle(self)

    # --- rows in scan order -----------------------------------------------------------------------

    def count_rows(
        self, filter: Any = None, *, fragments: Iterable[LanceFragment] | None = None
    ) -> int:
        """Count the rows, from the manifest alone unless there is a filter.

        Args:
            filter: SQL text or a pyarrow expression; only rows that pass it are counted.
            fragments: count in these only; all of them by default. Not in pylance.

        ``default_scan_options`` do not matter. Raises PredicateError, ColumnNotFoundError.

        Examples:
            >>> ds.count_rows(), ds.count_rows("id < 9")
            (10, 9)
        """
        if filter is None and fragments is None:
            return int(live_counts(self._snapshot).sum())
        return scan(self, {"columns": [], "filter": filter, "fragments": fragments}).count_rows()

    def __len__(self) -> int:
        return self.count_rows()

    def scanner(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[Any] | None = None,
        full_text_query: Any = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        keep_dictionaries: bool | None = None,
    ) -> LanceScanner:
        """Describe a scan; nothing is read until its result is asked for.

        Arguments that are None have the value of ``default_scan_options``, if the dataset was
        opened with them.

        Args:
            columns: names, or a dict of name to SQL expression; dotted names pull nested fields up.
            filter: SQL text or a pyarrow expression; it accepts more than pylance's (see
                lance_nb.table.predicate).
            limit: the most rows of the result.
            offset: rows of the result to skip.
            nearest: a vector search: a dict of the arguments of ``ScannerBuilder.nearest``.
            prefilter: search among the rows that pass the filter; else what was found is filtered.
            disable_scoring_autoprojection: leave ``_distance`` or ``_score`` out of the result of a
                search.
            order_by: names or ``ColumnOrdering`` values to sort by.
            fragments: read only these.
            with_row_id: add the column ``_rowid``.
            with_row_address: add ``_rowaddr``: ``fragment id << 32 | offset in the fragment``.
            include_deleted_rows: return deleted rows too, with a null ``_rowid``.
            blob_handling: "all_binary" returns the bytes of blobs, else their descriptions.
            keep_dictionaries: return top-level columns of strings and bytes as Arrow dictionaries,
                one for each chunk (``pyarrow.Table.unify_dictionaries`` makes them one). It costs a
                pass over the values where they are not stored so. Not in pylance.
            batch_size: the most rows of a batch: 8,192, or the environment variable
                LANCE_DEFAULT_BATCH_SIZE.
            strict_batch_size: fill every batch but the last.
            scan_stats_callback: called with a ``ScanStatistics`` when the scan has been read.
            use_scalar_index: False reads every row, where scalar indices would answer the filter.
            fast_search: leave rows out that the index does not cover.
            batch_size_bytes, batch_readahead, fragment_readahead, scan_in_order, use_stats,
                io_buffer_size, late_materialization: tune pylance's reads; they cannot change
                the result and have no effect.
            full_text_query: return the rows that match a text, best first, with their ``_score``
                (BM25): a text, which is searched in every column with an INVERTED index, a dict of
                "query" and "columns", or a query such as ``MatchQuery``. Text between quotation
                marks is a phrase. Rows that no index covers are scanned.
            index_segments, row_addr_allowlist, row_addr_blocklist: are refused.

        Raises PredicateError, ColumnNotFoundError, InvalidInputError, NotSupportedError.

        Examples:
            >>> scan = ds.scanner(columns=["id"], filter="id < 9", limit=3)
            >>> scan.to_table()["id"].to_pylist()
            [0, 1, 2]
        """
        return scan(self, locals(), self._default_scan_options)

    def to_table(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[Any] | None = None,
        full_text_query: Any = None,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        keep_dictionaries: bool | None = None,
    ) -> pa.Table:
        """Read rows into one table. The arguments and errors are those of ``scanner``.

        Examples:
            >>> ds.to_table(["id"], filter="label = 'a'", limit=2).to_pylist()
            [{'id': 0}, {'id': 2}]
        """
        return scan(self, locals(), self._default_scan_options).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[Any] | None = None,
        full_text_query: Any = None,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        keep_dictionaries: bool | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch, in bounded memory. Arguments and errors as for ``scanner``.

        Examples:
            >>> [batch.num_rows for batch in ds.to_batches(["id"], batch_size=4)]
            [4, 1, 4, 1]
        """
        return scan(self, locals(), self._default_scan_options).to_batches()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        batch_size_bytes: int | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[Any] | None = None,
        full_text_query: Any = None,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        keep_dictionaries: bool | None = None,
        blob_mode: str = "lazy",
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
        """Read rows into a pandas DataFrame.

        Args:
            blob_mode: how blobs come: as files ("lazy"), as "bytes" or as "descriptions".

        The arguments up to ``keep_dictionaries`` are those of ``scanner``, those from
        ``memory_pool`` on go to ``pyarrow.Table.to_pandas``. Raises as ``scanner``.

        Examples:
            >>> ds.to_pandas(["id"], limit=2).shape
            (2, 1)
        """
        arguments = locals()
        options = {
            name: value
            for name, value in arguments.items()
            if name not in SCAN_ARGUMENTS and name != "self"
        }
        return scan(self, arguments, self._default_scan_options).to_pandas(**options)

    def head(
        self,
        num_rows: int,
        *,
        columns: Columns = None,
        filter: Any = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[Any] | None = None,
        full_text_query: Any = None,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        keep_dictionaries: bool | None = None,
    ) -> pa.Table:
        """Read the first rows into one table.

        Args:
            num_rows: how many rows; fewer come where there are fewer.

        The other arguments and the errors are those of ``scanner``.

        Examples:
            >>> ds.head(3, columns=["id"]).to_pydict()
            {'id': [0, 1, 2]}
        """
        arguments = {**locals(), "limit": num_rows}
        return scan(self, arguments, self._default_scan_options).to_table()

    def slice(
        self, start: int, end: int, columns: Sequence[str] | Mapping[str, str] | None = None
    ) -> pa.Table:
        """Read the rows from one position up to another.

        Args:
            start: position of the first row, from 0.
            end: position behind the last row; what lies behind the dataset is left out.
            columns: as for ``scanner``.

        Raises InvalidInputError for a negative start and an end before it, ColumnNotFoundError.

        Examples:
            >>> ds.slice(2, 5, columns=["id"]).to_pydict()
            {'id': [2, 3, 4]}
        """
        if start < 0:
            raise InvalidInputError(f"start must be non-negative, got {start}")
        if end < start:
            raise InvalidInputError(f"end ({end}) must be >= start ({start})")
        return self.scanner(columns, offset=start, limit=end - start).to_table()

    def sql(self, sql: str) -> SqlQueryBuilder:
        """Query this version with SQL, which means what it means in filters.

        DuckDB runs it (extra ``sql``); results have pylance's names and types.

        Args:
            sql: a statement over a table named ``dataset``.

        Returns a builder; ``.build().to_batch_records()`` runs the statement.

        Examples:
            >>> query = ds.sql("SELECT count(*) AS n FROM dataset WHERE id < 4").build()
            >>> query.to_batch_records()[0].to_pydict()
            {'n': [4]}
        """
        return SqlQueryBuilder(self, sql)

    def fragment_ids(self) -> Bitmap:
        """Return the ids of the fragments as a set, which is iterated in ascending order.

        Examples:
            >>> list(ds.fragment_ids())
            [0, 1]
        """
        from lance_nb.format.bitmap import Bitmap

        return Bitmap(self._snapshot.manifest.fragments.counts().ids.tolist())

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """List the fragments in scan order.

        Args:
            filter: refused, as in pylance.

        Raises InvalidInputError for a filter.

        Examples:
            >>> [fragment.count_rows() for fragment in ds.get_fragments()]
            [5, 5]
        """
        if filter is not None:
            raise InvalidInputError("get_fragments() does not support filter yet")
        pinned = copy(self)  # this handle may move to another version
        return [
            LanceFragment(pinned, None, fragment=fragment)
            for fragment in self._snapshot.manifest.fragments
        ]

    def describe_data_file(self, path: str, *, base_id: int | None = None) -> DataFile:
        """Describe a file of the data folder as a DataFile: fields, columns, version and size.

        Args:
            path: below the data folder of the dataset, or of a base path; the file may hold some
                columns only.
            base_id: the base path; the dataset itself by default.

        Raises ObjectNotFoundError, SchemaMismatchError, CorruptFileError, NotSupportedError.

        Examples:
            >>> path = ds.get_fragments()[0].data_files()[0].path
            >>> list(ds.describe_data_file(path).fields)
            [0, 1, 2]
        """
        from lance_nb.writing import fragments

        return fragments.describe_file(self._snapshot, path, base_id)

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment with an id, None if there is none.

        Args:
            fragment_id: id as in the manifest, not a position.

        Examples:
            >>> ds.get_fragment(1).count_rows(), ds.get_fragment(7)
            (5, None)
        """
        fragments = self._snapshot.manifest.fragments
        position = fragments.position_of(fragment_id)
        if position is None:
            return None
        return LanceFragment(copy(self), None, fragment=fragments[position])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer all rows as an Arrow stream (pandas, polars, duckdb, pyarrow read it)."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    # --- rows chosen one by one -------------------------------------------------------------------

    def export(
        self,
        path: str | os.PathLike[str],
        columns: Columns = None,
        filter: Any = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order_by: Any = None,
        row_ids: Sequence[int] | pa.Array | np.ndarray | None = None,
        since: Any = None,
        overwrite: bool = False,
        formulas: bool = False,
        progress: Progress | None = None,
    ) -> ExportedRows:
        """Write rows to a local file, or to a new dataset, in bounded memory. Not in pylance.

        The file has its name when it is complete; an error leaves nothing behind.

        Args:
            path: ends with .parquet, .csv, .arrow, .feather or .lance, which says the format.
            columns: names, or a dict of name to SQL expression; all by default.
            filter: SQL text or a pyarrow expression.
            limit, offset, order_by: as for ``scanner``.
            row_ids: instead of these, the rows with these ids, in this order.
            since: instead of these, the rows that differ from this version (see ``diff``), the
                removed ones as they were; columns tell what changed.
            overwrite: replace a file that is there; a dataset never is.
            formulas: leave texts in CSV as they are, also where a spreadsheet would run them.
            progress: called with rows written and rows in all, as far as they are known; what it
                raises ends the work.

        Raises InvalidInputError, also for a path that exists and for columns that the format cannot
        hold, StorageError, PredicateError, ColumnNotFoundError.

        Examples:
            >>> exported = ds.export("some.csv", columns=["id"], filter="id >= 8")
            >>> exported.num_rows, exported.path.read_text().split()
            (2, ['"id"', '8', '9'])
        """
        from lance_nb.dataset import exporting

        query = exporting.ExportQuery(columns, filter, limit, offset, order_by, row_ids, since)
        return exporting.export(
            self, path, query, overwrite=overwrite, formulas=formulas, progress=progress
        )

    def take(
        self,
        indices: Sequence[int] | pa.Array | np.ndarray,
        columns: Columns = None,
    ) -> pa.Table:
        """Read the rows at the given positions, in that order, repeats included.

        Args:
            indices: positions in scan order, from 0; deleted rows are not counted.
            columns: names, or a dict of name to SQL expression. Nested columns that are named stay
                inside their structs.

        Raises InvalidInputError for a position that does not exist (always, unlike pylance),
        ColumnNotFoundError, PredicateError.

        Examples:
            >>> ds.take([4, 0, 4], columns=["id"])["id"].to_pylist()
            [4, 0, 4]
        """
        from lance_nb.table.computed_columns import take_columns

        return take_columns(self._snapshot, columns, indices)

    def take_rows(
        self,
        row_ids: Sequence[int] | pa.Array | np.ndarray,
        columns: Columns = None,
    ) -> pa.Table:
        """Read rows by row id (``_rowid``), in that order; ids of deleted rows are left out.

        Args:
            row_ids: stable row ids where the dataset has them, else row addresses.
            columns: as for ``take``.

        Raises InvalidInputError, ColumnNotFoundError, PredicateError.

        Examples:
            >>> ds.take_rows([3, 0], columns=["id"])["id"].to_pylist()
            [3, 0]
        """
        from lance_nb.table.row_ids import positions_of_ids

        return self.take(positions_of_ids(self._snapshot, row_ids), columns)

    def take_blobs(
        self,
        blob_column: str,
        ids: Rows | None = None,
        addresses: Rows | None = None,
        indices: Rows | None = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Open the blobs of some rows as files; None for a null blob.

        Nothing but descriptions is read until a file is.

        Args:
            blob_column: path of the column, which may be inside structs.
            ids: the rows, by row id; give one of ``ids``, ``addresses`` and ``indices``.
            addresses: the rows, by row address (``fragment id << 32 | offset``).
            indices: the rows, by position.
            buffer_size: bytes that a file reads ahead (512 KiB), so that many small reads are few
                requests; 0 reads exactly what is asked for.

        Raises InvalidInputError, also for a row that does not exist.

        Examples:
            >>> photos.take_blobs("image", indices=[0])[0].read(5)
            b'first'
        """
        from lance_nb.table import blobs, row_ids

        positions = row_ids.choose_positions(self._snapshot, ids, addresses, indices)
        return blobs.open_blobs(self._snapshot, blob_column, positions, buffer_size)

    def read_blobs(
        self,
        blob_column: str,
        ids: Rows | None = None,
        addresses: Rows | None = None,
        indices: Rows | None = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Read the blobs of some rows, as pairs of row address and payload (None for a null).

        Args:
            blob_column, ids, addresses, indices: as for ``take_blobs``; pairs come in their order.
            io_buffer_size, preserve_order: accepted for pylance's sake, without effect.

        Raises InvalidInputError, also for a row that does not exist.

        Examples:
            >>> photos.read_blobs("image", indices=[1])
            [(1, b'second photo')]
        """
        from lance_nb.table import blobs, row_ids

        positions = row_ids.choose_positions(self._snapshot, ids, addresses, indices)
        blob_files = blobs.addressed_blobs(self._snapshot, blob_column, positions)
        parts = [None if file is None else (file, 0, file.size()) for _, file in blob_files]
        payloads = blobs.read_parts(parts)
        return [(address, data) for (address, _), data in zip(blob_files, payloads, strict=True)]

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Read parts of blobs, each given as ``(row, offset, length)`` in bytes.

        Args:
            blob_column: path of the column, which may be inside structs.
            requests: the parts; a range must lie in its blob.
            selector: what rows are given by: "ids", "addresses" or "indices".
            io_buffer_size, preserve_order: accepted for pylance's sake, without effect.

        Returns ``(number of the request, row address, bytes)``, None for a null blob. Raises
        InvalidInputError for a row or a range that does not exist.

        Examples:
            >>> photos.read_blob_ranges("image", [(0, 6, 5), (1, 0, 6)], selector="indices")
            [(0, 0, b'photo'), (1, 1, b'second')]
        """
        from lance_nb.table import blobs

        if selector not in {"ids", "addresses", "indices"}:
            raise InvalidInputError(
                f"selector must be one of 'ids', 'addresses', or 'indices', got {selector!r}"
            )
        return blobs.read_ranges(self._snapshot, blob_column, list(requests), selector)

    def sample(
        self,
        num_rows: int,
        columns: Columns = None,
        randomize_order: bool = True,
        *,
        seed: int | None = None,
    ) -> pa.Table:
        """Read different rows picked at random.

        Args:
            num_rows: how many; at most as many as there are.
            columns: as for ``take``.
            randomize_order: return them in random order, else in scan order.
            seed: makes the choice repeatable.

        Raises InvalidInputError, ColumnNotFoundError, PredicateError.

        Examples:
            >>> ds.sample(3, columns=["id"], seed=7).num_rows
            3
        """
        total = int(live_counts(self._snapshot).sum())
        if not 0 <= num_rows <= total:
            raise InvalidInputError(f"cannot sample {num_rows} of {total} rows")
        picked = np.random.default_rng(seed).choice(total, num_rows, replace=False)
        return self.take(picked if randomize_order else np.sort(picked), columns)

    # --- what the version is made of --------------------------------------------------------------

    @property
    def data_storage_version(self) -> str:
        """File version of newly written data, for example "2.2".

        Examples:
            >>> ds.data_storage_version
            '2.2'
        """
        return storage_version(self._snapshot.manifest)

    @property
    def metadata(self) -> dict[str, str]:
        """Table metadata.

        Examples:
            >>> _ = ds.update_metadata({"source": "survey"})
            >>> ds.metadata
            {'source': 'survey'}
        """
        return dict(self._snapshot.manifest.table_metadata)

    def config(self) -> dict[str, str]:
        """Return the table configuration.

        Examples:
            >>> _ = ds.update_config({"owner": "ada"})
            >>> ds.config()
            {'owner': 'ada'}
        """
        return dict(self._snapshot.manifest.config)

    @property
    def stats(self) -> LanceStats:
        """Counts of this version; call the object to get them: ``ds.stats()``.

        Examples:
            >>> ds.stats().num_rows, ds.stats().num_fragments
            (10, 2)
        """
        return LanceStats(self)

    def value_counts(self, column: str) -> pa.Table:
        """Count the rows of each different value of a column. Not in pylance.

        A BITMAP index answers without reading the column, but in fragments that it does not cover.

        Args:
            column: a column at the top level, whose values Arrow can group.

        Returns a table of ``value`` (null is one) and ``count``, the most frequent value first.
        Raises ColumnNotFoundError, NotSupportedError (lists, structs and the like).

        Examples:
            >>> ds.value_counts("label").to_pylist()
            [{'value': 'a', 'count': 5}, {'value': 'b', 'count': 5}]
        """
        return value_counts(self, column)

    def near_duplicates(
        self,
        column: str,
        *,
        threshold: float | None = None,
        metric: str | None = None,
        filter: str | None = None,
        exact: bool = False,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Find groups of rows whose vectors are nearly the same. Not in pylance.

        Two rows are linked when their distance is within the threshold, and what links connect is
        a group: its first and last row may be further apart. Up to 50,000 rows all pairs are
        compared. Of more rows those of the same region are, so that a pair can be missed.

        Args:
            column: a fixed-size list of floats, or of uint8, such as a perceptual hash. Rows
                without a finite vector are left out; for l2, those longer than 1e15 too.
            threshold: the largest distance that links two rows, as in ``_distance`` of a search:
                0.01 by default for cosine, 3 bits for hamming; l2, squared, has no default.
            metric: "cosine" (the default) or "l2"; "hamming" for uint8.
            filter: compare only rows that pass an SQL filter.
            exact: compare all pairs, however many rows there are.
            progress: called with steps done and steps in all; what it raises ends the search.

        Returns a table of ``group``, ``_rowid`` and ``_distance`` to the nearest other row: the
        largest group first, rows of a group in the order of a scan. Raises ColumnNotFoundError,
        InvalidInputError, PredicateError, NotSupportedError (vectors of more than 4 GB).

        Examples:
            >>> vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0, 1, 0.01, 0, 1]), 2)
            >>> made = lance_nb.write_dataset(pa.table({"v": vectors}), "memory://near/twins")
            >>> made.near_duplicates("v")["_rowid"].to_pylist()
            [0, 1]
        """
        from lance_nb.dataset import similar_rows

        return similar_rows.near_duplicates(
            dataset=self,
            column=column,
            threshold=threshold,
            metric=metric,
            filter=filter,
            exact=exact,
            progress=progress,
        )

    def label_doubts(
        self,
        column: str,
        label: str,
        *,
        k: int = 10,
        metric: str | None = None,
        filter: str | None = None,
        exact: bool = False,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Find rows whose nearest neighbours mostly have another label. Not in pylance.

        Args:
            column: a fixed-size list of floats, or of uint8.
            label: a column of texts, integers or booleans; rows without a label are left out.
            k: how many neighbours have a say, 1 to 1,000.
            metric, filter, exact, progress: as for ``near_duplicates``.

        Returns a table of ``_rowid``, ``label``, ``suggested`` (the most frequent label of the
        neighbours, which more than half of them have), ``score`` (the share of neighbours with the
        suggested label less the share with the row's own, up to 1) and ``neighbours`` (how many
        there were), the highest score first. Raises as ``near_duplicates`` does.

        Examples:
            >>> flat = pa.array([0.0, 1, 0.1, 1, 0.2, 1, 1, 0.1, 1, 0.2])
            >>> table = pa.table({"v": pa.FixedSizeListArray.from_arrays(flat, 2),
            ...                   "kind": ["cat", "dog", "cat", "dog", "dog"]})
            >>> made = lance_nb.write_dataset(table, "memory://doubts/pets")
            >>> made.label_doubts("v", "kind", k=2).to_pylist()[0]["suggested"]
            'cat'
        """
        from lance_nb.dataset import similar_rows

        return similar_rows.label_doubts(
            dataset=self,
            column=column,
            label=label,
            k=k,
            metric=metric,
            filter=filter,
            exact=exact,
            progress=progress,
        )

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether row ids stay the same when rows move.

        Examples:
            >>> ds.has_stable_row_ids, photos.has_stable_row_ids
            (True, False)
        """
        return bool(self._snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)

    @property
    def max_field_id(self) -> int:
        """The largest field id of the schema and of the data files.

        Examples:
            >>> ds.max_field_id
            2
        """
        manifest = self._snapshot.manifest
        field_ids = {
            number
            for fragment in manifest.fragments
            for file in fragment.files
            for number in file.fields
        }
        return max(manifest.schema.max_field_id, *field_ids, -1)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the Arrow schema, as text.

        Examples:
            >>> _ = ds.update_schema_metadata({"unit": "metre"})
            >>> ds.schema_metadata
            {'unit': 'metre'}
        """
        metadata = self.stored_schema.metadata or {}
        return {key.decode(): value.decode(errors="replace") for key, value in metadata.items()}

    def get_version(self) -> dict[str, Any]:
        """Describe this version as ``versions`` describes it.

        Examples:
            >>> ds.get_version()["version"]
            1
        """
        return self._session.log(self.branch).as_pylance(self.version)

    def base_paths(self) -> dict[int, BasePath]:
        """Return the base paths that are registered, by id.

        Examples:
            >>> clone = ds.shallow_clone("clone.lance")
            >>> [base.path.endswith("points.lance") for base in clone.base_paths().values()]
            [True]
        """
        return {base_path.id: base_path for base_path in self._snapshot.manifest.base_paths}

    def all_files(self) -> pa.RecordBatchReader:
        """List the files below the dataset's root, with sizes and times.

        Returns rows of the schema ``lance_nb.table.metadata_tables.ALL``. Raises StorageError.

        Examples:
            >>> files = ds.all_files().read_all()
            >>> sum(path.endswith(".lance") for path in files["path"].to_pylist())
            2
        """
        from lance_nb.table import metadata_tables

        return pa.RecordBatchReader.from_batches(
            metadata_tables.ALL, metadata_tables.all_files(self._session.root)
        )

    def tracked_files(
        self,
        *,
        min_version: int | None = None,
        progress: Progress | None = None,
    ) -> pa.RecordBatchReader:
        """List the files that the versions of this branch refer to.

        Args:
            min_version: the oldest version to look at; the oldest there is by default.
            progress: called with the versions done and those there are. Not in pylance.

        Returns rows of the schema ``lance_nb.table.metadata_tables.TRACKED``. Raises
        CorruptFileError, StorageError.

        Examples:
            >>> ds.tracked_files().read_all().column_names
            ['version', 'base_uri', 'path', 'type']
        """
        from lance_nb.table import metadata_tables

        log = self._session.log(self.branch)
        numbers = [
            number for number in log.numbers() if min_version is None or number >= min_version
        ]
        files = metadata_tables.tracked_files(
            numbers, lambda number: self._session.load(Target(self.branch, number)), progress
        )
        return pa.RecordBatchReader.from_batches(metadata_tables.TRACKED, files)

    # --- versions, tags and branches --------------------------------------------------------------

    @property
    def latest_version(self) -> int:
        """Number of the newest version of this branch; reads the store at each call.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.checkout_version(1).latest_version
            2
        """
        return self._session.log(self.branch).latest()

    def versions(self) -> list[dict[str, Any]]:
        """List all versions of this branch as pylance does: number, local time, counts.

        Examples:
            >>> [entry["version"] for entry in ds.versions()]
            [1]
        """
        log = self._session.log(self.branch)
        return [log.as_pylance(number) for number in log.numbers()]

    def version_numbers(self) -> list[int]:
        """List the version numbers of this branch, oldest first; reads no manifest.

        Examples:
            >>> ds.insert(rows)
            >>> ds.version_numbers()
            [1, 2]
        """
        return self._session.log(self.branch).numbers()

    def version_info(self, version: int, *, with_tags: bool = True) -> VersionInfo:
        """Describe one version of this branch.

        Args:
            version: its number.
            with_tags: list its tags too; without, nothing is listed: for who has them already.

        Raises VersionNotFoundError.

        Examples:
            >>> ds.version_info(1).num_rows
            10
        """
        tags = self._tags_of([version]) if with_tags else {}
        return self._session.log(self.branch).describe(version, tags)

    def history(self, limit: int | None = None, before: int | None = None) -> list[VersionInfo]:
        """Describe versions of this branch, newest first.

        Reads as many manifests as it returns, and none twice. A version that cannot be read is in
        the list, with ``error`` saying why.

        Args:
            limit: the most versions; all by default.
            before: only versions older than this number.

        Examples:
            >>> ds.insert(rows)
            >>> [(info.version, info.operation) for info in ds.history(limit=2)]
            [(2, 'Append'), (1, 'Overwrite')]
        """
        log = self._session.log(self.branch)
        numbers = log.numbers()
        stop = len(numbers) if before is None else bisect_left(numbers, before)
        selected_numbers = numbers[:stop] if limit is None else numbers[max(0, stop - limit) : stop]
        tags = self._tags_of(selected_numbers)
        return [log.describe(number, tags, tolerant=True) for number in reversed(selected_numbers)]

    def _tags_of(self, versions: Sequence[int]) -> dict[str, dict[str, Any]]:
        """Return the readable tags of some versions of this branch."""
        among = set(versions)
        tags = self._session.refs.readable_tags().items()
        return {
            name: {"version": tag.version, "branch": tag.branch}
            for name, tag in tags
            if tag.version in among and tag.branch == self.branch
        }

    def transaction(self, version: int | None = None) -> TransactionSummary | None:
        """Describe the change that made a version, None if it is not recorded.

        Args:
            version: its number on this branch; this version by default.

        Raises VersionNotFoundError, CorruptFileError.

        Examples:
            >>> ds.transaction().operation
            'Overwrite'
        """
        return self._session.log(self.branch).transaction(version or self.version)

    @property
    def tags(self) -> Tags:
        """The dataset's tags.

        Examples:
            >>> ds.tags.create("first", 1)
            >>> ds.tags.names()
            ['first']
        """
        return Tags(self._session, self._snapshot)

    @property
    def branches(self) -> Branches:
        """The dataset's branches (main has no entry).

        Examples:
            >>> _ = ds.create_branch("experiment")
            >>> ds.branches.names()
            ['experiment']
        """
        return Branches(self._session, self._snapshot, self._follow_commit, type(self))

    def checkout_version(self, version: Ref) -> Self:
        """Return the dataset at another version.

        Args:
            version: a number on this branch, a tag, a branch, ``"branch:number"``, ``"HEAD~2"``, a
                date or time, or ``(branch, version)`` with None for main and for the latest. A
                text that may be read in more than one way is refused, with how each is written.

        Raises VersionNotFoundError, RefNotFoundError, InvalidRefError.

        Examples:
            >>> ds.insert(rows)
            >>> ds.checkout_version(1).count_rows()
            10
        """
        target = resolve(self._session.root, version, self.branch)
        if target == Target(self.branch, self.version):
            return copy(self)  # also when it has been cleaned up: it is here
        return self._with_snapshot(self._session, self._session.load(target))

    def checkout_latest(self) -> Self:
        """Move this object to the newest version of its branch, and return it.

        pylance returns None.

        Examples:
            >>> old = ds.checkout_version(1)
            >>> ds.insert(rows)
            >>> old.checkout_latest().version
            2
        """
        self._snapshot = self._session.load(Target(self.branch, None))
        return self

    def bisect(
        self,
        statement: Statement,
        *,
        good: Ref | None = None,
        bad: Ref | None = None,
        nulls: Nulls = "pass",
    ) -> Bisection:
        """Find the first version of this branch for which a statement is false. Not in pylance.

        Args:
            statement: a filter that every row should pass (``"label IS NOT NULL"``), an aggregate
                or query that should be true (``"count(*) > 1000"``), or a function of the dataset.
            good: the oldest version to look at, where the statement holds; the oldest there is.
            bad: the newest version to look at; the newest there is.
            nulls: rows for which a filter is NULL (``score <= 1`` where the score is NULL) "pass",
                as with CHECK in SQL, or "fail"; the result has their number.

        Raises InvalidInputError, PredicateError, VersionNotFoundError.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.bisect("count(*) > 9").first_bad
            2
        """
        from lance_nb.dataset import bisecting

        return bisecting.bisect(self, statement, good, bad=bad, nulls=nulls)

    @property
    def expectations(self) -> Expectations:
        """Conditions that versions should meet: add, list, remove. Not in pylance.

        Examples:
            >>> ds.expectations.add("id >= 0")
            'id-0'
            >>> ds.check().ok
            True
        """
        from lance_nb.dataset.expectations import Expectations

        return Expectations(self)

    def check(
        self,
        version: Ref | None = None,
        *,
        names: Sequence[str] | None = None,
        cache: bool = True,
        allow_bases: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> CheckResult:
        """Evaluate the expectations that this version has, here or at another version.

        Results are cached by fragment in the user's cache folder, so that a commit checks only
        what it touched. Not in pylance.

        Args:
            version: a version as for ``checkout_version``; this one by default.
            names: only these expectations.
            cache: use the cache and add to it.
            allow_bases: other datasets that references may read.
            progress: called with expectations evaluated and their number.

        Raises InvalidInputError, VersionNotFoundError, RefNotFoundError, StorageError. What cannot
        be evaluated is an outcome "unknown".

        Examples:
            >>> _ = ds.expectations.add("id < 9")
            >>> result = ds.check()
            >>> result.ok, result.outcomes[0].num_failed
            (False, 1)
        """
        from lance_nb.dataset.checks import checking

        dataset = self if version is None else self.checkout_version(version)
        return checking.check(
            self, [dataset], names, cache=cache, allow_bases=allow_bases, progress=progress
        )[0]

    def check_versions(
        self,
        versions: Iterable[int] | None = None,
        *,
        names: Sequence[str] | None = None,
        cache: bool = True,
        allow_bases: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> list[CheckResult]:
        """Evaluate the expectations that this version has at many versions of its branch.

        Fragments that versions share are read once. Not in pylance.

        Args:
            versions: numbers; all versions of the branch by default.
            names, cache, allow_bases: as for ``check``.
            progress: called with versions checked and their number.

        Raises as ``check`` does.

        Examples:
            >>> _ = ds.expectations.add_row_count(maximum=9)
            >>> [result.status for result in ds.check_versions()]
            ['fail', 'fail']
        """
        from lance_nb.dataset.checks import checking

        numbers = self.version_numbers() if versions is None else versions
        places = [(self.branch, number) for number in numbers]
        opened = map(self.checkout_version, places)
        return checking.check(
            self,
            opened,
            names,
            cache=cache,
            allow_bases=allow_bases,
            progress=progress,
            num_versions=len(places),
        )

    def version_refs(self) -> list[dict[str, int]]:
        """List the version numbers of this branch as pylance does; reads no manifest.

        Examples:
            >>> ds.version_refs()
            [{'version': 1}]
        """
        return [{"version": number} for number in self.version_numbers()]

    @property
    def inspect(self) -> Inspection:
        """Arrow tables about versions, fragments, files, columns and pages.

        Examples:
            >>> ds.inspect.fragments()["physical_rows"].to_pylist()
            [5, 5]
        """
        return Inspection(*self.opened)

    # --- what changed between versions ------------------------------------------------------------

    def diff(
        self,
        a: Ref | OpenedVersion,
        b: Ref | OpenedVersion | None = None,
        *,
        key: Sequence[str] | str | None = None,
    ) -> Diff:
        """Compare two versions; each part of the result reads what it needs.

        Args:
            a: the version compared from: what ``checkout_version`` takes, or an opened version of
                the same dataset.
            b: the version compared to; this one by default.
            key: columns that tell rows apart. Without it stable row ids do, or the unenforced
                primary key, or the row's address (see ``Diff.identity``).

        Raises VersionNotFoundError, RefNotFoundError, InvalidRefError, InvalidInputError.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.diff(1).counts.rows_deleted
            1
        """
        from lance_nb.table import diff

        left = self._compared(a)
        right = self._snapshot if b is None else self._compared(b)
        return diff.make_diff(self._session, left, right, key)

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Return the rows that were inserted, updated and deleted between two versions.

        Args:
            compared_against: stands for ``begin_version`` with this version as ``end_version``, and
                wins over both.
            begin_version: changes after this version count.
            end_version: the last version that counts.

        Needs stable row ids. Raises InvalidInputError.

        Examples:
            >>> ds.insert(rows)
            >>> ds.delta(1).get_inserted_rows().read_all()["id"].to_pylist()
            [10, 11]
        """
        from lance_nb.dataset import comparing

        versions = begin_version, end_version
        return comparing.make_delta(self._session, self._snapshot, compared_against, versions)

    def changes(
        self,
        begin: Ref | OpenedVersion,
        end: Ref | OpenedVersion | None = None,
        columns: Sequence[str] | None = None,
        *,
        key: Sequence[str] | str | None = None,
        batch_size: int = 8192,
    ) -> pa.RecordBatchReader:
        """Stream every change between two versions: one row per insert and delete, two per update.

        Changes come version by version, an update with its old and its new values (see
        lance_nb.table.diff.feed). Rows are identified by stable row ids, by ``key`` or by the
        unenforced primary key. Not in pylance.

        Args:
            begin: changes after this version count; a version as for ``diff``.
            end: the last version that counts; this one by default.
            columns: names of the columns to return; all by default.
            key: columns that tell rows apart.
            batch_size: the most rows of a batch.

        Raises InvalidInputError where nothing identifies rows, or when ``begin`` is not in the past
        of ``end``; VersionNotFoundError for a version cleaned up.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> feed = ds.changes(1, columns=["id"]).read_all()
            >>> feed["_change_type"].to_pylist(), feed["id"].to_pylist()
            (['delete'], [5])
        """
        from lance_nb.table import diff

        versions = self._compared(begin), self._snapshot if end is None else self._compared(end)
        feed = diff.make_feed(self._session, versions, columns, key, batch_size)
        return feed.reader()

    def row_history(
        self,
        row_id: int | None = None,
        *,
        address: int | None = None,
        key: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> RowHistory:
        """Return the history of one row up to this version: created, updated, moved, deleted.

        The result is iterated newest first and worked out step by step; ``.steps()`` lists all,
        oldest first. A deleted row is found while the versions that had it are there. Not in
        pylance.

        Args:
            row_id: the row's stable row id.
            address: the row's address (``fragment << 32 | offset``), now or in an earlier version;
                see lance_nb.table.diff.row_history for what an address can tell.
            key: the values of the columns that identify it, such as ``{"id": 7}``.
            columns: names of the values to return; all by default.

        Raises InvalidInputError, ColumnNotFoundError, NotFoundError.

        Examples:
            >>> ds.update({"label": "'c'"}, where="id = 7")["num_rows_updated"]
            1
            >>> [(step.version, step.event) for step in ds.row_history(key={"id": 7}).steps()]
            [(1, 'created'), (2, 'updated')]
        """
        from lance_nb.table import diff

        named = row_id, address, key
        return diff.find_history(self._session, self._snapshot, named, columns)

    def _compared(self, ref: Ref | OpenedVersion) -> Snapshot:
        if isinstance(ref, OpenedVersion):
            session, snapshot = ref.opened
            if session.root.uri != self._session.root.uri:
                raise InvalidInputError(
                    f"{session.root.uri!r} and {self._session.root.uri!r} are different "
                    "datasets; a diff compares versions of one dataset"
                )
            return snapshot
        target = resolve(self._session.root, ref, self.branch)
        if (target.branch, target.version) == (self.branch, self.version):
            return self._snapshot
        return self._session.load(target)

    # --- rows in and out, settings ----------------------------------------------------------------

    def insert(
        self,
        data: Any,
        *,
        mode: str = "append",
        schema: pa.Schema | None = None,
        max_rows_per_file: int | None = 1024 * 1024,
        max_rows_per_group: int = 1024,
        max_bytes_per_file: int | None = 90 * 1024**3,
        data_cache_bytes: int | None = None,
        max_page_bytes: int | None = None,
        commit_lock: CommitLock | None = None,
        progress: Any = None,
        storage_options: StorageOptions | None = None,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        enable_v2_manifest_paths: bool = True,
        enable_stable_row_ids: bool = False,
        auto_cleanup_options: Mapping[str, int] | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        initial_bases: Sequence[DatasetBasePath] | None = None,
        target_bases: Sequence[str] | None = None,
        target_all_bases: bool | None = None,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
        external_blob_mode: Literal["reference", "ingest"] = "reference",
        allow_external_blob_outside_bases: bool = False,
        blob_pack_file_size_threshold: int | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        session: CacheSession | None = None,
    ) -> None:
        """Append rows and commit them; this object moves to the new version.

        Args:
            data: the rows: ``data_obj`` of ``write_dataset``.
            mode: "append", or "overwrite" to replace all rows.

        The other arguments are those of ``lance_nb.write_dataset``. As in pylance, those that
        concern the creation of a dataset have no effect on one that exists
        (``enable_stable_row_ids``, ``enable_v2_manifest_paths``, ``auto_cleanup_options``,
        ``storage_options``) or are refused
        (``initial_bases``). Raises SchemaMismatchError, CommitError, CommitStateUnknownError,
        InvalidInputError, NotSupportedError, StorageError.

        Examples:
            >>> ds.insert(rows, commit_message="more rows")
            >>> ds.version, ds.count_rows()
            (2, 12)
        """
        arguments = locals()
        from lance_nb.dataset.write_arguments import write_rows

        self._opened = write_rows(data, self, mode, arguments)  # trusts the places that it names

    def delete(
        self,
        predicate: Any,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        progress: Progress | None = None,
    ) -> DeleteResult:
        """Delete the rows that pass a filter, as a new version; this object moves to it.

        A version is made even when no row passes, as in pylance.

        Args:
            predicate: SQL text or a pyarrow expression.
            conflict_retries: how often to start over from the newest version after a conflict.
            retry_timeout: how long to keep starting over; the first attempt is always made.
            progress: called with rows looked at and rows in all. Not in pylance.

        Raises PredicateError, CommitConflictError, TooMuchWriteContentionError, StorageError.

        Examples:
            >>> ds.delete("id > 7")
            {'num_deleted_rows': 2}
        """
        from lance_nb.writing import deleting

        self._snapshot, count = deleting.delete(
            self._session,
            self._snapshot,
            predicate,
            max_retries=conflict_retries,
            timeout_s=retry_timeout.total_seconds(),
            progress=progress,
        )
        return {"num_deleted_rows": count}

    def update(
        self,
        updates: Mapping[str, str],
        where: Any = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        *,
        mode: str = "auto",
        progress: Progress | None = None,
    ) -> UpdateResult:
        """Set columns to SQL expressions over the old values, in rows that pass a filter.

        A version is made even when no row passes; this object moves to it.

        Args:
            updates: column to SQL expression.
            where: SQL text or a pyarrow expression; every row by default.
            conflict_retries: how often to start over from the newest version after a conflict.
            retry_timeout: how long to keep starting over; the first attempt is always made.
            data_storage_version: of the new files; the dataset's own by default.
            mode: "rows" moves the rows to new files, as pylance does (stable row ids stay);
                "columns" writes the columns anew for all rows of the fragments and moves none, but
                gives way to every concurrent change of them; "auto" takes columns where that saves
                some megabytes, or where another column holds blobs. Not in pylance.
            progress: called with rows done and rows in all. Not in pylance.

        Raises ColumnNotFoundError, PredicateError, NotSupportedError (a blob column that would be
        written again), InvalidInputError, CommitConflictError, TooMuchWriteContentionError.

        Examples:
            >>> ds.update({"id": "id + 100"}, where="id > 7")
            {'num_rows_updated': 2}
        """
        from lance_nb.writing import updating

        self._snapshot, count = updating.update(
            self._session,
            self._snapshot,
            updates,
            where,
            mode=mode,
            progress=progress,
            version=data_storage_version,
            max_retries=conflict_retries,
            timeout_s=retry_timeout.total_seconds(),
        )
        return {"num_rows_updated": count}

    def edit(
        self,
        cells: Mapping[int, Mapping[str, Any]] | None = None,
        *,
        add: Any = None,
        delete: Collection[int] = (),
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        progress: Progress | None = None,
    ) -> EditResult:
        """Set single cells, add rows and delete rows, as one version. Not in pylance.

        What others have committed since this version stays: a cell that has another value by now
        than it has here, or a row that is gone or was changed and is to be deleted, refuses the
        whole edit. Rows are followed by stable row id, else by address.

        Args:
            cells: row id (``_rowid`` of this version) to column to value: a Python value or an
                Arrow scalar that the column's type holds without loss.
            add: rows to add: what ``write_dataset`` takes.
            delete: row ids of rows to delete.
            conflict_retries: how often to start over after a conflict with another writer.
            retry_timeout: how long to keep starting over; the first attempt is always made.
            progress: called with edited rows written and edited rows in all.

        Returns ``num_edited_cells``, ``num_updated_rows``, ``num_inserted_rows`` and
        ``num_deleted_rows``. Raises InvalidInputError (no such row, or a value that the column does
        not hold), ColumnNotFoundError, NotSupportedError (a column of blobs), SchemaMismatchError,
        CommitConflictError, TooMuchWriteContentionError.

        Examples:
            >>> rows = ds.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
            >>> result = ds.edit({rows[0]: {"label": "x"}, rows[1]: {"label": None}},
            ...                  delete=[rows[2]])
            >>> result["num_edited_cells"], result["num_deleted_rows"]
            (2, 1)
        """
        from lance_nb.writing import editing

        edits = editing.edits_of(cells, delete)
        self._snapshot, result = editing.edit(
            self._session,
            self._snapshot,
            edits,
            add,
            max_retries=conflict_retries,
            timeout_s=retry_timeout.total_seconds(),
            progress=progress,
        )
        return result

    def restore(self) -> None:
        """Make this version the newest one again, as a new version of its branch.

        It takes the place of what is the newest by then, whatever came in between. Raises
        CommitConflictError, CommitStateUnknownError, StorageError.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> first = ds.checkout_version(1)
            >>> first.restore()
            >>> first.version, first.count_rows()
            (3, 10)
        """
        from lance_nb.transactions.operations.restore import Restore
        from lance_nb.writing import committing

        newest = self._session.load(Target(self._snapshot.branch, None))
        operation = Restore(self._snapshot.version)
        self._snapshot = committing.commit_operation(self._session, newest, operation)

    # --- settings ---------------------------------------------------------------------------------

    def update_config(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the table configuration, as a new version; return the new configuration.

        Args:
            values: keys to set; a key whose value is None is removed.
            replace: let no other key stay.

        Raises InvalidInputError, CommitConflictError, StorageError.

        Examples:
            >>> ds.update_config({"owner": "ada"})
            {'owner': 'ada'}
        """
        from lance_nb.writing import committing

        self._change(committing.change_config(values, replace))
        return dict(self._snapshot.manifest.config)

    def delete_config_keys(self, keys: Iterable[str]) -> None:
        """Remove keys of the table configuration, as a new version.

        Args:
            keys: what to remove; keys that do not exist are ignored.

        Examples:
            >>> _ = ds.update_config({"owner": "ada", "team": "maps"})
            >>> ds.delete_config_keys(["owner"])
            >>> ds.config()
            {'team': 'maps'}
        """
        self.update_config(dict.fromkeys(keys))

    def add_checksums(self, *, progress: Progress | None = None) -> AddedChecksums:
        """Record checksums of all existing files, and of every file that is written later.

        The files of the newest version are read once. A sum says what a file holds now: verify the
        dataset first. Files that have a sum keep it, and files under a base path outside of the
        dataset are left out. What pylance writes later has no checksum; call this again.
        ``ds.delete_config_keys(["lance_nb.checksums"])`` ends it. Not in pylance.

        Args:
            progress: called with files done and files to do.

        Returns files and bytes that were read, and files that had a sum. Raises StorageError,
        CommitConflictError.

        Examples:
            >>> ds.add_checksums().num_files
            2
            >>> ds.verify().num_files_checked
            2
        """
        from lance_nb.writing import maintenance

        if not maintenance.checksums_are_wanted(self._snapshot):
            self.update_config(maintenance.CHECKSUM_SETTING)
        return maintenance.add_checksums(self._session, self._snapshot, progress)

    def update_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the table metadata, as a new version; return the new metadata.

        Args:
            values, replace: as for ``update_config``.

        Examples:
            >>> ds.update_metadata({"source": "a survey"})
            {'source': 'a survey'}
        """
        from lance_nb.writing import committing

        self._change(committing.change_metadata(values, replace))
        return dict(self._snapshot.manifest.table_metadata)

    def update_schema_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the schema's metadata, as a new version; return the new metadata.

        Args:
            values, replace: as for ``update_config``.

        Examples:
            >>> ds.update_schema_metadata({"unit": "metre"})
            {'unit': 'metre'}
        """
        from lance_nb.writing import committing

        self._change(committing.change_schema_metadata(values, replace))
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace the metadata of the schema, as a new version.

        Args:
            new_metadata: all keys of the metadata.

        Examples:
            >>> ds.replace_schema_metadata({"unit": "metre"})
            >>> ds.schema_metadata
            {'unit': 'metre'}
        """
        self.update_schema_metadata(new_metadata, replace=True)

    def update_field_metadata(
        self, field_updates: Mapping[str, Values], *, replace: bool = False
    ) -> None:
        """Change the metadata of fields, as a new version.

        Args:
            field_updates: the changes by name or dotted path; a key whose value is None is removed.
            replace: let no other key of these fields stay.

        Raises ColumnNotFoundError.

        Examples:
            >>> ds.update_field_metadata({"id": {"unit": "metre"}})
            >>> ds.schema.field("id").metadata
            {b'unit': b'metre'}
        """
        from lance_nb.writing import committing

        operation = committing.change_field_metadata(self.lance_schema.tree, field_updates, replace)
        self._change(operation)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a field, as a new version.

        Args:
            field_name: its name or dotted path.
            new_metadata: all keys of its metadata.

        Raises ColumnNotFoundError.

        Examples:
            >>> ds.replace_field_metadata("id", {"unit": "metre"})
            >>> ds.schema.field("id").metadata
            {b'unit': b'metre'}
        """
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    # --- places -----------------------------------------------------------------------------------

    def add_bases(
        self,
        new_bases: Iterable[DatasetBasePath],
        transaction_properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Register more base paths, for ``target_bases`` of later writes; return this dataset.

        This process may use them from now on; others name them in ``allow_bases``.

        Args:
            new_bases: places, whose names, paths and ids are not taken yet.
            transaction_properties: recorded with the commit.

        Raises BasePathError when a name, path or id is taken.

        Examples:
            >>> base = lance_nb.DatasetBasePath("/archive", name="archive")
            >>> [base.name for base in ds.add_bases([base]).base_paths().values()]
            ['archive']
        """
        from lance_nb.writing import writing

        bases = as_values(new_bases)
        session = writing.trusting(self._session, [base.path for base in bases])
        snapshot = writing.register(session, self._snapshot, bases, transaction_properties or {})
        self._opened = session, snapshot
        return self

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: StorageOptions | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Delete a dataset: everything below a folder, which must hold a readable version.

        Args:
            base_uri: root of the dataset.
            storage_options: as for ``lance_nb.dataset``.
            ignore_not_found: do nothing where there is no dataset.

        Raises InvalidInputError for another folder, DatasetNotFoundError, StorageError.

        Examples:
            >>> lance_nb.LanceDataset.drop("photos.lance")
            >>> lance_nb.LanceDataset.drop("photos.lance", ignore_not_found=True)
        """
        from lance_nb.writing import cleanup

        cleanup.drop(base_uri, storage_options, ignore_not_found=bool(ignore_not_found))

    def _change(self, operation: Any) -> None:
        from lance_nb.writing import committing

        self._snapshot = committing.commit_operation(self._session, self._snapshot, operation)

    # --- upserts ----------------------------------------------------------------------------------

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Begin an upsert, which matches rows by key columns.

        Args:
            on: the key columns. None is the unenforced primary key of the schema; with it, two
                writers that insert the same key at the same time never both succeed.

        Raises ColumnNotFoundError, InvalidInputError.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> upsert.execute(rows)["num_inserted_rows"]
            2
        """
        return MergeInsertBuilder(self, on)

    def _moved(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    # --- columns ----------------------------------------------------------------------------------

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, as a new version; no data is written.

        Args:
            columns: names or dotted paths.

        Raises ColumnNotFoundError, InvalidInputError when no column would be left.

        Examples:
            >>> ds.drop_columns(["vector"])
            >>> ds.schema.names
            ['id', 'label']
        """
        from lance_nb.writing import schema_evolution

        self._evolve(lambda base, _: schema_evolution.drop(base, columns))

    def alter_columns(
        self, *alterations: Mapping[str, Any], progress: Progress | None = None
    ) -> None:
        """Rename columns, change whether they may be null, or cast them, as a new version.

        Only a cast writes data: the column gets a new field id.

        Args:
            alterations: dicts with ``path`` and one or more of ``name``, ``nullable``,
                ``data_type``. Paths are those before the call, so that columns can swap names.
            progress: called with rows done and rows in all. Not in pylance.

        Raises ColumnNotFoundError, InvalidInputError, SchemaMismatchError, PredicateError (a value
        that does not fit).

        Examples:
            >>> ds.alter_columns({"path": "id", "name": "number"})
            >>> ds.schema.names
            ['number', 'label', 'vector']
        """
        from lance_nb.writing import schema_evolution

        changes = schema_evolution.alterations_of(alterations)
        self._evolve(lambda base, work: schema_evolution.alter(base, changes, work), progress)

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Add columns, as a new version: computed, streamed, or all null. Other columns stay.

        After an error or an interrupt no new file remains, but what a checkpoint remembers. Unlike
        pylance, an error of the function comes out as it is.

        Args:
            transforms: a dict of name to SQL expression; a function from record batches to record
                batches or DataFrames, plain or a ``batch_udf``, whose checkpoint lets an
                interrupted call go on; rows to stream, one per row in order; or fields, for columns
                of nulls, which write no data. A struct that is there gets the new ones of its
                fields.
            read_columns: what a function is given; all columns by default.
            reader_schema: the schema of rows to stream, where they do not say.
            batch_size: the most rows of a batch that a function is given.
            progress: called with rows done and rows in all. Not in pylance.

        Raises InvalidInputError, SchemaMismatchError, PredicateError.

        Examples:
            >>> ds.add_columns({"twice": "id * 2"})
            >>> ds.take([3], ["id", "twice"]).to_pylist()
            [{'id': 3, 'twice': 6}]
        """
        from lance_nb.writing import schema_evolution

        new_columns = schema_evolution.NewColumns(
            transforms, read_columns, reader_schema, batch_size
        )
        self._evolve(lambda base, work: schema_evolution.add(base, new_columns, work), progress)
        schema_evolution.forget(transforms)

    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Add the columns of a table by a left join; rows without a matching key get null.

        Args:
            data_obj: the table, or rows that Arrow can stream; of several partners the last counts.
            left_on: the key column here, or ``_rowid`` or ``_rowaddr``.
            right_on: the key column there; the same name by default.
            schema: of ``data_obj``, where it does not say.
            progress: called with rows done and rows in all. Not in pylance.

        Raises ColumnNotFoundError, SchemaMismatchError (keys of different types, columns that are
        there).

        Examples:
            >>> ds.merge(pa.table({"id": [1, 2], "name": ["one", "two"]}), "id")
            >>> ds.head(3, columns=["name"]).to_pydict()
            {'name': [None, 'one', 'two']}
        """
        from lance_nb.writing import schema_evolution

        right = schema_evolution.read_right(data_obj, schema)
        on = (left_on, right_on or left_on)
        self._evolve(lambda base, work: schema_evolution.merge(base, right, on, work), progress)

    def truncate_table(self) -> None:
        """Delete every row, as a new version; the schema and the older versions stay.

        Raises CommitConflictError, StorageError.

        Examples:
            >>> ds.truncate_table()
            >>> ds.count_rows(), ds.schema.names
            (0, ['id', 'label', 'vector'])
        """
        from lance_nb.writing import deleting

        self._snapshot, _ = deleting.delete(self._session, self._snapshot, "true")

    def _evolve(self, plan: Any, progress: Progress | None = None) -> None:
        from lance_nb.writing import schema_evolution

        self._snapshot = schema_evolution.evolve(self._session, self._snapshot, plan, progress)

    # --- secondary indices ------------------------------------------------------------------------

    @property
    def has_index(self) -> bool:
        """Whether there is an index.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.has_index
            True
        """
        return bool(self.describe_indices())

    def list_indices(self) -> list[dict[str, Any]]:
        """List the segments of the secondary indices of this version, as pylance does.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> [(segment["name"], segment["type"]) for segment in ds.list_indices()]
            [('id_idx', 'BTree')]
        """
        from lance_nb.table import indices

        return indices.list_indices(self._snapshot)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe every index with all its segments: type, fields, rows and fragments covered.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> [index.name for index in ds.describe_indices()]
            ['id_idx']
        """
        from lance_nb.table import indices

        return indices.describe_indices(self._snapshot)

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return pylance's statistics of an index.

        Settings and counts are read from the files of the index, no values. The entry ``not_read``
        names what is missing where these files are damaged or of a newer version.

        Args:
            index_name: its name.

        Raises IndexNotFoundError (a KeyError).

        Examples:
            >>> ds.create_scalar_index("id", "BTREE", name="by_id")
            >>> ds.index_statistics("by_id")["num_indexed_rows"]
            10
        """
        from lance_nb.indices.statistics import statistics

        return statistics(self._snapshot, index_name)

    def index_coverage(self, index_name: str | None = None) -> pa.Table:
        """Return which fragments each index covers, and with which segments.

        Args:
            index_name: look at this index only; at all by default.

        The columns are ``lance_nb.table.indices.COVERAGE``. Raises IndexNotFoundError.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE", name="by_id")
            >>> ds.index_coverage("by_id").num_rows
            2
        """
        from lance_nb.table import indices

        return indices.coverage(self._snapshot, index_name)

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Map row addresses through the compactions that the fragment-reuse index records.

        Args:
            addrs: uint64 row addresses (``fragment id << 32 | offset``).

        Returns as many addresses: null for rows that are gone, the same for rows that no compaction
        moved; None when there is no such index. Raises InvalidInputError for what are no addresses.

        Examples:
            >>> ds.remap_row_addrs(pa.array([0, 1], pa.uint64())) is None
            True
        """
        from lance_nb.table import indices

        return indices.remap_row_addrs(self._snapshot, addrs)

    def drop_index(self, name: str) -> None:
        """Drop an index with all its segments; its files stay until a clean-up.

        Unlike pylance, the fragment-reuse index is not dropped while another index needs it.

        Args:
            name: name of the index.

        Raises IndexNotFoundError, InvalidInputError.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE", name="by_id")
            >>> ds.drop_index("by_id")
            >>> ds.has_index
            False
        """
        from lance_nb.writing import indexing

        self._snapshot = indexing.drop(self._session, self._snapshot, name)

    def prewarm_index(
        self,
        name: str,
        *,
        with_position: bool = False,
        index_segments: Iterable[Any] | None = None,
    ) -> None:
        """Open the files of an index and keep what every search of it needs.

        Args:
            name: name of the index.
            with_position: is pylance's, for positions of words; they are read when needed.
            index_segments: only the segments with these uuids.

        Raises IndexNotFoundError, InvalidInputError (no such segment).

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.prewarm_index("id_idx")
        """
        from lance_nb.writing import indexing as segments

        segments.prewarm(self._snapshot, name, index_segments)

    def _optimize_indices(
        self,
        names: Collection[str] | None,
        num_to_merge: int | None,
        *,
        retrain: bool,
        progress: Callable[[Any], object] | None,
    ) -> None:
        from lance_nb.writing import indexing

        self._snapshot = indexing.optimize(
            self._session, self._snapshot, names, num_to_merge, retrain=retrain, progress=progress
        )

    def create_index_uncommitted(
        self,
        column: str,
        index_type: Any,
        name: str | None = None,
        *,
        fragment_ids: Iterable[int],
        index_uuid: str | None = None,
        progress_callback: Callable[[Any], object] | None = None,
        **parameters: Any,
    ) -> Index:
        """Write one segment of an index, on some fragments; nothing is committed.

        Several processes can build the segments of an index, and one of them commits these with
        ``commit_existing_index_segments``.

        Args:
            column: the column to index.
            index_type: as in ``create_scalar_index`` and ``create_index``.
            name: name of the index; ``<column>_idx`` by default.
            fragment_ids: the fragments.
            index_uuid: the uuid of the segment; a new one by default.
            progress_callback: called with ``IndexProgress`` events.
            parameters: settings of the kind.

        Raises as ``create_scalar_index`` does, and InvalidInputError for missing fragments.

        Examples:
            >>> segment = ds.create_index_uncommitted("id", "BTREE", fragment_ids=[0])
            >>> ds.commit_existing_index_segments("id_idx", "id", [segment]).has_index
            True
        """
        from lance_nb.writing import indexing

        if hasattr(index_type, "index_type"):
            parameters = {**index_type.parameters, **parameters}
            index_type = index_type.index_type
        return indexing.build(
            self._session,
            self._snapshot,
            column,
            str(index_type),
            name=name,
            parameters=parameters,
            fragment_ids=fragment_ids,
            uuid=index_uuid,
            progress=progress_callback,
        )

    def merge_existing_index_segments(self, segments: Iterable[Index]) -> Index:
        """Build one segment of the fragments of several ones; nothing is committed.

        Args:
            segments: as ``create_index_uncommitted`` returned them.

        Raises InvalidInputError for segments that do not fit together.

        Examples:
            >>> parts = [ds.create_index_uncommitted("id", "BTREE", fragment_ids=[at])
            ...          for at in (0, 1)]
            >>> sorted(ds.merge_existing_index_segments(parts).fragment_ids)
            [0, 1]
        """
        from lance_nb.writing import indexing

        return indexing.merge(self._snapshot, segments)

    def commit_existing_index_segments(
        self, index_name: str, column: str, segments: Iterable[Index]
    ) -> Self:
        """Commit segments as one index, beside the segments that it has already.

        Segments whose fragments are all covered by the new ones are replaced.

        Args:
            index_name: name of the index.
            column: its column.
            segments: as ``create_index_uncommitted`` or ``merge_existing_index_segments`` returned
                them.

        Returns this dataset, at the new version. Raises InvalidInputError for segments of other
        columns or types, that overlap, or whose files are missing.

        Examples:
            >>> segment = ds.create_index_uncommitted("id", "BITMAP", fragment_ids=[0, 1])
            >>> made = ds.commit_existing_index_segments("by_id", "id", [segment])
            >>> made.index_statistics("by_id")["num_unindexed_rows"]
            0
        """
        from lance_nb.writing import indexing

        self._snapshot = indexing.commit(
            self._session, self._snapshot, index_name, column=column, segments=segments
        )
        return self

    merge_index_metadata = refused(
        "files of parts of an index are not merged by uuid: build segments with "
        "create_index_uncommitted, and pass them to commit_existing_index_segments, or to "
        "merge_existing_index_segments before that"
    )

    def create_scalar_index(
        self,
        column: str,
        index_type: Any = "BTREE",
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Callable[[Any], object] | None = None,
        format_version: int | str | None = None,
        document_granularity: Any = None,
        **parameters: Any,
    ) -> None:
        """Build an index on a column and commit it; filters use it from then on.

        Values are sorted in runs of 256 MB, which wait in temporary files; memory holds about three
        of them, and all rows of one value.
        ``lance_nb.spark.create_scalar_index`` builds an index in parts. An exception in
        ``progress_callback`` ends the work; then no file of the index is left.

        Args:
            column: the column to index.
            index_type: "BTREE": numbers, texts, bytes and times, for comparisons and IN.
                "BITMAP": the same types, with few different values. "LABEL_LIST": lists, for
                array_has, array_has_any and array_has_all. "NGRAM": texts, for contains and LIKE.
                "ZONEMAP": bounds of each 8,192 rows (parameter rows_per_zone), for values that are
                nearly in order. "BLOOMFILTER": for = and IN (parameters number_of_items, 8,192
                rows by default, and probability, 0.00057). An object with index_type and
                parameters, such as pylance's IndexConfig, will do too.
            name: its name; ``<column>_idx`` by default.
            replace: build an index of that name anew.
            train: False makes an index that covers no fragment; ``optimize_indices`` fills it.
            index_uuid: the uuid of its segment; a new one by default.
            progress_callback: called with ``IndexProgress`` events.
            parameters: settings of the kind.
            fragment_ids: is refused; ``create_index_uncommitted`` builds on some fragments.
            format_version, document_granularity: are pylance's, and refused where they are given.

        Raises ColumnNotFoundError, InvalidInputError (the type of the column, a parameter, or a
        name that is taken), and NotSupportedError for kinds and options that only pylance has.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.describe_indices()[0].name
            'id_idx'
        """
        from lance_nb.writing import indexing

        if hasattr(index_type, "index_type"):
            parameters = {**index_type.parameters, **parameters}
            index_type = index_type.index_type
        kind = str(index_type)
        if fragment_ids is not None:
            raise InvalidInputError(
                f"fragment_ids: create_index_uncommitted({column!r}, {kind!r}, fragment_ids=...) "
                "builds a segment on some fragments"
            )
        index_options = {
            "format_version": format_version,
            "document_granularity": document_granularity,
        }
        for option, value in index_options.items():
            if value is not None:
                raise NotSupportedError(
                    indexing.not_built(
                        self.uri, "create_scalar_index", column, kind, **{option: Python("...")}
                    )
                )
        self._snapshot = indexing.create(
            self._session,
            self._snapshot,
            column,
            kind,
            name=name,
            parameters=parameters,
            replace=replace,
            train=train,
            uuid=index_uuid,
            progress=progress_callback,
        )

    def create_index(
        self,
        column: str | Sequence[str],
        index_type: str,
        name: str | None = None,
        metric: str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: Any = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: StorageOptions | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        progress_callback: Callable[[Any], object] | None = None,
        **parameters: Any,
    ) -> Self:
        """Build an index on a column of vectors: IVF_FLAT, IVF_PQ or IVF_SQ.

        Vectors are divided into partitions around centroids, which k-means finds on a sample;
        IVF_PQ and IVF_SQ store codes in their place. ``nearest`` searches the index from then on.

        Args:
            column: the column, fixed-size lists of floats (or of uint8, for "hamming").
            index_type: "IVF_FLAT", "IVF_PQ" or "IVF_SQ".
            name: its name; ``<column>_idx`` by default.
            metric: "l2", "cosine", "dot" or "hamming".
            replace: build an index of that name anew.
            num_partitions: how many partitions; by default one for 8,192 rows (4,096 in IVF_FLAT).
            target_partition_size: rows of a partition, instead of a number of partitions.
            ivf_centroids: a row for each partition: no centroids are trained.
            ivf_centroids_file: a local ``.npy`` file with these.
            num_sub_vectors: pieces that IVF_PQ cuts a vector into; each becomes a code.
            pq_codebook: codewords of the shape (sub-vectors, 2 ** num_bits, numbers of a piece).
            progress_callback: called with ``IndexProgress`` events; what it raises ends the build.
            parameters: ``num_bits`` (8 or 4 bits of a code), ``sample_rate`` (rows for each
                centroid and codeword, 256), ``max_iters`` of k-means (50); not in pylance:
                ``seed`` (0): the same rows and seed make the same index, and ``sq_bounds``: the
                least and greatest number that IVF_SQ codes.
            index_cache_size, shuffle_partition_batches, shuffle_partition_concurrency,
                storage_options, filter_nan, streaming_sample_rate, streaming_coreset_rate,
                streaming_refine_passes: tune pylance's work, and have no effect.
            accelerator, precomputed_partition_dataset, train, fragment_ids, index_uuid,
                skip_transpose: are pylance's, and refused where they are given.

        Returns this dataset, at the new version. Raises ColumnNotFoundError, InvalidInputError (the
        type of the column, a parameter, or a name that is taken), and NotSupportedError for kinds
        and options that only pylance has.

        Examples:
            >>> events = []
            >>> _ = ds.create_index("vector", "IVF_FLAT", progress_callback=events.append)
            >>> events[0].stage
            'train_ivf'
            >>> ds.to_table(["id"], nearest={"column": "vector", "q": [6, 0], "k": 1}).to_pydict()
            {'id': [6], '_distance': [0.0]}
        """
        from lance_nb.writing import indexing

        columns = [column] if isinstance(column, str) else list(column)
        for column_name in columns:
            self.lance_schema.tree.field(column_name)
        kind = str(index_type)
        refused = {
            "accelerator": accelerator,
            "precomputed_partition_dataset": precomputed_partition_dataset,
            "train": None if train else train,
            "fragment_ids": fragment_ids,
            "index_uuid": index_uuid,
            "skip_transpose": skip_transpose or None,
        }
        refused_names = [name for name, value in refused.items() if value is not None]
        if refused_names or len(columns) != 1 or not kind.upper().startswith("IVF"):
            options = {name: Python("...") for name in refused_names}
            raise NotSupportedError(
                indexing.not_built(self.uri, "create_index", column, kind, **options)
            )
        if ivf_centroids_file is not None:
            if ivf_centroids is not None:
                raise InvalidInputError("pass ivf_centroids or ivf_centroids_file, not both")
            import numpy as np

            ivf_centroids = np.load(ivf_centroids_file, allow_pickle=False)
        settings = {
            "metric": metric,
            "num_partitions": num_partitions,
            "target_partition_size": target_partition_size,
            "ivf_centroids": ivf_centroids,
            "num_sub_vectors": num_sub_vectors,
            "pq_codebook": pq_codebook,
            **parameters,
        }
        self._snapshot = indexing.create(
            self._session,
            self._snapshot,
            columns[0],
            kind,
            name=name,
            parameters={key: value for key, value in settings.items() if value is not None},
            replace=replace,
            progress=progress_callback,
        )
        return self

    # --- storage ----------------------------------------------------------------------------------

    def session(self) -> CacheSession:
        """Return the caches of this dataset, to open others with: ``dataset(uri, session=...)``.

        Examples:
            >>> same = lance_nb.dataset(uri, session=ds.session())
            >>> same.session().is_same_as(ds.session())
            True
        """
        return CacheSession.of(self._session.files, self._session.deletions)

    @property
    def initial_storage_options(self) -> dict[str, Any] | None:
        """The storage options that the dataset was opened with, None if there were none.

        Examples:
            >>> ds.initial_storage_options is None
            True
        """
        options = self._session.storage_options
        return None if options is None else dict(options)

    def latest_storage_options(self) -> dict[str, Any] | None:
        """Return the storage options; they do not change while a dataset is open.

        Examples:
            >>> ds.latest_storage_options() is None
            True
        """
        return self.initial_storage_options

    @property
    def storage_options_accessor(self) -> StorageOptionsAccessor | None:
        """The storage options behind pylance's interface, None if there are none.

        Examples:
            >>> ds.storage_options_accessor is None
            True
        """
        options = self._session.storage_options
        return None if options is None else StorageOptionsAccessor(options)

    def new_file_session(self) -> LanceFileSession:
        """Return a session that reads and writes single files below the dataset's root.

        Examples:
            >>> len(ds.new_file_session().list("data"))
            2
        """
        from lance_nb.dataset.file_session import LanceFileSession

        return LanceFileSession(self._session.root.uri, self._session.storage_options)

    def io_stats_snapshot(self) -> IOStats:
        """Return reads and writes since the dataset was opened or ``io_stats_incremental`` called.

        The whole process is counted, see lance_nb.session.storage_access.

        Examples:
            >>> ds.io_stats_snapshot().read_iops >= 0
            True
        """
        return self._session.io.stats()

    def io_stats_incremental(self) -> IOStats:
        """Return what ``io_stats_snapshot`` returns, and count from zero again.

        Examples:
            >>> _ = ds.io_stats_incremental()
            >>> ds.io_stats_incremental().read_iops
            0
        """
        return self._session.io.restart()

    # --- branches and copies ----------------------------------------------------------------------

    def create_branch(
        self,
        branch: str,
        reference: Ref | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Self:
        """Start a branch from a version and return it, opened.

        A branch whose creation was interrupted is completed by creating it again from the same
        version; from another one it is refused until ``branches.delete`` has removed it.

        Args:
            branch: its name.
            reference: the version, as for ``checkout_version``; this one by default.
            storage_options: no effect: those of this dataset hold for its branches too.

        Raises InvalidRefError, RefConflictError (the name is taken), VersionNotFoundError,
        CommitStateUnknownError.

        Examples:
            >>> experiment = ds.create_branch("experiment")
            >>> experiment.insert(rows)
            >>> experiment.count_rows(), ds.count_rows()
            (12, 10)
        """
        from lance_nb.writing import branching

        del storage_options  # the ones this dataset was opened with hold for its branches too
        snapshot = branching.create_branch(self._session, self._snapshot, branch, reference)
        return self._with_snapshot(self._session, snapshot)

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Ref | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Self:
        """Create a dataset that starts from a version of this one and refers to its files.

        This process may open the clone from now on; others allow this dataset's root by
        ``allow_bases`` or in the environment (see lance_nb.session.base_paths).

        Args:
            target_path: root of the new dataset, which must not exist.
            reference: the version, as for ``checkout_version``; this one by default.
            storage_options: of the new place; see ``lance_nb.dataset``.

        Raises DatasetAlreadyExistsError, VersionNotFoundError, StorageError.

        Examples:
            >>> ds.shallow_clone("clone.lance").count_rows()
            10
        """
        from lance_nb.writing import branching, cloning

        target = branching.target_of(self._session, self._snapshot, reference)
        opened = cloning.shallow_clone(self._session, target, target_path, storage_options)
        return self._with_snapshot(*opened, keeps_options=False)

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Ref | None = None,
        storage_options: StorageOptions | None = None,
        *,
        progress: Callable[[CopyProgress], None] | None = None,
    ) -> Self:
        """Copy a version of this dataset, with every file it needs, into a new dataset.

        Args:
            target_path, reference, storage_options: as for ``shallow_clone``.
            progress: called with a CopyProgress after each file. Not in pylance.

        Raises DatasetAlreadyExistsError, VersionNotFoundError, StorageError.

        Examples:
            >>> ds.deep_clone("copy.lance").count_rows()
            10
        """
        from lance_nb.writing import branching, cloning

        target = branching.target_of(self._session, self._snapshot, reference)
        opened = cloning.deep_clone(
            self._session, target, target_path, options=storage_options, progress=progress
        )
        return self._with_snapshot(*opened, keeps_options=False)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename the manifests of this branch to the names that list the newest version first.

        No other writer may be at work meanwhile. After an interruption readers refuse the newest
        version: open the oldest by its number, and repeat this. Raises CommitConflictError,
        CommitStateUnknownError.

        Examples:
            >>> old = lance_nb.write_dataset(rows, "old.lance", enable_v2_manifest_paths=False)
            >>> old.migrate_manifest_paths_v2()
            >>> lance_nb.dataset("old.lance").count_rows()
            2
        """
        from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2

        migrate_manifest_paths_v2(self._session.home(self.branch))

    # --- one change, done or undone ---------------------------------------------------------------

    def cherry_pick(
        self,
        version: Ref,
        *,
        on_conflict: str = "fail",
        key: str | Sequence[str] | None = None,
        copy: bool = False,
        pin: bool = True,
        resolve: Resolve = None,
        dry_run: bool = False,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> MergePlan:
        """Apply the change of a version to this branch, as a new version. Not in pylance.

        Args:
            version: 7, ("dev", 7) or a tag.
            on_conflict, key, copy, pin, resolve: as for ``branches.merge``.
            dry_run: only plan; a commit moves this object to the version that was made.
            message: of the commit; names the version by default.
            progress: called with what is done and what there is to do.

        Raises InvalidInputError if there is nothing to do, CommitConflictError if what the change
        touches has been changed here, VersionNotFoundError.

        Examples:
            >>> experiment = ds.create_branch("experiment")
            >>> experiment.delete("id = 5")["num_deleted_rows"]
            1
            >>> _ = ds.cherry_pick(("experiment", experiment.version))
            >>> ds.count_rows()
            9
        """
        from lance_nb.merging import branch_merging, merge_plan

        options = merge_plan.options_of(
            on_conflict=on_conflict, key=key, copy=copy, pin=pin, resolve=resolve
        )
        plan = branch_merging.plan_pick(
            *self.opened, version, options, progress if dry_run else None
        )
        plan = plan.followed_by(self._follow_commit)
        return plan if dry_run else plan.commit(message, progress=progress)

    def revert(
        self,
        version: Ref,
        *,
        on_conflict: str = "fail",
        key: str | Sequence[str] | None = None,
        resolve: Resolve = None,
        dry_run: bool = False,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> MergePlan:
        """Undo the change of a version, as a new version of this branch. Not in pylance.

        Appended rows go, deleted rows live again, updated rows have their old values, columns go or
        come back, settings are as they were. What later versions did stays.

        Args:
            version, on_conflict, key, resolve, dry_run, message, progress: as for ``cherry_pick``.

        Raises CommitConflictError if later versions changed the same rows, columns or settings (all
        are listed), InvalidInputError for a compaction, a first version, and what is undone
        already.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> _ = ds.revert(ds.version)
            >>> ds.version, ds.count_rows()
            (3, 10)
        """
        from lance_nb.merging import branch_merging, merge_plan

        options = merge_plan.options_of(on_conflict=on_conflict, key=key, resolve=resolve)
        plan = branch_merging.plan_revert(
            *self.opened, version, options, progress if dry_run else None
        )
        plan = plan.followed_by(self._follow_commit)
        return plan if dry_run else plan.commit(message, progress=progress)

    # --- transactions -----------------------------------------------------------------------------

    @classmethod
    def commit(
        cls,
        base_uri: Destination,
        operation: Operation | Transaction,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = _COMMIT_RETRIES,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        commit_timeout: timedelta | None = _COMMIT_TIMEOUT,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Self:
        """Commit an operation, or a whole transaction, and return the version that it made.

        A transaction that was committed before is recognised by its uuid and not committed twice.

        Args:
            base_uri: the dataset, or its URI.
            operation: a value of ``LanceOperation``, or a ``Transaction``.
            read_version: the version that the operation was made for; Overwrite and Restore can do
                without.
            commit_lock: see ``lance_nb.dataset``.
            storage_options: see ``lance_nb.dataset``.
            enable_v2_manifest_paths, enable_stable_row_ids: matter for a new dataset.
            detached: make a version outside of the history.
            max_retries: attempts after the first, each on a newer version.
            commit_message: becomes a property of the transaction.
            commit_timeout: how long to keep trying.
            namespace_client, table_id, namespace_client_managed_versioning,
                base_store_params: refused.

        Raises InvalidInputError, DatasetNotFoundError, CommitConflictError,
        RetryableCommitConflictError, TooMuchWriteContentionError, CommitStateUnknownError,
        StorageError.

        Examples:
            >>> fragments = lance_nb.write_fragments(rows, ds)
            >>> append = lance_nb.LanceOperation.Append(fragments)
            >>> lance_nb.LanceDataset.commit(ds, append, ds.version).count_rows()
            12
        """
        from lance_nb.transactions.operation import BuildOptions
        from lance_nb.writing import committing

        check_refused(
            {
                "namespace_client": namespace_client,
                "table_id": table_id,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
            }
        )
        check_lock(commit_lock)
        session, current = destination(base_uri, storage_options)
        options = committing.options_by_hand(
            commit_timeout,
            max_retries=max_retries,
            detached=detached,
            message=commit_message,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            commit_lock=commit_lock,
            build=BuildOptions(stable_row_ids=bool(enable_stable_row_ids)),
        )
        uuid = options.environment.new_uuid()
        transaction = committing.transaction_of(operation, read_version, uuid)
        is_pinned = read_version is not None or transaction is operation
        snapshot = committing.commit(session, current, transaction, options, is_pinned=is_pinned)
        return cls.from_opened(session, snapshot)

    @classmethod
    def commit_batch(
        cls,
        dest: Destination,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = _COMMIT_RETRIES,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
        commit_timeout: timedelta | None = _COMMIT_TIMEOUT,
    ) -> BulkCommitResult:
        """Commit several appends as one version: ``{"dataset": ..., "merged": Transaction}``.

        Args:
            dest: the dataset, or its URI.
            transactions: appends, as ``write_fragments`` returns them.

        The other arguments are those of ``commit``. Raises InvalidInputError, NotSupportedError for
        other operations, and as ``commit`` does.

        Examples:
            >>> parts = [rows.slice(0, 1), rows.slice(1, 1)]
            >>> appends = [lance_nb.write_fragments(p, ds, return_transaction=True) for p in parts]
            >>> lance_nb.LanceDataset.commit_batch(ds, appends)["dataset"].count_rows()
            12
        """
        from lance_nb.writing import committing

        check_refused({"base_store_params": base_store_params})
        check_lock(commit_lock)
        session, current = destination(dest, storage_options)
        if current is None:
            raise DatasetNotFoundError(session.root.uri)
        options = committing.options_by_hand(
            commit_timeout,
            max_retries=max_retries,
            detached=detached,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            commit_lock=commit_lock,
        )
        snapshot, merged = committing.commit_batch(session, current.branch, transactions, options)
        return {"dataset": cls.from_opened(session, snapshot), "merged": merged}

    def stage(self) -> Stage:
        """Collect edits of this version, preview them, then commit or discard them together.

        The commit moves this object to the version that it makes, as other verbs do.

        Examples:
            >>> stage = ds.stage().delete("id < 3").append(rows)
            >>> stage.commit()
            2
            >>> ds.version, ds.count_rows()
            (2, 9)
        """
        from lance_nb.dataset import staging

        return staging.Stage(
            self._session, self._snapshot, type(self), on_commit=(self._follow_commit,)
        )

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction that made a version of this branch, None if not recorded.

        Args:
            version: its number.

        Raises VersionNotFoundError, CorruptFileError.

        Examples:
            >>> type(ds.read_transaction(1).operation).__name__
            'Overwrite'
        """
        from lance_nb.writing import committing

        return committing.read_transaction(self._session, self.branch, version)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions that made this version and those before it, newest first.

        Args:
            recent_transactions: how many; None stands for one that is not recorded.

        Raises InvalidInputError for a negative number.

        Examples:
            >>> ds.insert(rows, commit_message="more rows")
            >>> [made.message for made in ds.get_transactions()]
            ['more rows', None]
        """
        if recent_transactions < 0:
            raise InvalidInputError(
                f"recent_transactions must be at least 0, not {recent_transactions}"
            )
        numbers = [n for n in self._session.log(self.branch).numbers() if n <= self.version]
        recent = numbers[max(len(numbers) - recent_transactions, 0) :]
        return [self.read_transaction(n) for n in reversed(recent)]

    # --- maintenance ------------------------------------------------------------------------------

    @property
    def optimize(self) -> DatasetOptimizer:
        """Compaction and other maintenance of this dataset.

        Examples:
            >>> ds.optimize.compact_files().fragments_removed
            2
        """
        from lance_nb.dataset.optimize import DatasetOptimizer

        return DatasetOptimizer(self)

    def _compact(self, given_options: Any, progress: Progress | None) -> CompactionMetrics:
        from lance_nb.writing import compaction
        from lance_nb.writing.compaction import CompactionOptions

        compaction_options = CompactionOptions.of(given_options, self._snapshot.manifest.config)
        self._snapshot, metrics = compaction.compact(
            self._session, self._snapshot, compaction_options, progress
        )
        return metrics

    def _commit_compaction(self, rewrites: Any, given_options: Any) -> CompactionMetrics:
        from lance_nb.transactions.commit_options import CommitOptions
        from lance_nb.writing import compaction
        from lance_nb.writing.compaction import CompactionOptions

        compaction_options = CompactionOptions.of(given_options, self._snapshot.manifest.config)
        results = [rewrite.rewritten for rewrite in rewrites]
        commit_options = CommitOptions(checks_files=True, is_by_hand=True)
        self._snapshot, metrics = compaction.commit(
            self._session,
            self._snapshot.branch,
            results,
            compaction_options,
            commit_options=commit_options,
        )
        return metrics

    def _cleanup_reuse(self) -> int:
        from lance_nb.writing import indexing

        self._snapshot, count = indexing.cleanup_reuse(self._session, self._snapshot)
        return count

    @overload
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = ...,
        retain_versions: int | None = ...,
        *,
        dry_run: Literal[False] = ...,
        **arguments: Unpack[CleanupArguments],
    ) -> CleanupStats: ...
    @overload
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = ...,
        retain_versions: int | None = ...,
        *,
        dry_run: Literal[True],
        **arguments: Unpack[CleanupArguments],
    ) -> CleanupExplanation: ...
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Collection[int] | None = None,
        delete_concurrency: int | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> CleanupStats | CleanupExplanation:
        """Delete versions of this branch older than the open one, with files that only they need.

        A version goes when every rule that is given holds. Tagged versions, and those that a branch
        started from, stay. Unlike pylance, detached versions and the ``.txn`` files of versions
        that stay are kept.

        Args:
            older_than: the least age of a version that goes; two weeks if no rule is given.
            retain_versions: how many of the newest versions stay.
            versions: only these numbers may go.
            delete_unverified: delete files that no version refers to at once, not only those older
                than seven days: only for a dataset that nobody else is writing to.
            error_if_tagged_old_versions: raise when a rule holds for a tagged version.
            delete_rate_limit: the most files deleted in a second.
            delete_concurrency: the most files deleted at once.
            dry_run: delete nothing, and return a plan that lists every file with its bytes and the
                reason; its ``run()`` deletes exactly that, or nothing if the dataset has changed.
                Ours.
            progress: called with things done (manifests read, files deleted) and to do. Ours.

        Raises CleanupError (an OSError and a ValueError) when a rule makes no sense or tagged
        versions match; CorruptFileError or NotSupportedError, with nothing deleted, when a manifest
        that is needed cannot be understood.

        Examples:
            >>> ds.insert(rows)
            >>> ds.cleanup_old_versions(retain_versions=1).old_versions
            1
        """
        from lance_nb.writing import cleanup

        policy = cleanup.rules(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        options = cleanup.deleting(delete_rate_limit, delete_concurrency, progress)
        if dry_run:
            return cleanup.explain(*self.opened, policy, options)
        return cleanup.clean(*self.opened, policy, options)

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Collection[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """Return what ``cleanup_old_versions`` would delete; arguments and result are pylance's.

        Args:
            include_files: list the files.
            max_files: the most files that are listed.

        The other arguments and the errors are those of ``cleanup_old_versions``.

        Examples:
            >>> ds.insert(rows)
            >>> ds.explain_cleanup_old_versions(retain_versions=1).stats.old_versions
            1
        """
        from lance_nb.writing import cleanup

        if max_files <= 0:
            raise InvalidInputError("max_files must be positive")
        policy = cleanup.rules(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        options = cleanup.deleting(delete_rate_limit, None, None)
        return cleanup.explain(
            *self.opened, policy, options, max_files=max_files, include_files=include_files
        )

    def space(self, *, progress: Progress | None = None) -> Space:
        """Account for every byte of the dataset's folder: by version, tag, branch, kind, orphan.

        Reads the manifests of all versions and one listing. ``space().freed_if(...)`` tells what
        deleting tags, branches or old versions would free. What cannot be read is listed in
        ``damaged``. Not in pylance.

        Args:
            progress: called with manifests read and manifests to read.

        Raises StorageError.

        Examples:
            >>> account = ds.space()
            >>> account.damaged
            ()
        """
        from lance_nb.writing import maintenance

        return maintenance.space(self._session, progress)

    def validate(self) -> None:
        """Check the integrity of this version without decoding values; as pylance's.

        Opens every data file, compares rows, fields and sizes with the manifest, and reads deletion
        files and row ids. Raises CorruptFileError, ObjectNotFoundError (both OSErrors).

        Examples:
            >>> ds.validate()
        """
        from lance_nb.dataset import verifying

        verifying.validate(self._snapshot)

    def verify(
        self,
        *,
        values: bool = True,
        checksums: bool | None = None,
        sample: float | None = None,
        seed: int | None = None,
        raise_on_error: bool = False,
        progress: Progress | None = None,
    ) -> Verification:
        """Read every version of every branch, and report all damage. Not in pylance.

        Refs, manifests, files that are missing or that nobody refers to, rows, deleted rows, row
        ids, files of indices, and every value of every column.

        Args:
            values: decode every value.
            checksums: compare files with their checksums where they have some (see
                ``add_checksums``); by default when values are decoded.
            sample: read the content of some files only, chosen by chance: about a share of the
                bytes (0.1) or a number of files (100); the report says how much that was.
            seed: chooses the same files again; the report has it.
            raise_on_error: raise the first error; damage is listed otherwise.
            progress: called with steps done and steps to do.

        Raises InvalidInputError for another ``sample``.

        Examples:
            >>> ds.verify().verdict
            'whole'
        """
        from lance_nb.dataset import verifying

        return verifying.verify(
            self._session,
            progress,
            values=values,
            checksums=checksums,
            sample=sample,
            seed=seed,
            raise_on_error=raise_on_error,
        )

    def repair_moved(self, *, dry_run: bool = False) -> list[MovedBranch]:
        """Record the current place of a moved or copied dataset in its branches. Not in pylance.

        A branch records the absolute path of the files it shares; so does a version that has merged
        one. We read them where the dataset is now in any case, pylance follows the path. Each
        branch whose newest version names a former place gets one version more with the present
        one, and pylance reads that. Older versions stay as they are; this object moves to the new
        version of its branch.

        Args:
            dry_run: only look.

        Returns what was found, as ``lance_nb.writing.cloning.MovedBranch``: the branch,
        the version that names a former place, and the base paths. Raises CommitConflictError,
        StorageError, CorruptFileError.

        Examples:
            >>> ds.repair_moved(dry_run=True)
            []
        """
        from lance_nb.writing import cloning

        moved = cloning.repair_moved_branches(self._session, dry_run=dry_run)
        if any(branch.branch == self.branch for branch in moved) and not dry_run:
            self.checkout_latest()
        return moved

    # --- what pyarrow's datasets have and Lance's do not ------------------------------------------

    partition_expression = refused_property("Lance datasets are not partitioned")
    join = refused("datasets cannot be joined; join tables: ds.to_table().join(...)")
    join_asof = refused("datasets cannot be joined; join tables: ds.to_table().join_asof(...)")
    sort_by = refused(
        "a dataset cannot be sorted in place; sort the rows of a scan: ds.scanner(order_by=...)"
    )
    replace_schema = refused(
        "the schema of a dataset cannot be replaced as a whole; use update_schema_metadata and "
        "update_field_metadata for metadata, alter_columns, add_columns and drop_columns for "
        "columns"
    )
    filter = refused(
        "a dataset cannot be filtered itself; filter the rows of a scan: ds.scanner(filter=...)"
    )

    def _with_snapshot(
        self, session: Session, snapshot: Snapshot, *, keeps_options: bool = True
    ) -> Self:
        """Return a handle of another version; of this dataset it has the same options."""
        defaults = self._default_scan_options if keeps_options else None
        return type(self).from_opened(session, snapshot, defaults)
