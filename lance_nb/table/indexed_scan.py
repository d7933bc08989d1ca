"""Scan the rows that indices name, and fragments that no index covers in the ordinary way.

Rows come in the order of the scan. Where the answer of the indices is not exact, the filter is
computed for the rows that they name. Many small fragments with a row or two each are scanned
together, which is cheaper than to open each of them.

Limits: memory holds one window of rows, as in a scan without indices, and the addresses of all rows
that the indices name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lance_nb.encodings.arrow_parts import taken
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.table.addresses import Addresses, addresses_of
from lance_nb.table.deletions import fragment_deletions
from lance_nb.table.filtered_scan import (
    RowChoice,
    Selected,
    column_key,
    count_plain,
    filter_projection,
    plain_selections,
    read_columns,
    selected_table,
)
from lance_nb.table.index_search import IndexAnswer, U64s, among, different
from lance_nb.table.predicate import Filter
from lance_nb.table.projection import Projection
from lance_nb.table.scan import window_rows
from lance_nb.table.scan_tasks import row_ends
from lance_nb.table.snapshot import Snapshot

_MANY_FRAGMENTS = 32
_SMALL_FRAGMENT_ROWS = 8192


def is_worthwhile(snapshot: Snapshot, answer: IndexAnswer) -> bool:
    """Tell whether reading the rows one fragment after the other is cheaper than a scan."""
    touched = answer.fragment_ids
    if touched.size < _MANY_FRAGMENTS:
        return True
    counts = snapshot.manifest.fragments.counts()
    rows = counts.physical_rows[among(counts.ids, touched)]
    return bool(rows.mean() >= _SMALL_FRAGMENT_ROWS)


def indexed_selections(
    snapshot: Snapshot, choice: RowChoice, projection: Projection, most: int | None
) -> Iterator[Selected]:
    """Yield the rows that pass the filter, in parts; see ``row_selection.select_rows``."""
    plain = replace(choice, answer=None)
    answer, condition = choice.answer, choice.filter
    if answer is None or condition is None or not is_worthwhile(snapshot, answer):
        yield from plain_selections(snapshot, plain, projection, most)
        return
    for fragments, first in _parts(snapshot, choice, answer):
        if first is None:
            part = replace(plain, fragments=tuple(fragments))
            yield from plain_selections(snapshot, part, projection, most)
            continue
        (fragment,) = fragments
        for selected in _named_rows(
            snapshot, fragment, first, answer=answer, projection=projection
        ):
            passing = selected
            if not answer.is_exact:
                passing = _passing(snapshot, condition, selected, projection)
            if passing.num_rows:
                yield passing


def passing_rows(snapshot: Snapshot, condition: Filter, rows: U64s) -> U64s:
    """Return those of some live rows that pass a filter; ``rows`` are ascending addresses."""
    ids = snapshot.manifest.fragments.counts().ids
    answer = IndexAnswer(rows, different(np.sort(ids)), is_exact=False)
    columns = filter_projection(snapshot.manifest.schema, condition)
    choice = RowChoice(condition, answer=answer)
    parts = [
        part.physical.astype(np.uint64) | np.uint64(part.fragment.id << 32)
        for part in indexed_selections(snapshot, choice, columns, None)
    ]
    # A scan of whole fragments, where it is cheaper, also finds other rows.
    passing = np.sort(np.concatenate(parts)) if parts else rows[:0]
    return rows[among(rows, passing)]


def count_indexed(snapshot: Snapshot, choice: RowChoice) -> int:
    """Count the rows of a scan; what indices name exactly is not read."""
    answer, condition = choice.answer, choice.filter
    plain = replace(choice, answer=None)
    if answer is None or condition is None:
        return count_plain(snapshot, plain)
    if not answer.is_exact:
        columns = filter_projection(snapshot.manifest.schema, condition)
        parts = indexed_selections(snapshot, choice, columns, None)
        return sum(part.num_rows for part in parts)
    if choice.fragments is None:
        ids = snapshot.manifest.fragments.counts().ids
        uncovered_places = np.flatnonzero(~among(ids, answer.covered)).tolist()
        if not uncovered_places:
            return int(answer.rows.size)
        uncovered = tuple(snapshot.manifest.fragments[place] for place in uncovered_places)
        return int(answer.rows.size) + count_plain(snapshot, replace(plain, fragments=uncovered))
    covered = set(answer.covered.tolist())
    mine = [fragment for fragment in choice.fragments if fragment.id in covered]
    uncovered = tuple(fragment for fragment in choice.fragments if fragment.id not in covered)
    num_rows = sum(int(answer.of_fragment(fragment.id).size) for fragment in mine)
    return num_rows + (
        count_plain(snapshot, replace(plain, fragments=uncovered)) if uncovered else 0
    )


def _parts(
    snapshot: Snapshot, choice: RowChoice, answer: IndexAnswer
) -> Iterator[tuple[list[Fragment], int | None]]:
    """Yield runs of fragments to scan with None, and single ones with rows with their first row.

    The first row is the number of live rows of the dataset before it.
    """
    whole = snapshot.manifest.fragments
    ids = whole.counts().ids
    ends = row_ends(snapshot)
    if choice.fragments is None:
        is_covered = among(ids, answer.covered)
        places = np.flatnonzero(~is_covered | among(ids, answer.fragment_ids)).tolist()
        listed = ((whole[place], place) for place in places)
    else:
        answer_places = whole.places_of(choice.fragments)
        listed = (
            (fragment, -1 if place is None else int(place))
            for fragment, place in zip(choice.fragments, answer_places, strict=True)
        )
    covered = set(answer.covered.tolist())
    run: list[Fragment] = []
    for fragment, place in listed:
        if fragment.id not in covered or place < 0:
            run.append(fragment)
            continue
        if run:
            yield run, None
            run = []
        yield [fragment], int(ends[place - 1]) if place else 0
    if run:
        yield run, None


def _named_rows(
    snapshot: Snapshot, fragment: Fragment, first: int, answer: IndexAnswer, projection: Projection
) -> Iterator[Selected]:
    """Yield the rows that indices name in a fragment, a window at a time."""
    offsets = answer.of_fragment(fragment.id)
    if not offsets.size:
        return
    positions = _positions(snapshot, fragment, first, offsets)
    step = window_rows(snapshot, projection, fragment)
    for start in range(0, offsets.size, step):
        part = slice(start, start + step)
        yield Selected(fragment, offsets[part], positions[part], {})


def _positions(snapshot: Snapshot, fragment: Fragment, first: int, offsets: Ints) -> Ints:
    """Return the places among the live rows of the dataset of rows of a fragment."""
    positions: Ints = offsets + first
    if fragment.deletion_file is not None:
        vector = fragment_deletions(snapshot, fragment)
        if vector is not None:
            positions = positions - np.searchsorted(vector.offsets().astype(np.int64), offsets)
    return positions


def rows_at(snapshot: Snapshot, rows: U64s) -> Addresses:
    """Return live rows by their addresses, in the order in which they are given."""
    whole = snapshot.manifest.fragments
    ends = row_ends(snapshot)
    order = np.argsort(rows, kind="stable")
    answer = IndexAnswer(rows[order], np.zeros(0, np.int64), is_exact=True)
    parts = []
    for number in different(answer.rows >> np.uint64(32)).astype(np.int64).tolist():
        place = whole.position_of(number)
        if place is None:
            raise InvalidInputError(f"there is no fragment {number}")
        offsets = answer.of_fragment(number)
        first = int(ends[place - 1]) if place else 0
        positions = _positions(snapshot, whole[place], first, offsets)
        parts.append(Selected(whole[place], offsets, positions, {}))
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return addresses_of(parts).take(places)


def _passing(
    snapshot: Snapshot, condition: Filter, rows: Selected, projection: Projection
) -> Selected:
    """Compute the filter for rows, and keep those that pass it."""
    columns = filter_projection(snapshot.manifest.schema, condition)
    stored = read_columns(snapshot, columns.columns, rows)
    table = selected_table(snapshot, columns, rows, stored)
    values = {path: table.column(place) for place, path in enumerate(condition.paths)}
    places: Ints = np.flatnonzero(condition.mask(values, rows.num_rows)).astype(np.int64)
    reused = {column_key(column) for column in projection.columns}
    chosen = from_integers(places)
    decoded = {
        column_key(column): taken(part, chosen)
        for column, part in zip(columns.columns, stored, strict=True)
        if column_key(column) in reused
    }
    return Selected(rows.fragment, rows.physical[places], rows.positions[places], decoded)
