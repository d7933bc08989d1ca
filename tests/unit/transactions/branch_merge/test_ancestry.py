"""Where two branches come from, and what was merged between them."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError, RefNotFoundError
from lance_nb.format.refs import Branch
from lance_nb.transactions.branch_merge.merge_base import (
    Base,
    Line,
    Merges,
    ancestry,
    base_of,
    fork_of,
)
from lance_nb.transactions.branch_merge.records import MergeRecord

DEV = Branch(None, 3, ((3, "d"),))
EXP = Branch("dev", 5, ((3, "d"), (5, "e")))
BRANCHES = {"dev": DEV, "exp": EXP}


def _merge(source: str, version: int, kind: str = "merge") -> MergeRecord:
    return MergeRecord(kind, None, source, version, None, 1, 1, "replay")


def _base(source: tuple[str | None, int], target: tuple[str | None, int], *merges: Merges) -> Base:
    lines = ancestry(BRANCHES, *source), ancestry(BRANCHES, *target)
    found = (*merges, Merges(()), Merges(()))
    return base_of(*lines, (found[0], found[1]))


def test_a_branch_of_a_branch_comes_from_both() -> None:
    assert ancestry(BRANCHES, "exp", 9) == (
        Line("e", "exp", 9), Line("d", "dev", 5), Line("main", None, 3)
    )  # fmt: skip


def test_the_fork_is_the_latest_version_that_both_hold() -> None:
    exp, dev, main = (
        ancestry(BRANCHES, name, version) for name, version in (("exp", 9), ("dev", 4), (None, 7))
    )

    assert fork_of(exp, main) == Line("main", None, 3)
    assert fork_of(exp, dev) == Line("d", "dev", 4)
    assert fork_of(main, ancestry(BRANCHES, None, 2)) == Line("main", None, 2)


def test_a_parent_that_was_deleted_or_made_again_is_gone() -> None:
    for branches in ({"exp": EXP}, {"exp": EXP, "dev": Branch(None, 3, ((3, "other"),))}):
        lines = ancestry(branches, "exp", 9)
        assert [one.is_gone for one in lines] == [False, True, False]
        assert lines[1] == Line("d", None, 5, is_gone=True)


def test_old_branches_without_identifier_are_known_by_name_and_time() -> None:
    lines = ancestry({"old": Branch(None, 2, create_at=77)}, "old", 4)

    assert lines == (Line("old@77", "old", 4), Line("main", None, 2))


def test_unknown_branches_and_circles_are_refused() -> None:
    with pytest.raises(RefNotFoundError, match="nope"):
        ancestry(BRANCHES, "nope", 1)
    circle = {"a": Branch("b", 1), "b": Branch("a", 1)}
    with pytest.raises(InvalidInputError, match="its own ancestor"):
        ancestry(circle, "a", 1)


def test_the_base_is_the_last_merge() -> None:
    into_main = Merges.of([(5, _merge("d", 4)), (6, _merge("d", 6)), (7, None)])

    assert _base(("dev", 8), (None, 9)).line == Line("main", None, 3)
    assert _base(("dev", 8), (None, 9), Merges(()), into_main) == Base(
        Line("d", "dev", 6), in_target=False
    )


def test_a_branch_comes_along_with_its_child_as_far_as_the_child_holds_it() -> None:
    into_main = Merges.of([(6, _merge("d", 8))])

    assert _base(("exp", 9), (None, 9), Merges(()), into_main).line == Line("d", "dev", 5)


def test_merges_both_ways_start_from_the_later_one() -> None:
    into_main = Merges.of([(5, _merge("d", 6))])
    afterwards = Merges.of([(8, _merge("main", 5))])
    before = Merges.of([(5, _merge("main", 4))])

    assert _base(("dev", 9), (None, 9), afterwards, into_main) == Base(
        Line("main", None, 5), in_source=False
    )
    assert _base(("dev", 9), (None, 9), before, into_main).line == Line("d", "dev", 6)


def test_picked_changes_move_no_base() -> None:
    picked = Merges.of([(5, _merge("d", 6, "cherry-pick"))])

    assert _base(("dev", 9), (None, 9), Merges(()), picked).line == Line("main", None, 3)
