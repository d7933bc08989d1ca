"""How columns drifted between two versions: the same bins for both, side by side.

By default a bounded sample of rows is read on each side: runs of rows at even distances. With
``exact`` all rows are, in two passes.

The population stability index sums (after - before) * ln(after / before) over the bins, nulls being
one; as a rule of thumb, below 0.1 nothing happened, above 0.25 much did.

Limits: memory holds the sample, or one window of rows.
Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.table.diff.column_profile import (
    BINS,
    LABELS_MAX,
    OTHER,
    TEXT,
    ColumnProfile,
    Floats,
    Tally,
    kind_of,
)
from lance_nb.table.diff.columns import ColumnPair
from lance_nb.table.diff.ends import Ends
from lance_nb.table.projection import project
from lance_nb.table.scan import scan_batches
from lance_nb.table.scan_plan import live_counts, plan_scan
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows

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
        wanted = project(self._snapshot.manifest.schema, [name])
        if self.positions is not None:
            yield from take_rows(self._snapshot, wanted, self.positions).column(0).chunks
            return
        for batch in scan_batches(self._snapshot, wanted, plan_scan(self._snapshot), 65_536):
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
    found = []
    for number, pair in enumerate(pairs, 1):
        if pair.a is not None and pair.b is not None:
            found.append(_drift(pair, (pair.a.name, pair.b.name), sides))
        if progress is not None:
            progress(number, len(pairs))
    return tuple(found)


def _drift(pair: ColumnPair, names: tuple[str, str], sides: tuple[_Side, _Side]) -> ColumnDrift:
    types = [one.type for one in (pair.type_a, pair.type_b) if one is not None]
    tallies = [Tally(type_, side.num_rows) for type_, side in zip(types, sides, strict=True)]
    held = [_held(side, name) for side, name in zip(sides, names, strict=True)]
    for tally, read in zip(tallies, held, strict=True):
        tally.look(read())
    kinds = {kind_of(type_) for type_ in types}
    kind = kinds.pop() if len(kinds) == 1 else OTHER
    edges: Floats = np.zeros(0)
    labels: tuple[str, ...] = ()
    if kind == TEXT:
        both = tallies[0].texts + tallies[1].texts
        labels = tuple(text for text, _ in both.most_common(LABELS_MAX))
    elif kind != OTHER:
        edges = _edges(tallies)
        for tally, read in zip(tallies, held, strict=True):
            if edges.size:
                tally.look_again(read(), edges)
    before, after = (tally.profile(labels) for tally in tallies)
    bounds = tuple(edges.tolist())
    return ColumnDrift(pair.name, kind, before, after, bounds, labels, _psi(before, after))


def _held(side: _Side, name: str) -> Callable[[], Iterator[pa.Array]]:
    """Return how to read a column once more: a sample is kept, all rows are read again."""
    if side.positions is None:
        return lambda: side.chunks(name)
    kept = list(side.chunks(name))
    return lambda: iter(kept)


def _edges(tallies: Sequence[Tally]) -> Floats:
    low, high = min(one.low for one in tallies), max(one.high for one in tallies)
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
    for one in (before, after):
        counts = np.array([*one.histogram, one.null_count], np.float64) / one.num_sampled
        shares.append(counts + _SMOOTHING)
    old, new = shares
    return float(((new - old) * np.log(new / old)).sum())
