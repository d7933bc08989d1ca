from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import decode, flat, some_nulls


def bitpacked(width: int, word: int, *, signed: bool = False) -> pb.ArrayEncoding:
    message = pb.Bitpacked(
        compressed_bits_per_value=width,
        uncompressed_bits_per_value=word,
        buffer=pb.Buffer(),
        signed=signed,
    )
    return pb.ArrayEncoding(bitpacked=message)


def stream(values: list[int], width: int) -> bytes:
    """Write the low bits of each number, one after the other, as one huge number."""
    number = sum((value & ((1 << width) - 1)) << (i * width) for i, value in enumerate(values))
    return number.to_bytes((len(values) * width + 7) // 8, "little")


def test_three_bits_per_value_by_hand() -> None:
    # 1, 2, 7, 4, 5: 001 010 111 100 101 from the lowest bit on
    data = bytes([0b11_010_001, 0b0_101_100_1])

    assert decode(bitpacked(3, 16), [data], pa.int16(), (0, 5)) == [1, 2, 7, 4, 5]
    assert decode(bitpacked(3, 16), [data], pa.int16(), (2, 3), (4, 5)) == [7, 5]
    assert decode(bitpacked(3, 16), [data], pa.int16()) == []


def test_the_highest_bit_may_be_a_sign() -> None:
    # 1, 2, -7: 0001 0010 1001
    data = bytes([0b0010_0001, 0b1001])

    assert decode(bitpacked(4, 32, signed=True), [data], pa.int32(), (0, 3)) == [1, 2, -7]


@pytest.mark.parametrize("word", [8, 16, 32, 64])
def test_every_width_reads(word: int) -> None:
    rng = np.random.default_rng(word)
    for width in range(1, word + 1):
        values = (
            [int(one) for one in rng.integers(0, 1 << width, 50, np.uint64, endpoint=False)]
            if (width < 64)
            else [int(one) for one in rng.integers(0, 1 << 63, 50, np.uint64)]
        )
        kind = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[word]
        data = stream(values, width)
        assert decode(bitpacked(width, word), [data], kind, (0, 50)) == values
        assert decode(bitpacked(width, word), [data], kind, (7, 9), (49, 50)) == [
            *values[7:9],
            values[49],
        ]


@pytest.mark.parametrize("word", [8, 16, 32, 64])
def test_every_signed_width_reads(word: int) -> None:
    rng = np.random.default_rng(word)
    for width in range(2, word + 1):
        half = 1 << (width - 1)
        values = [int(one) for one in rng.integers(-half, half - 1, 30, endpoint=True)]
        kind = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[word]
        encoding = bitpacked(width, word, signed=True)
        assert decode(encoding, [stream(values, width)], kind, (0, 30)) == values


def test_nulls_are_beside() -> None:
    encoding = some_nulls(flat(1, 1), bitpacked(3, 8))

    found = decode(encoding, [stream([1, 0, 5], 3), b"\x05"], pa.int8(), (0, 3))
    assert found == [1, None, 5]


@pytest.mark.parametrize(("width", "word"), [(0, 8), (9, 8), (65, 64), (3, 24), (1 << 63, 64)])
def test_widths_that_cannot_be_are_refused(width: int, word: int) -> None:
    with pytest.raises(CorruptFileError):
        decode(bitpacked(width, word), [bytes(100)], pa.int8(), (0, 1))


def test_rows_behind_the_buffer_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(bitpacked(3, 8), [bytes(2)], pa.int8(), (0, 6))
