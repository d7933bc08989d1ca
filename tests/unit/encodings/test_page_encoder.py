"""Pages byte by byte: what we write is what pylance 14.0.2 writes for the same values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.page_encoder import (
    EncodedPage,
    EncodingOptions,
    PageLevels,
    encode_page,
    encode_pages,
    num_visible,
)
from lance_nb.errors import InternalError, NotSupportedError
from tests.support.encoded_files import (
    decode_column,
    encode_column,
    flat_levels,
    list_page,
)

V2_1 = EncodingOptions(file_version=(2, 1))
V2_2 = EncodingOptions(file_version=(2, 2))
PLAIN = EncodingOptions(file_version=(2, 2), compression="none")
VALID = (pb.REPDEF_ALL_VALID_ITEM,)


def hexes(page: EncodedPage) -> list[str]:
    return [bytes(buffer).hex() for buffer in page.buffers]


def test_a_list_column_has_the_bytes_of_pylance() -> None:
    leaf = pa.array([1, 2, 4, 5000], pa.int32())
    layers = (pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULL_AND_EMPTY_LIST)
    rep = np.array([1, 0, 1, 1, 1, 0], np.uint16)
    definition = np.array([0, 0, 2, 1, 0, 0], np.uint16)
    page = encode_page(leaf, PageLevels(layers, rep, definition, 6, 0, 4), V2_2)
    layout = page.layout.mini_block_layout
    # pylance stores so few levels plainly as well: nothing would be gained.
    assert layout.rep_compression.flat.bits_per_value == 16
    assert layout.def_compression.flat.bits_per_value == 16
    words, chunk, index = page.buffers
    assert bytes(words).hex() == "70000000"
    expected = (
        "06000c000c0010000000000000000000"
        "01000000010001000100000000000000"
        "00000000020001000000000000000000"
        "01000000020000000400000088130000"
    )
    assert bytes(chunk).hex() == expected
    assert bytes(index).hex() == "04000000000000000000000000000000"


def test_strings_have_the_bytes_of_pylance() -> None:
    page = encode_column(pa.array([None, "ab", "", "xyz"]), V2_2)
    words, chunk = hexes(page)
    assert words == "50000000"
    head, levels, values = chunk[:16], chunk[16:32], chunk[32:]
    assert head == "040008001c000000"
    assert levels == "0100000000000000"
    assert values == "1400000014000000160000001600000019000000616278797a00000000000000"


def test_a_bit_packed_chunk_has_the_bytes_of_pylance() -> None:
    values = (np.arange(1024) * 37 + 5) % 8
    page = encode_page(
        pa.array(values.astype(np.int32)), PageLevels(VALID, None, None, 1024, 0, 1024), V2_2
    )
    words, chunk = hexes(page)
    assert words == "10030000"
    assert chunk[16:].startswith(
        "03000000" + "6ddbb66d92244992ffffffff244992244992 2449b66ddbb6".replace(" ", "")
    )


@pytest.mark.parametrize(
    ("kind", "modulus", "start"),
    [
        ("int8", 4, "0255aaff0055aaff00"),
        ("int16", 32, "0500a5944a29efbd945239e7de7b"),
        ("int64", 1000, "0a000000000000000594db5d35b5b75a2a282ca03eda4bab4fbc7ce24717dcfb"),
    ],
)
def test_other_words_are_packed_as_pylance_does(kind: str, modulus: int, start: str) -> None:
    values = ((np.arange(1024) * 37 + 5) % modulus).astype(kind)
    page = encode_page(pa.array(values), PageLevels(VALID, None, None, 1024, 0, 1024), V2_1)
    _, chunk = hexes(page)
    assert chunk[16:].startswith(start)


def test_the_scalar_of_a_constant_page_has_the_bytes_of_pylance() -> None:
    page = encode_column(pa.array(["same value"] * 5), V2_2)
    assert hexes(page) == ["02000000080000000a000000000000000a00000073616d652076616c7565"]
    page = encode_column(pa.array(["xyz"] * 5, pa.large_string()), V2_2)
    assert hexes(page) == ["020000001000000003000000" + "00" * 8 + "0300000000000000" + "78797a"]
    page = encode_column(pa.array([b"a" * 40] * 5, pa.binary(40)), V2_2)
    assert hexes(page) == ["0100000028000000" + "61" * 40]


def test_the_items_of_a_dictionary_are_a_block_as_in_pylance() -> None:
    colours = pa.array(["red", "green", "blue"] * 100)
    options = EncodingOptions(file_version=(2, 2), dict_values_compression="none")
    page = encode_column(colours, options)
    assert page.layout.mini_block_layout.num_dictionary_items == 3
    items = "20000000180000000000000003000000080000000c000000" + b"redgreenblue".hex()
    assert hexes(page)[2] == items


def test_a_hundred_equal_levels_are_one_run() -> None:
    lists = pa.array([[]] * 100, pa.list_(pa.int32()))
    page = encode_column(lists, V2_2)
    assert hexes(page)[0] == "0200000000000000" + "0100" + "64"


def test_embeddings_are_the_buffer_of_arrow_itself() -> None:
    values = pa.array(np.arange(64 * 100, dtype=np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(values, 64)
    page = encode_page(vectors, PageLevels(VALID, None, None, 100, 0, 100), V2_2)
    (buffer,) = page.buffers
    assert isinstance(buffer, np.ndarray)
    assert buffer.ctypes.data == values.buffers()[1].address


def test_text_views_become_text() -> None:
    for type_, plain in ((pa.string_view(), pa.string()), (pa.binary_view(), pa.binary())):
        values = pa.array(["a", "", None, "long enough to be out of line"], plain)
        page = encode_column(values.cast(type_), V2_2)
        assert decode_column(page, plain, (2, 2)).equals(values)


def test_extension_arrays_are_stored_as_their_storage() -> None:
    storage = pa.array([b"0123456789abcdef", b"x" * 16], pa.binary(16))
    array = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    page = encode_page(array, flat_levels(array), V2_2)
    assert decode_column(page, pa.binary(16), (2, 2)).equals(storage)


def test_one_huge_string_is_one_page() -> None:
    values = pa.array(["a", "b" * 20_000_000, None, ""])
    for options in (V2_1, V2_2):
        page = encode_column(values, options)
        assert page.layout.WhichOneof("layout") == "full_zip_layout"
        assert decode_column(page, pa.string(), options.file_version).equals(values)


def test_a_long_gap_between_values_is_no_problem() -> None:
    lists = pa.array([[]] * 70_000 + [[1, 2]], pa.list_(pa.int32()))
    for options in (V2_1, V2_2):
        page = encode_column(lists, options)
        assert page.layout.WhichOneof("layout") == "full_zip_layout"
        assert decode_column(page, lists.type, options.file_version).equals(lists)


def test_sparse_lists_of_booleans_are_split_into_pages() -> None:
    rows = [[], [True], *[[]] * 150_000, [False, True], *[[]] * 70_000]
    lists = pa.array(rows, pa.list_(pa.bool_()))
    leaf, levels = list_page(lists)
    for options in (V2_1, V2_2):
        pages = encode_pages(leaf, levels, options)
        assert len(pages) > 3
        parts = [decode_column(page, lists.type, options.file_version) for page in pages]
        assert pa.concat_arrays(parts).equals(lists)
        assert sum(page.num_rows for page in pages) == len(lists)


@pytest.mark.parametrize("last", [[], [[]], [[]] * 200_000, [[True] * 70_000]])
def test_a_row_that_no_page_shares_is_a_page_of_its_own(last: list[list[bool]]) -> None:
    rows = [[True], *[[]] * 70_000, [True, False] * 40_000, *last]
    lists = pa.array(rows, pa.list_(pa.bool_()))
    leaf, levels = list_page(lists)
    pages = encode_pages(leaf, levels, V2_2)
    parts = [decode_column(page, lists.type, (2, 2)) for page in pages]
    assert pa.concat_arrays(parts).equals(lists)
    counts = [page.num_rows for page in pages]
    assert counts[:3] == [65_535, 70_001 - 65_535, 1]
    assert sum(counts[3:]) == len(last)
    assert all(0 < count <= 65_535 for count in counts)


def test_other_columns_are_one_page() -> None:
    leaf, levels = list_page(pa.array([[]] * 70_000 + [[1]], pa.list_(pa.int8())))
    assert len(encode_pages(leaf, levels, V2_2)) == 1
    (page,) = encode_pages(pa.array([True]), PageLevels(VALID, None, None, 1, 0, 1), V2_2)
    assert page.num_rows == 1


def test_pages_of_2_1_have_no_form_of_2_2() -> None:
    page = encode_column(pa.array([7] * 3000), V2_1)
    assert page.layout.WhichOneof("layout") == "mini_block_layout"
    assert not page.layout.mini_block_layout.has_large_chunk
    page = encode_column(pa.array([7] * 3000), V2_2)
    assert page.layout.constant_layout.inline_value == (7).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (pa.struct([("flag", pa.bool_())]), "booleans"),
        (pa.struct([("text", pa.string())]), "2.2"),
        (pa.struct([("number", pa.int32())]), "null"),
        (pa.list_(pa.string(), 1), "fixed-size lists of string"),
        (pa.list_(pa.int8()), "one leaf"),
    ],
)
def test_what_no_page_can_hold_is_refused_with_the_reason(type_: pa.DataType, reason: str) -> None:
    rows: dict[pa.DataType, object] = {
        pa.struct([("flag", pa.bool_())]): {"flag": True},
        pa.struct([("text", pa.string())]): {"text": "a"},
        pa.struct([("number", pa.int32())]): {"number": None},
        pa.list_(pa.string(), 1): ["a"],
        pa.list_(pa.int8()): [1],
    }
    array = pa.array([rows[type_]], type_)
    with pytest.raises(NotSupportedError, match=reason):
        encode_page(array, PageLevels(VALID, None, None, 1, 0, 1), V2_1)


def test_levels_and_values_must_agree() -> None:
    levels = PageLevels(VALID, None, None, 3, 0, 3)
    with pytest.raises(InternalError, match="3 levels with a value, but 2 values"):
        encode_page(pa.array([1, 2]), levels, PLAIN)


def test_entries_of_empty_lists_have_no_slot() -> None:
    definition = np.array([0, 2, 1, 0], np.uint16)
    assert num_visible(PageLevels((1, 6), None, definition, 4, 0, 4)) == 2
    assert num_visible(PageLevels((1,), None, None, 4, 0, 4)) == 4
