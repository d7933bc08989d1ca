"""Keep the coordinates of a map in a column of the dataset, and place rows by such a column.

A column of coordinates is a fixed-size list of two floats, null for rows that have no place. The
one that ``coordinate_batches`` makes has x and y from 0 to 1 over the box of the map, y upwards,
and names its column of vectors in the metadata of its field, under ``MARK``: ``{"vector": name}``.
A column that something else has written is scaled to the box of a sample of its values.

Rows without coordinates, such as those of later versions, are placed by their vectors beside the
nearest rows of a sample that have some, as ``NeighbourLayout`` does. So are all rows of a version
that has no such column.

Limits: the sample has at most ``MAX_REFERENCES`` rows. A row whose vector is changed without its
coordinates keeps its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.map.embedding_map import (
    SCALE,
    Coordinates,
    Plane,
    Progress,
    chosen_batches,
    place_vectors,
    read_vectors,
)
from lance_nb.explorer.map.neighbour_layout import (
    MARGIN,
    MAX_REFERENCES,
    REFERENCE_BYTES,
    Floats,
    NeighbourLayout,
)
from lance_nb.explorer.source import ScannedSource
from lance_nb.value_classes import dataclass

MARK = b"lance_nb:map"
MAX_MARK_BYTES = 4096
MAX_NAME_CHARS = 200


def coordinate_columns(schema: pa.Schema) -> dict[str, str | None]:
    """Return the columns of coordinates, and the column of vectors that each of them names."""
    columns = {}
    for field in schema:
        is_pair = pa.types.is_fixed_size_list(field.type) and field.type.list_size == 2
        if is_pair and pa.types.is_floating(field.type.value_type):
            columns[field.name] = _vector_of(field)
    return columns


def _vector_of(field: pa.Field) -> str | None:
    """Return the column of vectors that the mark of a field names; None without a valid one."""
    mark = (field.metadata or {}).get(MARK, b"")
    if not 0 < len(mark) <= MAX_MARK_BYTES:
        return None
    try:
        metadata = json.loads(mark)
    except ValueError:
        return None
    name = metadata.get("vector") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class StoredLayout:
    """Coordinates in the column ``stored``; ``low`` and ``high`` are their box."""

    column: str
    stored: str
    low: Floats
    high: Floats
    neighbours: NeighbourLayout | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that are read to place rows."""
        return self.column, self.stored

    @property
    def dimension(self) -> int:
        """Return the length of a vector, 0 when no row has both a vector and coordinates."""
        return 0 if self.neighbours is None else self.neighbours.dimension

    @property
    def words(self) -> str:
        """Say what the layout is."""
        return (
            f"coordinates kept in the column {text.name(self.stored)}, rows without some beside "
            f"their nearest ones by {text.name(self.column)}"
        )

    def place(self, vectors: Floats) -> Coordinates:
        """Place vectors of the shape (rows, dimension) beside their nearest ones."""
        if self.neighbours is None:
            return np.zeros((len(vectors), 2), np.uint16)
        return self._scaled(self.neighbours.positions(vectors))

    def _scaled(self, coordinates: Floats) -> Coordinates:
        shares = (coordinates - self.low) / (self.high - self.low)
        placed: Coordinates = np.clip(np.rint(shares * SCALE), 0, SCALE).astype(np.uint16)
        return placed

    def place_batch(self, batch: pa.RecordBatch) -> tuple[Coordinates, npt.NDArray[np.bool_]]:
        """Place rows: where their coordinates say, else by their vectors."""
        xy = np.zeros((batch.num_rows, 2), np.uint16)
        is_placed = np.zeros(batch.num_rows, np.bool_)
        if self.stored in batch.schema.names:
            coordinates, is_placed = read_vectors(batch.column(self.stored))
            xy[is_placed] = self._scaled(coordinates[is_placed])
        if self.neighbours is not None and not is_placed.all():
            unplaced = np.flatnonzero(~is_placed)
            some = batch.column(self.column).take(pa.array(unplaced))
            xy[unplaced], is_placed[unplaced] = place_vectors(self, some)
        return xy, is_placed


def read_stored_layout(
    source: ScannedSource, column: str, stored: str, progress: Progress
) -> StoredLayout:
    """Read a sample of the coordinates in a column.

    Args:
        source: the version that has the column.
        column: the column of vectors.
        stored: the column of coordinates.
        progress: called with rows read and rows in all.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    schema = source.schema
    for name in (column, stored):
        if name not in schema.names:
            raise ColumnNotFoundError(name, tuple(schema.names))
    columns = coordinate_columns(schema)
    if stored not in columns:
        raise NotSupportedError(
            f"{stored!r} has no coordinates: it is a {schema.field(stored).type}"
        )
    if column not in cells.vector_columns(schema):
        raise NotSupportedError(f"{column!r} has no vectors of a fixed length of 2 or more floats")
    dimension = schema.field(column).type.list_size
    most = max(1, min(MAX_REFERENCES, REFERENCE_BYTES // (4 * dimension)))
    divisor = 1
    while source.stats().num_rows > most * divisor:
        divisor *= 2
    vectors, coordinates = [np.zeros((0, dimension), np.float32)], [np.zeros((0, 2), np.float32)]
    for batch in chosen_batches(source, (column, stored), divisor, progress):
        some, has_vector = read_vectors(batch.column(column))
        where, has_place = read_vectors(batch.column(stored))
        vectors.append(some[has_vector & has_place])
        coordinates.append(where[has_vector & has_place])
    references = np.concatenate(vectors)[:most]
    places = np.concatenate(coordinates)[:most]
    low, high = np.zeros(2, np.float32), np.ones(2, np.float32)
    if columns[stored] is None and len(places):
        low, high = places.min(0), places.max(0)
        span = np.maximum(high - low, np.float32(1e-6))
        low, high = low - MARGIN * span, high + MARGIN * span
    neighbours = NeighbourLayout.of(column, references, places) if len(references) else None
    return StoredLayout(column, stored, low, high=high, neighbours=neighbours)


def coordinate_field(name: str, column: str) -> pa.Field:
    """Return the field of a column of coordinates. Raises InvalidInputError."""
    if not name.strip() or len(name) > MAX_NAME_CHARS:
        raise InvalidInputError(f"the name of the column has 1 to {MAX_NAME_CHARS} characters")
    mark = json.dumps({"vector": column}).encode()
    return pa.field(name, pa.list_(pa.float32(), 2), metadata={MARK: mark})


def coordinate_batches(
    source: ScannedSource, plane: Plane, stored_field: pa.Field, progress: Progress
) -> Iterator[pa.RecordBatch]:
    """Yield the coordinates of all rows of a version in their order, null for rows without some."""
    schema = pa.schema([stored_field])
    names: Any = [name for name in plane.columns if name in source.schema.names]
    for batch in chosen_batches(source, names, 1, progress):
        xy, is_placed = plane.place_batch(batch)
        flat = pa.array((xy.astype(np.float32) / SCALE).ravel())
        column = pa.FixedSizeListArray.from_arrays(
            flat, type=stored_field.type, mask=pa.array(~is_placed)
        )
        yield pa.record_batch([column], schema=schema)
