"""Merge values instead of files: do the row changes of the source once more on the target.

Rows are known by key columns or stable row ids, so it does not matter in which files they lie: a
side may have been compacted. What the source changed since the base is found by comparing values,
then each row is merged cell by cell. A cell that only one side changed is as that side has it. With
choices, a cell that both changed is decided by them; without, a row that both changed is one
conflict, as it is elsewhere. Changed rows are deleted at their place in the target and written anew
as one fragment, with their row ids.

Limits: at most ``ROWS_MAX`` rows of the base and the source are compared, in memory. Columns of
blobs are not merged this way, and neither are columns whose types do not convert. Without key
columns and stable row ids nothing says which row is which.
Source: our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import holds_blobs
from lance_nb.format.fragment import Fragment
from lance_nb.format.transaction_summary import count_of
from lance_nb.merging.choices import (
    BASE,
    OURS,
    THEIRS,
    VALUE,
    CellChoice,
    row_text,
)
from lance_nb.merging.conflicts import FAIL, KEYS, ROWS, Findings
from lance_nb.merging.file_locations import files_by_field, same_deletions
from lance_nb.merging.fragments import Matches
from lance_nb.merging.matching import Match, RowIds, match_rows
from lance_nb.merging.merge_base import Ends, Shared, Side
from lance_nb.merging.row_merge import (
    NEW,
    NOWHERE,
    ConflictingRows,
    first_match,
    group_keys,
    row_ids_at,
)
from lance_nb.merging.schemas import MergedSchema
from lance_nb.table.diff.row_compare import values_differ
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import project
from lance_nb.transactions.row_lineage import all_row_ids
from lance_nb.value_classes import dataclass
from lance_nb.writing.editing import hand_value

Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]
ROWS_MAX = 5_000_000
_AT_BASE, _AT_OURS, _AT_THEIRS, _AT_VALUE = 0, 1, 2, 3
_SIDES = {BASE: _AT_BASE, OURS: _AT_OURS, THEIRS: _AT_THEIRS}


class NoIdentityError(InvalidInputError):
    """Nothing says which row of one version is which row of another."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Rows to delete in the target, by fragment, and rows to write, with their row ids.

    ``row_ids`` is None without stable row ids; rows without an id get ``NEW``.
    """

    dropped: Mapping[int, Ints]
    rows: pa.Table
    row_ids: U64s | None
    conflicts: ConflictingRows
    cells: ConflictCells


@dataclass(frozen=True, slots=True)
class ConflictCell:
    """One cell that both sides changed, or a row that one side changed and the other deleted.

    ``row`` is the value of the key or the row id, ``column`` None for a whole row. ``base``,
    ``ours`` (the target's) and ``theirs`` (the source's) are scalars, of a whole row structs, None
    where a side has no such row. ``take`` is what was chosen, None while nothing is, and ``value``
    what was written by hand.
    """

    row: object
    column: str | None
    base: pa.Scalar | None
    ours: pa.Scalar | None
    theirs: pa.Scalar | None
    take: str | None = None
    value: object = None


@dataclass(frozen=True, slots=True)
class ConflictCells:
    """All cells that both sides changed; their values are read when a window of them is.

    ``places``: where base, target and source have the rows, (fragment id, offset); ``clash`` marks
    cells, ``deleted`` rows that one side deleted, ``sides`` what was chosen, all by row and column.
    """

    replay: RowReplay = field(repr=False)
    places: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
    clash: Mask
    deleted: Mask
    sides: Ints

    def __len__(self) -> int:
        return int(self._counts().sum())

    @property
    def num_rows(self) -> int:
        """Rows with a cell in conflict."""
        return len(self.deleted)

    @property
    def num_deleted_rows(self) -> int:
        """Rows that one side deleted and the other changed."""
        return int(self.deleted.sum())

    def columns(self) -> dict[str, int]:
        """Return the columns with cells in conflict, and how many."""
        counts = self.clash[~self.deleted].sum(axis=0).tolist()
        return {name: count for name, count in zip(self.replay.names, counts, strict=True) if count}

    def _counts(self) -> Ints:
        return np.where(self.deleted, 1, self.clash.sum(axis=1)).astype(np.int64)

    def window(self, first: int, count: int) -> list[ConflictCell]:
        """Read some cells, by row."""
        ends = np.cumsum(self._counts())
        start, stop = np.searchsorted(ends, (first, first + count - 1), side="right").tolist()
        rows = np.arange(start, min(stop + 1, self.num_rows))
        before = int(ends[start - 1]) if start else 0
        cells = self._read(rows)
        return cells[first - before : first - before + count]

    def _read(self, rows: Ints) -> list[ConflictCell]:
        places = [side_places[rows] for side_places in self.places]
        labels = self.replay.labels(places)
        tables = [
            self.replay.values(number, side_places) for number, side_places in enumerate(places)
        ]
        present = [side_places[:, 0] != NOWHERE for side_places in places]
        whole = [table.to_struct_array() for table in tables]
        cells = []
        for index, row in enumerate(rows.tolist()):
            is_gone = bool(self.deleted[row])
            for column in (None,) if is_gone else np.flatnonzero(self.clash[row]).tolist():
                base, ours, theirs = (
                    None
                    if not is_present[index]
                    else every[index]
                    if column is None
                    else table.column(column)[index]
                    for table, every, is_present in zip(tables, whole, present, strict=True)
                )
                name = None if column is None else self.replay.names[column]
                taken = self._taken(row, column or 0)
                cells.append(ConflictCell(labels[index], name, base, ours, theirs, *taken))
        return cells

    def _taken(self, row: int, column: int) -> tuple[str | None, object]:
        side = int(self.sides[row, column])
        if side == _AT_VALUE:
            return VALUE, self.replay.written(row, column)
        return next((name for name, value in _SIDES.items() if value == side), None), None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one side: where they are, (fragment id, offset), and their names."""

    places: npt.NDArray[np.int64]
    names: npt.NDArray[np.generic]

    def chosen(self, selection: Ints | Mask) -> _Rows:
        return _Rows(self.places[selection], self.names[selection])


