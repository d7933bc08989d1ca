"""Locate rows: in a version, and where they were before compactions moved them.

In a version rows are found by stable row id, key or address, and read a window at a time.

A Rewrite between two versions tells which fragments it read and which it wrote; their live rows
are the same, in the same order. Followed back, each row has an *origin*: a fragment that no known
Rewrite wrote, and an offset in it. Rows of one origin are one row, and equal in every column whose
files have not been written anew since. The files of a column of a rewritten fragment are those
that it was copied from.

Limits: a search by row id reads the row ids of the fragments it is given, a search by key their key
columns; a key matches at most one row. A window holds what a window of a scan holds (table/scan).
A Rewrite is followed only if its transaction and the deletion files it read are still there and the
numbers of rows agree; else its fragments are origins of their own. When a version was restored in
between, Rewrites since that version count as well.
Source: spec page "row id and row address"; message Transaction.Rewrite of lance.table;
format/transaction_effects.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, InvalidInputError, NotFoundError
from lance_nb.format.field import Field
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.row_sequences import Range, RowIdSegments
from lance_nb.format.transaction_effects import ReplacedFragments, restored_version, rewrite_groups
from lance_nb.table.addresses import Addresses
from lance_nb.table.diff.columns import ColumnFiles, FragmentColumns
from lance_nb.table.diff.fragments import (
    FileKey,
    FragmentMatch,
    Places,
    deleted_offsets,
    fragments_at,
)
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.diff.row_compare import differing
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import Projection, project
from lance_nb.table.refs import Target
from lance_nb.table.row_ids import U64s, fragment_row_ids, live_offsets
from lance_nb.table.scan import window_rows
from lance_nb.table.scan_tasks import num_live_rows
from lance_nb.table.snapshot import Snapshot, read_transaction
from lance_nb.value_classes import dataclass

_DEPTH_MAX = 1000  # of compactions of compactions


@dataclass(frozen=True, slots=True)
class Level:
    """One compaction that a row went through: the fragments as its transaction has them."""

    new: Fragment
    old: Fragment
    columns: FragmentColumns


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a fragment that have one origin.

    ``rows`` are offsets in the fragment, ``origin_rows`` the offsets they had in the origin;
    ``levels`` leads from the fragment back to its origin ``fragment``.
    """

    fragment: Fragment
    rows: Ints
    origin_rows: Ints
    levels: tuple[Level, ...] = ()

    def column_files(self, files: ColumnFiles, column: Field) -> ColumnFiles:
        """Return the files that values were copied from; ``files`` are those of the fragment."""
        for level in self.levels:
            if files == level.columns.files_of(level.new, column):  # else it was written anew since
                files = level.columns.files_of(level.old, column)
        return files


@dataclass(frozen=True, slots=True)
class _Written:
    """A fragment that a Rewrite wrote: its group, its number in it, the version that has it."""

    group: ReplacedFragments
    number: int
    snapshot: Snapshot
    columns: FragmentColumns


class Origins:
    """The origins of rows on one side of a diff."""

    def __init__(self, written: dict[FileKey, _Written], snapshot: Snapshot) -> None:
        self._written = written
        self._places = Places(snapshot.locations)

    def pieces(self, fragment: Fragment, num_rows: int) -> list[Piece]:
        """Split a fragment of ``num_rows`` physical rows by origin."""
        rows = np.arange(num_rows, dtype=np.int64)
        return list(self._followed(Piece(fragment, rows, rows), self._places, _DEPTH_MAX))

    def is_rewritten(self, fragment: Fragment) -> bool:
        """Tell whether a known Rewrite wrote the fragment."""
        return self._find(fragment, self._places) is not None

    def _find(self, fragment: Fragment, places: Places) -> _Written | None:
        writes = (self._written.get(places.of_file(file)) for file in fragment.files)
        return next((written for written in writes if written is not None), None)

    def _followed(self, piece: Piece, places: Places, depth: int) -> Iterator[Piece]:
        written = self._find(piece.fragment, places) if depth else None
        parts = None if written is None else _replaced_by(written)
        if written is None or parts is None:
            yield piece
            return
        before = sum(fragment.physical_rows for fragment in written.group.new[: written.number])
        origins = piece.origin_rows + before
        start = 0
        inside = Places(written.snapshot.locations)
        for old, part in zip(written.group.old, parts, strict=True):
            stop = start + part.num_rows
            mine = slice(*np.searchsorted(origins, (start, stop)).tolist())  # origins ascend
            if mine.start < mine.stop:
                level = Level(written.group.new[written.number], old, written.columns)
                rows = origins[mine] - start
                rows = rows if part.live is None else part.live[rows]
                levels = (*piece.levels, level)
                yield from self._followed(
                    Piece(old, piece.rows[mine], rows, levels), inside, depth - 1
                )
            start = stop


