"""The row and cell levels of a diff: what is asked of them, and what has been worked out so far.

Source: our own; plan.py, matching.py and changed.py do the work, row_tables.py shows it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.table.diff.changed import Comparison
from lance_nb.table.diff.columns import ColumnPair, choose_columns
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.fragments import FragmentMatch
from lance_nb.table.diff.identity import Identity, has_row_ids
from lance_nb.table.diff.matching import MatchedRows, match_rows
from lance_nb.table.diff.plan import RowPlan, plan_rows
from lance_nb.table.diff.row_tables import (
    ADDED,
    CHANGED,
    KINDS,
    CellView,
    RowView,
    changed_batches,
    changed_sides,
    placed_batches,
)

DEFAULT_BATCH_ROWS = 8192
Columns = Sequence[str] | str | None
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class RowSummary:
    """Exact numbers of rows; ``cells`` counts the changed cells of each column that has some."""

    added: int
    removed: int
    changed: int
    cells: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RowsFound:
    """What is known of the rows so far: ``added`` and ``removed`` are exact.

    ``changed`` is final when ``is_finished``; ``compared`` of ``to_compare`` rows were looked at.
    """

    added: int
    removed: int
    changed: int
    is_finished: bool
    compared: int
    to_compare: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Which columns are compared: names (None: all), and whether new columns count."""

    columns: Columns
    new_columns: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows of a level are wanted. ``limit`` None: all that are left."""

    limit: int | None = None
    offset: int = 0
    batch_size: int = DEFAULT_BATCH_ROWS

    def check(self) -> None:
        """Raise InvalidInputError for numbers that make no sense."""
        for name, value in (("limit", self.limit), ("offset", self.offset)):
            if value is not None and value < 0:
                raise InvalidInputError(f"{name} must not be negative, got {value}")
        if self.batch_size <= 0:
            raise InvalidInputError(f"batch_size must be positive, got {self.batch_size}")


class RowLevel:
    """The rows of a diff. Made once per diff; safe for several threads."""

    def __init__(
        self, ends: Ends, match: FragmentMatch, pairs: tuple[ColumnPair, ...], identity: Identity
    ) -> None:
        self._ends = ends
        self._pairs = pairs
        self._identity = identity
        self._with_ids = has_row_ids(ends.a) and has_row_ids(ends.b)
        self._plan: RowPlan = plan_rows(ends, match, pairs, identity.key)
        self._rows: MatchedRows = match_rows(ends, self._plan, identity, pairs)
        self._compared: dict[tuple[str, ...], Comparison] = {}

    def share(self, number: int, of: int) -> RowLevel:
        """Return one of ``of`` shares of about the same size: together they are all the rows."""
        part = copy.copy(self)
        part._plan = replace(self._plan, aligned=self._plan.aligned[number::of])  # noqa: SLF001
        part._rows = self._rows.share(number, of)  # noqa: SLF001
        part._compared = {}  # noqa: SLF001
        return part

    def summary(self, columns: Columns, new_columns: bool, progress: Progress | None) -> RowSummary:
        """Compare everything and count."""
        comparison = self._comparison(columns, new_columns)
        comparison.finish(progress)
        counts = comparison.changed_cells().tolist()
        cells = {
            one.name: count for one, count in zip(comparison.pairs, counts, strict=True) if count
        }
        rows = self._rows
        return RowSummary(rows.added.num_rows, rows.removed.num_rows, comparison.num_changed, cells)

    def rows(
        self, compared: Compared, kinds: Sequence[str], page: Page, show: Columns = None
    ) -> pa.RecordBatchReader:
        """Return the rows of some kinds, one kind after the other."""
        page.check()
        chosen = [kinds] if isinstance(kinds, str) else list(kinds)
        if any(one not in KINDS for one in chosen) or len(set(chosen)) != len(chosen):
            raise InvalidInputError(f"kinds are among {', '.join(KINDS)}, once each; not {kinds!r}")
        shown = choose_columns(self._pairs, compared.columns if show is None else show)
        view = RowView(self._ends, shown, self._with_ids)
        comparison = self._comparison(compared.columns, compared.new_columns)
        batches = self._batches(view, comparison, chosen, page)
        return pa.RecordBatchReader.from_batches(view.rows_schema, batches)

    def cells(self, compared: Compared, page: Page, show: Columns = None) -> pa.RecordBatchReader:
        """Return the old and new values of changed rows."""
        page.check()
        comparison = self._comparison(compared.columns, compared.new_columns)
        keys = choose_columns(self._pairs, self._identity.key)
        wanted = {one.name for one in choose_columns(self._pairs, show)}
        pairs = tuple(one for one in comparison.pairs if one.name in wanted)
        view = CellView(self._ends, pairs, keys, self._with_ids)
        stop = None if page.limit is None else page.offset + page.limit
        batches = view.batches(comparison, (page.offset, stop), page.batch_size)
        return pa.RecordBatchReader.from_batches(view.schema, batches)

    def both_sides(
        self, columns: Columns, page: Page
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield changed rows as they were and as they are."""
        page.check()
        view = RowView(self._ends, choose_columns(self._pairs, columns), self._with_ids)
        return changed_sides(view, self._comparison(columns, False), page.batch_size)

    def removed_row_ids(self) -> np.ndarray:
        """Return the stable ids of the rows that were removed."""
        return self._rows.removed.row_ids()

    def found(self, compared: Compared) -> RowsFound:
        """Tell how far the rows are known, without comparing any."""
        comparison = self._comparison(compared.columns, compared.new_columns)
        return RowsFound(
            self._rows.added.num_rows, self._rows.removed.num_rows, comparison.num_changed,
            comparison.is_finished, comparison.num_compared, comparison.num_rows,
        )  # fmt: skip

    def compare(self, compared: Compared, upto: int, progress: Progress | None) -> None:
        """Compare until ``upto`` changed rows are found, or all are."""
        for _ in self._comparison(compared.columns, compared.new_columns).rows(0, upto, progress):
            pass

    def _batches(
        self, view: RowView, comparison: Comparison, kinds: Sequence[str], page: Page
    ) -> Iterator[pa.RecordBatch]:
        start, left = page.offset, page.limit
        for kind in kinds:
            if left == 0:
                return
            shown = 0
            stop = None if left is None else start + left
            if kind == CHANGED:
                found = changed_batches(view, comparison, (start, stop), page.batch_size)
            else:
                rows = self._rows.added if kind == ADDED else self._rows.removed
                last = rows.num_rows if stop is None else min(stop, rows.num_rows)
                found = placed_batches(view, kind, rows, (start, last), page.batch_size)
            for batch in found:
                shown += batch.num_rows
                yield batch
            left = None if left is None else left - shown
            total = self._total(kind, comparison) if start and not shown else 0
            start = max(start - total, 0) if not shown else 0

    def _total(self, kind: str, comparison: Comparison) -> int:
        if kind == CHANGED:
            return comparison.num_changed  # the span was not reached: all of them are known
        return (self._rows.added if kind == ADDED else self._rows.removed).num_rows

    def _comparison(self, columns: Columns, new_columns: bool) -> Comparison:
        chosen = choose_columns(self._pairs, columns)
        compared = [one for one in chosen if one.is_shared or (new_columns and one.a is None)]
        names = tuple(one.name for one in compared)
        if names not in self._compared:
            units = self._plan.aligned, self._rows.moved
            self._compared[names] = Comparison(self._ends, compared, units)
        return self._compared[names]
