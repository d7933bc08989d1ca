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
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import project
from lance_nb.transactions.branch_merge.conflicts import (
    BOTH,
    COLUMNS,
    KEYS,
    OURS,
    ROWS,
    THEIRS,
    Findings,
)
from lance_nb.transactions.branch_merge.fragments import (
    Lacking,
    Matches,
    MergedFragments,
    revived_rows,
)
from lance_nb.transactions.branch_merge.matching import Match, RowIds, file_name, match_rows
from lance_nb.transactions.branch_merge.merge_base import Ends, History, Side, Step
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.row_lineage import all_row_ids
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]

DELETED, WRITTEN, SHARED = 0, 1, 2
NOWHERE = -1
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
    known = set(of_base.values())
    places = []
    for one in side.fragments.values():
        if one.id not in known:
            live = side.live(one)
            places.append(NewPlace(one, live, np.full(live.size, one.id in to_other)))
    for before, number in of_base.items():
        fragment = side.fragments[number]
        offsets = revived_rows(base, base.fragments[before], side, fragment)
        if offsets.size:
            there = other.fragments.get(to_other.get(number, NOWHERE))
            live = np.empty(0, np.int64) if there is None else other.live(there)
            places.append(NewPlace(fragment, offsets, np.isin(offsets, live)))
    return tuple(places)


