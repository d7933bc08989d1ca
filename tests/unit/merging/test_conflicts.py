"""Conflicts, and the table of pairs of transactions."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.merging import conflicts
from lance_nb.merging.conflicts import SCHEMA, Findings, MergeConflict, pair_table
from lance_nb.merging.merge_base import Step
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.data_replacement import (
    DataReplacement,
    DataReplacementGroup,
)
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA as TABLE
from tests.support.committing import fragment


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


def test_notes_are_reported_once() -> None:
    findings = Findings()
    findings.note("n")
    findings.note("n")

    assert findings.notes == ["n"]


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="fail, ours, theirs"):
        Findings("mine")


def _step(version: int, operation: Operation | None, branch: str | None = None) -> Step:
    made = None if operation is None else Transaction(version - 1, operation, f"u{version}")
    return Step(branch, version, made)


DELETE = Delete((fragment(identity=0),), (), "id = 1")


def test_a_pair_has_the_verdict_of_the_rules_and_what_became_of_it() -> None:
    rows = pair_table(
        [_step(2, Append((fragment(),)), "dev"), _step(3, DELETE, "dev")], [_step(2, DELETE)], []
    ).to_pylist()

    assert [(row["source_operation"], row["verdict"], row["outcome"]) for row in rows] == [
        ("Append", "compatible", "replayed"),
        ("Delete", "rebasable", "merged"),
    ]
    assert rows[1]["fragments"] == [0]
    assert "both change fragment 0" in rows[1]["reason"]


def test_conflicts_are_attributed_to_pairs() -> None:
    config = UpdateConfig(UpdateMap({"k": "1"}))
    steps = [_step(2, DELETE), _step(3, config), _step(4, Overwrite(TABLE, ()))]
    conflicts = [
        MergeConflict("rows", "", "", fragments=(0,)),
        MergeConflict("settings", "", "", keys=("k",)),
        MergeConflict("content", "", ""),
    ]

    rows = pair_table(steps[:2], steps, conflicts).to_pylist()

    assert [row["outcome"] for row in rows] == [
        "conflict", "replayed", "conflict", "replayed", "conflict", "replayed"
    ]  # fmt: skip


def test_what_is_not_recorded_any_more_is_said() -> None:
    (row,) = pair_table([_step(2, None)], [_step(2, DELETE)], []).to_pylist()

    assert (row["source_operation"], row["verdict"]) == ("Unknown", "unknown")


def test_no_pairs_make_an_empty_table() -> None:
    assert pair_table([], [_step(2, DELETE)], []).schema == SCHEMA


RENAME = Project(TABLE)


@pytest.mark.parametrize(
    ("conflict", "mine", "other", "expected"),
    [
        (MergeConflict("rows", "", "", fragments=(0,)), DELETE, DELETE, "conflict"),
        (MergeConflict("rows", "", "", fragments=(7,)), DELETE, DELETE, "merged"),
        (MergeConflict("columns", "", "", fields=(0,)), RENAME, RENAME, "conflict"),
        (MergeConflict("columns", "", "", fields=(0,)), RENAME, DELETE, "replayed"),
        (MergeConflict("columns", "", "", fields=(0,)), DELETE, RENAME, "replayed"),
        (MergeConflict("columns", "", ""), Append(()), Append(()), "conflict"),
        (MergeConflict("columns", "", ""), Append(()), DELETE, "replayed"),
        (MergeConflict("columns", "", ""), DELETE, Append(()), "replayed"),
        (MergeConflict("columns", "", ""), Append(()), Overwrite(TABLE, ()), "conflict"),
        (MergeConflict("content", "", ""), Append(()), Overwrite(TABLE, ()), "conflict"),
        (MergeConflict("content", "", ""), DELETE, DELETE, "merged"),
        (MergeConflict("settings", "", "", keys=("k",)), UpdateConfig(UpdateMap({"k": "1"})),
         UpdateConfig(UpdateMap({"l": "1"})), "replayed"),
        (MergeConflict("settings", "", "", keys=("k",)), UpdateConfig(UpdateMap({"k": "1"})),
         UpdateConfig(UpdateMap({"k": "1"})), "conflict"),
    ],
)  # fmt: skip
def test_a_pair_has_a_part_in_a_conflict_of_what_both_touch(
    conflict: MergeConflict, mine: Operation, other: Operation, expected: str
) -> None:
    (row,) = pair_table([_step(2, mine)], [_step(5, other)], [conflict]).to_pylist()
    assert row["outcome"] == expected
    (row,) = pair_table([_step(2, mine)], [_step(5, other)], []).to_pylist()
    assert row["outcome"] != "conflict"


def test_every_pair_is_listed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [_step(version, Append(())) for version in range(2, 6)]
    rows = pair_table(steps[:2], steps, []).to_pylist()
    versions = [(row["source_version"], row["target_version"]) for row in rows]
    assert versions == [(mine, other) for mine in (2, 3) for other in (2, 3, 4, 5)]
    monkeypatch.setattr(conflicts, "PAIRS_MAX", 3)
    assert pair_table(steps, steps, []).num_rows == 3


def test_what_was_replaced_on_both_sides_is_listed_by_field() -> None:
    file = fragment().files[0]
    one = DataReplacement((DataReplacementGroup(4, file), DataReplacementGroup(5, file)))
    other = DataReplacement((DataReplacementGroup(5, file),))
    (row,) = pair_table([_step(2, one)], [_step(2, other)], []).to_pylist()
    assert (row["fragments"], row["fields"]) == ([5], [0, 1])
