"""Rows by where they lie: lists of fragments with offsets, read a window at a time.

Limits: a window holds what a window of a scan holds (table/scan).
Source: table/filtered_scan and table/ordering read the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import Fragment
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.ordering import Addresses
from lance_nb.table.projection import Projection
from lance_nb.table.row_id_index import live_offsets
from lance_nb.table.row_ids import U64s, fragment_row_ids
from lance_nb.table.scan import window_rows
from lance_nb.table.scan_plan import num_live_rows
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """Some rows of a fragment: ascending physical offsets, or None for all that are live."""

    fragment: Fragment
    num_rows: int
    physical: Ints | None = None

    def offsets(self, snapshot: Snapshot) -> Ints:
        """Return the physical offsets."""
        return live_offsets(snapshot, self.fragment) if self.physical is None else self.physical


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows of one version, fragment by fragment; they are numbered from 0 in this order."""

    snapshot: Snapshot = field(repr=False)
    runs: tuple[FragmentRows, ...] = ()

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return sum(one.num_rows for one in self.runs)

    def row_ids(self) -> U64s:
        """Return the stable row id of each row. Raises CorruptFileError where there is none."""
        parts = []
        for run in self.runs:
            ids = fragment_row_ids(self.snapshot, run.fragment)
            if ids is None:
                where = f"fragment {run.fragment.id}"
                raise CorruptFileError(self.snapshot.manifest.path, None, "row ids", "none", where)
            parts.append(ids[run.offsets(self.snapshot)])
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64)

    def pick(self, numbers: Ints) -> Addresses:
        """Return the places of some rows, in the order asked for."""
        offsets = [run.offsets(self.snapshot) for run in self.runs]
        ends = np.cumsum([one.size for one in offsets])
        physical = np.concatenate(offsets)[numbers]
        owner = np.searchsorted(ends, numbers, side="right").astype(np.int64)
        return placed(tuple(run.fragment for run in self.runs), owner, physical)

    def without(self, numbers: Ints) -> PlacedRows:
        """Return the rows that are not among ``numbers``."""
        if not numbers.size:
            return self
        gone = np.zeros(self.num_rows, np.bool_)
        gone[numbers] = True
        runs, start = [], 0
        for run in self.runs:
            kept = np.flatnonzero(~gone[start : start + run.num_rows])
            start += run.num_rows
            if kept.size == run.num_rows:
                runs.append(run)
            elif kept.size:
                offsets = run.offsets(self.snapshot)[kept]
                runs.append(FragmentRows(run.fragment, int(kept.size), offsets))
        return PlacedRows(self.snapshot, tuple(runs))

    def windows(
        self, wanted: Projection, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[Fragment, Ints]]:
        """Yield rows ``[start, stop)`` as (fragment, offsets), each small enough to be read."""
        left = self.num_rows if stop is None else stop
        for run in self.runs:
            first, last = max(start, 0), min(left, run.num_rows)
            start, left = start - run.num_rows, left - run.num_rows
            if first >= last:
                continue
            offsets = run.offsets(self.snapshot)[first:last]
            step = window_rows(self.snapshot, wanted, run.fragment)
            for at in range(0, offsets.size, step):
                yield run.fragment, offsets[at : at + step]


def live_rows(snapshot: Snapshot, fragments: Iterable[Fragment]) -> PlacedRows:
    """Return all live rows of some fragments."""
    counted = ((one, num_live_rows(snapshot, one)) for one in fragments)
    runs = tuple(FragmentRows(one, count) for one, count in counted if count)
    return PlacedRows(snapshot, runs)


def placed(fragments: tuple[Fragment, ...], owner: Ints, physical: Ints) -> Addresses:
    """List rows: the number of their fragment, and their offset in it."""
    # Places in the dataset do not matter here, and no row is deleted: neither takes memory.
    unknown = np.broadcast_to(np.int64(0), physical.shape)
    live = np.broadcast_to(np.False_, physical.shape)
    return Addresses(fragments, owner, physical, unknown, live)


def in_fragment(fragment: Fragment, physical: Ints) -> Addresses:
    """List rows of one fragment."""
    return placed((fragment,), np.zeros(physical.size, np.int64), physical)


def read_window(
    snapshot: Snapshot, wanted: Projection, fragment: Fragment, physical: Ints
) -> pa.Table:
    """Read rows of one fragment at ascending offsets."""
    return selected_table(snapshot, wanted, Selected(fragment, physical, physical, {}))