@dataclass(frozen=True, slots=True)
class _Part:
    """The live rows of a fragment that was read; ``live`` None: all of them."""

    num_rows: int
    live: Ints | None


def _replaced_by(written: _Written) -> list[_Part] | None:
    """Return what was read for a group, None if that is not known any more, or makes no sense."""
    if not written.group.keeps_rows:
        return None
    parts = []
    for old in written.group.old:
        if old.deletion_file is None:
            parts.append(_Part(old.physical_rows, None))
            continue
        try:
            live = live_offsets(written.snapshot, old)
        except NotFoundError:
            return None  # cleaned up
        parts.append(_Part(live.size, live))
    total = sum(fragment.physical_rows for fragment in written.group.new)
    return parts if sum(part.num_rows for part in parts) == total else None


def find_origins(ends: Ends) -> tuple[Origins, Origins]:
    """Read the Rewrites between the versions; returns the origins on each side."""
    sides: dict[str, dict[FileKey, _Written]] = {"a": {}, "b": {}}
    for stretch in ends.between:
        oldest = stretch.after
        for version in range(stretch.upto, 0, -1):
            if version <= oldest:
                break
            for restored in _collect(ends, Target(stretch.branch, version), sides[stretch.side]):
                oldest = min(oldest, restored)
        if oldest < stretch.after:  # what both sides may stem from
            for version in range(stretch.after, oldest, -1):
                for side in sides.values():
                    list(_collect(ends, Target(stretch.branch, version), side))
    return Origins(sides["a"], ends.a), Origins(sides["b"], ends.b)


def _collect(ends: Ends, target: Target, written_files: dict[FileKey, _Written]) -> Iterator[int]:
    """Add what a version rewrote; yields the version that it restored, if it did."""
    version = target.version or 0
    try:
        done = ends.source.log(target.branch).transaction(version)
        if done is None or done.operation not in ("Rewrite", "Restore"):
            return
        snapshot = ends.source.load(target)
        data = read_transaction(snapshot)
    except NotFoundError:
        return  # cleaned up
    if data is None:
        return
    restored = restored_version(data, snapshot.manifest.path)
    if restored is not None:
        yield restored
    places = Places(snapshot.locations)
    columns = FragmentColumns(places)
    for group in rewrite_groups(data, snapshot.manifest.path):
        for number, fragment in enumerate(group.new):
            written = _Written(group, number, snapshot, columns)
            written_files |= dict.fromkeys(map(places.of_file, fragment.files), written)


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
        return sum(run.num_rows for run in self.runs)

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
        ends = np.cumsum([part.size for part in offsets])
        physical = np.concatenate(offsets)[numbers]
        owner = np.searchsorted(ends, numbers, side="right").astype(np.int64)
        return placed(tuple(run.fragment for run in self.runs), owner, physical)

    def without(self, numbers: Ints) -> PlacedRows:
        """Return the rows that are not among ``numbers``."""
        if not numbers.size:
            return self
        is_removed = np.zeros(self.num_rows, np.bool_)
        is_removed[numbers] = True
        runs, start = [], 0
        for run in self.runs:
            remaining = np.flatnonzero(~is_removed[start : start + run.num_rows])
            start += run.num_rows
            if remaining.size == run.num_rows:
                runs.append(run)
            elif remaining.size:
                offsets = run.offsets(self.snapshot)[remaining]
                runs.append(FragmentRows(run.fragment, int(remaining.size), offsets))
        return PlacedRows(self.snapshot, tuple(runs))

    def windows(
        self, projection: Projection, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[Fragment, Ints]]:
        """Yield rows ``[start, stop)`` as (fragment, offsets), each small enough to be read."""
        left = self.num_rows if stop is None else stop
        for run in self.runs:
            first, last = max(start, 0), min(left, run.num_rows)
            start, left = start - run.num_rows, left - run.num_rows
            if first >= last:
                continue
            offsets = run.offsets(self.snapshot)[first:last]
            step = window_rows(self.snapshot, projection, run.fragment)
            for index in range(0, offsets.size, step):
                yield run.fragment, offsets[index : index + step]


