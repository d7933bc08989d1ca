"""Find rows again: in another version, order or filter.

Rows are followed by stable row id on one branch, else by row address. Fragments are immutable, so
an address names the same row for as long as its fragment has one of the data files that it had;
a row that was updated, or moved by a compaction, has another address, which is said.

Limits: as many rows as a selection has. Under a filter the column of the filter is read once more.
Not supported: rows followed by the values of key columns, and through compactions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.explorer import text
from lance_nb.explorer.rows.row_order import Progress, SortedRows, are_among, chosen_rows
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.source import Source, scanned_source, stored_source
from lance_nb.format.fragment import Fragment
from lance_nb.table.row_ids import live_ids
from lance_nb.value_classes import dataclass

_ROW_ID = "_rowid"
_FRAGMENT_SHIFT = np.uint64(32)

Ids = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Positions of the rows that were found, ascending, and what became of the others."""

    positions: npt.NDArray[np.int64]
    words: str

    def ranges(self) -> list[list[int]]:
        """Return the positions as ranges [first, stop]."""
        if not self.positions.size:
            return []
        ends = np.flatnonzero(np.diff(self.positions) > 1)
        firsts = self.positions[np.concatenate(([0], ends + 1))]
        lasts = self.positions[np.concatenate((ends, [-1]))]
        return [list(pair) for pair in zip(firsts.tolist(), (lasts + 1).tolist(), strict=True)]


def row_ids_at(source: Source, query: RowQuery, ranges: list[tuple[int, int]]) -> Ids:
    """Return the row ids at positions of a grid."""
    parts = [
        query.rows(source, [_ROW_ID], first, stop - first)[_ROW_ID].to_numpy()
        for first, stop in ranges
    ]
    return np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))


def hold_rows(
    before: Source, row_ids: Ids, target: Source, query: RowQuery, progress: Progress
) -> HeldRows:
    """Find rows of one version in the grid that ``query`` shows of another, or of the same."""
    same_rows, unknown = _followed(before, row_ids, target)
    live = np.sort(live_ids(stored_source(target).opened[1]))
    existing = same_rows[are_among(same_rows, live)]
    positions = _positions(target, existing, query, progress)
    words = [
        _missing(before, target, same_rows.size - existing.size, row_ids.size),
        _unknown(target, unknown, row_ids.size),
        _left_out(query, existing.size - positions.size, row_ids.size),
    ]
    return HeldRows(positions, " ".join(filter(None, words)))


def _followed(before: Source, row_ids: Ids, target: Source) -> tuple[Ids, int]:
    """Return the ids that name the same rows in the other version, and how many are not known."""
    if (before.branch, before.version) == (target.branch, target.version):
        return row_ids, 0
    if before.branch == target.branch and _is_stable(before) and _is_stable(target):
        return row_ids, 0
    addresses = _addresses(before, row_ids)
    own, other = (
        {fragment.id: fragment for fragment in stored_source(source).opened[1].manifest.fragments}
        for source in (before, target)
    )
    fragment_ids = (addresses >> _FRAGMENT_SHIFT).astype(np.int64)
    remaining = [
        number for number in np.unique(fragment_ids).tolist()
        if number in other and _shares_file(own[number], other[number])
    ]  # fmt: skip
    is_known = np.isin(fragment_ids, remaining)
    same = addresses[is_known]
    if _is_stable(target):
        same = _ids_of(target, same)
    return np.sort(same), int(is_known.size - is_known.sum())


def _is_stable(source: Source) -> bool:
    return bool(getattr(source, "has_stable_row_ids", False))


def _addresses(source: Source, row_ids: Ids) -> Ids:
    if not _is_stable(source) or not row_ids.size:
        return row_ids
    taken = scanned_source(source).take_rows(row_ids, columns=["_rowaddr"])
    addresses: Ids = taken["_rowaddr"].to_numpy()
    return addresses


def _ids_of(source: Source, addresses: Ids) -> Ids:
    table: Any = scanned_source(source).scanner(columns=[_ROW_ID, "_rowaddr"]).to_table()
    among = are_among(table["_rowaddr"].to_numpy(), np.sort(addresses))
    ids: Ids = table[_ROW_ID].to_numpy()[among]
    return ids


def _shares_file(fragment: Fragment, other: Fragment) -> bool:
    return not {file.path for file in fragment.files}.isdisjoint(file.path for file in other.files)


def _positions(
    target: Source, row_ids: Ids, query: RowQuery, progress: Progress
) -> npt.NDArray[np.int64]:
    if isinstance(query.order, SortedRows):
        shown = query.order.ids
    elif query.filter is None:
        shown = live_ids(stored_source(target).opened[1])
    else:
        everything = live_ids(stored_source(target).opened[1])
        passing = chosen_rows(scanned_source(target), np.sort(everything), query.filter, progress)
        shown = passing.ids
    positions: npt.NDArray[np.int64] = np.flatnonzero(are_among(shown, row_ids))
    return positions


def _rows(some: int, of: int) -> str:
    return "This row" if of == 1 else f"{text.count(some)} of {text.plural(of, 'row')}"


def _do(some: int, of: int) -> str:
    return "does" if 1 in (some, of) else "do"


def _missing(before: Source, target: Source, some: int, of: int) -> str:
    if not some:
        return ""
    where = text.ref_label(target.branch, target.version)
    explanation = f"{_rows(some, of)} {_do(some, of)} not exist in version {where}"
    if _is_stable(target) and _is_stable(before):
        return f"{explanation}."
    was = "was" if 1 in (some, of) else "were"
    return f"{explanation}, or {was} updated: without stable row ids an updated row is another one."


def _unknown(target: Source, some: int, of: int) -> str:
    if not some:
        return ""
    where = text.ref_label(target.branch, target.version)
    return (
        f"{_rows(some, of)} cannot be followed to version {where}: the fragment is not there, and "
        "without stable row ids a row that was moved is not known again."
    )


def _left_out(query: RowQuery, some: int, of: int) -> str:
    if not some:
        return ""
    if query.filter is not None:
        return f"{_rows(some, of)} {_do(some, of)} not pass the filter."
    return f"{_rows(some, of)} {'is' if 1 in (some, of) else 'are'} not among the rows shown."
