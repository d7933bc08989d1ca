"""Merge rows that changed on both sides: find them, tell them apart, and decide.

A row of the base that is no longer at its place on both sides was deleted or written anew on each;
a revert writes it anew by letting its older form live again. Two deletions agree. Anything else is
a conflict, unless what one side wrote is on the other already (the change was picked before). What
a side wrote is found by the row's stable id, else by key columns, else (whether it wrote at all) in
the transactions of that side.

A conflict is decided by leaving out new rows: with ``ours``, what the source wrote of such a row is
left out; with ``theirs``, what the target wrote of it is deleted.

Limits: without row ids and without keys conflicts are found, but cannot be decided. Keys of new
rows are compared only when key columns are known.
Source: messages Update and Delete of ``Transaction``; row ids as in the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import VersionNotFoundError
from lance_nb.format.fragment import Fragment
from lance_nb.format.transaction_summary import count_of
from lance_nb.merging.conflicts import (
    BOTH,
    COLUMNS,
    KEYS,
    OURS,
    ROWS,
    THEIRS,
    Findings,
)
from lance_nb.merging.fragments import (
    Lacking,
    Matches,
    MergedFragments,
    revived_rows,
)
from lance_nb.merging.matching import Match, RowIds, file_name, match_rows
from lance_nb.merging.merge_base import Ends, History, Side, Step
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import project
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.row_lineage import all_row_ids
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]

DELETED, WRITTEN, SHARED = 0, 1, 2
NOWHERE = -1
NEW = np.uint64(2**64 - 1)  # stands for the row id of a row that has none yet
_WITHOUT_NAMES = (
    "Rows have no stable ids here, so which new row is which old one is not known: name the columns"
    " that identify a row, key=['id']"
)


# --- new rows of one side -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewRows:
    """Live rows of a side that the base does not have at their place.

    ``fragments`` and ``offsets`` say where; ``is_shared`` marks those that the other side has too.
    """

    fragments: Ints
    offsets: Ints
    is_shared: Mask
    row_ids: U64s | None
    keys: pa.Table | None


@dataclass(frozen=True, slots=True)
class NewPlace:
    """The new rows of one fragment: their offsets, and which of them the other side has too."""

    fragment: Fragment
    offsets: Ints
    is_shared: Mask


def new_places(
    base: Side, side: Side, other: Side, of_base: Mapping[int, int], to_other: Mapping[int, int]
) -> tuple[NewPlace, ...]:
    """Find the new rows of a side: those of new fragments, and deleted rows that live again.

    ``of_base``: fragment ids of the base -> those of the side; ``to_other``: fragment ids of the
    side -> those of the other side. Fragments without such rows are left out.
    """
    paired = set(of_base.values())
    places = []
    for side_fragment in side.fragments.values():
        if side_fragment.id not in paired:
            live = side.live(side_fragment)
            places.append(
                NewPlace(side_fragment, live, np.full(live.size, side_fragment.id in to_other))
            )
    for before, number in of_base.items():
        fragment = side.fragments[number]
        offsets = revived_rows(base, base.fragments[before], side, fragment)
        if offsets.size:
            matching_fragment = other.fragments.get(to_other.get(number, NOWHERE))
            live = (
                np.empty(0, np.int64)
                if matching_fragment is None
                else other.live(matching_fragment)
            )
            places.append(NewPlace(fragment, offsets, np.isin(offsets, live)))
    return tuple(places)


def new_rows(side: Side, places: Sequence[NewPlace], keys: Sequence[str]) -> NewRows:
    """Look at the new rows of a side: their row ids and their key columns, as far as wanted."""
    sizes = [place.offsets.size for place in places]
    ids = None
    if side.has_row_ids:
        parts = [all_row_ids(place.fragment)[place.offsets] for place in places]
        ids = np.concatenate([np.empty(0, np.uint64), *parts])
    rows = ((place.fragment, place.offsets) for place in places)
    return NewRows(
        np.repeat(np.array([place.fragment.id for place in places], np.int64), sizes),
        np.concatenate([np.empty(0, np.int64), *(place.offsets for place in places)]),
        np.concatenate([np.empty(0, np.bool_), *(place.is_shared for place in places)]),
        row_ids=ids,
        keys=key_table(side, rows, keys) if keys else None,
    )


def key_table(
    side: Side,
    rows: Iterable[tuple[Fragment, Ints]],
    keys: Sequence[str],
) -> pa.Table:
    """Read columns of some rows. Raises ColumnNotFoundError."""
    projection = project(side.manifest.schema, list(keys))
    tables = [pa.Table.from_batches([], projection.schema)]
    for fragment, offsets in rows:
        if len(offsets):
            chosen = Selected(fragment, offsets, offsets, {})
            tables.append(selected_table(side.snapshot, projection, chosen))
    return pa.concat_tables(tables, promote_options="permissive")


def group_keys(tables: Sequence[pa.Table]) -> list[Ints]:
    """Give numbers to the rows of several tables, equal ones to equal rows."""
    joined = pa.concat_tables(tables, promote_options="permissive")
    codes = np.zeros((joined.num_rows, max(joined.num_columns, 1)), np.int64)
    for column_index, column in enumerate(joined.columns):
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes[:, column_index] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    _, numbers = np.unique(codes, axis=0, return_inverse=True)
    ends = np.cumsum([table.num_rows for table in tables])
    return [part.astype(np.int64) for part in np.split(numbers.reshape(-1), ends[:-1])]


def first_match(values: npt.NDArray[np.generic], among: npt.NDArray[np.generic]) -> Ints:
    """Return for each value its position in ``among``, NOWHERE if it is not there."""
    if not among.size:
        return np.full(values.size, NOWHERE, np.int64)
    order = np.argsort(among, kind="stable")
    positions = np.searchsorted(among[order], values)
    positions[positions == among.size] = 0
    return np.where(among[order][positions] == values, order[positions], NOWHERE).astype(np.int64)


# --- from transactions, where nothing else is known -----------------------------------------------


def rewritten_files(side: Side, history: History) -> frozenset[str]:
    """Return the data files of all fragments that were rewritten (compacted) on a side."""
    groups = (
        group
        for step in history.steps
        if step.transaction is not None and isinstance(step.transaction.operation, Rewrite)
        for group in step.transaction.operation.all_groups
    )
    return frozenset(
        file_name(side, file)
        for group in groups
        for old_fragment in group.old_fragments
        for file in old_fragment.files
    )


@dataclass(frozen=True, slots=True)
class Traces:
    """Finds out from the transactions of a side which rows of the base were written anew.

    ``present`` are the data files that the other side has: an update whose rows went there is no
    change that it does not know.
    """

    side: Side
    history: History
    present: frozenset[str]

    def states(self, base: Side, fragment: Fragment, offsets: Ints) -> Ints:
        """Return DELETED, WRITTEN or SHARED for rows of the base that are gone."""
        states = np.full(offsets.size, DELETED, np.int64)
        if any(step.transaction is None for step in self.history.steps):
            states[:] = WRITTEN  # unknown: the careful answer
        names = {file_name(base, file) for file in fragment.files}
        for step in self.history.steps:
            done = None if step.transaction is None else step.transaction.operation
            if not isinstance(done, Update):
                continue
            try:
                revives = self._revives(step, done)
                if not done.new_fragments and not revives:
                    continue
                removed = self._removed_offsets(step.branch, step.version, names, fragment.id)
            except VersionNotFoundError:
                states[:] = WRITTEN  # the version before it was cleaned up: as careful
                continue
            if removed is None:
                continue
            states[np.isin(offsets, removed)] = WRITTEN if revives else self._state(done)
        return states

    def _revives(self, step: Step, update: Update) -> bool:
        """Return whether deleted rows live again after an update, as they do after a revert."""
        if not update.updated_fragments:
            return False
        before = self.history.load(step.branch, step.version - 1)
        after = self.history.load(step.branch, step.version)
        return any(
            updated_fragment.id in before.fragments
            and updated_fragment.id in after.fragments
            and revived_rows(
                before,
                before.fragments[updated_fragment.id],
                after,
                after.fragments[updated_fragment.id],
            ).size
            for updated_fragment in update.updated_fragments
        )

    def _state(self, update: Update) -> int:
        is_present = all(
            file_name(self.side, file) in self.present
            for new_fragment in update.new_fragments
            for file in new_fragment.files
        )
        return SHARED if is_present else WRITTEN

    def _removed_offsets(
        self, branch: str | None, version: int, names: set[str], fragment_id: int
    ) -> Ints | None:
        """Return the offsets that one version took out of a fragment, None if it left it alone."""
        before = self.history.load(branch, version - 1)
        old = _find(before, names, fragment_id)
        if old is None:
            return None
        after = self.history.load(branch, version)
        new = after.fragments.get(old.id)
        if new is not None and new.deletion_file == old.deletion_file:
            return None
        left = np.empty(0, np.int64) if new is None else after.live(new)
        return np.setdiff1d(before.live(old), left, assume_unique=True)


def _find(side: Side, names: set[str], fragment_id: int) -> Fragment | None:
    same = side.fragments.get(fragment_id)
    candidates = [] if same is None else [same]
    for candidate in (*candidates, *side.fragments.values()):
        if any(file_name(side, file) in names for file in candidate.files):
            return candidate
    return None


@dataclass(frozen=True, slots=True)
class ConflictingRows:
    """Some rows that both sides changed: base address, and where each side has them now.

    ``source`` and ``target`` are (fragment id, offset), NOWHERE if the side deleted the row.
    """

    base: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]


NO_CONFLICTS = ConflictingRows(*(np.empty((0, 2), np.int64) for _ in range(3)))


def rows_by_fragment(side: Side, addresses: npt.NDArray[np.int64]) -> zip[tuple[Fragment, Ints]]:
    """Return the offsets of some rows, (fragment id, offset) each, by fragment."""
    numbers = list(dict.fromkeys(addresses[:, 0].tolist()))
    offsets = [addresses[addresses[:, 0] == fragment_id, 1] for fragment_id in numbers]
    return zip((side.fragments[fragment_id] for fragment_id in numbers), offsets, strict=True)


def conflict_table(ends: Ends, rows: ConflictingRows, num_rows: int) -> pa.Table:
    """Show some conflicting rows: as the base, the source and the target have them.

    One struct column each, null where a side has no such row, and ``_rowaddr``, the address of the
    row in the base.
    """
    parts = [
        _structs(side, places[:num_rows])
        for side, places in (
            (ends.base, rows.base),
            (ends.source, rows.source),
            (ends.target, rows.target),
        )
    ]
    base = rows.base[:num_rows]
    address = (base[:, 0] << 32) | base[:, 1]
    shown = pa.array(address.astype(np.uint64), pa.uint64(), mask=base[:, 0] == NOWHERE)
    names = ["_rowaddr", "base", "source", "target"]
    return pa.Table.from_arrays([shown, *parts], names=names)


def _structs(side: Side, places: npt.NDArray[np.int64]) -> pa.Array:
    """Read rows as structs, in the order given, null where there is none."""
    present = np.flatnonzero(places[:, 0] != NOWHERE)
    order = present[np.lexsort((places[present, 1], places[present, 0]))]
    schema = side.manifest.schema
    table = key_table(side, rows_by_fragment(side, places[order]), schema.names)
    positions = np.full(len(places), NOWHERE, np.int64)
    positions[order] = np.arange(order.size)
    structs = table.to_struct_array()
    if isinstance(structs, pa.ChunkedArray):
        structs = structs.combine_chunks()
    return structs.take(pa.array(positions, pa.int64(), mask=positions == NOWHERE))


# --- the merge ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowDecision:
    """New rows of the source to leave out, and of the target to delete, by their fragment."""

    source: Mapping[int, Ints] = field(default_factory=dict)
    target: Mapping[int, Ints] = field(default_factory=dict)
    rows: ConflictingRows = NO_CONFLICTS


class RowMerge:
    """One merge of rows."""

    def __init__(
        self, ends: Ends, matches: Matches, keys: Sequence[str], findings: Findings
    ) -> None:
        self._ends, self._matches, self._keys = ends, matches, tuple(keys)
        self._findings = findings
        self._by_id = all(side.has_row_ids for side in (ends.base, ends.source, ends.target))

    # Finding new rows opens data files, so it waits until there is something to decide.

    @cached_property
    def _source(self) -> _NewSide:
        ends, matches = self._ends, self._matches
        of_base, to_target = matches.base_source.fragments, matches.source_to_target()
        places = new_places(
            ends.base, ends.source, ends.target, of_base=of_base, to_other=to_target
        )
        return _NewSide(ends.source, places)

    @cached_property
    def _target(self) -> _NewSide:
        ends, matches = self._ends, self._matches
        to_source = {
            target_id: source_id for source_id, target_id in matches.source_to_target().items()
        }
        of_base = matches.base_target.fragments
        places = new_places(
            ends.base, ends.target, ends.source, of_base=of_base, to_other=to_source
        )
        return _NewSide(ends.target, places)

    def run(self, merged: MergedFragments) -> RowDecision:
        """Find the conflicts and decide them."""
        if merged.lacking:
            self._check_lacking(merged.lacking)
        if not merged.both_gone and not self._keys:
            return RowDecision()
        removed = _addresses(merged.both_gone)
        if self._keys:
            return self._by_keys(removed)
        if self._by_id:
            return self._by_ids(removed)
        self._by_transactions(merged.both_gone)
        return RowDecision()

    # --- three ways to know a row -----------------------------------------------------------------

    def _by_ids(self, removed: npt.NDArray[np.int64]) -> RowDecision:
        source, target = self._source.rows(()), self._target.rows(())
        ids = row_ids_at(self._ends.base, removed)
        return self._decide(
            removed,
            ids,
            (source, self._names(source, self._matches.base_source, self._ends.source)),
            (target, self._names(target, self._matches.base_target, self._ends.target)),
        )

    def _names(self, rows: NewRows, of_base: Match, side: Side) -> npt.NDArray[np.uint64]:
        """Return the row ids of new rows as the base has them."""
        row_ids = rows.row_ids if rows.row_ids is not None else np.empty(0, np.uint64)
        ids = match_rows(self._ends.base, side, of_base.fragments)
        order = np.argsort(ids.after)
        return RowIds(ids.after[order], ids.before[order]).of(row_ids)[0]

    def _by_keys(self, removed: npt.NDArray[np.int64]) -> RowDecision:
        source, target = self._source.rows(self._keys), self._target.rows(self._keys)
        base = key_table(self._ends.base, rows_by_fragment(self._ends.base, removed), self._keys)
        tables = [table for table in (base, source.keys, target.keys) if table is not None]
        names, mine, theirs = group_keys(tables)
        return self._decide(removed, names, (source, mine), (target, theirs))

    def _by_transactions(self, both_gone: Mapping[int, Ints]) -> None:
        ends = self._ends
        traces = self._traces()
        count, where = 0, []
        for number, offsets in both_gone.items():
            fragment = ends.base.fragments[number]
            states = [trace.states(ends.base, fragment, offsets) for trace in traces]
            clash = _clash(states[0], states[1])
            if clash.any():
                count += int(clash.sum())
                where.append(number)
        if count:
            self._report_rows(count, where, choices=())

    def _traces(self) -> tuple[Traces, Traces]:
        ends = self._ends
        names = [
            frozenset(
                file_name(side, file)
                for fragment in side.fragments.values()
                for file in fragment.files
            )
            for side in (ends.source, ends.target)
        ]
        return (
            Traces(ends.source, ends.source_history, names[1]),
            Traces(ends.target, ends.target_history, names[0]),
        )

    # --- decisions --------------------------------------------------------------------------------

    def _decide(
        self,
        removed: npt.NDArray[np.int64],
        names: npt.NDArray[np.generic],
        source: tuple[NewRows, npt.NDArray[np.generic]],
        target: tuple[NewRows, npt.NDArray[np.generic]],
    ) -> RowDecision:
        at_source = first_match(names, source[1])
        at_target = first_match(names, target[1])
        states = _states(at_source, source[0]), _states(at_target, target[0])
        clash = _clash(*states)
        row_names = [names[clash]]
        side = OURS
        if clash.any():
            fragments = np.unique(removed[clash, 0]).tolist()
            side = self._report_rows(int(clash.sum()), fragments, choices=BOTH)
        rows = [(removed[clash], at_source[clash], at_target[clash])]
        if self._keys:
            added = self._added_twice(names, source, target)
            if added.size:
                names_of = ", ".join(self._keys)
                text = f"{count_of(added.size, 'row')} of the same {names_of} added on both sides"
                side = self._findings.report(KEYS, text, num_rows=int(added.size))
                row_names.append(added)
                nowhere = np.full((added.size, 2), NOWHERE, np.int64)
                rows.append((nowhere, first_match(added, source[1]), first_match(added, target[1])))
        conflicting = ConflictingRows(
            np.concatenate([row_set[0] for row_set in rows]),
            _places(source[0], np.concatenate([row_set[1] for row_set in rows])),
            _places(target[0], np.concatenate([row_set[2] for row_set in rows])),
        )
        every = np.concatenate(row_names)
        if side == THEIRS:
            return RowDecision(target=_own(target, every), rows=conflicting)
        return RowDecision(source=_own(source, every), rows=conflicting)

    def _added_twice(
        self,
        removed: npt.NDArray[np.generic],
        source: tuple[NewRows, npt.NDArray[np.generic]],
        target: tuple[NewRows, npt.NDArray[np.generic]],
    ) -> npt.NDArray[np.generic]:
        mine = source[1][~source[0].is_shared]
        theirs = target[1][~target[0].is_shared]
        added_by_both = np.intersect1d(mine, theirs)
        return np.setdiff1d(added_by_both, removed)

    def _report_rows(self, count: int, fragments: Sequence[int], choices: Sequence[str]) -> str:
        shown = ", ".join(map(str, fragments[:5]))
        return self._findings.report(
            ROWS,
            f"{count_of(count, 'row')} changed on both sides (fragments {shown} of the base)",
            choices=choices,
            remedy="" if choices else _WITHOUT_NAMES,
            fragments=fragments,
            num_rows=count,
            needs_key=not choices,
        )

    def _check_lacking(self, lacking: Sequence[Lacking]) -> None:
        """Rows that moved away from columns that the other side wrote at their old place."""
        traces = self._traces()
        for row_set in lacking:
            fragment = self._ends.base.fragments[row_set.base_id]
            trace = traces[0 if row_set.by_source else 1]
            states = trace.states(self._ends.base, fragment, row_set.offsets)
            moved = int((states == WRITTEN).sum())
            if not moved:
                continue
            who, other = ("the source", "here") if row_set.by_source else ("here", "the source")
            where = f"fragment {row_set.base_id}"
            self._findings.report(
                COLUMNS,
                f"{count_of(moved, 'row')} of {where} updated {_on(who)} while columns were "
                f"written {_on(other)}: the updated rows do not have the written values",
                choices=(THEIRS,) if row_set.by_source else (OURS,),
                fragments=(row_set.base_id,),
                fields=row_set.fields,
                num_rows=moved,
            )


@dataclass(frozen=True, slots=True)
class _NewSide:
    side: Side
    places: tuple[NewPlace, ...]

    def rows(self, keys: Sequence[str]) -> NewRows:
        return new_rows(self.side, self.places, keys)


def _on(who: str) -> str:
    return "here" if who == "here" else f"on {who}"


def _states(positions: Ints, rows: NewRows) -> Ints:
    states = np.where(positions == NOWHERE, DELETED, WRITTEN)
    present = positions != NOWHERE
    states[present] = np.where(rows.is_shared[positions[present]], SHARED, WRITTEN)
    return states.astype(np.int64)


def _clash(mine: Ints, theirs: Ints) -> npt.NDArray[np.bool_]:
    """Two deletions agree; what the other side has already is no change to it."""
    changed = (mine == WRITTEN) | (theirs == WRITTEN)
    return np.asarray(changed & (mine != SHARED) & (theirs != SHARED))


def _addresses(rows: Mapping[int, Ints]) -> npt.NDArray[np.int64]:
    parts = [
        np.stack((np.full(len(offsets), number), offsets), axis=1)
        for number, offsets in rows.items()
    ]
    return np.concatenate([np.empty((0, 2), np.int64), *parts]).astype(np.int64)


def row_ids_at(side: Side, places: npt.NDArray[np.int64]) -> U64s:
    """Return the stable row ids of rows, (fragment id, offset) each, ``NEW`` for NOWHERE."""
    ids = np.full(len(places), NEW, np.uint64)
    for fragment_id in np.unique(places[:, 0]).tolist():
        mine = places[:, 0] == fragment_id
        if fragment_id != NOWHERE:
            ids[mine] = all_row_ids(side.fragments[fragment_id])[places[mine, 1]]
    return ids


def _places(rows: NewRows, positions: Ints) -> npt.NDArray[np.int64]:
    places = np.full((positions.size, 2), NOWHERE, np.int64)
    is_present = positions != NOWHERE
    places[is_present, 0] = rows.fragments[positions[is_present]]
    places[is_present, 1] = rows.offsets[positions[is_present]]
    return places


def _own(
    side: tuple[NewRows, npt.NDArray[np.generic]], names: npt.NDArray[np.generic]
) -> dict[int, Ints]:
    """Return the rows of a side with these names, those that both sides share left out."""
    rows, mine = side
    chosen = np.isin(mine, names) & ~rows.is_shared
    numbers, offsets = rows.fragments[chosen], rows.offsets[chosen]
    return {
        fragment_id: offsets[numbers == fragment_id] for fragment_id in np.unique(numbers).tolist()
    }
