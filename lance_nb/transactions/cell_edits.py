"""Edits of single cells and rows by row id: written for a version, carried over to a newer one.

``plan_cells`` makes the edits of a stage. Rows with new values are written again as a whole, or,
where that reads and writes less, the changed columns of their fragments are; see row_rewrite.py.

``carried_over`` makes edits of one version fit a newer one, cell by cell: a cell that only the edit
changed is kept, one that somebody else changed to another value is a conflict, and so is a row that
is gone. A deletion is one if the row has other values now. Rows are followed by stable row id; else
by address, as long as their fragment has one of the files that it had, and a row that was written
again by the unenforced primary key of the table: its edits then have the new row id.

Limits: values are in memory. Columns of blobs are not edited, and not compared for a deletion.
Without stable row ids and a primary key, a row that was updated or moved cannot be told from a
deleted one: nothing says where to.
Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.format.blob_fields import holds_blobs
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema, primary_key
from lance_nb.table.diff.row_compare import values_differ
from lance_nb.table.filtered_scan import Selected, quoted, selected_table
from lance_nb.table.projection import ROW_ID, project
from lance_nb.table.row_ids import choose_positions, live_offsets, positions_of_ids
from lance_nb.table.scan_tasks import row_ends
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows
from lance_nb.transactions.cell_values import given_values
from lance_nb.transactions.column_rewrite import ColumnRewrite, rewrite_columns
from lance_nb.transactions.deletion_plan import DeletionPlan, deletion_of
from lance_nb.transactions.fragment_writer import WriteOptions
from lance_nb.transactions.row_rewrite import (
    SAVED_BYTES_MIN,
    RowRewrite,
    columns_are_cheaper,
    has_blobs,
    rewrite_given,
)
from lance_nb.value_classes import dataclass

_FRAGMENT_SHIFT = np.uint64(32)
Cells = Mapping[int, Mapping[str, Any]]
U64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class CellEdits:
    """New values by row id and column, and row ids to delete."""

    cells: Cells = field(default_factory=dict)
    deleted: frozenset[int] = frozenset()

    @property
    def num_cells(self) -> int:
        """Cells that get a value."""
        return sum(map(len, self.cells.values()))


@dataclass(frozen=True, slots=True)
class CellConflict:
    """A cell that somebody else changed, or a row (``column`` is None).

    ``base``, ``ours`` and ``theirs`` are scalars; of a row, ``theirs`` is None if it is gone.
    ``ours`` is None where the row was to be deleted.
    """

    row_id: int
    column: str | None
    base: pa.Scalar | None = None
    ours: pa.Scalar | None = None
    theirs: pa.Scalar | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the row of an edit is not in the newest version: the edit cannot be applied."""
        return self.column is None and self.theirs is None and self.base is None

    @property
    def text(self) -> str:
        """One line for an error."""
        if self.is_lost:
            return f"row {self.row_id} was deleted or written again under another row id"
        if self.column is None:
            return f"row {self.row_id} has other values"
        values = [None if one is None else one.as_py() for one in (self.base, self.theirs)]
        before, after = (repr(one)[:60] for one in values)
        return f"row {self.row_id}, column {self.column!r}: {before} became {after}"


