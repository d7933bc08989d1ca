"""Every transaction of the one side against every one of the other."""

from __future__ import annotations

from lance_nb.transactions.branch_merge.ends import Step
from lance_nb.transactions.branch_merge.findings import MergeConflict
from lance_nb.transactions.branch_merge.grid import SCHEMA, pair_table
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA as TABLE
from tests.support.committing import fragment


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
