"""Full-zip pages from bytes written out by hand, and everything that is refused in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import (
    AllNull,
    DataBlock,
    DecodedPage,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    PackedStruct,
    VariableWidth,
)
from lance_nb.encodings.compress_base import CompressedValues, LeafPage, PageLevels
from lance_nb.encodings.layouts.full_zip_layout import _row_index, zip_page
from lance_nb.encodings.page_encoder import LAYOUT_ENCODERS
from lance_nb.encodings.repdef import unravel
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import CorruptFileError
from tests.conformance.codec_tests import check_page, options, page_arms
from tests.support.pages import Page, flat, full_zip, u16, u32, u64, variable
from tests.support.reading import positions_of, rows_of, single_rows
from tests.support.shredding import Shredded, rebuild, shred

ITEM, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
LIST = pb.REPDEF_NULL_AND_EMPTY_LIST


def page(*buffers: bytes, rows: int, **fields: Any) -> Page:
    fields.setdefault("layers", [ITEM])
    return Page("full_zip_layout", pb.FullZipLayout(**fields), buffers, rows)


def texts(found: DecodedPage) -> list[bytes]:
    assert isinstance(found.values, VariableWidth)
    ends = found.values.offsets.tolist()
    return [bytes(found.values.data[a:b]) for a, b in itertools.pairwise(ends)]


def decoded(found: DecodedPage) -> list[int]:
    return found.values.data.view("<u4").tolist()


# --- bytes written out by hand --------------------------------------------------------------------

PLAIN = page(u32(7, 8, 9, 10), rows=4, bits_per_value=32, value_compression=flat(32))
FIXED = page(
    bytes.fromhex("000700000001000000000009000000"),
    rows=3,
    bits_def=1,
    bits_per_value=32,
    value_compression=flat(32),
    layers=[NULLABLE],
)
TEXT = page(
    bytes.fromhex("0002000000") + b"ab" + b"\x01" + bytes.fromhex("00000000000003000000") + b"xyz",
    bytes([0, 7, 8, 13, 21]),
    rows=4,
    bits_def=1,
    bits_per_offset=32,
    value_compression=variable(),
    layers=[NULLABLE],
)
# [["ab", ""], [], None, [None, "c"]]: control = rep << 2 | def; def 1 null text, 2 null, 3 empty
LISTS = page(
    bytes.fromhex("0402000000") + b"ab" + bytes.fromhex("00000000000706050001000000") + b"c",
    u16(0, 12, 13, 14, 21),
    rows=4,
    bits_rep=1,
    bits_def=2,
    bits_per_offset=32,
    value_compression=variable(),
    layers=[NULLABLE, LIST],
)


@pytest.mark.parametrize("whole", [True, False])
def test_a_page_without_levels_is_the_raw_array(whole: bool) -> None:
    assert decoded(PLAIN.decode(rows_of((0, 4)), whole=whole)) == [7, 8, 9, 10]
    assert decoded(PLAIN.decode(single_rows([0, 2, 3]), whole=whole)) == [7, 9, 10]
    assert decoded(PLAIN.decode(rows_of((1, 3)), whole=whole)) == [8, 9]
    assert decoded(PLAIN.decode(rows_of(), whole=whole)) == []


@pytest.mark.parametrize("whole", [True, False])
def test_null_leaves_of_a_fixed_width_page_have_bytes(whole: bool) -> None:
    found = FIXED.decode(rows_of((0, 3)), whole=whole)
    assert rebuild(unravel(found), decoded(found), ["leaf"]) == [7, None, 9]
    found = FIXED.decode(single_rows([1, 2]), whole=whole)
    assert rebuild(unravel(found), decoded(found), ["leaf"]) == [None, 9]


@pytest.mark.parametrize("whole", [True, False])
def test_null_texts_have_a_control_word_only(whole: bool) -> None:
    found = TEXT.decode(rows_of((0, 4)), whole=whole)
    assert texts(found) == [b"ab", b"", b"", b"xyz"]
    assert found.definition is not None
    assert found.definition.tolist() == [0, 1, 0, 0]
    assert texts(TEXT.decode(single_rows([0, 3]), whole=whole)) == [b"ab", b"xyz"]
    assert texts(TEXT.decode(rows_of(), whole=whole)) == []


@pytest.mark.parametrize("whole", [True, False])
def test_lists_of_texts(whole: bool) -> None:
    found = LISTS.decode(rows_of((0, 4)), whole=whole)
    assert texts(found) == [b"ab", b"", b"", b"c"]
    assert found.rep is not None
    assert found.rep.tolist() == [1, 0, 1, 1, 1, 0]
    assert found.definition is not None
    assert found.definition.tolist() == [0, 0, 3, 2, 1, 0]
    for row, expected in enumerate([[b"ab", b""], [], [], [b"", b"c"]]):
        assert texts(LISTS.decode(rows_of((row, row + 1)), whole=whole)) == expected


@pytest.mark.parametrize("bits", [32, 64])
def test_offsets_are_as_wide_as_the_lengths_of_the_page(bits: int) -> None:
    entries = b"".join(len(one).to_bytes(bits // 8, "little") + one for one in (b"ab", b"", b"xyz"))
    ends = (0, bits // 8 + 2, bits // 4 + 2, len(entries))
    built = page(entries, u16(*ends), rows=3, bits_per_offset=bits, value_compression=variable())
    for whole in (True, False):
        found = built.decode(rows_of((0, 3)), whole=whole)
        assert texts(found) == [b"ab", b"", b"xyz"]
        assert isinstance(found.values, VariableWidth)
        assert found.values.offsets.dtype == f"int{bits}"


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_row_index_may_have_any_width(width: int) -> None:
    index = b"".join(offset.to_bytes(width, "little") for offset in (0, 7, 8, 13, 21))
    wide = replace(TEXT, buffers=(TEXT.buffers[0], index))
    assert texts(wide.decode(rows_of((0, 4)))) == [b"ab", b"", b"", b"xyz"]


def test_item_validity_of_vectors_stands_in_front_of_each_value() -> None:
    vectors = pb.FixedSizeList(items_per_value=2, values=flat(32), has_validity=True)
    built = page(
        b"\x03" + u32(1, 2) + b"\x02" + u32(0, 4),
        rows=2,
        bits_per_value=72,
        value_compression=pb.CompressiveEncoding(fixed_size_list=vectors),
    )
    found = built.decode(rows_of((0, 2))).values
    assert isinstance(found, FixedSizeList)
    assert found.dimension == 2
    assert found.validity is not None
    assert found.validity.tolist()[0] & 0b1111 == 0b1011


def test_a_long_list_in_one_row() -> None:
    rows = [list(range(3000)), None, [5], []]
    for text in (True, False):
        built = full_zip(shred(rows, ["list", "leaf"]), text=text)
        found = built.decode(rows_of((0, 4)))
        leaves = [int(one) for one in texts(found)] if text else decoded(found)
        assert rebuild(unravel(found), leaves, ["list", "leaf"]) == rows


def test_many_rows_of_uneven_lengths() -> None:
    rows = [[i] * (i % 7) if i % 5 else None for i in range(200)]
    built = full_zip(shred(rows, ["list", "leaf"]), text=True)
    for wanted in (rows_of((0, 200)), single_rows(range(0, 200, 3)), rows_of((7, 60), (60, 90))):
        for whole in (True, False):
            found = built.decode(wanted, whole=whole)
            leaves = [int(one) for one in texts(found)]
            expected = [rows[position] for position in positions_of(wanted)]
            assert rebuild(unravel(found), leaves, ["list", "leaf"]) == expected


def test_only_the_bytes_of_the_rows_are_asked_for() -> None:
    spans = TEXT.open().spans(single_rows([0, 1, 3]))
    assert [(span.buffer, span.start, span.stop) for span in spans] == [(0, 0, 8), (0, 13, 21)]
    spans = PLAIN.open().spans(single_rows([0, 1, 3]))
    assert [(span.start, span.stop) for span in spans] == [(0, 8), (12, 16)]
    assert list(TEXT.open().spans(rows_of())) == []


# --- what is refused ------------------------------------------------------------------------------


def changed(built: Page, number: int, data: bytes) -> Page:
    buffers = list(built.buffers)
    buffers[number] = data
    return replace(built, buffers=tuple(buffers))


def with_message(built: Page, **fields: Any) -> Page:
    message = pb.FullZipLayout.FromString(built.message.SerializeToString())
    for name, value in fields.items():
        message.ClearField(name)
        if name == "layers":
            message.layers.extend(value)
        elif value is not None:
            setattr(message, name, value)
    return replace(built, message=message)


ENTRIES = TEXT.buffers[0]
REFUSED: dict[str, tuple[Page, str]] = {
    "a missing index": (replace(TEXT, buffers=(ENTRIES,)), "2 full-zip page buffers"),
    "a needless index": (replace(PLAIN, buffers=(*PLAIN.buffers, b"")), "1 full-zip page buffers"),
    "an index of another length": (changed(TEXT, 1, b"\0\7\10"), "a row index of 5"),
    "an index of odd width": (changed(TEXT, 1, bytes(15)), "a row index of 5"),
    "an index that falls": (changed(TEXT, 1, bytes([0, 9, 8, 13, 21])), "ascending row index|fit"),
    "an index that starts late": (changed(TEXT, 1, bytes([1, 7, 8, 13, 21])), "damaged"),
    "an index past the end": (changed(TEXT, 1, bytes([0, 7, 8, 13, 22])), "row index up to 21"),
    "a negative index": (changed(TEXT, 1, u64(0, 7, 2**63 + 8, 13, 21)), "damaged"),
    "an index that starts below zero": (
        changed(TEXT, 1, u64(2**64 - 8, 7, 8, 13, 21)),
        "row index",
    ),
    "17 bits of definition": (with_message(FIXED, bits_def=17), "at most 16 bits"),
    "17 bits of repetition": (with_message(LISTS, bits_rep=17), "at most 16 bits"),
    "lists without repetition": (with_message(TEXT, layers=[NULLABLE, LIST]), "repetition levels"),
    "values past the buffer": (replace(FIXED, num_rows=4), "4 values of 5 bytes"),
    "an absurd number of rows": (replace(PLAIN, num_rows=2**48), "values of 4 bytes"),
    "no value width": (with_message(PLAIN, bits_per_value=0), "whole bytes"),
    "half a byte": (with_message(PLAIN, bits_per_value=12), "whole bytes"),
    "no details": (with_message(PLAIN, bits_per_value=None), "neither"),
    "a length of 16 bits": (with_message(TEXT, bits_per_offset=16), "32 or 64 bits"),
    "a value longer than its row": (
        changed(TEXT, 0, b"\0" + u32(99) + ENTRIES[5:]),
        "end inside their row",
    ),
    "a value that wraps around": (
        with_message(
            changed(TEXT, 0, b"\0" + u32(2**32 - 1) * 2 + ENTRIES[9:]), bits_per_offset=64
        ),
        "end inside their row",
    ),
    "a level out of range": (
        with_message(changed(FIXED, 0, b"\3" + FIXED.buffers[0][1:]), bits_def=2),
        "definition levels up to 1",
    ),
    "a list that goes on at once": (
        changed(LISTS, 0, b"\0" + LISTS.buffers[0][1:]),
        "begins with a new row",
    ),
    "another value width": (with_message(PLAIN, bits_per_value=16), "flat values of 32 bits"),
    "no layers": (with_message(PLAIN, layers=[]), "at least one"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("whole", [True, False])
def test_a_damaged_page_is_refused(name: str, whole: bool) -> None:
    built, reason = REFUSED[name]
    with pytest.raises(CorruptFileError, match=reason):
        unravel(built.decode(rows_of((0, built.num_rows)), whole=whole))


@pytest.mark.parametrize("row", range(4))
def test_a_descending_index_is_refused_for_single_rows_too(row: int) -> None:
    built = changed(TEXT, 1, bytes([21, 13, 8, 7, 0]))
    with pytest.raises(CorruptFileError, match="ascending"):
        built.decode(rows_of((row, row + 1)))


def test_32_bit_control_words_above_16_bits_are_refused() -> None:
    built = page(
        u32(1 << 16) + u32(5),
        rows=1,
        bits_rep=1,
        bits_def=16,
        bits_per_value=32,
        value_compression=flat(32),
        layers=[NULLABLE],
    )
    with pytest.raises(CorruptFileError):
        replace(built, buffers=(built.buffers[0], b"\0\7")).decode(rows_of((0, 1)))


NUMBERS = from_arrow(pa.array([1, 2, 3]))
STRINGS = from_arrow(pa.array(["a", "b", "x" * 300]))
ZIPPED = {"structural-encoding": "fullzip"}
CHUNKED = {"structural-encoding": "miniblock"}


@pytest.mark.parametrize(
    ("block", "option", "version", "zipped", "chunked"),
    [
        (AllNull(3), ZIPPED, (2, 2), 0, 0),
        (Dictionary(3, NUMBERS, STRINGS), ZIPPED, (2, 2), 0, 10),
        (from_arrow(pa.array([True, False, True])), ZIPPED, (2, 2), 0, 10),
        (PackedStruct(3, (NUMBERS, NUMBERS)), ZIPPED, (2, 2), 0, 10),
        (PackedStruct(3, (NUMBERS, STRINGS)), {}, (2, 1), 0, 0),
        (PackedStruct(3, (NUMBERS, STRINGS)), {}, (2, 2), 50, 0),
        (NUMBERS, {}, (2, 2), 1, 10),
        (NUMBERS, ZIPPED, (2, 1), 50, 10),
        (NUMBERS, CHUNKED, (2, 1), 1, 50),
        (STRINGS, {}, (2, 2), 20, 10),
        (STRINGS, CHUNKED, (2, 2), 20, 50),
    ],
)
def test_layouts_answer_0_for_what_they_cannot_hold(
    block: DataBlock, option: dict[str, str], version: tuple[int, int], zipped: int, chunked: int
) -> None:
    page = LeafPage(
        Measured(block), PageLevels((1,), None, None, 3, 0, 3), options(option, version)
    )
    assert LAYOUT_ENCODERS["full_zip_layout"].nominate(page) == zipped
    assert LAYOUT_ENCODERS["mini_block_layout"].nominate(page) == chunked


@pytest.mark.parametrize(
    ("width", "layout"), [(255, "mini_block_layout"), (256, "full_zip_layout")]
)
def test_pages_with_a_wide_string_are_full_zip(width: int, layout: str) -> None:
    strings = pa.array([f"{i}" for i in range(30)] + ["x" * width])
    assert layout in page_arms(check_page(strings, options({}, (2, 2))))


@pytest.mark.parametrize(("width", "layout"), [(63, "mini_block_layout"), (64, "full_zip_layout")])
def test_wide_vectors_are_full_zip(width: int, layout: str) -> None:
    vectors = pa.array([[float(i)] * width for i in range(9)], pa.list_(pa.float32(), width))
    assert layout in page_arms(check_page(vectors, options({}, (2, 2))))


def test_the_field_may_ask_for_chunks() -> None:
    strings = pa.array([f"{i}" * 200 for i in range(30)])
    option = options({"structural-encoding": "miniblock"}, (2, 2))
    assert "mini_block_layout" in page_arms(check_page(strings, option))


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_many_numbers_that_nothing_makes_smaller_are_stored_as_they_lie(
    version: tuple[int, int],
) -> None:
    numbers = np.random.default_rng(3).integers(-(2**62), 2**62, 1 << 17)
    page = check_page(pa.array(numbers), options({}, version))
    assert "full_zip_layout" in page_arms(page)
    assert np.shares_memory(np.frombuffer(page.buffers[0], np.int64), numbers)
    with_null = pa.array(numbers, mask=np.arange(numbers.size) == 5)
    for array, option in (
        (pa.array(numbers[:1000]), {}),  # few: chunks cost nothing
        (with_null, {}),  # full-zip would put a word before every value
        (pa.array(numbers % 1000), {}),
        (pa.array(np.repeat(numbers[:100], 4000)), {}),
        (pa.array(numbers), {"structural-encoding": "miniblock"}),
        (pa.array(numbers), {"minichunk-size": "4096"}),
    ):
        assert "mini_block_layout" in page_arms(check_page(array, options(option, version)))


def test_strings_that_no_chunk_of_2_1_can_hold_are_full_zip_all_the_same() -> None:
    strings = pa.array(["x" * 40_000, "y" * 40_000, "z"])
    option = options({"structural-encoding": "miniblock", "compression": "none"}, (2, 1))
    assert "full_zip_layout" in page_arms(check_page(strings, option))


def test_bits_cannot_be_zipped() -> None:
    option = options({"structural-encoding": "fullzip"}, (2, 2))
    assert "mini_block_layout" in page_arms(check_page(pa.array([True, False] * 50), option))


def test_pages_with_nulls_are_not_compressed_by_lz4() -> None:
    strings = pa.array([None, *[f"{i} " * 200 for i in range(30)]])
    page = check_page(strings, options({"compression": "lz4"}, (2, 2)))
    general = page.layout.full_zip_layout.value_compression.general
    assert general.compression.scheme == 2  # Zstandard: pylance reads no null values of LZ4


ROWS = [[1, 2], [], None, [4, None, 5000], [], [7]]


def levels(shredded: Shredded) -> PageLevels:
    entries = shredded.entries
    rep = np.array([entry.rep for entry in entries], np.uint16)
    definition = np.array([entry.definition for entry in entries], np.uint16)
    hidden = [entry.definition for entry in entries if not entry.visible]
    return PageLevels(
        tuple(shredded.layers),
        rep if shredded.num_lists else None,
        definition if definition.any() else None,
        len(entries),
        min(hidden, default=99) - 1,
        len(shredded.rows),
    )


def slots(shredded: Shredded) -> list[int | None]:
    return [entry.value for entry in shredded.entries if entry.visible]


@pytest.fixture(params=["lists", "nulls", "plain"])
def shredded(request: pytest.FixtureRequest) -> Shredded:
    kind = request.param
    rows = ROWS if kind == "lists" else [1, None, 3] if kind == "nulls" else [1, 2, 3]
    return shred(rows, ("list", "leaf") if kind == "lists" else ("leaf",))


def test_numbers_are_zipped_as_the_format_says(shredded: Shredded) -> None:
    expected = full_zip(shredded, text=False)
    data = np.array([value or 0 for value in slots(shredded)], "<i4").view(np.uint8)
    values = CompressedValues(flat(32), FixedWidth(32, len(slots(shredded)), data))
    page = zip_page(values, levels(shredded))
    assert page is not None
    assert [bytes(buffer) for buffer in page.buffers] == list(expected.buffers)
    assert page.layout.full_zip_layout == expected.message


@pytest.mark.parametrize("under_nulls", [b"", b"junk"])
def test_strings_are_zipped_as_the_format_says(shredded: Shredded, under_nulls: bytes) -> None:
    expected = full_zip(shredded, text=True)
    texts = [under_nulls if value is None else str(value).encode() for value in slots(shredded)]
    ends = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int32)
    joined = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    values = CompressedValues(variable(), VariableWidth(len(texts), ends, joined))
    page = zip_page(values, levels(shredded))
    assert page is not None
    assert [bytes(buffer) for buffer in page.buffers] == list(expected.buffers)
    assert page.layout.full_zip_layout == expected.message


@pytest.mark.parametrize(("num_entries", "fits"), [(2**32 - 1, True), (2**32, False)])
def test_a_page_of_more_entries_than_the_format_counts_is_not_zipped(
    num_entries: int, fits: bool
) -> None:
    values = CompressedValues(flat(32), FixedWidth(32, 0, np.zeros(0, np.uint8)))
    page = zip_page(values, PageLevels((1,), None, None, num_entries, 0, num_entries))
    assert (page is not None) == fits


@pytest.mark.parametrize(
    ("total", "width"),
    [(255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8)],
)
def test_the_row_index_has_the_narrowest_integers_that_hold_its_end(total: int, width: int) -> None:
    found = _row_index(np.array([0, 7, total]), PageLevels((1,), None, None, 2, 0, 2))
    assert found.view(f"<u{width}").tolist() == [0, 7, total]
