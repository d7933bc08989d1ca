"""Conflicts, and how they are decided."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.transactions.branch_merge.conflicts import Findings


def test_an_undecided_conflict_stays_open_and_says_what_to_do() -> None:
    findings = Findings()

    assert findings.report("rows", "2 rows changed") == "ours"
    assert [one.resolution for one in findings.open] == [None]
    assert "on_conflict='theirs'" in str(findings.open[0])


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_choice_decides_what_it_can(side: str) -> None:
    findings = Findings(side)

    assert findings.report("rows", "x") == side
    assert findings.report("fragments", "y", choices=(), remedy="do z") == "ours"
    assert [one.kind for one in findings.open] == ["fragments"]
    assert str(findings.open[0]) == "fragments: y. do z"
    assert str(findings.conflicts[0]) == f"rows: x [{side}]"


def test_notes_are_told_once() -> None:
    findings = Findings()
    findings.note("n")
    findings.note("n")

    assert findings.notes == ["n"]


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="fail, ours, theirs"):
        Findings("mine")
