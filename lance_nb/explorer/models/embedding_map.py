"""Place the rows of a version on a plane by one of their vector columns.

============== =====================================================================
Plane          what places vectors: a projection, or a layout by neighbours
Projection     the plane of the two principal components of a sample of the vectors, and
               the box that coordinates are scaled to
PointSet       one version on that plane: row ids and coordinates
Colouring      a column as one code per point, and the legend of the codes
PointChanges   which points arrived, moved or were relabelled from one version to another
PlacedMap      the points of a version with their colours and changes
============== =====================================================================

A plane is fitted once, to the first version that is shown. Other versions are placed on the same
plane, so that a point moves only when its vector changes.

Layout: coordinates are uint16, 0 to 65535 over the box, x first; a point outside of the box stands
on its edge. Codes are uint8: of categories the place in the legend, ``OTHER`` for the ones beside
it; of numbers 0 to ``NUMBER_MAX`` between the 1st and the 99th percentile; ``MISSING`` for null and
NaN. Changes are bits: ``ARRIVED``, ``MOVED``, ``RELABELLED``.

Of a version with more than ``MAX_POINTS`` rows a share of 1/2, 1/4, ... is placed: the rows whose
hashed row id is below it, so that the same rows are chosen at every version. Rows without a finite
vector are counted and left out.

Limits: ``MAX_POINTS`` points, about 20 bytes each; a step reads ``STEP_BYTES`` of vectors.
Categories have at most ``MAX_DISTINCT`` values, of which ``MAX_CATEGORIES`` get a colour and
``MAX_NAMES`` a name on the map.
Source: Halko, Martinsson, Tropp, "Finding structure with randomness", algorithm 4.4, for the
components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer.models import cells, text
from lance_nb.explorer.models.row_sample import sample_rows
from lance_nb.explorer.models.source import ScannedSource, scan_groups

MAX_POINTS = 1_000_000
PIECE_POINTS = 120_000
STEP_BYTES = 32_000_000
STEP_ROWS = 131_072
SCALE = 65_535
MARGIN = 0.25  # of the sample's box, on each side, for points that come later
MAX_CATEGORIES = 12
MAX_DISTINCT = 4096
MAX_NAMES = 60
NAMED_SHARE = 500  # a category of fewer than one point in so many has no name on the map
OTHER = MAX_CATEGORIES
MISSING = 255
NUMBER_MAX = 254
ARRIVED, MOVED, RELABELLED = 1, 2, 4
MOVED_STEPS = 16  # of SCALE; less is the rounding of another data type
_ITERATIONS = 8
_ROW_ID = "_rowid"
_BINS = 64

Progress = Callable[[int, int], object]
Coordinates = npt.NDArray[np.uint16]
Codes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.uint64]


def vector_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of vectors that can be placed: fixed-size lists of two floats or more."""
    return [one.name for one in schema if _is_vector(one.type)]


def _is_vector(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_fixed_size_list(kind)
        and kind.list_size > 1
        and pa.types.is_floating(kind.value_type)
    )


