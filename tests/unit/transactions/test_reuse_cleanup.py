"""Entries of the fragment-reuse index that no index needs."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.fragment_reuse import unneeded_entries
from tests.support.versions import index
from tests.unit.format.test_fragment_reuse import FIRST, SECOND, THIRD, details

ALONE = (4, (20,), (21,))  # of fragments that none of the others came from


def reuse(*entries: tuple[int, tuple[int, ...], tuple[int, ...]]) -> IndexMetadata:
    return replace(index(REUSE_INDEX, kind="FragmentReuse"), details=details(*entries))


def nothing(_version: int) -> None:
    return None


def test_an_index_older_than_the_entries_needs_those_it_covers() -> None:
    old = index("old", 0, covers=(7, 8))
    assert unneeded_entries([old, reuse(FIRST, SECOND, THIRD, ALONE)], nothing) == {3}
    assert unneeded_entries([index("old", 0, covers=(30,)), reuse(FIRST)], nothing) == {0}


def test_an_index_built_after_an_entry_does_not_need_it() -> None:
    new = replace(index("new", 0, covers=(7, 8)), dataset_version=8)
    known = {8: [reuse(FIRST, SECOND)]}
    assert unneeded_entries([new, reuse(FIRST, SECOND, THIRD)], known.get) == {0, 1}
    old = index("old", 1, covers=(7, 8))
    assert unneeded_entries([new, old, reuse(FIRST, SECOND, THIRD)], known.get) == set()


def test_an_index_that_does_not_say_what_it_covers_needs_everything() -> None:
    silent = replace(index("silent", 0), fragment_bitmap=b"")
    assert unneeded_entries([silent, reuse(FIRST)], nothing) == set()


def test_without_other_indices_nothing_is_needed() -> None:
    assert unneeded_entries([reuse(FIRST, SECOND)], nothing) == {0, 1}
    assert unneeded_entries([index("i", 0)], nothing) == set()
