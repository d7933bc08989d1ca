"""K-means finds the clusters that are there, by every metric and in two levels."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.indices.vectors import kmeans


def clusters(count, dimension=8, rows=40):
    rng = np.random.default_rng(count)
    centers = rng.normal(size=(count, dimension)).astype(np.float32) * 10
    near = rng.normal(size=(count * rows, dimension)).astype(np.float32) * 0.01
    return centers, np.repeat(centers, rows, axis=0) + near


@pytest.mark.parametrize("count", [1, 3, 40])
def test_every_cluster_has_a_centroid(count):
    centers, vectors = clusters(count)
    found, loss = kmeans.train(vectors, count, "l2", np.random.default_rng(1))
    gaps = ((centers[:, None] - found[None]) ** 2).sum(2).min(1)
    assert (gaps < 0.01).mean() > 0.9
    near = kmeans.assigned(vectors, found, "l2")[1]
    assert loss == pytest.approx(float(near.sum()), rel=1e-3)


def test_two_levels_give_as_many_centroids_as_asked_for(monkeypatch):
    monkeypatch.setattr(kmeans, "_ONE_LEVEL_MAX", 16)
    _, vectors = clusters(60)
    found, loss = kmeans.train(vectors, 60, "l2", np.random.default_rng(1))
    assert found.shape == (60, 8)
    spread = ((vectors - vectors.mean(0)) ** 2).sum()
    assert loss < 0.05 * spread


def test_assignment_is_the_nearest_by_brute_force():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(3000, 5)).astype(np.float32)
    centroids = rng.normal(size=(17, 5)).astype(np.float32)
    gaps = ((vectors[:, None] - centroids[None]) ** 2).sum(2)
    places, near = kmeans.assigned(vectors, centroids, "l2")
    assert np.array_equal(places, gaps.argmin(1))
    assert np.allclose(near, gaps.min(1), atol=1e-4)
    places, near = kmeans.assigned(vectors, centroids, "dot")
    assert np.array_equal(places, (vectors @ centroids.T).argmax(1))
    assert np.allclose(near, 1 - (vectors @ centroids.T).max(1), atol=1e-5)


def test_centroids_for_dot_have_length_one():
    _, vectors = clusters(5)
    found, _ = kmeans.train(vectors, 5, "dot", np.random.default_rng(1))
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_bits_of_the_majority():
    rng = np.random.default_rng(2)
    centers = rng.integers(0, 256, (4, 16)).astype(np.uint8)
    vectors = np.repeat(centers, 50, axis=0)
    vectors[:, 0] ^= rng.choice(np.array([0, 0, 0, 1], np.uint8), len(vectors))
    found, loss = kmeans.train(vectors, 4, "hamming", np.random.default_rng(1))
    assert found.dtype == np.uint8
    places, near = kmeans.assigned(vectors, found, "hamming")
    bits = np.unpackbits(vectors ^ found[places], axis=1).sum(1)
    assert near.tolist() == bits.tolist()
    assert loss == bits.sum()


def test_fewer_vectors_than_centroids():
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    found, loss = kmeans.train(vectors, 8, "l2", np.random.default_rng(1))
    assert found.shape == (8, 2)
    assert np.isfinite(found).all()
    assert loss == 0


def test_iterations_are_told_and_bounded():
    _, vectors = clusters(30)
    told = []
    kmeans.train(
        vectors, 30, "l2", np.random.default_rng(1), max_iterations=2,
        on_iteration=lambda: told.append(1),
    )  # fmt: skip
    assert 1 <= len(told) <= 2
