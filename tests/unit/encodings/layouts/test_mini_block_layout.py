"""Mini-block pages from bytes written out by hand, and everything that is refused in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb._pb import file2
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import DataBlock, DecodedPage, Dictionary, FixedWidth, VariableWidth
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.layouts.mini_block_layout import to_dictionary
from lance_nb.encodings.repdef import unravel
from lance_nb.encodings.slicing import take_block
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.metadata import parse_column
from tests.conformance.codec_tests import check_page, options
from tests.property.encodings.reference_encoders import plain
from tests.support.leaf_values import make
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
    "no chunk for values": (changed(FLAT, 0, b""), "4-byte words"),
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
    "a short repetition index": (
        changed(NESTED, 2, u64(9, 0)),
        "16 bytes for each of 2 chunks, found 16",
    ),
    "rows that do not add up": (
        changed(NESTED, 2, u64(1, 1, 7, 0)),
        "that ends at row 9, found row 8",
    ),
    "an absurd repetition index": (changed(NESTED, 2, u64(2**63, 1, 7, 0)), "repetition index of"),
    "levels unlike values": (changed(FLAT, 1, u16(3) + CHUNK[2:]), "2 levels in a chunk, found 3"),
    "a level part too large": (
        changed(FLAT, 1, CHUNK[:2] + u16(60_000) + CHUNK[4:]),
        "part.* within 16 bytes, found 60000",
    ),
    "a value part too large": (
        changed(FLAT, 1, CHUNK[:4] + u32(2**32 - 1) + CHUNK[8:]),
        "part.* within 8 bytes, found 4294967295",
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


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_chunk_words_have_the_width_of_the_version(version: tuple[int, int]) -> None:
    page = check_page(make("int64, all bits", 5000), options({}, version))
    layout = page.layout.mini_block_layout
    assert layout.has_large_chunk is (version == (2, 2))
    assert len(page.buffers[0]) == 10 * (4 if layout.has_large_chunk else 2)
    assert layout.num_items == 5000


def test_a_dictionary_is_the_third_buffer_and_the_row_index_the_last() -> None:
    colours = [["red", "blue"][i % 2] for i in range(3000)]
    lists = pa.ListArray.from_arrays(pa.array(range(0, 3001, 2), pa.int32()), pa.array(colours))
    page = check_page(lists, options({}, (2, 2)))
    assert len(page.buffers) == 4
    assert page.layout.mini_block_layout.num_dictionary_items == 2
    pairs = np.frombuffer(bytes(page.buffers[3]), "<u8").reshape(-1, 2)
    assert int(pairs[:, 0].sum()) == 1500


def test_rows_may_span_chunks() -> None:
    lists = pa.array([list(range(5000)), [], None, [1], list(range(3000))], pa.list_(pa.int16()))
    for version in ((2, 1), (2, 2)):
        check_page(lists, options({}, version))


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
@pytest.mark.parametrize("value", [7, "text", True])
def test_sparse_lists_have_smaller_chunks(value: object, version: tuple[int, int]) -> None:
    rows = [[value] if row % 60 == 0 else [] for row in range(150_000)]
    page = check_page(pa.array(rows), options({"dict-divisor": "100000"}, version))
    assert page.layout.WhichOneof("layout") == "mini_block_layout"


V2_1 = EncodingOptions(file_version=(2, 1))
V2_2 = EncodingOptions(file_version=(2, 2))


@pytest.mark.parametrize("kind", ["string, few", "int64, few", "decimal128, few"])
def test_few_values_become_items_and_indices(kind: str) -> None:
    block = from_arrow(make(kind, 5000))
    found = to_dictionary(Measured(block), V2_2)
    assert found is not None
    assert found.items.num_values <= 20
    indices = found.indices.data.view(np.uint32).astype(np.int64)
    assert plain(take_block(found.items, indices)) == plain(block)


@pytest.mark.parametrize(
    "kind", ["int64, all bits", "int64, ten bits", "int64, one", "int32, runs"]
)
def test_other_numbers_stay(kind: str) -> None:
    assert to_dictionary(Measured(from_arrow(make(kind, 5000))), V2_2) is None


def test_different_strings_stay() -> None:
    strings = from_arrow(pa.array([f"string {i}" for i in range(30_000)]))
    assert to_dictionary(Measured(strings), V2_2) is None


def test_numbers_of_64_bits_have_no_dictionary_in_2_1_files() -> None:
    assert to_dictionary(Measured(from_arrow(make("int64, few", 5000))), V2_1) is None
    assert to_dictionary(Measured(from_arrow(make("string, few", 5000))), V2_1) is not None


def test_dictionary_arrays_keep_theirs() -> None:
    block = from_arrow(make("dictionary of int8", 3))
    assert to_dictionary(Measured(block), V2_1) is block


def mixed(count: int, distinct: int, runs_of: int = 1) -> np.ndarray:
    """Return so many different values, no neighbour alike but in runs."""
    return np.repeat(np.arange(count // runs_of) * 7 % distinct, runs_of)


# 4096 values of 16, so 4 bits each beside the items, against what they need without.
@pytest.mark.parametrize(
    ("block", "items", "plain_bytes"),
    [
        (from_arrow(pa.array((mixed(4096, 16) + 1) << 36)), 16 * 8, 4 * 41 * 128),
        (from_arrow(pa.array(mixed(4096, 16, 8) << 36)), 16 * 8, 511 / 4095 * 4096 * 9),
        (from_arrow(pa.array((mixed(4096, 16) + 1) << 59)), 16 * 8, 4096 * 8),
        (
            from_arrow(pa.array([f"{one:10}" for one in mixed(4096, 16).tolist()])),
            16 * 14,
            4096 * 14,
        ),
        (
            from_arrow(pa.array([f"{one:10}" for one in mixed(4096, 16).tolist()], "large_string")),
            16 * 18,
            4096 * 18,
        ),
        (
            from_arrow(pa.array(mixed(4096, 16)).cast(pa.decimal128(30))),
            16 * 16,
            4096 * 16,
        ),
    ],
    ids=["packed", "runs", "wide", "text", "large text", "decimal"],
)
def test_a_dictionary_is_smaller_by_the_ratio(
    block: DataBlock, items: int, plain_bytes: float
) -> None:
    ratio = (items + 4096 * 4 / 8) / plain_bytes
    for share, taken in ((ratio + 1e-9, True), (ratio, False), (ratio - 1e-9, False)):
        options = EncodingOptions(file_version=(2, 2), dict_size_ratio=share)
        assert (to_dictionary(Measured(block), options) is not None) == taken


@pytest.mark.parametrize(
    ("count", "distinct", "divisor", "taken"),
    [
        (63, 3, None, False),
        (64, 3, None, True),
        (100, 50, None, True),
        (100, 51, None, False),
        (100, 25, 4, True),
        (100, 26, 4, False),
        (100, 60, 1, True),
        (5000, 1, None, True),
    ],
)
def test_there_are_enough_values_for_each_item(
    count: int, distinct: int, divisor: int | None, taken: bool
) -> None:
    block = from_arrow(pa.array([f"a rather long text {n % distinct:9}" for n in range(count)]))
    options = EncodingOptions(file_version=(2, 2), dict_divisor=divisor)
    assert (to_dictionary(Measured(block), options) is not None) == taken


@pytest.mark.parametrize(("most", "taken"), [(7 * 10, True), (7 * 10 - 1, False)])
def test_the_text_of_all_items_has_a_bound(most: int, taken: bool) -> None:
    block = from_arrow(pa.array([f"{n % 7:10}" for n in range(5000)]))
    options = EncodingOptions(file_version=(2, 2), dict_max_size_bytes=most)
    assert (to_dictionary(Measured(block), options) is not None) == taken


@pytest.mark.parametrize(("distinct", "taken"), [(1000, True), (1300, False)])
def test_a_page_of_different_values_is_not_hashed(distinct: int, taken: bool) -> None:
    """The first sample of eight runs of 256 tells: up to six tenths of it may differ."""
    texts = [f"a rather long text {n % distinct:9}" for n in range(20_000)]
    found = to_dictionary(Measured(from_arrow(pa.array(texts))), V2_2)
    assert (found is not None) == taken


@pytest.mark.parametrize(
    "bound",
    [
        {"dict_divisor": 1000},
        {"dict_size_ratio": 0.01},
        {"dict_max_size_bytes": 10},
        {"compression": "none"},
    ],
)
def test_the_field_may_bound_it(bound: dict[str, int]) -> None:
    strings = from_arrow(make("string, few", 2000))
    options = EncodingOptions(file_version=(2, 2), **bound)  # type: ignore[arg-type]
    assert to_dictionary(Measured(strings), options) is None
