"""Plan which rows of two versions are compared, from manifests and deletion files alone.

Rows are identified, in this order, by: the key that the caller names; stable row ids, when both
versions have them; the unenforced primary key of both; else the row's address, its place in a file.
By address a row that was rewritten elsewhere counts as removed and added, but compactions between
the versions are followed through their transactions. ``key="_rowaddr"`` and ``key="_rowid"`` choose
one of the others.

Three kinds of rows come out. *Aligned* rows are the same row on both sides, because fragment (or
origin, see row_locator.py) and offset are the same, but some of their columns were rewritten: those
columns have to be compared. Rows only on side *a*, and rows only on side *b*, may still be the same
row in another place (changed_rows.py matches them). All other rows are equal and never read.

Limits: rows that a compaction moved take some tens of bytes of memory each; others none.
Source: spec page "row id and row address".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import primary_key
from lance_nb.table.diff.columns import ColumnFiles, ColumnPair, FragmentColumns
from lance_nb.table.diff.fragments import FragmentMatch, Pair, Places, deleted_offsets, fragments_at
from lance_nb.table.diff.merge_base import Ends, ancestor_of
from lance_nb.table.diff.row_locator import FragmentRows, Piece, PlacedRows, find_origins, live_rows
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.row_ids import live_offsets
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

BY_ROW_ID, BY_ADDRESS = "stable row id", "row address"


@dataclass(frozen=True, slots=True)
class Identity:
    """How rows are matched: ``label`` and ``reason`` are for people; ``key`` are columns."""

    label: str
    reason: str
    key: tuple[str, ...] = ()

    @property
    def is_row_id(self) -> bool:
        """Whether rows are matched by stable row ids."""
        return self.label == BY_ROW_ID


def choose_identity(a: Snapshot, b: Snapshot, key: Sequence[str] | str | None) -> Identity:
    """Choose. Raises ColumnNotFoundError, InvalidInputError for a key that cannot serve."""
    ids = [has_row_ids(snapshot) for snapshot in (a, b)]
    if key is not None:
        return _asked_for([key] if isinstance(key, str) else list(key), a, b, all(ids))
    if all(ids):
        return Identity(BY_ROW_ID, "both versions have stable row ids")
    primary = primary_key(b.manifest.schema)
    if primary and primary == primary_key(a.manifest.schema):
        return _key(primary, "the unenforced primary key of the table")
    subject = "neither version has" if not any(ids) else "only one of the versions has"
    return Identity(
        BY_ADDRESS,
        f"{subject} stable row ids and no key was given: a row that was rewritten counts as "
        "removed and added; compactions are followed",
    )


def _asked_for(names: list[str], a: Snapshot, b: Snapshot, both_ids: bool) -> Identity:
    if names == [ROW_ADDRESS]:
        return Identity(BY_ADDRESS, "asked for: a rewritten row counts as removed and added")
    if names == [ROW_ID]:
        if not both_ids:
            raise InvalidInputError(
                "rows cannot be matched by _rowid: both versions need stable row ids (a dataset "
                "written with enable_stable_row_ids=True); give key=[columns] instead"
            )
        return Identity(BY_ROW_ID, "asked for")
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"a key is one column or several different ones, not {names!r}")
    for schema in (a.manifest.schema, b.manifest.schema):
        for name in names:
            schema.field(name)
    for schema in (a.manifest.schema, b.manifest.schema):
        for name in names:
            if len(schema.resolve(name)) > 1:
                raise InvalidInputError(
                    f"key column {name!r} is nested; a key is of top-level columns"
                )
    return _key(tuple(names), "the key that was given")


def _key(names: tuple[str, ...], reason: str) -> Identity:
    return Identity(f"key: {', '.join(names)}", reason, names)


def has_row_ids(snapshot: Snapshot) -> bool:
    """Tell whether row ids are stable in a version."""
    return bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)


# What an origin is called: the side that has it alone ("" when it is older than both), its id.
RootKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Aligned:
    """Rows that are one and the same on both sides; ``columns`` were written anew.

    Offsets None: the rows that are live on both sides of one fragment.
    """

    a: Fragment
    b: Fragment
    columns: tuple[str, ...]
    num_rows: int
    rows_a: Ints | None = None
    rows_b: Ints | None = None

    def offsets(self, ends: Ends) -> tuple[Ints, Ints]:
        """Return the offsets of the rows on each side."""
        if self.rows_a is None or self.rows_b is None:
            offsets = live_in_both(ends, self.a, self.b)
            return offsets, offsets
        return self.rows_a, self.rows_b


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Rows that may differ."""

    aligned: tuple[Aligned, ...]
    only_a: PlacedRows
    only_b: PlacedRows


