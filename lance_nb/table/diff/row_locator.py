"""Locate rows in a version, by stable row id, key or address, and read them a window at a time.

Limits: a search by row id reads the row ids of the fragments it is given, a search by key their key
columns; a key matches at most one row. A window holds what a window of a scan holds (table/scan).
Source: spec page "row id and row address".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.row_sequences import Range, RowIdSegments
from lance_nb.table.diff.fragments import FragmentMatch, deleted_offsets, fragments_at
from lance_nb.table.diff.row_compare import differing
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.ordering import Addresses
from lance_nb.table.projection import Projection, project
from lance_nb.table.row_id_index import live_offsets
from lance_nb.table.row_ids import U64s, fragment_row_ids
from lance_nb.table.scan import window_rows
from lance_nb.table.scan_tasks import num_live_rows
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


@dataclass(frozen=True, slots=True)
class Place:
    """A row in a version: its fragment and its offset in it."""

    fragment: Fragment
    offset: int

    @property
    def address(self) -> int:
        """The row address."""
        return self.fragment.id << 32 | self.offset


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which row: exactly one of a stable row id, a key, or (both None) an address only."""

    row_id: int | None = None
    key: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """How the row is followed."""
        if self.row_id is not None:
            return "stable row id"
        return "row address" if self.key is None else f"key: {', '.join(self.key)}"

    def find(self, snapshot: Snapshot, fragments: Iterable[Fragment]) -> Place | None:
        """Look for the live row in some fragments. Raises InvalidInputError, CorruptFileError."""
        if self.row_id is not None:
            found = (_offset_of_id(snapshot, one, self.row_id) for one in fragments)
            return next((one for one in found if one is not None), None)
        if self.key is None:
            return None
        return _find_key(snapshot, fragments, self.key)


def is_live(snapshot: Snapshot, fragment: Fragment, offset: int) -> bool:
    """Tell whether a row is not deleted."""
    deleted = deleted_offsets(snapshot, fragment)
    at = int(np.searchsorted(deleted, offset))
    return not (at < deleted.size and int(deleted[at]) == offset)


def place_in(snapshot: Snapshot, place: Place) -> Place | None:
    """Return the same place in another version, None when no live row is there."""
    number = snapshot.manifest.fragments.position_of(place.fragment.id)
    if number is None:
        return None
    fragment = snapshot.manifest.fragments[number]
    return Place(fragment, place.offset) if is_live(snapshot, fragment, place.offset) else None


def _offset_of_id(snapshot: Snapshot, fragment: Fragment, row_id: int) -> Place | None:
    if isinstance(fragment.row_ids, InlineSequence) and not _may_hold(fragment.row_ids, row_id):
        return None
    ids = fragment_row_ids(snapshot, fragment)
    if ids is None:
        return None
    for offset in np.flatnonzero(ids == np.uint64(row_id)).tolist():
        if is_live(snapshot, fragment, offset):
            return Place(fragment, offset)
    return None


def _may_hold(sequence: InlineSequence, row_id: int) -> bool:
    """Tell whether an id may be in a sequence, without writing out its ranges."""
    segments = RowIdSegments.from_bytes(sequence.data).segments
    return any(not isinstance(one, Range) or one.start <= row_id < one.end for one in segments)


def _find_key(
    snapshot: Snapshot, fragments: Iterable[Fragment], key: Mapping[str, Any]
) -> Place | None:
    schema = snapshot.manifest.schema
    if any(name not in schema.names for name in key):
        return None  # that version does not have the column
    wanted = project(schema, list(key))
    rows = live_rows(snapshot, fragments)
    found: list[Place] = []
    for fragment, physical in rows.windows(wanted):
        table = read_window(snapshot, wanted, fragment, physical)
        fits = np.ones(physical.size, np.bool_)
        for name, value in key.items():
            fits &= ~_differ_from(table.column(name), name, value)
        found += [Place(fragment, offset) for offset in physical[fits].tolist()]
        if len(found) > 1:
            raise InvalidInputError(
                f"the key {dict(key)!r} fits several rows of version {snapshot.version}; give more "
                "columns, or the row's id or address"
            )
    return found[0] if found else None


def _differ_from(column: pa.ChunkedArray, name: str, value: Any) -> np.ndarray:
    try:
        same = pa.repeat(pa.scalar(value, column.type), len(column))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise InvalidInputError(f"{value!r} is no value of column {name!r}: {exc}") from exc
    chunks = column.chunks
    starts = np.cumsum([0, *map(len, chunks)]).tolist()
    parts = [
        differing(one, same.slice(start, len(one)))
        for one, start in zip(chunks, starts, strict=False)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def vanished(before: Snapshot, match: FragmentMatch) -> list[Fragment]:
    """Return the fragments of a version that the next one does not have as they were."""
    return [*fragments_at(before, match.only_a), *(pair.a for pair in match.changed)]
