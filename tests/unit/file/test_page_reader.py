"""From rows of a column to pages: ranges cut at page borders, pages decoded together."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.file import page_reader
from lance_nb.file.metadata import ColumnMetadata, PageMetadata
from lance_nb.file.page_reader import Column, decode_columns, join_runs, split_rows
from lance_nb.file.source import FileSource
from tests.support.pages import Page, mini_block
from tests.support.reading import BytesStore, rows_of
from tests.support.shredding import shred


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


LISTS = [[[1, 2], [], [3]], [[4]], [[5, 6, 7], []]]


def column_of(pages: list[Page], *, backwards: bool = False) -> tuple[bytes, Column]:
    """Lay pages out in a file, opened as a column."""
    data = bytearray()
    places: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    order = range(len(pages))
    for number in reversed(order) if backwards else order:
        offsets = []
        for buffer in pages[number].buffers:
            data += bytes(-len(data) % 64)
            offsets.append(len(data))
            data += buffer
        places[number] = tuple(offsets), tuple(map(len, pages[number].buffers))
    found = tuple(
        PageMetadata(*places[number], page.num_rows, "", b"") for number, page in enumerate(pages)
    )
    ends = np.cumsum([page.num_rows for page in pages], dtype=np.int64)
    column = Column("a", (2, 2), ColumnMetadata(found, ends))
    column.opened.update({number: page.open() for number, page in enumerate(pages)})
    return bytes(data), column


def pages_of(rows: list[list[object]]) -> list[Page]:
    return [mini_block(shred(some, ["list", "leaf"]), (), (2, 2)) for some in rows]


def groups(column: Column, stop: int, start: int = 0) -> list[list[int]]:
    runs = join_runs(split_rows(column, rows_of((start, stop))))
    return [[part.page for part in run.parts] for run in runs]


def test_pages_of_one_description_are_joined() -> None:
    _, column = column_of(pages_of([LISTS[0], LISTS[2], LISTS[0]]))
    assert groups(column, 8) == [[0, 1, 2]]
    (run,) = join_runs(split_rows(column, rows_of((0, 8))))
    assert run.place == "column 'a', pages 0 to 2"


def test_rows_of_pages_of_one_description_are_counted_through_all() -> None:
    _, column = column_of(pages_of([LISTS[0], LISTS[2], LISTS[0]]))
    assert groups(column, 7) == [[0, 1, 2]]
    (run,) = join_runs(split_rows(column, rows_of((1, 2), (3, 7))))
    assert (run.rows.starts.tolist(), run.rows.stops.tolist()) == ([1, 3, 5], [2, 5, 7])


def test_other_pages_stay_alone() -> None:
    _, different = column_of(pages_of([LISTS[0], LISTS[1], LISTS[1]]))  # LISTS[1]: no empty list
    assert groups(different, 5) == [[0], [1, 2]]
    _, backwards = column_of(pages_of([LISTS[0], LISTS[0]]), backwards=True)
    assert groups(backwards, 6) == [[0], [1]]


def test_runs_end_where_they_are_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "RUN_VALUES", 5)
    _, column = column_of(pages_of([LISTS[0]] * 5))  # three values each
    assert groups(column, 15) == [[0, 1], [2, 3], [4]]


def test_threads_are_for_large_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "cpu_count", lambda: 4)
    assert page_reader.threads_for(1 << 22, 2) == 4
    assert page_reader.threads_for((1 << 22) - 1, 2) == 1  # too little in all
    assert page_reader.threads_for(1 << 30, 1) == 1
    assert page_reader.threads_for(1 << 25, 128) == 4
    assert page_reader.threads_for(1 << 25, 129) == 1  # too little for each


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("threads", [1, 4])
def test_columns_are_decoded_in_order(
    *, mapped: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_reader, "PARALLEL_BYTES", 1)
    monkeypatch.setattr(page_reader, "PARALLEL_TASK_BYTES", 1)
    monkeypatch.setattr(page_reader, "cpu_count", lambda: threads)
    data, column = column_of(pages_of([LISTS[0], LISTS[1], LISTS[1], LISTS[2]]))
    source = FileSource(BytesStore(data, mapped=mapped), "a.lance")
    every, some = split_rows(column, rows_of((0, 7))), split_rows(column, rows_of((1, 5)))
    found = decode_columns(
        source,
        [every, some, []],
        lambda number, page, count: (number, count, page.values.data.view("<i4").tolist()),
    )
    flat = [[value for _, _, values in one for value in values] for one in found]
    assert flat == [[1, 2, 3, 4, 4, 5, 6, 7], [3, 4, 4], []]
    assert [sum(count for _, count, _ in one) for one in found] == [7, 4, 0]
    assert [{number for number, _, _ in one} for one in found] == [{0}, {1}, set()]


def test_errors_say_which_pages_are_broken() -> None:
    pages = pages_of([LISTS[0], LISTS[0]])
    torn = bytearray(pages[1].buffers[1])
    torn[8] = 9  # a repetition level that no list has
    pages[1] = Page(pages[1].arm, pages[1].message, (pages[1].buffers[0], bytes(torn),
                    pages[1].buffers[2]), 3)  # fmt: skip
    data, column = column_of(pages)
    source = FileSource(BytesStore(data), "a.lance")
    with pytest.raises(CorruptFileError, match="pages 0 to 1"):
        decode_columns(source, [split_rows(column, rows_of((0, 6)))], lambda *_: None)
