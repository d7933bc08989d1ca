"""Which compressor offers itself for which values: exactly those that it can store."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import AllNull
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import compressors
from lance_nb.encodings.registry import CODECS, codec_of
from lance_nb.encodings.statistics import LAST_RESORT, STRUCTURAL, WRAPPER, Measured, saving
from lance_nb.errors import NotSupportedError
from tests.conformance.codec_tests import options, page_arms
from tests.support.compressing import V2_1, V2_2, measured
from tests.support.encoded_files import encode_column
from tests.support.leaf_values import make

ZSTD = EncodingOptions(file_version=(2, 2), compression="zstd")
COUNT = 2000
BLOCKS = {
    "numbers": measured(np.arange(COUNT) % 50),
    "runs": measured(np.arange(COUNT) // 500 << 60),
    "three bytes": measured([b"abc"] * COUNT, pa.binary(3)),
    "bits": measured([True, False] * (COUNT // 2)),
    "text": measured(["some words"] * COUNT),
    "much text": measured([f"some words {n % 700} more" for n in range(COUNT)]),
    "lists": measured([[1, 2]] * COUNT, pa.list_(pa.int8(), 2)),
    "lists of bits": measured([[True, False]] * COUNT, pa.list_(pa.bool_(), 2)),
    "struct": measured([{"a": 1}] * COUNT, pa.struct([("a", pa.int8())])),
    "struct with text": measured([{"a": "x"}] * COUNT, pa.struct([("a", pa.string())])),
    "struct with bits": measured([{"a": True}] * COUNT, pa.struct([("a", pa.bool_())])),
    "nulls": Measured(AllNull(COUNT)),
}
# Bytes of 2000 numbers, of two blocks of 6 bits with their widths and without, of 4 runs (and 7
# that long ones may be cut into), behind a length where they are a block.
PLAIN_CHOSEN, INLINE, PACKED = 2000 * 8, 2 * (6 * 128 + 8), 2 * 6 * 128
RUNS, RUN_BLOCK = (4 + 7) * 9, (4 + 7 + 1) * 9 + 8
FIXED = ("numbers", "runs", "three bytes", "bits")
TEXTS = ("text", "much text")
# The exact priority, or None for a saving, whichever.
TAKEN: dict[str, dict[str, int | None]] = {
    "flat chunks": dict.fromkeys(FIXED, LAST_RESORT),
    "flat blocks": dict.fromkeys(FIXED, LAST_RESORT),
    "flat values": dict.fromkeys(("numbers", "runs", "three bytes"), LAST_RESORT),
    "variable chunks": dict.fromkeys(TEXTS, LAST_RESORT),
    "variable blocks": dict.fromkeys(TEXTS, LAST_RESORT),
    "variable values": dict.fromkeys(TEXTS, LAST_RESORT),
    "out_of_line_bitpacking blocks": {
        "numbers": saving(PLAIN_CHOSEN, PACKED),
        "runs": saving(PLAIN_CHOSEN, 62 * 128 + 976 * 8),
    },
    "inline_bitpacking chunks": {"numbers": saving(PLAIN_CHOSEN, INLINE)},
    "inline_bitpacking blocks": {},
    "fsst chunks": {"much text": None},
    "fsst values": {"much text": None},
    "rle chunks": {"runs": saving(PLAIN_CHOSEN, RUNS)},
    "rle blocks": {"runs": saving(PLAIN_CHOSEN, RUN_BLOCK)},
    "byte_stream_split chunks": {},
    "general chunks": {},
    "general blocks": {},
    "general values": {},
    "fixed_size_list chunks": dict.fromkeys(("lists", "lists of bits"), STRUCTURAL),
    "fixed_size_list values": {"lists": STRUCTURAL},
    "packed_struct chunks": {"struct": STRUCTURAL},
    "variable_packed_struct values": dict.fromkeys(("struct", "struct with text"), STRUCTURAL),
}
IN_2_1 = TAKEN | {"rle blocks": {}, "variable_packed_struct values": {}}
IN_ZSTD = {
    "general chunks": dict.fromkeys(("numbers", "runs", "three bytes", *TEXTS), WRAPPER),
    "general blocks": dict.fromkeys(BLOCKS, WRAPPER),
    "general values": dict.fromkeys(TEXTS, WRAPPER),
}


def nominate(who: str, block: Measured, options: EncodingOptions) -> int:
    name, role = who.split()
    ask = getattr(codec_of(name), f"nominate_{role}")
    return ask(block, np.array([COUNT]), options) if role == "blocks" else ask(block, options)


def test_every_role_of_every_compressor_is_in_the_table() -> None:
    roles = [
        f"{arm} {role}"
        for arm in CODECS
        for role in ("chunks", "blocks", "values")
        if codec_of(arm).has(f"nominate_{role}")
    ]
    assert sorted(roles) == sorted(TAKEN)


@pytest.mark.parametrize(
    ("options", "table"),
    [(V2_2, TAKEN), (V2_1, IN_2_1), (ZSTD, IN_ZSTD)],
    ids=["2.2", "2.1", "zstd"],
)
def test_compressors_offer_themselves_for_what_they_can_store(
    options: EncodingOptions, table: dict[str, dict[str, int | None]]
) -> None:
    for who, taken in table.items():
        for name, block in BLOCKS.items():
            found = nominate(who, block, options)
            wanted = taken.get(name, 0)
            if wanted is None:  # a saving
                assert LAST_RESORT < found < WRAPPER - 1, (who, name)
            else:
                assert found == wanted, (who, name)


@pytest.mark.parametrize("who", [name for name in TAKEN if name.endswith("blocks")])
def test_no_values_are_for_the_last_resorts(who: str) -> None:
    nothing = measured([], pa.int32())
    codec = codec_of(who.partition(" ")[0])
    found = codec.nominate_blocks(nothing, np.array([0]), V2_2)
    assert found == LAST_RESORT * (who == "flat blocks")


@pytest.mark.parametrize("count", [1, 1024, 1025])
def test_only_one_block_is_packed_with_its_width_in_front(count: int) -> None:
    packing, values = codec_of("inline_bitpacking"), measured(np.arange(count) % 50)
    fits = 10 < count <= 1024
    assert bool(packing.nominate_blocks(values, np.array([count]), V2_2)) == fits
    halves = np.array([count // 2, count - count // 2])
    assert not packing.nominate_blocks(values, halves, V2_2)


@pytest.mark.parametrize(("bits", "taken"), [(6, True), (7, True), (8, False)])
def test_bits_are_packed_where_a_tenth_is_saved(bits: int, taken: bool) -> None:
    values = np.full(8192, (1 << bits) - 1, np.uint8)
    assert bool(codec_of("inline_bitpacking").nominate_chunks(measured(values), V2_2)) == taken


def test_strings_of_several_blocks_are_not_a_dictionary() -> None:
    halves = np.array([COUNT // 2] * 2)
    variable = codec_of("variable")
    assert not variable.nominate_blocks(BLOCKS["text"], halves, V2_2)


@pytest.mark.parametrize(
    ("kind", "arms"),
    [
        ("int64, all bits", {"mini_block_layout", "flat"}),
        ("int64, ten bits", {"mini_block_layout", "inline_bitpacking"}),
        ("int64, ascending", {"mini_block_layout", "inline_bitpacking"}),
        ("int64, one", {"constant_layout"}),
        ("int32, runs", {"mini_block_layout", "rle", "flat"}),
        ("float64", {"mini_block_layout", "flat"}),
        ("bool", {"mini_block_layout", "flat"}),
        ("string, empty", {"constant_layout"}),
        ("string, words", {"mini_block_layout", "fsst", "variable", "flat"}),
        ("binary, random", {"mini_block_layout", "variable", "flat"}),
        ("list of 4 float32", {"mini_block_layout", "fixed_size_list", "flat"}),
        ("list of 64 float32", {"full_zip_layout", "fixed_size_list", "flat"}),
        ("null", {"constant_layout"}),
    ],
)
def test_the_codec_fits_the_values(kind: str, arms: set[str]) -> None:
    assert page_arms(encode_column(make(kind, 3000), options({}, (2, 2)))) == arms


def test_few_strings_are_a_dictionary_compressed_from_2_2_on() -> None:
    old = encode_column(make("string, few", 3000), options({}, (2, 1)))
    assert page_arms(old) == {"mini_block_layout", "inline_bitpacking", "variable", "flat"}
    strings = pa.array([f"a rather long item {i % 50}" for i in range(3000)])
    new = encode_column(strings, options({}, (2, 2)))
    assert "general" in page_arms(new)


def test_nulls_are_packed_bits() -> None:
    page = encode_column(make("int64, all bits", 3000, 0.2), options({}, (2, 2)))
    assert page.layout.mini_block_layout.def_compression.HasField("out_of_line_bitpacking")


@pytest.mark.parametrize(
    ("option", "arms"),
    [
        ({"compression": "none"}, {"mini_block_layout", "flat"}),
        ({"compression": "zstd"}, {"mini_block_layout", "general", "inline_bitpacking"}),
        (
            {"compression": "lz4", "bss": "on"},
            {"mini_block_layout", "general", "byte_stream_split", "flat"},
        ),
        ({"structural-encoding": "fullzip"}, {"full_zip_layout", "flat"}),
    ],
)
def test_options_are_honoured(option: dict[str, str], arms: set[str]) -> None:
    column = make("int64, ascending", 3000)
    assert page_arms(encode_column(column, options(option, (2, 2)))) == arms


def test_the_threshold_of_runs_is_honoured() -> None:
    column = make("int32, runs", 3000)
    few = encode_column(column, options({"rle-threshold": "0.0"}, (2, 2)))
    assert "rle" not in page_arms(few)


def test_a_smaller_chunk_is_asked_for() -> None:
    column = make("int64, all bits", 4096)
    page = encode_column(column, options({"minichunk-size": "1024"}, (2, 2)))
    assert len(page.buffers[0]) // 4 == 4096 * 8 // 1024


def test_blocks_that_nothing_takes_are_refused_by_name() -> None:
    with pytest.raises(NotSupportedError, match="AllNull"):
        compressors.compress_chunks(Measured(AllNull(3)), EncodingOptions(file_version=(2, 2)))
