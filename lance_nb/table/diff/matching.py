"""Which rows that are alone on their side are the same row all the same: by row id or by key.

Stable row ids that both sides gave out after a fork mean different rows; those of before mean the
same. Keys are compared by value: null equals null and NaN equals NaN.

Limits: memory holds the ids or keys of the rows that are alone on their side, if both have some.
Keys are columns of numbers, texts, bytes, times or booleans; a key occurs once among the rows that
differ.
Source: spec page "row id and row address".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.ends import Ends, ancestor_of
from lance_nb.table.diff.identity import Identity
from lance_nb.table.diff.placed import PlacedRows, read_window
from lance_nb.table.diff.plan import RowPlan
from lance_nb.table.ordering import Addresses
from lance_nb.table.projection import project

_NOBODY = np.zeros(0, np.int64)
_SHOWN_KEYS = 3


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows that are the same row in another place, side by side, in the order of ``b``."""

    a: Addresses
    b: Addresses

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.b.num_rows


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Rows only in ``a``, rows only in ``b``, and rows that moved (None: none)."""

    removed: PlacedRows
    added: PlacedRows
    moved: Moved | None

    def share(self, number: int, of: int) -> MatchedRows:
        """Return one of ``of`` shares: a run of the rows of each kind."""
        moved = self.moved
        if moved is not None:
            rows = np.arange(*_run(moved.num_rows, number, of), dtype=np.int64)
            moved = Moved(moved.a.take(rows), moved.b.take(rows)) if rows.size else None
        return MatchedRows(_share(self.removed, number, of), _share(self.added, number, of), moved)


def _run(count: int, number: int, of: int) -> tuple[int, int]:
    return count * number // of, count * (number + 1) // of


def _share(rows: PlacedRows, number: int, of: int) -> PlacedRows:
    start, stop = _run(rows.num_rows, number, of)
    others = np.arange(start), np.arange(stop, rows.num_rows)
    return rows.without(np.concatenate(others))


def match_rows(
    ends: Ends, plan: RowPlan, identity: Identity, pairs: tuple[ColumnPair, ...]
) -> MatchedRows:
    """Match the rows that are alone. Raises InvalidInputError for a key that is not unique."""
    a, b = plan.only_a, plan.only_b
    if not (a.num_rows and b.num_rows):
        return MatchedRows(a, b, None)
    if identity.is_row_id:
        at_a, at_b = _by_row_id(ends, a, b)
    elif identity.key:
        at_a, at_b = _by_key(identity, a, b, pairs)
    else:
        at_a, at_b = _NOBODY, _NOBODY
    if not at_a.size:
        return MatchedRows(a, b, None)
    order = np.argsort(at_b, kind="stable")
    moved = Moved(a.pick(at_a[order]), b.pick(at_b[order]))
    return MatchedRows(a.without(at_a), b.without(at_b), moved)


def _by_row_id(ends: Ends, a: PlacedRows, b: PlacedRows) -> tuple[Ints, Ints]:
    ids_a, ids_b = a.row_ids(), b.row_ids()
    sides = {one.side for one in ends.between}
    common_a = np.arange(ids_a.size, dtype=np.int64)
    common_b = np.arange(ids_b.size, dtype=np.int64)
    if len(sides) == 2:  # ids are given out on each side for itself
        found = ancestor_of(ends)
        first = np.uint64(0 if found is None else found.manifest.next_row_id)
        common_a, common_b = common_a[ids_a < first], common_b[ids_b < first]
    _, at_a, at_b = np.intersect1d(ids_a[common_a], ids_b[common_b], return_indices=True)
    return common_a[at_a], common_b[at_b]


def _by_key(
    identity: Identity, a: PlacedRows, b: PlacedRows, pairs: tuple[ColumnPair, ...]
) -> tuple[Ints, Ints]:
    by_name = {one.name: one for one in pairs}
    keys = [by_name[name] for name in identity.key]
    rows_a = _key_columns(a, [one.a.name for one in keys if one.a is not None])
    rows_b = _key_columns(b, [one.b.name for one in keys if one.b is not None])
    codes = np.zeros(a.num_rows + b.num_rows, np.int64)
    for pair, left, right in zip(keys, rows_a, rows_b, strict=True):
        codes = _combined(codes, _codes(pair, left, right))
    mine, others = codes[: a.num_rows], codes[a.num_rows :]
    for which, values, rows in (("from", mine, rows_a), ("to", others, rows_b)):
        _check_unique(identity, which, values, rows)
    _, at_a, at_b = np.intersect1d(mine, others, assume_unique=True, return_indices=True)
    return at_a.astype(np.int64), at_b.astype(np.int64)


def _key_columns(rows: PlacedRows, names: list[str]) -> list[pa.ChunkedArray]:
    wanted = project(rows.snapshot.manifest.schema, names)
    tables = [
        read_window(rows.snapshot, wanted, fragment, physical)
        for fragment, physical in rows.windows(wanted)
    ]
    table = pa.concat_tables(tables)
    return [table.column(name) for name in names]


def _codes(pair: ColumnPair, left: pa.ChunkedArray, right: pa.ChunkedArray) -> Ints:
    """Give the values of a key column on both sides numbers, equal ones equal numbers."""
    import pyarrow.compute as pc

    try:
        both = pa.chunked_array([*left.cast(right.type).chunks, *right.chunks], right.type)
        coded = pc.dictionary_encode(both, null_encoding="encode").combine_chunks()
    except (pa.ArrowException, NotImplementedError) as exc:
        raise InvalidInputError(
            f"rows cannot be told apart by column {pair.name!r}, a {right.type}: {exc}"
        ) from exc
    chunks = coded.chunks if isinstance(coded, pa.ChunkedArray) else [coded]
    numbers = [np.asarray(one.indices.to_numpy(zero_copy_only=False)) for one in chunks]
    return np.concatenate(numbers).astype(np.int64)


def _combined(first: Ints, second: Ints) -> Ints:
    """Give pairs of numbers numbers of their own."""
    width = int(second.max(initial=0)) + 1
    _, numbers = np.unique(first * width + second, return_inverse=True)
    return np.asarray(numbers, np.int64)


def _check_unique(identity: Identity, which: str, codes: Ints, rows: list[pa.ChunkedArray]) -> None:
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    repeated = first[counts > 1]
    if not repeated.size:
        return
    shown = [
        ", ".join(str(column[at].as_py()) for column in rows)
        for at in repeated[:_SHOWN_KEYS].tolist()
    ]
    raise InvalidInputError(
        f"{identity.label} does not tell rows apart: {repeated.size} values occur more than once "
        f"among the rows that differ, in the version compared {which}, for example "
        f"{'; '.join(shown)}; give other columns as key, or key='_rowaddr' to compare by address"
    )