def check_column(schema: Schema, name: str) -> None:
    """Check that cells of a column can be given values.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    if name not in schema.names:
        raise ColumnNotFoundError(name, tuple(schema.names))
    if holds_blobs(schema.field(quoted([name]))):
        raise NotSupportedError(
            f"column {name!r} holds blobs, which are not edited by cell: use update or merge_insert"
        )


def plan_cells(
    snapshot: Snapshot,
    edits: CellEdits,
    options: WriteOptions,
    *,
    stands_alone: bool,
    progress: Callable[[int], None],
) -> list[RowRewrite | ColumnRewrite | DeletionPlan]:
    """Write what changes to new files; nothing is committed.

    ``stands_alone``: nothing else is in the transaction, so that columns may be written anew.
    Raises InvalidInputError for a row that does not exist and for a value that its column cannot
    hold, ColumnNotFoundError, NotSupportedError.
    """
    twice = edits.deleted & edits.cells.keys()
    if twice:
        raise InvalidInputError(f"row {min(twice)} is to be deleted and to get new values")
    planned: list[RowRewrite | ColumnRewrite | DeletionPlan] = []
    cells = {row: values for row, values in edits.cells.items() if values}
    gone = _places(snapshot, sorted(edits.deleted))
    if cells:
        alone = stands_alone and not gone
        planned.append(_rewritten(snapshot, cells, options, alone=alone, progress=progress))
    if gone:
        losses = tuple(deletion_of(snapshot, fragment, rows) for fragment, rows, _ in gone)
        planned.append(DeletionPlan(snapshot.version, "", losses))
    return planned


def _places(snapshot: Snapshot, row_ids: Sequence[int]) -> list[tuple[Fragment, Ints, U64s]]:
    """Return where rows are: offsets in their fragment, ascending, and their ids in that order."""
    if not row_ids:
        return []
    ids = np.asarray(row_ids, np.uint64)
    positions = np.asarray(choose_positions(snapshot, ids, None, None))
    order = np.argsort(positions, kind="stable")
    positions, ids = positions[order], ids[order]
    ends = row_ends(snapshot)
    owners = ends.searchsorted(positions, side="right")
    found = []
    for number in np.unique(owners).tolist():
        fragment = snapshot.manifest.fragments[number]
        mine = owners == number
        begin = int(ends[number - 1]) if number else 0
        found.append(
            (fragment, live_offsets(snapshot, fragment)[positions[mine] - begin], ids[mine])
        )
    return found


def _rewritten(
    snapshot: Snapshot,
    cells: Cells,
    options: WriteOptions,
    *,
    alone: bool,
    progress: Callable[[int], None],
) -> RowRewrite | ColumnRewrite:
    schema = snapshot.manifest.schema
    wanted = {name for values in cells.values() for name in values}
    for name in sorted(wanted):
        check_column(schema, name)
    part = Schema(tuple(one for one in schema if one.name in wanted), schema.metadata)
    values = _GivenValues(snapshot, cells, part)
    places = _places(snapshot, list(cells))
    values.place(places)
    found = [(fragment, rows) for fragment, rows, _ in places]
    size_bytes = int(snapshot.manifest.fragments.counts().size_bytes.sum())
    is_small = size_bytes < SAVED_BYTES_MIN and not has_blobs(schema)
    counted = [(fragment, int(rows.size)) for fragment, rows in found]
    may_be_columns = alone and not is_small and len(part.fields) < len(schema.fields)
    if may_be_columns and columns_are_cheaper(snapshot, counted, part):
        return rewrite_columns(snapshot, part, found, values.window(found, progress), options)
    return rewrite_given(snapshot, part.names, found, values.of_rows, options, progress=progress)


class _GivenValues:
    """The new values of rows: what is stored, with the values that were given in their places."""

    def __init__(self, snapshot: Snapshot, cells: Cells, part: Schema) -> None:
        self._snapshot = snapshot
        self._columns = project(snapshot.manifest.schema, [quoted([one.name]) for one in part])
        self._given: dict[str, tuple[U64s, pa.Array]] = {}  # ids, ascending, and their values
        ordered = sorted(cells)
        for column in part.to_arrow():
            rows = [row for row in ordered if column.name in cells[row]]
            made = given_values([cells[row][column.name] for row in rows], column)
            self._given[column.name] = np.asarray(rows, np.uint64), made
        self._ids: dict[int, tuple[Ints, U64s]] = {}

    def place(self, places: Sequence[tuple[Fragment, Ints, U64s]]) -> None:
        """Take note of where the rows are."""
        self._ids = {fragment.id: (rows, ids) for fragment, rows, ids in places}

    def window(
        self, found: Sequence[tuple[Fragment, Ints]], progress: Callable[[int], None]
    ) -> Callable[[Fragment, int, int], pa.Table]:
        """Return what column_rewrite.py asks for the values of some of a fragment's rows."""
        rows_of = {fragment.id: rows for fragment, rows in found}

        def values(fragment: Fragment, first: int, last: int) -> pa.Table:
            rows = rows_of[fragment.id][first:last]
            made = self.of_rows(Selected(fragment, rows, rows, {}))
            progress(len(rows))
            return made

        return values

    def of_rows(self, rows: Selected) -> pa.Table:
        """Return the edited columns of some rows."""
        known, ids = self._ids[rows.fragment.id]
        mine = ids[np.searchsorted(known, rows.physical)]
        table = selected_table(self._snapshot, self._columns, rows)
        columns = []
        for column in table.schema:
            given_ids, given = self._given[column.name]
            place = np.searchsorted(given_ids, mine)
            place = np.minimum(place, given_ids.size - 1)
            is_given = given_ids[place] == mine
            at = np.where(is_given, place + rows.num_rows, np.arange(rows.num_rows))
            chunks = [*table.column(column.name).chunks, given]
            joined = pa.chunked_array(chunks, column.type)
            if pa.types.is_dictionary(column.type):
                joined = joined.unify_dictionaries()
            columns.append(joined.take(pa.array(at)))
        return pa.Table.from_arrays(columns, schema=table.schema)


