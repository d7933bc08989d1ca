"""K-means: centroids of vectors, for partitions and for the codewords of product quantization.

Lloyd's algorithm; the first centroids are vectors far from each other (k-means++). A centroid
without vectors gets half of the largest cluster. Above ``_ONE_LEVEL_MAX`` centroids it works in two
levels: vectors are clustered into groups, each group by itself, and some iterations over all
vectors follow.

Metrics: l2; dot, where centroids have length one and a vector belongs to the largest product;
hamming for vectors of bytes, whose centroids have the bits that most of their vectors have.

Limits: memory holds the vectors and a copy of them.
Source: S. Lloyd, "Least squares quantization in PCM" (1982); D. Arthur, S. Vassilvitskii,
"k-means++: the advantages of careful seeding" (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.indices.vectors.stored_vectors import Floats

MAX_ITERATIONS = 50
SAMPLES_PER_CENTROID = 256
_TOLERANCE = 1e-4
_ONE_LEVEL_MAX = 256
_JOINT_ITERATIONS = 5
_BLOCK_PRODUCTS = 600_000
_BLOCK_ROWS = 1024
_SEEDS_PER_CENTROID = 32
_NUDGE = 1e-3
Ints = npt.NDArray[np.int64]


def nearest_centroids(vectors: Floats, centroids: Floats, metric: str = "l2") -> Ints:
    """Return the nearest centroid of each vector; both are uint8 for hamming."""
    return _nearest(vectors, centroids, metric)[0]


def assigned(vectors: Floats, centroids: Floats, metric: str) -> tuple[Ints, Floats]:
    """Return the nearest centroid of each vector, and the distance to it.

    The distance is the squared Euclidean one, one less the product, or the number of bits that
    differ.
    """
    if metric == "hamming":
        places, near = assigned(_bits(vectors), _bits(centroids), "l2")
        return places, np.rint(near)
    places, best = _nearest(vectors, centroids, metric, with_products=True)
    if metric == "dot":
        return places, 1 - best
    return places, np.maximum(np.einsum("ij,ij->i", vectors, vectors) - 2 * best, 0)


def _nearest(
    vectors: Floats, centroids: Floats, metric: str, *, with_products: bool = False
) -> tuple[Ints, Floats]:
    """Return the nearest centroid of each vector, and the product less half of its square.

    Blocks are so small that they stay in the cache, and that the product of matrices is computed in
    this thread: waiting for others costs more than it saves when the processor is busy.
    """
    if metric == "hamming":
        vectors, centroids = _bits(vectors), _bits(centroids)
    count, dimension = centroids.shape
    centers = np.empty((dimension + 1, count), np.float32)  # the last row is added to products
    centers[:-1] = centroids.T
    centers[-1] = 0 if metric == "dot" else np.einsum("ij,ij->j", *[centers[:-1]] * 2) / -2
    places = np.empty(len(vectors), np.int64)
    best = np.empty(len(vectors) if with_products else 0, np.float32)
    step = min(max(_BLOCK_PRODUCTS // (count * dimension), 16), _BLOCK_ROWS)
    block = np.ones((step, dimension + 1), np.float32)
    scores = np.empty((step, count), np.float32)
    lines = np.arange(step)
    for start in range(0, len(vectors), step):
        stop = min(start + step, len(vectors))
        rows = stop - start
        block[:rows, :-1] = vectors[start:stop]
        np.matmul(block[:rows], centers, out=scores[:rows])
        scores[:rows].argmax(axis=1, out=places[start:stop])
        if with_products:
            best[start:stop] = scores[lines[:rows], places[start:stop]]
    return places, best


def train(
    vectors: Floats,
    count: int,
    metric: str,
    rng: np.random.Generator,
    *,
    max_iterations: int = MAX_ITERATIONS,
    on_iteration: Callable[[], Any] = lambda: None,
) -> tuple[Floats, float]:
    """Return ``count`` centroids, and the sum of the distances of the vectors to theirs.

    ``vectors`` is a matrix of at least one row. ``on_iteration`` is called after each iteration.
    """
    if metric == "hamming":
        centroids, _ = train(
            _bits(vectors), count, "l2", rng, max_iterations=max_iterations,
            on_iteration=on_iteration,
        )  # fmt: skip
        centroids = np.packbits(centroids >= 0.5, axis=1)
        return centroids, float(assigned(vectors, centroids, metric)[1].sum(dtype=np.float64))
    if count <= _ONE_LEVEL_MAX:
        first = _seeds(vectors, count, rng)
        return _refined(vectors, first, metric, rng=rng, iterations=(max_iterations, on_iteration))
    groups = round(count**0.5)
    coarse, _ = train(
        vectors, groups, metric, rng, max_iterations=max_iterations, on_iteration=on_iteration
    )
    places = nearest_centroids(vectors, coarse, metric)
    parts = []
    for number, share in enumerate(_shares(np.bincount(places, minlength=groups), count)):
        if share:
            mine = vectors[places == number]
            part, _ = train(
                mine, share, metric, rng, max_iterations=max_iterations, on_iteration=on_iteration
            )
            parts.append(part)
    first = np.concatenate(parts)
    return _refined(vectors, first, metric, rng=rng, iterations=(_JOINT_ITERATIONS, on_iteration))


def _seeds(vectors: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Choose vectors by chance, those far from the chosen ones more likely."""
    chosen = rng.permutation(len(vectors))[: count * _SEEDS_PER_CENTROID]
    pool = vectors[np.sort(chosen)].astype(np.float32)
    seeds = np.empty((count, vectors.shape[1]), np.float32)
    seeds[0] = pool[rng.integers(len(pool))]
    squares = np.einsum("ij,ij->i", pool, pool)
    nearest = np.full(len(pool), np.inf, np.float32)
    for place in range(1, count):
        last = seeds[place - 1]
        gap = squares - 2 * np.einsum("ij,j->i", pool, last) + last @ last
        np.minimum(nearest, np.maximum(gap, 0), out=nearest)
        sums = np.cumsum(nearest, dtype=np.float64)
        position = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        seeds[place] = pool[min(position, len(pool) - 1)]
    return seeds


