"""Fragments and data files that two versions share, and those that were added, removed or changed.

Fragments are compared in serialized form, so that none is decoded for it: equal bytes, in one
folder, are equal. Where both sides have a fragment of that id with other bytes, both are decoded
and their files compared: two fragments are the *same* one, changed, when they share a data file
(or, on one branch, hold the same row ids); else they have the same id by chance, as after forks. A
file is identified by its location, so that a branch shares the files of its parent.

Layout of a table of fragments: ``change``, ``fragment_id``, then rows, deleted rows, files and
bytes before and after, and what differs. Of files: ``change``, ``fragment_id``, ``path``,
``size_bytes``, ``file_version``, ``columns``. Both ascend by fragment and are made in windows.

Limits: 100,000 fragments a side are compared at once; deletions are counted as the manifest counts
them.
Source: messages DataFragment and DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import ne
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import DataFile, DeletionFile, Fragment
from lance_nb.format.manifest import BasePath
from lance_nb.format.serialized_fragments import with_bases
from lance_nb.storage.registry import split_uri
from lance_nb.table.deletions import read_deletions
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

# Where a file lies: the scheme, the place of the root, the path below it.
FileKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """One fragment as both versions have it, and whether its files or deletions differ."""

    a: Fragment
    b: Fragment
    files_differ: bool
    deletions_differ: bool


@dataclass(frozen=True, slots=True)
class FragmentMatch:
    """Positions in the two lists of fragments, and the pairs that differ in some way.

    ``only_a`` and ``only_b`` are positions of fragments without a partner.
    """

    only_a: Ints
    only_b: Ints
    num_equal: int
    changed: tuple[Pair, ...]


class Places:
    """Tells where files lie, by text alone: no store is opened."""

    def __init__(self, locations: Locations) -> None:
        self._home = _split(locations.home.uri)
        self._bases = {present_base.id: present_base for present_base in locations.present_bases()}
        self._places: dict[int, tuple[str, str]] = {}

    def of_file(self, file: DataFile) -> FileKey:
        """Return where a data file lies."""
        return self._key(f"data/{file.path}", file.base_id)

    def of_deletions(self, fragment_id: int, file: DeletionFile | None) -> FileKey | None:
        """Return where a deletion file lies."""
        return None if file is None else self._key(file.location(fragment_id), file.base_id)

    def _key(self, path: str, base_id: int | None) -> FileKey:
        if base_id is None:
            return (*self._home, path)
        base = self._bases.get(base_id)
        if base is None:
            raise CorruptFileError("manifest", None, f"a base path with id {base_id}", "none")
        if base_id not in self._places:
            self._places[base_id] = _split(base.path)
        return (*self._places[base_id], path if base.is_dataset_root else path.partition("/")[2])


def _split(uri: str) -> tuple[str, str]:
    scheme, place = split_uri(uri)
    return scheme, place.rstrip("/")


def match_fragments(a: Snapshot, b: Snapshot) -> FragmentMatch:
    """Compare the fragments of two versions. Raises CorruptFileError.

    An id that several fragments of one version have tells none of them apart: they count as
    fragments of that version only.
    """
    ids_a, ids_b = a.manifest.fragments.counts().ids, b.manifest.fragments.counts().ids
    at_a, at_b = _in_both(ids_a, ids_b)
    differs = _bytes_differ(a, b, at_a, at_b)
    alone = np.ones(at_a.size, np.bool_)
    changed = []
    equal = at_a.size - int(differs.sum())
    alone[~differs] = False
    for number, pair in _compared(a, b, at_a, at_b=at_b, numbers=np.flatnonzero(differs)):
        alone[number] = False
        if pair.files_differ or pair.deletions_differ:
            changed.append(pair)
        else:
            equal += 1
    rest_a = np.setdiff1d(np.arange(ids_a.size), at_a, assume_unique=True)
    rest_b = np.setdiff1d(np.arange(ids_b.size), at_b, assume_unique=True)
    only_a: Ints = np.sort(np.concatenate((rest_a, at_a[alone]))).astype(np.int64)
    only_b: Ints = np.sort(np.concatenate((rest_b, at_b[alone]))).astype(np.int64)
    changed.sort(key=lambda pair: pair.b.id)
    return FragmentMatch(only_a, only_b, equal, tuple(changed))


def _in_both(ids_a: Ints, ids_b: Ints) -> tuple[Ints, Ints]:
    """Return where each id lies that both sides have exactly once, in the order of the ids."""
    (once_a, first_a, times_a), (once_b, first_b, times_b) = (
        np.unique(ids, return_index=True, return_counts=True) for ids in (ids_a, ids_b)
    )
    once_a, first_a = once_a[times_a == 1], first_a[times_a == 1]
    once_b, first_b = once_b[times_b == 1], first_b[times_b == 1]
    _, at_a, at_b = np.intersect1d(once_a, once_b, assume_unique=True, return_indices=True)
    return first_a[at_a], first_b[at_b]


def _bytes_differ(a: Snapshot, b: Snapshot, at_a: Ints, at_b: Ints) -> npt.NDArray[np.bool_]:
    """Tell for each id that both have whether the serialized fragments differ.

    Paths mean places on each side: where bases have other ids, those of ``a`` are exchanged.
    """
    left, right = list(a.manifest.fragments.raw), list(b.manifest.fragments.raw)
    changes = _base_changes(a, b)
    if changes is None:
        return np.ones(at_a.size, np.bool_)
    if any(old != new for old, new in changes.items()):
        chosen = [left[position] for position in at_a.tolist()]
        raw_a: Iterable[bytes] = with_bases(chosen, changes, a.manifest.path)
    else:
        raw_a = map(left.__getitem__, at_a.tolist())
    other = map(right.__getitem__, at_b.tolist())
    return np.fromiter(map(ne, raw_a, other), np.bool_, at_a.size)


def _base_changes(a: Snapshot, b: Snapshot) -> dict[int | None, int | None] | None:
    """Return what ``b`` calls each base of ``a`` (None: its folder); None if it has not all."""
    places_b = {
        _place(present_base): present_base.id
        for present_base in reversed(b.locations.present_bases())
    }
    names: dict[tuple[str, str, bool], int | None] = dict(places_b)
    names[*_split(b.locations.home.uri), True] = None
    places: dict[int | None, tuple[str, str, bool]] = {None: (*_split(a.locations.home.uri), True)}
    places |= {
        present_base.id: _place(present_base) for present_base in a.locations.present_bases()
    }
    if not all(place in names for place in places.values()):
        return None
    return {number: names[place] for number, place in places.items()}


def _place(base: BasePath) -> tuple[str, str, bool]:
    return (*_split(base.path), base.is_dataset_root)


def _compared(
    a: Snapshot, b: Snapshot, at_a: Ints, at_b: Ints, numbers: Ints
) -> Iterator[tuple[int, Pair]]:
    """Yield (number, pair) of those fragments that are the same one on both sides."""
    places_a, places_b = Places(a.locations), Places(b.locations)
    for number in numbers.tolist():
        fragment_a = a.manifest.fragments[int(at_a[number])]
        other = b.manifest.fragments[int(at_b[number])]
        files_a = [(places_a.of_file(file), file.fields) for file in fragment_a.files]
        files_b = [(places_b.of_file(file), file.fields) for file in other.files]
        shared = {key for key, _ in files_a} & {key for key, _ in files_b}
        if not shared and (
            a.branch != b.branch
            or fragment_a.row_ids is None
            or fragment_a.row_ids != other.row_ids
        ):
            continue  # ids of fragments and of rows are given again after a fork
        deleted_a = places_a.of_deletions(fragment_a.id, fragment_a.deletion_file)
        deleted_b = places_b.of_deletions(other.id, other.deletion_file)
        yield number, Pair(fragment_a, other, files_a != files_b, deleted_a != deleted_b)


ADDED, CHANGED, REMOVED = "added", "changed", "removed"
CHANGES = (ADDED, CHANGED, REMOVED)
FRAGMENTS = pa.schema([
    ("change", pa.string()), ("fragment_id", pa.uint64()), ("rows_before", pa.uint64()),
    ("rows_after", pa.uint64()), ("deleted_before", pa.uint64()), ("deleted_after", pa.uint64()),
    ("files_before", pa.uint32()), ("files_after", pa.uint32()), ("bytes_before", pa.uint64()),
    ("bytes_after", pa.uint64()), ("files_differ", pa.bool_()), ("deletions_differ", pa.bool_()),
])  # fmt: skip
FILES = pa.schema([
    ("change", pa.string()), ("fragment_id", pa.uint64()), ("path", pa.string()),
    ("size_bytes", pa.uint64()), ("file_version", pa.string()), ("columns", pa.list_(pa.string())),
])  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FragmentChanges:
    """The fragments that differ, ascending by id; nothing of them is decoded yet.

    ``kinds`` are positions in ``CHANGES``; ``places`` are those in the list of ``b``, of the pairs
    that changed, or in the list of ``a``.
    """

    ends: Ends
    match: FragmentMatch
    kinds: Ints
    places: Ints

    @property
    def num_fragments(self) -> int:
        """How many."""
        return int(self.kinds.size)

    def rows(self, start: int, stop: int | None) -> Iterator[Row]:
        """Yield some of them as rows of a table, up to the last where ``stop`` is None."""
        for kind, before, after in self._fragments(start, stop):
            row: Row = {"change": kind, "fragment_id": (before or after).id}  # type: ignore[union-attr]
            row |= _side("before", before) | _side("after", after)
            yield row

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return some of them, all by default."""
        rows = list(self.rows(start, stop))
        for row, kind, place in zip(
            rows, self.kinds[start:stop].tolist(), self.places[start:stop].tolist(), strict=True
        ):
            if CHANGES[kind] == CHANGED:
                pair = self.match.changed[place]
                row["files_differ"] = pair.files_differ
                row["deletions_differ"] = pair.deletions_differ
        return pa.Table.from_pylist(rows, schema=FRAGMENTS)

    def files(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return the data files that came or went with some of them."""
        before: dict[FileKey, Row] = {}
        after: dict[FileKey, Row] = {}
        for _, old, other in self._fragments(start, stop):
            before |= _file_rows(REMOVED, self.ends.a, old)
            after |= _file_rows(ADDED, self.ends.b, other)
        rows = [row for key, row in after.items() if key not in before]
        rows += [row for key, row in before.items() if key not in after]
        rows.sort(key=lambda row: (row["fragment_id"], row["change"]))
        return pa.Table.from_pylist(rows, schema=FILES)

    def _fragments(
        self, start: int, stop: int | None
    ) -> Iterator[tuple[str, Fragment | None, Fragment | None]]:
        """Decode some of them: the kind of change, as it was, as it is."""
        a, b = self.ends.a.manifest.fragments, self.ends.b.manifest.fragments
        for kind, place in zip(
            self.kinds[start:stop].tolist(), self.places[start:stop].tolist(), strict=True
        ):
            if CHANGES[kind] == ADDED:
                yield ADDED, None, b[place]
            elif CHANGES[kind] == REMOVED:
                yield REMOVED, a[place], None
            else:
                yield CHANGED, self.match.changed[place].a, self.match.changed[place].b


def fragment_changes(
    ends: Ends, match: FragmentMatch, kinds: Sequence[str] = CHANGES
) -> FragmentChanges:
    """List the fragments that differ; of some kinds only."""
    ids_a, ids_b = (side.manifest.fragments.counts().ids for side in (ends.a, ends.b))
    pairs = np.array([pair.b.id for pair in match.changed], np.int64)
    matched = (
        (ids_b[match.only_b], match.only_b),
        (pairs, np.arange(pairs.size)),
        (ids_a[match.only_a], match.only_a),
    )
    parts = [
        (
            part_ids.astype(np.int64),
            np.full(part_ids.size, code, np.int64),
            places.astype(np.int64),
        )
        for code, (part_ids, places) in enumerate(matched)
        if CHANGES[code] in kinds
    ]
    none = np.zeros(0, np.int64)
    ids, codes, places = (np.concatenate([none, *column]) for column in zip(*parts, strict=True))
    order = np.lexsort((codes, ids))
    return FragmentChanges(ends, match, codes[order], places[order])


def _side(when: str, fragment: Fragment | None) -> Row:
    if fragment is None:
        return {}
    return {
        f"rows_{when}": max(fragment.num_rows, 0),
        f"deleted_{when}": fragment.num_deleted_rows,
        f"files_{when}": len(fragment.files),
        f"bytes_{when}": sum(file.size_bytes for file in fragment.files),
    }


def _file_rows(change: str, snapshot: Snapshot, fragment: Fragment | None) -> dict[FileKey, Row]:
    if fragment is None:
        return {}
    schema, places = snapshot.manifest.schema, Places(snapshot.locations)
    rows = {}
    for file in fragment.files:
        names = [schema.path_of(field_id) for field_id in file.fields]
        rows[places.of_file(file)] = {
            "change": change,
            "fragment_id": fragment.id,
            "path": file.path,
            "size_bytes": file.size_bytes or None,
            "file_version": f"{file.file_version[0]}.{file.file_version[1]}",
            "columns": [name for name in names if name is not None],
        }
    return rows


def fragments_at(snapshot: Snapshot, positions: Any) -> Iterator[Fragment]:
    """Yield the fragments at some positions of a version."""
    return (snapshot.manifest.fragments[position] for position in positions.tolist())


def deleted_offsets(snapshot: Snapshot, fragment: Fragment) -> np.ndarray:
    """Return the offsets of the deleted rows, ascending (int64)."""
    count = 0 if fragment.deletion_file is None else confirmed_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, count)
    return np.zeros(0, np.int64) if vector is None else vector.offsets().astype(np.int64)
