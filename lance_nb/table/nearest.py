"""Exact nearest-neighbour search over a vector column: every row that may be returned is compared.

Searching an index instead is the work of ``lance_nb.indices.vectors``; what both have in common,
the query and the distances, is here.

The column is a fixed-size list of float16, float32 or float64 (metrics ``l2``, ``cosine``, ``dot``)
or of uint8 (``hamming``). ``_distance`` (float32) is the squared Euclidean distance, one less the
cosine, one less the dot product, or the number of bits that differ; null vectors and distances that
are NaN are skipped. Equal distances keep the order of the scan.

As in pylance, a filter is applied to the k rows found, unless ``prefilter`` asks for the k nearest
of the rows that pass it. Arguments that steer an index have no effect on an exact search.

Limits: memory holds k rows per query and one window of vectors; up to 1,024 queries.
Source: behaviour of pylance 14.0.2 without an index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import to_floats, to_integers
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.format.schema import Schema
from lance_nb.table.addresses import Addresses, addresses_of
from lance_nb.table.filtered_scan import RowChoice, Selected, read_columns
from lance_nb.table.predicate.comparison import as_mask
from lance_nb.table.projection import project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

DISTANCE = "_distance"
QUERY_INDEX = "query_index"
DEFAULT_K = 10
QUERIES_MAX = 1024
_BLOCK_BYTES = 4 * 1024 * 1024
METRICS = ("l2", "cosine", "dot", "hamming")
DEFAULT_EFFORT = 0.5
MAX_LENGTH = 1e15
"""Of vectors that are compared with each other: sums of squares of longer ones are no float32."""
_ARGUMENTS = frozenset({
    "column", "q", "k", "metric", "distance_range", "nprobes", "minimum_nprobes",
    "maximum_nprobes", "refine_factor", "use_index", "ef", "query_parallelism", "approx_mode",
    "search_effort",
})  # fmt: skip
_MODES = ("fast", "normal", "accurate")
Floats = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Probing:
    """How an index is searched.

    ``least`` and ``most`` partitions (None: all of them), beginning with a number that ``effort``
    chooses, from 0 for the least to 1 for the most. With ``refine_factor`` so many times k rows are
    found by the index, and compared exactly.
    """

    least: int = 1
    most: int | None = None
    effort: float = DEFAULT_EFFORT
    refine_factor: int | None = None


@dataclass(frozen=True, slots=True)
class NearestQuery:
    """A search, checked against the schema. ``queries`` has one row per vector asked for.

    ``metric`` is the one of an exact search; ``asked_metric`` is None where an index may choose.
    """

    column: str
    queries: Floats
    k: int
    metric: str
    is_batch: bool
    lower: float | None
    upper: float | None
    asked_metric: str | None = None
    use_index: bool = True
    probing: Probing = Probing()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The rows found, query by query, nearest first."""

    rows: Addresses
    distances: npt.NDArray[np.float32]
    query_index: npt.NDArray[np.int32]

    def take(self, places: Ints) -> Neighbours:
        """Return some of the rows."""
        return Neighbours(self.rows.take(places), self.distances[places], self.query_index[places])


def nearest_query(
    schema: Schema, query: Mapping[str, Any], limit: int | None = None
) -> NearestQuery:
    """Read the argument ``nearest``; without k, the limit of the scan is k, as in pylance.

    Raises InvalidInputError, ColumnNotFoundError.
    """
    if not isinstance(query, Mapping):
        raise NotSupportedError(
            "nearest is a dict with 'column' and 'q'; other searches need an index"
        )
    unknown = sorted(set(query) - _ARGUMENTS)
    if unknown or not {"column", "q"} <= set(query):
        problem = f"does not know {unknown[0]!r}" if unknown else "needs 'column' and 'q'"
        raise InvalidInputError(f"nearest {problem}; it takes {', '.join(sorted(_ARGUMENTS))}")
    column = str(query["column"])
    type_ = _vector_type(schema, column)
    is_bytes = pt.is_uint8(type_.value_type)
    queries, is_batch = _queries(query["q"], type_)
    # A limit of 0 needs no row, but k is positive.
    k = int(query["k"]) if query.get("k") is not None else limit or DEFAULT_K
    if k <= 0:
        raise InvalidInputError(f"nearest: k must be positive, got {k}")
    metric = str(query.get("metric") or ("hamming" if is_bytes else "l2")).lower()
    metric = {"euclidean": "l2"}.get(metric, metric)
    allowed = ("hamming",) if is_bytes else ("l2", "cosine", "dot")
    if metric not in allowed:
        raise InvalidInputError(
            f"nearest: metric {metric!r} does not fit vectors of {type_.value_type}; "
            f"use {' or '.join(allowed)}"
        )
    lower, upper = query.get("distance_range") or (None, None)
    return NearestQuery(
        column=column,
        queries=queries,
        k=k,
        metric=metric,
        is_batch=is_batch,
        lower=lower,
        upper=upper,
        asked_metric=metric if query.get("metric") else None,
        use_index=query.get("use_index") is not False,
        probing=_probing(query),
    )


