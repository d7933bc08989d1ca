"""Nearest neighbors of a vector: which index finds them, the rows, and the recall of that index.

They come from an index on the column that has the metric, unless the request is for an exact
search; without one every vector is compared.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.rows.row_order import DISTANCE, Progress, SortedRows
from lance_nb.explorer.source import ScannedSource, Source, scan_groups
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset import LanceDataset

MAX_NEAR = 1000
REFINE_FACTOR = 10  # candidates of an index for each row, which are compared exactly
METRICS = ("l2", "cosine", "dot", "hamming")
_ROW_ID = "_rowid"


@dataclass(frozen=True, slots=True)
class NearestQuery:
    """A search for the nearest neighbors of ``vector`` in ``column``; ``code`` reads the vector.

    ``index`` is the name of the index that is searched, None to compare every vector.
    """

    column: str
    vector: pa.Scalar
    code: Python
    k: int = 10
    metric: str = "l2"
    index: str | None = None


def index_for(dataset: Source, nearest: NearestQuery) -> str | None:
    """Return the name of the index that a search uses: one on the column, of the metric."""
    if not hasattr(dataset, "describe_indices"):
        return None
    for description in cast("LanceDataset", dataset).describe_indices():
        if description.field_names == [nearest.column] and description.index_type.startswith("IVF"):
            statistics = cast("LanceDataset", dataset).index_statistics(description.name)["indices"]
            if statistics and statistics[0].get("metric_type") == nearest.metric:
                return description.name
    return None


def nearest_rows(
    dataset: ScannedSource, nearest: NearestQuery, filter: str | None, progress: Progress
) -> SortedRows:
    """Find the rows whose vectors are nearest. Raises InvalidInputError, NotSupportedError."""
    vector = _checked_vector(nearest)
    if nearest.index is not None:
        return _indexed_rows(dataset, nearest, vector, filter)
    groups = scan_groups(dataset)
    total = sum(group.num_rows for group in groups)
    search = {
        "column": nearest.column, "q": vector, "k": nearest.k, "metric": nearest.metric,
        "use_index": False,
    }  # fmt: skip
    parts: list[pa.Table] = []
    for group in groups:
        progress(group.first, total)
        scan = dataset.scanner(columns=[_ROW_ID], nearest=search, filter=filter, prefilter=True,
                               fragments=group.fragments)  # fmt: skip
        parts = [_nearest([*parts, scan.to_table().select([_ROW_ID, DISTANCE])], nearest.k)]
    if not parts:
        return SortedRows(np.zeros(0, np.uint64), 0, pa.array([], pa.float32()))
    best = parts[0]
    return SortedRows(best[_ROW_ID].to_numpy(), total, cells.plain(best[DISTANCE]))


def _indexed_rows(
    dataset: ScannedSource, nearest: NearestQuery, vector: Any, filter: str | None
) -> SortedRows:
    search = {
        "column": nearest.column, "q": vector, "k": nearest.k, "metric": nearest.metric,
        "refine_factor": REFINE_FACTOR,
    }  # fmt: skip
    scan = dataset.scanner(columns=[_ROW_ID], nearest=search, filter=filter, prefilter=True)
    rows = scan.to_table()
    ids = rows[_ROW_ID].to_numpy()
    return SortedRows(ids, dataset.stats().num_rows, cells.plain(rows[DISTANCE]))


def recall_words(
    dataset: ScannedSource, nearest: NearestQuery, filter: str | None, progress: Progress
) -> str:
    """Compare what an index finds with an exact search, and say how much of that it finds.

    Raises InvalidInputError without an index.
    """
    name = index_for(dataset, nearest)
    if name is None:
        raise InvalidInputError(f"no index of {nearest.column!r} has the metric {nearest.metric}")
    started = time.perf_counter()
    rows = nearest_rows(dataset, replace(nearest, index=name), filter, progress)
    between = time.perf_counter()
    exact = nearest_rows(dataset, replace(nearest, index=None), filter, progress)
    ended = time.perf_counter()
    same = int(np.isin(exact.ids, rows.ids).sum())
    return (
        f"the index {text.name(name)} finds {text.count(same)} of the "
        f"{text.count(exact.ids.size)} nearest (recall {same / max(1, exact.ids.size):.0%}): "
        f"{milliseconds(between - started)}, exact {milliseconds(ended - between)}"
    )


def milliseconds(seconds: float) -> str:
    """Return a time in words."""
    return f"{max(1, round(1000 * seconds)):,} ms"


def _checked_vector(nearest: NearestQuery) -> Any:
    if nearest.metric not in METRICS:
        raise InvalidInputError(
            f"metric must be one of {', '.join(METRICS)}, not {nearest.metric[:40]!r}"
        )
    if not pa.types.is_fixed_size_list(nearest.vector.type):
        raise NotSupportedError(f"{nearest.column!r} has no vectors")
    if not nearest.vector.is_valid:
        raise InvalidInputError("this row has no vector")
    values: Any = nearest.vector
    return cells.plain(values.values).to_numpy(zero_copy_only=False)


def _nearest(parts: list[pa.Table], k: int) -> pa.Table:
    candidates = pa.concat_tables(parts)
    places = np.argsort(candidates[DISTANCE].to_numpy(), kind="stable")[:k]
    return candidates.take(pa.array(places))
