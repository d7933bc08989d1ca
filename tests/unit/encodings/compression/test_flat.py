"""Flat: values as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    FixedWidth,
    ValuePlaces,
    VariableWidth,
    single_chunk,
)
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import booleans, chunks_of, flat, integers
from tests.support.compressing import V2_2, by_value, in_blocks, in_chunks, measured


def test_chunks_of_int32_are_joined() -> None:
    raw = bytes.fromhex("01000000 02000000 04000000 88130000")
    block = codecs.decode_chunks(flat(32), chunks_of([[raw[:8]], [raw[8:]]], [2, 2]))
    assert integers(block) == [1, 2, 4, 5000]


def test_padding_behind_the_values_is_left_out() -> None:
    block = codecs.decode_chunks(flat(16), chunks_of([[b"\1\0\2\0\xfe\xfe"], [b"\3\0"]], [2, 1]))
    assert integers(block) == [1, 2, 3]


def test_bits_of_whole_byte_chunks_stay_a_bitmap() -> None:
    block = codecs.decode_chunks(flat(1), chunks_of([[b"\x0f"], [b"\x05"]], [8, 3]))
    assert (block.num_values, block.data.tobytes()) == (11, b"\x0f\x05")


def test_bits_of_odd_chunks_are_joined_without_a_gap() -> None:
    block = codecs.decode_chunks(flat(1), chunks_of([[b"\xff\x01"], [b"\xfe"]], [9, 3]))
    assert booleans(block.data, 12) == [True] * 9 + [False, True, True]


@pytest.mark.parametrize("bits", [8, 24, 128, 256, 320])
def test_any_whole_number_of_bytes_is_a_width(bits: int) -> None:
    raw = bytes(range(5 * bits // 8))
    block = codecs.decode_blocks(flat(bits), single_chunk(5, np.frombuffer(raw, np.uint8)))
    assert (block.bits_per_value, block.num_values, block.data.tobytes()) == (bits, 5, raw)


def test_no_chunk_at_all_is_no_value() -> None:
    empty = codecs.decode_chunks(flat(64), chunks_of([[b""]], [0]))
    assert (empty.num_values, empty.data.size) == (0, 0)


def test_values_stored_one_by_one_are_handed_on_uncopied() -> None:
    values = FixedWidth(24, 2, np.arange(6, dtype=np.uint8))
    assert codecs.decode_values(flat(24), values) is values


@pytest.mark.parametrize("bits", [0, 2, 7, 12, 2**40])
def test_an_odd_width_is_refused(bits: int) -> None:
    with pytest.raises(CorruptFileError, match="width"):
        codecs.decode_chunks(flat(bits), chunks_of([[b"1234"]], [1]))


@pytest.mark.parametrize("count", [3, 2**40, 2**62])
def test_a_chunk_too_short_for_its_values_is_refused(count: int) -> None:
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(flat(32), chunks_of([[b"12345678"]], [count]))


def test_values_of_another_width_are_refused() -> None:
    offsets = np.zeros(1, np.int32)
    for values in (
        FixedWidth(16, 1, np.zeros(2, np.uint8)),
        VariableWidth(0, offsets, np.zeros(0, np.uint8)),
    ):
        with pytest.raises(CorruptFileError, match="flat values of 32 bits"):
            codecs.decode_values(flat(32), values)


def test_compression_inside_the_message_is_refused() -> None:
    encoding = flat(32)
    encoding.flat.data.scheme = 1
    with pytest.raises(NotSupportedError, match="buffer compression"):
        codecs.decode_chunks(encoding, chunks_of([[b"1234"]], [1]))


@pytest.mark.parametrize(
    ("bits", "position", "size"), [(1, 7, 1), (1, 8, 2), (1, 15, 2), (8, 3, 4), (24, 1, 6)]
)
def test_a_value_that_is_fetched_lies_in_its_chunk(bits: int, position: int, size: int) -> None:
    wanted = ValuePlaces(np.array([0]), np.array([position]))
    data = np.full(64, 255, np.uint8)
    for short in (0, 1):
        buffer = ChunkBuffer(data, np.array([3]), np.array([size - short]))
        chunks = Chunks((buffer,), np.array([position + 1]))
        if short:
            with pytest.raises(CorruptFileError, match=f"{bits}-bit values"):
                codecs.gather(flat(bits), chunks, wanted)
        else:
            assert codecs.gather(flat(bits), chunks, wanted).num_values == 1


FLAT = codec_of("flat")


@pytest.mark.parametrize(
    ("type_", "counts"),
    [(pa.int8(), [4096, 904]), (pa.int64(), [512] * 9 + [392]), (pa.bool_(), [4096, 904])],
)
def test_chunks_hold_a_power_of_two(type_: pa.DataType, counts: list[int]) -> None:
    values = [i % 2 for i in range(5000)]
    encoding, found = in_chunks("flat", measured(pa.array(values).cast(type_)))
    assert found == counts
    assert encoding.flat.bits_per_value == type_.bit_width


def test_very_wide_values_go_two_by_two() -> None:
    assert in_chunks("flat", measured([b"x" * 9000] * 5, pa.binary(9000)))[1] == [2, 2, 1]


def test_blocks_are_the_values() -> None:
    _, blocks = in_blocks("flat", measured([1, 2, 3], pa.uint16()), [1, 2])
    assert blocks == [b"\1\0", b"\2\0\3\0"]


def test_single_values_are_not_copied() -> None:
    by_value("flat", measured([1, 2], pa.int32()))


def test_strings_are_for_others() -> None:
    assert not FLAT.nominate_chunks(measured(["a"]), V2_2)
    assert not FLAT.nominate_values(measured([True]), V2_2)
