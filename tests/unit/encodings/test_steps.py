from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import Bytes, Ints
from lance_nb.encodings.steps import (
    Region,
    Steps,
    aligned,
    read_all,
    read_bits,
    read_ranges,
    together,
)
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import run

DATA = bytes(range(100))


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def two_rounds(first: int) -> Steps[bytes]:
    (pointer,) = yield [(first, first + 1)]
    target = int(pointer[0])
    (found,) = yield [(target, target + 2)]
    return bytes(found)


def at_once() -> Steps[bytes]:
    yield from ()
    return b"now"


def test_decoders_side_by_side_share_rounds() -> None:
    rounds = []

    def counted() -> Steps[list[bytes]]:
        steps = together([two_rounds(5), at_once(), two_rounds(9)])
        wanted = next(steps)
        while True:
            rounds.append(list(wanted))
            arrays = yield wanted
            try:
                wanted = steps.send(arrays)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    found, _ = run(counted(), DATA)

    assert found == [b"\x05\x06", b"now", b"\x09\x0a"]
    assert rounds == [[(5, 6), (9, 10)], [(5, 7), (9, 11)]]


def test_no_decoders_need_no_bytes() -> None:
    found: tuple[list[Bytes], list[tuple[int, int]]] = run(together([]), DATA)

    assert found == ([], [])


def test_a_failing_decoder_fails_all() -> None:
    with pytest.raises(CorruptFileError):
        run(together([two_rounds(1), read_ranges(Region(0, 4, True), ints(2), ints(9))]), DATA)


@pytest.mark.parametrize("mapped", [True, False])
def test_ranges_count_from_the_start_of_the_region(mapped: bool) -> None:
    region = Region(10, 30, mapped)

    found, asked = run(read_ranges(region, ints(1, 5, 8), ints(3, 6, 20)), DATA)
    assert bytes(found) == bytes([11, 12, 15, *range(18, 30)])
    assert asked == ([(11, 30)] if mapped else [(11, 13), (15, 16), (18, 30)])
    assert bytes(run(read_ranges(region, ints(), ints()), DATA)[0]) == b""
    assert bytes(run(read_all(region), DATA)[0]) == DATA[10:30]


@pytest.mark.parametrize("mapped", [True, False])
def test_bits_are_read_by_the_byte_and_cut(mapped: bool) -> None:
    region = Region(10, 30, mapped)
    bits = np.unpackbits(np.frombuffer(DATA[10:30], np.uint8), bitorder="little")
    rng = np.random.default_rng(3)
    for _ in range(50):
        borders = np.sort(rng.choice(161, 2 * int(rng.integers(1, 20)), replace=False))
        starts, stops = borders[::2].astype(np.int64), borders[1::2].astype(np.int64)
        wanted = np.concatenate([bits[a:b] for a, b in zip(starts, stops, strict=True)])
        found, _ = run(read_bits(region, starts, stops), DATA)
        assert np.array_equal(np.unpackbits(found, count=wanted.size, bitorder="little"), wanted)


def test_values_are_moved_to_an_address_that_arrow_likes() -> None:
    data = np.zeros(64, np.uint8)
    odd = data[1:33] if data.ctypes.data % 2 == 0 else data[2:34]

    for width in (1, 2, 3, 4, 8, 12, 16):
        address = aligned(odd, width).ctypes.data
        assert address % min(width & -width, 8) == 0
    assert aligned(odd, 0).size == odd.size


@pytest.mark.parametrize(
    ("width", "step"),
    [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (8, 8), (12, 4), (16, 8), (24, 8)],
)
def test_values_lie_where_their_width_wants_them(width: int, step: int) -> None:
    room = np.zeros(64, np.uint8)
    begin = -room.ctypes.data % 16
    for shift in range(16):
        data = room[begin + shift :]
        assert (aligned(data, width) is data) == (shift % step == 0)
