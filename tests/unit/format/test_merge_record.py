"""The properties that a merge leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format import merge_record
from lance_nb.format.merge_record import (
    FIELDS_MAX,
    IDS_MAX,
    PREFIX,
    MergeRecord,
    mark_of,
    marks_in,
    record_of,
)

RECORD = MergeRecord(
    "merge", "dev", "abc", 7, None, 3, 5, "replay", "ours", is_copied=True, pin="merged-dev-7",
    transactions=("a", "b"), key=("id",), fields={1: -1, 3: 4},
)  # fmt: skip


def test_a_record_is_read_as_it_was_written() -> None:
    assert record_of({"other": "1", **RECORD.properties()}) == RECORD


def test_the_configuration_names_what_the_next_merge_needs() -> None:
    (mark,) = marks_in({"other": "1", **mark_of(RECORD)})
    names = ("source_branch", "source_id", "source_version", "target_version", "key", "fields")
    assert [getattr(mark, name) for name in names] == [getattr(RECORD, name) for name in names]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"1": "2"}', '{"1": 2.5}', '{"1": true}', '{"1": -2}',
             '{"1": 3, "2": 3}', "[" * 100_000],
)  # fmt: skip
def test_fields_that_make_no_sense_are_not_recorded(text: str) -> None:
    record = record_of({**RECORD.properties(), f"{PREFIX}fields": text})
    assert record is not None
    assert record.fields is None


def test_few_fields_are_listed() -> None:
    fields = {number: number + 1 for number in range(FIELDS_MAX)}
    assert record_of(replace(RECORD, fields=fields).properties()) == replace(RECORD, fields=fields)
    fields[FIELDS_MAX] = 0
    assert record_of(replace(RECORD, fields=fields).properties()) == replace(RECORD, fields=None)


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
