"""The same row changed on both sides: found, told apart, and decided.

A row of the base that is gone from its place on both sides was deleted or written anew on each; a
revert writes it anew by letting its older form live again. Two deletions agree. Anything else is a
conflict, unless what one side wrote is there on the other already (the change was picked before).
What a side wrote is found by the row's stable id, else by key columns, else (whether it wrote at
all) in the transactions of that side.

Some of the rows that both sides changed, to look at.

Limits: without row ids and without keys conflicts are found, but cannot be decided. Keys of new
rows are compared only when key columns are known.
Source: messages Update and Delete of ``Transaction``; row ids as in the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import project
from lance_nb.transactions.branch_merge.homes import same_deletions
from lance_nb.transactions.branch_merge.matching import file_name
from lance_nb.transactions.branch_merge.merge_base import Ends, History, Side, Step
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.row_lineage import all_row_ids

Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]

DELETED, WRITTEN, SHARED = 0, 1, 2
NOWHERE = -1


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


def revived_rows(base: Side, before: Fragment, side: Side, after: Fragment) -> Ints:
    """Return the offsets of rows that are deleted in the base and live on a side (a revert)."""
    if before.deletion_file is None or same_deletions(base, before, side, after):
        return np.empty(0, np.int64)
    return np.setdiff1d(base.deleted(before), side.deleted(after), assume_unique=True)


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


# --- from transactions, where nothing else is known ---------------------------------------------


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
            revives = self._revives(step, done)
            if not done.new_fragments and not revives:
                continue
            gone = self._gone(step.branch, step.version, names, fragment.id)
            if gone is None:
                continue
            states[np.isin(offsets, gone)] = WRITTEN if revives else self._state(done)
        return states

    def _revives(self, step: Step, update: Update) -> bool:
        """Tell whether deleted rows live again after an update, as they do after a revert."""
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
