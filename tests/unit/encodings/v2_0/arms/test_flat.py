from __future__ import annotations

import struct

import lz4.block
import pyarrow as pa
import pytest
import zstandard

from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.array_pages import decode, decode_values, flat
from tests.support.reading import rows_of

NUMBERS = struct.pack("<5i", 7, -1, 0, 2_000_000_000, 5)
BITS = bytes([0b1010_0110, 0b0000_0011])  # 10 values, lowest bit first
BOOLS = [False, True, True, False, False, True, False, True, True, True]


def test_values_are_read_where_they_lie() -> None:
    assert decode(flat(32), [NUMBERS], pa.int32(), (0, 5)) == [7, -1, 0, 2_000_000_000, 5]
    assert decode(flat(32), [NUMBERS], pa.int32(), (1, 2), (3, 5)) == [-1, 2_000_000_000, 5]
    assert decode(flat(32), [NUMBERS], pa.int32()) == []


def test_only_the_bytes_of_the_rows_are_asked_for() -> None:
    _, asked = decode_values(flat(32), [NUMBERS], rows_of((1, 2), (4, 5)), mapped=False)

    assert asked == 8


def test_one_bit_per_value_is_a_bitmap() -> None:
    assert decode(flat(1), [BITS], pa.bool_(), (0, 10)) == BOOLS
    assert decode(flat(1), [BITS], pa.bool_(), (3, 6)) == BOOLS[3:6]
    picked = decode(flat(1), [BITS], pa.bool_(), (0, 1), (2, 3), (5, 6), (9, 10))
    assert picked == [False, True, True, True]


def test_the_buffer_number_chooses_the_buffer() -> None:
    assert decode(flat(8, 1), [b"xyz", b"\x05\x06"], pa.uint8(), (0, 2)) == [5, 6]


@pytest.mark.parametrize(
    ("scheme", "packed"),
    [
        ("zstd", zstandard.ZstdCompressor().compress(NUMBERS)),
        ("zstd", struct.pack("<Q", 20) + zstandard.ZstdCompressor().compress(NUMBERS)),
        ("lz4", lz4.block.compress(NUMBERS)),
        ("none", NUMBERS),
        ("", NUMBERS),
    ],
)
def test_a_buffer_may_be_compressed_as_a_whole(scheme: str, packed: bytes) -> None:
    encoding = flat(32, scheme=scheme)

    assert decode(encoding, [packed], pa.int32(), (0, 5)) == [7, -1, 0, 2_000_000_000, 5]
    assert decode(encoding, [packed], pa.int32(), (0, 1), (4, 5)) == [7, 5]
    assert decode(encoding, [packed], pa.int32()) == []


def test_a_compressed_bitmap_is_cut_to_its_values() -> None:
    packed = zstandard.ZstdCompressor().compress(BITS)

    assert decode(flat(1, scheme="zstd"), [packed], pa.bool_(), (2, 9)) == BOOLS[2:9]


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(NotSupportedError, match="snappy"):
        decode(flat(32, scheme="snappy"), [NUMBERS], pa.int32(), (0, 1))


@pytest.mark.parametrize("rows", [(0, 6), (5, 6), (0, 1 << 47)])
def test_rows_behind_the_buffer_are_refused(rows: tuple[int, int]) -> None:
    with pytest.raises(CorruptFileError):
        decode(flat(32), [NUMBERS], pa.int32(), rows)


@pytest.mark.parametrize(
    ("last", "reason"),
    [(1 << 54, "at most"), (1 << 60, "at most"), ((1 << 54) - 1, "bytes")],
)
def test_positions_beyond_what_can_be_counted_are_refused(last: int, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason) as caught:
        decode(flat(64), [NUMBERS], pa.int64(), (0, 1), (last - 1, last))
    assert ("at most" in str(caught.value)) == (reason == "at most")


@pytest.mark.parametrize("bits", [0, 3, 12, 1 << 60])
def test_odd_widths_are_refused(bits: int) -> None:
    with pytest.raises(CorruptFileError):
        decode(flat(bits), [NUMBERS], pa.int32(), (0, 1))


@pytest.mark.parametrize("packed", [b"", b"\x28\xb5\x2f\xfd", b"garbage that is not zstd"])
def test_broken_compression_is_refused(packed: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode(flat(32, scheme="zstd"), [packed], pa.int32(), (0, 1))


@pytest.mark.parametrize(("bits", "rows"), [(32, 6), (1, 161)])
def test_a_compressed_buffer_that_is_too_short_is_refused(bits: int, rows: int) -> None:
    encoding = flat(bits, scheme="zstd")
    packed = zstandard.ZstdCompressor().compress(NUMBERS)
    kind = pa.bool_() if bits == 1 else pa.int32()

    assert len(decode(encoding, [packed], kind, (0, rows - 1))) == rows - 1
    with pytest.raises(CorruptFileError, match=r"2[14] bytes of decompressed values"):
        decode(encoding, [packed], kind, (0, rows))


def test_a_missing_buffer_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="below 1"):
        decode(flat(32, 1), [NUMBERS], pa.int32(), (0, 1))
