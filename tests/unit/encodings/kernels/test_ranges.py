"""Gathering, scattering and joining many byte ranges."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lance_nb.encodings.kernels import ranges
from lance_nb.encodings.kernels.ranges import join_rows

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


@pytest.mark.parametrize("size", [1, 3, 8, 24])
@pytest.mark.parametrize("gap", [0, 5, 8])
def test_equal_ranges_go_to_equally_distant_places(size: int, gap: int) -> None:
    data = np.arange(size * 7, dtype=np.uint8)
    starts = np.arange(7) * size
    places = 8 + np.arange(7) * (size + gap)
    out = np.zeros(8 + 7 * (size + gap), np.uint8)
    ranges.scatter(data, starts, np.full(7, size), out, places)
    for start, place in zip(starts, places, strict=True):
        assert out[place : place + size].tolist() == data[start : start + size].tolist()
    assert int(out.astype(int).sum()) == int(data.astype(int).sum())


def test_ranges_of_any_size_go_anywhere() -> None:
    data = np.frombuffer(b"aabbbc", np.uint8)
    out = np.full(12, ord("."), np.uint8)
    sizes = np.array([2, 3, 0, 1])
    ranges.scatter(data, np.array([0, 2, 5, 5]), sizes, out, np.array([1, 4, 8, 11]))
    assert out.tobytes() == b".aa.bbb....c"


@pytest.mark.parametrize("size", [2, 3000])
def test_small_and_large_ranges_at_any_distance(size: int) -> None:
    rng = np.random.default_rng(size)
    data = rng.integers(1, 255, 80_000).astype(np.uint8)
    sizes = rng.integers(0, 2 * size, 20)
    starts = np.sort(rng.integers(0, data.size - 2 * size, 20))
    places = np.cumsum(sizes + rng.integers(0, 50, 20)) - sizes
    out = np.zeros(int(places[-1] + sizes[-1]), np.uint8)
    ranges.scatter(data, starts, sizes, out, places)
    wanted = np.zeros_like(out)
    for start, count, place in zip(starts, sizes, places, strict=True):
        wanted[place : place + count] = data[start : start + count]
    assert np.array_equal(out, wanted)


def test_a_uniform_beginning_may_end_differently() -> None:
    data = np.frombuffer(b"aabbccd", np.uint8)
    out = np.full(10, ord("."), np.uint8)
    starts, sizes = np.array([0, 2, 4, 6]), np.array([2, 2, 2, 1])
    ranges.scatter(data, starts, sizes, out, np.array([0, 3, 6, 9]))
    assert out.tobytes() == b"aa.bb.cc.d"


def test_rows_are_written_at_any_distance() -> None:
    out = np.zeros(9, np.uint8)
    rows = np.array([[1, 2], [3, 4]], np.uint8)
    ranges.write_rows(out, np.array([1, 6]), rows)
    assert out.tolist() == [0, 1, 2, 0, 0, 0, 3, 4, 0]
    ranges.write_rows(out, np.zeros(0, np.int64), np.zeros((0, 2), np.uint8))


def test_padding_is_cleared() -> None:
    out = np.full(24, 255, np.uint8)
    ranges.clear_padding(out, np.array([8, 24]))
    assert out.tolist() == [0] * 8 + [255] * 8 + [0] * 8


@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize("moved", ["source", "target"])
def test_rows_that_begin_beside_a_word_are_copied_whole(shift: int, moved: str) -> None:
    data = np.arange(1, 65, dtype=np.uint8)
    start, place = (shift, 0) if moved == "source" else (0, shift)
    out = np.zeros(64, np.uint8)
    starts, places = start + np.arange(2) * 16, place + np.arange(2) * 24
    ranges.scatter(data, starts, np.full(2, 16), out, places)
    for a, to in zip(starts, places, strict=True):
        assert out[to : to + 16].tolist() == data[a : a + 16].tolist()


def column(*values: bytes) -> tuple[np.ndarray, np.ndarray]:
    ends = np.concatenate(([0], np.cumsum([len(value) for value in values]))).astype(np.int64)
    return ends, np.frombuffer(b"".join(values) or b"\0", np.uint8)


def test_rows_are_joined_in_order() -> None:
    columns = [column(b"a", b"", b"ccc"), column(b"1", b"22", b""), column(b"", b"\0", b"x")]
    assert join_rows(columns).tobytes() == b"a122\0cccx"


def test_nothing_joins_to_nothing() -> None:
    assert join_rows([column(b"", b"")]).size == 0
