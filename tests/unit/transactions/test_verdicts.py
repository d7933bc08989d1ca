"""Verdicts."""

from __future__ import annotations

from lance_nb.transactions.verdicts import Verdict, enumerate_ids


def test_a_larger_verdict_is_stricter() -> None:
    assert list(Verdict) == sorted(Verdict)
    assert Verdict.COMPATIBLE < Verdict.REBASABLE < Verdict.RETRYABLE < Verdict.INCOMPATIBLE


def test_long_lists_of_ids_are_cut() -> None:
    assert enumerate_ids("fragment", [3]) == "fragment 3"
    assert enumerate_ids("row", [2, 1]) == "rows 1, 2"
    assert enumerate_ids("row", range(9)) == "rows 0, 1, 2, 3, 4 and 4 more"
