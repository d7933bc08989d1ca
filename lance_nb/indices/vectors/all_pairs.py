"""Find near vectors among all vectors of a column at once: near pairs, and the neighbours of each.

============== =====================================================================
Comparison     vectors as a matrix in which a metric is a squared Euclidean distance
NearGroups     vectors linked by distances up to a limit
near_groups    these groups
neighbours     the k nearest others of every vector
============== =====================================================================

Up to ``EXACT_ROWS`` vectors every pair is compared, in blocks of one matrix product. More vectors
are clustered first, about ``CELL_ROWS`` to a cell; each is compared with those of its own cell and
with the guests of that cell: vectors for which it is one of the ``GUEST_CELLS`` next nearest. For
near pairs, only vectors become guests whose distance to the border between the two cells is within
the limit: a pair across a border is nearer to it than its own distance. What is compared is
computed exactly; a pair is missed where neither cell is among those of the other vector.

Identical vectors are linked before anything is compared, so that many copies cost nothing.

Limits: memory holds the vectors as float32, 60 bytes for each beside them, and blocks of
``BLOCK_VALUES`` products.
Source: R. Tarjan, "Efficiency of a good but not linear set union algorithm" (1975), for the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.indices.vectors.kmeans import train
from lance_nb.value_classes import dataclass

EXACT_ROWS = 50_000
CELL_ROWS = 500
GUEST_CELLS = 5
BLOCK_ROWS = 2048
BLOCK_VALUES = 4_194_304
_TRAINING_ROWS = 48  # for each centroid
_ITERATIONS = 8
_PAIRS_AT_ONCE = 65_536
_SLACK = 4e-6  # relative error of a product of float32

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Step = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Vectors of the shape (rows, values); ``scale`` turns a squared distance into the metric's."""

    vectors: Floats
    scale: float

    @classmethod
    def of(cls, vectors: npt.NDArray[Any], metric: str) -> Comparison:
        """Prepare vectors without changing them: directions for cosine, bits for hamming."""
        if metric == "hamming":
            return cls(np.unpackbits(vectors, axis=1).astype(np.float32), 1.0)
        if metric == "cosine":
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
            return cls((vectors / lengths[:, None]).astype(np.float32), 0.5)
        # Products lose what all vectors have in common.
        if len(vectors):
            vectors = vectors - vectors.mean(axis=0, dtype=np.float64)
        return cls(vectors.astype(np.float32), 1.0)

    def gaps(self, first: Ints, second: Ints) -> Floats:
        """Return the distance of each pair, computed from differences."""
        gaps = np.empty(first.size, np.float32)
        for start in range(0, first.size, _PAIRS_AT_ONCE):
            some = slice(start, start + _PAIRS_AT_ONCE)
            gap = self.vectors[first[some]] - self.vectors[second[some]]
            gaps[some] = np.einsum("ij,ij->i", gap, gap)
        return gaps * np.float32(self.scale)


@dataclass(frozen=True, slots=True)
class NearGroups:
    """The vectors that have another one within the limit.

    ``rows``: their places, group by group, the largest group first, ascending inside. ``groups``:
    the number of the group of each. ``distances``: to the nearest other one.
    """

    rows: Ints
    groups: Ints
    distances: Floats


def near_groups(
    comparison: Comparison, limit: float, step: Step, *, exact: bool = False
) -> NearGroups:
    """Link vectors whose distance is at most ``limit``; a group is what links connect.

    Args:
        comparison: the vectors.
        limit: the largest distance of two vectors that are linked.
        step: called with vectors handled, twice for each vector in all.
        exact: compare every pair, however many there are.
    """
    vectors = comparison.vectors
    links = _Links(len(vectors))
    copies, originals = _copies(vectors)
    links.add(originals, copies, np.zeros(copies.size, np.float32))
    keep = np.ones(len(vectors), np.bool_)
    keep[copies] = False
    rows = np.flatnonzero(keep)
    squared = limit / comparison.scale
    norms = np.einsum("ij,ij->i", vectors, vectors)
    for own, candidates, done in _blocks(vectors, rows, step, reach=squared**0.5, exact=exact):
        near = vectors[own] @ vectors[candidates].T
        # |a - b|² = |a|² + |b|² - 2ab
        near *= -2
        near += norms[own][:, None]
        near += norms[candidates]
        slack = _SLACK * float(norms[own].max() + norms[candidates].max())
        own_places, to = np.nonzero(near <= squared + slack)
        first, second = own[own_places], candidates[to]
        is_pair = first != second
        first, second = first[is_pair], second[is_pair]
        if first.size:
            gaps = comparison.gaps(first, second)
            within = gaps <= limit
            links.add(first[within], second[within], gaps[within])
        step(done)
    step(2 * len(vectors) - 2 * rows.size)
    return links.groups()