# --- another version ------------------------------------------------------------------------------


def carried_over(
    base: Snapshot, newest: Snapshot, edits: CellEdits
) -> tuple[CellEdits, tuple[CellConflict, ...]]:
    """Make edits of ``base`` fit ``newest``: the edits that are left, and the conflicts.

    What is in conflict is not among the edits that are left. Raises CommitConflictError when an
    edited column is gone or has another type.
    """
    if base.version == newest.version and base.branch == newest.branch:
        return edits, ()
    names = _same_columns(base, newest, edits)
    rows = [*sorted(edits.cells), *sorted(edits.deleted - edits.cells.keys())]
    there = _still_there(base, newest, rows)
    there |= _rewritten_rows(base, newest, [row for row in rows if row not in there])
    conflicts = [
        CellConflict(row, None)
        for row in rows
        if row not in there and (row in edits.cells or not _is_stable(base))
    ]
    edited = [row for row in rows if row in there and row in edits.cells]
    cells: dict[int, Mapping[str, Any]] = {}
    if edited:
        before = _values(base, edited, list(names))
        after = _values(newest, [there[row] for row in edited], list(names.values()))
        differs = {
            old: values_differ(before.column(old), after.column(new)) for old, new in names.items()
        }
        for at, row in enumerate(edited):
            kept = {}
            for name, value in _scalars(base, edits.cells[row]).items():
                theirs = after.column(names[name])[at]
                if not differs[name][at]:
                    kept[names[name]] = value
                elif not is_same_value(value, theirs):
                    old = before.column(name)[at]
                    conflicts.append(CellConflict(there[row], name, old, value, theirs))
            if kept:
                cells[there[row]] = kept
    deleted = {row: there[row] for row in rows if row in there and row in edits.deleted}
    changed = _changed_rows(base, newest, deleted)
    conflicts += changed.values()
    left = frozenset(row for row in deleted.values() if row not in changed)
    return CellEdits(cells, left), tuple(conflicts)


def _is_stable(snapshot: Snapshot) -> bool:
    return bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)


def _same_columns(base: Snapshot, newest: Snapshot, edits: CellEdits) -> dict[str, str]:
    """Return the edited columns, and what they are called in the newest version.

    Raises CommitConflictError if one is gone or has another type.
    """
    before, after = base.manifest.schema, newest.manifest.schema
    found: dict[str, str] = {}
    for name in dict.fromkeys(name for values in edits.cells.values() for name in values):
        check_column(before, name)
        old = before.field(quoted([name]))
        new = next((one for one in after if one.id == old.id), None)
        if new is None or new.logical_type != old.logical_type:
            raise CommitConflictError(
                f"column {name!r} was dropped or cast after version {base.version}, which the edit "
                "was made for; nothing was committed"
            )
        found[name] = new.name
    return found


