"""Clauses of an upsert."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import MergeInsertError, SchemaMismatchError
from lance_nb.format.schema import Schema
from lance_nb.writing.upsert_source import (
    MergeClauses,
    WhenMatched,
    check_clauses,
    column_obstacles,
)

SCHEMA = Schema.from_arrow(
    pa.schema([pa.field("k", pa.int64(), nullable=False), ("a", pa.int64()), ("b", pa.string())])
)
KEY, A, B = (pa.field(one.name, one.type, one.nullable) for one in SCHEMA.to_arrow())
PART, WHOLE = pa.schema([KEY, A]), pa.schema([A, B, KEY])


def clauses(**more: Any) -> MergeClauses:
    return MergeClauses(("k",), **{"matched": WhenMatched.UPDATE, **more})


@pytest.mark.parametrize(
    ("asked", "source", "obstacles"),
    [
        (clauses(), PART, []),
        (clauses(matched=WhenMatched.DELETE), PART, ["matched rows are not updated"]),
        (clauses(matched=WhenMatched.KEEP), PART, ["matched rows are not updated"]),
        (clauses(inserts=True), PART, ["rows are inserted"]),
        (clauses(deletes_unmatched=True), PART, ["rows that are not matched are deleted"]),
        (clauses(), WHOLE, ["the source has every column of the dataset"]),
        (clauses(), pa.schema([KEY]), ["the source has no column besides the key"]),
        (
            clauses(inserts=True, deletes_unmatched=True), WHOLE,
            ["rows are inserted", "rows that are not matched are deleted",
             "the source has every column of the dataset"],
        ),
    ],
)  # fmt: skip
def test_columns_are_written_alone_unless_something_speaks_against_it(
    asked: MergeClauses, source: pa.Schema, obstacles: list[str]
) -> None:
    assert column_obstacles(asked, source, SCHEMA) == obstacles
    wanted = MergeClauses(**{**vars_of(asked), "write_mode": "rewrite_columns"})
    if not obstacles:
        check_clauses(wanted, source, SCHEMA)
        return
    with pytest.raises(MergeInsertError) as caught:
        check_clauses(wanted, source, SCHEMA)
    assert all(one in str(caught.value) for one in obstacles)


def vars_of(asked: MergeClauses) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in asked.__slots__}


@pytest.mark.parametrize("mode", ["auto", "rewrite_rows"])
def test_other_modes_find_their_own_way(mode: str) -> None:
    check_clauses(clauses(inserts=True, write_mode=mode), WHOLE, SCHEMA)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (MergeClauses(("k",)), True),
        (clauses(), False),
        (clauses(matched=WhenMatched.FAIL), False),
        (MergeClauses(("k",), inserts=True), False),
        (MergeClauses(("k",), deletes_unmatched=True), False),
        (MergeClauses(("k",), all_bases=True, bases=("b",)), True),
    ],
)
def test_clauses_that_change_no_row_are_known(asked: MergeClauses, expected: bool) -> None:
    assert asked.does_nothing is expected


@pytest.mark.parametrize(
    ("asked", "source", "said"),
    [
        (clauses(), pa.schema([A, B]), r"no column 'k', which rows are matched by.*'a', 'b'"),
        (clauses(inserts=True), pa.schema([("k", pa.int32()), A]), "'k' must have type int64"),
        (clauses(), pa.schema([KEY, ("z", pa.int8())]), "'z' is not in the dataset"),
        (clauses(inserts=True), pa.schema([KEY, A, ("z", pa.int8())]), "'z' is not in the dataset"),
        (MergeClauses(("a",), inserts=True, matched=WhenMatched.UPDATE), pa.schema([A, B]), "'k'"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(
    asked: MergeClauses, source: pa.Schema, said: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=said):
        check_clauses(asked, source, SCHEMA)


def test_a_column_that_must_not_be_null_may_be_missing_where_nothing_is_inserted() -> None:
    asked = MergeClauses(("a",), matched=WhenMatched.UPDATE)
    check_clauses(asked, pa.schema([A, B]), SCHEMA)


def test_a_refusal_names_at_most_twenty_columns() -> None:
    many = pa.schema([(f"c{n}", pa.int8()) for n in range(30)])
    with pytest.raises(SchemaMismatchError) as caught:
        check_clauses(clauses(), many, SCHEMA)
    assert "'c19'" in str(caught.value)
    assert "'c20'" not in str(caught.value)
