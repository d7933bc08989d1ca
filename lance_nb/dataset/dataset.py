"""LanceDataset: one version of a dataset, the object that users hold.

Names, arguments and behaviour follow pylance 14.0.2 wherever the concept is the same. What pylance
lacks has a name of its own (``history``, ``version_info``, ``inspect``, ``transaction``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.dataset import display
from lance_nb.dataset.fragment import LanceFragment
from lance_nb.dataset.inspection import Inspection
from lance_nb.dataset.refs import Branches, Tags
from lance_nb.dataset.scanner import LanceScanner, ScanOptions, check_unused
from lance_nb.dataset.session import Session
from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import TransactionSummary
from lance_nb.table.blobs import BlobFile, open_blobs
from lance_nb.table.history import VersionInfo
from lance_nb.table.indices import IndexDescription, describe_indices, list_indices
from lance_nb.table.projection import project_nested
from lance_nb.table.refs import Ref, resolve
from lance_nb.table.row_id_index import choose_positions, positions_of_ids
from lance_nb.table.scan_plan import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.table.take import take_rows


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Counts of one version, from its manifest alone."""

    num_rows: int
    num_deleted_rows: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int


class LanceDataset:
    """A dataset at one version. Create one with ``lance_nb.dataset(uri)``."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot

    # --- what it is -------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Root of the dataset (the same on every branch)."""
        return self._session.root.uri

    @property
    def name(self) -> str:
        """Last part of the URI."""
        return self.uri.rstrip("/").rpartition("/")[2] or self.uri

    @property
    def branch(self) -> str | None:
        """Name of the branch, None on main."""
        return self._snapshot.branch

    @property
    def version(self) -> int:
        """Number of this version."""
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """Number of the newest version of this branch, looked up now."""
        return self._session.log(self.branch).latest()

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema."""
        return self.lance_schema.to_arrow()

    @property
    def lance_schema(self) -> Schema:
        """Schema with field ids."""
        return self._snapshot.manifest.schema

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
            self.count_rows(),
            int(counts.num_deleted_rows.sum()),
            len(counts.ids),
            int(counts.num_data_files.sum()),
            int(counts.num_deletion_files.sum()),
            int(counts.size_bytes.sum()),
        )

    def list_indices(self) -> list[dict[str, Any]]:
        """List the segments of the secondary indices of this version, as pylance does."""
        return list_indices(self._snapshot)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe every index with all its segments: type, fields, rows and fragments covered."""
        return describe_indices(self._snapshot)

    # --- versions and refs
    # --------------------------------------------------------------------------

    def versions(self) -> list[dict[str, Any]]:
        """List all versions of this branch as pylance does: number, local time, counts."""
        log = self._session.log(self.branch)
        return [log.as_pylance(number) for number in log.numbers()]

    def version_numbers(self) -> list[int]:
        """List the version numbers of this branch, oldest first; reads no manifest."""
        return self._session.log(self.branch).numbers()

    def version_info(self, version: int) -> VersionInfo:
        """Describe one version of this branch. Raises VersionNotFoundError."""
        return self._session.log(self.branch).describe(version, self.tags.list())

    def history(self, limit: int | None = None, before: int | None = None) -> list[VersionInfo]:
        """Describe versions, newest first: ``limit`` of them, older than ``before``.

        Reads as many manifests as it returns, and none twice.
        """
        tags = self.tags.list()
        log = self._session.log(self.branch)
        numbers = [n for n in reversed(log.numbers()) if before is None or n < before]
        return [log.describe(number, tags) for number in numbers[:limit]]

    def transaction(self, version: int | None = None) -> TransactionSummary | None:
        """Describe the change that made a version (this one by default), None if not recorded."""
        return self._session.log(self.branch).transaction(version or self.version)

    @property
    def tags(self) -> Tags:
        """The dataset's tags."""
        return Tags(self._session.root)

    @property
    def branches(self) -> Branches:
        """The dataset's branches (main has no entry)."""
        return Branches(self._session.root)

    def checkout_version(self, version: Ref) -> LanceDataset:
        """Return the dataset at another version.

        ``version`` is a number on this branch, a tag, or ``(branch, version)`` with None for main
        and for the latest. Raises VersionNotFoundError, RefNotFoundError.
        """
        target = resolve(self._session.root, version, self.branch)
        return LanceDataset(self._session, self._session.load(target))

    def checkout_latest(self) -> LanceDataset:
        """Return the newest version of this branch."""
        return self.checkout_version((self.branch, None))

    # --- rows
    # ---------------------------------------------------------------------------------------

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """Count the rows, from the manifest; with a filter, those that pass it."""
        if filter is None and not options:
            return int(live_counts(self._snapshot).sum())
        return self.scanner([], filter, **options).count_rows()

    def __len__(self) -> int:
        return self.count_rows()

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        *,
        batch_size: int | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        order_by: Any = None,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        include_deleted_rows: bool | None = None,
        strict_batch_size: bool | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **unused: Any,
    ) -> LanceScanner:
        """Describe a scan; nothing is read until its result is asked for.

        ``columns``: names, or a dict of name to SQL expression. ``filter``: SQL text or a pyarrow
        expression; it accepts more than pylance's (see lance_nb.table.predicate). ``nearest``: an
        exact vector search (see lance_nb.table.nearest), before the filter unless ``prefilter``.
        Arguments of pylance's that cannot change the result are accepted; others are refused.
        Raises PredicateError, ColumnNotFoundError, InvalidInputError, NotSupportedError.
        """
        check_unused(unused)
        only = None if fragments is None else tuple(one.metadata for one in fragments)
        options = ScanOptions(
            columns, filter, limit, offset, nearest, batch_size, bool(with_row_id),
            bool(with_row_address), only, bool(prefilter), bool(include_deleted_rows),
            bool(strict_batch_size), order_by, not disable_scoring_autoprojection,
        )  # fmt: skip
        return LanceScanner(self._snapshot, options)

    def to_table(
        self, columns: Sequence[str] | Mapping[str, str] | None = None, *args: Any, **options: Any
    ) -> pa.Table:
        """Read rows into a table; arguments as for ``scanner``."""
        return self.scanner(columns, *args, **options).to_table()

    def to_batches(
        self, columns: Sequence[str] | Mapping[str, str] | None = None, *args: Any, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch in bounded memory; arguments as for ``scanner``."""
        return self.scanner(columns, *args, **options).to_batches()

    def to_pandas(self, *args: Any, **options: Any) -> Any:
        """Read rows into a pandas DataFrame; arguments as for ``scanner``."""
        return self.scanner(*args, **options).to_pandas()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Read the first rows; options as for ``scanner``."""
        return self.scanner(limit=num_rows, **options).to_table()

    def take(
        self, indices: Sequence[int] | pa.Array | np.ndarray, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Read the rows at the given positions, in that order, repeats included.

        Nested columns stay inside their structs. Unlike pylance, a position that does not exist is
        always an InvalidInputError.
        """
        return take_rows(self._snapshot, project_nested(self.lance_schema, columns), indices)

    def take_rows(
        self, row_ids: Sequence[int] | pa.Array | np.ndarray, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Read rows by row id (``_rowid``), in that order; ids that are gone are left out."""
        return self.take(positions_of_ids(self._snapshot, row_ids), columns)

    def take_blobs(
        self,
        blob_column: str,
        ids: Sequence[int] | pa.Array | None = None,
        addresses: Sequence[int] | pa.Array | None = None,
        indices: Sequence[int] | pa.Array | np.ndarray | None = None,
    ) -> list[BlobFile | None]:
        """Open the blobs of some rows as files; None for a null blob.

        Rows are given by row id, by row address or by position. Nothing but descriptions is read
        until a file is. Raises InvalidInputError.
        """
        positions = choose_positions(self._snapshot, ids, addresses, indices)
        return open_blobs(self._snapshot, blob_column, positions)

    def sample(
        self,
        num_rows: int,
        columns: Sequence[str] | None = None,
        randomize_order: bool = True,
        *,
        seed: int | None = None,
    ) -> pa.Table:
        """Read ``num_rows`` different rows picked at random (repeatable with a ``seed``)."""
        total = self.count_rows()
        if not 0 <= num_rows <= total:
            raise InvalidInputError(f"cannot sample {num_rows} of {total} rows")
        picked = np.random.default_rng(seed).choice(total, num_rows, replace=False)
        return self.take(picked if randomize_order else np.sort(picked), columns)

    def get_fragments(self) -> list[LanceFragment]:
        """List the fragments in scan order."""
        return [LanceFragment(self, one) for one in self._snapshot.manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment with that id, None if there is none."""
        fragments = self._snapshot.manifest.fragments
        position = fragments.position_of(fragment_id)
        return None if position is None else LanceFragment(self, fragments[position])

    @property
    def inspect(self) -> Inspection:
        """Arrow tables about versions, fragments, files, columns and pages."""
        return Inspection(self._snapshot, self._session.log(self.branch), self.tags.list)

    # --- interchange and display
    # --------------------------------------------------------------------

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer all rows as an Arrow stream (pandas, polars, duckdb, pyarrow read it)."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        where = f"{self.branch or 'main'}:{self.version}"
        return f"<lance_nb.LanceDataset {self.uri!r} at {where}>"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any] | None:
        return display.mime_bundle(self)
