"""What a column looks like: share of nulls, distinct values, mean, bounds, histogram.

Numbers, booleans and times are counted in bins of equal width; of vectors the Euclidean norm is;
texts are counted by value, the most frequent ones by name. NaN and infinities are in no bin.

Limits: distinct values are counted up to ``DISTINCT_MAX``; other types show nulls only. Times are
shown as numbers in the unit of their type.
Source: our own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pt

DISTINCT_MAX = 100_000
BINS = 20
LABELS_MAX = 12
_LABEL_CHARS_MAX = 80
NUMBER, TIME, VECTOR, TEXT, OTHER = "number", "time", "vector", "text", "other"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column of one version. ``histogram`` counts by the bins or labels of the drift.

    ``num_rows`` are those of the version, ``num_sampled`` those that were looked at; all other
    numbers are of the latter. ``distinct`` is None when there are more than ``DISTINCT_MAX``, or
    for types whose values are not compared.
    """

    num_rows: int
    num_sampled: int
    null_count: int
    distinct: int | None = None
    mean: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    histogram: tuple[int, ...] = ()

    @property
    def null_share(self) -> float:
        """Share of nulls among the rows that were looked at."""
        return self.null_count / self.num_sampled if self.num_sampled else 0.0


def kind_of(type_: pa.DataType) -> str:
    """Tell how a column is counted."""
    if isinstance(type_, pa.BaseExtensionType):
        return kind_of(type_.storage_type)
    if pt.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_):
        return NUMBER
    if pt.is_boolean(type_):
        return NUMBER
    if pt.is_timestamp(type_) or pt.is_date(type_) or pt.is_time(type_) or pt.is_duration(type_):
        return TIME
    if pt.is_fixed_size_list(type_) and (
        pt.is_floating(type_.value_type) or pt.is_integer(type_.value_type)
    ):
        return VECTOR
    return TEXT if pt.is_string(type_) or pt.is_large_string(type_) else OTHER


class Tally:
    """Counts a column chunk by chunk: first what it holds, then, in a second pass, by bins."""

    def __init__(self, type_: pa.DataType, num_rows: int) -> None:
        self.kind = kind_of(type_)
        self._num_rows = num_rows
        self._sampled = 0
        self._nulls = 0
        self._sum = 0.0
        self._numbers = 0
        self._distinct: pa.Array | None = None
        self._many = self.kind in (VECTOR, OTHER)
        self.low, self.high = np.inf, -np.inf
        self.texts: Counter[str] = Counter()
        self._bins: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def look(self, chunks: Iterable[pa.Array]) -> None:
        """Take in some values."""
        for raw in chunks:
            chunk = _plain(raw)
            self._sampled += len(chunk)
            self._nulls += chunk.null_count
            self._count_distinct(chunk)
            if self.kind == TEXT:
                self.texts.update(_counted(chunk))
                continue
            values = numbers_of(chunk, self.kind)
            if values.size:
                self._sum += float(values.sum())
                self._numbers += values.size
                self.low = min(self.low, float(values.min()))
                self.high = max(self.high, float(values.max()))

    def look_again(self, chunks: Iterable[pa.Array], edges: Floats) -> None:
        """Count values by bins."""
        if not self._bins.size:
            self._bins = np.zeros(edges.size - 1, np.int64)
        for chunk in chunks:
            self._bins += np.histogram(numbers_of(_plain(chunk), self.kind), edges)[0]

    def profile(self, labels: Sequence[str]) -> ColumnProfile:
        """Return what was counted; ``labels`` are the texts that have a number of their own."""
        bins = tuple(self._bins.tolist())
        if self.kind == TEXT:
            named = [self.texts[one] for one in labels]
            bins = (*named, self.texts.total() - sum(named))
        has = self._numbers > 0
        distinct = None if self._many or self._distinct is None else len(self._distinct)
        return ColumnProfile(
            self._num_rows, self._sampled, self._nulls, distinct,
            self._sum / self._numbers if has else None, self.low if has else None,
            self.high if has else None, bins,
        )  # fmt: skip

    def _count_distinct(self, chunk: pa.Array) -> None:
        if self._many:
            return
        known = chunk.drop_null().unique()
        if self._distinct is not None:
            known = pa.concat_arrays([self._distinct, known]).unique()
        self._distinct = known
        self._many = len(known) > DISTINCT_MAX


def _plain(chunk: pa.Array) -> pa.Array:
    if isinstance(chunk, pa.ExtensionArray):
        return _plain(chunk.storage)
    return chunk.dictionary_decode() if pt.is_dictionary(chunk.type) else chunk


def _counted(chunk: pa.Array) -> dict[str, int]:
    """Count each text of a chunk; the most frequent ones are enough."""
    found = chunk.drop_null().value_counts()
    order = np.argsort(-found.field(1).to_numpy(), kind="stable")[: 50 * LABELS_MAX]
    frequent = found.take(pa.array(order))
    texts = [one[:_LABEL_CHARS_MAX] for one in frequent.field(0).to_pylist()]
    counts: dict[str, int] = {}
    for text, count in zip(texts, frequent.field(1).to_pylist(), strict=True):
        counts[text] = counts.get(text, 0) + count
    return counts


def numbers_of(chunk: pa.Array, kind: str) -> Floats:
    """Return the finite numbers that are counted: values, times as numbers, norms of vectors."""
    type_ = chunk.type
    valid = chunk.drop_null()
    if kind == VECTOR:
        parts = valid.flatten().cast(pa.float64())
        flat = parts.fill_null(0.0).to_numpy(zero_copy_only=False).reshape(-1, type_.list_size)
        found: Floats = np.sqrt((flat * flat).sum(axis=1)) if type_.list_size else np.zeros(0)
    elif kind == TIME:
        width = pa.int64() if type_.bit_width == 64 else pa.int32()
        found = valid.cast(width).to_numpy(zero_copy_only=False).astype(np.float64)
    elif kind == NUMBER:
        values = valid.cast(pa.uint8()) if pt.is_boolean(type_) else valid
        values = values.cast(pa.float64(), safe=False)
        found = values.to_numpy(zero_copy_only=False).astype(np.float64)
    else:
        return np.zeros(0)
    return found[np.isfinite(found)]
