"""Column drift between two versions: a profile of each column on both sides, in the same bins.

A profile has the share of nulls, distinct values, mean, bounds and a histogram. Numbers, booleans
and times are counted in bins of equal width; of vectors the Euclidean norm is; texts are counted by
value, the most frequent ones by name. NaN and infinities are in no bin. By default a bounded sample
of rows is read on each side: runs of rows at even distances. With ``exact`` all rows are read,
in two passes.

The population stability index sums (after - before) * ln(after / before) over the bins, nulls being
one; as a rule of thumb, below 0.1 is no change, above 0.25 a large one.

Limits: distinct values are counted up to ``DISTINCT_MAX``; other types show nulls only. Times are
shown as numbers in the unit of their type. Memory holds the sample, or one window of rows.
Source: our own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pt

from lance_nb import arrow_compute as pc
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.projection import project
from lance_nb.table.scan import scan_batches
from lance_nb.table.scan_tasks import live_counts, plan_tasks
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows
from lance_nb.value_classes import dataclass

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
        self._skips_distinct = self.kind in (VECTOR, OTHER)
        self.low, self.high = np.inf, -np.inf
        self.texts: Counter[str] = Counter()
        self._bins: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def count(self, chunks: Iterable[pa.Array]) -> None:
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
            named = [self.texts[label] for label in labels]
            bins = (*named, self.texts.total() - sum(named))
        has = self._numbers > 0
        distinct = None if self._skips_distinct or self._distinct is None else len(self._distinct)
        return ColumnProfile(
            num_rows=self._num_rows,
            num_sampled=self._sampled,
            null_count=self._nulls,
            distinct=distinct,
            mean=self._sum / self._numbers if has else None,
            minimum=self.low if has else None,
            maximum=self.high if has else None,
            histogram=bins,
        )

    def _count_distinct(self, chunk: pa.Array) -> None:
        if self._skips_distinct:
            return
        distinct = pc.unique(pc.drop_null(chunk))
        if self._distinct is not None:
            distinct = pc.unique(pa.concat_arrays([self._distinct, distinct]))
        self._distinct = distinct
        self._skips_distinct = len(distinct) > DISTINCT_MAX


def _plain(chunk: pa.Array) -> pa.Array:
    if isinstance(chunk, pa.ExtensionArray):
        return _plain(chunk.storage)
    return chunk.dictionary_decode() if pt.is_dictionary(chunk.type) else chunk


def _counted(chunk: pa.Array) -> dict[str, int]:
    """Count each text of a chunk; the most frequent ones are enough."""
    frequencies = pc.drop_null(chunk).value_counts()
    order = np.argsort(-frequencies.field(1).to_numpy(), kind="stable")[: 50 * LABELS_MAX]
    frequent = pc.take(frequencies, pa.array(order))
    texts = [text[:_LABEL_CHARS_MAX] for text in frequent.field(0).to_pylist()]
    counts: dict[str, int] = {}
    for text, count in zip(texts, frequent.field(1).to_pylist(), strict=True):
        counts[text] = counts.get(text, 0) + count
    return counts


def numbers_of(chunk: pa.Array, kind: str) -> Floats:
    """Return the finite numbers that are counted: values, times as numbers, norms of vectors."""
    type_ = chunk.type
    valid = pc.drop_null(chunk)
    if kind == VECTOR:
        parts = pc.cast(valid.flatten(), pa.float64())
        flat = pc.fill_null(parts, 0.0).to_numpy(zero_copy_only=False).reshape(-1, type_.list_size)
        numbers: Floats = np.sqrt((flat * flat).sum(axis=1)) if type_.list_size else np.zeros(0)
    elif kind == TIME:
        width = pa.int64() if type_.bit_width == 64 else pa.int32()
        numbers = pc.cast(valid, width).to_numpy(zero_copy_only=False).astype(np.float64)
    elif kind == NUMBER:
        values = pc.cast(valid, pa.uint8()) if pt.is_boolean(type_) else valid
        values = pc.cast(values, pa.float64(), safe=False)
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    else:
        return np.zeros(0)
    return numbers[np.isfinite(numbers)]


_RUNS = 64  # of neighbouring rows in a sample
_SMOOTHING = 1e-4
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class ColumnDrift:
    """One column in both versions.

    ``kind``: number, time, vector (its norm), text or other. ``edges`` are the bounds of the bins;
    ``labels`` the texts that are counted, the last count of a histogram being all others. ``psi``
    is the population stability index, None where nothing was counted.
    """

    name: str
    kind: str
    before: ColumnProfile
    after: ColumnProfile
    edges: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    psi: float | None = None


class _Side:
    """The rows of one version that are looked at."""

    def __init__(self, snapshot: Snapshot, sample: int | None) -> None:
        self._snapshot = snapshot
        self.num_rows = int(live_counts(snapshot).sum())
        self.positions = None
        if sample is not None and sample < self.num_rows:
            self.positions = _spread(self.num_rows, sample)

    def chunks(self, name: str) -> Iterator[pa.Array]:
        """Yield the values of a column."""
        projection = project(self._snapshot.manifest.schema, [name])
        if self.positions is not None:
            yield from take_rows(self._snapshot, projection, self.positions).column(0).chunks
            return
        for batch in scan_batches(self._snapshot, projection, plan_tasks(self._snapshot), 65_536):
            yield batch.column(0)


def _spread(num_rows: int, sample: int) -> np.ndarray:
    """Choose runs of rows at even distances."""
    runs = min(_RUNS, sample)
    length = sample // runs
    starts = np.linspace(0, num_rows - length, runs).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(length))


def column_drifts(
    ends: Ends, pairs: Sequence[ColumnPair], sample: int | None, progress: Progress | None = None
) -> tuple[ColumnDrift, ...]:
    """Compare columns; ``sample`` None reads all rows."""
    sides = _Side(ends.a, sample), _Side(ends.b, sample)
    drifts = []
    for number, pair in enumerate(pairs, 1):
        if pair.a is not None and pair.b is not None:
            drifts.append(_drift(pair, (pair.a.name, pair.b.name), sides))
        if progress is not None:
            progress(number, len(pairs))
    return tuple(drifts)


def _drift(pair: ColumnPair, names: tuple[str, str], sides: tuple[_Side, _Side]) -> ColumnDrift:
    types = [field.type for field in (pair.type_a, pair.type_b) if field is not None]
    tallies = [Tally(type_, side.num_rows) for type_, side in zip(types, sides, strict=True)]
    held = [_held(side, name) for side, name in zip(sides, names, strict=True)]
    for tally, read in zip(tallies, held, strict=True):
        tally.count(read())
    kinds = {kind_of(type_) for type_ in types}
    kind = kinds.pop() if len(kinds) == 1 else OTHER
    edges: Floats = np.zeros(0)
    labels: tuple[str, ...] = ()
    if kind == TEXT:
        texts = tallies[0].texts + tallies[1].texts
        labels = tuple(text for text, _ in texts.most_common(LABELS_MAX))
    elif kind != OTHER:
        edges = _edges(tallies)
        for tally, read in zip(tallies, held, strict=True):
            if edges.size:
                tally.look_again(read(), edges)
    before, after = (tally.profile(labels) for tally in tallies)
    bounds = tuple(edges.tolist())
    return ColumnDrift(
        name=pair.name,
        kind=kind,
        before=before,
        after=after,
        edges=bounds,
        labels=labels,
        psi=_psi(before, after),
    )


def _held(side: _Side, name: str) -> Callable[[], Iterator[pa.Array]]:
    """Return how to read a column once more: a sample is kept, all rows are read again."""
    if side.positions is None:
        return lambda: side.chunks(name)
    chunks = list(side.chunks(name))
    return lambda: iter(chunks)


def _edges(tallies: Sequence[Tally]) -> Floats:
    low, high = min(tally.low for tally in tallies), max(tally.high for tally in tallies)
    if not low <= high:
        return np.zeros(0)  # no number on either side
    if low == high:
        return np.array([low, np.nextafter(high, np.inf)])
    edges: Floats = np.linspace(low, high, BINS + 1)
    return edges if (np.diff(edges) > 0).all() else np.array([low, high])


def _psi(before: ColumnProfile, after: ColumnProfile) -> float | None:
    if not (before.histogram and after.histogram and before.num_sampled and after.num_sampled):
        return None
    shares = []
    for profile in (before, after):
        counts = (
            np.array([*profile.histogram, profile.null_count], np.float64) / profile.num_sampled
        )
        shares.append(counts + _SMOOTHING)
    old, new = shares
    return float(((new - old) * np.log(new / old)).sum())
