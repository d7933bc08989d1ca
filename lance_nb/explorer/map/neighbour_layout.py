"""Place vectors so that neighbours stay neighbours: a UMAP layout of a sample, and what is near it.

``NeighbourLayout`` holds reference vectors and their coordinates. Reference rows are chosen by
their hashed row ids from all rows, and are laid out by ``layout_process``. Every vector, also one
of a later version, is placed at the mean of its nearest reference vectors, weighted by the inverse
of the squared distance: the layout does not change when rows come, and a point moves only when its
vector changes.

Nearest references are searched in the ``PROBES`` nearest of their cells (k-means).

Limits: ``MIN_REFERENCES`` to ``MAX_REFERENCES`` reference vectors of at most ``REFERENCE_BYTES``.
Source: the placing is our own; see ``layout_process`` for the layout.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import MissingPackageError, NotSupportedError
from lance_nb.explorer import text
from lance_nb.explorer.map import layout_process
from lance_nb.explorer.map.embedding_map import (
    SCALE,
    Coordinates,
    Progress,
    chosen_batches,
    place_vectors,
    read_vectors,
    vector_field,
)
from lance_nb.explorer.source import ScannedSource
from lance_nb.indices.vectors.kmeans import nearest_centroids, train
from lance_nb.table.nearest import MAX_LENGTH
from lance_nb.value_classes import dataclass

MIN_REFERENCES = 100
MAX_REFERENCES = 20_000
REFERENCE_BYTES = 64_000_000
NEAREST = 5
PROBES = 3
CELL_ROWS = 160
BLOCK_VALUES = 4_000_000
BLOCK_PRODUCTS = 250_000
MARGIN = 0.05  # of the box, on each side
STEPS = 1000  # of progress
_LOOK_S = 0.1
_EPOCH = re.compile(r"epoch (\d+)/(\d+)")

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NeighbourLayout:
    """Reference vectors of the shape (rows, dimension), and coordinates of the shape (rows, 2)."""

    column: str
    references: Floats
    coordinates: Floats
    centroids: Floats
    cells: npt.NDArray[np.int64]  # of each reference vector

    @classmethod
    def of(cls, column: str, references: Floats, coordinates: Floats) -> NeighbourLayout:
        """Sort reference vectors into cells."""
        count = max(1, len(references) // CELL_ROWS)
        centroids, _ = train(references, count, "l2", np.random.default_rng(0), max_iterations=8)
        cells = nearest_centroids(references, centroids)
        return cls(column, references, coordinates, centroids=centroids, cells=cells)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that are read to place rows."""
        return (self.column,)

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return int(self.references.shape[1])

    @property
    def words(self) -> str:
        """Say what the layout is."""
        return (
            f"UMAP of {text.plural(len(self.references), 'vector')} of {text.name(self.column)}, "
            "other rows beside their nearest ones"
        )

    def place(self, vectors: Floats) -> Coordinates:
        """Place vectors of the shape (rows, dimension)."""
        placed = self.positions(vectors)
        low, high = self.coordinates.min(0), self.coordinates.max(0)
        span = np.maximum(high - low, np.float32(1e-6))
        low, span = low - MARGIN * span, (1 + 2 * MARGIN) * span
        scaled: Coordinates = np.clip(np.rint((placed - low) / span * SCALE), 0, SCALE).astype(
            np.uint16
        )
        return scaled

    def place_batch(self, batch: pa.RecordBatch) -> tuple[Coordinates, npt.NDArray[np.bool_]]:
        """Place rows by their vectors, and tell which of them have one."""
        return place_vectors(self, batch.column(self.column))

    def positions(self, vectors: Floats) -> Floats:
        """Return the weighted mean of the coordinates of the nearest references of vectors."""
        placed = np.empty((len(vectors), 2), np.float32)
        rows = max(256, BLOCK_VALUES // max(len(self.centroids), NEAREST * self.dimension))
        for start in range(0, len(vectors), rows):
            some = slice(start, start + rows)
            nearest, gaps = self._nearest(vectors[some])
            # A vector that is a reference has its coordinates.
            finite = np.where(np.isfinite(gaps), gaps, 0)
            weights = 1 / np.maximum(gaps, 1e-6 * finite.max(1, keepdims=True) + np.float32(1e-12))
            weights /= weights.sum(1, keepdims=True)
            placed[some] = np.einsum("ij,ijk->ik", weights, self.coordinates[nearest])
        return placed

    def _nearest(self, vectors: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the nearest references of each vector, and their squared distances."""
        count = len(self.centroids)
        probes = min(PROBES, count)
        halves = np.einsum("ij,ij->i", self.centroids, self.centroids) / 2
        scores = _products(vectors, self.centroids) - halves
        probed = np.argpartition(-scores, probes - 1, axis=1)[:, :probes]
        lengths = np.einsum("ij,ij->i", vectors, vectors)
        places = np.zeros((len(vectors), NEAREST), np.int64)
        best = np.full((len(vectors), NEAREST), np.inf, np.float32)
        for cell in range(count):
            rows, members = (probed == cell).any(1).nonzero()[0], (self.cells == cell).nonzero()[0]
            if not rows.size or not members.size:
                continue
            reference_vectors = self.references[members]
            near = _products(vectors[rows], reference_vectors)
            near *= -2
            near += lengths[rows, None]
            near += np.einsum("ij,ij->i", reference_vectors, reference_vectors)
            some = min(NEAREST, members.size)
            nearest = np.argpartition(near, some - 1, axis=1)[:, :some]
            both_distances = np.hstack([best[rows], np.take_along_axis(near, nearest, axis=1)])
            both_places = np.hstack([places[rows], members[nearest]])
            order = np.argsort(both_distances, axis=1, kind="stable")[:, :NEAREST]
            best[rows] = np.take_along_axis(both_distances, order, axis=1)
            places[rows] = np.take_along_axis(both_places, order, axis=1)
        # Products of large vectors are too coarse for small distances.
        apart = vectors[:, None, :] - self.references[places]
        exact: Floats = np.einsum("ijk,ijk->ij", apart, apart)
        exact[np.isinf(best)] = np.inf
        return places, exact


def _products(vectors: Floats, other_vectors: Floats) -> Floats:
    """Return the product of each vector with each other one, computed in this thread.

    Larger blocks are shared among threads, which costs more than it saves when the processor is
    busy.
    """
    products = np.empty((len(vectors), len(other_vectors)), np.float32)
    columns = np.ascontiguousarray(other_vectors.T)
    rows = max(1, BLOCK_PRODUCTS // other_vectors.size)
    for start in range(0, len(vectors), rows):
        np.matmul(vectors[start : start + rows], columns, out=products[start : start + rows])
    return products


def fit_layout(source: ScannedSource, column: str, progress: Progress) -> NeighbourLayout:
    """Lay out a sample of the vectors of a column.

    Args:
        source: the version whose rows are laid out.
        column: the column of vectors.
        progress: called with steps done and ``STEPS``; what it raises ends the work at once.

    Raises ColumnNotFoundError, NotSupportedError, MissingPackageError.
    """
    kind = vector_field(source, column).type
    if find_spec("manifolds_rs") is None:
        raise MissingPackageError("the layout by neighbours", "manifolds-rs", "lance-nb[maps]")
    most = min(MAX_REFERENCES, REFERENCE_BYTES // (4 * kind.list_size))
    divisor = 1
    while source.stats().num_rows > most * divisor:
        divisor *= 2
    parts = []
    share = share_of(progress, 0, STEPS // 5)
    for batch in chosen_batches(source, [column], divisor, share):
        vectors, has_vector = read_vectors(batch.column(0))
        parts.append(vectors[has_vector])
    sample = np.concatenate([np.zeros((0, kind.list_size), np.float32), *parts])[:most]
    if len(sample) < MIN_REFERENCES:
        raise NotSupportedError(
            f"a layout by neighbours needs {MIN_REFERENCES} rows with a vector in {column!r} that "
            f"is finite and at most {MAX_LENGTH:g} long; there are {len(sample)}"
        )
    coordinates = _laid_out(sample, share_of(progress, STEPS // 5, STEPS))
    return NeighbourLayout.of(column, sample, coordinates)


def share_of(progress: Progress, low: int, high: int) -> Progress:
    """Return a callback whose work is the steps from ``low`` to ``high`` of ``STEPS``."""
    return lambda done, total: progress(low + (high - low) * done // max(1, total), STEPS)


def _laid_out(vectors: Floats, progress: Progress) -> Floats:
    """Compute the layout in another process, which is ended when ``progress`` raises."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / layout_process.VECTORS, vectors)
        command = [sys.executable, "-P", str(Path(layout_process.__file__)), name]
        log = folder / "log.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)  # noqa: S603
            try:
                while process.poll() is None:
                    epochs = _EPOCH.findall(log.read_text(errors="replace"))
                    done, total = map(int, epochs[-1]) if epochs else (0, 1)
                    progress(done + total // 10, total + total // 10)
                    time.sleep(_LOOK_S)
            finally:
                process.kill()
                process.wait()
        if process.returncode:
            log_line = text.line(log.read_text(errors="replace").strip().rpartition("\n")[2], 300)
            raise NotSupportedError(f"these vectors cannot be laid out: {log_line}")
        coordinates: Floats = np.load(folder / layout_process.COORDINATES, allow_pickle=False)
    if coordinates.shape != (len(vectors), 2) or not np.isfinite(coordinates).all():
        raise NotSupportedError("these vectors cannot be laid out: coordinates are not finite")
    return coordinates