class Plane(Protocol):
    """What places the vectors of a column, the same vector at the same place."""

    @property
    def column(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def words(self) -> str:
        """Say what the plane is."""
        ...

    def place(self, vectors: npt.NDArray[np.float32]) -> Coordinates:
        """Place vectors of the shape (rows, dimension)."""
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


def vector_field(source: ScannedSource, column: str) -> pa.Field:
    """Return the field of a column of vectors. Raises ColumnNotFoundError, NotSupportedError."""
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    found = source.schema.field(column)
    if not _is_vector(found.type):
        raise NotSupportedError(f"{column!r} has no vectors of a fixed length of 2 or more floats")
    return found


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
    return Projection(column, mean, axes, middle - reach, middle + reach, explained, len(vectors))


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
    """Return vectors of the shape (rows, dimension), and which rows have a finite one."""
    import pyarrow.compute as pc

    plain: Any = cells.plain(column)
    dimension = plain.type.list_size
    values = plain.values.slice(plain.offset * dimension, len(plain) * dimension)
    if values.null_count:
        values = pc.fill_null(values, float("nan"))
    vectors = values.to_numpy(zero_copy_only=False).reshape(-1, dimension)
    vectors = vectors.astype(np.float32, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        has_vector = np.isfinite(vectors.sum(1, dtype=np.float64))
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
    without: int  # rows that were chosen and have no finite vector
    has_vector: npt.NDArray[np.bool_] = field(repr=False)  # of the rows that were chosen

    @property
    def num_points(self) -> int:
        """Points placed."""
        return int(self.ids.size)

    def inside(self, polygon: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the places of the points in a polygon of the shape (corners, 2).

        A point is inside when a line from it to the right crosses the outline an odd number of
        times.
        """
        low, high = polygon.min(0), polygon.max(0)
        near = np.flatnonzero(((self.xy >= low) & (self.xy <= high)).all(1))
        order = near[np.argsort(self.xy[near, 1], kind="stable")]
        x, y = self.xy[order, 0].astype(np.float64), self.xy[order, 1].astype(np.float64)
        is_inside = np.zeros(order.size, np.bool_)
        for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            first, stop = np.searchsorted(y, sorted((y1, y2)))  # only points beside this edge
            if first < stop:
                crossing = x1 + (y[first:stop] - y1) * (x2 - x1) / (y2 - y1)
                is_inside[first:stop] ^= x[first:stop] < crossing
        return np.sort(order[is_inside])


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
    for batch in chosen_batches(source, column, divisor, progress):
        vectors, has_vector = read_vectors(batch.column(0))
        if vectors.shape[1] != plane.dimension:
            raise NotSupportedError(
                f"{column!r} has vectors of {vectors.shape[1]} values in this version and of "
                f"{plane.dimension} in the one that the map was made for"
            )
        chosen.append(has_vector)
        ids.append(batch.column(1).to_numpy()[has_vector])
        placed.append(plane.place(vectors if has_vector.all() else vectors[has_vector]))
    mask = np.concatenate([np.zeros(0, np.bool_), *chosen])
    return PointSet(
        plane,
        np.concatenate([np.zeros(0, np.uint64), *ids]).astype(np.uint64),
        np.concatenate([np.zeros((0, 2), np.uint16), *placed]),
        num_rows,
        divisor,
        int(mask.size - mask.sum()),
        mask,
    )


def chosen_batches(
    source: ScannedSource, column: str, divisor: int, progress: Progress
) -> Iterator[pa.RecordBatch]:
    """Scan a column and the row ids of the rows that are placed."""
    kind = source.schema.field(column).type
    width = kind.list_size * 4 if pa.types.is_fixed_size_list(kind) else 64
    rows = max(1024, min(STEP_ROWS, STEP_BYTES // width))
    groups = scan_groups(source)
    total = sum(group.num_rows for group in groups)
    for group in groups:
        done = group.first
        scan = source.scanner(columns=[column, _ROW_ID], fragments=group.fragments, batch_size=rows)
        for batch in scan.to_batches():
            progress(done, total)
            done += batch.num_rows
            if divisor > 1:
                share = np.uint64(2**64 // divisor)
                yield batch.filter(pa.array(_hashed(batch.column(1).to_numpy()) < share))
            else:
                yield batch


def _hashed(ids: Ids) -> Ids:
    """Mix the bits of row ids (the finalizer of splitmix64)."""
    mixed = ids.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A category: how many points have it, and the middle of the place where most of them are."""

    code: int
    label: str
    count: int
    x: int = 0
    y: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {"code": self.code, "label": self.label, "count": self.count, "x": self.x,
                "y": self.y}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Colouring:
    """The codes of points; ``low`` and ``high`` label the ends of numbers."""

    column: str | None
    kind: str  # "plain", "category" or "number"
    codes: Codes
    legend: tuple[LegendEntry, ...] = ()
    names: tuple[LegendEntry, ...] = ()  # of dense groups, also of those without a colour
    low: str = ""
    high: str = ""
    values: tuple[str, ...] = ()  # of a category: by code of ``labels``
    labels: npt.NDArray[np.uint16] | None = None  # of every point, MAX_DISTINCT for null

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values, without the codes."""
        return {
            "column": None if self.column is None else text.name(self.column),
            "raw": self.column,
            "kind": self.kind,
            "legend": [one.to_json() for one in self.legend],
            "names": [one.to_json() for one in self.names],
            "low": self.low,
            "high": self.high,
        }


def colour_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that points can be coloured by."""
    return [one.name for one in schema if _is_category(one.type) or _is_number(one.type)]


def _is_category(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_category(kind.value_type)
    return cells.is_text(kind) or pa.types.is_boolean(kind)


def _is_number(kind: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_time)


def plain_colouring(points: PointSet) -> Colouring:
    """Return one colour for all points."""
    return Colouring(None, "plain", np.zeros(points.num_points, np.uint8))


def colour_points(
    source: ScannedSource,
    points: PointSet,
    column: str,
    progress: Progress,
    known: Sequence[str] = (),
) -> Colouring:
    """Colour points by a column.

    Args:
        source: the version that the points are of.
        points: the points.
        column: the column that gives the colours.
        progress: called with rows read and rows in all.
        known: categories whose colours are already given, in their order.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    kind = source.schema.field(column).type
    if _is_category(kind):
        labels, values = _categories(source, points, column, progress)
        return _category_colouring(points, column, labels, values, known)
    if not _is_number(kind):
        raise NotSupportedError(f"points cannot be coloured by {column!r}, which is a {kind}")
    parts = [_numbers(batch.column(0))
             for batch in chosen_batches(source, column, points.divisor, progress)]  # fmt: skip
    numbers = np.concatenate([np.zeros(0), *parts])[points.has_vector]
    few = np.unique(numbers[: MAX_DISTINCT * 16])
    if pa.types.is_integer(kind) and few.size <= MAX_CATEGORIES:
        distinct, places = np.unique(numbers, return_inverse=True)
        if distinct.size <= MAX_CATEGORIES:
            values = ["null" if np.isnan(one) else f"{int(one)}" for one in distinct]
            return _category_colouring(points, column, places.astype(np.uint16), values, known)
    return _number_colouring(column, kind, numbers)


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    import pyarrow.compute as pc

    plain = cells.plain(column)
    if pa.types.is_date(plain.type) or pa.types.is_timestamp(plain.type):
        plain = pc.cast(plain, pa.timestamp("us", tz=getattr(plain.type, "tz", None)), safe=False)
        plain = pc.cast(plain, pa.int64())
    numbers: npt.NDArray[np.float64] = pc.cast(plain, pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return numbers


def _number_colouring(
    column: str, kind: pa.DataType, numbers: npt.NDArray[np.float64]
) -> Colouring:
    codes = np.full(numbers.size, MISSING, np.uint8)
    is_known = np.isfinite(numbers)
    if not is_known.any():
        return Colouring(column, "number", codes, low="no values", high="no values")
    low, high = np.quantile(numbers[is_known], (0.01, 0.99))
    scaled = (numbers[is_known] - low) / max(high - low, np.finfo(np.float64).tiny) * NUMBER_MAX
    codes[is_known] = np.clip(scaled, 0, NUMBER_MAX).astype(np.uint8)
    shown = [_end_text(kind, one) for one in (low, high)]
    return Colouring(column, "number", codes, low=shown[0], high=shown[1])


def _end_text(kind: pa.DataType, value: float) -> str:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return cells.temporal_text(pa.scalar(int(value), pa.timestamp("us")))
    return f"{value:,.6g}"


def _categories(
    source: ScannedSource, points: PointSet, column: str, progress: Progress
) -> tuple[npt.NDArray[np.uint16], list[str]]:
    """Return the label of each point, as a place among the distinct values, and these values."""
    import pyarrow.compute as pc

    found: dict[Any, int] = {}
    parts = []
    for batch in chosen_batches(source, column, points.divisor, progress):
        coded = cells.plain(batch.column(0)).dictionary_encode()
        values = coded.dictionary.to_pylist()  # distinct values of one step
        for value in values:
            found.setdefault(value, len(found))
        if len(found) > MAX_DISTINCT:
            raise NotSupportedError(
                f"{column!r} has more than {MAX_DISTINCT:,} different values: choose a column "
                "with fewer"
            )
        places = np.array([found[value] for value in values] + [MAX_DISTINCT], np.uint16)
        indices = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
        parts.append(places[indices])
    labels = np.concatenate([np.zeros(0, np.uint16), *parts])[points.has_vector]
    return labels, [text.line(value, 80) for value in found]


def _category_colouring(
    points: PointSet,
    column: str,
    labels: npt.NDArray[np.uint16],
    values: Sequence[str],
    known: Sequence[str],
) -> Colouring:
    counts = np.bincount(labels, minlength=MAX_DISTINCT + 1)
    by_count = sorted(range(len(values)), key=lambda at: (-counts[at], values[at]))
    places = {value: at for at, value in reversed(list(enumerate(values)))}
    kept = [places[value] for value in known if value in places]
    free = [at for at in by_count if at not in set(kept)]
    colours = dict(zip(kept, (at for at, value in enumerate(known) if value in places),
                       strict=True))  # fmt: skip
    unused = [code for code in range(MAX_CATEGORIES) if code >= len(known)]
    colours |= dict(zip(free, unused, strict=False))
    table = np.full(MAX_DISTINCT + 1, OTHER, np.uint8)
    table[MAX_DISTINCT] = MISSING
    for at, code in colours.items():
        table[at] = code
    codes = table[labels]
    legend = [
        LegendEntry(code, values[at], int(counts[at]), *_densest(points.xy[labels == at]))
        for at, code in sorted(colours.items(), key=lambda one: one[1]) if counts[at]
    ]  # fmt: skip
    for code, label in ((OTHER, "other values"), (MISSING, "null")):
        number = int((codes == code).sum())
        legend += [LegendEntry(code, label, number)] if number else []
    least = max(1, points.num_points // NAMED_SHARE)
    order = np.argsort(labels, kind="stable")
    ends = np.concatenate([[0], np.cumsum(counts)])
    names = [
        LegendEntry(int(table[at]), values[at], int(counts[at]),
                    *_densest(points.xy[order[ends[at] : ends[at + 1]]]))
        for at in by_count[:MAX_NAMES] if counts[at] >= least
    ]  # fmt: skip
    return Colouring(column, "category", codes, tuple(legend), tuple(names),
                     values=tuple(values), labels=labels)  # fmt: skip


def _densest(xy: Coordinates) -> tuple[int, int]:
    """Return the mean of the points in the square that holds most of them."""
    if not len(xy):
        return 0, 0
    squares = (xy.astype(np.int64) * _BINS) >> 16
    at = squares[:, 0] * _BINS + squares[:, 1]
    most = int(np.bincount(at, minlength=1).argmax())
    x, y = xy[at == most].mean(0)
    return int(x), int(y)


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
    import pyarrow.compute as pc

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
    if colours is not None and all(one.labels is not None for one in colours):
        states[is_old] |= _relabelled(*colours, origin, is_old)
    removed = np.ones(a.num_points, np.bool_)
    removed[origin[is_old]] = False
    return PointChanges(states, np.flatnonzero(removed), origin)


def changes_by_code(found: PointChanges, a: Colouring, b: Colouring) -> dict[str, dict[str, int]]:
    """Count the changes from A to B by the codes of B; removed points by the label they had."""
    if a.labels is None or b.labels is None:
        return {}
    code_of = dict(zip(b.values, _codes_of(b), strict=True))
    codes = np.array([*(code_of.get(value, OTHER) for value in a.values), MISSING], np.uint8)
    had = np.minimum(a.labels[found.removed], len(a.values))  # null is the last one
    counts = {
        kind: np.bincount(b.codes[found.states & bit > 0], minlength=256)
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
    places = {value: at for at, value in enumerate(b.values)}
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
             for batch in chosen_batches(source, column, points.divisor, progress)]  # fmt: skip
    whole = pa.chunked_array(parts, type=parts[0].type if parts else kind).combine_chunks()
    return cells.plain(whole).filter(pa.array(points.has_vector))


@dataclass(slots=True)
class PlacedMap:
    """The points of one version, their colours, and how they differ from another version."""

    place: tuple[str | None, int]
    points: PointSet
    colouring: Colouring
    changes: PointChanges | None = None
    earlier: PlacedMap | None = None

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
        }


def _words(points: PointSet) -> str:
    said = (
        f"{text.plural(points.num_points, 'point')} of {text.plural(points.num_rows, 'row')}; "
        f"{points.plane.words}"
    )
    if points.divisor > 1:
        said += f"; a random sample of 1 row in {points.divisor}"
    if points.without:
        said += f"; {text.plural(points.without, 'row')} without a finite vector"
    return said
