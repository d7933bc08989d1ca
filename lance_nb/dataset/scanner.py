"""LanceScanner: a planned scan that can be read as a table, as batches or as a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from lance_nb.dataset.refused import refused
from lance_nb.errors import InvalidInputError
from lance_nb.format.blob_fields import BLOB_KEY, BLOB_V2_EXTENSION
from lance_nb.session.opened import OpenedVersion
from lance_nb.storage import meter
from lance_nb.table.scan_plan import ScanOptions, ScanPlan, plan_scan
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.blob_scan import BlobScan

__all__ = ["BlobHandling", "LanceScanner", "ScanOptions", "ScanStatistics"]

BLOB_MODES = ("lazy", "bytes", "descriptions")
BLOB_HANDLING = ("all_binary", "all_descriptions", "blobs_descriptions")


BlobHandling: TypeAlias = Literal["all_binary", "blobs_descriptions", "all_descriptions"]


@dataclass(frozen=True, slots=True)
class ScanStatistics:
    """The cost of a scan, for ``scan_stats_callback``.

    ``iops`` and ``requests`` are reads of the store, ``bytes_read`` the bytes that they returned;
    reads of others that ran meanwhile in this process are counted too. What is said of indices is
    0: their reads are counted with the others. ``all_counts``: "rows_returned"; ``all_times``:
    "elapsed", in nanoseconds.

    Examples:
        >>> costs = []
        >>> _ = ds.to_table(["id"], scan_stats_callback=costs.append)
        >>> costs[0].all_counts["rows_returned"]
        10
    """

    iops: int = 0
    requests: int = 0
    bytes_read: int = 0
    indices_loaded: int = 0
    parts_loaded: int = 0
    index_comparisons: int = 0
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: Mapping[str, int] = field(default_factory=dict)
    all_times: Mapping[str, int] = field(default_factory=dict)


class LanceScanner:
    """A planned read of one version. Created by ``LanceDataset.scanner``.

    ``on_statistics`` is called when the rows have been read; a pickled scanner is without it.

    Examples:
        >>> scanner = ds.scanner(columns=["id"], filter="id > 7")
        >>> scanner.count_rows(), scanner.to_table().to_pydict()
        (2, {'id': [8, 9]})
    """

    def __init__(
        self,
        version: OpenedVersion,
        options: ScanOptions,
        on_statistics: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        self._version = version
        self._options = options
        self._on_statistics = on_statistics
        self._plan: ScanPlan | BlobScan | None = _planned(version, options)

    def __copy__(self) -> LanceScanner:
        return LanceScanner(self._version, self._options, self._on_statistics)

    def __deepcopy__(self, memo: object) -> LanceScanner:
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self._version, self._options)

    @property
    def _snapshot(self) -> Snapshot:
        return self._version.opened[1]

    @property
    def _scan_plan(self) -> ScanPlan | BlobScan:
        if self._plan is None:  # it was unpickled
            self._plan = _planned(self._version, self._options)
        return self._plan

    @property
    def projected_schema(self) -> pa.Schema:
        """Arrow schema of the result.

        Examples:
            >>> ds.scanner(columns={"twice": "id * 2"}).projected_schema.names
            ['twice']
        """
        return self._scan_plan.schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Arrow schema of the dataset.

        Examples:
            >>> ds.scanner(columns=["id"]).dataset_schema.names
            ['id', 'label', 'vector']
        """
        return self._version.schema

    def to_table(self) -> pa.Table:
        """Read everything into one table.

        Raises CorruptFileError, StorageError, PredicateError (a value that an expression cannot
        take).

        Examples:
            >>> ds.scanner(columns=["id"], limit=2).to_table().to_pydict()
            {'id': [0, 1]}
        """
        if self._on_statistics is None:
            return self._scan_plan.table()
        before = _Costs()
        rows = self._scan_plan.table()
        self._on_statistics(before.since(rows.num_rows))
        return rows

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch: 8,192 rows unless ``batch_size`` says otherwise.

        Raises as ``to_table``.

        Examples:
            >>> [batch.num_rows for batch in ds.scanner(batch_size=4).to_batches()]
            [4, 1, 4, 1]
        """
        if self._on_statistics is None:
            return self._scan_plan.batches()
        return self._counted(self._scan_plan.batches(), self._on_statistics)

    def _counted(
        self,
        batches: Iterator[pa.RecordBatch],
        on_statistics: Callable[[ScanStatistics], object],
    ) -> Iterator[pa.RecordBatch]:
        before, num_rows = _Costs(), 0
        for batch in batches:
            num_rows += batch.num_rows
            yield batch
        on_statistics(before.since(num_rows))

    def to_reader(self) -> pa.RecordBatchReader:
        """Read batch by batch behind pyarrow's reader interface. Raises as ``to_table``.

        Examples:
            >>> ds.scanner(columns=["id"]).to_reader().read_all().num_rows
            10
        """
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_pandas(
        self,
        *,
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
        """Read everything into a pandas DataFrame.

        Args:
            blob_mode: how blobs at the top come: as ``BlobFile`` ("lazy"), or all as "bytes" or as
                "descriptions".

        The arguments from ``memory_pool`` on are those of ``pyarrow.Table.to_pandas``. Raises
        InvalidInputError for another ``blob_mode``.

        Examples:
            >>> ds.scanner(columns=["id"], limit=2).to_pandas().shape
            (2, 1)
        """
        options = locals()
        del options["self"], options["blob_mode"]
        if blob_mode not in BLOB_MODES:
            raise InvalidInputError(
                f"blob_mode must be one of {', '.join(BLOB_MODES)}, not {blob_mode}"
            )
        if self._options.blob_payloads or blob_mode == "descriptions":
            return self.to_table().to_pandas(**options)
        if not self._shows_blobs():
            return self.to_table().to_pandas(**options)
        if blob_mode == "bytes":
            payloads = replace(self._options, blob_payloads=True)
            return LanceScanner(self._version, payloads).to_table().to_pandas(**options)
        from lance_nb.table.blob_scan import with_files

        rows, files = with_files(self._snapshot, self._options)
        frame = rows.to_pandas(**options)
        for name, opened in files.items():
            frame[name] = opened
        return frame

    def _shows_blobs(self) -> bool:
        """Tell whether a column of the result may be one of blobs, without loading their module."""
        schema = self._snapshot.manifest.schema
        return any(
            BLOB_KEY.encode() in (field.metadata or {}) for field in self.projected_schema
        ) or any(field.extension_name == BLOB_V2_EXTENSION for field in schema.walk())

    from_dataset = refused("create a scanner with dataset.scanner()")
    from_fragment = refused("create a scanner with fragment.scanner()")
    from_batches = refused(
        "a scanner reads a dataset, not batches; filter batches with "
        "pyarrow.dataset.Scanner.from_batches, or write them to a dataset first"
    )

    def scan_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch; pyarrow's name for ``to_batches``.

        Examples:
            >>> sum(batch.num_rows for batch in ds.scanner().scan_batches())
            10
        """
        return self.to_batches()

    take = refused("a scan is read in order; take rows by position with dataset.take()")

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan; return its plan and the number of rows.

        Args:
            count_rows: count the rows instead of reading them.

        Examples:
            >>> print(ds.scanner(columns=["id"], filter="id > 7").analyze_plan())
            LanceScan: version 1, 2 fragments
              filter: id > 7
              decoded first, for every row: id
              decoded for the rows that are left: nothing
              result: id
              rows: 2
        """
        number = (
            self.count_rows() if count_rows else sum(batch.num_rows for batch in self.to_batches())
        )
        plan = self._scan_plan
        steps = plan.found_by_indices() if isinstance(plan, ScanPlan) else []
        return "\n".join(
            [self.explain_plan(), *(f"  {step}" for step in steps), f"  rows: {number}"]
        )

    def head(self, num_rows: int) -> pa.Table:
        """Read the first rows of the result.

        Args:
            num_rows: how many rows; fewer come where there are fewer.

        Examples:
            >>> ds.scanner(columns=["id"]).head(2).to_pydict()
            {'id': [0, 1]}
        """
        return self.to_table().slice(0, num_rows)

    def count_rows(self) -> int:
        """Count the rows of the result, decoding the filter's columns only.

        Raises InvalidInputError under a limit or an offset.

        Examples:
            >>> ds.scanner(filter="id > 7").count_rows()
            2
        """
        return self._scan_plan.count()

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe which columns are decoded first, and which only for the selected rows.

        Args:
            verbose: no effect.

        Examples:
            >>> print(ds.scanner(columns=["label"], filter="id > 7").explain_plan())
            LanceScan: version 1, 2 fragments
              filter: id > 7
              decoded first, for every row: id
              decoded for the rows that are left: label
              result: label
        """
        return self._scan_plan.explain()

    def word_places(self, column: str, text: str) -> list[tuple[int, int]]:
        """Return where words of the full-text query stand in a text, to mark them.

        Args:
            column: the column of the text; the words are cut as its index does.
            text: the text.

        Words that a fuzzy query stands for are known when the rows have been read. Not in pylance.
        Raises InvalidInputError without a full-text query in this column.

        Examples:
            >>> scan = ds.scanner(full_text_query=lance_nb.MatchQuery("fox", "label"))
            >>> scan.word_places("label", "The quick Fox")
            [(10, 13)]
        """
        plan = self._scan_plan
        search = plan.text if isinstance(plan, ScanPlan) else None
        if search is None or column not in search.columns:
            raise InvalidInputError(f"the scan has no full-text query in column {column!r}")
        return search.places(column, text)

    @property
    def searched_columns(self) -> list[str]:
        """The columns that the full-text query searches; none without one. Not in pylance.

        Examples:
            >>> ds.scanner(full_text_query=lance_nb.MatchQuery("fox", "label")).searched_columns
            ['label']
        """
        plan = self._scan_plan
        return plan.text.columns if isinstance(plan, ScanPlan) and plan.text is not None else []

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer the result as an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


