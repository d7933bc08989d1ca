"""The fragment-reuse index: its entries and when they go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap

from lance_nb.errors import NotSupportedError, RetryableCommitConflictError
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import REUSE_INDEX, MovedGroup, address_map, moves
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.writing.compaction import Rewritten, recorded_groups, with_record
from lance_nb.writing.indexing import unneeded_entries
from tests.support.versions import FIRST, SECOND, THIRD, deleted, details, index, new_fragment


def rewritten(*ids: int, gone: int = 0) -> Rewritten:
    old = [replace(new_fragment(), id=one) for one in ids]
    if gone:
        old[0] = deleted(old[0], gone)
    rows = address_map((one, BitMap(range(10))) for one in ids)
    return Rewritten(1, tuple(old), (new_fragment(),), rows)


def recorded(
    *groups: Rewritten, covers: tuple[int, ...], kind: str = "BTree", **more: bool
) -> list:
    indices = [index("i", 0, covers=covers, kind=kind), index(REUSE_INDEX, kind="FragmentReuse")]
    options = {"defer": None, "has_row_ids": False} | more
    return recorded_groups(indices, groups, **options)


def test_every_group_is_recorded_when_an_index_covers_one() -> None:
    groups = rewritten(0, 1), rewritten(2, 3)
    assert recorded(*groups, covers=(0, 1)) == [0, 1]
    assert recorded(*groups, covers=(7,)) == []


def test_nothing_is_recorded_that_is_not_wanted_or_cannot_be() -> None:
    assert recorded(rewritten(0), covers=(0,), defer=False) == []
    assert recorded(rewritten(0), covers=(0,), has_row_ids=True) == []
    assert recorded(replace(rewritten(0), row_addrs=None), covers=(0,)) == []
    with pytest.raises(NotSupportedError, match="stable"):
        recorded(rewritten(0), covers=(0,), has_row_ids=True, defer=True)


def test_a_graph_loses_no_rows() -> None:
    groups = rewritten(0, gone=2), rewritten(1)
    assert recorded(*groups, covers=(0, 1), kind="Vector") == [1]
    assert recorded(*groups, covers=(0, 1)) == [0, 1]


def test_an_index_built_meanwhile_on_a_part_of_a_group_is_a_conflict() -> None:
    with pytest.raises(RetryableCommitConflictError, match="covers only"):
        recorded(rewritten(0, 1), covers=(1,))


def test_entries_pile_up_and_the_bitmap_names_all_new_fragments() -> None:
    reuse = replace(index(REUSE_INDEX, kind="FragmentReuse"), details=details(FIRST))
    group = MovedGroup(b"", (Fragment(5, (), 2),), (Fragment(9, (), 2),))
    made = with_record([reuse], 12, [group], uuid="u", created_at_ms=5)
    assert moves(made.details) == [({0, 1}, {5}), ({5}, {9})]
    assert list(made.fragment_ids() or ()) == [5, 9]
    assert (made.uuid, made.dataset_version, made.fields, made.index_version) == ("u", 12, (), 0)
    assert made.kind == "FragmentReuse"
    alone = with_record([], 12, [group], uuid="u", created_at_ms=5)
    assert moves(alone.details) == [({5}, {9})]


def test_an_index_that_does_not_say_what_it_covers_hides_no_other() -> None:
    silent = replace(index("a", 0), fragment_bitmap=b"")
    indices = [silent, index("i", 0, covers=(0,)), index(REUSE_INDEX, kind="FragmentReuse")]
    assert recorded_groups(indices, [rewritten(0)], defer=None, has_row_ids=False) == [0]
    assert recorded_groups([silent], [rewritten(0)], defer=None, has_row_ids=False) == []


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
