"""The compiled loops, run here as the plain Python that they are."""

from __future__ import annotations

import numpy as np

from lance_nb.encodings.kernels import bitpack, loops
from tests.property.encodings.reference_encoders import pack_block

SYMBOLS = np.zeros(256, np.uint64)
SYMBOLS[:2] = [int.from_bytes(b"abc", "little"), int.from_bytes(b"d", "little")]
LENGTHS = np.zeros(256, np.uint8)
LENGTHS[:2] = [3, 1]


def measured(codes: list[int], offsets: list[int], *, escaped: bool) -> tuple[bool, list[int]]:
    out = np.zeros(len(offsets), np.int64)
    loop = loops.measure_escaped_fsst if escaped else loops.measure_fsst
    scratch = np.zeros(3, np.uint64)  # tiny, so that stretches end inside values
    broken = loop(np.array(codes, np.uint8), np.array(offsets), LENGTHS, scratch, out)
    return bool(broken), out.tolist()


def test_values_are_measured() -> None:
    codes, offsets = [0, 1, 1, 0, 1], [0, 2, 2, 5]
    assert measured(codes, offsets, escaped=False) == (False, [0, 4, 4, 9])
    assert measured(codes, offsets, escaped=True) == (False, [0, 4, 4, 9])


def test_escapes_are_measured_and_checked() -> None:
    assert measured([255, 255, 0, 255, 7], [0, 2, 3, 5], escaped=True) == (False, [0, 1, 4, 5])
    assert measured([0, 255, 7], [0, 2, 3], escaped=True)[0]
    assert measured([0, 255], [0, 2], escaped=True)[0]
    assert measured([0, 9], [0, 2], escaped=True)[0]


def test_symbols_are_written_as_whole_words() -> None:
    out = np.zeros(20, np.uint8)
    windows = np.ndarray((13,), np.uint64, out.data, 0, (1,))
    lengths = LENGTHS.copy()
    lengths[255] = 1
    loops.decode_fsst(np.array([0, 255, 90, 1], np.uint8), SYMBOLS, lengths, windows)
    assert out[:5].tobytes() == b"abcZd"


def test_bits_are_unpacked() -> None:
    values = [i % 32 for i in range(1024)]
    words = np.frombuffer(pack_block(values, 8, 5), np.uint8)
    out = np.zeros(1024, np.uint8)
    order = bitpack._first_values(8).astype(np.uint64)
    loops.unpack_bits(words, np.zeros(1, np.uint64), np.uint64(5), order, out)
    assert out.tolist() == values
