"""Place the rows of a version on a plane by one of their vector columns.

============== =====================================================================
Plane          what places vectors: a projection, or a layout by neighbours
Projection     the plane of the two principal components of a sample of the vectors, and
               the box that coordinates are scaled to
PointSet       one version on that plane: row ids and coordinates
============== =====================================================================

A plane is fitted once, to the first version that is shown. Other versions are placed on the same
plane, so that a point moves only when its vector changes.

Layout: coordinates are uint16, 0 to 65535 over the box, x first; a point outside of the box stands
on its edge.

Of a version with more than ``MAX_POINTS`` rows a share of 1/2, 1/4, ... is placed: the rows whose
hashed row id is below it, so that the same rows are chosen at every version. Rows without a vector
that is finite and at most ``MAX_LENGTH`` (see ``table.nearest``) long are counted and left out.

Limits: ``MAX_POINTS`` points, about 20 bytes each; a step reads ``STEP_BYTES`` of vectors.
Source: Halko, Martinsson, Tropp, "Finding structure with randomness", algorithm 4.4, for the
components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.rows.row_sample import sample_rows
from lance_nb.explorer.source import ScannedSource, scan_groups
from lance_nb.table.nearest import MAX_LENGTH
from lance_nb.value_classes import dataclass

MAX_POINTS = 1_000_000
STEP_BYTES = 32_000_000
STEP_ROWS = 131_072
SCALE = 65_535
MARGIN = 0.25  # of the sample's box, on each side, for points that come later
_ITERATIONS = 8
_ROW_ID = "_rowid"
_SQUARE_BITS = 8
_SQUARE = 1 << _SQUARE_BITS  # width of a square, in steps of SCALE
_OUTSIDE, _INSIDE, _CROSSED = 0, 1, 2

Progress = Callable[[int, int], object]
Coordinates = npt.NDArray[np.uint16]
Ids = npt.NDArray[np.uint64]


class Plane(Protocol):
    """What places the vectors of a column, the same vector at the same place."""

    @property
    def column(self) -> str: ...
    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read to place rows, where the version has them."""
        ...

    @property
    def dimension(self) -> int: ...
    @property
    def words(self) -> str:
        """Say what the plane is."""
        ...

    def place(self, vectors: npt.NDArray[np.float32]) -> Coordinates:
        """Place vectors of the shape (rows, dimension)."""
        ...

    def place_batch(self, batch: pa.RecordBatch) -> tuple[Coordinates, npt.NDArray[np.bool_]]:
        """Place rows that have ``columns``, and tell which of them have a place."""
        ...


