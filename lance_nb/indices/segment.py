"""One segment of an index in one version: from the rows in its files to rows of the version.

Rows are row addresses, or row ids where these are stable. Addresses are followed through the
fragment-reuse index. Only rows in fragments of the segment's own bitmap count: where a column was
changed in place, or a row has moved, old entries stay in the files, and the fragment has left the
bitmap (or was never in it). Deleted rows are dropped.

Limits: an open segment is kept as long as the handle of the dataset, as its files never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import open_file
from lance_nb.indices.reader import IndexReader
from lance_nb.indices.registry import KINDS, opened
from lance_nb.indices.row_places import RowPlaces
from lance_nb.indices.row_sets import (
    NO_ROWS,
    U64s,
    ascending,
    bitmaps_of_rows,
    joined,
    rows_of_bitmaps,
)
from lance_nb.table.deletions import read_deletions
from lance_nb.table.file_cache import FileCache
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.index_search import Ids, among, different
from lance_nb.table.indices import follow_addresses
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]
_SHIFT, _OFFSET = np.uint64(32), np.uint64(0xFFFFFFFF)
_SEGMENTS_MAX = 64

# The open segments of each handle, by place and uuid.
_opened: WeakKeyDictionary[FileCache, dict[tuple[str, str], Any]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, and the live fragments that it covers (ids, ascending)."""

    snapshot: Snapshot
    index: IndexMetadata
    covered: Ids
    reuse: IndexMetadata | None
    places: RowPlaces

    @property
    def by_address(self) -> bool:
        """Whether its rows are addresses."""
        if not self.snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
            return True
        kind = KINDS.get(self.index.kind)
        since = None if kind is None else kind.by_address_from
        return since is not None and (self.index.index_version or 0) >= since

    def reader(self) -> IndexReader:
        """Open its files. Raises NotSupportedError, CorruptFileError, ObjectNotFoundError."""
        kind = KINDS[self.index.kind]
        index_reader: IndexReader = self.opened(
            kind.files, kind.newest, lambda *files: opened(self.index.kind, list(files))
        )
        return index_reader

    def opened(self, names: Sequence[str], newest: int, make: Callable[..., Any]) -> Any:
        """Return what ``make`` makes of the files, made once for each handle of the dataset.

        Raises NotSupportedError (a version above ``newest``), CorruptFileError,
        ObjectNotFoundError.
        """
        if (self.index.index_version or 0) > newest:
            raise NotSupportedError(
                f"index {self.index.name!r} is of version {self.index.index_version}, "
                f"{newest} is known"
            )
        store, _ = self.snapshot.locations.locate("", self.index.base_id)
        opened = _opened.setdefault(self.snapshot.files, {})
        key = store.uri, self.index.uuid
        reader = opened.get(key)
        if reader is None:
            files = [open_file(self.snapshot, self.index, name) for name in names]
            while len(opened) >= _SEGMENTS_MAX:
                opened.pop(next(iter(opened)), None)
            reader = opened[key] = make(*files)
        return reader  # another thread may have evicted it

    def present(self, rows: U64s) -> U64s:
        """Return the addresses of those rows that live in fragments of the segment, ascending.

        Raises CorruptFileError for rows that never were.
        """
        if not rows.size or not self.covered.size:
            return NO_ROWS
        self._check_newest(int(rows[-1]))
        if not self.by_address:
            return self._live(self.places.addresses(rows, self.covered))
        if self.reuse is not None:
            current, is_gone = rows.copy(), np.zeros(rows.size, np.bool_)
            follow_addresses(self.reuse, current, is_gone, self.snapshot.manifest.path)
            rows = ascending(current[~is_gone])
        return self._live(rows)

    def counts(self, sets: Sequence[dict[int, BitMap]], chosen: U64s | None = None) -> Ids:
        """Return how many rows of each set ``present`` would return.

        ``chosen``: the addresses of live rows, ascending, of which only these are counted. Where
        rows are addresses they are counted as they are stored. Raises CorruptFileError.
        """
        if not self.by_address or self.reuse is not None:
            present = [self.present(rows_of_bitmaps([row_set])) for row_set in sets]
            counted = [
                rows.size if chosen is None else np.count_nonzero(among(rows, chosen))
                for rows in present
            ]
            return np.array(counted, np.int64)
        chosen_bitmaps = None if chosen is None else bitmaps_of_rows(chosen)
        rows_by_fragment: dict[int, tuple[int, BitMap]] = {}
        position_of = self.snapshot.manifest.fragments.position_of
        places = {number: position_of(number) for number in self.covered.tolist()}
        totals = np.zeros(len(sets), np.int64)
        for place, row_set in enumerate(sets):
            for number, offsets in row_set.items():
                fragment = places.get(number)
                if fragment is None or not offsets:
                    self._check_newest(number << 32)
                    continue
                if number not in rows_by_fragment:
                    count, deleted = self._rows_of(fragment)
                    rows_by_fragment[number] = count, BitMap(deleted)
                count, deleted_rows = rows_by_fragment[number]
                self._check(number, offsets.max(), count)
                if chosen_bitmaps is not None:
                    mine = chosen_bitmaps.get(number)
                    totals[place] += 0 if mine is None else offsets.intersection_cardinality(mine)
                    continue
                totals[place] += len(offsets)
                if deleted_rows:
                    totals[place] -= offsets.intersection_cardinality(deleted_rows)
        return totals

    def addresses(self, rows: U64s) -> tuple[U64s, Mask]:
        """Return the addresses of rows in any order, and which of them ``present`` would return."""
        if not rows.size or not self.covered.size:
            return rows, np.zeros(rows.size, np.bool_)
        self._check_newest(int(rows.max()))
        if not self.by_address:
            addresses, is_known = self.places.addresses_of(rows, self.covered)
        elif self.reuse is not None:
            addresses, is_gone = rows.copy(), np.zeros(rows.size, np.bool_)
            follow_addresses(self.reuse, addresses, is_gone, self.snapshot.manifest.path)
            is_known = ~is_gone
        else:
            addresses, is_known = rows, np.ones(rows.size, np.bool_)
        is_live = np.zeros(rows.size, np.bool_)
        if is_known.all() and bool((addresses[1:] > addresses[:-1]).all()):
            for start, stop, live in self._parts(addresses):
                is_live[start:stop] = live
            return addresses, is_live
        order = np.flatnonzero(is_known)
        order = order[np.argsort(addresses[order])]
        for start, stop, live in self._parts(addresses[order]):
            is_live[order[start:stop]] = live
        return addresses, is_live

    def deleted(self, fragment_id: int) -> tuple[int, npt.NDArray[np.uint32]]:
        """Return how many rows a live fragment has, and which of them are deleted, ascending."""
        place = self.snapshot.manifest.fragments.position_of(fragment_id)
        if place is None:
            return 0, np.zeros(0, np.uint32)
        return self._rows_of(place)

    def _live(self, rows: U64s) -> U64s:
        parts = list(self._parts(rows))
        if sum(stop - start for start, stop, live in parts if live.all()) == rows.size:
            return rows
        return joined(rows[start:stop][live] for start, stop, live in parts)

    def _parts(self, rows: U64s) -> Iterator[tuple[int, int, Mask]]:
        """Yield which of the rows (ascending) are in each fragment, and which of these live."""
        starts = self.covered.astype(np.uint64) << _SHIFT
        lows = np.searchsorted(rows, starts)
        highs = np.searchsorted(rows, starts + (np.uint64(1) << _SHIFT))
        for place in np.flatnonzero(lows < highs).tolist():
            start, stop = int(lows[place]), int(highs[place])
            mine = rows[start:stop]
            yield start, stop, self._are_live(int(self.covered[place]), mine & _OFFSET)

    def _are_live(self, fragment_id: int, offsets: U64s) -> Mask:
        place = self.snapshot.manifest.fragments.position_of(fragment_id)
        if place is None:
            return np.zeros(offsets.size, np.bool_)
        count, deleted = self._rows_of(place)
        if offsets.size:
            self._check(fragment_id, int(offsets[-1]), count)
        if not deleted.size:
            return np.ones(offsets.size, np.bool_)
        deleted = deleted.astype(np.uint64)
        positions = np.minimum(np.searchsorted(deleted, offsets), deleted.size - 1)
        is_live: Mask = deleted[positions] != offsets
        return is_live

    def _rows_of(self, place: int) -> tuple[int, npt.NDArray[np.uint32]]:
        """Return how many rows the fragment at a place has, and which of them are deleted."""
        fragments = self.snapshot.manifest.fragments
        counts = fragments.counts()
        count = int(counts.physical_rows[place])
        none = np.zeros(0, np.uint32)
        if count and not counts.num_deletion_files[place]:
            return count, none
        fragment = fragments[place]
        count = confirmed_rows(self.snapshot, fragment)
        locations, deletions = self.snapshot.locations, self.snapshot.deletions
        vector = read_deletions(locations, deletions, fragment, count)
        return count, none if vector is None else vector.offsets()

    def _check_newest(self, row: int) -> None:
        """Refuse the greatest of rows where no row so new was ever written."""
        manifest = self.snapshot.manifest
        newest, number, subject = manifest.next_row_id - 1, row, "row ids"
        if self.by_address:
            if manifest.max_fragment_id is None or row >> 32 <= manifest.max_fragment_id:
                return
            # Manifests of old releases may have a number that is too low.
            newest = int(manifest.fragments.counts().ids.max(initial=manifest.max_fragment_id))
            number, subject = row >> 32, "fragments"
        if number > newest:
            place = f"_indices/{self.index.uuid}"
            raise CorruptFileError(place, None, f"{subject} up to {newest}", str(number))

    def _check(self, fragment_id: int, last: int, count: int) -> None:
        """Refuse a row that a fragment of ``count`` rows never had."""
        if last >= count:
            expected = f"rows below {count} of fragment {fragment_id}"
            raise CorruptFileError(f"_indices/{self.index.uuid}", None, expected, str(last))


def segment_of(
    snapshot: Snapshot,
    index: IndexMetadata,
    ids: Ids,
    reuse: IndexMetadata | None,
    places: RowPlaces,
) -> Segment:
    """Return a segment with those of the live fragments ``ids`` (ascending) that it covers."""
    named = index.fragment_ids(snapshot.manifest.path) or ()
    covered = different(ids[among(ids, different(np.array(list(named), np.int64)))])
    return Segment(snapshot, index, covered, reuse=reuse, places=places)
