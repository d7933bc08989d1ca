"""Decide the rows that both sides changed, and say which new rows have to go for that.

``ours``: what the source wrote of such a row is left out. ``theirs``: what the target wrote of it
is deleted.

Source: rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.format.transaction_summary import count_of
from lance_nb.transactions.branch_merge.conflicts import (
    BOTH,
    COLUMNS,
    KEYS,
    OURS,
    ROWS,
    THEIRS,
    Findings,
)
from lance_nb.transactions.branch_merge.fragments import Lacking, Matches, MergedFragments
from lance_nb.transactions.branch_merge.matching import Match, RowIds, file_name, match_rows
from lance_nb.transactions.branch_merge.merge_base import Ends, Side
from lance_nb.transactions.branch_merge.rows import (
    DELETED,
    NO_CONFLICTS,
    NOWHERE,
    SHARED,
    WRITTEN,
    ConflictingRows,
    NewPlace,
    NewRows,
    Traces,
    first_match,
    group_keys,
    key_table,
    new_places,
    new_rows,
    rows_by_fragment,
)
from lance_nb.transactions.row_lineage import all_row_ids

_WITHOUT_NAMES = (
    "Rows have no stable ids here, so which new row is which old one is not known: name the columns"
    " that identify a row, key=['id']"
)


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
