"""The chunks of mini-block pages: table, headers, rows and assembly."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import ChunkBuffer, PageBuffer, Rows
from lance_nb.encodings.compress_base import PageLevels, Parts, uniform_counts
from lance_nb.encodings.mini_block_chunks import (
    ChunkTable,
    PageParts,
    RowIndex,
    assemble,
    check_joints,
    chunk_words,
    chunks_of,
    cut_levels,
    flat_positions,
    join_parts,
    number_rows,
    parse_chunks,
    read_chunk_table,
    read_row_index,
    row_index,
    runs_of,
    value_runs,
)
from lance_nb.errors import CorruptFileError
from tests.support.pages import chunk, cut_entries, flat, repetition_index, u16, u32, u64
from tests.support.shredding import Entry


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def layout(num_items: int, *, large: bool = True, levels: bool = False) -> pb.MiniBlockLayout:
    message = pb.MiniBlockLayout(num_items=num_items, has_large_chunk=large, num_buffers=1)
    if levels:
        message.rep_compression.CopyFrom(flat(16))
        message.def_compression.CopyFrom(flat(16))
        message.repetition_index_depth = 1
    return message


@pytest.mark.parametrize("large", [True, False])
def test_words_say_size_and_count(large: bool) -> None:
    words = (u32 if large else u16)((3 << 4) | 10, (0 << 4) | 2, (99 << 4) | 0)
    table, ends = read_chunk_table([layout(1100, large=large)], [memoryview(words)], [32 + 8 + 800])
    assert ends.tolist() == [3]
    assert table.sizes.tolist() == [32, 8, 800]
    assert table.starts.tolist() == [0, 32, 40]
    assert table.num_values.tolist() == [1024, 4, 72]
    assert table.value_ends.tolist() == [1024, 1028, 1100]


def test_the_largest_words_of_both_grammars() -> None:
    for large, word in ((True, 2**32 - 16), (False, 2**16 - 16)):
        size = ((word >> 4) + 1) * 8
        words = memoryview((u32 if large else u16)(word))
        table, _ = read_chunk_table([layout(5, large=large)], [words], [size])
        assert table.sizes.tolist() == [size]


@pytest.mark.parametrize(
    ("num_items", "words", "bytes_there", "reason"),
    [
        (4, b"\0\0\0", 8, "4-byte words"),
        (4, b"", 8, "4-byte words"),
        (4, u32(0, 0), 8, "16 bytes of chunks"),
        (4, u32(3, 0), 16, "that hold 4"),  # 8 values in the first chunk already
        (4, u32(1), 16, "that hold 4"),  # the last one says 2
        (2**64 - 1, u32(0), 8, "that hold"),
        (2**62, u32(0), 8, "that hold"),
        (0, u32(2, 0), 16, "that hold 0"),
    ],
)
def test_damaged_words_are_refused(
    num_items: int, words: bytes, bytes_there: int, reason: str
) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        read_chunk_table([layout(num_items)], [memoryview(words)], [bytes_there])


def test_chunks_of_several_pages_are_counted_page_by_page() -> None:
    layouts, words = [layout(12), layout(3)], [u32(2 << 4 | 3, 0), u32(1 << 4)]
    table, ends = read_chunk_table(layouts, [memoryview(word) for word in words], [32, 16])
    assert table.sizes.tolist() == [24, 8, 16]
    assert table.num_values.tolist() == [8, 4, 3]
    assert ends.tolist() == [2, 3]
    with pytest.raises(CorruptFileError, match="16 bytes of chunks"):
        read_chunk_table(layouts, [memoryview(word) for word in words], [32, 15])


def test_rows_that_have_ended_and_started_by_each_chunk() -> None:
    index = read_row_index([memoryview(u64(2, 1, 0, 5, 1, 0, 3, 0))], [6], ints(4))
    assert index.ended.tolist() == [2, 2, 3, 6]
    assert index.started.tolist() == [3, 3, 3, 6]


@pytest.mark.parametrize(
    "raw", [u64(6), u64(6, 0, 0), u64(5, 0), u64(2**64 - 1, 0), u64(6, 2**64 - 1), b""]
)
def test_a_damaged_row_index_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptFileError, match="a repetition index "):
        read_row_index([memoryview(raw)], [6], ints(1))


def parts(*chunks: bytes) -> tuple:
    data = b"".join(chunks)
    words = [((len(one) // 8 - 1) << 4) | (2 if at < len(chunks) - 1 else 0)
             for at, one in enumerate(chunks)]  # fmt: skip
    message = layout(4 * len(chunks), levels=True)
    table, _ = read_chunk_table([message], [memoryview(u32(*words))], [len(data)])
    return message, table, data


CHUNK = chunk(3, b"rrrrrr", b"dd", b"v" * 16, sizes=u16(6, 2) + u32(16))
OTHER = chunk(1, b"RR", b"", b"V" * 16, sizes=u16(2, 0) + u32(16))


@pytest.mark.parametrize("wanted", [[0], [1], [0, 1], [1, 2]])
def test_headers_locate_levels_and_values(wanted: list[int]) -> None:
    message, table, data = parts(CHUNK, OTHER, CHUNK)
    found = parse_chunks(message, table.part(np.array(wanted)), PageBuffer(array(data)))
    texts = {0: (3, b"rrrrrr", b"dd", b"v" * 16), 1: (1, b"RR", b"", b"V" * 16)}
    for at, number in enumerate(wanted):
        levels, *expected = texts[number % 2]
        assert found.num_levels[at] == levels
        for buffer, piece in zip(
            (found.rep, found.definition, found.values.buffers[0]), expected, strict=True
        ):
            start = int(buffer.starts[at])
            assert bytes(buffer.data[start : start + int(buffer.sizes[at])]) == piece


def test_headers_are_found_in_spans_too() -> None:
    message, table, data = parts(CHUNK, OTHER, CHUNK)
    spans = PageBuffer(array(data[len(CHUNK) :]), np.array([len(CHUNK)]), np.array([0]))
    found = parse_chunks(message, table.part(np.array([1, 2])), spans)
    assert found.num_levels.tolist() == [1, 3]


@pytest.mark.parametrize(
    "damaged",
    [
        CHUNK[:2] + u16(60_000) + CHUNK[4:],
        CHUNK[:4] + u16(60_000) + CHUNK[6:],
        CHUNK[:6] + u32(2**32 - 1) + CHUNK[10:],
        CHUNK[:6] + u32(40) + CHUNK[10:],  # the bytes are there, but belong to the next chunk
        CHUNK[:8],
    ],
)
def test_parts_that_do_not_fit_their_chunk_are_refused(damaged: bytes) -> None:
    message, table, data = parts(damaged, damaged)
    for wanted in ([0], [0, 1]):
        with pytest.raises(CorruptFileError):
            parse_chunks(message, table.part(np.array(wanted)), PageBuffer(array(data)))


@pytest.mark.parametrize("wanted", [[0, 1], [1]])
def test_chunks_past_the_bytes_at_hand_are_refused(wanted: list[int]) -> None:
    message, table, data = parts(CHUNK, OTHER)
    with pytest.raises(CorruptFileError, match=f"{len(data)} bytes of chunks"):
        parse_chunks(message, table.part(np.array(wanted)), PageBuffer(array(data[:-8])))


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


TABLE = ChunkTable(ints(0, 80, 160), ints(80, 80, 40), ints(4, 4, 2), ints(4, 8, 10))
INDEX = RowIndex(ended=ints(1, 2, 3), started=ints(2, 3, 3))


def test_rows_are_looked_up_in_their_chunks() -> None:
    assert chunks_of(TABLE, None, Rows(ints(3), ints(5))).tolist() == [0, 1]
    assert chunks_of(TABLE, None, Rows(ints(0, 1, 9), ints(1, 2, 10))).tolist() == [0, 2]
    assert chunks_of(TABLE, None, Rows(ints(), ints())).tolist() == []


def test_a_row_of_lists_that_goes_on_needs_both_of_its_chunks() -> None:
    assert chunks_of(TABLE, INDEX, Rows(ints(1), ints(2))).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("ended", "goes_on"),
    [
        ([2, 4, 6, 9], [0, 0, 0, 0]),
        ([1, 1, 4, 6, 9], [1, 1, 0, 1, 0]),  # row 1 lies in three chunks
        ([3, 4, 7, 9], [1, 1, 1, 0]),
    ],
)
@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_rows_need_the_chunks_that_hold_a_part_of_them(
    ended: list[int], goes_on: list[int], seed: int
) -> None:
    ends, more = ints(*ended), ints(*goes_on)
    table = ChunkTable(*(ints(*range(len(ended))),) * 4)
    bounds = np.sort(np.random.default_rng(seed).permutation(10)[: 2 * (1 + seed % 4)])
    rows = Rows(bounds[::2], bounds[1::2])
    pairs = list(zip(rows.starts.tolist(), rows.stops.tolist(), strict=True))
    wanted = set()
    for number, (stop, part) in enumerate(zip(ended, goes_on, strict=True)):
        start = ended[number - 1] if number else 0
        held = range(start, stop + part)
        if any(low <= row < high for row in held for low, high in pairs):
            wanted.add(number)
    assert chunks_of(table, RowIndex(ends, ends + more), rows).tolist() == sorted(wanted)


def test_neighbouring_chunks_are_one_range() -> None:
    spans = [(one.start, one.stop) for one in runs_of(TABLE, ints(0, 1))]
    assert spans == [(0, 160)]
    assert [one.start for one in runs_of(TABLE, ints(0, 2))] == [0, 160]


def test_entries_are_numbered_by_the_rows_before_their_chunk() -> None:
    begins = np.array([True, False, True, False, True])
    assert number_rows(INDEX, ints(0, 1), begins, ints(3, 2)).tolist() == [0, 0, 1, 1, 2]
    assert number_rows(INDEX, ints(1), begins[3:], ints(2)).tolist() == [1, 2]


def test_joined_pages_count_rows_and_bytes_on() -> None:
    page = PageParts(TABLE, INDEX, None)
    joined = join_parts([page, page], [layout(10)] * 2, [3, 3], [0, 500])
    assert joined.table.starts.tolist() == [0, 80, 160, 500, 580, 660]
    assert joined.table.value_ends.tolist() == [4, 8, 10, 14, 18, 20]
    assert joined.rows is not None
    assert joined.rows.ended.tolist() == [1, 2, 3, 4, 5, 6]
    assert joined.rows.started.tolist() == [2, 3, 3, 5, 6, 6]
    assert joined.page_chunks is not None
    assert joined.page_chunks.tolist() == [3]
    flat = PageParts(TABLE, None, None)
    three = join_parts([flat, flat, flat], [layout(10)] * 3, [10, 10, 10], [0, 500, 700])
    assert three.rows is None
    assert three.table.starts.tolist()[6:] == [700, 780, 860]
    assert three.page_chunks is not None
    assert three.page_chunks.tolist() == [3, 6]


def test_a_page_that_continues_a_row_of_the_page_before_is_refused() -> None:
    page = PageParts(TABLE, INDEX, None)
    joined = join_parts([page, page], [layout(10)] * 2, [3, 3], [0, 500])
    begins = np.ones(6, bool)
    check_joints(joined, begins, np.ones(6, np.int64))
    for inside in (1, 2, 4, 5):  # rows go on inside a page
        begins[inside] = False
    check_joints(joined, begins, np.ones(6, np.int64))
    check_joints(page, begins, np.ones(3, np.int64))
    check_joints(joined, begins[:3], ints(1, 1, 1, 0, 0, 0))  # nothing of the second page
    begins[3] = False
    with pytest.raises(CorruptFileError, match="begin with a new row"):
        check_joints(joined, begins, np.ones(6, np.int64))
    some = ints(1, 3)  # chunk 3 is the first one of the second page
    with pytest.raises(CorruptFileError, match="begin with a new row"):
        check_joints(joined, np.array([False, False]), ints(1, 1), some)
    check_joints(joined, np.array([False, True]), ints(1, 1), some)


def test_no_row_goes_on_behind_its_page() -> None:
    going_on = RowIndex(INDEX.ended, INDEX.ended + 1)
    page = PageParts(TABLE, going_on, None)
    joined = join_parts([page, page], [layout(10)] * 2, [3, 3], [0, 500])
    assert joined.rows is not None
    assert joined.rows.started.tolist() == [2, 3, 3, 5, 6, 6]


def test_a_row_without_lists_is_found_among_the_values_of_its_chunks() -> None:
    table = ChunkTable(
        np.array([0, 8, 16]), np.array([8, 8, 8]), np.array([4, 4, 2]), np.array([4, 8, 10])
    )
    wanted = Rows(np.array([1, 9]), np.array([3, 10]))
    assert flat_positions(table, np.array([0, 2]), wanted).tolist() == [1, 5]


def test_entries_without_a_value_are_not_counted() -> None:
    visible = np.array([True, False, False, True, True])
    runs = value_runs(np.array([0, 3]), np.array([3, 5]), visible, 5)
    assert (runs.starts.tolist(), runs.stops.tolist(), runs.total) == ([0, 1], [1, 3], 3)
    whole = value_runs(np.array([0, 3]), np.array([3, 5]), None, 5)
    assert (whole.starts.tolist(), whole.stops.tolist(), whole.total) == ([0, 3], [3, 5], 5)


def parts_written(*chunks: bytes) -> Parts:
    data = np.frombuffer(b"".join(chunks) or b"\0", np.uint8)
    sizes = np.array([len(chunk) for chunk in chunks], np.int64)
    return Parts((ChunkBuffer(data, np.cumsum(sizes) - sizes, sizes),))


def levels(entries: list[Entry]) -> PageLevels:
    rep = np.array([entry.rep for entry in entries], np.uint16)
    definition = np.array([entry.definition for entry in entries], np.uint16)
    rows = sum(entry.rep == 1 for entry in entries)
    return PageLevels((1, 6), rep, definition, len(entries), 0, rows)


def random_entries(seed: int, count: int) -> list[Entry]:
    rng = np.random.default_rng(seed)
    entries: list[Entry] = []
    while len(entries) < count:
        if rng.random() < 0.3:
            entries.append(Entry(1, int(rng.integers(1, 3)), False, None))
        else:
            length = int(rng.integers(1, 9))
            entries += [Entry(int(at == 0), 0, True, at) for at in range(length)]
    return entries


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("per_chunk", [2, 4, 16])
def test_entries_and_rows_are_cut_as_the_format_says(seed: int, per_chunk: int) -> None:
    entries = random_entries(seed, 60)
    visible = sum(entry.visible for entry in entries)
    counts = uniform_counts(visible, per_chunk)
    page = levels(entries)
    cuts = cut_levels(page, counts)
    expected = cut_entries(entries, counts[:-1].tolist())
    assert cuts.counts.tolist() == [len(cut) for cut in expected]
    assert page.repetition is not None
    assert row_index(page.repetition, cuts).tobytes() == repetition_index(expected, 1)


def test_chunks_without_values_take_no_entries_but_the_last() -> None:
    null, value = Entry(1, 2, False, None), Entry(1, 0, True, 1)
    page = levels([null, null, value, value, null])
    for counts in ([0, 2], [0, 1, 1], [2, 0], [1, 0, 1], [0, 2, 0]):
        expected = [{0: 0, 1: 3, 2: 4}[sum(counts[: at + 1])] for at in range(len(counts))]
        assert cut_levels(page, np.array(counts)).ends.tolist() == [*expected[:-1], 5]
    hidden = levels([null] * 3)
    assert cut_levels(hidden, np.array([0])).ends.tolist() == [3]


def test_every_part_of_a_chunk_begins_on_eight_bytes() -> None:
    built = assemble(
        (), None, (parts_written(b"abc", b"defghijkl"), parts_written(b"", b"x")), True
    )
    assert built is not None
    chunks, sizes = built
    assert sizes.tolist() == [24, 40]
    first, second = chunks[:24].tobytes(), chunks[24:].tobytes()
    assert first == bytes.fromhex("0000 03000000 00000000 000000000000") + b"abc".ljust(8, b"\0")
    assert second[16:] == b"defghijkl".ljust(16, b"\0") + b"x".ljust(8, b"\0")


def test_headers_of_2_1_have_short_sizes() -> None:
    built = assemble((parts_written(b"\1\0"),), np.array([1]), (parts_written(b"abcd"),), False)
    assert built is not None
    assert built[0].tobytes() == bytes.fromhex("0100 0200 0400 0000") + b"\1".ljust(8, b"\0") + (
        b"abcd\0\0\0\0"
    )


def test_what_is_too_large_for_a_chunk_is_not_stored_in_one() -> None:
    assert assemble((), None, (parts_written(b"x" * 32_761),), False) is None
    assert assemble((), None, (parts_written(b"x" * 32_760),), False) is not None
    assert assemble((), None, (parts_written(b"x" * 100_000),), True) is not None
    assert (
        assemble((parts_written(b"x" * 65_536),), np.array([9]), (parts_written(b""),), True)
        is None
    )
    assert assemble((parts_written(b"x"),), np.array([65_536]), (parts_written(b""),), True) is None


def test_words_hold_size_and_logarithm() -> None:
    words = chunk_words(np.array([800, 16]), np.array([512, 3]), True)
    assert words.view("<u4").tolist() == [(99 << 4) | 9, 1 << 4]
    assert chunk_words(np.array([16]), np.array([8]), False).tobytes() == b"\x10\0"
