"""The chunk table of a mini-block page: words, repetition index and chunk headers."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import PageBuffer, PageShape
from lance_nb.encodings.chunk_table import parse_chunks, read_chunk_table, read_row_index
from lance_nb.errors import CorruptFileError
from tests.support.pages import chunk, flat, u16, u32, u64


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
    shape = PageShape(1100, (len(words), 32 + 8 + 800), (2, 2 if large else 1))
    table = read_chunk_table(layout(1100, large=large), shape, array(words))
    assert table.sizes.tolist() == [32, 8, 800]
    assert table.starts.tolist() == [0, 32, 40]
    assert table.num_values.tolist() == [1024, 4, 72]
    assert table.value_ends.tolist() == [1024, 1028, 1100]


def test_the_largest_words_of_both_grammars() -> None:
    for large, word in ((True, 2**32 - 16), (False, 2**16 - 16)):
        size = ((word >> 4) + 1) * 8
        shape = PageShape(5, (4, size), (2, 2))
        words = array((u32 if large else u16)(word))
        assert read_chunk_table(layout(5, large=large), shape, words).sizes.tolist() == [size]


@pytest.mark.parametrize(
    ("num_items", "words", "bytes_there", "reason"),
    [
        (4, b"\0\0\0", 8, "4-byte words"),
        (4, b"", 8, "chunks for 4 values"),
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
    shape = PageShape(0, (len(words), bytes_there), (2, 2))
    with pytest.raises(CorruptFileError, match=reason):
        read_chunk_table(layout(num_items), shape, array(words))


def test_no_chunk_holds_no_rows() -> None:
    shape = PageShape(0, (0, 0), (2, 2))
    assert read_chunk_table(layout(0), shape, array(b"")).starts.size == 0
    with pytest.raises(CorruptFileError):
        read_chunk_table(layout(0), PageShape(3, (0, 0), (2, 2)), array(b""))


def test_rows_that_have_ended_and_started_by_each_chunk() -> None:
    index = read_row_index(array(u64(2, 1, 0, 5, 1, 0, 3, 0)), 4, 6)
    assert index.ended.tolist() == [2, 2, 3, 6]
    assert index.started.tolist() == [3, 3, 3, 6]


@pytest.mark.parametrize(
    "raw", [u64(6), u64(6, 0, 0), u64(5, 0), u64(2**64 - 1, 0), u64(6, 2**64 - 1), b""]
)
def test_a_damaged_row_index_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptFileError, match="a repetition index of"):
        read_row_index(array(raw), 1, 6)


def parts(*chunks: bytes) -> tuple:
    data = b"".join(chunks)
    words = [((len(one) // 8 - 1) << 4) | (2 if at < len(chunks) - 1 else 0)
             for at, one in enumerate(chunks)]  # fmt: skip
    message = layout(4 * len(chunks), levels=True)
    shape = PageShape(9, (4 * len(words), len(data)), (2, 2))
    return message, read_chunk_table(message, shape, array(u32(*words))), data


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
        CHUNK[:8],
    ],
)
def test_parts_that_do_not_fit_their_chunk_are_refused(damaged: bytes) -> None:
    message, table, data = parts(damaged)
    with pytest.raises(CorruptFileError):
        parse_chunks(message, table.part(np.array([0])), PageBuffer(array(data)))


def test_chunks_past_the_bytes_at_hand_are_refused() -> None:
    message, table, data = parts(CHUNK, OTHER)
    with pytest.raises(CorruptFileError, match="bytes of chunks"):
        parse_chunks(message, table.part(np.array([0, 1])), PageBuffer(array(data[:-8])))