def new_rows(side: Side, places: Sequence[NewPlace], keys: Sequence[str]) -> NewRows:
    """Look at the new rows of a side: their row ids and their key columns, as far as wanted."""
    sizes = [one.offsets.size for one in places]
    ids = None
    if side.has_row_ids:
        parts = [all_row_ids(one.fragment)[one.offsets] for one in places]
        ids = np.concatenate([np.empty(0, np.uint64), *parts])
    rows = ((one.fragment, one.offsets) for one in places)
    return NewRows(
        np.repeat(np.array([one.fragment.id for one in places], np.int64), sizes),
        np.concatenate([np.empty(0, np.int64), *(one.offsets for one in places)]),
        np.concatenate([np.empty(0, np.bool_), *(one.is_shared for one in places)]),
        ids,
        key_table(side, rows, keys) if keys else None,
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
    for at, column in enumerate(joined.columns):
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes[:, at] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    _, numbers = np.unique(codes, axis=0, return_inverse=True)
    ends = np.cumsum([one.num_rows for one in tables])
    return [one.astype(np.int64) for one in np.split(numbers.reshape(-1), ends[:-1])]


def first_match(wanted: npt.NDArray[np.generic], among: npt.NDArray[np.generic]) -> Ints:
    """Return for each value its position in ``among``, NOWHERE if it is not there."""
    if not among.size:
        return np.full(wanted.size, NOWHERE, np.int64)
    order = np.argsort(among, kind="stable")
    at = np.searchsorted(among[order], wanted)
    at[at == among.size] = 0
    return np.where(among[order][at] == wanted, order[at], NOWHERE).astype(np.int64)


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
        for one in group.old_fragments
        for file in one.files
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
            states[:] = WRITTEN  # nobody knows: the careful answer
        names = {file_name(base, file) for file in fragment.files}
        for step in self.history.steps:
            done = None if step.transaction is None else step.transaction.operation
            if not isinstance(done, Update):
                continue
            try:
                revives = self._revives(step, done)
                if not done.new_fragments and not revives:
                    continue
                gone = self._gone(step.branch, step.version, names, fragment.id)
            except VersionNotFoundError:
                states[:] = WRITTEN  # the version before it was cleaned up: as careful
                continue
            if gone is None:
                continue
            states[np.isin(offsets, gone)] = WRITTEN if revives else self._state(done)
        return states

    def _revives(self, step: Step, update: Update) -> bool:
        """Return whether deleted rows live again after an update, as they do after a revert."""
        if not update.updated_fragments:
            return False
        before = self.history.load(step.branch, step.version - 1)
        after = self.history.load(step.branch, step.version)
        return any(
            one.id in before.fragments
            and one.id in after.fragments
            and revived_rows(before, before.fragments[one.id], after, after.fragments[one.id]).size
            for one in update.updated_fragments
        )

    def _state(self, update: Update) -> int:
        known = all(
            file_name(self.side, file) in self.present
            for one in update.new_fragments
            for file in one.files
        )
        return SHARED if known else WRITTEN

    def _gone(
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
    for one in (*candidates, *side.fragments.values()):
        if any(file_name(side, file) in names for file in one.files):
            return one
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
    offsets = [addresses[addresses[:, 0] == one, 1] for one in numbers]
    return zip((side.fragments[one] for one in numbers), offsets, strict=True)


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
    known = np.flatnonzero(places[:, 0] != NOWHERE)
    order = known[np.lexsort((places[known, 1], places[known, 0]))]
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
        self._by_id = all(one.has_row_ids for one in (ends.base, ends.source, ends.target))

    # Finding new rows opens data files, so it waits until there is something to decide.

    @cached_property
    def _source(self) -> _NewSide:
        ends, matches = self._ends, self._matches
        of_base, to_target = matches.base_source.fragments, matches.source_to_target()
        places = new_places(ends.base, ends.source, ends.target, of_base, to_target)
        return _NewSide(ends.source, places)

    @cached_property
    def _target(self) -> _NewSide:
        ends, matches = self._ends, self._matches
        to_source = {there: here for here, there in matches.source_to_target().items()}
        of_base = matches.base_target.fragments
        places = new_places(ends.base, ends.target, ends.source, of_base, to_source)
        return _NewSide(ends.target, places)

    def run(self, merged: MergedFragments) -> RowDecision:
        """Find the conflicts and decide them."""
        if merged.lacking:
            self._check_lacking(merged.lacking)
        if not merged.both_gone and not self._keys:
            return RowDecision()
        gone = _addresses(merged.both_gone)
        if self._keys:
            return self._by_keys(gone)
        if self._by_id:
            return self._by_ids(gone)
        self._by_transactions(merged.both_gone)
        return RowDecision()

    # --- three ways to know a row -----------------------------------------------------------------

    def _by_ids(self, gone: npt.NDArray[np.int64]) -> RowDecision:
        source, target = self._source.rows(()), self._target.rows(())
        ids = _ids_at(self._ends.base, gone)
        return self._decide(
            gone,
            ids,
            (source, self._names(source, self._matches.base_source, self._ends.source)),
            (target, self._names(target, self._matches.base_target, self._ends.target)),
        )

    def _names(self, rows: NewRows, of_base: Match, side: Side) -> npt.NDArray[np.uint64]:
        """Return the row ids of new rows as the base has them."""
        found = rows.row_ids if rows.row_ids is not None else np.empty(0, np.uint64)
        ids = match_rows(self._ends.base, side, of_base.fragments)
        order = np.argsort(ids.after)
        return RowIds(ids.after[order], ids.before[order]).of(found)[0]

    def _by_keys(self, gone: npt.NDArray[np.int64]) -> RowDecision:
        source, target = self._source.rows(self._keys), self._target.rows(self._keys)
        base = key_table(self._ends.base, rows_by_fragment(self._ends.base, gone), self._keys)
        tables = [one for one in (base, source.keys, target.keys) if one is not None]
        names, mine, theirs = group_keys(tables)
        return self._decide(gone, names, (source, mine), (target, theirs))

    def _by_transactions(self, both_gone: Mapping[int, Ints]) -> None:
        ends = self._ends
        traces = self._traces()
        count, where = 0, []
        for number, offsets in both_gone.items():
            fragment = ends.base.fragments[number]
            states = [one.states(ends.base, fragment, offsets) for one in traces]
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
                file_name(side, file) for one in side.fragments.values() for file in one.files
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
        gone: npt.NDArray[np.int64],
        names: npt.NDArray[np.generic],
        source: tuple[NewRows, npt.NDArray[np.generic]],
        target: tuple[NewRows, npt.NDArray[np.generic]],
    ) -> RowDecision:
        at_source = first_match(names, source[1])
        at_target = first_match(names, target[1])
        states = _states(at_source, source[0]), _states(at_target, target[0])
        clash = _clash(*states)
        wanted = [names[clash]]
        side = OURS
        if clash.any():
            fragments = np.unique(gone[clash, 0]).tolist()
            side = self._report_rows(int(clash.sum()), fragments, choices=BOTH)
        rows = [(gone[clash], at_source[clash], at_target[clash])]
        if self._keys:
            added = self._added_twice(names, source, target)
            if added.size:
                names_of = ", ".join(self._keys)
                text = f"{count_of(added.size, 'row')} of the same {names_of} added on both sides"
                side = self._findings.report(KEYS, text, num_rows=int(added.size))
                wanted.append(added)
                nowhere = np.full((added.size, 2), NOWHERE, np.int64)
                rows.append((nowhere, first_match(added, source[1]), first_match(added, target[1])))
        found = ConflictingRows(
            np.concatenate([one[0] for one in rows]),
            _places(source[0], np.concatenate([one[1] for one in rows])),
            _places(target[0], np.concatenate([one[2] for one in rows])),
        )
        every = np.concatenate(wanted)
        if side == THEIRS:
            return RowDecision(target=_own(target, every), rows=found)
        return RowDecision(source=_own(source, every), rows=found)

    def _added_twice(
        self,
        gone: npt.NDArray[np.generic],
        source: tuple[NewRows, npt.NDArray[np.generic]],
        target: tuple[NewRows, npt.NDArray[np.generic]],
    ) -> npt.NDArray[np.generic]:
        mine = source[1][~source[0].is_shared]
        theirs = target[1][~target[0].is_shared]
        both = np.intersect1d(mine, theirs)
        return np.setdiff1d(both, gone)

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
        for one in lacking:
            fragment = self._ends.base.fragments[one.base_id]
            trace = traces[0 if one.by_source else 1]
            states = trace.states(self._ends.base, fragment, one.offsets)
            moved = int((states == WRITTEN).sum())
            if not moved:
                continue
            who, other = ("the source", "here") if one.by_source else ("here", "the source")
            where = f"fragment {one.base_id}"
            self._findings.report(
                COLUMNS,
                f"{count_of(moved, 'row')} of {where} updated {_on(who)} while columns were "
                f"written {_on(other)}: the updated rows do not have the written values",
                choices=(THEIRS,) if one.by_source else (OURS,),
                fragments=(one.base_id,),
                fields=one.fields,
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


def _states(at: Ints, rows: NewRows) -> Ints:
    states = np.where(at == NOWHERE, DELETED, WRITTEN)
    found = at != NOWHERE
    states[found] = np.where(rows.is_shared[at[found]], SHARED, WRITTEN)
    return states.astype(np.int64)


def _clash(mine: Ints, theirs: Ints) -> npt.NDArray[np.bool_]:
    """Two deletions agree; what the other side has already is no change to it."""
    changed = (mine == WRITTEN) | (theirs == WRITTEN)
    return np.asarray(changed & (mine != SHARED) & (theirs != SHARED))


def _addresses(rows: Mapping[int, Ints]) -> npt.NDArray[np.int64]:
    parts = [np.stack((np.full(len(at), number), at), axis=1) for number, at in rows.items()]
    return np.concatenate([np.empty((0, 2), np.int64), *parts]).astype(np.int64)


def _ids_at(side: Side, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    parts = [all_row_ids(fragment)[at] for fragment, at in rows_by_fragment(side, addresses)]
    return np.concatenate([np.empty(0, np.uint64), *parts])


def _places(rows: NewRows, at: Ints) -> npt.NDArray[np.int64]:
    found = np.full((at.size, 2), NOWHERE, np.int64)
    known = at != NOWHERE
    found[known, 0] = rows.fragments[at[known]]
    found[known, 1] = rows.offsets[at[known]]
    return found


def _own(
    side: tuple[NewRows, npt.NDArray[np.generic]], names: npt.NDArray[np.generic]
) -> dict[int, Ints]:
    """Return the rows of a side with these names, those that both sides share left out."""
    rows, mine = side
    chosen = np.isin(mine, names) & ~rows.is_shared
    numbers, offsets = rows.fragments[chosen], rows.offsets[chosen]
    return {one: offsets[numbers == one] for one in np.unique(numbers).tolist()}
