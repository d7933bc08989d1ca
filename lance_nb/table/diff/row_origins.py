"""Row origins: where the rows of a fragment were before compactions moved them.

A Rewrite between the two versions tells which fragments it read and which it wrote; their live rows
are the same, in the same order. Followed back, each row has an *origin*: a fragment that no known
Rewrite wrote, and an offset in it. Rows of one origin are one row, and equal in every column whose
home has not been written anew since. The home of a column of a rewritten fragment is the one
that it was copied from.

Limits: a Rewrite is followed only if its transaction and the deletion files it read are still
there and the numbers of rows agree; else its fragments are origins of their own. When a version
was restored in between, Rewrites since that version count as well.
Source: message Transaction.Rewrite of lance.table; format/transaction_effects.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import NotFoundError
from lance_nb.format.field import Field
from lance_nb.format.fragment import Fragment
from lance_nb.format.transaction_effects import ReplacedFragments, restored_version, rewrite_groups
from lance_nb.table.diff.columns import Home, Homes
from lance_nb.table.diff.fragments import FileKey, Places
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.refs import Target
from lance_nb.table.row_id_index import live_offsets
from lance_nb.table.snapshot import Snapshot, read_transaction

_DEPTH_MAX = 1000  # of compactions of compactions


@dataclass(frozen=True, slots=True)
class Level:
    """One compaction that a row went through: the fragments as its transaction has them."""

    new: Fragment
    old: Fragment
    homes: Homes


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

    def home(self, own: Home, column: Field) -> Home:
        """Return where values of a column lie, given where the fragment itself keeps them."""
        for level in self.levels:
            if own == level.homes.of(level.new, column):  # else it was written anew since
                own = level.homes.of(level.old, column)
        return own


@dataclass(frozen=True, slots=True)
class _Written:
    """A fragment that a Rewrite wrote: its group, its number in it, the version that has it."""

    group: ReplacedFragments
    number: int
    snapshot: Snapshot
    homes: Homes


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
        found = (self._written.get(places.of_file(one)) for one in fragment.files)
        return next((one for one in found if one is not None), None)

    def _followed(self, piece: Piece, places: Places, depth: int) -> Iterator[Piece]:
        written = self._find(piece.fragment, places) if depth else None
        parts = None if written is None else _replaced_by(written)
        if written is None or parts is None:
            yield piece
            return
        before = sum(one.physical_rows for one in written.group.new[: written.number])
        wanted = piece.origin_rows + before
        start = 0
        inside = Places(written.snapshot.locations)
        for old, part in zip(written.group.old, parts, strict=True):
            stop = start + part.num_rows
            mine = slice(*np.searchsorted(wanted, (start, stop)).tolist())  # wanted ascends
            if mine.start < mine.stop:
                level = Level(written.group.new[written.number], old, written.homes)
                rows = wanted[mine] - start
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
    total = sum(one.physical_rows for one in written.group.new)
    return parts if sum(one.num_rows for one in parts) == total else None


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


def _collect(ends: Ends, target: Target, known: dict[FileKey, _Written]) -> Iterator[int]:
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
    homes = Homes(places)
    for group in rewrite_groups(data, snapshot.manifest.path):
        for number, fragment in enumerate(group.new):
            found = _Written(group, number, snapshot, homes)
            known |= dict.fromkeys(map(places.of_file, fragment.files), found)