def _probing(query: Mapping[str, Any]) -> Probing:
    """Read the arguments that steer an index. Raises InvalidInputError."""
    for name in ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef"):
        value = query.get(name)
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise InvalidInputError(f"nearest: {name} must be a whole number from 1 on: {value!r}")
    mode, effort = query.get("approx_mode"), query.get("search_effort")
    if mode is not None and mode not in _MODES:
        raise InvalidInputError(f"nearest: approx_mode is one of {', '.join(_MODES)}, not {mode!r}")
    if effort is not None and not 0 <= float(effort) <= 1:
        raise InvalidInputError(f"nearest: search_effort is from 0 to 1, got {effort!r}")
    parallelism = query.get("query_parallelism")
    if parallelism is not None and int(parallelism) < -1:
        raise InvalidInputError(f"nearest: query_parallelism is -1 or more, got {parallelism!r}")
    least, most = query.get("minimum_nprobes"), query.get("maximum_nprobes")
    if effort is None and query.get("nprobes") is not None:
        least = most = query["nprobes"]
    if most is not None and (least or 1) > most:
        raise InvalidInputError(
            f"nearest: minimum_nprobes ({least}) is above maximum_nprobes ({most})"
        )
    return Probing(
        int(least or 1),
        None if most is None else int(most),
        DEFAULT_EFFORT if effort is None else float(effort),
        query.get("refine_factor"),
    )


def _vector_type(schema: Schema, column: str) -> pa.DataType:
    arrow = schema.to_arrow()
    if column not in arrow.names:
        raise ColumnNotFoundError(column, tuple(arrow.names))
    type_ = arrow.field(column).type
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if not pt.is_fixed_size_list(type_):
        raise InvalidInputError(f"nearest: column {column!r} is {type_}, not a vector")
    if not (pt.is_floating(type_.value_type) or pt.is_uint8(type_.value_type)):
        raise InvalidInputError(f"nearest: vectors of {type_.value_type} cannot be searched")
    return type_


def _queries(query: Any, type_: pa.DataType) -> tuple[Floats, bool]:
    """Return the query vectors as a matrix, and whether there was a list of them."""
    if isinstance(query, pa.Scalar):
        query = query.as_py()
    elif isinstance(query, (pa.Array, pa.ChunkedArray)):
        query = query.to_pylist()
    dtype = np.uint8 if pt.is_uint8(type_.value_type) else np.float32
    own = np.float16 if pt.is_float16(type_.value_type) else dtype
    try:
        vectors = np.asarray(query, np.float64)
    except (TypeError, ValueError) as exc:
        raise InvalidInputError(
            "nearest: q must be a vector, or a list of vectors of one length"
        ) from exc
    is_batch = vectors.ndim == 2
    vectors = vectors if is_batch else vectors.reshape(1, -1)
    if vectors.ndim != 2 or vectors.shape[1] != type_.list_size or not len(vectors):
        raise InvalidInputError(
            f"nearest: q has {vectors.shape[-1]} values, the column's vectors {type_.list_size}"
        )
    if len(vectors) > QUERIES_MAX:
        raise InvalidInputError(f"nearest: {len(vectors)} queries, at most {QUERIES_MAX} at once")
    # Rounded as the column is, so that a row is at distance 0 from itself.
    return vectors.astype(own).astype(dtype), is_batch