def neighbours(
    comparison: Comparison, k: int, step: Step, *, exact: bool = False
) -> tuple[Ints, Floats]:
    """Return the ``k`` nearest other vectors of each, nearest first, and their distances.

    Both have the shape (rows, k). A place is -1, at an infinite distance, where there are fewer.
    ``step`` and ``exact`` are those of ``near_groups``.
    """
    vectors = comparison.vectors
    places = np.full((len(vectors), k), -1, np.int64)
    best = np.full((len(vectors), k), np.inf, np.float32)
    norms = np.einsum("ij,ij->i", vectors, vectors)
    for own, candidates, done in _blocks(
        vectors, np.arange(len(vectors)), step, reach=None, exact=exact
    ):
        near = vectors[own] @ vectors[candidates].T
        near *= -2
        near += norms[own][:, None]
        near += norms[candidates]
        near[own[:, None] == candidates] = np.inf
        some = min(k, candidates.size)
        nearest = np.argpartition(near, some - 1, axis=1)[:, :some]
        distances = np.take_along_axis(near, nearest, axis=1)
        both_distances = np.concatenate([best[own], distances], axis=1)
        both_places = np.concatenate([places[own], candidates[nearest]], axis=1)
        order = np.argsort(both_distances, axis=1, kind="stable")[:, :k]
        best[own] = np.take_along_axis(both_distances, order, axis=1)
        places[own] = np.where(
            np.isinf(best[own]), -1, np.take_along_axis(both_places, order, axis=1)
        )
        step(done)
    np.maximum(best, 0, out=best)
    np.multiply(best, np.float32(comparison.scale), out=best)
    return places, best


def _copies(vectors: Floats) -> tuple[Ints, Ints]:
    """Return the vectors that are identical to an earlier one, and that one."""
    # Identical vectors have the same sum, and so are neighbours in the order of the sums.
    weights = np.random.default_rng(0).standard_normal(vectors.shape[1:], dtype=np.float32)
    sums = np.einsum("ij,j->i", vectors, weights)
    order = np.argsort(sums, kind="stable")
    begins = np.ones(order.size, np.bool_)  # a run of identical vectors
    same = np.flatnonzero(sums[order[1:]] == sums[order[:-1]])
    for start in range(0, same.size, _PAIRS_AT_ONCE):
        some = same[start : start + _PAIRS_AT_ONCE]
        equal = (vectors[order[some]] == vectors[order[some + 1]]).all(axis=1)
        begins[some[equal] + 1] = False
    originals = order[begins][np.cumsum(begins) - 1]
    return order[~begins], originals[~begins]


