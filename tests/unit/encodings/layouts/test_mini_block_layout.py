"""Mini-block pages from bytes written out by hand, and everything that is refused in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb._pb import file2
from lance_nb.encodings.base import DecodedPage, Dictionary, FixedWidth, VariableWidth
from lance_nb.encodings.repdef import unravel
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.metadata import parse_column
from tests.support.pages import Page, chunk, flat, mini_block, u16, u32, u64, variable
from tests.support.reading import positions_of, rows_of, single_rows
from tests.support.shredding import rebuild, shred

ITEM, LIST = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULL_AND_EMPTY_LIST
NULLABLE = pb.REPDEF_NULLABLE_ITEM
ALL = pb.CompressiveEncoding


def page(message: pb.MiniBlockLayout, *buffers: bytes, rows: int, version: int = 2) -> Page:
    if not message.layers:
        message.layers.append(ITEM)
    message.has_large_chunk = version >= 2
    return Page("mini_block_layout", message, buffers, rows, (2, version))


def ints(found: DecodedPage) -> list[int]:
    assert isinstance(found.values, FixedWidth)
    return found.values.data.view(f"<i{found.values.bits_per_value // 8}").tolist()


def texts(block: Any) -> list[bytes]:
    assert isinstance(block, VariableWidth)
    ends = block.offsets.tolist()
    return [bytes(block.data[a:b]) for a, b in itertools.pairwise(ends)]


# --- bytes that pylance 14.0.2 wrote -------------------------------------------------------------

LIST_WORDS = bytes.fromhex("70000000")
LIST_CHUNK = bytes.fromhex(
    "06000c000c0010000000fefefefefefe"
    "010000000100010001000000fefefefe"
    "000000000200010000000000fefefefe"
    "01000000020000000400000088130000"
)
LIST_INDEX = u64(4, 0)
LIST_COLUMN = bytes.fromhex(
    "0a2912270a250a1f2f6c616e63652e656e636f64696e67732e436f6c756d6e456e636f64696e6712020a00"
    "12540a040040800112030440101804224512430a41"
    "0a1d2f6c616e63652e656e636f64696e677332312e506167654c61796f757412200a1e"
    "0a040a02081012040a0208101a040a020820320201063801400148045001"
)


def the_list_page() -> Page:
    column = parse_column(memoryview(LIST_COLUMN), (2, 2), 1 << 20)
    layout = column.pages[0].layout().mini_block_layout
    return Page("mini_block_layout", layout, (LIST_WORDS, LIST_CHUNK, LIST_INDEX), 4)


@pytest.mark.parametrize("whole", [True, False])
def test_the_list_page_of_the_reference_reads(whole: bool) -> None:
    found = the_list_page().decode(rows_of((0, 4)), whole=whole)
    assert found.layers == (ITEM, LIST)
    assert found.rep is not None
    assert found.rep.tolist() == [1, 0, 1, 1, 1, 0]
    assert found.definition is not None
    assert found.definition.tolist() == [0, 0, 2, 1, 0, 0]
    rows = rebuild(unravel(found), ints(found), ["list", "leaf"])
    assert rows == [[1, 2], [], None, [4, 5000]]


@pytest.mark.parametrize("wanted", [[0], [1], [2], [3], [0, 2], [1, 3], [0, 1, 2, 3], []])
def test_single_rows_of_the_list_page(wanted: list[int]) -> None:
    for whole in (True, False):
        found = the_list_page().decode(single_rows(wanted), whole=whole)
        rows = rebuild(unravel(found), ints(found), ["list", "leaf"])
        assert rows == [[[1, 2], [], None, [4, 5000]][row] for row in wanted]


def test_the_column_metadata_of_the_reference_parses() -> None:
    column = parse_column(memoryview(LIST_COLUMN), (2, 2), 1 << 20)
    (only,) = column.pages
    assert (only.buffer_offsets, only.buffer_sizes) == ((0, 64, 128), (4, 64, 16))
    assert only.num_rows == 4
    assert file2.ColumnMetadata.FromString(LIST_COLUMN).SerializeToString() == LIST_COLUMN


def test_the_text_page_of_the_reference_reads() -> None:
    raw = bytes.fromhex(
        "040008001c000000"
        "0100000000000000"
        "1400000014000000160000001600000019000000" + b"abxyzHHH".hex()
    )
    message = pb.MiniBlockLayout(
        def_compression=flat(16), value_compression=variable(), num_buffers=1, num_items=4
    )
    message.layers.append(NULLABLE)
    raw = raw + b"\xfe" * (-len(raw) % 8)
    assert len(raw) == 48
    found = page(message, bytes.fromhex("50000000"), raw, rows=4).decode(rows_of((0, 4)))
    assert texts(found.values) == [b"", b"ab", b"", b"xyz"]
    assert found.definition is not None
    assert found.definition.tolist() == [1, 0, 0, 0]


def test_a_bit_packed_page_of_the_reference_reads() -> None:
    packed = b"\x02" + bytes.fromhex("55aaff00") * 64
    message = pb.MiniBlockLayout(
        value_compression=ALL(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=8)),
        num_buffers=1,
        num_items=1024,
    )
    raw = chunk(0, packed, sizes=u32(257))
    found = page(message, u32((len(raw) // 8 - 1) << 4), raw, rows=1024).decode(rows_of((0, 1024)))
    assert ints(found) == [(i * 37 + 5) % 4 for i in range(1024)]


@pytest.mark.parametrize("compressed", [True, False])
def test_a_dictionary_page_reads(compressed: bool) -> None:
    raw = u32(32, 24, 0, 3, 8, 12) + b"redgreenblue"
    block = variable()
    if compressed:  # as pylance 14.0.2 stores it in file version 2.2
        raw = (
            bytes.fromhex("24000000622000000018000100f00903000000080000000c000000")
            + b"redgreenblue"
        )
        lz4 = pb.BufferCompression(scheme=pb.COMPRESSION_ALGORITHM_LZ4)
        block = ALL(general=pb.General(compression=lz4, values=variable()))
    message = pb.MiniBlockLayout(
        value_compression=flat(32),
        dictionary=block,
        num_dictionary_items=3,
        num_buffers=1,
        num_items=5,
    )
    chunks = chunk(0, u32(2, 0, 0, 1, 2), sizes=u32(20))
    words = u32((len(chunks) // 8 - 1) << 4)
    found = page(message, words, chunks, raw, rows=5).decode(single_rows([0, 2, 3]))
    assert isinstance(found.values, Dictionary)
    assert texts(found.values.items) == [b"red", b"green", b"blue"]
    assert found.values.indices.data.view("<u4").tolist() == [2, 0, 1]


# --- two chunks and more, in both grammars --------------------------------------------------------

ROWS = [[1], None, [], [2, None, 3], [4, 5, 6, 7, 8, 9], [], [10], None, []]


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
@pytest.mark.parametrize("counts", [[], [4], [2, 2], [1, 1, 1, 1], [4, 2, 2, 2], [8, 2]])
def test_rows_that_span_chunks(counts: list[int], version: tuple[int, int]) -> None:
    built = mini_block(shred(ROWS, ["list", "leaf"]), counts, version)
    for first in range(len(ROWS)):
        for last in range(first + 1, len(ROWS) + 1):
            for whole in (True, False):
                found = built.decode(rows_of((first, last)), whole=whole)
                rows = rebuild(unravel(found), ints(found), ["list", "leaf"])
                assert rows == ROWS[first:last]


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_flat_pages_of_several_chunks(version: tuple[int, int]) -> None:
    values = [None if i % 5 == 2 else i for i in range(21)]
    built = mini_block(shred(values, ["leaf"]), [8, 8, 4], version)
    for rows in (single_rows([0, 7, 8, 15, 16, 19, 20]), rows_of((3, 9), (9, 12), (20, 21))):
        for whole in (True, False):
            found = built.decode(rows, whole=whole)
            wanted = [values[position] for position in positions_of(rows)]
            assert rebuild(unravel(found), ints(found), ["leaf"]) == wanted


def test_only_the_chunks_of_the_rows_are_asked_for() -> None:
    built = mini_block(shred(list(range(16)), ["leaf"]), [4, 4, 4], (2, 2))
    size = len(built.buffers[1]) // 4
    reader = built.open()
    assert [(s.start, s.stop) for s in reader.spans(rows_of((5, 6)))] == [(size, 2 * size)]
    assert [(s.start, s.stop) for s in reader.spans(single_rows([0, 3, 4, 12]))] == [
        (0, 2 * size),
        (3 * size, 4 * size),
    ]
    assert list(reader.spans(rows_of())) == []


def test_the_last_chunk_may_say_its_own_power_of_two() -> None:
    raw = chunk(0, u32(1, 2, 3, 4), sizes=u32(16))
    message = pb.MiniBlockLayout(value_compression=flat(32), num_buffers=1, num_items=4)
    words = u32(((len(raw) // 8 - 1) << 4) | 2)
    assert ints(page(message, words, raw, rows=4).decode(rows_of((0, 4)))) == [1, 2, 3, 4]


def test_a_page_without_rows_reads_no_rows() -> None:
    message = pb.MiniBlockLayout(value_compression=flat(32), num_buffers=1)
    assert page(message, b"", b"", rows=0).decode(rows_of()).values.num_values == 0


# --- what is refused ------------------------------------------------------------------------------


def changed(built: Page, number: int, data: bytes) -> Page:
    buffers = list(built.buffers)
    buffers[number] = data
    return replace(built, buffers=tuple(buffers))


def with_message(built: Page, **fields: Any) -> Page:
    message = type(built.message).FromString(built.message.SerializeToString())
    for name, value in fields.items():
        if value is None:
            message.ClearField(name)
        elif isinstance(value, ALL):
            getattr(message, name).CopyFrom(value)
        elif name == "layers":
            message.ClearField(name)
            message.layers.extend(value)
        else:
            setattr(message, name, value)
    return replace(built, message=message)


FLAT = mini_block(shred([1, None, 3, 4, 5], ["leaf"]), [2], (2, 2))
NESTED = mini_block(shred(ROWS, ["list", "leaf"]), [4], (2, 2))
WORDS = np.frombuffer(FLAT.buffers[0], "<u4").tolist()
CHUNK = FLAT.buffers[1]
DICT = ALL(flat=pb.Flat(bits_per_value=32))

REFUSED: dict[str, tuple[Page, str]] = {
    "half a word": (changed(FLAT, 0, FLAT.buffers[0][:-1]), "chunk metadata in 4-byte words"),
    "no chunk for values": (changed(FLAT, 0, b""), "chunks for 5 values"),
    "a chunk past the buffer": (changed(FLAT, 0, u32(*WORDS[:-1], 1 << 20)), "bytes of chunks"),
    "more values than chunks say": (changed(FLAT, 0, u32(WORDS[0] | 4, WORDS[1])), "that hold 5"),
    "a last count that is wrong": (changed(FLAT, 0, u32(WORDS[0], WORDS[1] | 2)), "that hold 5"),
    "values that overflow": (with_message(NESTED, num_items=2**64 - 1), "chunks that hold"),
    "more rows than values": (replace(FLAT, num_rows=6), "6 values in the page"),
    "u32 words in 2.1": (replace(FLAT, file_version=(2, 1)), "u16 chunk words"),
    "too many buffers": (replace(FLAT, buffers=(*FLAT.buffers, b"")), "2 mini-block page buffers"),
    "two value buffers": (with_message(FLAT, num_buffers=2), "1 value buffers per chunk"),
    "lists without an index": (
        with_message(FLAT, layers=[ITEM, LIST]),
        "a repetition index on a page of lists",
    ),
    "no layers": (with_message(FLAT, layers=[]), "at least one"),
    "a huge dictionary": (
        with_message(
            replace(FLAT, buffers=(*FLAT.buffers, b"")), dictionary=DICT, num_dictionary_items=2**40
        ),
        "dictionary items",
    ),
    "a short repetition index": (changed(NESTED, 2, u64(9, 0)), "a repetition index of 32 bytes"),
    "rows that do not add up": (changed(NESTED, 2, u64(1, 1, 7, 0)), "a repetition index of 9"),
    "an absurd repetition index": (changed(NESTED, 2, u64(2**63, 1, 7, 0)), "repetition index of"),
    "levels unlike values": (changed(FLAT, 1, u16(3) + CHUNK[2:]), "one level per value"),
    "a level part too large": (
        changed(FLAT, 1, CHUNK[:2] + u16(60_000) + CHUNK[4:]),
        "chunk parts that fit their chunk",
    ),
    "a value part too large": (
        changed(FLAT, 1, CHUNK[:4] + u32(2**32 - 1) + CHUNK[8:]),
        "chunk parts that fit their chunk",
    ),
    "a level out of range": (
        changed(FLAT, 1, CHUNK[:8] + u16(9) + CHUNK[10:]),
        "definition levels up to 1",
    ),
    "8-bit levels": (with_message(FLAT, def_compression=flat(8)), "16-bit levels"),
    "no repetition levels": (with_message(NESTED, rep_compression=None), "damaged"),
    "layers that say less": (
        with_message(NESTED, layers=[ITEM, pb.REPDEF_ALL_VALID_LIST]),
        "definition levels up to 0",
    ),
    "no levels at all": (
        Page(
            "mini_block_layout",
            pb.MiniBlockLayout(
                rep_compression=flat(16),
                value_compression=flat(32),
                layers=[ITEM, pb.REPDEF_ALL_VALID_LIST],
                num_buffers=1,
                repetition_index_depth=1,
                has_large_chunk=True,
            ),
            (u32(1 << 4), chunk(0, b"", b"", sizes=u16(0) + u32(0)) + bytes(8), u64(9, 0)),
            9,
        ),
        "rows in these chunks",
    ),
    "too few rows in the chunks": (
        changed(NESTED, 2, u64(8, 1, 1, 0)),
        "rows in these chunks",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("whole", [True, False])
def test_a_damaged_page_is_refused(name: str, whole: bool) -> None:
    built, reason = REFUSED[name]
    wanted = rows_of((7, 8)) if reason == "rows in these chunks" else rows_of((0, built.num_rows))
    with pytest.raises(CorruptFileError, match=reason):
        unravel(built.decode(wanted, whole=whole))


def test_a_deeper_repetition_index_is_not_supported() -> None:
    with pytest.raises(NotSupportedError, match="depth 2"):
        with_message(NESTED, repetition_index_depth=2).open()


def test_an_unknown_layer_is_not_supported() -> None:
    with pytest.raises(NotSupportedError, match="layer 77"):
        with_message(FLAT, layers=[77]).open()


def test_dictionary_indices_must_be_fixed_width() -> None:
    raw = chunk(0, u32(8, 8), sizes=u32(8))
    message = pb.MiniBlockLayout(
        value_compression=variable(),
        dictionary=flat(32),
        num_dictionary_items=1,
        num_buffers=1,
        num_items=1,
    )
    built = page(message, u32((len(raw) // 8 - 1) << 4), raw, u32(7), rows=1)
    with pytest.raises(CorruptFileError, match="fixed-width dictionary indices"):
        built.decode(rows_of((0, 1)))
