from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import decode, decode_values, flat, some_nulls
from tests.support.reading import rows_of

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)


def bitpacked(width: int, word: int) -> pb.ArrayEncoding:
    message = pb.BitpackedForNonNeg(
        compressed_bits_per_value=width, uncompressed_bits_per_value=word, buffer=pb.Buffer()
    )
    return pb.ArrayEncoding(bitpacked_for_non_neg=message)


def packed(values: list[int], width: int, word: int) -> bytes:
    """Pack blocks of 1024 values bit by bit, as the format describes it."""
    out = b""
    lanes = 1024 // word
    for first in range(0, len(values), 1024):
        block = values[first : first + 1024]
        block += [0] * (1024 - len(block))
        words = [0] * (1024 * width // word)
        for row in range(word):
            for lane in range(lanes):
                value = block[ORDER[row // 8] * 16 + row % 8 * 128 + lane]
                for bit in range(width):
                    at = row * width + bit
                    words[at // word * lanes + lane] |= (value >> bit & 1) << at % word
        out += np.array(words, f"<u{word // 8}").tobytes()
    return out


@pytest.mark.parametrize(("width", "word"), [(1, 8), (3, 8), (5, 16), (7, 32), (11, 64), (16, 16)])
def test_blocks_are_unpacked_and_cut(width: int, word: int) -> None:
    values = [(i * 37 + 5) % (1 << width) for i in range(1500)]
    data = packed(values, width, word)
    kind = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[word]

    assert decode(bitpacked(width, word), [data], kind, (0, 1500)) == values
    assert decode(bitpacked(width, word), [data], kind, (3, 5), (1022, 1026), (1499, 1500)) == [
        *values[3:5],
        *values[1022:1026],
        values[1499],
    ]
    assert decode(bitpacked(width, word), [data], kind) == []


def test_the_first_words_are_those_of_the_reference() -> None:
    # (i * 37 + 5) % 4 in 2 of 8 bits, a vector taken from a file of pylance
    values = [(i * 37 + 5) % 4 for i in range(1024)]

    assert packed(values, 2, 8)[:8].hex() == "55aaff0055aaff00"


def test_only_the_blocks_of_the_rows_are_asked_for() -> None:
    data = packed([1] * 4096, 3, 32)

    _, asked = decode_values(bitpacked(3, 32), [data], rows_of((2000, 2001)), mapped=False)
    assert asked == 3 * 128


def test_nulls_are_beside() -> None:
    encoding = some_nulls(flat(1, 1), bitpacked(3, 32))

    found = decode(encoding, [packed([1, 0, 5], 3, 32), b"\x05"], pa.int32(), (0, 3))
    assert found == [1, None, 5]


@pytest.mark.parametrize(("width", "word"), [(0, 8), (9, 8), (3, 24), (1 << 62, 64)])
def test_widths_that_cannot_be_are_refused(width: int, word: int) -> None:
    with pytest.raises(CorruptFileError):
        decode(bitpacked(width, word), [bytes(4096)], pa.int8(), (0, 1))


def test_a_short_block_is_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(bitpacked(3, 8), [bytes(383)], pa.int8(), (0, 1))
