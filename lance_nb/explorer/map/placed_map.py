"""The map of one version: its points with their colours and sizes, and what changed since another.

============== =====================================================================
PointChanges   which points arrived, moved or were relabelled from one version to another
PlacedMap      the points of a version with their colours, sizes and changes
============== =====================================================================

Layout: changes are bits, ``ARRIVED``, ``MOVED`` and ``RELABELLED``, in one byte for each point.

Limits: points travel to the page in pieces of at most ``PIECE_POINTS``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.map.embedding_map import PointSet, Progress, chosen_batches
from lance_nb.explorer.map.point_styles import (
    MAX_DISTINCT,
    MISSING,
    OTHER,
    Codes,
    Colouring,
    Sizing,
)
from lance_nb.explorer.source import ScannedSource
from lance_nb.value_classes import dataclass

PIECE_POINTS = 120_000
ARRIVED, MOVED, RELABELLED = 1, 2, 4
MOVED_STEPS = 16  # of SCALE; less is the rounding of another data type


@dataclass(frozen=True, slots=True)
class PointChanges:
    """What differs from version A to B, for the points of B, and the points that only A has.

    ``origin`` has, for each point of B that is in A as well, its place in A; -1 for others.
    """

    states: Codes
    removed: npt.NDArray[np.int64]
    origin: npt.NDArray[np.int64]

    def count(self, bit: int) -> int:
        """Return how many points of B have a bit."""
        return int(np.count_nonzero(self.states & bit))

    def to_json(self) -> dict[str, int]:
        """Return the counts."""
        return {
            "arrived": self.count(ARRIVED),
            "removed": int(self.removed.size),
            "moved": self.count(MOVED),
            "relabelled": self.count(RELABELLED),
            "same": int(np.count_nonzero(self.states == 0)),
        }


def compare_points(
    a: PointSet, b: PointSet, keys: tuple[pa.Array, pa.Array],
    colours: tuple[Colouring, Colouring] | None = None,
) -> PointChanges:  # fmt: skip
    """Compare the points of two versions on one plane.

    Args:
        a: the earlier points.
        b: the later points.
        keys: for the points of each, what identifies a row.
        colours: the categories of both, to find rows whose label changed.

    Raises InvalidInputError when a key occurs twice.
    """
    for keyed in keys:
        if pc.count_distinct(keyed).as_py() != len(keyed):
            raise InvalidInputError("the values of the key column are not different in every row")
    origin = pc.fill_null(pc.index_in(keys[1], value_set=keys[0]), -1)
    origin = origin.to_numpy(zero_copy_only=False).astype(np.int64)
    is_old = origin >= 0
    states = np.where(is_old, 0, ARRIVED).astype(np.uint8)
    before = a.xy[origin[is_old]].astype(np.int32)
    after = b.xy[is_old].astype(np.int32)
    states[is_old] |= np.where(
        (np.abs(before - after) > MOVED_STEPS).any(1), np.uint8(MOVED), np.uint8(0)
    )
    if colours is not None and all(colour.labels is not None for colour in colours):
        states[is_old] |= _relabelled(*colours, origin, is_old)
    removed = np.ones(a.num_points, np.bool_)
    removed[origin[is_old]] = False
    return PointChanges(states, np.flatnonzero(removed), origin)


def changes_by_code(changes: PointChanges, a: Colouring, b: Colouring) -> dict[str, dict[str, int]]:
    """Count the changes from A to B by the codes of B; removed points by the label they had."""
    if a.labels is None or b.labels is None:
        return {}
    code_of = dict(zip(b.values, _codes_of(b), strict=True))
    codes = np.array([*(code_of.get(value, OTHER) for value in a.values), MISSING], np.uint8)
    had = np.minimum(a.labels[changes.removed], len(a.values))  # null is the last one
    counts = {
        kind: np.bincount(b.codes[changes.states & bit > 0], minlength=256)
        for kind, bit in (("arrived", ARRIVED), ("moved", MOVED), ("relabelled", RELABELLED))
    } | {"removed": np.bincount(codes[had], minlength=256)}
    some = np.flatnonzero(sum(counts.values()))
    return {str(code): {kind: int(of[code]) for kind, of in counts.items()} for code in some}


def _codes_of(colouring: Colouring) -> Codes:
    """Return the code of each value."""
    codes = np.full(MAX_DISTINCT + 1, OTHER, np.uint8)
    if colouring.labels is not None:
        codes[colouring.labels] = colouring.codes
    return codes[: len(colouring.values)]


def _relabelled(
    a: Colouring, b: Colouring, origin: npt.NDArray[np.int64], is_old: npt.NDArray[np.bool_]
) -> Codes:
    """Return the bit of the points whose category differs."""
    places = {value: index for index, value in enumerate(b.values)}
    table = np.full(MAX_DISTINCT + 1, MAX_DISTINCT + 1, np.int64)
    table[: len(a.values)] = [places.get(value, MAX_DISTINCT + 1) for value in a.values]
    table[MAX_DISTINCT] = MAX_DISTINCT
    if a.labels is None or b.labels is None:
        return np.zeros(int(is_old.sum()), np.uint8)
    differs = table[a.labels[origin[is_old]]] != b.labels[is_old]
    return np.where(differs, np.uint8(RELABELLED), np.uint8(0))


def point_keys(
    source: ScannedSource, points: PointSet, column: str | None, progress: Progress
) -> pa.Array:
    """Return what identifies the rows of points: a column, or the row ids.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    if column is None:
        return pa.array(points.ids)
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    kind = source.schema.field(column).type
    if not (pa.types.is_integer(kind) or cells.is_text(kind)):
        raise NotSupportedError(f"{column!r} cannot be a key: it is a {kind}")
    parts = [cells.plain(batch.column(0))
             for batch in chosen_batches(source, [column], points.divisor, progress)]  # fmt: skip
    whole = pa.chunked_array(parts, type=parts[0].type if parts else kind).combine_chunks()
    return cells.plain(whole).filter(pa.array(points.has_vector))


class PlacedMap:
    """The points of one version, how they look, and how they differ from another version."""

    def __init__(
        self, place: tuple[str | None, int], points: PointSet, colouring: Colouring
    ) -> None:
        self.place = place
        self.points = points
        self.colouring = colouring
        self.sizing: Sizing | None = None
        self.changes: PointChanges | None = None
        self.earlier: PlacedMap | None = None

    @property
    def pieces(self) -> int:
        """Return in how many parts the points travel."""
        return max(1, -(-self.points.num_points // PIECE_POINTS))

    def to_json(self) -> dict[str, Any]:
        """Return what the points are as JSON-able values."""
        points = self.points
        low, high = (
            np.quantile(points.xy, (0.005, 0.995), axis=0).astype(int).tolist()
            if points.num_points
            else ([0, 0], [0, 0])
        )
        return {
            "column": points.plane.column,
            "num_points": points.num_points,
            "num_rows": points.num_rows,
            "divisor": points.divisor,
            "without": points.without,
            "pieces": self.pieces,
            "low": low,
            "high": high,
            "words": _words(points),
            "colouring": self.colouring.to_json(),
            "sizing": None if self.sizing is None else self.sizing.to_json(),
        }


def _words(points: PointSet) -> str:
    words = (
        f"{text.plural(points.num_points, 'point')} of {text.plural(points.num_rows, 'row')}; "
        f"{points.plane.words}"
    )
    if points.divisor > 1:
        words += f"; a random sample of 1 row in {points.divisor}"
    if points.without:
        words += f"; {text.plural(points.without, 'row')} without a vector that can be placed"
    return words
