"""Compute a neighbour-embedding layout in a process of its own; run as a script.

The library computes in one call that cannot be interrupted, and writes its progress to the standard
output of the process. A process can be ended at any time, and takes its memory with it.

Layout: ``VECTORS`` and ``COORDINATES`` are npy files in the folder that is the only argument:
float32 of the shapes (rows, dimension) and (rows, 2). A line of the output ends with ``epoch N/M``.
Source: McInnes, Healy, Melville, "UMAP: Uniform Manifold Approximation and Projection", as the
package manifolds-rs computes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

VECTORS = "vectors.npy"
COORDINATES = "coordinates.npy"
NEIGHBOURS = 15
MIN_DIST = 0.5  # with 0.1 the library puts the rows of a dense group on one spot
SEED = 0


def compute(folder: Path) -> None:
    """Read the vectors in a folder and write their coordinates beside them."""
    from manifolds_rs import UMAP

    vectors = np.load(folder / VECTORS, allow_pickle=False)
    umap = UMAP(n_neighbors=NEIGHBOURS, min_dist=MIN_DIST, seed=SEED, verbose=1)
    np.save(folder / COORDINATES, np.asarray(umap.fit_transform(vectors), np.float32))


if __name__ == "__main__":
    compute(Path(sys.argv[1]))
