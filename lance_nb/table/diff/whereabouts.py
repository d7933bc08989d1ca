"""Where one row is in a version: found by its stable row id, by a key, or by its address.

Limits: a search by row id looks at the row ids of the fragments it is given, a search by key reads
the key columns of those; a key fits one row at most.
Source: spec page "row id and row address".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.row_id_sequence import RowIdSequence
from lance_nb.format.u64_segment import Range
from lance_nb.table.diff.fragments import FragmentMatch
from lance_nb.table.diff.manifest_tables import fragments_at
from lance_nb.table.diff.placed import live_rows, read_window
from lance_nb.table.diff.transactions_between import deleted_offsets
from lance_nb.table.diff.values import differing
from lance_nb.table.projection import project
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.snapshot import Snapshot


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
    segments = RowIdSequence.from_bytes(sequence.data).segments
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
