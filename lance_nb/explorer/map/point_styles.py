"""Give points the colours and sizes of columns, and names to the groups of a colour.

============== =====================================================================
Colouring      a column as one code of a colour per point, and the legend of the codes
Sizing         a column of numbers as one code of a size per point, and the ends of its range
============== =====================================================================

Layout: codes are uint8. Of categories the place in the legend, ``OTHER`` for the ones beside it; of
numbers 0 to ``NUMBER_MAX`` between the 1st and the 99th percentile; ``MISSING`` for null and NaN.
Of sizes 1 to 255 between the same percentiles, 0 for null and NaN: they are the smallest points.
The area of a point grows linearly with its code, see ``size_factor``.

Limits: categories have at most ``MAX_DISTINCT`` values, of which ``MAX_CATEGORIES`` get a colour
and ``MAX_NAMES`` a name on the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.map.embedding_map import (
    Coordinates,
    PointSet,
    Progress,
    chosen_batches,
)
from lance_nb.explorer.source import ScannedSource
from lance_nb.value_classes import dataclass

MAX_CATEGORIES = 12
MAX_DISTINCT = 4096
MAX_NAMES = 60
NAMED_SHARE = 500  # a category of fewer than one point in so many has no name on the map
OTHER = MAX_CATEGORIES
MISSING = 255
NUMBER_MAX = 254
SIZE_MAX = 255
_LEAST_AREA, _MOST_AREA = 0.25, 6.25  # times that of a point without a size
_BINS = 64

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class LegendEntry(JsonFields):
    """A category: how many points have it, and the middle of the place where most of them are."""

    code: int
    label: str
    count: int
    x: int = 0
    y: int = 0


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
            "legend": [entry.to_json() for entry in self.legend],
            "names": [name.to_json() for name in self.names],
            "low": self.low,
            "high": self.high,
        }


def colour_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that points can be coloured by."""
    return [field.name for field in schema if _is_category(field.type) or _is_number(field.type)]


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
    known_values: Sequence[str] = (),
) -> Colouring:
    """Colour points by a column.

    Args:
        source: the version that the points are of.
        points: the points.
        column: the column that gives the colours.
        progress: called with rows read and rows in all.
        known_values: categories whose colours are already given, in their order.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    kind = source.schema.field(column).type
    if _is_category(kind):
        labels, values = _categories(source, points, column, progress)
        return _category_colouring(points, column, labels, values=values, known_values=known_values)
    if not _is_number(kind):
        raise NotSupportedError(f"points cannot be coloured by {column!r}, which is a {kind}")
    numbers = _read_numbers(source, points, column, progress)
    few = np.unique(numbers[: MAX_DISTINCT * 16])
    if pa.types.is_integer(kind) and few.size <= MAX_CATEGORIES:
        distinct, places = np.unique(numbers, return_inverse=True)
        if distinct.size <= MAX_CATEGORIES:
            values = ["null" if np.isnan(value) else f"{int(value)}" for value in distinct]
            return _category_colouring(
                points, column, places.astype(np.uint16), values=values, known_values=known_values
            )
    return _number_colouring(column, kind, numbers)


def _read_numbers(
    source: ScannedSource, points: PointSet, column: str, progress: Progress
) -> npt.NDArray[np.float64]:
    """Return the number of each point, NaN for null."""
    parts = [_numbers(batch.column(0))
             for batch in chosen_batches(source, [column], points.divisor, progress)]  # fmt: skip
    return np.concatenate([np.zeros(0), *parts])[points.has_vector]


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
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
    shares, ends = _shares_of_range(numbers)
    codes = np.full(numbers.size, MISSING, np.uint8)
    is_known = np.isfinite(shares)
    codes[is_known] = (shares[is_known] * NUMBER_MAX).astype(np.uint8)
    low, high = _end_texts(kind, ends)
    return Colouring(column, "number", codes, low=low, high=high)


def _shares_of_range(
    numbers: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], tuple[float, float] | None]:
    """Return where numbers are between the 1st and the 99th percentile, 0 to 1; and these two.

    NaN stays NaN; infinities are at the ends.
    """
    is_known = np.isfinite(numbers)
    if not is_known.any():
        return np.full(numbers.size, np.nan), None
    low, high = np.quantile(numbers[is_known], (0.01, 0.99))
    with np.errstate(over="ignore"):
        span = max(high - low, np.finfo(np.float64).tiny)
        shares = np.clip((numbers - low) / span, 0, 1)
    return shares, (float(low), float(high))


def _end_texts(kind: pa.DataType, ends: tuple[float, float] | None) -> tuple[str, str]:
    if ends is None:
        return "no values", "no values"
    return _end_text(kind, ends[0]), _end_text(kind, ends[1])


def _end_text(kind: pa.DataType, value: float) -> str:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return cells.temporal_text(pa.scalar(int(value), pa.timestamp("us")))
    return f"{value:,.6g}"


def _categories(
    source: ScannedSource, points: PointSet, column: str, progress: Progress
) -> tuple[npt.NDArray[np.uint16], list[str]]:
    """Return the label of each point, as a place among the distinct values, and these values."""
    codes: dict[Any, int] = {}
    parts = []
    for batch in chosen_batches(source, [column], points.divisor, progress):
        coded = cells.plain(batch.column(0)).dictionary_encode()
        values = coded.dictionary.to_pylist()  # distinct values of one step
        for value in values:
            codes.setdefault(value, len(codes))
        if len(codes) > MAX_DISTINCT:
            raise NotSupportedError(
                f"{column!r} has more than {MAX_DISTINCT:,} different values: choose a column "
                "with fewer"
            )
        places = np.array([codes[value] for value in values] + [MAX_DISTINCT], np.uint16)
        indices = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
        parts.append(places[indices])
    labels = np.concatenate([np.zeros(0, np.uint16), *parts])[points.has_vector]
    return labels, [text.line(value, 80) for value in codes]


def _category_colouring(
    points: PointSet,
    column: str,
    labels: npt.NDArray[np.uint16],
    values: Sequence[str],
    known_values: Sequence[str],
) -> Colouring:
    counts = np.bincount(labels, minlength=MAX_DISTINCT + 1)
    by_count = sorted(range(len(values)), key=lambda index: (-counts[index], values[index]))
    places = {value: index for index, value in reversed(list(enumerate(values)))}
    known_places = [places[value] for value in known_values if value in places]
    free = [index for index in by_count if index not in set(known_places)]
    colours = dict(
        zip(
            known_places,
            (index for index, value in enumerate(known_values) if value in places),
            strict=True,
        )
    )
    unused = [code for code in range(MAX_CATEGORIES) if code >= len(known_values)]
    colours |= dict(zip(free, unused, strict=False))
    table = np.full(MAX_DISTINCT + 1, OTHER, np.uint8)
    table[MAX_DISTINCT] = MISSING
    for value_index, code in colours.items():
        table[value_index] = code
    codes = table[labels]
    legend = [
        LegendEntry(code, values[index], int(counts[index]), *densest(points.xy[labels == index]))
        for index, code in sorted(colours.items(), key=lambda pair: pair[1]) if counts[index]
    ]  # fmt: skip
    for code, label in ((OTHER, "other values"), (MISSING, "null")):
        number = int((codes == code).sum())
        legend += [LegendEntry(code, label, number)] if number else []
    least = max(1, points.num_points // NAMED_SHARE)
    order = np.argsort(labels, kind="stable")
    ends = np.concatenate([[0], np.cumsum(counts)])
    names = [
        LegendEntry(int(table[index]), values[index], int(counts[index]),
                    *densest(points.xy[order[ends[index] : ends[index + 1]]]))
        for index in by_count[:MAX_NAMES] if counts[index] >= least
    ]  # fmt: skip
    return Colouring(column, "category", codes, legend=tuple(legend), names=tuple(names),
                     values=tuple(values), labels=labels)  # fmt: skip


def densest(xy: Coordinates) -> tuple[int, int]:
    """Return the mean of the points in the square that holds most of them."""
    if not len(xy):
        return 0, 0
    squares = (xy.astype(np.int64) * _BINS) >> 16
    square_codes = squares[:, 0] * _BINS + squares[:, 1]
    most = int(np.bincount(square_codes, minlength=1).argmax())
    x, y = xy[square_codes == most].mean(0)
    return int(x), int(y)


@dataclass(frozen=True, slots=True)
class Sizing:
    """The sizes of points by a column; ``low`` and ``high`` label the ends of its range."""

    column: str
    codes: Codes
    low: str
    high: str
    without: int  # points without a value

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values, without the codes."""
        return {
            "column": text.name(self.column),
            "raw": self.column,
            "low": self.low,
            "high": self.high,
            "words": size_words(self),
        }