def live_rows(snapshot: Snapshot, fragments: Iterable[Fragment]) -> PlacedRows:
    """Return all live rows of some fragments."""
    counted = ((fragment, num_live_rows(snapshot, fragment)) for fragment in fragments)
    runs = tuple(FragmentRows(fragment, count) for fragment, count in counted if count)
    return PlacedRows(snapshot, runs)


def placed(fragments: tuple[Fragment, ...], owner: Ints, physical: Ints) -> Addresses:
    """List rows: the number of their fragment, and their offset in it."""
    # Places in the dataset do not matter here, and no row is deleted: neither takes memory.
    unknown = np.broadcast_to(np.int64(0), physical.shape)
    live = np.broadcast_to(np.False_, physical.shape)
    return Addresses(fragments, owner, physical, position=unknown, deleted=live)


def in_fragment(fragment: Fragment, physical: Ints) -> Addresses:
    """List rows of one fragment."""
    return placed((fragment,), np.zeros(physical.size, np.int64), physical)


def read_window(
    snapshot: Snapshot, projection: Projection, fragment: Fragment, physical: Ints
) -> pa.Table:
    """Read rows of one fragment at ascending offsets."""
    return selected_table(snapshot, projection, Selected(fragment, physical, physical, {}))


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
class RowSelector:
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
            places = (_offset_of_id(snapshot, fragment, self.row_id) for fragment in fragments)
            return next((place for place in places if place is not None), None)
        if self.key is None:
            return None
        return _find_key(snapshot, fragments, self.key)


def is_live(snapshot: Snapshot, fragment: Fragment, offset: int) -> bool:
    """Tell whether a row is not deleted."""
    deleted = deleted_offsets(snapshot, fragment)
    position = int(np.searchsorted(deleted, offset))
    return not (position < deleted.size and int(deleted[position]) == offset)


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
    return any(
        not isinstance(segment, Range) or segment.start <= row_id < segment.end
        for segment in segments
    )


def _find_key(
    snapshot: Snapshot, fragments: Iterable[Fragment], key: Mapping[str, Any]
) -> Place | None:
    schema = snapshot.manifest.schema
    if any(name not in schema.names for name in key):
        return None  # that version does not have the column
    projection = project(schema, list(key))
    rows = live_rows(snapshot, fragments)
    places: list[Place] = []
    for fragment, physical in rows.windows(projection):
        table = read_window(snapshot, projection, fragment, physical)
        fits = np.ones(physical.size, np.bool_)
        for name, value in key.items():
            fits &= ~_differ_from(table.column(name), name, value)
        places += [Place(fragment, offset) for offset in physical[fits].tolist()]
        if len(places) > 1:
            raise InvalidInputError(
                f"the key {dict(key)!r} fits several rows of version {snapshot.version}; give more "
                "columns, or the row's id or address"
            )
    return places[0] if places else None


def _differ_from(column: pa.ChunkedArray, name: str, value: Any) -> np.ndarray:
    try:
        same = pa.repeat(pa.scalar(value, column.type), len(column))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise InvalidInputError(f"{value!r} is no value of column {name!r}: {exc}") from exc
    chunks = column.chunks
    starts = np.cumsum([0, *map(len, chunks)]).tolist()
    parts = [
        differing(chunk, same.slice(start, len(chunk)))
        for chunk, start in zip(chunks, starts, strict=False)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def vanished(before: Snapshot, match: FragmentMatch) -> list[Fragment]:
    """Return the fragments of a version that the next one does not have as they were."""
    return [*fragments_at(before, match.only_a), *(pair.a for pair in match.changed)]
