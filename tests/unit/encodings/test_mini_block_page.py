"""Pages decoded together, and single values fetched without their chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings import mini_block_page
from lance_nb.encodings.base import DecodedPage, PageBuffer
from lance_nb.encodings.mini_block_chunks import parse_chunks
from lance_nb.encodings.mini_block_page import MiniBlockPage
from lance_nb.encodings.repdef import unravel
from lance_nb.errors import CorruptFileError
from tests.property.encodings.reference_encoders import (
    inline_bitpacking,
    inline_chunk,
    out_of_line_bitpacking,
    out_of_line_block,
)
from tests.support.examples import examples
from tests.support.pages import Page, chunk, mini_block, u16, u32
from tests.support.reading import rows_of
from tests.support.shredding import SHAPES, rebuild, shred, values


def joined(pages: list[Page], gap: int) -> tuple[MiniBlockPage, dict[int, PageBuffer]]:
    """Put the chunks of pages into one buffer, ``gap`` bytes apart, and join the pages."""
    data, shifts = b"", []
    for page in pages:
        shifts.append(len(data))
        data += page.buffers[1] + bytes(gap)
    first, *others = (page.open() for page in pages)
    run = first.joined(list(zip(others, shifts[1:], strict=True)))
    return run, {1: PageBuffer(np.frombuffer(data, np.uint8))}


def leaves(page: DecodedPage) -> list[int]:
    return page.values.data.view("<i4").tolist()


@examples(80)
@given(SHAPES, st.integers(0, 3), st.data())
def test_joined_pages_hold_the_rows_of_all(shape: list[str], gap: int, data: st.DataObject) -> None:
    runs = [data.draw(st.lists(values(shape), min_size=1, max_size=6)) for _ in range(3)]
    pages = [mini_block(shred(run, shape), (), (2, 2)) for run in runs]
    keys = {page.open().join_key for page in pages}
    if len(keys) > 1 or keys == {None}:
        return  # described differently: they would not be joined
    reader, buffers = joined(pages, 8 * gap)
    expected: list[Any] = [row for run in runs for row in run]
    assert reader.num_rows == len(expected)
    found = reader.decode(rows_of((0, len(expected))), buffers)
    assert rebuild(unravel(found), leaves(found), shape) == expected


def test_a_page_that_continues_the_row_of_another_is_refused() -> None:
    first = mini_block(shred([[1, 2], [3]], ["list", "leaf"]), (), (2, 2))
    begun = mini_block(shred([[4], [5]], ["list", "leaf"]), (), (2, 2))
    raw = bytearray(begun.buffers[1])
    raw[8] = 0  # the first repetition level
    torn = Page(begun.arm, begun.message, (begun.buffers[0], bytes(raw), begun.buffers[2]), 2)
    reader, buffers = joined([first, torn], 0)
    with pytest.raises(CorruptFileError, match="begin with a new row"):
        reader.decode(rows_of((0, 4)), buffers)


def test_large_pages_and_those_with_a_dictionary_stand_alone() -> None:
    page = mini_block(shred([1, 2], ["leaf"]), (), (2, 2))
    assert page.open().join_key is not None
    reader = page.open()
    reader._layout.num_items = 1 << 20
    assert reader.join_key is None


def nullable_page(numbers: list[int | None]) -> Page:
    """Build a page of bit-packed chunks with a null level per value."""
    words, chunks = [], []
    for at in range(0, len(numbers), 1024):
        part = numbers[at : at + 1024]
        levels = out_of_line_block([int(one is None) for one in part], 16, 1, raw_tail=False)
        packed = inline_chunk([one or 0 for one in part], 32, 12)
        sizes = u16(len(levels)) + u32(len(packed))
        chunks.append(chunk(len(part), levels, packed, sizes=sizes))
        log = 10 if at + 1024 < len(numbers) else 0
        words.append(((len(chunks[-1]) // 8 - 1) << 4) | log)
    message = pb.MiniBlockLayout(
        def_compression=out_of_line_bitpacking(16, 1),
        value_compression=inline_bitpacking(32),
        layers=[pb.REPDEF_NULLABLE_ITEM],
        num_buffers=1,
        num_items=len(numbers),
        has_large_chunk=True,
    )
    return Page("mini_block_layout", message, (u32(*words), b"".join(chunks)), len(numbers))


@given(st.sets(st.integers(0, 4999), min_size=1, max_size=40))
def test_single_values_are_those_of_the_whole_page(wanted: set[int]) -> None:
    numbers = [None if at % 7 == 3 else at % 4096 for at in range(5000)]
    page = nullable_page(numbers)
    rows = rows_of(*((at, at + 1) for at in sorted(wanted)))
    for whole in (True, False):
        found = page.decode(rows, whole=whole)
        (level,) = unravel(found)
        valid = [True] * len(wanted) if level.validity is None else level.validity.tolist()
        ints = [one if ok else None for one, ok in zip(leaves(found), valid, strict=True)]
        assert ints == [numbers[at] for at in sorted(wanted)]


def fetched(reader: MiniBlockPage, page: Page, *wanted: int) -> list[int]:
    buffers = {number: PageBuffer(page.array(number)) for number in range(len(page.buffers))}
    return leaves(reader.decode(rows_of(*((at, at + 1) for at in wanted)), buffers))


def test_a_page_that_is_asked_again_gives_the_same_values() -> None:
    page = nullable_page(list(range(5000)))
    reader = page.open()
    for wanted in ([0, 1023, 1024, 4999], [7], [2048, 3000], [0, 4999]):
        assert fetched(reader, page, *wanted) == [at % 4096 for at in wanted]


def test_damage_in_another_chunk_is_no_matter_to_those_who_do_not_want_it() -> None:
    page = nullable_page(list(range(4096)))
    words, chunks = page.buffers
    size = len(chunks) // 4
    damaged = Page(
        page.arm,
        page.message,
        (words, chunks[: 3 * size + 2] + b"\xff" * 6 + chunks[3 * size + 8 :]),
        page.num_rows,
    )
    reader = damaged.open()
    for _ in range(4):
        assert fetched(reader, damaged, 5, 1030) == [5, 1030]
        with pytest.raises(CorruptFileError):
            fetched(reader, damaged, 5, 4000)


def test_the_headers_of_a_whole_page_are_read_when_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = nullable_page(list(range(5000)))
    reader = page.open()
    parsed: list[int] = []

    def counted(layout: Any, table: Any, buffer: PageBuffer) -> Any:
        parsed.append(table.starts.size)
        return parse_chunks(layout, table, buffer)

    monkeypatch.setattr(mini_block_page, "parse_chunks", counted)
    for _ in range(4):
        assert fetched(reader, page, 7, 3000) == [7, 3000]
    assert parsed == [2, 5]  # those of two values, then all
    parsed.clear()
    rows = rows_of((7, 8))
    for _ in range(3):
        reader.decode(rows, page.only(reader.spans(rows)))
    assert len(parsed) <= 3
    assert set(parsed) <= {1}


def test_chunks_at_hand_are_not_taken_for_the_whole_page() -> None:
    page = nullable_page(list(range(5000)))
    reader = page.open()
    for wanted in ([4999], [1024, 3000], [7], [0, 2048], [4000]):
        rows = rows_of(*((at, at + 1) for at in wanted))
        found = reader.decode(rows, page.only(reader.spans(rows)))
        assert leaves(found) == [at % 4096 for at in wanted]
        assert fetched(reader, page, *wanted) == leaves(found)


def test_all_rows_of_spans_are_decoded_again() -> None:
    page = nullable_page(list(range(3000)))
    reader = page.open()
    rows = rows_of((0, 3000))
    for _ in range(2):
        found = reader.decode(rows, page.only(reader.spans(rows)))
        assert leaves(found) == list(range(3000))
        whole = reader.decode(rows, {1: PageBuffer(page.array(1))})
        assert leaves(whole) == list(range(3000))