def size_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that points can have their sizes from."""
    return [field.name for field in schema if _has_size(field.type)]


def _has_size(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def size_points(source: ScannedSource, points: PointSet, column: str, progress: Progress) -> Sizing:
    """Give points sizes by a column of numbers.

    Args:
        source: the version that the points are of.
        points: the points.
        column: the column that gives the sizes.
        progress: called with rows read and rows in all.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    kind = source.schema.field(column).type
    if not _has_size(kind):
        raise NotSupportedError(f"points cannot be sized by {column!r}, which is a {kind}")
    shares, ends = _shares_of_range(_read_numbers(source, points, column, progress))
    is_known = np.isfinite(shares)
    codes = np.zeros(shares.size, np.uint8)
    codes[is_known] = np.rint(1 + shares[is_known] * (SIZE_MAX - 1)).astype(np.uint8)
    low, high = _end_texts(kind, ends)
    return Sizing(column, codes, low, high=high, without=int(codes.size - np.count_nonzero(codes)))


def size_factor(code: int) -> float:
    """Return by what the width of a point is multiplied. ``map/point_renderer.js`` has the same."""
    return float(np.sqrt(_LEAST_AREA + (_MOST_AREA - _LEAST_AREA) * code / SIZE_MAX))


def size_words(sizing: Sizing) -> str:
    """Say what sizes are, for the legend."""
    without = f"; {text.plural(sizing.without, 'point')} without a value are the smallest"
    if sizing.without == 1:
        without = "; 1 point without a value is the smallest"
    words = f"{text.name(sizing.column)}, {sizing.low} to {sizing.high}"
    return words + (without if sizing.without else "")
