"""What two versions have in common."""

from __future__ import annotations

import pytest

import lance_nb
from lance_nb.table.diff.merge_base import Past, VersionPath, find_ends


@pytest.fixture
def forked(past):
    """Main has 7 versions; ``dev`` forks at 4 and has 5 and 6; ``fix`` forks from dev at 5."""
    ds = past()
    ds.create_branch("dev", 4)
    for number in (11, 12):
        lance_nb.dataset(ds.uri, ("dev", None)).delete(f"id = {number}")
    lance_nb.dataset(ds.uri, ("dev", None)).create_branch("fix", ("dev", 5))
    lance_nb.dataset(ds.uri, ("fix", None)).delete("id = 0")
    ds.tags.create("first", 1)
    return ds


def _ends(ds, a, b):
    return find_ends(
        ds.opened[0], ds.checkout_version(a).opened[1], ds.checkout_version(b).opened[1]
    )


def _segments(ends) -> list[tuple]:
    return [(one.side, one.branch, one.after, one.upto) for one in ends.between]


def test_on_one_branch_the_older_version_is_the_ancestor(forked) -> None:
    assert _ends(forked, 2, 5).ancestor == Past(None, 2)
    assert _segments(_ends(forked, 2, 5)) == [("b", None, 2, 5)]
    assert _segments(_ends(forked, 5, 2)) == [("a", None, 2, 5)]
    assert _segments(_ends(forked, 5, 5)) == []


def test_branches_meet_where_they_forked(forked) -> None:
    ends = _ends(forked, ("fix", None), (None, 7))

    assert ends.ancestor == Past(None, 4)
    assert _segments(ends) == [("a", "dev", 4, 5), ("a", "fix", 5, 6), ("b", None, 4, 7)]


def test_a_version_before_the_fork_is_in_the_past_of_the_branch(forked) -> None:
    ends = _ends(forked, (None, 2), ("dev", 6))

    assert ends.ancestor == Past(None, 2)
    assert _segments(ends) == [("b", None, 2, 4), ("b", "dev", 4, 6)]


def test_branches_of_one_branch_meet_on_it(forked) -> None:
    ends = _ends(forked, ("dev", 6), ("fix", 6))

    assert ends.ancestor == Past("dev", 5)
    assert _segments(ends) == [("a", "dev", 5, 6), ("b", "fix", 5, 6)]


def test_the_first_version_of_a_branch_is_the_one_it_was_forked_from(forked) -> None:
    ends = _ends(forked, ("dev", 4), (None, 4))

    assert ends.ancestor == Past(None, 4)
    assert _segments(ends) == []
    assert forked.diff(("dev", 4), 4).counts.is_empty


def test_restores_are_found_up_to_the_second_version(make) -> None:
    ds = make()
    ds.checkout_version(1).restore()
    ds = lance_nb.dataset(ds.uri)
    ds.delete("id = 0")
    source, snapshot = lance_nb.dataset(ds.uri).opened
    path = VersionPath(source, snapshot)
    assert path.numbers == [1, 2, 3]
    assert [path.last_restore(position) for position in range(3)] == [0, 1, 1]


def test_a_branch_of_the_first_version_of_a_branch_has_only_its_own_past(make) -> None:
    main = make()
    main.delete("id = 0")
    dev = main.create_branch("dev", 2)
    exp = dev.create_branch("exp", ("dev", 2))
    for number in (1, 2):
        lance_nb.dataset(main.uri, ("dev", None)).delete(f"id = {number}")
    exp.delete("id = 3")
    source, snapshot = lance_nb.dataset(main.uri, ("exp", None)).opened

    path = VersionPath(source, snapshot)

    assert path.numbers == [1, 2, 3]
    assert [path.snapshot(at).branch for at in range(3)] == [None, None, "exp"]
