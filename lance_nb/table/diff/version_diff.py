"""Diff: the differences between two versions, as a value that reads no more than is asked for.

======================  ===================================================================
``counts``              from the manifests, at once
``transactions``        the versions between, on both sides of the common ancestor
``schema, fragments, files, deletions, indices, config``   Arrow tables, one row per difference
``rows, cells, summary``                                   compared value by value, as far as asked
``drift``                                                  columns profiled, from a sample of rows
======================  ===================================================================

Nothing is read twice: results are cached in the value. Counts: added rows are those of fragments
that only ``b`` has, and rows whose deletion was undone; removed rows are those of fragments that
only ``a`` has, and rows newly deleted. An updated or moved row counts as both, so the numbers are
bounds unless rows were only added or only removed; the row level (``Diff.summary``) is exact.

Limits: deletions are counted as the manifest counts them: where a version was restored in between
and other rows were deleted then, the bounds can be too low. Indices need the index section, which
lies in the manifest file.
Source: message Manifest of lance.table; pylance has no diff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.diff import change_tables
from lance_nb.table.diff.columns import ColumnPair, choose_columns, find_renames, pair_columns
from lance_nb.table.diff.compare_plan import Identity, choose_identity
from lance_nb.table.diff.drift import ColumnDrift, column_drifts
from lance_nb.table.diff.fragments import FragmentMatch, Places, fragment_changes, match_fragments
from lance_nb.table.diff.merge_base import Ends, Past, Source, find_ends
from lance_nb.table.diff.row_level import (
    DEFAULT_BATCH_ROWS,
    KINDS,
    Columns,
    Compared,
    Page,
    Progress,
    RowLevel,
    RowsFound,
    RowSummary,
)
from lance_nb.table.indices import read_indices
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class DiffCounts:
    """Numbers of a diff from ``a`` to ``b``.

    ``rows_in`` and ``rows_out`` are the most that can have been added and removed; with
    ``rows_exact`` they are exactly the rows added and removed. ``rows_deleted`` and
    ``rows_undeleted`` are those of fragments that both have. ``bytes_added`` and ``bytes_removed``
    add up the data files of known size. ``transactions`` counts versions on both sides of the
    common ancestor.
    """

    rows_before: int
    rows_after: int
    rows_in: int
    rows_out: int
    rows_exact: bool
    rows_deleted: int
    rows_undeleted: int
    fragments_added: int
    fragments_removed: int
    fragments_changed: int
    fragments_equal: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    fields_added: int
    fields_removed: int
    fields_changed: int
    indices_added: int
    indices_removed: int
    indices_changed: int
    config_added: int
    config_removed: int
    config_changed: int
    transactions: int

    @property
    def is_empty(self) -> bool:
        """Whether the two versions are the same but for their transactions."""
        return not any(
            getattr(self, name)
            for name in self.__slots__
            if name.endswith(("_added", "_removed", "_changed"))
        )


def count_differences(
    ends: Ends, match: FragmentMatch, fields: pa.Table, settings: pa.Table
) -> DiffCounts:
    """Count. ``fields`` and ``settings`` are tables with a column ``change``."""
    a, b = ends.a, ends.b
    counts_a, counts_b = a.manifest.fragments.counts(), b.manifest.fragments.counts()
    has_forked = len({stretch.side for stretch in ends.between}) == 2
    deleted, undeleted = _deletions(match, has_forked=has_forked)
    rows_in = int(counts_b.num_rows[match.only_b].sum()) + undeleted
    rows_out = int(counts_a.num_rows[match.only_a].sum()) + deleted
    files_added, bytes_added, files_removed, bytes_removed = _files(a, b, match)
    columns_changed = any(pair.files_differ for pair in match.changed)
    same_count = any(
        pair.deletions_differ and pair.a.num_deleted_rows == pair.b.num_deleted_rows
        for pair in match.changed
    )
    unknown = _unknown(counts_a, match.only_a) or _unknown(counts_b, match.only_b)
    exact = not (rows_in and rows_out) and not (columns_changed or same_count or unknown)
    return DiffCounts(
        int(live_counts(a).sum()), int(live_counts(b).sum()), rows_in, rows_out, exact,
        deleted, undeleted, int(match.only_b.size), int(match.only_a.size), len(match.changed),
        match.num_equal, files_added, files_removed, bytes_added, bytes_removed, *_kinds(fields),
        *_indices(a, b), *_kinds(settings), sum(stretch.num_versions for stretch in ends.between),
    )  # fmt: skip


def _kinds(differences: pa.Table) -> tuple[int, int, int]:
    """Count what was added, removed, and changed in any other way."""
    kinds = differences.column("change").to_pylist()
    added, removed = kinds.count("added"), kinds.count("removed")
    return added, removed, len(kinds) - added - removed


def _unknown(counts: FragmentCounts, positions: Ints) -> bool:
    """Tell whether a manifest leaves a count of these fragments to the files."""
    rows, deleted = counts.physical_rows[positions], counts.num_deleted_rows[positions]
    return bool(((rows == 0) | (counts.num_deletion_files[positions] > deleted)).any())


def _deletions(match: FragmentMatch, *, has_forked: bool) -> tuple[int, int]:
    """Count rows newly deleted, and rows that are back; after a fork, the most that can be."""
    deleted = undeleted = 0
    for pair in match.changed:
        before, after = pair.a.num_deleted_rows, pair.b.num_deleted_rows
        if has_forked and pair.deletions_differ:  # each side may have deleted rows of its own
            deleted, undeleted = deleted + after, undeleted + before
        else:
            deleted += max(after - before, 0)
            undeleted += max(before - after, 0)
    return deleted, undeleted


def _files(a: Snapshot, b: Snapshot, match: FragmentMatch) -> tuple[int, int, int, int]:
    """Count files and bytes that came, and those that went."""
    counts_a, counts_b = a.manifest.fragments.counts(), b.manifest.fragments.counts()
    added = int(counts_b.num_data_files[match.only_b].sum())
    removed = int(counts_a.num_data_files[match.only_a].sum())
    bytes_in = int(counts_b.size_bytes[match.only_b].sum())
    bytes_out = int(counts_a.size_bytes[match.only_a].sum())
    places_a, places_b = Places(a.locations), Places(b.locations)
    for pair in match.changed:
        if not pair.files_differ:
            continue
        before = {places_a.of_file(file): file.size_bytes for file in pair.a.files}
        after = {places_b.of_file(file): file.size_bytes for file in pair.b.files}
        added += len(after.keys() - before.keys())
        removed += len(before.keys() - after.keys())
        bytes_in += sum(after[key] for key in after.keys() - before.keys())
        bytes_out += sum(before[key] for key in before.keys() - after.keys())
    return added, bytes_in, removed, bytes_out


def _indices(a: Snapshot, b: Snapshot) -> tuple[int, int, int]:
    """Count indices that came, went, or changed."""
    before = {index.uuid: index for index in read_indices(a)}
    after = {index.uuid: index for index in read_indices(b)}
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    return len(after.keys() - before.keys()), len(before.keys() - after.keys()), len(changed)


def diff_text(ends: Ends, counts: DiffCounts, identity: str) -> str:
    """Return the text; a level without differences has no line."""
    bound = "" if counts.rows_exact else "at most "
    transactions = (
        "1 transaction" if counts.transactions == 1 else f"{counts.transactions} transactions"
    )
    lines = [
        f"<lance_nb.Diff {_name(ends.a)} .. {_name(ends.b)}, {transactions}>",
        f"  rows       {bound}{_rows(counts)}, matched by {identity}",
        _line("fragments", counts.fragments_added, counts.fragments_removed,
              counts.fragments_changed),
        _line("files", counts.files_added, counts.files_removed, 0),
        _line("fields", counts.fields_added, counts.fields_removed, counts.fields_changed),
        _line("indices", counts.indices_added, counts.indices_removed, counts.indices_changed),
        _line("settings", counts.config_added, counts.config_removed, counts.config_changed),
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.branch or 'main'}:{snapshot.version}"


def _rows(counts: DiffCounts) -> str:
    total = f"{counts.rows_before:,} -> {counts.rows_after:,}"
    return f"+{counts.rows_in:,} -{counts.rows_out:,} ({total})"


def _line(noun: str, added: int, removed: int, changed: int) -> str:
    """Return a line of the repr, nothing when there is nothing to tell."""
    parts = ((added, "+"), (removed, "-"), (changed, "~"))
    text = " ".join(f"{sign}{count:,}" for count, sign in parts if count)
    return f"  {noun:<10} {text}" if text else ""


T = TypeVar("T")
SAMPLE_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between version ``a`` and version ``b``. Created by ``LanceDataset.diff``.

    Examples:
        >>> ds.update({"label": "'c'"}, where="id = 7")["num_rows_updated"]
        1
        >>> ds.delete("id = 5")["num_deleted_rows"]
        1
        >>> diff = ds.diff(1)
        >>> diff.a, diff.b, diff.ancestor.version, diff.identity
        ((None, 1), (None, 3), 1, 'stable row id')
        >>> diff.counts.rows_before, diff.counts.rows_after
        (10, 9)
        >>> diff.transactions["operation"].to_pylist(), diff.fragments.num_rows, diff.files.num_rows
        (['Update', 'Delete'], 2, 1)
        >>> diff.schema.num_rows, diff.config.num_rows, diff.indices.num_rows, diff.renamed
        (0, 0, 0, {})
    """

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
        """Why rows are matched so, and what that means.

        Examples:
            >>> print(ds.diff(1).reason)
            both versions have stable row ids
        """
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
            lambda: change_tables.transactions_table(
                self.ends, change_tables.versions_between(self.ends)
            ),
        )

    @property
    def schema(self) -> pa.Table:
        """The fields that differ: added, removed, renamed, changed."""
        a, b = self.ends.a.manifest.schema, self.ends.b.manifest.schema
        return self._once("schema", lambda: change_tables.schema_table(a, b, self.renamed))

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
        """The fragments that both have and whose deleted rows differ. Reads deletion files.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.diff(1).deletions.num_rows
            1
        """
        return self._once(
            "deletions",
            lambda: change_tables.deletions_table(
                self.ends, [pair for pair in self.match.changed if pair.deletions_differ]
            ),
        )

    @property
    def indices(self) -> pa.Table:
        """The index segments that came, went or changed."""
        return self._once("indices", lambda: change_tables.indices_table(self.ends.a, self.ends.b))

    @property
    def config(self) -> pa.Table:
        """The settings that differ: configuration, table metadata, schema metadata."""
        return self._once(
            "config",
            lambda: change_tables.config_table(self.ends.a.manifest, self.ends.b.manifest),
        )

    @property
    def match(self) -> FragmentMatch:
        """Which fragments are the same.

        Examples:
            >>> ds.diff(1).match.num_equal
            2
        """
        return self._once("match", lambda: match_fragments(self.ends.a, self.ends.b))

    @property
    def renamed(self) -> dict[str, str]:
        """The old path of each field of ``b`` that had another one in ``a``."""
        return self._once("renamed", lambda: find_renames(self.ends))

    @property
    def column_pairs(self) -> tuple[ColumnPair, ...]:
        """The top-level columns of both versions, paired.

        Examples:
            >>> len(ds.diff(1).column_pairs)
            3
        """
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

        Args:
            columns: compare only these; all by default.
            new_columns: take the values of a column that only ``b`` has for changes from null.
            progress: called with rows compared and rows to compare.

        Raises ColumnNotFoundError, InvalidInputError for a key that does not tell rows apart.

        Examples:
            >>> ds.update({"label": "'c'"}, where="id = 7")["num_rows_updated"]
            1
            >>> ds.diff(1).summary().changed
            1
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

        Rows are compared as far as the stream is read, and what was found is kept. Columns and
        values: see lance_nb.table.diff.row_level.

        Args:
            columns: what counts as a change and, unless ``show`` names others, what is shown.
            limit, offset: in rows of the result.
            kinds: "changed", "added", "removed", which come one after the other.
            new_columns: as for ``summary``.
            show: the columns to return.
            batch_size: the most rows of a batch.

        Raises as ``summary``.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.diff(1).rows(show=["id"]).read_all().to_pylist()
            [{'_change': 'removed', '_rowid': 5, '_rowaddr': 4294967296, '_changed': None, 'id': 5}]
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
        rows are those of ``rows(kinds="changed")``, in the same order.

        Args:
            columns: what counts as a change.
            limit, offset: in rows of the result.
            new_columns: as for ``summary``.
            show: which of the columns compared are wanted.
            batch_size: the most rows of a batch.

        Examples:
            >>> ds.update({"label": "'c'"}, where="id = 7")["num_rows_updated"]
            1
            >>> ds.diff(1).cells(columns=["label"]).read_all()["label"].to_pylist()
            [{'old': 'b', 'new': 'c'}]
        """
        page = Page(limit, offset, batch_size)
        return self._rows.cells(Compared(columns, new_columns), page, show)

    def found(self, columns: Columns = None, *, new_columns: bool = False) -> RowsFound:
        """Tell what is known of the rows so far, without comparing any.

        Args:
            columns, new_columns: as for ``summary``.

        Examples:
            >>> ds.diff(1).found().changed
            0
        """
        return self._rows.rows_found(Compared(columns, new_columns))

    def compare(
        self,
        upto: int,
        columns: Columns = None,
        *,
        new_columns: bool = False,
        progress: Progress | None = None,
    ) -> RowsFound:
        """Compare until so many changed rows are found, or all are; tell what is known then.

        Args:
            upto: how many changed rows.
            columns, new_columns: as for ``summary``.
            progress: called with rows compared and rows to compare; what it raises ends the
                comparison, and what was found until then is kept.

        Examples:
            >>> ds.update({"label": "'c'"})["num_rows_updated"]
            10
            >>> ds.diff(1).compare(3).changed >= 3
            True
        """
        compared = Compared(columns, new_columns)
        self._rows.compare(compared, upto, progress)
        return self._rows.rows_found(compared)

    def drift(
        self,
        columns: Columns = None,
        *,
        sample: int = SAMPLE_ROWS,
        exact: bool = False,
        progress: Progress | None = None,
    ) -> tuple[ColumnDrift, ...]:
        """Profile the columns that both versions have.

        Args:
            columns: only these; all by default.
            sample: how many rows of each version are read, chosen by chance.
            exact: read all rows.
            progress: called with columns done and columns.

        Raises ColumnNotFoundError, InvalidInputError.

        Examples:
            >>> ds.update({"label": "'c'"}, where="id > 6")["num_rows_updated"]
            3
            >>> [profile.name for profile in ds.diff(1).drift(["label"])]
            ['label']
        """
        if sample <= 0:
            raise InvalidInputError(f"sample must be positive, got {sample}")
        pairs = choose_columns(self.column_pairs, columns)
        return column_drifts(self.ends, pairs, None if exact else sample, progress)

    def both_sides(
        self, columns: Columns = None, batch_size: int = DEFAULT_BATCH_ROWS
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield changed rows as they were and as they are, batch by batch, side by side.

        Args:
            columns: what counts as a change, and is returned; all by default.
            batch_size: the most rows of a batch.

        Examples:
            >>> ds.update({"label": "'c'"}, where="id = 7")["num_rows_updated"]
            1
            >>> old, new = next(ds.diff(1).both_sides(["label"]))
            >>> old["label"].to_pylist(), new["label"].to_pylist()
            (['b'], ['c'])
        """
        return self._rows.both_sides(columns, Page(None, 0, batch_size))

    def removed_row_ids(self) -> np.ndarray:
        """Return the stable row ids of the rows that were removed (uint64).

        Raises InvalidInputError without stable row ids.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> ds.diff(1).removed_row_ids().tolist()
            [5]
        """
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
