"""The same row changed on both sides: found, told apart, and decided.

A row of the base that is gone from its place on both sides was deleted or written anew on each. Two
deletions agree. Anything else is a conflict, unless what one side wrote is there on the other
already (the change was picked before). What a side wrote is found by the row's stable id, else by
key columns, else (whether it wrote at all) in the transactions of that side.

Limits: without row ids and without keys conflicts are found, but cannot be decided. Keys of new
rows are compared only when key columns are known.
Source: messages Update and Delete of ``Transaction``; row ids as in the specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import project
from lance_nb.transactions.branch_merge.ends import History, Side
from lance_nb.transactions.branch_merge.matching import file_name
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.row_lineage import all_row_ids

Mask = npt.NDArray[np.bool_]
U64s = npt.NDArray[np.uint64]

DELETED, WRITTEN, SHARED = 0, 1, 2
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class NewRows:
    """Live rows of the fragments that a side has and the base has not.

    ``fragments`` and ``offsets`` say where; ``is_shared`` marks those that the other side has too.
    """

    fragments: Ints
    offsets: Ints
    is_shared: Mask
    row_ids: U64s | None
    keys: pa.Table | None


def new_rows(
    side: Side, fragments: Sequence[Fragment], shared: frozenset[int], keys: Sequence[str]
) -> NewRows:
    """Look at the live rows of some fragments; ``shared`` are ids of those that both sides have."""
    live = [side.live(one) for one in fragments]
    numbers = np.repeat(np.array([one.id for one in fragments], np.int64), [len(o) for o in live])
    ids = None
    if side.has_row_ids:
        parts = [all_row_ids(one)[at] for one, at in zip(fragments, live, strict=True)]
        ids = np.concatenate([np.empty(0, np.uint64), *parts])
    return NewRows(
        numbers,
        np.concatenate([np.empty(0, np.int64), *live]),
        np.isin(numbers, np.array(sorted(shared), np.int64)),
        ids,
        key_table(side, zip(fragments, live, strict=True), keys) if keys else None,
    )


def key_table(
    side: Side,
    rows: Iterator[tuple[Fragment, Ints]] | zip[tuple[Fragment, Ints]],
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
            if not isinstance(done, Update) or not done.new_fragments:
                continue
            gone = self._gone(step.branch, step.version, names, fragment.id)
            if gone is None:
                continue
            states[np.isin(offsets, gone)] = self._state(done)
        return states

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


# --- the rows that both sides have changed ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows of the base that both sides have taken from their place, by base fragment id."""

    rows: Mapping[int, Ints]

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return sum(len(one) for one in self.rows.values())

    def addresses(self) -> tuple[Ints, Ints]:
        """Return (fragment id, offset) of each row."""
        sizes = [len(one) for one in self.rows.values()]
        numbers = np.repeat(np.array(list(self.rows), np.int64), sizes)
        return numbers, np.concatenate([np.empty(0, np.int64), *self.rows.values()])
