"""Where the target finds files of the source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format.fragment import TOMBSTONE, DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import Manifest
from lance_nb.merging.file_locations import (
    FileLocations,
    files_by_field,
    same_deletions,
    translated_files,
)
from lance_nb.merging.merge_base import Side
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from tests.support.committing import SCHEMA

A, B, C = (f"{one * 32}.lance" for one in "abc")
SPLIT = Fragment(
    0,
    (
        DataFile(A, (0, TOMBSTONE), (0, 1), 2, 2),
        DataFile(B, (1, 2), (0, 1), 2, 2),
        DataFile(C, (TOMBSTONE,), (0,), 2, 2),
    ),
    10,
)


@pytest.fixture
def side() -> Side:
    store = MemoryStore("homes")
    manifest = Manifest(3, SCHEMA, FragmentList.of([SPLIT]), max_fragment_id=0)
    return Side.of(Snapshot(manifest, Locations(store, store)), ())


def test_every_field_has_the_file_that_holds_it(side: Side) -> None:
    assert files_by_field(side, SPLIT) == {0: A, 1: B, 2: B}


def test_fields_are_named_by_the_ids_of_the_outcome(side: Side) -> None:
    assert files_by_field(side, SPLIT, {0: 5, 1: 0}) == {5: A, 0: B}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({0: 0, 1: 7}, [(A, (0, TOMBSTONE)), (B, (7, TOMBSTONE))]),
        ({2: 0}, [(B, (TOMBSTONE, 0))]),
        ({}, []),
    ],
)
def test_files_without_a_field_of_the_outcome_are_left_out(
    side: Side, fields: dict[int, int], expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    made = translated_files(SPLIT, fields, FileLocations(side, side))

    assert [(one.path, one.fields) for one in made] == expected


def test_files_and_folders_of_another_place_are_copied(side: Side) -> None:
    store = MemoryStore("elsewhere")
    other = Side.of(Snapshot(side.manifest, Locations(store, store)), ())
    places = FileLocations(side, other, copies_files=True)

    assert places.translated(SPLIT.files[0]).base_id is None
    assert places.folder("_indices/x", None) is None
    found = {path: (one.store, one.is_folder) for path, one in places.copies.items()}
    home = side.snapshot.locations.home
    assert found == {f"data/{A}": (home, False), "_indices/x": (home, True)}


def test_deletion_files_are_the_same_by_their_place(side: Side) -> None:
    file = DeletionFile(2, 77, DeletionFileType.ARROW, 1)
    one, other = (
        replace(SPLIT, deletion_file=file),
        replace(SPLIT, deletion_file=replace(file, id=78)),
    )

    assert same_deletions(side, SPLIT, side, SPLIT)
    assert same_deletions(side, one, side, one)
    assert not same_deletions(side, one, side, other)
    assert not same_deletions(side, one, side, SPLIT)