def _still_there(base: Snapshot, newest: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Return those of the rows that the newest version has under the same row id, by row id."""
    ids = np.asarray(rows, np.uint64)
    if _is_stable(base) != _is_stable(newest):
        return {}
    if not _is_stable(base):
        owners = (ids >> _FRAGMENT_SHIFT).astype(np.int64)
        before = {one.id: one for one in base.manifest.fragments}
        after = {one.id: one for one in newest.manifest.fragments}
        kept = [
            one
            for one in np.unique(owners).tolist()
            if one in before and one in after and _shares_file(before[one], after[one])
        ]
        ids = ids[np.isin(owners, kept)]
    positions = positions_of_ids(newest, ids)
    if not positions.size:
        return {}
    table = take_rows(newest, project(newest.manifest.schema, [], [ROW_ID]), positions)
    return {row: row for row in table.column(ROW_ID).to_pylist()}


def _rewritten_rows(base: Snapshot, newest: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Return the new row ids of rows that were written again, by their old ones.

    They are looked for by the primary key in the fragments that the base does not have.
    """
    import pyarrow.compute as pc

    key = primary_key(base.manifest.schema)
    if not rows or not key or key != primary_key(newest.manifest.schema):
        return {}
    before = {fragment.id: fragment for fragment in base.manifest.fragments}
    ends = row_ends(newest)
    written = [
        np.arange(int(ends[number - 1]) if number else 0, int(ends[number]))
        for number, fragment in enumerate(newest.manifest.fragments)
        if fragment.id not in before or not _shares_file(before[fragment.id], fragment)
    ]
    if not written:
        return {}
    paths = [quoted([name]) for name in key]
    columns = project(newest.manifest.schema, paths, [ROW_ID])
    after = take_rows(newest, columns, np.concatenate(written))
    values = _values(base, rows, list(key))
    first = values.column(key[0])
    after = after.filter(pc.is_in(after.column(key[0]), first.combine_chunks()))
    new_ids: dict[tuple[Any, ...], list[int]] = {}
    for row, *value in zip(
        *(after.column(name).to_pylist() for name in (ROW_ID, *key)), strict=True
    ):
        new_ids.setdefault(tuple(value), []).append(row)
    old_rows: dict[tuple[Any, ...], list[int]] = {}
    old_keys = zip(*(values.column(name).to_pylist() for name in key), strict=True)
    for row, old_key in zip(rows, old_keys, strict=True):
        old_rows.setdefault(old_key, []).append(row)
    # The key is not enforced: what it names twice, on either side, is not followed.
    matches = ((old_rows[old_key], new_ids.get(old_key, ())) for old_key in old_rows)
    return {old[0]: new[0] for old, new in matches if len(old) == len(new) == 1}


def _shares_file(one: Fragment, other: Fragment) -> bool:
    return not {file.path for file in one.files}.isdisjoint(file.path for file in other.files)


def _values(snapshot: Snapshot, rows: Sequence[int], names: Sequence[str]) -> pa.Table:
    positions = choose_positions(snapshot, np.asarray(rows, np.uint64), None, None)
    columns = project(snapshot.manifest.schema, [quoted([one]) for one in names])
    return take_rows(snapshot, columns, positions)


def _scalars(base: Snapshot, values: Mapping[str, Any]) -> dict[str, pa.Scalar]:
    schema = base.manifest.schema.to_arrow()
    return {name: given_values([one], schema.field(name))[0] for name, one in values.items()}


def is_same_value(one: pa.Scalar, other: pa.Scalar) -> bool:
    """Return whether two scalars of a type are equal; null equals null, NaN equals NaN."""
    pair = (pa.chunked_array([pa.array([value], value.type)]) for value in (one, other))
    return not bool(values_differ(*pair)[0])


def _changed_rows(
    base: Snapshot, newest: Snapshot, rows: Mapping[int, int]
) -> dict[int, CellConflict]:
    """Return the rows that have other values now than they had, of those to be deleted.

    ``rows`` are row ids of the base and those of the newest version.
    """
    if not rows:
        return {}
    after = newest.manifest.schema
    shared = {
        one.name: new.name
        for one in base.manifest.schema
        if (new := next((new for new in after if new.id == one.id), None)) is not None
        and not holds_blobs(one)
    }
    new_ids = list(rows.values())
    before = _values(base, list(rows), list(shared))
    now = _values(newest, new_ids, list(shared.values()))
    found: dict[int, CellConflict] = {}
    for name, called in shared.items():
        differs = values_differ(before.column(name), now.column(called))
        for at in np.flatnonzero(differs).tolist():
            values = before.column(name)[at], None, now.column(called)[at]
            found.setdefault(new_ids[at], CellConflict(new_ids[at], None, *values))
    return found