def _refined(
    vectors: Floats,
    centroids: Floats,
    metric: str,
    rng: np.random.Generator,
    iterations: tuple[int, Callable[[], Any]],
) -> tuple[Floats, float]:
    """Improve centroids until the sum of distances hardly changes, in so many iterations at most.

    The function is called after each.
    """
    max_iterations, on_iteration = iterations
    centroids = np.array(centroids, np.float32)
    if metric == "dot":
        centroids = _unit(centroids)
    before = np.inf
    for _ in range(max_iterations):
        places, near = assigned(vectors, centroids, metric)
        loss = float(near.sum(dtype=np.float64))
        if abs(before - loss) <= _TOLERANCE * abs(loss):
            return centroids, loss
        before = loss
        counts = np.bincount(places, minlength=len(centroids))
        order = np.argsort(places, kind="stable")
        used = np.flatnonzero(counts)
        starts = np.cumsum(counts)[used] - counts[used]
        sums = np.add.reduceat(vectors[order], starts, axis=0)
        centroids[used] = sums / counts[used][:, None]
        _fill_empty(centroids, counts, rng)
        if metric == "dot":
            centroids = _unit(centroids)
        on_iteration()
    return centroids, float(assigned(vectors, centroids, metric)[1].sum(dtype=np.float64))


def _fill_empty(centroids: Floats, counts: Ints, rng: np.random.Generator) -> None:
    """Put a centroid without vectors beside that of the largest cluster, which is cut in two."""
    counts = counts.copy()
    for place in np.flatnonzero(counts == 0).tolist():
        largest = int(counts.argmax())
        if counts[largest] < 2:
            return
        nudge = rng.choice(np.array([-_NUDGE, _NUDGE], np.float32), centroids.shape[1])
        centroids[place] = centroids[largest] * (1 + nudge)
        centroids[largest] = centroids[largest] * (1 - nudge)
        counts[place] = counts[largest] // 2
        counts[largest] -= counts[place]


def _shares(sizes: Ints, count: int) -> list[int]:
    """Divide ``count`` centroids among groups by their sizes, none for an empty one."""
    shares = np.where(sizes > 0, np.maximum(sizes * count // max(int(sizes.sum()), 1), 1), 0)
    while int(shares.sum()) < count:
        shares[int(np.argmax(sizes / np.maximum(shares, 1)))] += 1
    while int(shares.sum()) > count:
        shares[int(np.argmax(shares))] -= 1
    return [int(share) for share in shares]


def _unit(vectors: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1)[:, None], np.float32)


def _bits(vectors: Floats) -> Floats:
    return np.unpackbits(vectors, axis=1).astype(np.float32)