@dataclass(frozen=True, slots=True)
class Projection:
    """A plane: ``axes`` has the shape (dimension, 2); ``explained`` is its share of variance."""

    column: str
    mean: npt.NDArray[np.float32]
    axes: npt.NDArray[np.float32]
    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]
    explained: float
    sampled: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that are read to place rows."""
        return (self.column,)

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return len(self.mean)

    @property
    def words(self) -> str:
        """Say what the plane is."""
        share = f"{100 * self.explained:.0f} %"
        return f"2 principal components of {text.name(self.column)} with {share} of the variance"

    def place(self, vectors: npt.NDArray[np.float32]) -> Coordinates:
        """Place vectors of the shape (rows, dimension)."""
        flat = vectors @ self.axes - self.mean @ self.axes
        scaled = (flat - self.low) / (self.high - self.low) * SCALE
        placed: Coordinates = np.clip(np.rint(scaled), 0, SCALE).astype(np.uint16)
        return placed

    def place_batch(self, batch: pa.RecordBatch) -> tuple[Coordinates, npt.NDArray[np.bool_]]:
        """Place rows by their vectors, and tell which of them have one."""
        return place_vectors(self, batch.column(self.column))


def place_vectors(plane: Plane, column: pa.Array) -> tuple[Coordinates, npt.NDArray[np.bool_]]:
    """Place a column of vectors; rows without a finite one are at 0.

    Raises NotSupportedError for vectors of another length.
    """
    vectors, has_vector = read_vectors(column)
    if vectors.shape[1] != plane.dimension:
        raise NotSupportedError(
            f"{plane.column!r} has vectors of {vectors.shape[1]} values in this version and of "
            f"{plane.dimension} in the one that the map was made for"
        )
    if has_vector.all():
        return plane.place(vectors), has_vector
    placed = np.zeros((len(vectors), 2), np.uint16)
    placed[has_vector] = plane.place(vectors[has_vector])
    return placed, has_vector


def vector_field(source: ScannedSource, column: str) -> pa.Field:
    """Return the field of a column of vectors. Raises ColumnNotFoundError, NotSupportedError."""
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    field = source.schema.field(column)
    if not cells.is_vector(field.type):
        raise NotSupportedError(f"{column!r} has no vectors of a fixed length of 2 or more floats")
    return field


def fit_projection(source: ScannedSource, column: str, progress: Progress) -> Projection:
    """Fit the plane to a sample. Raises ColumnNotFoundError, NotSupportedError."""
    kind = vector_field(source, column).type
    vectors, has_vector = read_vectors(sample_rows(source, [column], progress)[column])
    vectors = vectors[has_vector]
    mean = vectors.mean(0) if len(vectors) else np.zeros(kind.list_size, np.float32)
    axes, explained = _components(vectors - mean)
    flat = (vectors - mean) @ axes if len(vectors) else np.zeros((1, 2), np.float32)
    low, high = flat.min(0), flat.max(0)
    span = np.maximum(high - low, np.float32(1e-6))
    span = np.maximum(span, span.max() * np.float32(1e-3))  # a line is drawn as a line
    middle = (low + high) / 2
    reach = span * np.float32(0.5 + MARGIN)
    return Projection(
        column=column,
        mean=mean,
        axes=axes,
        low=middle - reach,
        high=middle + reach,
        explained=explained,
        sampled=len(vectors),
    )


def _components(centred: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], float]:
    """Return the first two principal axes and their share of the variance."""
    dimension = centred.shape[1]
    if not len(centred):
        return np.eye(dimension, 2, dtype=np.float32), 0.0
    random = np.random.default_rng(0)
    block = random.standard_normal((dimension, min(dimension, 10))).astype(np.float32)
    for _ in range(_ITERATIONS):
        block = np.linalg.qr(centred.T @ (centred @ block))[0]
    _, _, rows = np.linalg.svd(centred @ block, full_matrices=False)
    axes = (block @ rows.T)[:, :2]
    # The sign of an axis is arbitrary: the largest part is made positive, so it is the same always.
    largest = np.abs(axes).argmax(0)
    axes = axes * np.where(axes[largest, [0, 1]] < 0, -1, 1)
    whole = float(np.square(centred, dtype=np.float64).sum())
    part = float(np.square(centred @ axes, dtype=np.float64).sum())
    return axes.astype(np.float32), part / whole if whole else 0.0


def read_vectors(column: pa.Array) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return vectors of the shape (rows, dimension), and which rows have one to compute with.

    It is finite and at most ``MAX_LENGTH`` long.
    """
    plain: Any = cells.plain(column)
    dimension = plain.type.list_size
    values = plain.values.slice(plain.offset * dimension, len(plain) * dimension)
    if values.null_count:
        values = pc.fill_null(values, float("nan"))
    vectors = values.to_numpy(zero_copy_only=False).reshape(-1, dimension)
    with np.errstate(invalid="ignore", over="ignore"):
        vectors = vectors.astype(np.float32, copy=False)
        has_vector = np.einsum("ij,ij->i", vectors, vectors) <= MAX_LENGTH**2
    if plain.null_count:
        has_vector &= plain.is_valid().to_numpy(zero_copy_only=False)
    return vectors, has_vector


