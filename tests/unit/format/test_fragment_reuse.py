"""Details of the fragment-reuse index."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap, BitMap64

from lance_nb._pb import index as pb
from lance_nb.errors import NotSupportedError
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import (
    INLINE_BYTES_MAX,
    REUSE_INDEX,
    DetailsFile,
    MovedGroup,
    MovedRows,
    address_map,
    details_file,
    entries,
    follow,
    inline_details,
    moved_rows,
    moves,
    moves_of,
    new_fragment_ids,
    outside,
    with_entry,
    with_newest_entries,
    without_cleaned_entries,
    without_entries,
)
from tests.support.versions import FIRST, SECOND, THIRD, details, index


def test_moves_are_in_the_order_they_happened() -> None:
    assert moves(details(SECOND, FIRST)) == [({0, 1}, {5}), ({2, 5}, {6})]
    assert new_fragment_ids(details(FIRST, THIRD)) == {5, 7, 8}


def test_a_clean_up_takes_up_the_rewrites_that_came_meanwhile() -> None:
    cleaned = details(SECOND)
    merged = with_newest_entries(cleaned, [details(FIRST, SECOND, THIRD), details()])
    assert moves(merged) == [({2, 5}, {6}), ({6}, {7, 8})]


def test_a_rewrite_drops_what_a_clean_up_dropped() -> None:
    mine = details(FIRST, SECOND, THIRD)
    assert moves(without_cleaned_entries(mine, [details(SECOND)])) == moves(details(SECOND, THIRD))
    assert moves(without_cleaned_entries(mine, [details()])) == moves(details(THIRD))
    assert without_cleaned_entries(details(), [details(FIRST)]) == details()


def test_an_entry_says_which_rows_moved_and_between_which_fragments() -> None:
    rows = address_map([(0, BitMap([0, 2])), (3, BitMap(range(5)))])
    assert list(BitMap64.deserialize(rows)) == [0, 2, *(3 << 32 | at for at in range(5))]
    old, new = (Fragment(0, (), 3), Fragment(3, (), 5)), (Fragment(7, (), 7),)
    made = with_entry(details(FIRST), 9, [MovedGroup(rows, old, new)])
    assert moves(made) == [({0, 1}, {5}), ({0, 3}, {7})]
    assert len(entries(made)) == 2
    assert moves(without_entries(made, {0})) == [({0, 3}, {7})]
    assert moves(with_entry(b"", 9, [MovedGroup(rows, old, new)])) == [({0, 3}, {7})]


def test_moved_rows_and_moves_are_reported_oldest_first() -> None:
    message = pb.FragmentReuseIndexDetails.FromString(details(SECOND, FIRST))
    for number, entry in enumerate(message.inline.legacy_versions):
        (group,) = entry.groups
        group.changed_row_addrs = bytes([number])
        for one in (*group.old_fragments, *group.new_fragments):
            one.physical_rows = 10 * one.id
    assert moved_rows(message.SerializeToString()) == [
        MovedRows(b"\1", ((0, 0), (1, 10)), ((5, 50),)),
        MovedRows(b"\0", ((5, 50), (2, 20)), ((6, 60),)),
    ]
    first, second = entries(details(FIRST, SECOND))
    assert (moves_of(first), moves_of(second)) == ([({0, 1}, {5})], [({2, 5}, {6})])


def test_only_details_of_this_index_have_a_file() -> None:
    external = pb.FragmentReuseIndexDetails()
    external.external.path = "details.bin"
    other = replace(index(REUSE_INDEX), details=external.SerializeToString())
    assert details_file(other) == DetailsFile("details.bin", 0, 0)
    assert details_file(replace(other, name="other")) is None
    assert details_file(replace(other, details=details(FIRST))) is None


def test_indices_cover_the_successors_step_by_step() -> None:
    reuse = replace(index(REUSE_INDEX, covers=(5, 6), kind="FragmentReuse"))
    reuse = replace(reuse, details=details(SECOND, FIRST))
    whole, part = index("whole", 0, covers=(0, 1, 2)), index("part", 0, covers=(0, 9))
    silent = replace(index("silent", 0), fragment_bitmap=b"")
    followed = follow([whole, part, silent, reuse])
    assert [sorted(one.fragment_ids() or ()) for one in followed] == [[6], [0, 9], [], [6]]


def test_without_such_an_index_nothing_changes() -> None:
    indices = [index("i", 0)]
    assert follow(indices) == indices


def test_large_details_lie_in_a_file() -> None:
    rows = address_map((at, BitMap(range(0, 60_000, 2))) for at in range(40))
    old, new = tuple(Fragment(at, (), 60_000) for at in range(40)), (Fragment(90, (), 1_200_000),)
    whole = with_entry(b"", 1, [MovedGroup(rows, old, new)])
    assert len(whole) > INLINE_BYTES_MAX
    reuse = replace(index(REUSE_INDEX, kind="FragmentReuse"), details=whole)
    moved, content = outside(reuse)
    assert details_file(moved) == DetailsFile("details.binpb", 0, len(content))
    assert inline_details(moved) == whole
    assert outside(moved) is None  # it has a file already
    assert outside(replace(reuse, details=details(FIRST))) is None
    with pytest.raises(NotSupportedError):  # nobody has read the file
        follow([replace(moved, content=b"")])


@pytest.mark.parametrize("data", [b"\x12\x02\x0a\x00", b"\x0a\x02\x12\x00"])
def test_details_of_another_kind_are_refused(data: bytes) -> None:
    with pytest.raises(NotSupportedError, match="fragment-reuse"):
        moves(data)
