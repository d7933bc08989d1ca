"""Turn stable row ids into the addresses of the rows that have them now.

The ids of a fragment are mostly one run of numbers, then nothing is looked up. Other fragments keep
their ids in memory.

Source: row id sequences of the fragments, see ``table.row_ids``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.indices.row_sets import NO_ROWS, U64s, joined
from lance_nb.table.index_search import Ids
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.snapshot import Snapshot


class RowPlaces:
    """The row ids of one version, read fragment by fragment when they are needed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._row_ids: dict[int, tuple[int, int] | U64s] = {}

    def addresses(self, ids: U64s, fragment_ids: Ids) -> U64s:
        """Return the addresses of rows of these fragments, deleted ones too, ascending.

        ``ids`` are ascending. Raises CorruptFileError.
        """
        return joined(self._in_fragment(ids, number) for number in fragment_ids.tolist())

    def addresses_of(self, ids: U64s, fragment_ids: Ids) -> tuple[U64s, npt.NDArray[np.bool_]]:
        """Return the address of each row, in any order, and which of them are in the fragments.

        Raises CorruptFileError.
        """
        addresses, is_known = np.zeros(ids.size, np.uint64), np.zeros(ids.size, np.bool_)
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        for number in fragment_ids.tolist():
            row_ids = self._of(number)
            base = np.uint64(number << 32)
            if isinstance(row_ids, tuple):
                first, count = row_ids
                low = int(np.searchsorted(ordered, np.uint64(first)))
                high = int(np.searchsorted(ordered, np.uint64(first + count)))
                places = order[low:high]
                addresses[places] = (ids[places] - np.uint64(first)) | base
            elif row_ids.size and ids.size:
                positions = np.minimum(np.searchsorted(ordered, row_ids), ids.size - 1)
                offsets = np.flatnonzero(ordered[positions] == row_ids)
                places = order[positions[offsets]]
                addresses[places] = offsets.astype(np.uint64) | base
            else:
                continue
            is_known[places] = True
        return addresses, is_known

    def _in_fragment(self, ids: U64s, fragment_id: int) -> U64s:
        row_ids = self._of(fragment_id)
        base = np.uint64(fragment_id << 32)
        if isinstance(row_ids, tuple):
            first, count = row_ids
            low = int(np.searchsorted(ids, np.uint64(first)))
            high = int(np.searchsorted(ids, np.uint64(first + count)))
            return (ids[low:high] - np.uint64(first)) | base
        if not ids.size or not row_ids.size:
            return NO_ROWS
        positions = np.minimum(np.searchsorted(ids, row_ids), ids.size - 1)
        return np.flatnonzero(ids[positions] == row_ids).astype(np.uint64) | base

    def _of(self, fragment_id: int) -> tuple[int, int] | U64s:
        row_ids = self._row_ids.get(fragment_id)
        if row_ids is None:
            row_ids = self._row_ids[fragment_id] = self._read(fragment_id)
        return row_ids

    def _read(self, fragment_id: int) -> tuple[int, int] | U64s:
        fragments = self._snapshot.manifest.fragments
        place = fragments.position_of(fragment_id)
        row_ids = None if place is None else fragment_row_ids(self._snapshot, fragments[place])
        if row_ids is None or not row_ids.size:
            return NO_ROWS
        is_run = bool((row_ids[1:] == row_ids[:-1] + np.uint64(1)).all())
        return (int(row_ids[0]), int(row_ids.size)) if is_run else row_ids
