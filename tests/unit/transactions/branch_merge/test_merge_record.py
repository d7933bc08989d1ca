"""The properties that a merge leaves."""

from __future__ import annotations

import pytest

from lance_nb.transactions.branch_merge import merge_record
from lance_nb.transactions.branch_merge.merge_record import IDS_MAX, PREFIX, MergeRecord, record_of

RECORD = MergeRecord(
    "merge", "dev", "abc", 7, None, 3, 5, "replay", "ours", is_copied=True, pin="merged-dev-7",
    transactions=("a", "b"),
)  # fmt: skip


def test_a_record_is_read_as_it_was_written() -> None:
    assert record_of({"other": "1", **RECORD.properties()}) == RECORD


def test_main_has_a_name_in_properties() -> None:
    assert RECORD.properties()[f"{PREFIX}base_branch"] == "main"


def test_few_transactions_are_listed() -> None:
    many = MergeRecord("merge", None, "", 1, None, 1, 1, "", transactions=("x",) * 1000)

    assert record_of(many.properties()).transactions == ("x",) * IDS_MAX  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "octopus"},
        {"source_version": ""},
        {"source_version": "-1"},
        {"base_version": "9" * 500},
        {"target_version": "\u0663"},
    ],
)
def test_what_makes_no_sense_is_no_record(change: dict[str, str]) -> None:
    found = {**RECORD.properties(), **{PREFIX + key: value for key, value in change.items()}}

    assert record_of(found) is None


def test_other_properties_are_no_record() -> None:
    assert record_of({"__lance_commit_message": "merge"}) is None


def test_a_number_has_at_most_20_digits() -> None:
    """As many as 2**64 - 1 has: the text is a property that anybody can write."""
    assert merge_record._number("1" * 20) == int("1" * 20)
    assert merge_record._number("1" * 21) is None
    assert merge_record._number("") is None
    assert merge_record._number("-1") is None
    assert merge_record._number("\u0661") is None