@dataclass(frozen=True, slots=True)
class PointSet:
    """The rows of a version on a plane, in the order of a scan."""

    plane: Plane
    ids: Ids
    xy: Coordinates
    num_rows: int
    divisor: int  # one row of so many is placed
    without: int  # rows that were chosen and have no place
    has_vector: npt.NDArray[np.bool_] = field(repr=False)  # of the rows that were chosen

    @property
    def num_points(self) -> int:
        """Points placed."""
        return int(self.ids.size)

    def inside(self, polygon: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the places of the points in a polygon of the shape (corners, 2).

        Only points in a square of a grid that the outline goes through are compared with it: all
        points of another square are inside, or none.
        """
        x, y = self.xy[:, 0], self.xy[:, 1]
        kinds = _squares_of(polygon)[(x & ~np.uint16(_SQUARE - 1)) | (y >> _SQUARE_BITS)]
        is_inside = kinds == _INSIDE
        near = np.flatnonzero(kinds == _CROSSED)
        is_inside[near] = _in_outline(self.xy[near], polygon)
        return np.flatnonzero(is_inside)


def _squares_of(polygon: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Tell of each square of the grid whether it is outside, inside, or crossed by the outline."""
    count = (SCALE + 1) >> _SQUARE_BITS
    edges = np.zeros((count, count + 1), np.int64)  # by row and column, summed up along the row
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        low, high = sorted((y1, y2))
        first, last = (int(np.clip(edge // _SQUARE, 0, count - 1)) for edge in (low - 1, high + 1))
        rows = np.arange(first, last + 1)
        # Where the edge enters and leaves each row of squares.
        ends = np.clip([rows * _SQUARE - 1, (rows + 1) * _SQUARE + 1], low, high)
        slope = (x2 - x1) / (y2 - y1) if y1 != y2 else 0.0
        across = x1 + (ends - y1) * slope if slope else np.repeat([[x1], [x2]], rows.size, axis=1)
        left = np.clip((across.min(0) - 1) // _SQUARE, 0, count - 1).astype(np.int64)
        right = np.clip((across.max(0) + 1) // _SQUARE, 0, count - 1).astype(np.int64)
        edges[rows, left] += 1
        edges[rows, right + 1] -= 1
    is_crossed = edges.cumsum(1)[:, :count].T > 0
    middles = np.arange(count) * _SQUARE + _SQUARE // 2
    grid = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    kinds = np.where(_in_outline(grid, polygon), _INSIDE, _OUTSIDE).reshape(count, count)
    squares: npt.NDArray[np.uint8] = np.where(is_crossed, _CROSSED, kinds).astype(np.uint8).ravel()
    return squares


def _in_outline(xy: npt.NDArray[Any], polygon: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell which points are inside of a polygon.

    A point is inside when a line from it to the right crosses the outline an odd number of times.
    """
    order = np.argsort(xy[:, 1], kind="stable")
    x, y = xy[order, 0].astype(np.float64), xy[order, 1].astype(np.float64)
    crosses = np.zeros(order.size, np.bool_)
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        first, stop = np.searchsorted(y, sorted((y1, y2)))  # only points beside this edge
        if first < stop:
            crossing = x1 + (y[first:stop] - y1) * (x2 - x1) / (y2 - y1)
            crosses[first:stop] ^= x[first:stop] < crossing
    is_inside = np.zeros(order.size, np.bool_)
    is_inside[order] = crosses
    return is_inside


def divisor_of(num_rows: int) -> int:
    """Return of how many rows one is placed: the smallest power of two that keeps the limit."""
    divisor = 1
    while num_rows > MAX_POINTS * divisor:
        divisor *= 2
    return divisor


def place_rows(source: ScannedSource, plane: Plane, divisor: int, progress: Progress) -> PointSet:
    """Place the rows of a version."""
    ids, placed, chosen = [], [], []
    column, num_rows = plane.column, source.stats().num_rows
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    names = [name for name in plane.columns if name in source.schema.names]
    for batch in chosen_batches(source, names, divisor, progress):
        xy, is_placed = plane.place_batch(batch)
        chosen.append(is_placed)
        ids.append(batch.column(_ROW_ID).to_numpy()[is_placed])
        placed.append(xy if is_placed.all() else xy[is_placed])
    mask = np.concatenate([np.zeros(0, np.bool_), *chosen])
    return PointSet(
        plane=plane,
        ids=np.concatenate([np.zeros(0, np.uint64), *ids]).astype(np.uint64),
        xy=np.concatenate([np.zeros((0, 2), np.uint16), *placed]),
        num_rows=num_rows,
        divisor=divisor,
        without=int(mask.size - mask.sum()),
        has_vector=mask,
    )


def chosen_batches(
    source: ScannedSource, columns: Sequence[str], divisor: int, progress: Progress
) -> Iterator[pa.RecordBatch]:
    """Scan columns and the row ids of the rows that are placed."""
    kinds = [source.schema.field(name).type for name in columns]
    width = sum(kind.list_size * 4 if pa.types.is_fixed_size_list(kind) else 64 for kind in kinds)
    rows = max(16, min(STEP_ROWS, STEP_BYTES // width))
    columns_read = [*columns, _ROW_ID]
    groups = scan_groups(source)
    total = sum(group.num_rows for group in groups)
    for group in groups:
        done = group.first
        scan = source.scanner(columns=columns_read, fragments=group.fragments, batch_size=rows)
        for batch in scan.to_batches():
            progress(done, total)
            done += batch.num_rows
            if divisor > 1:
                share = np.uint64(2**64 // divisor)
                yield batch.filter(pa.array(_hashed(batch.column(_ROW_ID).to_numpy()) < share))
            else:
                yield batch


def _hashed(ids: Ids) -> Ids:
    """Mix the bits of row ids (the finalizer of splitmix64)."""
    mixed = ids.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