def find_nearest(snapshot: Snapshot, choice: RowChoice, query: NearestQuery) -> Neighbours:
    """Compare every row that may be returned, keeping the k best of each query."""
    projection = project(snapshot.manifest.schema, ["`" + query.column.replace("`", "``") + "`"])
    best: list[tuple[Addresses, npt.NDArray[np.float32]]] = [
        (addresses_of([]), np.zeros(0, np.float32)) for _ in query.queries
    ]
    for selected in select_rows(snapshot, choice, projection):
        vectors = read_columns(snapshot, projection.columns, selected)[0]
        matrix, valid = matrix_of(vectors)
        bare = Selected(
            selected.fragment,
            selected.physical,
            selected.positions,
            decoded={},
            deleted=selected.deleted,
        )
        rows = addresses_of([bare])
        for number, vector in enumerate(query.queries):
            near = distances(matrix, vector, query.metric)
            places = np.flatnonzero(valid & in_range(near, query)).astype(np.int64)
            best[number] = _merge(best[number], (rows, near), places, query.k)
    counts = [part.size for _, part in best]
    return Neighbours(
        addresses_of([part for part, _ in best]),
        np.concatenate([part for _, part in best]),
        np.repeat(np.arange(len(best), dtype=np.int32), counts),
    )


def in_range(near: Floats, query: NearestQuery) -> npt.NDArray[np.bool_]:
    """Tell which distances are numbers in the range that is asked for."""
    keep: npt.NDArray[np.bool_] = ~np.isnan(near)
    if query.lower is not None:
        keep &= near >= query.lower
    if query.upper is not None:
        keep &= near < query.upper
    return keep


def _merge(
    best: tuple[Addresses, Floats], candidates: tuple[Addresses, Floats], places: Ints, k: int
) -> tuple[Addresses, Floats]:
    """Keep the k nearest of those known and those in a window."""
    rows, near = candidates
    if best[1].size >= k:
        places = places[near[places] < best[1][-1]]
    if not places.size:
        return best
    if places.size > k:
        # The k nearest and all that are as near as the last of them: order decides among equals.
        last = np.partition(near[places], k - 1)[k - 1]
        places = places[near[places] <= last]
    merged = np.concatenate((best[1], near[places]))
    order = np.argsort(merged, kind="stable")[:k].astype(np.int64)
    return addresses_of([best[0], rows.take(places)]).take(order), merged[order]


def matrix_of(vectors: pa.ChunkedArray) -> tuple[Floats, Floats]:
    """Return the vectors as a matrix (a view where there are no nulls), and which are not null."""
    parts, valid = [], []
    for chunk in vectors.chunks:
        storage = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        width = storage.type.list_size
        flat = storage.values.slice(storage.offset * width, len(storage) * width)
        whole = as_mask(storage.is_valid(), len(storage))
        if flat.null_count:
            lost = as_mask(pc.is_null(flat), len(flat)).reshape(-1, width)
            whole = whole & ~lost.any(axis=1)
            flat = pc.fill_null(flat, 0) if not pt.is_float16(flat.type) else flat
        numbers = to_floats(flat) if pt.is_floating(flat.type) else to_integers(flat)
        parts.append(numbers.reshape(-1, width))
        valid.append(whole)
    if not parts:
        return np.zeros((0, 1), np.float32), np.zeros(0, np.bool_)
    return np.concatenate(parts) if len(parts) > 1 else parts[0], np.concatenate(valid)


def distances(matrix: Floats, query: Floats, metric: str) -> npt.NDArray[np.float32]:
    """Compute the distance of every row, block by block so that temporaries stay in the cache."""
    function = _METRICS[metric]
    distances_of_rows = np.empty(len(matrix), np.float32)
    step = max(_BLOCK_BYTES // (matrix.shape[1] * 4), 1)
    with np.errstate(all="ignore"):
        for start in range(0, len(matrix), step):
            block = matrix[start : start + step]
            if block.dtype == np.float16:
                block = block.astype(np.float32)
            distances_of_rows[start : start + step] = function(block, query)
    return distances_of_rows


def _l2(block: Floats, query: Floats) -> Floats:
    gap = block - query
    return np.asarray(np.einsum("ij,ij->i", gap, gap))


def _dot(block: Floats, query: Floats) -> Floats:
    return np.asarray(1.0 - block @ query)


def _cosine(block: Floats, query: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block)) * np.sqrt(query @ query)
    return np.asarray(1.0 - (block @ query) / lengths)


def _hamming(block: Floats, query: Floats) -> Floats:
    return np.asarray(_BITS[block ^ query].sum(axis=1, dtype=np.int64))


_BITS = np.array([value.bit_count() for value in range(256)], np.uint8)
_METRICS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "l2": _l2, "cosine": _cosine, "dot": _dot, "hamming": _hamming,
}  # fmt: skip
