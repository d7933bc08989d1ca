"""ds.near_duplicates and ds.label_doubts: rows compared with all others by a vector column.

The vectors of all rows are read once. Rows without a vector and with a value that is not finite as
float32 are left out; for cosine, those of length 0; for l2, those longer than ``MAX_LENGTH``; for
doubts, those without a label.

Limits: ``MAX_VECTOR_BYTES`` of vectors as float32; a label column has ``MAX_LABELS`` values.
Source: our own; how rows are compared is in ``indices/vectors/all_pairs.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.indices.vectors.all_pairs import Comparison, near_groups, neighbours
from lance_nb.table.nearest import MAX_LENGTH, matrix_of
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

Progress = Callable[[int, int], object]
MAX_VECTOR_BYTES = 4 * 1024**3
MAX_LABELS = 100_000
DEFAULT_THRESHOLDS = {"cosine": 0.01, "hamming": 3.0}
MAX_NEIGHBOURS = 1000
_BATCH_ROWS = 65_536
_ROW_ID = "_rowid"
_STEPS = 3  # a row is read, placed and compared


def near_duplicates(
    dataset: LanceDataset,
    column: str,
    threshold: float | None,
    metric: str | None,
    filter: str | None,
    exact: bool,
    progress: Progress | None,
) -> pa.Table:
    """See ``LanceDataset.near_duplicates``."""
    rows = _Rows.read(dataset, column, metric, filter=filter, label=None, progress=progress)
    limit = DEFAULT_THRESHOLDS.get(rows.metric) if threshold is None else float(threshold)
    if limit is None:
        raise InvalidInputError(
            "near_duplicates: metric l2 needs a threshold, the largest squared distance"
        )
    if not limit >= 0 or np.isinf(limit):
        raise InvalidInputError(f"near_duplicates: threshold must be 0 or more, got {threshold}")
    grouped = near_groups(rows.compared(), limit, rows.step, exact=exact)
    return pa.table(
        {
            "group": pa.array(grouped.groups),
            _ROW_ID: pa.array(rows.ids[grouped.rows]),
            "_distance": pa.array(grouped.distances),
        }
    )


def label_doubts(
    dataset: LanceDataset,
    column: str,
    label: str,
    k: int,
    metric: str | None,
    filter: str | None,
    exact: bool,
    progress: Progress | None,
) -> pa.Table:
    """See ``LanceDataset.label_doubts``."""
    if not 1 <= k <= MAX_NEIGHBOURS:
        raise InvalidInputError(f"label_doubts: k must be from 1 to {MAX_NEIGHBOURS:,}, got {k}")
    kind = _checked_label(dataset.schema, label)
    rows = _Rows.read(dataset, column, metric, filter=filter, label=label, progress=progress)
    places, _ = neighbours(rows.compared(), k, rows.step, exact=exact)
    own = rows.labels
    likely, votes, agreeing, heard = _votes(own, places)
    score = (votes - agreeing) / np.maximum(heard, 1)
    doubted = np.flatnonzero((likely != own) & (2 * votes > heard))
    doubted = doubted[np.argsort(-score[doubted], kind="stable")]
    values = pa.array(rows.values, kind)
    return pa.table(
        {
            _ROW_ID: pa.array(rows.ids[doubted]),
            "label": values.take(pa.array(own[doubted])),
            "suggested": values.take(pa.array(likely[doubted])),
            "score": pa.array(score[doubted].astype(np.float32)),
            "neighbours": pa.array(heard[doubted]),
        }
    )


def _votes(own: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> tuple[Any, ...]:
    """Return the most frequent label of each row's neighbours, and counts.

    How many neighbours have it, how many have the label of the row, and how many there are.
    """
    labels = np.where(places >= 0, own[places], -1)
    labels.sort(axis=1)
    k = labels.shape[1]
    # In sorted order a label begins where the one before differs: its count is the way to its end.
    counts = np.zeros(labels.shape, np.int64)
    running = np.zeros(len(labels), np.int64)
    for rank in range(k):
        same = labels[:, rank] == labels[:, rank - 1] if rank else np.zeros(len(labels), np.bool_)
        running = np.where(same, running + 1, 1)
        counts[:, rank] = np.where(labels[:, rank] >= 0, running, 0)
    most = counts.argmax(axis=1)
    lines = np.arange(len(labels))
    agreeing = (labels == own[:, None]).sum(axis=1)
    return labels[lines, most], counts[lines, most], agreeing, (labels >= 0).sum(axis=1)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that have a vector, their row ids, and their labels as places in ``values``."""

    ids: npt.NDArray[np.uint64]
    vectors: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]
    values: list[Any]
    metric: str
    step: Callable[[int], None]

    def compared(self) -> Comparison:
        return Comparison.of(self.vectors, self.metric)

    @classmethod
    def read(
        cls,
        dataset: LanceDataset,
        column: str,
        metric: str | None,
        filter: str | None,
        label: str | None,
        progress: Progress | None,
    ) -> _Rows:
        width, is_bytes = _checked_vectors(dataset.schema, column)
        metric = _checked_metric(metric, is_bytes)
        total = dataset.count_rows(filter)
        size = total * width * (8 if is_bytes else 1) * 4
        if size > MAX_VECTOR_BYTES:
            raise NotSupportedError(
                f"the vectors of {total:,} rows take {size / 1e9:.1f} GB of memory, at most "
                f"{MAX_VECTOR_BYTES / 1e9:.1f} GB are compared at once: choose fewer rows by a "
                "filter"
            )
        done = 0

        def step(num_rows: int) -> None:
            nonlocal done
            done += num_rows
            if progress is not None:
                progress(min(done, _STEPS * total), _STEPS * total)

        step(0)
        ids = np.empty(total, np.uint64)
        vectors = np.empty((total, width), np.uint8 if is_bytes else np.float32)
        labels = np.zeros(total, np.int64)
        values: dict[Any, int] = {}
        held = 0
        scan = dataset.scanner(
            [column] if label is None else [column, label],
            filter,
            with_row_id=True,
            batch_size=_BATCH_ROWS,
        )
        for batch in scan.to_batches():
            matrix, keep = matrix_of(pa.chunked_array([batch[column]]))
            if not is_bytes:
                with np.errstate(all="ignore"):
                    matrix = matrix.astype(np.float32, copy=False)
                    lengths = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
                keep = keep & np.isfinite(lengths)
                if metric == "cosine":
                    keep &= lengths > 0
                else:
                    keep &= lengths <= MAX_LENGTH**2
            if label is not None:
                places = _encoded(batch[label], values)
                keep = keep & (places >= 0)
                labels[held : held + int(keep.sum())] = places[keep]
            stop = held + int(keep.sum())
            ids[held:stop] = batch[_ROW_ID].to_numpy()[keep]
            vectors[held:stop] = matrix[keep]
            held = stop
            step(batch.num_rows)
        return cls(
            ids[:held], vectors[:held], labels[:held], values=list(values), metric=metric, step=step
        )