@dataclass(frozen=True, slots=True)
class _PlanContext:
    """What each step of a plan needs."""

    ends: Ends
    pairs: Sequence[ColumnPair]
    columns_a: FragmentColumns
    columns_b: FragmentColumns
    key: frozenset[str]

    def written_anew(self, piece_a: Piece, a: Fragment, piece_b: Piece, b: Fragment) -> list[str]:
        """Name the columns of ``b`` that other files hold than in ``a``, or that ``a`` has not."""
        rewritten = []
        for pair in self.pairs:
            if pair.b is None:
                continue
            files_a: ColumnFiles = frozenset()
            if pair.a is not None:
                files_a = piece_a.column_files(self.columns_a.files_of(a, pair.a), pair.a)
            if files_a != piece_b.column_files(self.columns_b.files_of(b, pair.b), pair.b):
                rewritten.append(pair.name)
        return rewritten


def plan_rows(
    ends: Ends, match: FragmentMatch, pairs: Sequence[ColumnPair], key: Sequence[str] = ()
) -> RowPlan:
    """Find the rows that may differ; ``key`` are the columns by which rows are told apart."""
    context = _PlanContext(
        ends,
        pairs,
        FragmentColumns(Places(ends.a.locations)),
        columns_b=FragmentColumns(Places(ends.b.locations)),
        key=frozenset(key),
    )
    aligned: list[Aligned] = []
    left: list[FragmentRows] = []
    right: list[FragmentRows] = []
    for pair in match.changed:
        _split_pair(context, pair, (aligned, left, right))
    only_a = list(fragments_at(ends.a, match.only_a))
    only_b = list(fragments_at(ends.b, match.only_b))
    if only_a and only_b:
        _split_moved(context, (only_a, only_b), (aligned, left, right))
    else:
        left += live_rows(ends.a, only_a).runs
        right += live_rows(ends.b, only_b).runs
    return RowPlan(
        tuple(aligned), PlacedRows(ends.a, tuple(left)), PlacedRows(ends.b, tuple(right))
    )


_Found = tuple[list[Aligned], list[FragmentRows], list[FragmentRows]]


def _split_pair(context: _PlanContext, pair: Pair, split: _Found) -> None:
    """Split the rows of a fragment that both versions have."""
    aligned, left, right = split
    a, b = pair.a, pair.b
    columns: list[str] = []
    if pair.files_differ:
        nothing = np.zeros(0, np.int64)
        columns = context.written_anew(Piece(a, nothing, nothing), a, Piece(b, nothing, nothing), b)
    if context.key.intersection(columns):  # the key itself may have changed: rows are found by it
        left += live_rows(context.ends.a, [a]).runs
        right += live_rows(context.ends.b, [b]).runs
        return
    gone_a, gone_b = deleted_offsets(context.ends.a, a), deleted_offsets(context.ends.b, b)
    _add_rows(left, a, np.setdiff1d(gone_b, gone_a, assume_unique=True))
    _add_rows(right, b, np.setdiff1d(gone_a, gone_b, assume_unique=True))
    if columns:
        count = confirmed_rows(context.ends.b, b) - np.union1d(gone_a, gone_b).size
        if count:
            aligned.append(Aligned(a, b, tuple(columns), int(count)))


def _add_rows(runs: list[FragmentRows], fragment: Fragment, physical: Ints) -> None:
    if physical.size:
        runs.append(FragmentRows(fragment, int(physical.size), physical))


def live_in_both(ends: Ends, a: Fragment, b: Fragment) -> Ints:
    """Return the offsets that are live on both sides of one fragment."""
    keep = np.ones(confirmed_rows(ends.b, b), np.bool_)
    keep[deleted_offsets(ends.a, a)] = False
    keep[deleted_offsets(ends.b, b)] = False
    offsets: Ints = np.flatnonzero(keep)
    return offsets


# --- fragments that compactions moved -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LivePiece:
    """Live rows of a fragment that have one origin: offsets here, and offsets there."""

    piece: Piece
    fragment: Fragment
    rows: Ints
    origin_rows: Ints


