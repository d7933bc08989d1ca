"""Key-value maps changed on two sides."""

from __future__ import annotations

import pytest

from lance_nb.transactions.branch_merge.conflicts import Findings
from lance_nb.transactions.branch_merge.schemas import merge_maps

BASE = {"a": "1", "b": "1", "gone": "1"}


def test_each_key_comes_from_the_side_that_changed_it() -> None:
    findings = Findings()

    merged = merge_maps(BASE, {"a": "2", "b": "1"}, {**BASE, "c": "3"}, "key", findings)

    assert merged == {"a": "2", "b": "1", "c": "3"}
    assert not findings.conflicts


def test_the_same_change_on_both_sides_is_no_conflict() -> None:
    findings = Findings()

    assert merge_maps(BASE, {"a": "2"}, {"a": "2", "b": "1"}, "key", findings) == {"a": "2"}
    assert not findings.conflicts


@pytest.mark.parametrize(("side", "value"), [("ours", "3"), ("theirs", "2"), ("fail", "3")])
def test_different_values_are_a_conflict(side: str, value: str) -> None:
    findings = Findings(side)

    merged = merge_maps({"a": "1"}, {"a": "2"}, {"a": "3"}, "config key", findings)

    assert merged == {"a": value}
    assert findings.conflicts[0].keys == ("a",)
    assert "config key 'a' is '2' on the source, '3' here" in findings.conflicts[0].text


def test_a_removal_against_a_change_is_a_conflict() -> None:
    findings = Findings("theirs")

    assert merge_maps({"a": "1"}, {}, {"a": "x" * 500}, "key", findings) == {}
    assert "not set" in findings.conflicts[0].text
    assert len(findings.conflicts[0].text) < 200


@pytest.mark.parametrize(("length", "shown"), [(60, "x" * 60), (61, "x" * 60 + "...")])
def test_long_values_are_shown_by_their_beginning(length: int, shown: str) -> None:
    findings = Findings("theirs")
    assert merge_maps({"a": b"1"}, {"a": b"x" * length}, {"a": b"\xff"}, "key", findings)
    assert f"is '{shown}' on the source, '\ufffd' here" in findings.conflicts[0].text


def test_a_key_that_only_one_side_has_is_merged_by_itself() -> None:
    findings = Findings()
    merged = merge_maps(
        {"a": "1", "b": "1"}, {"a": "1", "c": "2"}, {"b": "1", "d": "3"}, "k", findings
    )
    assert merged == {"c": "2", "d": "3"}
    assert not findings.conflicts
