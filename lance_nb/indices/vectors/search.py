"""Find the rows nearest to a query by an index: partitions first, then the vectors in them.

The partitions with the nearest centroids are read whole, and distances computed from what they
store; with ``refine_factor``, so many times k rows are compared exactly after that. Where the codes
of an index are not known, the exact distances of all rows in the partitions are computed. Deleted
rows, rows that have moved, and those that a prefilter leaves out do not count among the k. Rows
that the index does not cover are compared exactly, and merged in: then the k rows of the index get
their exact distances too.

Without a number of partitions the search begins with a few, more for a large k, and goes on one by
one until it has k rows. If a prefilter leaves no more rows than are refined (k, or k times
``refine_factor``), all of them are compared exactly: no partition is searched.

Graphs (HNSW) are left alone: all codes of the partitions are compared, so ``ef`` has no effect.

An index that is missing, damaged, too new or too large is no reason to fail: a warning, and the
exact search. The same for a metric that is not that of the index, without a warning.

Limits: memory holds the distances of the vectors in the partitions that are searched, besides what
``ivf`` keeps.
Source: behaviour of pylance 14.0.2. Where a prefilter leaves fewer than k rows, pylance returns
some with an infinite distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    describe_repeated,
)
from lance_nb.format.fragment import Fragment
from lance_nb.format.transaction_summary import count_of
from lance_nb.indices.listing import ListedIndex, list_indices, listed_once, report_unusable
from lance_nb.indices.row_sets import NO_ROWS, U64s, joined
from lance_nb.indices.segment import Segment
from lance_nb.indices.vectors.ivf import FILES, NEWEST, IvfSegment, partitions_of
from lance_nb.indices.vectors.stored_vectors import Floats
from lance_nb.table.addresses import addresses_of
from lance_nb.table.filtered_scan import RowChoice, quoted
from lance_nb.table.index_search import among, different
from lance_nb.table.indexed_scan import rows_at
from lance_nb.table.nearest import (
    DEFAULT_EFFORT,
    NearestQuery,
    Neighbours,
    Probing,
    distances,
    find_nearest,
    in_range,
    matrix_of,
)
from lance_nb.table.ordering import fetch_rows
from lance_nb.table.projection import project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.snapshot import Snapshot

KIND = "Vector"
_INSTEAD = "all vectors are compared"
_FIRST_PARTITIONS = ((1, 5), (10, 6), (100, 11), (200, 15), (500, 22), (1000, 29))
_CHECKED_MIN = 64
_EXACT_BYTES = 64 * 1024 * 1024
F32s = npt.NDArray[np.float32]
_NO_DISTANCES: F32s = np.zeros(0, np.float32)


class _Count:
    """What one search has looked at."""

    def __init__(self) -> None:
        self.partitions = self.vectors = self.refined = 0


class _Probe:
    """One segment while a query is answered: what is found in the partitions searched so far."""

    def __init__(self, segment: Segment, ivf: IvfSegment, order: npt.NDArray[np.int64]) -> None:
        self.segment = segment
        self.ivf = ivf
        self.order = order
        self.next = 0
        self.rows: list[U64s] = []
        self.distances: list[F32s] = []


class VectorSearch:
    """The vector indices of one version."""

    def __init__(self, snapshot: Snapshot) -> None:
        """List the indices. Raises CorruptFileError for an index section that cannot be read."""
        self._snapshot = snapshot
        self._indices = list_indices(snapshot, (KIND,))

    def find(
        self, choice: RowChoice, query: NearestQuery, *, indexed_only: bool
    ) -> Neighbours | None:
        """Search an index, and compare the rows that it does not cover exactly."""
        return self._find(choice, query, _Count(), indexed_only=indexed_only)

    def explain(self, query: NearestQuery, *, indexed_only: bool) -> list[str]:
        """Say in words which index will be searched, and how."""
        try:
            chosen = self._chosen(query)
        except LanceError as error:
            return [f"index: not used, {error}"]
        if chosen is None:
            names = [index.name for index in self._indices if index.column == query.column]
            return [f"index: {names[0]!r} is not used, its metric is another"] if names else []
        index, opened = chosen
        probing = query.probing
        total = sum(ivf.num_partitions for _, ivf in opened)
        first = sum(_first(probing, query.k, ivf.num_partitions) for _, ivf in opened)
        goes_on = any(_most(probing, ivf.num_partitions) > first for _, ivf in opened)
        until = f", more until {query.k} rows are found" if goes_on else ""
        fragments = len(self._snapshot.manifest.fragments)
        treatment = "left out" if indexed_only else "compared exactly"
        others_text = f", the others are {treatment}" if index.covered.size < fragments else ""
        kind = opened[0][1].kind
        covered = f"{index.covered.size} of {fragments} fragments covered{others_text}"
        lines = [
            f"index: {index.name!r} ({kind}) of column {index.column!r}, {covered}",
            f"probes: {first} of {count_of(total, 'partition')}{until}",
        ]
        if any(ivf.stored is None for _, ivf in opened):
            lines.append(f"distances: exact, as the codes of {kind} are not read")
        elif probing.refine_factor is not None or (others_text and not indexed_only):
            count = query.k * (probing.refine_factor or 1)
            lines.append(f"distances: of codes, then exact for the nearest {count:,}")
        elif any(ivf.is_coded for _, ivf in opened):
            lines.append("distances: of codes; refine_factor computes exact ones")
        return lines

    def describe_search(
        self, choice: RowChoice, query: NearestQuery, *, indexed_only: bool
    ) -> list[str]:
        """Search, and say in words what was looked at."""
        count = _Count()
        if self._find(choice, query, count, indexed_only=indexed_only) is None:
            return []
        partitions, vectors = (
            count_of(counted, name)
            for counted, name in ((count.partitions, "partition"), (count.vectors, "vector"))
        )
        lines = [f"searched: {partitions}, {vectors}"]
        if count.refined:
            lines.append(f"compared exactly: {count_of(count.refined, 'row')} of the index")
        return lines

    def _find(
        self, choice: RowChoice, query: NearestQuery, count: _Count, *, indexed_only: bool
    ) -> Neighbours | None:
        try:
            chosen = self._chosen(query)
            if chosen is None:
                return None
            return self._searched(*chosen, choice, query, count, indexed_only=indexed_only)
        except (NotSupportedError, InvalidInputError):
            return None  # also links that may not be followed: a scan that needs them says so
        except LanceError as error:
            report_unusable(self._snapshot, self._indices, error, _INSTEAD)
            return None

    def _chosen(
        self, query: NearestQuery
    ) -> tuple[ListedIndex, list[tuple[Segment, IvfSegment]]] | None:
        """Return the first index on the column that has the metric, and its files."""
        for index in self._indices:
            if index.column != query.column:
                continue
            opened = opened_segments(index)
            metric = opened[0][1].metric
            if query.asked_metric not in (None, metric):
                continue
            for _, ivf in opened:
                if ivf.dimension != query.queries.shape[1] or ivf.metric != metric:
                    raise CorruptFileError(
                        ivf.file.path,
                        None,
                        f"vectors of {query.queries.shape[1]} numbers, compared by {metric}",
                        f"{ivf.dimension}, by {ivf.metric}",
                    )
            return index, opened
        return None

    def _searched(
        self,
        index: ListedIndex,
        opened: Sequence[tuple[Segment, IvfSegment]],
        choice: RowChoice,
        request: NearestQuery,
        count: _Count,
        *,
        indexed_only: bool,
    ) -> Neighbours:
        query = replace(request, metric=opened[0][1].metric)
        inside, outside = self._split(index, choice)
        if outside and not indexed_only and query.probing.refine_factor is None:
            query = replace(query, probing=replace(query.probing, refine_factor=1))
        allowed = self._allowed(replace(choice, fragments=inside), choice)
        unindexed = None
        if outside and not indexed_only:
            unindexed = find_nearest(self._snapshot, replace(choice, fragments=outside), query)
        rows, near, numbers = [], [], []
        for number, vector in enumerate(query.queries):
            addresses, distance = self._answer(opened, query, vector, allowed=allowed, count=count)
            rows.append(addresses)
            near.append(distance)
            numbers.append(np.full(addresses.size, number, np.int32))
        mine = Neighbours(
            rows_at(self._snapshot, np.concatenate(rows)),
            np.concatenate(near),
            np.concatenate(numbers),
        )
        return mine if unindexed is None else _merged(mine, unindexed, query.k)

    def _split(
        self, index: ListedIndex, choice: RowChoice
    ) -> tuple[tuple[Fragment, ...] | None, tuple[Fragment, ...]]:
        """Return the fragments to search in the index, and those to compare exactly."""
        whole = self._snapshot.manifest.fragments
        if choice.fragments is None and index.covered.size == len(whole):
            return None, ()
        listed = tuple(whole) if choice.fragments is None else choice.fragments
        covered = set(index.covered.tolist())
        inside = tuple(fragment for fragment in listed if fragment.id in covered)
        return inside, tuple(fragment for fragment in listed if fragment.id not in covered)

    def _allowed(self, inside: RowChoice, choice: RowChoice) -> U64s | None:
        """Return the rows that may be found, ascending; None for all that the index covers."""
        if choice.filter is None and choice.fragments is None:
            return None
        if inside.fragments == ():
            return NO_ROWS
        nothing = project(self._snapshot.manifest.schema, [])
        return joined(
            selection.physical.astype(np.uint64) | np.uint64(selection.fragment.id << 32)
            for selection in select_rows(self._snapshot, inside, nothing)
        )

    def _answer(
        self,
        opened: Sequence[tuple[Segment, IvfSegment]],
        query: NearestQuery,
        vector: Floats,
        allowed: U64s | None,
        count: _Count,
    ) -> tuple[U64s, F32s]:
        """Return the addresses of the rows nearest to one vector, nearest first."""
        probing = query.probing
        num_candidates = query.k * (probing.refine_factor or 1)
        is_fixed = probing.most is not None and probing.least == probing.most
        if allowed is not None and not is_fixed and allowed.size <= num_candidates:
            count.refined += allowed.size
            rows, near = self._exact(query, vector, allowed)
            return rows[: query.k], near[: query.k]
        with np.errstate(all="ignore"):
            compared = _unit(vector) if query.metric == "cosine" else vector
        probes = [_Probe(segment, ivf, ivf.nearest_partitions(compared)) for segment, ivf in opened]
        for probe in probes:
            self._probe(probe, compared, _first(probing, query.k, probe.order.size), count)
        while True:
            rows, near = self._best(probes, query, num_candidates, vector=vector, allowed=allowed)
            waiting = [probe for probe in probes if probe.next < _most(probing, probe.order.size)]
            if rows.size >= num_candidates or not waiting:
                break
            for probe in waiting:
                # More each time: all that is found is looked at anew after every step.
                step = max(probe.next // 4, 1)
                last = _most(probing, probe.order.size)
                self._probe(probe, compared, min(probe.next + step, last), count)
        if probing.refine_factor is not None and all(ivf.stored is not None for _, ivf in opened):
            count.refined += rows.size
            rows, near = self._exact(query, vector, rows)
        return rows[: query.k], near[: query.k]

    def _probe(self, probe: _Probe, vector: Floats, stop: int, count: _Count) -> None:
        """Search the next partitions of a segment."""
        numbers = probe.order[probe.next : stop].tolist()
        partitions = [probe.ivf.partition(number) for number in numbers]
        probe.next = max(stop, probe.next)
        probe.rows += [partition.rows for partition in partitions]
        count.partitions += len(partitions)
        count.vectors += sum(partition.rows.size for partition in partitions)
        stored = probe.ivf.stored
        if stored is None:
            probe.distances += [
                np.zeros(partition.rows.size, np.float32) for partition in partitions
            ]
            return
        held = [partition.stored for partition in partitions if partition.stored is not None]
        with np.errstate(all="ignore"):
            probe.distances += stored.distances(vector, numbers, held)

    def _best(
        self,
        probes: Sequence[_Probe],
        query: NearestQuery,
        num_wanted: int,
        vector: Floats,
        allowed: U64s | None,
    ) -> tuple[U64s, F32s]:
        """Return the nearest live rows found so far, nearest first."""
        parts = []
        for probe in probes:
            rows = np.concatenate(probe.rows) if probe.rows else NO_ROWS
            if probe.ivf.stored is None:
                addresses, is_live = _kept(probe.segment, rows, allowed)
                parts.append(self._exact(query, vector, addresses[is_live]))
                continue
            near = np.concatenate(probe.distances) if probe.distances else _NO_DISTANCES
            is_refined = query.probing.refine_factor is not None
            keep = np.flatnonzero(~np.isnan(near) if is_refined else in_range(near, query))
            if keep.size < near.size:
                rows, near = rows[keep], near[keep]
            parts.append(
                _nearest_live(probe.segment, rows, near, num_wanted=num_wanted, allowed=allowed)
            )
        for probe, (rows, _) in zip(probes, parts, strict=True):
            if different(np.sort(rows)).size < rows.size:
                place = f"_indices/{probe.segment.index.uuid}"
                repeated = f"row {describe_repeated(rows)}"
                raise CorruptFileError(place, None, "each row once", repeated)
        rows = np.concatenate([rows_of_part for rows_of_part, _ in parts])
        near = np.concatenate([distances_of_part for _, distances_of_part in parts])
        order = np.lexsort((rows, near))[:num_wanted]
        return rows[order], near[order]

    def _exact(self, query: NearestQuery, vector: Floats, rows: U64s) -> tuple[U64s, F32s]:
        """Compute the exact distances of rows; return them nearest first."""
        schema = self._snapshot.manifest.schema
        projection = project(schema, [quoted((query.column,))])
        near = np.full(rows.size, np.nan, np.float32)
        step = max(_EXACT_BYTES // (4 * vector.size), 1)
        for start in range(0, rows.size, step):
            listed = rows_at(self._snapshot, rows[start : start + step])
            table = fetch_rows(self._snapshot, projection, listed)
            matrix, valid = matrix_of(table.column(0))
            part = distances(matrix, vector, query.metric)
            near[start : start + step] = np.where(valid, part, np.nan)
        keep = np.flatnonzero(in_range(near, query))
        order = keep[np.lexsort((rows[keep], near[keep]))]
        return rows[order], near[order]


def _kept(segment: Segment, rows: U64s, allowed: U64s | None) -> tuple[U64s, npt.NDArray[np.bool_]]:
    """Return the addresses of rows, and which of them may be found."""
    addresses, is_live = segment.addresses(rows)
    if allowed is not None:
        is_live &= among(addresses, allowed)
    return addresses, is_live


def _nearest_live(
    segment: Segment, rows: U64s, near: F32s, num_wanted: int, allowed: U64s | None
) -> tuple[U64s, F32s]:
    """Return the nearest rows that may be found, in any order.

    Rows are looked up from the nearest one on, as few are needed: most rows live.
    """
    checked = rows.size if allowed is not None else num_wanted + max(num_wanted // 4, _CHECKED_MIN)
    while True:
        places: npt.NDArray[np.int64] = np.arange(rows.size)
        if checked < rows.size:
            limit = np.partition(near, checked)[checked]
            places = np.flatnonzero(near <= limit)
        addresses, is_live = _kept(segment, rows[places], allowed)
        if checked >= rows.size or int(is_live.sum()) >= num_wanted:
            return addresses[is_live], near[places[is_live]]
        checked *= 8


def _merged(neighbours: Neighbours, other: Neighbours, k: int) -> Neighbours:
    """Return the k nearest rows of each query, nearest first."""
    merged = Neighbours(
        addresses_of([neighbours.rows, other.rows]),
        np.concatenate((neighbours.distances, other.distances)),
        np.concatenate((neighbours.query_index, other.query_index)),
    )
    order = np.lexsort((merged.rows.position, merged.distances, merged.query_index))
    numbers = merged.query_index[order]
    place = np.arange(order.size) - np.searchsorted(numbers, numbers)
    return merged.take(order[place < k].astype(np.int64))


def _unit(vector: Floats) -> Floats:
    length = math.sqrt(float(vector @ vector))
    return vector / np.float32(length) if length > 0 else vector


def _most(probing: Probing, total: int) -> int:
    return total if probing.most is None else min(probing.most, total)


def _first(probing: Probing, k: int, total: int) -> int:
    """Return how many partitions are searched first, as pylance does by its default."""
    most = _most(probing, total)
    least = min(probing.least, most)
    usual = next((count for limit, count in _FIRST_PARTITIONS if k <= limit), most)
    usual = max(min(usual, most), least)
    effort = probing.effort
    if effort == DEFAULT_EFFORT or least == most:
        return usual
    if effort < DEFAULT_EFFORT:
        chosen = float(least * (usual / least) ** (2 * effort))
    else:
        chosen = float(usual * (most / usual) ** (2 * effort - 1))
    return max(least, min(math.ceil(chosen - 1e-9), most))


def opened_segment(segment: Segment) -> IvfSegment:
    """Open the files of a segment. Raises LanceError."""
    partitions = partitions_of(segment.snapshot.files)
    ivf_segment: IvfSegment = segment.opened(
        FILES, NEWEST, partial(IvfSegment, segment.index.uuid, partitions)
    )
    return ivf_segment


def opened_segments(index: ListedIndex) -> list[tuple[Segment, IvfSegment]]:
    """Open the files of all segments of an index. Raises LanceError."""
    return [(segment, opened_segment(segment)) for segment in index.segments]


def vector_search(snapshot: Snapshot) -> VectorSearch | None:
    """Return the vector indices of a version, None if it has none; listed once per version.

    A version whose list of indices cannot be read is searched without them, with a warning.
    """
    return listed_once(snapshot, VectorSearch, VectorSearch, _INSTEAD)
