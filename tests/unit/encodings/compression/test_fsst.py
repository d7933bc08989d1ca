"""FSST: strings as codes of a symbol table."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import FixedWidth, VariableWidth
from lance_nb.encodings.compression import fsst as fsst_codec
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    flat,
    fsst,
    strings,
    symbol_table,
    variable_block,
    variable_chunk,
)
from tests.support.compiled_forms import Form, forced
from tests.support.compressing import V2_2, by_value, in_chunks, measured

SYMBOLS = [b"http://", b"www.", b".com", b"e", b"exactly8"]
TABLE = symbol_table(SYMBOLS)


@pytest.fixture(params=[Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"], autouse=True)
def kernel(request: pytest.FixtureRequest):
    with forced(request.param):
        yield


def decoded(*codes: bytes, table: bytes = TABLE) -> list[bytes]:
    chunks = chunks_of([[variable_chunk(codes)]], [len(codes)])
    return strings(codecs.decode_chunks(fsst(table), chunks))


def test_the_header_is_the_one_pylance_writes() -> None:
    assert symbol_table([b"a"] * 255)[1:8] == bytes.fromhex("00 01 01 54 53 53 46")
    assert symbol_table([b"a"] * 255)[0] == 0xFF


def test_codes_become_symbols() -> None:
    assert decoded(bytes([0, 1, 4, 2]), b"", bytes([3])) == [
        b"http://www.exactly8.com",
        b"",
        b"e",
    ]


def test_escapes_stand_for_the_byte_behind_them() -> None:
    assert decoded(bytes([255, 0x7A, 3, 255, 3])) == [b"ze\x03"]


def test_runs_of_255_alternate_between_escape_and_literal() -> None:
    assert decoded(bytes([255] * 6), bytes([3, 255, 255]), bytes([255, 255, 255, 65])) == [
        b"\xff\xff\xff",
        b"e\xff",
        b"\xffA",
    ]


@pytest.mark.parametrize(
    "codes",
    [
        (bytes([255]),),
        (bytes([3, 255]), bytes([3])),
        (bytes([255, 255, 255]), bytes([255, 3])),
        (bytes([3]), bytes([255, 255, 255])),
    ],
)
def test_an_escape_at_the_end_of_a_value_is_refused(codes: tuple[bytes, ...]) -> None:
    with pytest.raises(CorruptFileError, match="escape"):
        decoded(*codes)


@pytest.mark.parametrize("codes", [bytes([5]), bytes([3, 254]), bytes([255, 7, 200])])
def test_a_code_without_a_symbol_is_refused(codes: bytes) -> None:
    with pytest.raises(CorruptFileError, match="codes below 5"):
        decoded(codes)


def test_bytes_behind_a_symbol_do_not_leak_into_the_text() -> None:
    table = bytearray(symbol_table([b"ab", b"c"]))
    table[8 + 2 : 8 + 8] = b"GARBAG"
    assert decoded(bytes([0, 1, 0]), table=bytes(table)) == [b"abcab"]


def test_a_table_without_symbols_has_literals_only() -> None:
    table = symbol_table([])
    assert decoded(bytes([255, 65, 255, 255]), b"", table=table) == [b"A\xff", b""]
    with pytest.raises(CorruptFileError):
        decoded(bytes([0]), table=table)


def test_many_codes_take_the_same_path_to_the_same_text() -> None:
    values = [bytes([i % 5]) * (i % 7) for i in range(200_000)]
    expected = [SYMBOLS[i % 5] * (i % 7) for i in range(200_000)]
    assert decoded(*values) == expected


def test_blocks_and_single_values_are_decoded_too() -> None:
    raw = variable_block([bytes([0]), bytes([255, 33])])
    assert strings(codecs.decode_blocks(fsst(TABLE), chunks_of([[raw]], [2]))) == [b"http://", b"!"]
    offsets = np.array([0, 1, 3], np.int64)
    values = VariableWidth(2, offsets, np.frombuffer(bytes([0, 255, 33]), np.uint8))
    block = codecs.decode_values(fsst(TABLE), values)
    assert strings(block) == [b"http://", b"!"]
    assert block.offsets.dtype == np.int64


def test_with_the_switch_off_bytes_are_left_alone() -> None:
    assert decoded(b"\xff", b"plain", table=symbol_table(SYMBOLS, on=False)) == [b"\xff", b"plain"]


@pytest.mark.parametrize(
    "table",
    [
        b"",
        TABLE[:-1],
        TABLE + b"\0",
        bytes(2312),
        struct.pack("<Q", 0x46535354 << 32 | 1 << 24 | 3).ljust(2312, b"\0"),  # lengths of 0
        symbol_table([b"a", b"b"]).replace(b"\1\1", b"\1\x09"),
    ],
)
def test_a_broken_symbol_table_is_refused(table: bytes) -> None:
    with pytest.raises(CorruptFileError, match="FSST"):
        decoded(b"", table=table)


def test_codes_of_fixed_width_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="variable width"):
        codecs.decode_values(fsst(TABLE, flat(8)), FixedWidth(8, 1, np.zeros(1, np.uint8)))


FSST = codec_of("fsst")
TEXTS = [f"the quick brown fox jumps over dog {i}" for i in range(2000)]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_binary()])
def test_text_comes_back(type_: pa.DataType) -> None:
    encoding, _ = in_chunks("fsst", measured(TEXTS, type_))
    assert len(encoding.fsst.symbol_table) == 2312
    assert encoding.fsst.values.WhichOneof("compression") == "variable"
    by_value("fsst", measured(TEXTS, type_))


def test_it_is_chosen_for_repetitive_text_only() -> None:
    assert FSST.nominate_chunks(measured(TEXTS), V2_2) > 300
    assert FSST.nominate_values(measured(TEXTS), V2_2)
    rng = np.random.default_rng(1)
    random = [rng.bytes(20) for _ in range(3000)]
    for values in (TEXTS[:100], ["abcd"] * 20_000, random):
        assert not FSST.nominate_chunks(measured(values), V2_2)
    assert not FSST.nominate_chunks(measured([1, 2]), V2_2)


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
def test_another_codec_of_the_field_goes_first(codec: str) -> None:
    options = EncodingOptions(file_version=(2, 2), compression=codec)
    assert not FSST.nominate_chunks(measured(TEXTS), options)


def test_texts_whose_codes_may_need_longer_offsets_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fsst_codec, "_INT32_MAX", 1000)

    assert not FSST.nominate_chunks(measured(TEXTS), V2_2)
    assert FSST.nominate_chunks(measured(TEXTS, pa.large_string()), V2_2)
