"""Which fragments two versions share, from their serialized form: no fragment is decoded for that.

Fragments of equal bytes, in one folder, are equal. Where a fragment of that id is on both sides but
other bytes, both are decoded and their files compared: two fragments are the *same* one, changed,
when they share a data file (or, on one branch, hold the same row ids); else they only happen to
have one id, as after forks. A file is known by where it lies, so that a branch shares the files of
its parent.

Limits: 100,000 fragments a side are compared at once; decoding starts with those that differ.
Source: messages DataFragment and DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import ne

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import DataFile, DeletionFile, Fragment
from lance_nb.format.fragment_bases import with_bases
from lance_nb.format.manifest_values import BasePath
from lance_nb.storage.registry import split_uri
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot

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
        self._bases = {one.id: one for one in locations.present_bases()}
        self._known: dict[int, tuple[str, str]] = {}

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
        if base_id not in self._known:
            self._known[base_id] = _split(base.path)
        return (*self._known[base_id], path if base.is_dataset_root else path.partition("/")[2])


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
    for number, pair in _compared(a, b, at_a, at_b, np.flatnonzero(differs)):
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
        chosen = [left[at] for at in at_a.tolist()]
        one: Iterable[bytes] = with_bases(chosen, changes, a.manifest.path)
    else:
        one = map(left.__getitem__, at_a.tolist())
    other = map(right.__getitem__, at_b.tolist())
    return np.fromiter(map(ne, one, other), np.bool_, at_a.size)


def _base_changes(a: Snapshot, b: Snapshot) -> dict[int | None, int | None] | None:
    """Return what ``b`` calls each base of ``a`` (None: its folder); None if it has not all."""
    places_b = {_place(one): one.id for one in reversed(b.locations.present_bases())}
    names: dict[tuple[str, str, bool], int | None] = dict(places_b)
    names[*_split(b.locations.home.uri), True] = None
    wanted: dict[int | None, tuple[str, str, bool]] = {None: (*_split(a.locations.home.uri), True)}
    wanted |= {one.id: _place(one) for one in a.locations.present_bases()}
    if not all(place in names for place in wanted.values()):
        return None
    return {number: names[place] for number, place in wanted.items()}


def _place(base: BasePath) -> tuple[str, str, bool]:
    return (*_split(base.path), base.is_dataset_root)


def _compared(
    a: Snapshot, b: Snapshot, at_a: Ints, at_b: Ints, numbers: Ints
) -> Iterator[tuple[int, Pair]]:
    """Yield (number, pair) of those fragments that are the same one on both sides."""
    places_a, places_b = Places(a.locations), Places(b.locations)
    for number in numbers.tolist():
        one = a.manifest.fragments[int(at_a[number])]
        other = b.manifest.fragments[int(at_b[number])]
        files_a = [(places_a.of_file(file), file.fields) for file in one.files]
        files_b = [(places_b.of_file(file), file.fields) for file in other.files]
        shared = {key for key, _ in files_a} & {key for key, _ in files_b}
        if not shared and (
            a.branch != b.branch or one.row_ids is None or one.row_ids != other.row_ids
        ):
            continue  # ids of fragments and of rows are given again after a fork
        deleted_a = places_a.of_deletions(one.id, one.deletion_file)
        deleted_b = places_b.of_deletions(other.id, other.deletion_file)
        yield number, Pair(one, other, files_a != files_b, deleted_a != deleted_b)
