from __future__ import annotations

import numpy as np

from lance_nb.encodings.base import Ints, Rows
from lance_nb.encodings.row_ranges import merged, places_in, split_at
from tests.support.reading import positions_of, rows_of


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def pairs(rows: Rows) -> list[tuple[int, int]]:
    return list(zip(rows.starts.tolist(), rows.stops.tolist(), strict=True))


def test_ranges_that_touch_or_overlap_are_joined() -> None:
    assert pairs(merged(ints(0, 2, 3, 9, 9), ints(2, 4, 5, 9, 10))) == [(0, 5), (9, 10)]
    assert pairs(merged(ints(4, 4), ints(4, 4))) == []
    assert pairs(merged(ints(), ints())) == []


def test_rows_are_found_among_the_ones_that_were_read() -> None:
    rows = rows_of((2, 4), (7, 9))

    assert places_in(rows, ints(2, 3, 7, 8)).tolist() == [0, 1, 2, 3]
    assert places_in(rows, ints(8, 3)).tolist() == [3, 1]


def test_rows_are_cut_at_the_ends_of_pages() -> None:
    found = split_at(rows_of((1, 2), (3, 12)), ints(4, 4, 10, 20))

    assert [(page, pairs(rows)) for page, rows in found] == [
        (0, [(1, 2), (3, 4)]),
        (2, [(0, 6)]),
        (3, [(0, 2)]),
    ]
    assert split_at(rows_of(), ints(4)) == []


def test_cuts_lose_no_row() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        lengths = rng.integers(0, 9, 12)
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        count = int(rng.integers(0, total // 3 + 1))
        borders = np.sort(rng.choice(total + 1, 2 * count, replace=False)).astype(np.int64)
        rows = Rows(borders[::2], borders[1::2])
        found = [
            positions_of(part) + (ends[page] - lengths[page]) for page, part in split_at(rows, ends)
        ]
        joined = np.concatenate([*found, ints()])
        assert joined.tolist() == positions_of(rows).tolist()