class RowReplay:
    """One merge of values. ``choices`` None: whole rows are decided, by ``on_conflict``."""

    def __init__(
        self,
        ends: Ends,
        matches: Matches,
        schema: MergedSchema,
        keys: Sequence[str],
        choices: Sequence[CellChoice] | None,
    ) -> None:
        self._ends, self._matches, self._schema = ends, matches, schema
        self._keys, self._choices = tuple(keys), choices
        self._hand: dict[tuple[int, int], object] = {}  # values written by hand: (row, column)
        self._conflicts: Ints = np.empty(0, np.int64)  # rows in conflict among all that are merged
        sides = (ends.base, ends.source, ends.target)
        self._by_id = not self._keys and all(side.has_row_ids for side in sides)
        base_fields = {
            base_id: schema.fields[s]
            for base_id, s in matches.base_source.fields.items()
            if s in schema.fields
        }
        base_fields.update(matches.base_target.fields)
        now = {field.id: field.id for field in ends.target.manifest.schema.walk()}
        self._fields = (base_fields, now, schema.fields)

    def check(self) -> None:
        """Raise NoIdentityError or NotSupportedError when rows cannot be merged by value."""
        if not self._keys and not self._by_id:
            raise NoIdentityError(
                "the rows have no stable ids and no key: name the columns that identify a row, "
                "for example key=['id']"
            )
        blobs = [field.name for field in self._schema.schema if holds_blobs(field)]
        if blobs:
            raise NotSupportedError(
                f"column {blobs[0]!r} holds blobs, which are not merged by value"
            )
        names = {field.name for field in self._schema.schema}
        missing = [key for key in self._keys if key not in names]
        if missing:
            raise InvalidInputError(f"key column {missing[0]!r} is dropped by the merge")

    def run(self, findings: Findings) -> Replayed:
        """Merge; conflicts go to ``findings``. Raises as ``check`` does."""
        self.check()
        before, after = self._candidates()
        base, source, target = self._named(before, after)
        names = np.unique(np.concatenate([base.names, source.names]))
        positions = [first_match(names, rows.names) for rows in (base, target, source)]
        places = [
            _placed(rows, where)
            for rows, where in zip((base, target, source), positions, strict=True)
        ]
        tables = [self.values(number, side_places) for number, side_places in enumerate(places)]
        present = [side_places[:, 0] != NOWHERE for side_places in places]
        taken, exists, cells = self._merged(names, places, tables, findings)
        changed = self._differs_from_target(tables, taken, exists, present[1])
        removed = present[1] & (changed | ~exists)
        written = np.flatnonzero(changed & exists)
        table = self._table(tables, [column[written] for column in taken], written)
        ids = (
            self._ids([side_places[written] for side_places in places])
            if self._ends.target.has_row_ids
            else None
        )
        rows = ConflictingRows(cells.places[0], cells.places[2], cells.places[1])
        return Replayed(_by_fragment(places[1][removed]), table, ids, conflicts=rows, cells=cells)

    # --- which rows -------------------------------------------------------------------------------

    def _candidates(self) -> tuple[list[tuple[Fragment, Ints]], list[tuple[Fragment, Ints]]]:
        """Return rows that may differ between base and source."""
        ends, pairs = self._ends, self._matches.base_source.fragments
        fields = (self._fields[0], self._fields[2])
        before, after = [], []
        for base_fragment in ends.base.fragments.values():
            source_fragment = ends.source.fragments.get(pairs.get(base_fragment.id, NOWHERE))
            if source_fragment is not None and self._is_same(
                base_fragment, source_fragment, fields
            ):
                continue
            before.append((base_fragment, ends.base.live(base_fragment)))
            if source_fragment is not None:
                after.append((source_fragment, ends.source.live(source_fragment)))
        paired = set(pairs.values())
        new = (fragment for fragment in ends.source.fragments.values() if fragment.id not in paired)
        after += [(fragment, ends.source.live(fragment)) for fragment in new]
        count = sum(rows.size for _, rows in (*before, *after))
        if count > ROWS_MAX:
            raise NotSupportedError(
                f"{count:,} rows would be compared in memory, more than {ROWS_MAX:,}: merge the "
                "branch before it is compacted, or commit by commit with cherry_pick"
            )
        return before, after

    def _is_same(
        self,
        base_fragment: Fragment,
        source_fragment: Fragment,
        fields: tuple[Mapping[int, int], Mapping[int, int]],
    ) -> bool:
        ends = self._ends
        if not same_deletions(ends.base, base_fragment, ends.source, source_fragment):
            return False
        field_ids = {field.id for field in self._schema.schema.walk()}
        left = files_by_field(ends.base, base_fragment, fields[0])
        right = files_by_field(ends.source, source_fragment, fields[1])
        return all(
            left.get(name) == right.get(name) for name in field_ids & (left.keys() | right.keys())
        )

    def _named(
        self, before: list[tuple[Fragment, Ints]], after: list[tuple[Fragment, Ints]]
    ) -> tuple[_Rows, _Rows, _Rows]:
        ends = self._ends
        every = [
            (fragment, ends.target.live(fragment)) for fragment in ends.target.fragments.values()
        ]
        if self._by_id:
            return self._by_row_id(before, after, every)
        tables = [
            _read(side, self._key_fields(number), _places_of(rows))
            for number, (side, rows) in enumerate(
                ((ends.base, before), (ends.target, every), (ends.source, after))
            )
        ]
        types = tables[1].schema
        numbers = group_keys([_cast(table, types) for table in tables])
        for side_name, names, table in zip(
            ("base", "target", "source"), numbers, tables, strict=True
        ):
            self._check_unique(side_name, names, table)
        rows_of_sides = [
            _Rows(_places_of(rows), names)
            for rows, names in zip((before, every, after), numbers, strict=True)
        ]
        return rows_of_sides[0], rows_of_sides[2], rows_of_sides[1]

    def _key_fields(self, number: int) -> list[str | None]:
        """Return what the key columns are called on a side."""
        return [self._name_on(number, self._schema.schema.field(key).id) for key in self._keys]

    def _check_unique(
        self, side_name: str, names: npt.NDArray[np.generic], table: pa.Table
    ) -> None:
        _, first, counts = np.unique(names, return_index=True, return_counts=True)
        if (counts > 1).any():
            example = table.slice(int(first[counts > 1][0]), 1).to_pylist()[0]
            keys = ", ".join(self._keys)
            raise InvalidInputError(
                f"key {keys} does not identify a row: {example} occurs more than once in the "
                f"{side_name}"
            )

    def _by_row_id(
        self,
        before: list[tuple[Fragment, Ints]],
        after: list[tuple[Fragment, Ints]],
        every: list[tuple[Fragment, Ints]],
    ) -> tuple[_Rows, _Rows, _Rows]:
        """Name rows as the base does; rows that the base does not have get names of their own."""
        ends = self._ends
        rows_of_sides = []
        for side, rows, shared, of_base in (
            (ends.base, before, None, None),
            (ends.source, after, ends.base_source, self._matches.base_source),
            (ends.target, every, ends.base_target, self._matches.base_target),
        ):
            parts = [all_row_ids(fragment)[offsets] for fragment, offsets in rows]
            ids = np.concatenate([np.empty(0, np.uint64), *parts])
            if shared is not None and of_base is not None:
                ids = self._base_ids(side, ids, shared, of_base)
            rows_of_sides.append(_Rows(_places_of(rows), ids))
        limit = min(
            (
                shared.row_id
                for shared in (ends.base_source, ends.base_target)
                if shared.row_id is not None
            ),
            default=None,
        )
        if (
            limit is not None
            and rows_of_sides[0].names.size
            and int(rows_of_sides[0].names.max()) >= limit
        ):
            self._check_matched(rows_of_sides[0])
        return rows_of_sides[0], *self._with_new_names(rows_of_sides[1], rows_of_sides[2])

    def _with_new_names(self, source: _Rows, target: _Rows) -> tuple[_Rows, _Rows]:
        """Name rows that the base does not have: one name where both sides have the row."""
        ends, every = self._ends, self._every_base_id()
        theirs_new, ours_new = (
            ~np.isin(rows_of_side.names, every) for rows_of_side in (source, target)
        )
        ours = np.arange(target.names.size, dtype=np.uint64) + np.uint64(2**62)
        ours = np.where(ours_new, ours, target.names)
        theirs = np.arange(source.names.size, dtype=np.uint64) + np.uint64(2**63)
        ids = row_ids_at(ends.source, source.places)
        moved = match_rows(ends.source, ends.target, self._matches.source_target.fragments)
        moved_ids, is_moved = moved.of(ids)
        limit = ends.source_target.row_id
        is_shared = is_moved | (limit is None) | (ids < np.uint64(limit or 0))
        position = first_match(moved_ids, row_ids_at(ends.target, target.places))
        is_twice = theirs_new & is_shared & (position != NOWHERE)
        is_twice[is_twice] = ours_new[position[is_twice]]
        theirs[is_twice] = ours[position[is_twice]]
        theirs = np.where(theirs_new, theirs, source.names).astype(np.uint64)
        # What was picked and then deleted here stays deleted; what is older than the base was not
        # picked but brought back.
        fragments = np.array(list(self._matches.source_target.fragments), np.int64)
        oldest = ends.base_source.row_id
        oldest = ends.base.manifest.next_row_id if oldest is None else oldest
        is_picked = theirs_new & ~is_twice & np.isin(source.places[:, 0], fragments)
        is_picked &= ids >= np.uint64(oldest)
        named = _Rows(source.places, theirs).chosen(~is_picked)
        return named, _Rows(target.places, ours.astype(np.uint64))

    def _base_ids(self, side: Side, ids: U64s, shared: Shared, of_base: Match) -> U64s:
        """Return row ids as the base has them; one given after the ways parted gets ``NEW``."""
        moved = match_rows(self._ends.base, side, of_base.fragments)
        order = np.argsort(moved.after)
        named, is_known = RowIds(moved.after[order], moved.before[order]).of(ids)
        if shared.row_id is None:
            return named
        same = np.concatenate(
            [np.empty(0, np.uint64)]
            + [
                all_row_ids(side.fragments[fragment_id])
                for fragment_id in of_base.fragments.values()
            ]
        )
        strange = (ids >= np.uint64(shared.row_id)) & ~is_known & ~np.isin(ids, same)
        return np.where(strange, NEW, named).astype(np.uint64)

    def _every_base_id(self) -> U64s:
        parts = [all_row_ids(fragment) for fragment in self._ends.base.fragments.values()]
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def _check_matched(self, base: _Rows) -> None:
        """Refuse rows whose ids were given after the sides parted, in files that one side lacks."""
        base_to_target, base_to_source = (
            self._matches.base_target.fragments,
            self._matches.base_source.fragments,
        )
        numbers = set(np.unique(base.places[:, 0]).tolist())
        if numbers - base_to_target.keys() or numbers - base_to_source.keys():
            raise NoIdentityError(
                "some rows got other ids when they were merged before: name the columns that "
                "identify a row, for example key=['id']"
            )

    # --- values -----------------------------------------------------------------------------------

    def _name_on(self, number: int, field_id: int) -> str | None:
        """Return the name of a top-level column of the outcome on base, target or source."""
        sides = (self._ends.base, self._ends.target, self._ends.source)
        fields = self._fields[number]
        for manifest_field in sides[number].manifest.schema.fields:
            if fields.get(manifest_field.id) == field_id:
                return manifest_field.name
        return None

    def _has_columns(self) -> tuple[Mask, Mask, Mask]:
        """Return which columns of the outcome the base, the target and the source have."""
        fields = self._schema.schema.fields
        base, ours, theirs = (
            np.array([self._name_on(number, field.id) is not None for field in fields], np.bool_)
            for number in (0, 1, 2)
        )
        return base, ours, theirs

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row, none where row ids do."""
        return self._keys

    @property
    def names(self) -> list[str]:
        """The columns of the outcome."""
        return list(self._schema.schema.names)

    def written(self, row: int, column: int) -> object:
        """Return the value that was written by hand for a cell of a row in conflict."""
        return self._hand.get((int(self._conflicts[row]), column))

    def values(self, number: int, places: npt.NDArray[np.int64]) -> pa.Table:
        """Read rows of a side in the columns of the outcome, null where there is none.

        ``number``: 0 the base, 1 the target, 2 the source.
        """
        sides = (self._ends.base, self._ends.target, self._ends.source)
        arrow_schema = self._schema.schema.to_arrow()
        names = [self._name_on(number, field.id) for field in self._schema.schema.fields]
        present = np.flatnonzero(places[:, 0] != NOWHERE)
        order = present[np.lexsort((places[present, 1], places[present, 0]))]
        table = _read(sides[number], names, places[order])
        indices = np.full(len(places), NOWHERE, np.int64)
        indices[order] = np.arange(order.size)
        index = pa.array(indices, pa.int64(), mask=indices == NOWHERE)
        nothing = not table.num_rows
        columns = [
            pa.chunked_array([pa.nulls(len(places), field.type)])
            if nothing
            else _converted(column, field).take(index)
            for column, field in zip(table.columns, arrow_schema, strict=True)
        ]
        nullable = pa.schema([field.with_nullable(True) for field in arrow_schema])
        return pa.Table.from_arrays(columns, schema=nullable)

    def _merged(
        self,
        names: npt.NDArray[np.generic],
        places: list[npt.NDArray[np.int64]],
        tables: list[pa.Table],
        findings: Findings,
    ) -> tuple[list[Ints], Mask, ConflictCells]:
        """Choose for each cell which side it is taken from, and which rows exist."""
        base, ours, theirs = (_as_mask(side_places[:, 0] != NOWHERE) for side_places in places)
        differ = [_columns_differ(tables[a], tables[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
        mine, other, apart = (
            np.stack(masks, axis=1) if masks else np.zeros((names.size, 0), np.bool_)
            for masks in differ
        )
        both_there = np.asarray(ours & theirs)
        other &= both_there[:, None] & base[:, None]
        mine &= both_there[:, None] & base[:, None]
        # Rows: what both added are cells in conflict; of the rest, who deleted and who changed.
        in_base, in_ours, in_theirs = self._has_columns()
        twice = ~base & both_there
        mine[twice], other[twice] = in_ours, in_theirs
        clash = mine & other & apart
        row_changed = _rows_differ(differ[1], base & theirs, in_base & in_theirs)
        row_mine = _rows_differ(differ[0], base & ours, in_base & in_ours)
        gone_clash = base & ((~ours & theirs & row_changed) | (ours & ~theirs & row_mine))
        common = in_ours & in_theirs
        if self._choices is None:
            both_changed = (mine & in_base).any(axis=1) & (other & in_base).any(axis=1)
            whole = _as_mask((both_changed | twice) & (apart & common).any(axis=1))
            clash = whole[:, None] & apart & common
        conflict = clash.any(axis=1) | gone_clash
        taken = np.where(other & ~clash, _AT_THEIRS, _AT_OURS).astype(np.int64)
        taken[~ours & theirs] = _AT_THEIRS
        exists = _as_mask(np.where(base, ours & theirs, ours | theirs))
        sides = np.full(clash.shape, NOWHERE, np.int64)
        if conflict.any():
            sides = self._decided(places, clash, gone_clash, findings)
            if self._choices is None:
                whole_rows = _as_mask(clash.any(axis=1))
                chosen = np.where(sides == NOWHERE, _AT_OURS, sides)
                taken = np.where(whole_rows[:, None] & common, chosen, taken)
            else:
                taken = np.where(clash & (sides != NOWHERE), sides, taken)
            for row_index in np.flatnonzero(gone_clash).tolist():
                side = int(sides[row_index, 0])
                is_present = (base, ours, theirs)[side if side != NOWHERE else _AT_OURS]
                exists[row_index] = is_present[row_index]
                taken[row_index] = side if side != NOWHERE else _AT_OURS
            by_base = ((sides == _AT_BASE) | ~clash).all(axis=1) & clash.any(axis=1)
            exists &= ~(twice & by_base)  # the base has no such row
        columns = [taken[:, column_index] for column_index in range(taken.shape[1])]
        rows = self._conflicts = np.flatnonzero(conflict)
        where = (places[0][rows], places[1][rows], places[2][rows])
        masks = _as_mask(clash[rows]), _as_mask(gone_clash[rows])
        return columns, exists, ConflictCells(self, where, *masks, sides[rows])

    def _decided(
        self,
        places: list[npt.NDArray[np.int64]],
        clash: Mask,
        removed: Mask,
        findings: Findings,
    ) -> Ints:
        """Return the chosen side of each cell, NOWHERE where nothing is chosen; report what is."""
        rows = np.flatnonzero(clash.any(axis=1) | removed)
        sides = np.full(clash.shape, NOWHERE, np.int64)
        fragments = sorted(set(places[0][rows, 0].tolist()) - {NOWHERE})
        if self._choices is None:
            decided = findings.on_conflict
            self._report_whole_rows(places[0][rows, 0], findings)
            if decided != FAIL:
                sides[rows] = _SIDES[decided]
            return sides
        names = self.names
        index = self._index(places, rows)
        for choice in sorted(self._choices, key=lambda choice: choice.rank):
            where = rows if choice.row is None else self._row_of(index, choice.row)
            if choice.column is None:
                sides[where] = _SIDES[choice.take]
                continue
            if choice.column not in names:
                raise InvalidInputError(f"there is no column {choice.column!r} to choose for")
            column_index = names.index(choice.column)
            if choice.take == VALUE:
                hand_value(choice.value, self._schema.schema.to_arrow().field(column_index))
            whole = where[~removed[where]]
            sides[whole, column_index] = _AT_VALUE if choice.take == VALUE else _SIDES[choice.take]
            if choice.take == VALUE:
                self._hand.update(
                    {(int(row_index), column_index): choice.value for row_index in whole.tolist()}
                )
        cells = clash | removed[:, None]
        open_ = np.flatnonzero((cells & (sides == NOWHERE)).any(axis=1))
        done = rows.size - open_.size
        if done:
            text = f"{count_of(done, 'row')} changed on both sides, decided cell by cell"
            findings.report_decided(ROWS, text, fragments, done)
        if open_.size:
            shown = "; ".join(map(str, self._example(places, open_[:3])))
            findings.report(
                ROWS,
                f"{count_of(open_.size, 'row')} changed on both sides without a choice ({shown})",
                choices=(),
                remedy="Choose with resolve, for example 'theirs' or 'column=ours'",
                fragments=fragments,
                num_rows=int(open_.size),
            )
        sides[~cells] = _AT_OURS
        return sides

    def _report_whole_rows(self, base: Ints, findings: Findings) -> None:
        """Report rows in conflict, by their fragment in the base, NOWHERE for added ones."""
        changed, num_added = base[base != NOWHERE], int((base == NOWHERE).sum())
        if changed.size:
            numbers = np.unique(changed).tolist()
            shown = ", ".join(map(str, numbers[:5]))
            text = f"{count_of(changed.size, 'row')} changed on both sides"
            where = f" (fragments {shown} of the base)"
            findings.report(ROWS, text + where, fragments=numbers, num_rows=changed.size)
        if num_added:
            names = ", ".join(self._keys)
            text = f"{count_of(num_added, 'row')} of the same {names} added on both sides"
            findings.report(KEYS, text, num_rows=num_added)

    def _example(self, places: list[npt.NDArray[np.int64]], rows: Ints) -> list[object]:
        keys = ", ".join(self._keys) or "row id"
        return [
            f"{keys} = {label!r}"
            for label in self.labels([side_places[rows] for side_places in places])
        ]

    def labels(self, places: Sequence[npt.NDArray[np.int64]]) -> list[object]:
        """Return what people call rows: the value of the key, or the row id.

        ``places``: where base, target and source have them.
        """
        sides = (self._ends.base, self._ends.target, self._ends.source)
        labels: list[object] = [None] * len(places[0])
        left = np.ones(len(labels), np.bool_)
        for number in (0, 1, 2):
            mine = np.flatnonzero(left & (places[number][:, 0] != NOWHERE))
            left[mine] = False
            mine = mine[np.lexsort((places[number][mine, 1], places[number][mine, 0]))]
            present_places = places[number][mine]
            if self._by_id:
                names: list[object] = row_ids_at(sides[number], present_places).tolist()
            else:
                values = _tuples(_read(sides[number], self._key_fields(number), present_places))
                names = [
                    key_values[0] if len(key_values) == 1 else key_values for key_values in values
                ]
            for row_index, name in zip(mine.tolist(), names, strict=True):
                labels[row_index] = name
        return labels

    def _index(self, places: list[npt.NDArray[np.int64]], rows: Ints) -> dict[str, int]:
        """Return the rows in conflict by their names in text; nothing if no choice names one."""
        if not any(choice.row is not None for choice in self._choices or ()):
            return {}
        names = self.labels([side_places[rows] for side_places in places])
        return {
            row_text(name): row_index for name, row_index in zip(names, rows.tolist(), strict=True)
        }

    def _row_of(self, index: Mapping[str, int], row: object) -> Ints:
        row_index = index.get(row_text(row))
        if row_index is None:
            keys = ", ".join(self._keys) or "row id"
            raise InvalidInputError(f"row {keys} = {row!r} is not in conflict")
        return np.array([row_index], np.int64)

    # --- what is written --------------------------------------------------------------------------

    def _differs_from_target(
        self, tables: list[pa.Table], taken: list[Ints], exists: Mask, ours: Mask
    ) -> Mask:
        """Return rows that are not in the target as they have to be."""
        changed = exists & ~ours
        for column_index, column in enumerate(taken):
            for number in (0, 2):
                mine = (column == number) & exists & ours
                if mine.any():
                    rows = pa.array(np.flatnonzero(mine))
                    pair = (
                        tables[1].column(column_index).take(rows),
                        tables[number].column(column_index).take(rows),
                    )
                    changed[np.flatnonzero(mine)[values_differ(*pair)]] = True
            changed |= (column == _AT_VALUE) & exists
        return changed

    def _table(
        self,
        tables: list[pa.Table],
        taken: list[Ints],
        written: Ints,
    ) -> pa.Table:
        schema = self._schema.schema.to_arrow()
        columns = []
        for column_index, (column, schema_field) in enumerate(zip(taken, schema, strict=True)):
            pool = [table.column(column_index).take(pa.array(written)) for table in tables]
            index = column * written.size + np.arange(written.size)
            mine = {
                row: value for (row, where), value in self._hand.items() if where == column_index
            }
            if mine:
                written_values = [hand_value(value, schema_field) for value in mine.values()]
                pool.append(pa.chunked_array(written_values, schema_field.type))
                spot = {row: number for number, row in enumerate(mine)}
                for number, row in enumerate(written.tolist()):
                    if column[number] == _AT_VALUE and row in spot:
                        index[number] = 3 * written.size + spot[row]
            chunks = [chunk for values in pool for chunk in values.chunks]
            joined = pa.chunked_array(chunks, schema_field.type)
            columns.append(joined.take(pa.array(index)).combine_chunks())
        return pa.Table.from_arrays(columns, schema=schema)

    def _ids(self, places: Sequence[npt.NDArray[np.int64]]) -> U64s:
        """Return the row ids of rows in the target, ``NEW`` for rows that it never had.

        A row that comes back after the target deleted it has the id that it had. ``places``: where
        base, target and source have the rows.
        """
        ends = self._ends
        ids = _shared_ids(row_ids_at(ends.base, places[0]), ends.base_target)
        shared_ids = _shared_ids(row_ids_at(ends.source, places[2]), ends.source_target)
        ids = np.where(ids == NEW, shared_ids, ids)
        target = ends.target
        taken = [
            all_row_ids(fragment)[target.live(fragment)] for fragment in target.fragments.values()
        ]
        ids[np.isin(ids, np.concatenate([np.empty(0, np.uint64), *taken]))] = NEW
        row_ids = row_ids_at(target, places[1])
        return np.where(row_ids == NEW, ids, row_ids).astype(np.uint64)


def _shared_ids(ids: U64s, shared: Shared) -> U64s:
    """Return ids that mean the same in both versions, ``NEW`` for others."""
    if shared.row_id is None:
        return ids
    return np.where(ids < np.uint64(shared.row_id), ids, NEW).astype(np.uint64)


def _as_mask(values: Any) -> Mask:
    return np.asarray(values, np.bool_)


def _columns_differ(table: pa.Table, other: pa.Table) -> list[Mask]:
    if not table.num_rows:
        return [np.zeros(0, np.bool_) for _ in table.columns]
    return [values_differ(a, b) for a, b in zip(table.columns, other.columns, strict=True)]


def _rows_differ(columns: list[Mask], among: Mask, counted: Mask) -> Mask:
    chosen = [mask for mask, counts in zip(columns, counted.tolist(), strict=True) if counts]
    return reduce(np.logical_or, chosen, np.zeros(among.size, np.bool_)) & among


def _placed(rows: _Rows, positions: Ints) -> npt.NDArray[np.int64]:
    places = np.full((positions.size, 2), NOWHERE, np.int64)
    places[positions != NOWHERE] = rows.places[positions[positions != NOWHERE]]
    return places


def _places_of(rows: Sequence[tuple[Fragment, Ints]]) -> npt.NDArray[np.int64]:
    parts = [
        np.stack((np.full(offsets.size, fragment.id, np.int64), offsets), axis=1)
        for fragment, offsets in rows
    ]
    return np.concatenate([np.empty((0, 2), np.int64), *parts])


def _by_fragment(places: npt.NDArray[np.int64]) -> dict[int, Ints]:
    numbers = np.unique(places[:, 0]).tolist()
    return {number: np.sort(places[places[:, 0] == number, 1]) for number in numbers}


def _read(side: Side, names: Sequence[str | None], places: npt.NDArray[np.int64]) -> pa.Table:
    """Read columns of rows that are ordered by place within each fragment; None is all null."""
    distinct = list(dict.fromkeys(name for name in names if name is not None))
    projection = project(side.manifest.schema, distinct)
    tables = [pa.Table.from_batches([], projection.schema)]
    for part in np.split(places, np.flatnonzero(np.diff(places[:, 0])) + 1):
        if distinct and len(part):
            offsets = part[:, 1]
            chosen = Selected(side.fragments[int(part[0, 0])], offsets, offsets, {})
            tables.append(selected_table(side.snapshot, projection, chosen))
    joined = pa.concat_tables(tables, promote_options="permissive")
    nothing = pa.chunked_array([pa.nulls(len(places))])
    columns = [nothing if name is None else joined.column(name) for name in names]
    return pa.Table.from_arrays(
        columns, names=[str(column_index) for column_index in range(len(names))]
    )


def _cast(table: pa.Table, types: pa.Schema) -> pa.Table:
    columns = [
        _converted(column, field) for column, field in zip(table.columns, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=types.names)


def _converted(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    try:
        return cast_array(column, field.type)
    except pa.ArrowException as exc:
        raise NotSupportedError(
            f"values of column {field.name!r} do not convert from {column.type} to {field.type}: "
            f"{exc}"
        ) from exc


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