def _encoded(column: pa.Array, values: dict[Any, int]) -> npt.NDArray[np.int64]:
    """Return the place of each label among all that were met, -1 for null."""
    coded = column if pt.is_dictionary(column.type) else column.dictionary_encode()
    places = [
        -1 if value is None else values.setdefault(value, len(values))
        for value in coded.dictionary.to_pylist()  # the distinct values of one batch
    ]
    if len(values) > MAX_LABELS:
        raise InvalidInputError(f"label_doubts: more than {MAX_LABELS:,} different labels")
    table = np.array([*places, -1], np.int64)
    indices = coded.indices.cast(pa.int64()).fill_null(len(places))
    codes: npt.NDArray[np.int64] = table[indices.to_numpy(zero_copy_only=False)]
    return codes


def _checked_vectors(schema: pa.Schema, column: str) -> tuple[int, bool]:
    """Return the length of the vectors, and whether they are bytes. Raises InvalidInputError."""
    if column not in schema.names:
        raise ColumnNotFoundError(column, tuple(schema.names))
    kind = schema.field(column).type
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if not pt.is_fixed_size_list(kind) or not (
        pt.is_floating(kind.value_type) or pt.is_uint8(kind.value_type)
    ):
        raise InvalidInputError(
            f"column {column!r} is {kind}: rows are compared by fixed-size lists of floats or uint8"
        )
    return kind.list_size, pt.is_uint8(kind.value_type)


def _checked_metric(metric: str | None, is_bytes: bool) -> str:
    allowed = ("hamming",) if is_bytes else ("cosine", "l2")
    chosen = allowed[0] if metric is None else metric.lower()
    if chosen not in allowed:
        raise InvalidInputError(
            f"metric {chosen!r} does not fit vectors of {'uint8' if is_bytes else 'floats'}; "
            f"use {' or '.join(allowed)}"
        )
    return chosen


def _checked_label(schema: pa.Schema, label: str) -> pa.DataType:
    """Return the type of the values of a label column. Raises ColumnNotFoundError and others."""
    if label not in schema.names:
        raise ColumnNotFoundError(label, tuple(schema.names))
    kind = schema.field(label).type
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    if not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_integer(kind)
            or pt.is_boolean(kind)):  # fmt: skip
        raise InvalidInputError(f"column {label!r} is {kind}: labels are texts, integers, booleans")
    return kind
