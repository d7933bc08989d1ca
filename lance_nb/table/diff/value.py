"""Diff: the differences between two versions, as a value that reads no more than is asked for.

======================  ===================================================================
``counts``              from the manifests, at once
``transactions``        the versions between, on both sides of the common ancestor
``schema, fragments, files, deletions, indices, config``   Arrow tables, one row per difference
``rows, cells, summary``                                   compared value by value, as far as asked
``drift``                                                  columns profiled, from a sample of rows
======================  ===================================================================

Nothing is read twice: what has been found stays with the value.

Source: issue threads about diffs of Lance datasets; behaviour is ours, pylance has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.table.diff import manifest_tables, transactions_between
from lance_nb.table.diff.columns import ColumnPair, choose_columns, pair_columns
from lance_nb.table.diff.counts import DiffCounts, count_differences
from lance_nb.table.diff.diff_text import diff_text
from lance_nb.table.diff.drift import ColumnDrift, column_drifts
from lance_nb.table.diff.ends import Ends, Past, Source, find_ends
from lance_nb.table.diff.fragment_changes import fragment_changes
from lance_nb.table.diff.fragments import FragmentMatch, match_fragments
from lance_nb.table.diff.identity import Identity, choose_identity
from lance_nb.table.diff.renames import find_renames
from lance_nb.table.diff.row_level import (
    DEFAULT_BATCH_ROWS,
    Columns,
    Compared,
    Page,
    Progress,
    RowLevel,
    RowsFound,
    RowSummary,
)
from lance_nb.table.diff.row_tables import KINDS
from lance_nb.table.snapshot import Snapshot

T = TypeVar("T")
SAMPLE_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between version ``a`` and version ``b``. Created by ``LanceDataset.diff``."""

    ends: Ends
    matched_by: Identity
    _memo: dict[str, Any] = field(default_factory=dict, compare=False)

    # --- what is compared -------------------------------------------------------------------------

    @property
    def a(self) -> tuple[str | None, int]:
        """The version compared from: (branch, version), branch None for main."""
        return self.ends.a.branch, self.ends.a.version

    @property
    def b(self) -> tuple[str | None, int]:
        """The version compared to: (branch, version), branch None for main."""
        return self.ends.b.branch, self.ends.b.version

    @property
    def ancestor(self) -> Past | None:
        """The newest version in the past of both, None if they share no known past."""
        return self.ends.ancestor

    @property
    def identity(self) -> str:
        """By what rows are matched: "stable row id", "key: id" or "row address"."""
        return self.matched_by.label

    @property
    def reason(self) -> str:
        """Why rows are matched so, and what that means."""
        return self.matched_by.reason

    # --- manifests --------------------------------------------------------------------------------

    @property
    def counts(self) -> DiffCounts:
        """Numbers of everything that differs, from the manifests."""
        return self._once("counts", self._counted)

    @property
    def transactions(self) -> pa.Table:
        """The versions between: side, branch, version, time, operation, message, description."""
        return self._once(
            "transactions",
            lambda: transactions_between.transactions_table(
                self.ends, transactions_between.versions_between(self.ends)
            ),
        )

    @property
    def schema(self) -> pa.Table:
        """The fields that differ: added, removed, renamed, changed."""
        a, b = self.ends.a.manifest.schema, self.ends.b.manifest.schema
        return self._once("schema", lambda: manifest_tables.schema_table(a, b, self.renamed))

    @property
    def fragments(self) -> pa.Table:
        """The fragments that came, went or changed."""
        return self._once("fragments", lambda: fragment_changes(self.ends, self.match).table())

    @property
    def files(self) -> pa.Table:
        """The data files that came or went."""
        return self._once("files", lambda: fragment_changes(self.ends, self.match).files())

    @property
    def deletions(self) -> pa.Table:
        """The fragments that both have and whose deleted rows differ. Reads deletion files."""
        return self._once(
            "deletions",
            lambda: transactions_between.deletions_table(
                self.ends, [one for one in self.match.changed if one.deletions_differ]
            ),
        )

    @property
    def indices(self) -> pa.Table:
        """The index segments that came, went or changed."""
        return self._once(
            "indices", lambda: manifest_tables.indices_table(self.ends.a, self.ends.b)
        )

    @property
    def config(self) -> pa.Table:
        """The settings that differ: configuration, table metadata, schema metadata."""
        return self._once(
            "config",
            lambda: manifest_tables.config_table(self.ends.a.manifest, self.ends.b.manifest),
        )

    @property
    def match(self) -> FragmentMatch:
        """Which fragments are the same."""
        return self._once("match", lambda: match_fragments(self.ends.a, self.ends.b))

    @property
    def renamed(self) -> dict[str, str]:
        """The old path of each field of ``b`` that had another one in ``a``."""
        return self._once("renamed", lambda: find_renames(self.ends))

    @property
    def column_pairs(self) -> tuple[ColumnPair, ...]:
        """The top-level columns of both versions, paired."""
        a, b = self.ends.a.manifest.schema, self.ends.b.manifest.schema
        return self._once("pairs", lambda: pair_columns(a, b, self.renamed))

    # --- rows -------------------------------------------------------------------------------------

    def summary(
        self,
        columns: Columns = None,
        *,
        new_columns: bool = False,
        progress: Progress | None = None,
    ) -> RowSummary:
        """Count the rows added, removed and changed, exactly: compares all that may differ.

        ``columns`` limits what is compared; ``new_columns`` takes the values of a column that only
        ``b`` has for changes from null. ``progress`` gets (rows compared, rows to compare). Raises
        ColumnNotFoundError, InvalidInputError for a key that does not tell rows apart.
        """
        return self._rows.summary(columns, new_columns, progress)

    def rows(
        self,
        columns: Columns = None,
        limit: int | None = None,
        offset: int = 0,
        *,
        kinds: Sequence[str] = KINDS,
        new_columns: bool = False,
        show: Columns = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
    ) -> pa.RecordBatchReader:
        """Read the rows that differ as an Arrow stream; ``.read_all()`` makes it a table.

        ``kinds`` ("changed", "added", "removed") come one after the other. Columns and values: see
        lance_nb.table.diff.row_tables; ``columns`` limits what counts as a change and, unless
        ``show`` names others, what is shown. Rows are compared as far as the stream is read, and
        what was found is kept.
        """
        page, compared = Page(limit, offset, batch_size), Compared(columns, new_columns)
        return self._rows.rows(compared, kinds, page, show)

    def cells(
        self,
        columns: Columns = None,
        limit: int | None = None,
        offset: int = 0,
        *,
        new_columns: bool = False,
        show: Columns = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
    ) -> pa.RecordBatchReader:
        """Read the changed rows as an Arrow stream of ``struct<old, new>`` per column.

        First come the columns that tell which row it is. A cell that has not changed is null. The
        rows are those of ``rows(kinds="changed")``, in the same order; ``show`` names those of the
        ``columns`` compared that are wanted.
        """
        page = Page(limit, offset, batch_size)
        return self._rows.cells(Compared(columns, new_columns), page, show)

    def found(self, columns: Columns = None, *, new_columns: bool = False) -> RowsFound:
        """Tell what is known of the rows so far, without comparing any."""
        return self._rows.found(Compared(columns, new_columns))

    def compare(
        self,
        upto: int,
        columns: Columns = None,
        *,
        new_columns: bool = False,
        progress: Progress | None = None,
    ) -> RowsFound:
        """Compare until ``upto`` changed rows are found, or all are; tell what is known then.

        ``progress`` gets (rows compared, rows to compare); what it raises ends the comparison, and
        what was found until then is kept.
        """
        compared = Compared(columns, new_columns)
        self._rows.compare(compared, upto, progress)
        return self._rows.found(compared)

    def drift(
        self,
        columns: Columns = None,
        *,
        sample: int = SAMPLE_ROWS,
        exact: bool = False,
        progress: Progress | None = None,
    ) -> tuple[ColumnDrift, ...]:
        """Profile the columns that both versions have, from a sample of rows or, exactly, all.

        ``progress`` gets (columns done, columns). Raises ColumnNotFoundError, InvalidInputError.
        """
        if sample <= 0:
            raise InvalidInputError(f"sample must be positive, got {sample}")
        pairs = choose_columns(self.column_pairs, columns)
        return column_drifts(self.ends, pairs, None if exact else sample, progress)

    def both_sides(
        self, columns: Columns = None, batch_size: int = DEFAULT_BATCH_ROWS
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield changed rows as they were and as they are, batch by batch, side by side."""
        return self._rows.both_sides(columns, Page(None, 0, batch_size))

    def removed_row_ids(self) -> np.ndarray:
        """Return the stable row ids of the rows that were removed (uint64)."""
        return self._rows.removed_row_ids()

    # --- text -------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return diff_text(self.ends, self.counts, self.identity)

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _rows(self) -> RowLevel:
        return self._once(
            "rows", lambda: RowLevel(self.ends, self.match, self.column_pairs, self.matched_by)
        )

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """Return what was made under that name before, or make it now."""
        if name not in self._memo:
            self._memo[name] = make()
        return cast("T", self._memo[name])

    def _counted(self) -> DiffCounts:
        return count_differences(self.ends, self.match, self.schema, self.config)


def make_diff(
    source: Source, a: Snapshot, b: Snapshot, key: Sequence[str] | str | None = None
) -> Diff:
    """Compare two versions. Raises InvalidInputError, ColumnNotFoundError for a bad key."""
    return Diff(find_ends(source, a, b), choose_identity(a, b, key))
