"""Edit: new values for single cells by row id, rows to add, rows to delete, as one version.

Values are those that somebody saw and corrected, so that a commit never puts them over what others
have written since: edits are carried over to the newest version cell by cell, and a cell that has
another value there than it had refuses the whole edit.

A value comes from code (``given_values``) or is text that was typed or pasted (``hand_value``).
What the column's type cannot hold as it is given is refused: a fraction in a column of whole
numbers, a number that is too large, a time finer than the unit, a key that a struct does not have,
a null where the column takes none. Text is read as the type has it: ``2024-05-01`` is a date,
``[1, 2]`` a list, ``true`` a boolean. A time without an offset in a column with a time zone is
local time there.

Rows with new values are written again as a whole, or, where that reads and writes less, the changed
columns of their fragments are (rewriting.py).

``carried_over`` makes edits of one version fit a newer one, cell by cell: a cell that only the edit
changed is kept, one that somebody else changed to another value is a conflict, and so is a row that
is gone. A deletion is one if the row has other values now. Rows are followed by stable row id; else
by address, as long as their fragment has one of the files that it had. A row that was written again
is followed by the unenforced primary key of the table; without one, by all its values that were not
edited, if they are those of no other row that was replaced, and of one that was written. Its edits
then have the new row id. So a compaction is followed, and an edited cell that somebody else changed
is in conflict with the value that it has now. A row that was given other values beside the edited
ones is followed by a column whose values are all different in both versions. That column may not be
a key, so every edit of such a row is a conflict. A row whose value of it is nowhere was deleted: it
can be added again with its edits.

Limits: values are in memory. Columns of blobs are not edited, and not compared. Without stable row
ids, a primary key and a unique column, a row that was given other values beside the edited ones
cannot be told from a deleted one. Rows are not looked for by their values among more than
``REPLACED_MAX`` rows. Nested text is JSON with at most ``MAX_DEPTH`` levels. Not supported: text
for binary columns, durations, intervals and extension types that Arrow does not cast text to.
Source: our own; pylance has no such method.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

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
from lance_nb.format.python_values import to_python
from lance_nb.format.schema import Schema, primary_key
from lance_nb.session.session import Session
from lance_nb.table.diff.row_compare import values_differ
from lance_nb.table.diff.unique_column import unique_column
from lance_nb.table.filtered_scan import Selected, quoted, selected_table
from lance_nb.table.projection import ROW_ID, project
from lance_nb.table.row_ids import choose_positions, live_offsets, positions_of_ids
from lance_nb.table.scan_tasks import row_ends
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.deleting import deletion_of
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.input_data import fitted
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.rewriting import (
    SAVED_BYTES_MIN,
    columns_are_cheaper,
    has_blobs,
    rewrite_columns,
    rewrite_given,
)
from lance_nb.writing.staged import Addition, ColumnRewrite, DeletionPlan, Edit, RowRewrite, combine
from lance_nb.writing.writing import WriteRequest, own_options, write_addition

REPLACED_MAX = 2_000_000
_ALIKE_MAX = 20_000  # rows with a value of an edited row that are compared in every column
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
    ``ours`` is None where the row was to be deleted. ``edits`` are those of a row that is gone, and
    ``values`` all that it had, if it was deleted for certain and can be added again. ``key`` names
    the row by its primary key or a unique column (``is_named``), else by some value that was not
    edited. ``is_likely``: the row was followed by a unique column.
    """

    row_id: int
    column: str | None
    base: pa.Scalar | None = None
    ours: pa.Scalar | None = None
    theirs: pa.Scalar | None = None
    edits: Mapping[str, pa.Scalar] = field(default_factory=dict)
    values: Mapping[str, pa.Scalar] = field(default_factory=dict)
    key: Mapping[str, pa.Scalar] = field(default_factory=dict)
    is_named: bool = False
    is_likely: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether the row of an edit is not in the newest version: the edit cannot be applied."""
        return self.column is None and self.theirs is None and self.base is None

    @property
    def text(self) -> str:
        """One line for an error."""
        named = ", ".join(f"{name} {_python(value)}"[:60] for name, value in self.key.items())
        row = f"row {self.row_id} ({named})" if named else f"row {self.row_id}"
        if self.is_lost:
            moved = "" if self.values else " or written again under another row id"
            return f"{row} was deleted{moved}"
        if self.column is None:
            return f"{row} has other values"
        before, after = (repr(_python(value))[:60] for value in (self.base, self.theirs))
        if self.is_likely:
            return f"{row} was written again with other values; {self.column!r} is {after} there"
        return f"{row}, column {self.column!r}: {before} became {after}"


def _python(value: pa.Scalar | None) -> Any:
    return None if value is None else to_python(pa.array([value], value.type))[0]


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
    deleted_places = _places(snapshot, sorted(edits.deleted))
    if cells:
        alone = stands_alone and not deleted_places
        planned.append(_rewritten(snapshot, cells, options, alone=alone, progress=progress))
    if deleted_places:
        losses = tuple(
            deletion_of(snapshot, fragment, rows) for fragment, rows, _ in deleted_places
        )
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
    places = []
    for number in np.unique(owners).tolist():
        fragment = snapshot.manifest.fragments[number]
        mine = owners == number
        begin = int(ends[number - 1]) if number else 0
        places.append(
            (fragment, live_offsets(snapshot, fragment)[positions[mine] - begin], ids[mine])
        )
    return places


def _rewritten(
    snapshot: Snapshot,
    cells: Cells,
    options: WriteOptions,
    *,
    alone: bool,
    progress: Callable[[int], None],
) -> RowRewrite | ColumnRewrite:
    schema = snapshot.manifest.schema
    names = {name for values in cells.values() for name in values}
    for name in sorted(names):
        check_column(schema, name)
    part = Schema(tuple(field for field in schema if field.name in names), schema.metadata)
    values = _GivenValues(snapshot, cells, part)
    places = _places(snapshot, list(cells))
    values.place(places)
    fragment_rows = [(fragment, rows) for fragment, rows, _ in places]
    size_bytes = int(snapshot.manifest.fragments.counts().size_bytes.sum())
    is_small = size_bytes < SAVED_BYTES_MIN and not has_blobs(schema)
    counted = [(fragment, int(rows.size)) for fragment, rows in fragment_rows]
    may_be_columns = alone and not is_small and len(part.fields) < len(schema.fields)
    if may_be_columns and columns_are_cheaper(snapshot, counted, part):
        return rewrite_columns(
            snapshot,
            part,
            fragment_rows,
            values=values.window(fragment_rows, progress),
            options=options,
        )
    return rewrite_given(
        snapshot,
        part.names,
        fragment_rows,
        values=values.of_rows,
        options=options,
        progress=progress,
    )


class _GivenValues:
    """The new values of rows: what is stored, with the values that were given in their places."""

    def __init__(self, snapshot: Snapshot, cells: Cells, part: Schema) -> None:
        self._snapshot = snapshot
        self._columns = project(snapshot.manifest.schema, [quoted([field.name]) for field in part])
        self._by_column: dict[str, tuple[U64s, pa.Array]] = {}  # ids, ascending, and their values
        ordered = sorted(cells)
        for column in part.to_arrow():
            rows = [row for row in ordered if column.name in cells[row]]
            array = given_values([cells[row][column.name] for row in rows], column)
            self._by_column[column.name] = np.asarray(rows, np.uint64), array
        self._ids: dict[int, tuple[Ints, U64s]] = {}

    def place(self, places: Sequence[tuple[Fragment, Ints, U64s]]) -> None:
        """Take note of where the rows are."""
        self._ids = {fragment.id: (rows, ids) for fragment, rows, ids in places}

    def window(
        self, selections: Sequence[tuple[Fragment, Ints]], progress: Callable[[int], None]
    ) -> Callable[[Fragment, int, int], pa.Table]:
        """Return what ``rewrite_columns`` asks for the values of some of a fragment's rows."""
        rows_of = {fragment.id: rows for fragment, rows in selections}

        def values(fragment: Fragment, first: int, last: int) -> pa.Table:
            rows = rows_of[fragment.id][first:last]
            table = self.of_rows(Selected(fragment, rows, rows, {}))
            progress(len(rows))
            return table

        return values

    def of_rows(self, rows: Selected) -> pa.Table:
        """Return the edited columns of some rows."""
        offsets, ids = self._ids[rows.fragment.id]
        mine = ids[np.searchsorted(offsets, rows.physical)]
        table = selected_table(self._snapshot, self._columns, rows)
        columns = []
        for column in table.schema:
            given_ids, new_values = self._by_column[column.name]
            place = np.searchsorted(given_ids, mine)
            place = np.minimum(place, given_ids.size - 1)
            is_given = given_ids[place] == mine
            positions = np.where(is_given, place + rows.num_rows, np.arange(rows.num_rows))
            chunks = [*table.column(column.name).chunks, new_values]
            joined = pa.chunked_array(chunks, column.type)
            if pa.types.is_dictionary(column.type):
                joined = joined.unify_dictionaries()
            columns.append(joined.take(pa.array(positions)))
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
    new_ids = _still_there(base, newest, rows)
    new_ids |= _rewritten_rows(base, newest, [row for row in rows if row not in new_ids], edits)
    lost = [row for row in rows if row not in new_ids]
    unique = unique_column((base, newest), _edited_columns(edits)) if lost else None
    likely: dict[int, int] = {}
    if unique is not None:
        everywhere = np.arange(int(row_ends(newest)[-1]))
        likely = _rows_of_same_key(base, newest, lost, key=[unique], written=everywhere)
        new_ids |= likely
        lost = [row for row in lost if row not in likely]
    lost_values = _whole_rows(base, newest, lost) if unique is not None else {}
    conflicts = [
        CellConflict(
            row,
            None,
            edits={
                names[name]: value
                for name, value in _scalars(base, edits.cells.get(row, {})).items()
            },
            values=lost_values.get(row, {}),
        )
        for row in lost
        if row in edits.cells or not (_is_stable(base) or unique is not None)
    ]
    edited = [row for row in rows if row in new_ids and row in edits.cells]
    cells: dict[int, Mapping[str, Any]] = {}
    if edited:
        before = _values(base, edited, list(names))
        after = _values(newest, [new_ids[row] for row in edited], list(names.values()))
        differs = {
            old: values_differ(before.column(old), after.column(new)) for old, new in names.items()
        }
        for position, row in enumerate(edited):
            carried = {}
            for name, value in _scalars(base, edits.cells[row]).items():
                theirs = after.column(names[name])[position]
                if not differs[name][position] and row not in likely:
                    carried[names[name]] = value
                elif not is_same_value(value, theirs):
                    conflicts.append(
                        CellConflict(
                            new_ids[row],
                            names[name],
                            before.column(name)[position],
                            ours=value,
                            theirs=theirs,
                            is_likely=row in likely,
                        )
                    )
            if carried:
                cells[new_ids[row]] = carried
    deleted = {row: new_ids[row] for row in rows if row in new_ids and row in edits.deleted}
    changed = _changed_rows(base, newest, deleted)
    conflicts += changed.values()
    left = frozenset(row for row in deleted.values() if row not in changed)
    old_rows = {new: old for old, new in new_ids.items()}
    return CellEdits(cells, left), _named(base, edits, conflicts, old_rows)


