"""Copying ranges to places."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import scatter


@pytest.mark.parametrize("size", [1, 3, 8, 24])
@pytest.mark.parametrize("gap", [0, 5, 8])
def test_equal_ranges_go_to_equally_distant_places(size: int, gap: int) -> None:
    data = np.arange(size * 7, dtype=np.uint8)
    starts = np.arange(7) * size
    places = 8 + np.arange(7) * (size + gap)
    out = np.zeros(8 + 7 * (size + gap), np.uint8)
    scatter.scatter(data, starts, np.full(7, size), out, places)
    for start, place in zip(starts, places, strict=True):
        assert out[place : place + size].tolist() == data[start : start + size].tolist()
    assert int(out.astype(int).sum()) == int(data.astype(int).sum())


def test_ranges_of_any_size_go_anywhere() -> None:
    data = np.frombuffer(b"aabbbc", np.uint8)
    out = np.full(12, ord("."), np.uint8)
    sizes = np.array([2, 3, 0, 1])
    scatter.scatter(data, np.array([0, 2, 5, 5]), sizes, out, np.array([1, 4, 8, 11]))
    assert out.tobytes() == b".aa.bbb....c"


@pytest.mark.parametrize("size", [2, 3000])
def test_small_and_large_ranges_at_any_distance(size: int) -> None:
    rng = np.random.default_rng(size)
    data = rng.integers(1, 255, 80_000).astype(np.uint8)
    sizes = rng.integers(0, 2 * size, 20)
    starts = np.sort(rng.integers(0, data.size - 2 * size, 20))
    places = np.cumsum(sizes + rng.integers(0, 50, 20)) - sizes
    out = np.zeros(int(places[-1] + sizes[-1]), np.uint8)
    scatter.scatter(data, starts, sizes, out, places)
    wanted = np.zeros_like(out)
    for start, count, place in zip(starts, sizes, places, strict=True):
        wanted[place : place + count] = data[start : start + count]
    assert np.array_equal(out, wanted)


def test_a_uniform_beginning_may_end_differently() -> None:
    data = np.frombuffer(b"aabbccd", np.uint8)
    out = np.full(10, ord("."), np.uint8)
    starts, sizes = np.array([0, 2, 4, 6]), np.array([2, 2, 2, 1])
    scatter.scatter(data, starts, sizes, out, np.array([0, 3, 6, 9]))
    assert out.tobytes() == b"aa.bb.cc.d"


def test_rows_are_written_at_any_distance() -> None:
    out = np.zeros(9, np.uint8)
    rows = np.array([[1, 2], [3, 4]], np.uint8)
    scatter.write_rows(out, np.array([1, 6]), rows)
    assert out.tolist() == [0, 1, 2, 0, 0, 0, 3, 4, 0]
    scatter.write_rows(out, np.zeros(0, np.int64), np.zeros((0, 2), np.uint8))


def test_padding_is_cleared() -> None:
    out = np.full(24, 255, np.uint8)
    scatter.clear_padding(out, np.array([8, 24]))
    assert out.tolist() == [0] * 8 + [255] * 8 + [0] * 8


@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize("moved", ["source", "target"])
def test_rows_that_begin_beside_a_word_are_copied_whole(shift: int, moved: str) -> None:
    data = np.arange(1, 65, dtype=np.uint8)
    start, place = (shift, 0) if moved == "source" else (0, shift)
    out = np.zeros(64, np.uint8)
    starts, places = start + np.arange(2) * 16, place + np.arange(2) * 24
    scatter.scatter(data, starts, np.full(2, 16), out, places)
    for a, to in zip(starts, places, strict=True):
        assert out[to : to + 16].tolist() == data[a : a + 16].tolist()
