"""LanceScanner: a scan that is described once and read in the form one likes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from lance_nb import table
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import BLOB_KEY, BLOB_V2_EXTENSION
from lance_nb.table.plain_scan import PlainScan, plan_plain
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.table.blob_scan import BlobScan
    from lance_nb.table.scan_request import ScanRequest

__all__ = ["LanceScanner", "ScanOptions", "check_unused"]

# Arguments of pylance's scanner that tune how it works and cannot change what it returns.
_WITHOUT_EFFECT = frozenset({
    "batch_size_bytes", "batch_readahead", "fragment_readahead", "scan_in_order", "use_stats",
    "io_buffer_size", "late_materialization", "use_scalar_index", "scan_stats_callback",
})  # fmt: skip
# Arguments that would change the result, and what to do instead.
_REFUSED = {
    "full_text_query": "full-text search needs an index; filter with LIKE, ILIKE or regexp_like",
    "fast_search": "no index is used here, so that every row is searched; leave fast_search out",
    "index_segments": "no index is used here; leave index_segments out",
    "row_addr_allowlist": "filter by _rowaddr instead: filter='_rowaddr IN (...)'",
    "row_addr_blocklist": "filter by _rowaddr instead: filter='_rowaddr NOT IN (...)'",
    "substrait_aggregate": "aggregate the table that the scan returns",
}
BLOB_MODES = ("lazy", "bytes", "descriptions")
BLOB_HANDLING = ("all_binary", "all_descriptions", "blobs_descriptions")


def is_unused(name: str) -> bool:
    """Tell whether an argument is one of pylance's that ``check_unused`` judges."""
    return name in _WITHOUT_EFFECT or name in _REFUSED


def check_unused(options: dict[str, Any]) -> None:
    """Refuse arguments that are unknown, or that would change the result if they worked."""
    for name, value in options.items():
        if name in _WITHOUT_EFFECT:
            continue
        if name not in _REFUSED:
            raise InvalidInputError(f"a scan takes no argument {name!r}")
        if value:
            raise NotSupportedError(f"{name} is not supported: {_REFUSED[name]}")


def reads_payloads(blob_handling: str | None) -> bool:
    """Tell whether a scan is to return the payloads of blobs, not their descriptions."""
    if blob_handling not in (None, *BLOB_HANDLING):
        raise InvalidInputError(
            f"Invalid blob_handling: {blob_handling}. Expected one of: {', '.join(BLOB_HANDLING)}"
        )
    return blob_handling == "all_binary"


class LanceScanner:
    """A planned read of one version. Created by ``LanceDataset.scanner``."""

    def __init__(self, version: OpenedVersion, options: ScanOptions) -> None:
        self._version = version
        self._options = options
        self._plan: PlainScan | ScanRequest | BlobScan | None = _planned(version, options)

    def __copy__(self) -> LanceScanner:
        return LanceScanner(self._version, self._options)

    def __deepcopy__(self, memo: object) -> LanceScanner:
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self._version, self._options)

    @property
    def _snapshot(self) -> Snapshot:
        return self._version.opened[1]

    @property
    def _request(self) -> PlainScan | ScanRequest | BlobScan:
        if self._plan is None:  # it was unpickled
            self._plan = _planned(self._version, self._options)
        return self._plan

    @property
    def projected_schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return self._request.schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Arrow schema of the dataset."""
        return self._snapshot.manifest.schema.to_arrow()

    def to_table(self) -> pa.Table:
        """Read everything into one table."""
        return self._request.table()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch (8,192 rows unless ``batch_size`` says otherwise)."""
        return self._request.batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Read batch by batch behind pyarrow's reader interface."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_pandas(self, *, blob_mode: str = "lazy", **options: Any) -> Any:
        """Read everything into a pandas DataFrame; options as for ``pyarrow.Table.to_pandas``.

        ``blob_mode``: blobs at the top come as ``BlobFile`` ("lazy") or all as "bytes" or as
        "descriptions". Raises InvalidInputError for another one.
        """
        if blob_mode not in BLOB_MODES:
            raise InvalidInputError(f"blob_mode is one of {', '.join(BLOB_MODES)}, not {blob_mode}")
        if self._options.blob_payloads or blob_mode == "descriptions":
            return self.to_table().to_pandas(**options)
        if not self._shows_blobs():
            return self.to_table().to_pandas(**options)
        if blob_mode == "bytes":
            payloads = replace(self._options, blob_payloads=True)
            return LanceScanner(self._version, payloads).to_table().to_pandas(**options)
        rows, files = table.blob_scan.with_files(self._snapshot, self._options)
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

    def scan_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch; pyarrow's name for ``to_batches``."""
        return self.to_batches()

    def take(self, indices: Any) -> NoReturn:
        """Raise NotSupportedError: a scan is read in its order; use ``LanceDataset.take``."""
        raise NotSupportedError("a scan is read in its order; rows are taken by dataset.take()")

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan and tell how many rows it returned, after its plan."""
        number = self.count_rows() if count_rows else sum(one.num_rows for one in self.to_batches())
        return f"{self.explain_plan()}\n  rows: {number}"

    def head(self, num_rows: int) -> pa.Table:
        """Read everything and return the first rows."""
        return self.to_table().slice(0, num_rows)

    def count_rows(self) -> int:
        """Count the rows of the result, decoding the filter's columns only.

        Raises InvalidInputError under a limit or an offset.
        """
        return self._countable().count()

    def explain_plan(self, verbose: bool = False) -> str:
        """Tell which columns are decoded first and which for the rows that are left."""
        return self._countable().explain()

    def _countable(self) -> ScanRequest | BlobScan:
        """Return the plan that can be counted and explained."""
        if isinstance(self._request, PlainScan):
            return table.scan_request.plan_request(self._snapshot, self._options)
        return self._request

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer the result as an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def _planned(version: OpenedVersion, options: ScanOptions) -> PlainScan | ScanRequest | BlobScan:
    snapshot = version.opened[1]
    if options.blob_payloads:
        return table.blob_scan.plan_blob_scan(snapshot, options)
    if options.is_plain:
        return plan_plain(snapshot, options)
    return table.scan_request.plan_request(snapshot, options)


def _restored(
    kind: type[LanceScanner], version: OpenedVersion, options: ScanOptions
) -> LanceScanner:
    """Return a scan that is planned, on a version that is opened, when it is first used."""
    made = kind.__new__(kind)
    made._version, made._options, made._plan = version, options, None  # noqa: SLF001
    return made
