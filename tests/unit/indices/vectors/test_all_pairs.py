"""Near pairs and neighbours among all vectors, against a comparison of every pair in float64."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pytest

from lance_nb.indices.vectors import all_pairs
from lance_nb.indices.vectors.all_pairs import Comparison, near_groups, neighbours

SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "0") or 0)
Matrix = npt.NDArray[np.float32]


def quiet(_steps: int) -> None:
    """Take progress and show none."""


def planted(
    rows: int, twins: int, dimension: int, seed: int
) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Return vectors in clusters, whose last ones are near copies of the rows that are returned."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((20, dimension))
    base = centers[rng.integers(20, size=rows)] + 0.5 * rng.standard_normal((rows, dimension))
    sources = np.sort(rng.choice(rows, twins, replace=False))
    shift = rng.standard_normal((twins, dimension))
    shift /= np.linalg.norm(shift, axis=1, keepdims=True)
    shift *= np.linalg.norm(base[sources], axis=1, keepdims=True)
    shift *= rng.uniform(0.01, 0.1, (twins, 1))
    return np.concatenate([base, base[sources] + shift]).astype(np.float32), sources


def exact_gaps(vectors: Matrix, metric: str) -> npt.NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    if metric == "cosine":
        wide /= np.linalg.norm(wide, axis=1, keepdims=True)
        return np.asarray(1 - wide @ wide.T)
    return np.asarray(((wide[:, None, :] - wide[None, :, :]) ** 2).sum(axis=2))


def components(near: npt.NDArray[np.bool_]) -> set[tuple[int, ...]]:
    """Return the connected components of two or more, by walking."""
    left, found = set(range(len(near))), set()
    while left:
        reached, todo = set(), [left.pop()]
        while todo:
            one = todo.pop()
            reached.add(one)
            todo += [other for other in np.flatnonzero(near[one]).tolist() if other not in reached]
        left -= reached
        if len(reached) > 1:
            found.add(tuple(sorted(reached)))
    return found


def groups_of(found: all_pairs.NearGroups) -> list[tuple[int, ...]]:
    return [tuple(found.rows[found.groups == number].tolist())
            for number in range(found.groups.max(initial=-1) + 1)]  # fmt: skip


@pytest.mark.parametrize("metric", ["cosine", "l2"])
@pytest.mark.parametrize("rows_exact", [10_000, 50])
def test_groups_are_the_components_of_all_near_pairs(
    metric: str, rows_exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_pairs, "EXACT_ROWS", rows_exact)
    monkeypatch.setattr(all_pairs, "BLOCK_ROWS", 37)
    monkeypatch.setattr(all_pairs, "BLOCK_VALUES", 4000)
    monkeypatch.setattr(all_pairs, "CELL_ROWS", 60)
    vectors, _ = planted(300, 60, 8, 3)
    vectors = np.concatenate([vectors, vectors[:5], vectors[:5]]) + np.float32(40)  # far from 0
    if metric == "cosine":
        vectors -= np.float32(40)
    limit = {"cosine": 0.004, "l2": 0.05}[metric]
    gaps = exact_gaps(vectors, metric)
    np.fill_diagonal(gaps, np.inf)
    steps: list[int] = []

    found = near_groups(Comparison.of(vectors, metric), limit, steps.append)

    listed = groups_of(found)
    assert set(listed) == components(gaps <= limit)
    assert [len(one) for one in listed] == sorted(map(len, listed), reverse=True)
    np.testing.assert_allclose(found.distances, gaps.min(axis=1)[found.rows], atol=2e-5)
    assert sum(steps) == 2 * len(vectors)


def test_bits_are_compared_by_how_many_differ() -> None:
    hashes = np.array([[0b1111, 7], [0b1110, 7], [0b1000, 7], [255, 255]], np.uint8)

    found = near_groups(Comparison.of(hashes, "hamming"), 1, quiet)

    assert groups_of(found) == [(0, 1)]
    assert found.distances.tolist() == [1, 1]


def test_many_copies_are_linked_without_comparing_them() -> None:
    vectors = np.ones((60_000, 4), np.float32)
    vectors[7] = -1
    blocks: list[int] = []

    found = near_groups(Comparison.of(vectors, "cosine"), 0.01, blocks.append)

    assert found.rows.size == 59_999
    assert not found.distances.any()
    assert len(blocks) <= 4  # two vectors were compared, not 60,000


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_neighbours_are_the_nearest_others(metric: str) -> None:
    vectors, _ = planted(200, 20, 6, 5)
    gaps = exact_gaps(vectors, metric)
    np.fill_diagonal(gaps, np.inf)

    places, distances = neighbours(Comparison.of(vectors, metric), 4, quiet)

    np.testing.assert_allclose(distances, np.sort(gaps, axis=1)[:, :4], atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(gaps, places, axis=1), distances, atol=1e-4)


def test_fewer_others_than_asked_for_leave_places_empty() -> None:
    places, distances = neighbours(Comparison.of(np.eye(2, dtype=np.float32), "l2"), 3, quiet)

    assert places.tolist() == [[1, -1, -1], [0, -1, -1]]
    assert np.isinf(distances[:, 1:]).all()
    empty = Comparison.of(np.zeros((0, 2), np.float32), "l2")
    assert neighbours(empty, 3, quiet)[0].shape == (0, 3)
    assert near_groups(empty, 1, quiet).rows.size == 0


@pytest.mark.parametrize("rows", [6_000, *([200_000] if SCALE >= 1 else [])])
def test_planted_near_copies_are_found_in_cells(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_pairs, "EXACT_ROWS", 5_000)
    vectors, sources = planted(rows, rows // 20, 128 if rows > 6_000 else 32, 11)
    limit = 0.012
    comparison = Comparison.of(vectors, "cosine")
    twins = np.arange(rows, len(vectors))
    is_near = comparison.gaps(sources, twins) <= limit
    assert is_near.mean() > 0.8

    found = near_groups(comparison, limit, quiet)
    places, _ = neighbours(comparison, 10, quiet)

    group = np.full(len(vectors), -1)
    group[found.rows] = found.groups
    together = (group[sources] == group[twins]) & (group[twins] >= 0)
    assert together[is_near].mean() >= 0.98
    near = (places[twins] == sources[:, None]).any(axis=1)
    assert near.mean() >= 0.98
