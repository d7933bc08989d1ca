"""The last version that had a row: where its life is followed back from.

A row that is in the version in view is found there. One that is not has died before: by its row id
the version that created it is known, and the one that removed it is found by halving; by its key it
is looked for among the rows that recent versions removed; by its address it is followed forward
through compactions.

Limits: by key, the last ``REMOVALS_MAX`` versions that may have removed rows are searched.
Source: our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lance_nb.errors import InvalidInputError, NotFoundError
from lance_nb.table.diff.compare_plan import has_row_ids
from lance_nb.table.diff.feed import QUIET
from lance_nb.table.diff.fragments import match_fragments
from lance_nb.table.diff.manifest_tables import fragments_at
from lance_nb.table.diff.merge_base import Source, find_ends
from lance_nb.table.diff.row_history import RowHistory, Stay
from lance_nb.table.diff.row_locator import Place, Wanted, is_live, place_in, vanished
from lance_nb.table.diff.row_origins import find_origins
from lance_nb.table.diff.version_path import VersionPath
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.snapshot import Snapshot

REMOVALS_MAX = 200
_RESERVED_MAX = 16  # versions between the one that reserves a fragment's id and the one that has it
Last = tuple[Stay, int | None]


def find_history(
    source: Source,
    view: Snapshot,
    named: tuple[int | None, int | None, Mapping[str, Any] | None],
    columns: Sequence[str] | None,
) -> RowHistory:
    """Find a row by id, address or key. Raises InvalidInputError, NotFoundError."""
    row_id, address, key = named
    if sum(one is not None for one in named) != 1:
        raise InvalidInputError("name the row by exactly one of row_id, address and key")
    for name in columns or ():
        view.manifest.schema.field(name)
    path = VersionPath(source, view)
    if key is not None:
        wanted, last = Wanted(key=dict(key)), _by_key(path, key)
        return RowHistory(path, source, wanted, columns, last)
    number = _checked(row_id if address is None else address)
    if row_id is None or not has_row_ids(view):  # without stable row ids, they are addresses
        wanted, last = _by_address(path, source, number)
    else:
        wanted, last = Wanted(row_id=number), _by_row_id(path, number)
    return RowHistory(path, source, wanted, columns, last)


def _checked(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**64:
        raise InvalidInputError(f"row ids and addresses are whole numbers, not {value!r}")
    return value


def _by_row_id(path: VersionPath, row_id: int) -> Last:
    wanted = Wanted(row_id=row_id)

    def find(position: int) -> Place | None:
        snapshot = path.snapshot(position)
        return wanted.find(snapshot, snapshot.manifest.fragments)

    here = find(path.last)
    if here is not None:
        return Stay(path.last, here), None
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


def _by_key(path: VersionPath, key: Mapping[str, Any]) -> Last:
    view = path.snapshot(path.last)
    if not key:
        raise InvalidInputError("a key has at least one column")
    for name in key:
        if len(view.manifest.schema.resolve(name)) > 1:
            raise InvalidInputError(f"key column {name!r} is nested; a key is of top-level columns")
    wanted = Wanted(key=dict(key))
    here = wanted.find(view, view.manifest.fragments)
    if here is not None:
        return Stay(path.last, here), None
    searched = 0
    for position in range(path.last, 0, -1):
        done = path.transaction(position)
        if done is not None and done.operation in QUIET:
            continue
        searched += 1
        if searched > REMOVALS_MAX:
            break
        before, after = path.snapshot(position - 1), path.snapshot(position)
        place = wanted.find(before, vanished(before, match_fragments(before, after)))
        if place is not None:
            return Stay(position - 1, place), position
    raise NotFoundError(
        f"no row of version {view.version} has the key {dict(key)!r}, nor has any that was removed "
        f"since version {path.numbers[max(position - 1, 0)] if path.last else view.version}"
    )


def _by_address(path: VersionPath, source: Source, address: int) -> tuple[Wanted, Last]:
    position, place = _first_at(path, address)
    snapshot = path.snapshot(position)
    ids = fragment_row_ids(snapshot, place.fragment)
    if ids is not None:
        row_id = int(ids[place.offset])
        return Wanted(row_id=row_id), _by_row_id(path, row_id)
    while True:
        here = place_in(path.snapshot(path.last), place)
        if here is not None:
            return Wanted(), (Stay(path.last, here), None)
        gone = path.first_with(_is_gone(path, place), position, path.last)
        moved = _moved_to(path, source, gone, place)
        if moved is None:
            last = place_in(path.snapshot(gone - 1), place)
            return Wanted(), (Stay(gone - 1, place if last is None else last), gone)
        position, place = gone, moved


def _is_gone(path: VersionPath, place: Place) -> Any:
    return lambda position: place_in(path.snapshot(position), place) is None


def _first_at(path: VersionPath, address: int) -> tuple[int, Place]:
    """Return a version that has a live row at an address, the one in view if it can be."""
    number, offset = address >> 32, address & 0xFFFFFFFF

    def there(position: int) -> Place | None:
        snapshot = path.snapshot(position)
        at = snapshot.manifest.fragments.position_of(number)
        if at is None:
            return None
        fragment = snapshot.manifest.fragments[at]
        fits = offset < fragment.physical_rows
        return Place(fragment, offset) if fits and is_live(snapshot, fragment, offset) else None

    found = there(path.last)
    if found is not None:
        return path.last, found

    def was_given(position: int) -> bool:
        most = path.snapshot(position).manifest.max_fragment_id
        return most is not None and most >= number

    if was_given(path.last):
        first = path.first_with(was_given, 0, path.last)
        for position in range(first, min(first + _RESERVED_MAX, path.last + 1)):
            found = there(position)
            if found is not None:
                return position, found
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
            at = int(np.searchsorted(piece.origin_rows, place.offset))
            if at < piece.rows.size and int(piece.origin_rows[at]) == place.offset:
                return Place(fragment, int(piece.rows[at]))
    return None
