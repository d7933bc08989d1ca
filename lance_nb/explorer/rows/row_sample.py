"""Choose and read a sample of the rows of a version.

Every row has the same chance to be in the sample: of many fragments some are chosen, all with the
same chance; their rows are cut into equally long parts, and from each part a short run of adjacent
rows is taken, which begins at a random place. Adjacent rows cost hardly more than one.

The random places depend on the number of rows and fragments only, so that a version looks the same
each time.

``RowSample`` keeps what was read, so that a filter is tried on the same rows again and again;
``SampleCache`` keeps the samples of the versions looked at last.

Limits: ``SAMPLE_ROWS`` rows, about ``SAMPLE_BYTES`` bytes by the mean size of a row, and
``SAMPLE_FRAGMENTS`` fragments. ``MAX_SAMPLES`` versions and ``MAX_MASKS`` conditions of each are
kept.
Source: stratified sampling of clusters; Cochran, Sampling Techniques, chapters 5 and 9.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.explorer import cells
from lance_nb.explorer.source import Source, scanned_source
from lance_nb.table.scan_tasks import counts_of

SAMPLE_ROWS = 8192
SAMPLE_BYTES = 32_000_000
SAMPLE_FRAGMENTS = 64
RUN_ROWS = 16
STEPS = 8  # in which the rows are read; after each the work can be cancelled
MAX_SAMPLES = 2
MAX_MASKS = 64

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def num_sampled(dataset: Source) -> int:
    """Return how many rows of a dataset are read for a sample, at most."""
    stats = dataset.stats()
    row_bytes = max(1, (stats.size_bytes or 0) // max(1, stats.num_rows))
    return max(STEPS, min(SAMPLE_ROWS, SAMPLE_BYTES // row_bytes))


def sample_rows(
    dataset: Source,
    columns: list[str],
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> pa.Table:
    """Read a random sample of all rows, in their order; all of them if they are few.

    ``progress`` is called before every step, and what it raises ends the work.
    """
    return RowSample(dataset).read(columns, progress)


class RowSample:
    """A random sample of the rows of one version; each column and condition is read once."""

    def __init__(self, dataset: Source) -> None:
        counts = _rows_of_fragments(dataset)
        self._dataset = dataset
        self._places = _places(counts, num_sampled(dataset))
        self._columns: dict[str, pa.Array] = {}
        self._masks: OrderedDict[str, Mask] = OrderedDict()
        self.of_rows = int(counts.sum())

    @property
    def num_rows(self) -> int:
        """Rows in the sample."""
        return int(self._places.size)

    def read(
        self,
        columns: Sequence[str],
        progress: Callable[[int, int], object] = lambda _done, _total: None,
    ) -> pa.Table:
        """Return columns of the sample. ``progress`` as for ``sample_rows``."""
        missing = [name for name in columns if name not in self._columns]
        if missing:
            tables = []
            for step, some in enumerate(np.array_split(self._places, STEPS)):
                progress(step, STEPS)
                tables.append(self._dataset.take(some.tolist(), columns=missing))
            sample = pa.concat_tables(tables)
            self._columns |= {name: cells.plain(sample[name]) for name in missing}
        return pa.table({name: self._columns[name] for name in columns})

    def passes(self, where: str) -> Mask:
        """Tell of each row whether it passes a condition. Raises PredicateError."""
        if where not in self._masks:
            expressions = {"passes": f"coalesce(({where}), false)"}
            passing = scanned_source(self._dataset).take(self._places.tolist(), columns=expressions)
            self._masks[where] = cells.plain(passing["passes"]).to_numpy(zero_copy_only=False)
            while len(self._masks) > MAX_MASKS:
                self._masks.popitem(last=False)
        return self._masks[where]


class SampleCache:
    """The samples of the versions looked at last."""

    def __init__(self, _session: object) -> None:
        self._samples: OrderedDict[tuple[str | None, int], RowSample] = OrderedDict()

    def of(self, dataset: Source) -> RowSample:
        """Return the sample of a version."""
        place = dataset.branch, dataset.version
        if place not in self._samples:
            self._samples[place] = RowSample(dataset)
            while len(self._samples) > MAX_SAMPLES:
                self._samples.popitem(last=False)
        return self._samples[place]


def _rows_of_fragments(dataset: Source) -> Places:
    opened: Any = getattr(dataset, "opened", None)
    if opened is None:
        return np.array([dataset.stats().num_rows], np.int64)
    counts: Places = counts_of(opened[1]).num_rows.astype(np.int64)
    return counts


def _places(counts: Places, num_places: int) -> Places:
    """Return positions of about ``num_places`` rows of fragments with ``counts`` rows each."""
    random = np.random.default_rng([len(counts), int(counts.sum())])
    starts = np.cumsum(counts) - counts
    if len(counts) > SAMPLE_FRAGMENTS:
        step = len(counts) / SAMPLE_FRAGMENTS
        chosen = ((random.random() + np.arange(SAMPLE_FRAGMENTS)) * step).astype(np.int64)
        starts, counts = starts[chosen], counts[chosen]
    ends = np.cumsum(counts)
    within = _runs(int(ends[-1]) if ends.size else 0, num_places, random)
    fragment = ends.searchsorted(within, side="right")
    places: Places = starts[fragment] + within - (ends - counts)[fragment]
    return places


def _runs(num_rows: int, num_places: int, random: np.random.Generator) -> Places:
    """Return sorted places from 0 to ``num_rows``, in runs that begin anywhere in their part."""
    if num_rows <= num_places:
        return np.arange(num_rows)
    parts = max(1, num_places // RUN_ROWS)
    edges = np.arange(parts + 1) * num_rows // parts
    lengths = np.diff(edges)
    first = (random.random(parts) * lengths).astype(np.int64)
    # A run that reaches the end of its part goes on at its beginning: no row is rarer there.
    inside = (first[:, None] + np.arange(RUN_ROWS)) % lengths[:, None]
    places: Places = np.sort((edges[:-1, None] + inside).ravel())
    return places