def _blocks(
    vectors: Floats, rows: Ints, step: Step, reach: float | None, exact: bool
) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield which rows are compared with which, and how many rows are done after that.

    Near pairs, within ``reach``, are symmetric: of all pairs, half are compared.
    """
    if exact or len(rows) <= EXACT_ROWS:
        step(len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            own = rows[start : start + BLOCK_ROWS]
            compared_rows = rows if reach is None else rows[start:]
            yield from _strips(own, compared_rows)
        return
    cells = _Cells.of(vectors, rows, reach, step)
    for number in range(cells.count):
        own = cells.members(number)
        candidates = np.concatenate([own, cells.guests(number)])
        for start in range(0, len(own), BLOCK_ROWS):
            yield from _strips(own[start : start + BLOCK_ROWS], candidates)


def _strips(own: Ints, candidates: Ints) -> Iterator[tuple[Ints, Ints, int]]:
    width = max(1, BLOCK_VALUES // max(1, own.size))
    for start in range(0, candidates.size, width):
        is_last = start + width >= candidates.size
        yield own, candidates[start : start + width], own.size if is_last else 0


class _Cells:
    """Vectors by the nearest of some centroids, and the guests of each cell."""

    def __init__(self, own: tuple[Ints, Ints], guests: tuple[Ints, Ints], count: int) -> None:
        self.count = count
        self._own, self._guests = _sorted(*own, count), _sorted(*guests, count)

    @classmethod
    def of(cls, vectors: Floats, rows: Ints, reach: float | None, step: Step) -> _Cells:
        rng = np.random.default_rng(0)
        count = max(2, rows.size // CELL_ROWS)
        sample = np.sort(rng.choice(rows, min(rows.size, count * _TRAINING_ROWS), replace=False))
        centroids = train(
            vectors[sample], count, "l2", rng, max_iterations=_ITERATIONS,
            on_iteration=lambda: step(0),
        )[0]  # fmt: skip
        # A centroid may be trained to what no row is near to.
        halves = np.einsum("ij,ij->i", centroids, centroids) / 2
        nearest = min(GUEST_CELLS + 1, count)
        first = np.empty(rows.size, np.int64)
        cells: list[Ints] = []
        guests: list[Ints] = []
        size = max(256, BLOCK_VALUES // count)
        for start in range(0, rows.size, size):
            some = rows[start : start + size]
            scores = vectors[some] @ centroids.T - halves  # larger is nearer
            top = np.argpartition(-scores, nearest - 1, axis=1)[:, :nearest]
            near = np.take_along_axis(scores, top, axis=1)
            best = near.argmax(axis=1)
            lines = np.arange(some.size)
            own = top[lines, best]
            first[start : start + size] = own
            is_guest = np.ones(top.shape, np.bool_)
            is_guest[lines, best] = False
            if reach is not None:
                # The scores of two cells differ by the distance to their border, times that of
                # the centroids.
                apart = np.linalg.norm(centroids[own][:, None, :] - centroids[top], axis=2)
                is_guest &= near[lines, best][:, None] - near <= reach * apart
            guest_rows, cells_of_guests = np.nonzero(is_guest)
            cells.append(top[guest_rows, cells_of_guests])
            guests.append(some[guest_rows])
            step(some.size)
        return cls((first, rows), (np.concatenate(cells), np.concatenate(guests)), count)

    def members(self, number: int) -> Ints:
        """Return the vectors nearest to a centroid."""
        rows, ends = self._own
        return rows[ends[number] : ends[number + 1]]

    def guests(self, number: int) -> Ints:
        """Return the vectors that lie near to a cell."""
        rows, ends = self._guests
        return rows[ends[number] : ends[number + 1]]


def _sorted(cells: Ints, rows: Ints, count: int) -> tuple[Ints, Ints]:
    order = np.argsort(cells, kind="stable")
    counts = np.bincount(cells, minlength=count)
    return rows[order], np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


class _Links:
    """Vectors that are linked, as a forest, and the nearest other one of each."""

    def __init__(self, count: int) -> None:
        self._parents = np.arange(count)
        self._nearest = np.full(count, np.inf, np.float32)

    def add(self, first: Ints, second: Ints, gaps: Floats) -> None:
        """Link pairs of vectors with their distances."""
        np.minimum.at(self._nearest, first, gaps)
        np.minimum.at(self._nearest, second, gaps)
        while first.size:
            first, second = self._roots(first), self._roots(second)
            differs = first != second
            first, second = first[differs], second[differs]
            # A root goes below a smaller one; where there are several, the others are linked in the
            # next round.
            np.minimum.at(self._parents, np.maximum(first, second), np.minimum(first, second))

    def _roots(self, places: Ints) -> Ints:
        roots = self._parents[places]
        while True:
            above = self._parents[roots]
            if (above == roots).all():
                self._parents[places] = roots
                return roots
            roots = above

    def groups(self) -> NearGroups:
        """Return the groups of two vectors or more."""
        rows = np.flatnonzero(np.isfinite(self._nearest))
        roots, number, counts = np.unique(
            self._roots(rows), return_inverse=True, return_counts=True
        )
        by_size = np.lexsort((roots, -counts))
        rank = np.empty(roots.size, np.int64)
        rank[by_size] = np.arange(roots.size)
        groups = rank[number]
        order = np.lexsort((rows, groups))
        return NearGroups(rows[order], groups[order], self._nearest[rows[order]])
