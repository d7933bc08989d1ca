"""The history of one row across versions: created, updated, moved, restored, deleted.

The row is followed backward from the last version that had it. In the open version it is looked up;
a row that was deleted before is found by its row id (which names the version that created it, and
the one that removed it is found by binary search), by its key among the rows that recent versions
removed, or by its address, followed forward through compactions.

A row keeps its offset in a fragment, so a binary search finds the version that put it there; the
transaction of that version tells where the row came from: a Rewrite moved it, a Restore brought it
back, an Update rewrote it (by row id or key the old row is found among those that disappeared),
anything else created it. Columns rewritten in place are found by binary search, too.

Limits: about a logarithm of the number of versions is read per step; see merge_base.py for
restores. By key, the last ``REMOVALS_MAX`` versions that may have removed rows are searched. By
address an Update that rewrote the row cannot be distinguished from one that created or deleted it:
the step is "written" or "gone". Versions that were cleaned up are not known: in the first one that
is left the row was "found".
Source: our own; transactions of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError, NotFoundError
from lance_nb.format.python_values import to_python
from lance_nb.format.transaction_effects import restored_version
from lance_nb.table.addresses import Addresses
from lance_nb.table.diff.columns import find_renames, pair_columns
from lance_nb.table.diff.compare_plan import has_row_ids
from lance_nb.table.diff.feed import QUIET
from lance_nb.table.diff.fragments import fragments_at, match_fragments
from lance_nb.table.diff.merge_base import Source, VersionPath, find_ends
from lance_nb.table.diff.row_compare import Sides
from lance_nb.table.diff.row_locator import (
    Place,
    RowSelector,
    find_origins,
    in_fragment,
    is_live,
    place_in,
    read_window,
    vanished,
)
from lance_nb.table.projection import project
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.snapshot import Snapshot, read_transaction
from lance_nb.value_classes import dataclass

CREATED, UPDATED, MOVED, DELETED = "created", "updated", "moved", "deleted"
RESTORED, FOUND, EXTENDED = "restored", "found", "extended"
WRITTEN, GONE = "written", "gone"
REMOVALS_MAX = 200
_RESERVED_MAX = 16  # versions between the one that reserves a fragment's id and the one that has it


@dataclass(frozen=True, slots=True)
class RowEvent:
    """One step of the life of a row: what the version ``version`` did to it.

    ``event``: created, updated, moved, restored, deleted; "extended" when it got a new column;
    "written" or "gone" when a row known by address was created or deleted, or updated elsewhere;
    "found" where the trace begins.
    ``old`` and ``new`` are its values before and after, None where there are none or they did not
    change; ``columns`` names those that differ. ``fragment_id`` and ``offset`` say where it is
    afterwards (of a deleted row: where it was).
    """

    version: int
    branch: str | None
    timestamp: datetime | None
    operation: str | None
    event: str
    fragment_id: int
    offset: int
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Stay:
    """A row at one place; ``position`` is that of a version that has it there."""

    position: int
    place: Place


class RowHistory:
    """The steps of a row's life, newest first. They are worked out as far as somebody asks.

    ``label`` says how the row is followed. ``steps()`` lists them oldest first.
    """

    def __init__(
        self,
        path: VersionPath,
        source: Source,
        selector: RowSelector,
        columns: Sequence[str] | None,
        last: tuple[Stay, int | None],
    ) -> None:
        self._path = path
        self._source = source
        self._selector = selector
        self._columns = columns
        self._last = last

    @property
    def label(self) -> str:
        """How the row is followed: "stable row id", "key: id" or "row address"."""
        return self._selector.label

    def steps(self) -> list[RowEvent]:
        """List all steps, oldest first."""
        return list(self)[::-1]

    def __iter__(self) -> Iterator[RowEvent]:
        stay: Stay | None
        stay, died = self._last
        if died is not None:
            yield self._death(died, stay)
        while stay is not None:
            arrived = self._arrival(stay)
            for position in reversed(list(self._rewrites(arrived, stay))):
                event = self._written_in_place(position, stay.place)
                if event is not None:
                    yield event
            events, stay = self._origin(arrived)
            yield from events

    def __repr__(self) -> str:
        return f"<lance_nb.RowHistory by {self.label}>"

    # --- where it came from -----------------------------------------------------------------------

    def _arrival(self, stay: Stay) -> Stay:
        """Return the first version from which on the row is at its place."""

        def holds(position: int) -> bool:
            return self._place_at(position, stay.place) is not None

        first = stay.position
        while True:
            low = self._path.last_restore(first)
            first = self._path.first_with(holds, low, first)
            if first > low or not low or not holds(low - 1):
                break
            first = low - 1  # the restore changed nothing for the row
        place = self._place_at(first, stay.place)
        return Stay(first, stay.place if place is None else place)

    def _place_at(self, position: int, place: Place) -> Place | None:
        """Return the same place in another version, None when the row is not there."""
        return place_in(self._path.snapshot(position), place)

    def _death(self, position: int, last: Stay) -> RowEvent:
        done = self._path.transaction(position)
        unclear = self._by_address and (done is None or done.operation == "Update")
        old = self._values(last.position, last.place)
        return self._event(position, GONE if unclear else DELETED, last.place, old=old)

    @property
    def _by_address(self) -> bool:
        return self._selector.row_id is None and self._selector.key is None

    def _origin(self, arrived: Stay) -> tuple[list[RowEvent], Stay | None]:
        """Return how the row came to its place, newest first, and where it was before."""
        position, place = arrived.position, arrived.place
        new = self._values(position, place)
        if not position:
            return [self._beginning(position, place, new)], None
        done = self._path.transaction(position)
        operation = None if done is None else done.operation
        if operation == "Rewrite":
            before = self._moved_from(position, place)
            if before is not None:
                return [self._event(position, MOVED, place)], before
        if operation == "Restore":
            return self._restored(position, place, new)
        origin = self._before(position)
        if origin is None:
            unclear = self._by_address and operation in ("Update", "Rewrite", None)
            return [self._event(position, WRITTEN if unclear else CREATED, place, new=new)], None
        names = self._differing(origin, arrived)
        if not names:
            return [self._event(position, MOVED, place)], origin
        old = self._values(origin.position, origin.place)
        return [self._event(position, UPDATED, place, old=old, new=new, columns=names)], origin

    def _beginning(self, position: int, place: Place, new: Mapping[str, Any]) -> RowEvent:
        done = self._path.transaction(position)
        is_first = self._path.numbers[position] == 1
        created = is_first or (done is not None and done.operation in ("Append", "Overwrite"))
        return self._event(position, CREATED if created else FOUND, place, new=new)

    def _restored(
        self, position: int, place: Place, new: Mapping[str, Any]
    ) -> tuple[list[RowEvent], Stay | None]:
        """Go on in the version that was restored; tell of a deletion that it took back."""
        data = read_transaction(self._path.snapshot(position))
        version = None if data is None else restored_version(data)
        restored_position = None if version is None else self._path.position_of(version)
        restored_place = (
            None if restored_position is None else self._place_at(restored_position, place)
        )
        before = self._before(position)
        old = None if before is None else self._values(before.position, before.place)
        events = [self._event(position, RESTORED, place, old=old, new=new)]
        if restored_position is None or restored_place is None:
            return events, None
        last = Stay(restored_position, restored_place)
        if before is None:
            removed_at = self._path.first_with(
                lambda later: self._place_at(later, restored_place) is None,
                restored_position,
                position - 1,
            )
            done = self._path.transaction(removed_at)
            if restored_position < removed_at and (done is None or done.operation != "Rewrite"):
                events.append(self._death(removed_at, last))
        return events, last

    def _before(self, position: int) -> Stay | None:
        """Find the row, by id or key, among those that vanished with a version."""
        before, after = self._path.snapshot(position - 1), self._path.snapshot(position)
        match = match_fragments(before, after)
        place = self._selector.find(before, vanished(before, match))
        return None if place is None else Stay(position - 1, place)

    def _moved_from(self, position: int, place: Place) -> Stay | None:
        """Follow a compaction back; None when it cannot be followed."""
        before, after = self._path.snapshot(position - 1), self._path.snapshot(position)
        origins = find_origins(find_ends(self._source, before, after))[1]
        count = place.fragment.physical_rows
        for piece in origins.pieces(place.fragment, count):
            row_index = int(np.searchsorted(piece.rows, place.offset))
            if row_index < piece.rows.size and int(piece.rows[row_index]) == place.offset:
                old = Place(piece.fragment, int(piece.origin_rows[row_index]))
                old_place = self._place_at(position - 1, old)
                return None if old_place is None else Stay(position - 1, old_place)
        return None

    # --- columns written anew in place ------------------------------------------------------------

    def _rewrites(self, first: Stay, last: Stay) -> Iterator[int]:
        """Yield the positions of versions that changed the files of the row's fragment."""
        yield from self._between(first.position, last.position, last.place)

    def _between(self, low: int, high: int, place: Place) -> Iterator[int]:
        if low >= high or self._files(low, place) == self._files(high, place):
            return
        if high - low == 1:
            yield high
            return
        middle = (low + high) // 2
        yield from self._between(low, middle, place)
        yield from self._between(middle, high, place)

    def _files(self, position: int, place: Place) -> list[tuple[str, tuple[int, ...]]]:
        current = self._place_at(position, place)
        files = () if current is None else current.fragment.files
        return [(file.path, file.fields) for file in files]

    def _written_in_place(self, position: int, place: Place) -> RowEvent | None:
        """Tell what a version did to the row without moving it, None when its values stayed."""
        before, after = self._place_at(position - 1, place), self._place_at(position, place)
        if before is None or after is None:
            return None
        old, new = Stay(position - 1, before), Stay(position, after)
        names = self._differing(old, new)
        values = self._values(position - 1, before), self._values(position, after)
        if names:
            return self._event(position, UPDATED, after, *values, columns=names)
        added = tuple(name for name in values[1] if name not in values[0])
        if added:
            return self._event(position, EXTENDED, after, *values, columns=added)
        return None

    # --- values -----------------------------------------------------------------------------------

    def _row(self, position: int, place: Place) -> pa.Table:
        snapshot = self._path.snapshot(position)
        have = snapshot.manifest.schema.names
        names = (
            have
            if self._columns is None
            else [column for column in self._columns if column in have]
        )
        projection = project(snapshot.manifest.schema, names)
        offset = np.array([place.offset], np.int64)
        return read_window(snapshot, projection, place.fragment, offset)

    def _values(self, position: int, place: Place) -> dict[str, Any]:
        row = self._row(position, place)
        return {name: to_python(row[name])[0] for name in row.schema.names} if len(row) else {}

    def _differing(self, old: Stay, new: Stay) -> tuple[str, ...]:
        """Name the columns whose values differ between two stays of the row."""
        a, b = self._path.snapshot(old.position), self._path.snapshot(new.position)
        renamed = find_renames(find_ends(self._source, a, b))
        pairs = [
            pair
            for pair in pair_columns(a.manifest.schema, b.manifest.schema, renamed)
            if pair.is_shared and (self._columns is None or pair.name in self._columns)
        ]
        differences = Sides(a, b, pairs).differing(_alone(old.place), _alone(new.place))
        return tuple(
            pair.name for pair, differs in zip(pairs, differences[0], strict=True) if differs
        )

    def _event(
        self,
        position: int,
        event: str,
        place: Place,
        old: Mapping[str, Any] | None = None,
        new: Mapping[str, Any] | None = None,
        *,
        columns: tuple[str, ...] = (),
    ) -> RowEvent:
        snapshot, done = self._path.snapshot(position), self._path.transaction(position)
        return RowEvent(
            version=snapshot.version,
            branch=snapshot.branch,
            timestamp=snapshot.manifest.timestamp,
            operation=None if done is None else done.operation,
            event=event,
            fragment_id=place.fragment.id,
            offset=place.offset,
            old=old,
            new=new,
            columns=columns,
            message=None if done is None else done.message,
        )


