"""The fragments of a manifest, kept as bytes and decoded when they are accessed.

A manifest of 100,000 fragments opens in a few milliseconds because nothing here is decoded then.
``counts`` decodes only the numbers, all at once, and checks them; row counts, statistics and the
planning of scans use it.

Row counts of manifests that name no writer (up to 0.8.0) can be wrong (``has_counts``): they are
treated as not recorded, so that readers count in the files. The bytes are unchanged.

Limits: ids fit 32 bits; sums of rows and of bytes stay below 2**62. Fragment ids may repeat (the
releases before 0.17 could commit that): such a list can be read in its order, but not looked up or
changed by id.
Source: ``Manifest.fragments``; message ``FragmentCounts`` is our counting view of ``DataFragment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import overload

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import Fragment
from lance_nb.format.serialized_fragments import (
    DELETED,
    ROWS,
    FragmentWire,
    Joined,
    count_fragments,
    largest_field_id,
)
from lance_nb.format.wire import U32_MAX
from lance_nb.value_classes import dataclass

Counts64 = npt.NDArray[np.int64]
_CARRIED_MAX = 1024  # more are not copied to a list that follows from another one
_SUM_MAX = 2**62  # far above any dataset; a floating-point sum is exact enough to tell


@dataclass(frozen=True, slots=True)
class FragmentCounts:
    """The numbers of every fragment, one array item each, in manifest order.

    ``size_bytes`` adds up the data files whose size is known.
    """

    ids: Counts64
    physical_rows: Counts64
    num_deleted_rows: Counts64
    num_data_files: Counts64
    num_deletion_files: Counts64
    size_bytes: Counts64

    @property
    def num_rows(self) -> Counts64:
        """Live rows of each fragment."""
        return self.physical_rows - self.num_deleted_rows

    @property
    def is_unknown(self) -> npt.NDArray[np.bool_]:
        """Where the manifest does not record the rows, or the deleted rows."""
        unknown: npt.NDArray[np.bool_] = self.physical_rows == 0
        return unknown | (self.num_deletion_files > self.num_deleted_rows)


class FragmentList(Sequence[Fragment]):
    """An immutable sequence of fragments over their serialized form.

    ``has_counts`` False: the row counts in the bytes are unreliable and read as 0.
    """

    __slots__ = ("_cache", "_counts", "_path", "_places", "_wire", "has_counts", "raw")

    def __init__(
        self,
        raw: Sequence[bytes] = (),
        path: str = "",
        wire: FragmentWire | None = None,
        *,
        has_counts: bool = True,
    ) -> None:
        self.raw = raw
        self.has_counts = has_counts
        self._path = path
        self._cache: dict[int, Fragment] = {}
        self._counts: FragmentCounts | None = None
        self._places: tuple[Counts64, Counts64] | None = None
        self._wire = wire or FragmentWire(raw)

    @classmethod
    def of(cls, fragments: Iterable[Fragment]) -> FragmentList:
        """Build from decoded fragments."""
        fragments = list(fragments)
        fragment_list = cls([fragment.to_bytes() for fragment in fragments])
        fragment_list._cache = dict(enumerate(fragments))
        return fragment_list

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> FragmentList: ...
    def __getitem__(self, index: int | slice) -> Fragment | FragmentList:
        if isinstance(index, slice):
            return FragmentList(self.raw[index], self._path, has_counts=self.has_counts)
        position = index + len(self.raw) if index < 0 else index
        fragment = self._cache.get(position)
        if fragment is None:
            fragment = Fragment.from_bytes(self.raw[position], self._path)
            if not self.has_counts:
                fragment = without_counts(fragment)
            self._cache[position] = fragment
        return fragment

    def __iter__(self) -> Iterator[Fragment]:
        return (self[position] for position in range(len(self.raw)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FragmentList) and list(self.raw) == list(other.raw)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FragmentList({len(self.raw)} fragments)"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (list(self.raw), self._path, self.has_counts)

    def counts(self) -> FragmentCounts:
        """Return the numbers of every fragment, checked.

        Raises CorruptFileError for too large ids, more deleted rows than rows, or sums that no
        dataset can have.
        """
        if self._counts is None:
            numbers = count_fragments(self.raw, self._path)
            if not self.has_counts:
                numbers[[ROWS, DELETED]] = 0
            self._counts = _checked(FragmentCounts(*numbers), self._path)
        return self._counts

    def largest_field_id(self) -> int:
        """Return the largest field id that a data file names, -1 without any; none is decoded."""
        return largest_field_id(self.raw, self._path)

    def repeated_id(self) -> int | None:
        """Return the lowest id that several fragments have, None if all ids differ."""
        ordered = np.sort(self.counts().ids)
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        return int(ordered[twice[0]]) if len(twice) else None

    def check_ids_differ(self) -> None:
        """Raise CorruptFileError if several fragments have one id."""
        repeated = self.repeated_id()
        if repeated is not None:
            raise self._repeats(repeated)

    def position_of(self, fragment_id: int) -> int | None:
        """Return the position of a fragment id in the list, None if there is none.

        Raises CorruptFileError if several fragments have it.
        """
        positions = self.positions_of((fragment_id,))
        return positions[0] if positions else None

    def places_of(self, fragments: Iterable[Fragment]) -> Iterator[int | None]:
        """Yield the position of each fragment in this list, None if there is none.

        Fragments that share an id are compared by their bytes; otherwise only ids are compared.
        """
        ordered, order = self._by_id()
        repeated: dict[int, dict[bytes, int]] = {}
        for fragment in fragments:
            start, stop = (
                np.searchsorted(ordered, fragment.id, "left"),
                np.searchsorted(ordered, fragment.id, "right"),
            )
            if stop - start < 2:
                yield int(order[start]) if start < stop else None
                continue
            if fragment.id not in repeated:
                places = order[start:stop].tolist()
                repeated[fragment.id] = {
                    self[position].to_bytes(): position for position in reversed(places)
                }
            yield repeated[fragment.id].get(fragment.to_bytes())

    def with_ids(self, fragment_ids: Iterable[int]) -> dict[int, Fragment]:
        """Return the fragments that have one of these ids, by id; only they are decoded.

        Raises CorruptFileError if several fragments have one of them.
        """
        positions = self.positions_of(fragment_ids)
        return {fragment.id: fragment for fragment in map(self.__getitem__, positions)}

    def appended(self, fragments: Iterable[Fragment]) -> FragmentList:
        """Return the list with more fragments at the end; decodes and copies no existing one."""
        more = [fragment.to_bytes() for fragment in fragments]
        raw = self.raw.followed_by(more) if isinstance(self.raw, Joined) else Joined(self.raw, more)
        wire = self._wire.followed_by(more)
        longer = FragmentList(raw, self._path, wire, has_counts=self.has_counts)
        longer._cache = self._few_decoded()
        return longer

    def wire(self) -> list[bytes | memoryview]:
        """Return the field ``fragments`` of the Manifest message, serialized, in pieces."""
        return self._wire.pieces()

    def replaced(self, changes: Mapping[int, Fragment | None]) -> FragmentList:
        """Return the list with the fragments of these ids replaced in place.

        None removes a fragment; ids that are not in the list are ignored.
        """
        counts = self.counts()
        positions = self.positions_of(changes)
        new = [changes[int(counts.ids[position])] for position in positions]
        raw: list[bytes] = list(self.raw)
        put = [
            position
            for position, fragment in zip(positions, new, strict=True)
            if fragment is not None
        ]
        data = [fragment.to_bytes() for fragment in new if fragment is not None]
        for position, fragment_data in zip(put, data, strict=True):
            raw[position] = fragment_data
        removed = sorted(set(positions) - set(put))
        if removed:
            dropped = set(removed)
            raw = [
                fragment_data
                for position, fragment_data in enumerate(raw)
                if position not in dropped
            ]
        changed = FragmentList(raw, self._path, has_counts=self.has_counts)
        if not removed:
            changed._cache = self._few_decoded()
            for position in put:
                changed._cache.pop(position, None)
        if self.has_counts:
            changed._counts = _patched(counts, put, data, removed=removed, path=self._path)
        return changed

    def _few_decoded(self) -> dict[int, Fragment]:
        """Return the decoded fragments for a list with the same ones in the same places."""
        return dict(self._cache) if len(self._cache) <= _CARRIED_MAX else {}

    def in_order(self) -> FragmentList:
        """Return the list sorted by fragment id; itself if it is sorted already."""
        ids = self.counts().ids
        if bool((ids[1:] > ids[:-1]).all()):
            return self
        raw = [self.raw[position] for position in np.argsort(ids, kind="stable").tolist()]
        return FragmentList(raw, self._path, has_counts=self.has_counts)

    def positions_of(self, fragment_ids: Iterable[int]) -> list[int]:
        """Return the positions of those ids that are in the list, ascending.

        Raises CorruptFileError if several fragments have one of them.
        """
        ids = np.array(sorted(set(fragment_ids)), np.int64)
        ordered, order = self._by_id()
        starts = np.searchsorted(ordered, ids, "left")
        counts = np.searchsorted(ordered, ids, "right") - starts
        twice = np.flatnonzero(counts > 1)
        if len(twice):
            raise self._repeats(int(ids[twice[0]]))
        positions: list[int] = np.sort(order[starts[counts > 0]]).tolist()
        return positions

    def _by_id(self) -> tuple[Counts64, Counts64]:
        """Return the ids in ascending order and their positions; sorted once for all lookups."""
        if self._places is None:
            ids = self.counts().ids
            order = np.argsort(ids, kind="stable")
            self._places = ids[order], order
        return self._places

    def _repeats(self, fragment_id: int) -> CorruptFileError:
        expected = "fragment ids that differ"
        return CorruptFileError(self._path, None, expected, f"fragment id {fragment_id} twice")


def without_counts(fragment: Fragment) -> Fragment:
    """Return the fragment without the numbers of its rows and deleted rows."""
    deletions = fragment.deletion_file
    if deletions is not None:
        deletions = replace(deletions, num_deleted_rows=0)
    return replace(fragment, physical_rows=0, deletion_file=deletions)


def _rebuilt(raw: Sequence[bytes], path: str, has_counts: bool) -> FragmentList:
    return FragmentList(raw, path, has_counts=has_counts)


def _patched(
    counts: FragmentCounts, put: list[int], data: list[bytes], removed: list[int], path: str
) -> FragmentCounts:
    """Return the counts with those at ``put`` taken from ``data``, and without ``removed``."""
    columns = [getattr(counts, count.name).copy() for count in fields(FragmentCounts)]
    for column, numbers in zip(columns, count_fragments(data, path), strict=True):
        column[put] = numbers
    return _checked(FragmentCounts(*(np.delete(column, removed) for column in columns)), path)


def _checked(counts: FragmentCounts, path: str) -> FragmentCounts:
    if not len(counts.ids):
        return counts
    if int(counts.ids.max()) > U32_MAX:
        id_text = f"fragment id {int(counts.ids.max())}"
        raise CorruptFileError(path, None, "32-bit fragment ids", id_text)
    for column in (counts.physical_rows, counts.num_deleted_rows, counts.size_bytes):
        total = float(column.sum(dtype=np.float64))
        if total >= _SUM_MAX:
            raise CorruptFileError(path, None, f"sums below {_SUM_MAX}", f"{total:.6g}")
    rows, deleted = counts.physical_rows, counts.num_deleted_rows
    too_many = np.flatnonzero((deleted > rows) & (rows > 0))
    if len(too_many):
        position = too_many[0]
        expected = f"at most {rows[position]} deleted rows in fragment {counts.ids[position]}"
        raise CorruptFileError(path, None, expected, f"{deleted[position]} deleted rows")
    return counts
