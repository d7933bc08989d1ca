"""Verbs that read rows in scan order: scanner, tables, batches, counts."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.dataset.fragment import LanceFragment
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.dataset.scanner import (
    LanceScanner,
    ScanOptions,
    check_unused,
    is_unused,
    reads_payloads,
)
from lance_nb.dataset.sql import SqlQueryBuilder
from lance_nb.errors import InvalidInputError
from lance_nb.table.scan_plan import live_counts


class Reading(OpenedVersion):
    """Rows of a version, in scan order."""

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
        blob_handling: str | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        order_by: Any = None,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        include_deleted_rows: bool | None = None,
        strict_batch_size: bool | None = None,
        disable_scoring_autoprojection: bool | None = None,
        keep_dictionaries: bool = False,
        **unused: Any,
    ) -> LanceScanner:
        """Describe a scan; nothing is read until its result is asked for.

        ``columns``: names, or a dict of name to SQL expression. ``filter``: SQL text or a pyarrow
        expression; it accepts more than pylance's (see lance_nb.table.predicate). ``nearest``: an
        exact vector search (see lance_nb.table.nearest), before the filter unless ``prefilter``.
        ``blob_handling="all_binary"`` returns the payloads of blobs, not their descriptions.
        ``keep_dictionaries`` is our own: top-level columns of strings and bytes come as Arrow
        dictionaries, which costs nothing where they are stored so (few distinct values) and a pass
        over the values where they are not; each chunk has a dictionary of its own
        (``pyarrow.Table.unify_dictionaries`` makes them one).
        Arguments of pylance's that cannot change the result are accepted; others are refused.
        Raises PredicateError, ColumnNotFoundError, InvalidInputError, NotSupportedError.
        """
        check_unused(unused)
        only = None if fragments is None else tuple(one.metadata for one in fragments)
        options = ScanOptions(
            columns, filter, limit, offset, nearest, batch_size, bool(with_row_id),
            bool(with_row_address), only, bool(prefilter), bool(include_deleted_rows),
            bool(strict_batch_size), order_by, not disable_scoring_autoprojection,
            reads_payloads(blob_handling),
            keep_dictionaries=bool(keep_dictionaries),
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

    def to_pandas(self, *args: Any, blob_mode: str = "lazy", **options: Any) -> Any:
        """Read rows into a pandas DataFrame; arguments as for ``scanner``.

        ``blob_mode`` says how blobs come: as files ("lazy"), as "bytes" or as "descriptions".
        Arguments that the scanner does not know go to ``pyarrow.Table.to_pandas``.
        """
        known = inspect.signature(Reading.scanner).parameters
        mine = {name: one for name, one in options.items() if name in known or is_unused(name)}
        others = {name: one for name, one in options.items() if name not in mine}
        return self.scanner(*args, **mine).to_pandas(blob_mode=blob_mode, **others)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Read the first rows; options as for ``scanner``."""
        return self.scanner(limit=num_rows, **options).to_table()

    def slice(
        self, start: int, end: int, columns: Sequence[str] | Mapping[str, str] | None = None
    ) -> pa.Table:
        """Read the rows from position ``start`` up to ``end``. Raises InvalidInputError."""
        if start < 0:
            raise InvalidInputError(f"start must be non-negative, got {start}")
        if end < start:
            raise InvalidInputError(f"end ({end}) must be >= start ({start})")
        return self.scanner(columns, offset=start, limit=end - start).to_table()

    def sql(self, sql: str) -> SqlQueryBuilder:
        """Ask this version, a table named ``dataset``, in DuckDB's SQL; see lance_nb.dataset.sql.

        ``.build().to_batch_records()`` runs it.
        """
        return SqlQueryBuilder(self, sql)

    def fragment_ids(self) -> list[int]:
        """List the ids of the fragments, ascending. pylance returns them as a set of its own."""
        return sorted(self._snapshot.manifest.fragments.counts().ids.tolist())

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """List the fragments in scan order. Raises InvalidInputError for a ``filter``."""
        if filter is not None:
            raise InvalidInputError("get_fragments() does not support filter yet")
        return [LanceFragment(self, one) for one in self._snapshot.manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment with that id, None if there is none."""
        fragments = self._snapshot.manifest.fragments
        position = fragments.position_of(fragment_id)
        return None if position is None else LanceFragment(self, fragments[position])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer all rows as an Arrow stream (pandas, polars, duckdb, pyarrow read it)."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)