def _edited_columns(edits: CellEdits) -> frozenset[str]:
    return frozenset(name for values in edits.cells.values() for name in values)


def _whole_rows(
    base: Snapshot, newest: Snapshot, rows: Sequence[int]
) -> dict[int, dict[str, pa.Scalar]]:
    """Return the values of rows by what their columns are called now; none if there are blobs."""
    shared = _shared_columns(base, newest)
    if not rows or any(holds_blobs(column) for column in base.manifest.schema):
        return {}
    table = _values(base, rows, list(shared))
    return {
        row: {new: table.column(old)[index] for old, new in shared.items()}
        for index, row in enumerate(rows)
    }


def _shared_columns(base: Snapshot, newest: Snapshot) -> dict[str, str]:
    """Return the columns that both versions have with one type, without blobs, by their name."""
    after = {column.id: column for column in newest.manifest.schema}
    return {
        column.name: after[column.id].name
        for column in base.manifest.schema
        if column.id in after
        and after[column.id].logical_type == column.logical_type
        and not holds_blobs(column)
    }


def _is_stable(snapshot: Snapshot) -> bool:
    return bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)


def _same_columns(base: Snapshot, newest: Snapshot, edits: CellEdits) -> dict[str, str]:
    """Return the edited columns, and what they are called in the newest version.

    Raises CommitConflictError if one is gone or has another type.
    """
    before, after = base.manifest.schema, newest.manifest.schema
    names: dict[str, str] = {}
    for name in dict.fromkeys(name for values in edits.cells.values() for name in values):
        check_column(before, name)
        old = before.field(quoted([name]))
        new = next((field for field in after if field.id == old.id), None)
        if new is None or new.logical_type != old.logical_type:
            raise CommitConflictError(
                f"column {name!r} was dropped or cast after version {base.version}, which the edit "
                "was made for; nothing was committed"
            )
        names[name] = new.name
    return names


