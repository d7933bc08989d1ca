"""Copying many byte ranges."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lance_nb.encodings.kernels import ranges

DATA = np.random.default_rng(1).integers(0, 256, 1 << 16).astype(np.uint8)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def slices(starts: np.ndarray, sizes: np.ndarray) -> bytes:
    return b"".join(DATA[a : a + n].tobytes() for a, n in zip(starts, sizes, strict=True))


def test_starts_end_with_the_total() -> None:
    assert ranges.starts_of(ints(3, 0, 4)).tolist() == [0, 3, 3, 7]
    assert ranges.starts_of(ints()).tolist() == [0]


def test_the_uniform_prefix_counts_what_equals_the_first() -> None:
    assert ranges.uniform_prefix(ints(4, 4, 4, 2, 4)) == 3
    assert ranges.uniform_prefix(ints(4, 4)) == 2
    assert ranges.uniform_prefix(ints()) == 0


def test_ragged_indices_count_up_from_each_start() -> None:
    assert ranges.ragged_indices(ints(10, 0, 5), ints(2, 0, 3)).tolist() == [10, 11, 5, 6, 7]


@pytest.mark.parametrize("size", [0, 1, 3, 8, 100])
def test_rows_are_the_ranges_whatever_their_distance(size: int) -> None:
    chance = random.Random(size)
    anywhere = [chance.randrange(60_000) for _ in range(50)]
    for starts in (
        ints(*range(8, 800, 16)),
        ints(*range(3, 800, 7)),
        ints(*anywhere),
        ints(*(place * 8 for place in range(50, 0, -1))),
        ints(5, 5, 5),
        ints(9),
        ints(),
    ):
        found = ranges.rows(DATA, starts, size)
        assert found.shape == (starts.size, size)
        assert found.tobytes() == slices(starts, np.full(starts.size, size))


def test_rows_at_the_very_end_stay_inside() -> None:
    tail = DATA[-100:]
    starts = ints(0, 92, 50, 92)
    assert ranges.rows(tail, starts, 8)[1].tobytes() == tail[92:].tobytes()


@pytest.mark.parametrize("count", [1, 2, 300, 1000])
@pytest.mark.parametrize("longest", [0, 3, 60])
def test_ranges_are_joined_whatever_their_sizes(count: int, longest: int) -> None:
    chance = random.Random(count * 100 + longest)
    sizes = ints(*(chance.randrange(longest + 1) for _ in range(count)))
    apart = ranges.starts_of(sizes + 5)[:-1] % 60_000
    anywhere = ints(*(chance.randrange(60_000) for _ in range(count)))
    for starts in (apart, anywhere):
        assert ranges.concatenate(DATA, starts, sizes).tobytes() == slices(starts, sizes)


def test_equal_ranges_and_a_shorter_last_one_are_joined() -> None:
    starts, sizes = ints(8, 108, 208, 300), ints(100, 100, 92, 7)
    assert ranges.concatenate(DATA, starts, sizes).tobytes() == slices(starts, sizes)
    starts, sizes = ints(8, 16, 40), ints(8, 8, 3)
    assert ranges.concatenate(DATA, starts, sizes).tobytes() == slices(starts, sizes)


def test_bitmaps_are_joined_bit_by_bit() -> None:
    data = np.array([0b111, 0, 0b10, 0xFF], np.uint8)
    joined = ranges.concatenate_bits(data, ints(0, 2, 3), ints(3, 2, 8))
    bits = np.unpackbits(joined, count=13, bitorder="little")
    assert bits.tolist() == [1, 1, 1, 0, 1] + [1] * 8


@pytest.mark.parametrize("sizes", [[8, 8, 8, 3], [8, 8], [8, 8, 8, 8, 0]])
def test_even_ranges_are_copied_from_views_again_and_again(sizes: list[int]) -> None:
    data = np.arange(200, dtype=np.uint8)
    starts = np.arange(len(sizes), dtype=np.int64) * 24 + 5
    views = ranges.even_ranges(data, starts, np.array(sizes, np.int64))
    assert views is not None
    for _ in range(2):
        want = ranges.concatenate(data, starts, np.array(sizes, np.int64))
        assert views.joined().tolist() == want.tolist()


@pytest.mark.parametrize(
    ("starts", "sizes"), [([0, 24, 60, 90], [8, 8, 8, 8]), ([0, 24, 48], [8, 4, 8]), ([0], [8])]
)
def test_ranges_that_lie_unevenly_have_no_views(starts: list[int], sizes: list[int]) -> None:
    data = np.arange(200, dtype=np.uint8)
    assert ranges.even_ranges(data, np.array(starts), np.array(sizes)) is None