def _alone(place: Place) -> Addresses:
    return in_fragment(place.fragment, np.array([place.offset], np.int64))


# --- where a history begins -----------------------------------------------------------------------

LastStay = tuple[Stay, int | None]


def find_history(
    source: Source,
    view: Snapshot,
    named: tuple[int | None, int | None, Mapping[str, Any] | None],
    columns: Sequence[str] | None,
) -> RowHistory:
    """Find a row by id, address or key. Raises InvalidInputError, NotFoundError."""
    row_id, address, key = named
    if sum(value is not None for value in named) != 1:
        raise InvalidInputError("name the row by exactly one of row_id, address and key")
    for name in columns or ():
        view.manifest.schema.field(name)
    path = VersionPath(source, view)
    if key is not None:
        selector, last = RowSelector(key=dict(key)), _by_key(path, key)
        return RowHistory(path, source, selector, columns=columns, last=last)
    number = _checked(row_id if address is None else address)
    if row_id is None or not has_row_ids(view):  # without stable row ids, they are addresses
        selector, last = _by_address(path, source, number)
    else:
        selector, last = RowSelector(row_id=number), _by_row_id(path, number)
    return RowHistory(path, source, selector, columns=columns, last=last)


def _checked(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**64:
        raise InvalidInputError(f"row ids and addresses are whole numbers, not {value!r}")
    return value


def _by_row_id(path: VersionPath, row_id: int) -> LastStay:
    selector = RowSelector(row_id=row_id)

    def find(position: int) -> Place | None:
        snapshot = path.snapshot(position)
        return selector.find(snapshot, snapshot.manifest.fragments)

    place = find(path.last)
    if place is not None:
        return Stay(path.last, place), None
    view = path.snapshot(path.last)
    if view.manifest.next_row_id <= row_id:
        raise NotFoundError(
            f"no row had id {row_id} up to version {view.version}: the ids given out so far are "
            f"those below {view.manifest.next_row_id}"
        )
    first = path.first_with(
        lambda position: path.snapshot(position).manifest.next_row_id > row_id, 0, path.last
    )
    if find(first) is None:
        raise NotFoundError(
            f"row id {row_id} is in none of the versions that are left (the oldest is "
            f"{path.numbers[0]}); the versions that had it may have been cleaned up"
        )
    died = path.first_with(lambda position: find(position) is None, first, path.last)
    last = find(died - 1)
    if last is None:
        raise NotFoundError(f"row id {row_id} was not found in version {path.numbers[died - 1]}")
    return Stay(died - 1, last), died


def _by_key(path: VersionPath, key: Mapping[str, Any]) -> LastStay:
    view = path.snapshot(path.last)
    if not key:
        raise InvalidInputError("a key has at least one column")
    for name in key:
        if len(view.manifest.schema.resolve(name)) > 1:
            raise InvalidInputError(f"key column {name!r} is nested; a key is of top-level columns")
    selector = RowSelector(key=dict(key))
    current = selector.find(view, view.manifest.fragments)
    if current is not None:
        return Stay(path.last, current), None
    searched = 0
    for position in range(path.last, 0, -1):
        done = path.transaction(position)
        if done is not None and done.operation in QUIET:
            continue
        searched += 1
        if searched > REMOVALS_MAX:
            break
        before, after = path.snapshot(position - 1), path.snapshot(position)
        place = selector.find(before, vanished(before, match_fragments(before, after)))
        if place is not None:
            return Stay(position - 1, place), position
    raise NotFoundError(
        f"no row of version {view.version} has the key {dict(key)!r}, nor has any that was removed "
        f"since version {path.numbers[max(position - 1, 0)] if path.last else view.version}"
    )


def _by_address(path: VersionPath, source: Source, address: int) -> tuple[RowSelector, LastStay]:
    position, place = _first_at(path, address)
    snapshot = path.snapshot(position)
    ids = fragment_row_ids(snapshot, place.fragment)
    if ids is not None:
        row_id = int(ids[place.offset])
        return RowSelector(row_id=row_id), _by_row_id(path, row_id)
    while True:
        current = place_in(path.snapshot(path.last), place)
        if current is not None:
            return RowSelector(), (Stay(path.last, current), None)
        removed_at = path.first_with(_is_gone(path, place), position, path.last)
        moved = _moved_to(path, source, removed_at, place)
        if moved is None:
            last = place_in(path.snapshot(removed_at - 1), place)
            return RowSelector(), (
                Stay(removed_at - 1, place if last is None else last),
                removed_at,
            )
        position, place = removed_at, moved


def _is_gone(path: VersionPath, place: Place) -> Any:
    return lambda position: place_in(path.snapshot(position), place) is None


def _first_at(path: VersionPath, address: int) -> tuple[int, Place]:
    """Return a version that has a live row at an address, the one in view if it can be."""
    number, offset = address >> 32, address & 0xFFFFFFFF

    def place_at(position: int) -> Place | None:
        snapshot = path.snapshot(position)
        index = snapshot.manifest.fragments.position_of(number)
        if index is None:
            return None
        fragment = snapshot.manifest.fragments[index]
        fits = offset < fragment.physical_rows
        return Place(fragment, offset) if fits and is_live(snapshot, fragment, offset) else None

    place = place_at(path.last)
    if place is not None:
        return path.last, place

    def was_given(position: int) -> bool:
        most = path.snapshot(position).manifest.max_fragment_id
        return most is not None and most >= number

    if was_given(path.last):
        first = path.first_with(was_given, 0, path.last)
        for position in range(first, min(first + _RESERVED_MAX, path.last + 1)):
            place = place_at(position)
            if place is not None:
                return position, place
    raise NotFoundError(
        f"no version from {path.numbers[0]} to {path.numbers[-1]} is known to have a row at "
        f"address {address} (fragment {number}, offset {offset})"
    )


def _moved_to(path: VersionPath, source: Source, position: int, place: Place) -> Place | None:
    """Follow a row through the version that took it away; None unless it is a compaction."""
    before, after = path.snapshot(position - 1), path.snapshot(position)
    ends = find_ends(source, before, after)
    origins = find_origins(ends)[1]
    match = match_fragments(before, after)
    for fragment in fragments_at(after, match.only_b):
        if not origins.is_rewritten(fragment):
            continue
        for piece in origins.pieces(fragment, fragment.physical_rows):
            if piece.fragment.id != place.fragment.id:
                continue
            row_index = int(np.searchsorted(piece.origin_rows, place.offset))
            if row_index < piece.rows.size and int(piece.origin_rows[row_index]) == place.offset:
                return Place(fragment, int(piece.rows[row_index]))
    return None