def _still_there(base: Snapshot, newest: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Return those of the rows that the newest version has under the same row id, by row id."""
    ids = np.asarray(rows, np.uint64)
    if _is_stable(base) != _is_stable(newest):
        return {}
    if not _is_stable(base):
        owners = (ids >> _FRAGMENT_SHIFT).astype(np.int64)
        before = {fragment.id: fragment for fragment in base.manifest.fragments}
        after = {fragment.id: fragment for fragment in newest.manifest.fragments}
        remaining = [
            fragment_id
            for fragment_id in np.unique(owners).tolist()
            if fragment_id in before
            and fragment_id in after
            and _shares_file(before[fragment_id], after[fragment_id])
        ]
        ids = ids[np.isin(owners, remaining)]
    positions = positions_of_ids(newest, ids)
    if not positions.size:
        return {}
    table = take_rows(newest, project(newest.manifest.schema, [], [ROW_ID]), positions)
    return {row: row for row in table.column(ROW_ID).to_pylist()}


def _named(
    base: Snapshot,
    edits: CellEdits,
    conflicts: Sequence[CellConflict],
    old_rows: Mapping[int, int],
) -> tuple[CellConflict, ...]:
    """Return conflicts with the key of their rows; ``old_rows`` are row ids of the base by new."""
    if not conflicts:
        return ()
    columns, is_named = list(primary_key(base.manifest.schema)), True
    if not columns:
        unique = unique_column((base,), _edited_columns(edits))
        is_named = unique is not None
        columns = _plain_columns(base, edits)[:1] if unique is None else [unique]
    if not columns:
        return tuple(conflicts)
    rows = [old_rows.get(conflict.row_id, conflict.row_id) for conflict in conflicts]
    table = _values(base, rows, columns)
    return tuple(
        replace(
            conflict, key={name: table.column(name)[row] for name in columns}, is_named=is_named
        )
        for row, conflict in enumerate(conflicts)
    )


def _plain_columns(base: Snapshot, edits: CellEdits) -> list[str]:
    """Return the columns of numbers, texts and times in which no cell is edited."""
    edited = _edited_columns(edits)
    plain = (pt.is_integer, pt.is_string, pt.is_large_string, pt.is_temporal)
    return [
        column.name
        for column in base.manifest.schema.to_arrow()
        if column.name not in edited and any(is_of(column.type) for is_of in plain)
    ]


def _rewritten_rows(
    base: Snapshot, newest: Snapshot, rows: Sequence[int], edits: CellEdits
) -> dict[int, int]:
    """Return the new row ids of rows that were written again, by their old ones."""
    if not rows or _is_stable(base) or _is_stable(newest):
        return {}  # a stable row id that is gone is that of a deleted row
    written = _written_positions(base, newest)
    if not written.size:
        return {}
    key = primary_key(base.manifest.schema)
    if key and key == primary_key(newest.manifest.schema):
        return _rows_of_same_key(base, newest, rows, key=key, written=written)
    return _rows_of_same_values(base, newest, rows, edits=edits, written=written)


def _written_positions(base: Snapshot, newest: Snapshot) -> Ints:
    """Return the positions of the rows of fragments that the base does not have."""
    before = {fragment.id: fragment for fragment in base.manifest.fragments}
    ends = row_ends(newest)
    written = [
        np.arange(int(ends[number - 1]) if number else 0, int(ends[number]))
        for number, fragment in enumerate(newest.manifest.fragments)
        if fragment.id not in before or not _shares_file(before[fragment.id], fragment)
    ]
    return np.concatenate(written) if written else np.zeros(0, np.int64)


def _replaced_positions(base: Snapshot, newest: Snapshot) -> Ints:
    """Return the positions of the rows that the newest version does not have at their address."""
    after = {fragment.id: fragment for fragment in newest.manifest.fragments}
    ends = row_ends(base)
    replaced = [np.zeros(0, np.int64)]
    for number, fragment in enumerate(base.manifest.fragments):
        places = np.arange(int(ends[number - 1]) if number else 0, int(ends[number]))
        same = after.get(fragment.id)
        if same is not None and _shares_file(fragment, same):
            if same.deletion_file == fragment.deletion_file:
                continue
            is_live = np.isin(live_offsets(base, fragment), live_offsets(newest, same))
            places = places[~is_live]
        replaced.append(places)
    return np.concatenate(replaced)


def _rows_of_same_values(
    base: Snapshot, newest: Snapshot, rows: Sequence[int], edits: CellEdits, written: Ints
) -> dict[int, int]:
    """Find rows that were written again by all their values that were not edited."""
    shared = _shared_columns(base, newest)
    anchor = next((name for name in _plain_columns(base, edits) if name in shared), None)
    replaced = _replaced_positions(base, newest)
    if anchor is None or max(replaced.size, written.size) > REPLACED_MAX:
        return {}
    anchors = _values(base, rows, [anchor]).column(anchor).combine_chunks()
    old_rows = _rows_with(base, replaced, anchor, anchors=anchors, names=list(shared))
    new_rows = _rows_with(
        newest, written, shared[anchor], anchors=anchors, names=list(shared.values())
    )
    if max(len(old_rows), len(new_rows)) > _ALIKE_MAX:
        return {}
    followed: dict[int, int] = {}
    for edited in {frozenset(edits.cells.get(row, ())) for row in rows}:
        names = [name for name in shared if name not in edited]
        old_ids = _ids_by_values(old_rows, names)
        new_ids = _ids_by_values(new_rows, [shared[name] for name in names])
        followed |= {
            ids[0]: new_ids[values][0]
            for values, ids in old_ids.items()
            if len(ids) == len(new_ids.get(values, ())) == 1
            and frozenset(edits.cells.get(ids[0], ())) == edited
        }
    return {row: followed[row] for row in rows if row in followed}


def _rows_with(
    snapshot: Snapshot, positions: Ints, anchor: str, anchors: pa.Array, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Read those of the rows that have one of some values in a column, with their row ids."""
    import pyarrow.compute as pc

    schema = snapshot.manifest.schema
    column = take_rows(snapshot, project(schema, [quoted([anchor])]), positions).column(anchor)
    hits = positions[pc.is_in(column, anchors).to_numpy(zero_copy_only=False)][: _ALIKE_MAX + 1]
    columns = project(schema, [quoted([name]) for name in names], [ROW_ID])
    table = take_rows(snapshot, columns, hits)
    values = [_plain_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*values, strict=True)]


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Return values that can be compared by their text; nanoseconds have no type in Python."""
    if pt.is_temporal(column.type) and not pt.is_interval(column.type):
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = pa.chunked_array([chunk.view(width) for chunk in column.chunks], width)
    values: list[Any] = column.to_pylist()
    return values


def _ids_by_values(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[int]]:
    ids_by_values: dict[str, list[int]] = {}
    for row in rows:
        ids_by_values.setdefault(repr([row[name] for name in names]), []).append(row[ROW_ID])
    return ids_by_values


def _rows_of_same_key(
    base: Snapshot, newest: Snapshot, rows: Sequence[int], key: Sequence[str], written: Ints
) -> dict[int, int]:
    """Find rows that were written again by the primary key."""
    import pyarrow.compute as pc

    paths = [quoted([name]) for name in key]
    columns = project(newest.manifest.schema, paths, [ROW_ID])
    after = take_rows(newest, columns, written)
    values = _values(base, rows, list(key))
    first = values.column(key[0])
    after = after.filter(pc.is_in(after.column(key[0]), first.combine_chunks()))
    new_ids: dict[tuple[Any, ...], list[int]] = {}
    for row, *value in zip(
        *(_plain_values(after.column(name)) for name in (ROW_ID, *key)), strict=True
    ):
        new_ids.setdefault(tuple(value), []).append(row)
    old_rows: dict[tuple[Any, ...], list[int]] = {}
    old_keys = zip(*(_plain_values(values.column(name)) for name in key), strict=True)
    for row, old_key in zip(rows, old_keys, strict=True):
        old_rows.setdefault(old_key, []).append(row)
    # The key is not enforced: what it names twice, on either side, is not followed.
    matches = ((old_rows[old_key], new_ids.get(old_key, ())) for old_key in old_rows)
    return {old[0]: new[0] for old, new in matches if len(old) == len(new) == 1}


def _shares_file(fragment: Fragment, other: Fragment) -> bool:
    return not {file.path for file in fragment.files}.isdisjoint(file.path for file in other.files)


def _values(snapshot: Snapshot, rows: Sequence[int], names: Sequence[str]) -> pa.Table:
    positions = choose_positions(snapshot, np.asarray(rows, np.uint64), None, None)
    columns = project(snapshot.manifest.schema, [quoted([name]) for name in names])
    return take_rows(snapshot, columns, positions)


def _scalars(base: Snapshot, values: Mapping[str, Any]) -> dict[str, pa.Scalar]:
    schema = base.manifest.schema.to_arrow()
    return {name: given_values([value], schema.field(name))[0] for name, value in values.items()}


def is_same_value(scalar: pa.Scalar, other: pa.Scalar) -> bool:
    """Return whether two scalars of a type are equal; null equals null, NaN equals NaN."""
    pair = (pa.chunked_array([pa.array([value], value.type)]) for value in (scalar, other))
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
        field.name: new.name
        for field in base.manifest.schema
        if (new := next((new for new in after if new.id == field.id), None)) is not None
        and not holds_blobs(field)
    }
    new_ids = list(rows.values())
    before = _values(base, list(rows), list(shared))
    now = _values(newest, new_ids, list(shared.values()))
    conflicts: dict[int, CellConflict] = {}
    for name, called in shared.items():
        differs = values_differ(before.column(name), now.column(called))
        for row_index in np.flatnonzero(differs).tolist():
            values = before.column(name)[row_index], None, now.column(called)[row_index]
            conflicts.setdefault(
                new_ids[row_index], CellConflict(new_ids[row_index], None, *values)
            )
    return conflicts


MAX_DEPTH = 64
_SHOWN_CHARS = 80
_OFFSET = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$", re.IGNORECASE)
_OUTSIDE = (ArithmeticError, RecursionError, TypeError, ValueError, pa.ArrowException)


def given_values(values: Sequence[object], column: pa.Field) -> pa.Array:
    """Return Python values or Arrow scalars of a column as one array in its type.

    Raises InvalidInputError for a value that the column cannot hold as it is.
    """
    plain = [_plain(value, column.type) for value in values]
    if not column.nullable and any(
        value is None or (isinstance(value, pa.Scalar) and not value.is_valid) for value in plain
    ):
        raise InvalidInputError(f"column {column.name!r} takes no nulls")
    try:
        array = pa.array(plain, column.type)
        for value, stored in zip(plain, array, strict=True):
            if not isinstance(value, pa.Scalar):
                _check_kept(value, stored.as_py(), column.type)
    except _OUTSIDE as exc:
        bad = next((value for value in plain if not _fits(value, column.type)), plain[0])
        raise _refusal(bad, column, exc) from exc
    return array


def given_rows(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    """Return rows that are given as mappings as a table; columns that they leave out are null.

    Raises InvalidInputError as ``given_values`` does, and for a name that is no column.
    """
    for row in rows:
        unknown = [name for name in row if name not in schema.names]
        if unknown:
            raise InvalidInputError(f"there is no column {str(unknown[0])[:_SHOWN_CHARS]!r}")
    columns = [given_values([row.get(column.name) for row in rows], column) for column in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(value: object, kind: pa.DataType) -> object:
    """Return a scalar of another type as a Python value."""
    return value.as_py() if isinstance(value, pa.Scalar) and value.type != kind else value


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        array = pa.array([value], kind)
        if not isinstance(value, pa.Scalar):
            _check_kept(value, array[0].as_py(), kind)
    except _OUTSIDE:
        return False
    return True


def _check_kept(value: Any, stored: Any, kind: pa.DataType, depth: int = 0) -> None:
    """Raise InvalidInputError where Arrow took a value and stored another one."""
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"more than {MAX_DEPTH} levels")
    kinds = pa.types
    if value is None or stored is None:
        return
    if kinds.is_struct(kind) and isinstance(value, Mapping):
        names = {kind.field(index).name for index in range(kind.num_fields)}
        unknown = [key for key in value if key not in names]
        if unknown:
            raise InvalidInputError(f"there is no field {unknown[0]!r}")
        for index in range(kind.num_fields):
            part = kind.field(index)
            _check_kept(value.get(part.name), stored[part.name], part.type, depth + 1)
    elif (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)) and (
        not isinstance(value, str | bytes)
    ):
        for element, other in zip(value, stored, strict=True):
            _check_kept(element, other, kind.value_type, depth + 1)
    elif kinds.is_integer(kind) and not isinstance(value, pa.Scalar):
        if isinstance(value, float) and value != stored:
            raise InvalidInputError("a fraction would be cut off")
    elif kinds.is_floating(kind):
        if math.isinf(float(stored)) and not math.isinf(float(value)):
            raise InvalidInputError("the number is too large")
    elif kinds.is_timestamp(kind) and isinstance(value, datetime):
        if (value.tzinfo is None) != (kind.tz is None):
            missing = "a time zone is missing" if kind.tz else "the column has no time zone"
            raise InvalidInputError(missing)
        if value != stored:
            raise InvalidInputError("the time is finer than the column's unit")


def hand_value(value: object, column: pa.Field) -> pa.Array:
    """Return a value that a person wrote for a column as an array of one, in the column's type.

    A text is read as the type has it. Raises InvalidInputError for what is no such value, and for a
    null where the column takes none.
    """
    kind = column.type
    stored = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = pa.types.is_string(stored) or pa.types.is_large_string(stored)
    if not isinstance(value, str) or is_text or stored == pa.string_view():
        return given_values([value], column)
    if pa.types.is_binary(stored) or pa.types.is_large_binary(stored):
        raise InvalidInputError(f"column {column.name!r} is {kind}: its values cannot be typed")
    try:
        if pa.types.is_nested(stored):
            parsed = json.loads(value)
            array = pa.array([parsed], kind)
            _check_kept(parsed, array[0].as_py(), kind)
            return array
        array = _from_text(value.strip(), stored)
        return array if stored == kind else pa.array(array.to_pylist(), kind)
    except _OUTSIDE as exc:
        raise _refusal(value, column, exc) from exc


def _from_text(written: str, kind: pa.DataType) -> pa.Array:
    """Read the text of one value. Raises InvalidInputError, pyarrow.ArrowException."""
    kinds = pa.types
    if kinds.is_timestamp(kind) and kind.tz is not None and not _has_offset(written):
        import pyarrow.compute as pc

        return pc.assume_timezone(pa.array([written]).cast(pa.timestamp(kind.unit)), kind.tz)
    if kinds.is_time(kind):
        # Arrow reads no time of day from text; that of a day is its time.
        moment = pa.array([f"1970-01-01T{written}"]).cast(pa.timestamp(kind.unit))
        return moment.cast(kind)
    array = pa.array([written]).cast(kind)
    if kinds.is_floating(kind) and math.isinf(array[0].as_py()) and "inf" not in written.lower():
        raise InvalidInputError("the number is too large")
    return array


def _has_offset(written: str) -> bool:
    clock = written[10:]  # behind the date, whose dashes look like an offset
    return _OFFSET.search(clock) is not None


def _refusal(value: object, column: pa.Field, exc: BaseException) -> InvalidInputError:
    shown = value if isinstance(value, str) else repr(value)
    reason = f": {exc}" if isinstance(exc, InvalidInputError) else ""
    return InvalidInputError(
        f"{shown[:_SHOWN_CHARS]!r} is no value of column {column.name!r}, which is {column.type}"
        f"{reason}"
    )


_SHOWN = 3


class EditResult(TypedDict):
    """What ``LanceDataset.edit`` returns.

    Examples:
        >>> row = ds.to_table(columns=["id"], with_row_id=True, limit=1)["_rowid"][0].as_py()
        >>> ds.edit({row: {"label": "c"}})["num_edited_cells"]
        1
    """

    num_edited_cells: int
    num_updated_rows: int
    num_inserted_rows: int
    num_deleted_rows: int


def edits_of(cells: Cells | None, delete: Collection[int]) -> CellEdits:
    """Return the edits of the arguments. Raises InvalidInputError."""
    try:
        by_row = {int(row): dict(values) for row, values in (cells or {}).items()}
        deleted = frozenset(map(int, delete))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInputError(
            "cells are {row id: {column: value}}, and delete is a list of row ids, for example "
            "ds.edit({7: {'label': 'cat'}}, delete=[8])"
        ) from error
    outside = [row for row in (*by_row, *deleted) if not 0 <= row < 2**64]
    if outside:
        raise InvalidInputError(f"{outside[0]} is no row id")
    return CellEdits(by_row, deleted)


def plan(
    snapshot: Snapshot,
    edits: CellEdits,
    add: Any = None,
    *,
    stands_alone: bool = True,
    progress: Progress | None = None,
) -> list[Edit]:
    """Write the new rows and values to files; nothing is committed.

    Raises as ``LanceDataset.edit`` does.
    """
    counter = ProgressCounter(len(edits.cells), progress).add
    alone = stands_alone and add is None
    planned: list[Edit] = [
        *plan_cells(snapshot, edits, own_options(snapshot), stands_alone=alone, progress=counter)
    ]
    if add is not None:
        schema = snapshot.manifest.schema.to_arrow()
        is_listed = isinstance(add, list) and all(isinstance(row, Mapping) for row in add)
        data = given_rows(add, schema) if is_listed else fitted(add, schema)
        planned.append(write_addition(snapshot, data, WriteRequest()))
    if not planned:
        raise InvalidInputError("nothing is edited: give cells, rows to add, or rows to delete")
    return planned


def edit(
    session: Session,
    snapshot: Snapshot,
    edits: CellEdits,
    add: Any,
    *,
    max_retries: int,
    timeout_s: float,
    progress: Progress | None = None,
) -> tuple[Snapshot, EditResult]:
    """Edit and commit; return the new version and the numbers of what changed.

    Raises CommitConflictError when somebody else changed a cell or row of the edit, and otherwise
    as ``plan`` and ``commit_staged`` do.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, EditResult]:
        mine, conflicts = carried_over(snapshot, base, edits)
        if conflicts:
            raise CommitConflictError(refusal(base.version, conflicts))
        if add is None and not mine.cells and not mine.deleted and base is not snapshot:
            return base, _result(mine, 0)  # somebody else did the same meanwhile
        planned = plan(base, mine, add, progress=progress)
        snapshot_after = commit_staged(session, base.branch, combine(base, planned))
        added = sum(change.num_rows for change in planned if isinstance(change, Addition))
        return snapshot_after, _result(mine, added)

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)


def _result(edits: CellEdits, num_added: int) -> EditResult:
    return {
        "num_edited_cells": edits.num_cells,
        "num_updated_rows": len(edits.cells),
        "num_inserted_rows": num_added,
        "num_deleted_rows": len(edits.deleted),
    }


def refusal(version: int, conflicts: Collection[CellConflict]) -> str:
    """Say in one line what others have changed."""
    listed = "; ".join(conflict.text for conflict in list(conflicts)[:_SHOWN])
    more = len(conflicts) - _SHOWN
    more_text = f"; and {more:,} more" if more > 0 else ""
    return (
        f"version {version} has other values where this edit changes something: "
        f"{listed}{more_text}. Nothing was committed; look at the newest version and edit it"
    )