def _split_moved(
    context: _PlanContext, fragments: tuple[list[Fragment], list[Fragment]], split: _Found
) -> None:
    """Split the rows of fragments that only one version has, by where they came from."""
    origins = find_origins(context.ends)
    rewritten = [
        any(side.is_rewritten(fragment) for fragment in mine)
        for side, mine in zip(origins, fragments, strict=True)
    ]
    aligned, left, right = split
    if not any(rewritten):
        left += live_rows(context.ends.a, fragments[0]).runs
        right += live_rows(context.ends.b, fragments[1]).runs
        return
    oldest = _max_shared_id(context.ends)
    roots: list[dict[RootKey, list[_LivePiece]]] = []
    for number, (side, snapshot) in enumerate((("a", context.ends.a), ("b", context.ends.b))):
        pieces: dict[RootKey, list[_LivePiece]] = {}
        for fragment in fragments[number]:
            live = np.zeros(confirmed_rows(snapshot, fragment), np.bool_)
            live[live_offsets(snapshot, fragment)] = True
            for piece in origins[number].pieces(fragment, live.size):
                root = piece.fragment.id
                name = ("" if root <= oldest else side, root)
                pieces.setdefault(name, []).append(_live(fragment, piece, live))
        roots.append(pieces)
    rest_a, rest_b = _Rest(), _Rest()
    for name, mine in roots[0].items():
        _align(context, (mine, roots[1].get(name, [])), aligned, (rest_a, rest_b))
    for name, mine in roots[1].items():
        if name not in roots[0]:
            rest_b.add(mine)
    left += rest_a.runs()
    right += rest_b.runs()


def _live(fragment: Fragment, piece: Piece, live: np.ndarray) -> _LivePiece:
    """Leave out the rows of a piece that are deleted in the version."""
    keep = live[piece.rows]
    if keep.all():
        return _LivePiece(piece, fragment, piece.rows, piece.origin_rows)
    return _LivePiece(piece, fragment, piece.rows[keep], piece.origin_rows[keep])


class _Rest:
    """Rows without a partner, collected by fragment."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Fragment, list[Ints]]] = {}

    def add(self, pieces: Sequence[_LivePiece]) -> None:
        """Add all rows of some pieces."""
        for piece in pieces:
            self.add_rows(piece.fragment, piece.rows)

    def add_rows(self, fragment: Fragment, rows: Ints) -> None:
        """Add rows of a fragment."""
        self._rows.setdefault(fragment.id, (fragment, []))[1].append(rows)

    def runs(self) -> Iterator[FragmentRows]:
        """Yield the rows, ascending in each fragment."""
        for fragment, parts in self._rows.values():
            physical = np.sort(np.concatenate(parts))
            if physical.size:
                yield FragmentRows(fragment, int(physical.size), physical)


def _align(
    context: _PlanContext,
    pieces: tuple[list[_LivePiece], list[_LivePiece]],
    aligned: list[Aligned],
    remaining: tuple[_Rest, _Rest],
) -> None:
    """Pair the rows of one origin on both sides."""
    used = [np.zeros(piece.rows.size, np.bool_) for piece in pieces[1]]
    for mine in pieces[0]:
        alone = np.ones(mine.rows.size, np.bool_)
        for number, other in enumerate(pieces[1]):
            at_a, at_b = _common(mine.origin_rows, other.origin_rows)
            if not at_a.size:
                continue
            columns = context.written_anew(mine.piece, mine.fragment, other.piece, other.fragment)
            if context.key.intersection(columns):
                continue
            alone[at_a] = False
            used[number][at_b] = True
            if columns:
                rows = mine.rows[at_a], other.rows[at_b]
                aligned.append(
                    Aligned(mine.fragment, other.fragment, tuple(columns), at_a.size, *rows)
                )
        remaining[0].add_rows(mine.fragment, mine.rows[alone])
    for other, taken in zip(pieces[1], used, strict=True):
        remaining[1].add_rows(other.fragment, other.rows[~taken])


def _common(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Return the places of the values that both have; each has a value once."""
    if np.array_equal(a, b):
        every = np.arange(a.size, dtype=np.int64)
        return every, every
    _, at_a, at_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return at_a.astype(np.int64), at_b.astype(np.int64)


def _max_shared_id(ends: Ends) -> int:
    """Return the largest id of a fragment that was there before the versions parted, or -1."""
    ancestor = ancestor_of(ends)
    if ancestor is None:
        return -1
    most = ancestor.manifest.max_fragment_id
    if most is None:
        return int(max(ancestor.manifest.fragments.counts().ids, default=-1))
    return most
