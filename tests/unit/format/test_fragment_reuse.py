"""Details of the fragment-reuse index."""

from __future__ import annotations

import pytest

from lance_nb._pb import index as pb
from lance_nb.errors import NotSupportedError
from lance_nb.format.fragment_reuse import (
    moves,
    new_fragment_ids,
    with_newest_entries,
    without_cleaned_entries,
)


def details(*entries: tuple[int, tuple[int, ...], tuple[int, ...]]) -> bytes:
    """Return details with one group per entry: (dataset version, old ids, new ids)."""
    message = pb.FragmentReuseIndexDetails()
    message.inline.SetInParent()
    for version, old, new in entries:
        entry = message.inline.legacy_versions.add(dataset_version=version)
        group = entry.groups.add()
        for one in old:
            group.old_fragments.add(id=one)
        for one in new:
            group.new_fragments.add(id=one)
    return message.SerializeToString()


FIRST, SECOND, THIRD = (3, (0, 1), (5,)), (6, (5, 2), (6,)), (9, (6,), (7, 8))


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


@pytest.mark.parametrize("data", [b"\x12\x02\x0a\x00", b"\x0a\x02\x12\x00"])
def test_details_of_another_kind_are_refused(data: bytes) -> None:
    with pytest.raises(NotSupportedError, match="fragment-reuse"):
        moves(data)
