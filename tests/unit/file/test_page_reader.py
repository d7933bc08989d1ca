"""From rows of a column to pages: how ranges are cut at page borders."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.file.metadata import ColumnMetadata, PageMetadata
from lance_nb.file.page_reader import Column, split_rows
from tests.support.reading import rows_of


def column(*lengths: int) -> Column:
    pages = tuple(PageMetadata((), (), length, "", b"") for length in lengths)
    return Column("a", (2, 2), ColumnMetadata(pages, np.cumsum(lengths, dtype=np.int64)))


Ranges = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([(0, 30)], {0: [(0, 10)], 1: [(0, 5)], 3: [(0, 15)]}),
        ([(3, 4)], {0: [(3, 4)]}),
        ([(9, 11)], {0: [(9, 10)], 1: [(0, 1)]}),
        ([(10, 15)], {1: [(0, 5)]}),
        ([(15, 16)], {3: [(0, 1)]}),
        ([(0, 2), (4, 12), (14, 20), (29, 30)],
         {0: [(0, 2), (4, 10)], 1: [(0, 2), (4, 5)], 3: [(0, 5), (14, 15)]}),
        ([(0, 1), (29, 30)], {0: [(0, 1)], 3: [(14, 15)]}),
        ([], {}),
    ],
)  # fmt: skip
def test_rows_are_cut_at_page_borders(wanted: Ranges, expected: dict[int, Ranges]) -> None:
    parts = split_rows(column(10, 5, 0, 15), rows_of(*wanted))
    found = {
        part.page: list(zip(part.rows.starts.tolist(), part.rows.stops.tolist(), strict=True))
        for part in parts
    }
    assert found == expected


def test_a_page_is_named_for_people() -> None:
    (part,) = split_rows(column(10), rows_of((1, 2)))
    assert part.place == "column 'a', page 0"
    assert part.metadata.num_rows == 10