class _Costs:
    """What this process had read, and the time, when a scan began."""

    def __init__(self) -> None:
        self._before = meter.totals()
        self._started_ns = time.perf_counter_ns()

    def since(self, num_rows: int) -> ScanStatistics:
        """Return the cost of a scan that has returned ``num_rows`` rows so far."""
        now, before = meter.totals(), self._before
        reads = now.read_requests - before.read_requests
        return ScanStatistics(
            reads,
            reads,
            now.read_bytes - before.read_bytes,
            all_counts={"rows_returned": num_rows},
            all_times={"elapsed": time.perf_counter_ns() - self._started_ns},
        )


def _planned(version: OpenedVersion, options: ScanOptions) -> ScanPlan | BlobScan:
    snapshot = version.opened[1]
    if options.blob_payloads:
        from lance_nb.table.blob_scan import plan_blob_scan

        return plan_blob_scan(snapshot, options)
    search = text = None
    has_indices = snapshot.manifest.index_section is not None
    if has_indices and options.use_scalar_index and options.filter is not None:
        from lance_nb.indices.search import scalar_search  # takes longer to import than a filter

        search = scalar_search(snapshot)
    vectors = None
    if options.nearest is not None:
        from lance_nb.indices.vectors.search import vector_search  # needed by nearest only

        vectors = vector_search(snapshot)
    if options.full_text_query is not None:
        from lance_nb.indices.texts.search import plan_text  # needed by full-text queries only

        text = plan_text(snapshot, options.full_text_query, fast_search=options.fast_search)
    return plan_scan(snapshot, options, search, vectors=vectors, text=text)


def _restored(
    kind: type[LanceScanner], version: OpenedVersion, options: ScanOptions
) -> LanceScanner:
    """Return a scan that is planned, on a version that is opened, when it is first used."""
    restored = kind.__new__(kind)
    restored._version, restored._options, restored._plan = version, options, None  # noqa: SLF001
    restored._on_statistics = None  # noqa: SLF001
    return restored
