"""Verdicts and the printed grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import CommitConflictError, InvalidInputError, RetryableCommitConflictError
from lance_nb.transactions.conflict_grid import TABLE, check, conflict_error, grid, parse_grid
from lance_nb.transactions.conflict_rules import RULES, Circumstances, Verdict
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.data_overlay import DataOverlay
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.unknown import Unknown
from lance_nb.transactions.registry import OPERATIONS
from tests.support.versions import SCHEMA, deleted, new_fragment

GOLDEN = Path(__file__).parents[2] / "golden" / "conflict_grid.txt"
APPEND = Append((new_fragment(),))
DELETE = Delete((deleted(new_fragment(), 1),))


def test_the_grid_is_the_one_checked_in() -> None:
    # To accept a change: PYTHONPATH=. python -m tests.support.print_grid --write
    assert grid() == GOLDEN.read_text()


def test_every_operation_has_its_row_and_its_column() -> None:
    arms = list(OPERATIONS)
    assert list(dict(parse_grid(TABLE))) == [(ours, theirs) for ours in arms for theirs in arms]


def test_every_rule_stands_in_a_cell() -> None:
    assert {rule.letter for _, cell in parse_grid(TABLE) for rule in cell} == set(RULES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\nAppend ", "\nAppended "),
        ("Ap   Dl", "Dl   Ap"),
        ("\nDelete            .", "\nDelete            q"),
        ("\nDelete            .    d", "\nDelete            d"),
    ],
)
def test_a_damaged_table_is_refused(before: str, after: str) -> None:
    assert before in TABLE
    with pytest.raises(InvalidInputError, match="conflict grid"):
        dict(parse_grid(TABLE.replace(before, after)))


def test_a_compatible_pair_says_so() -> None:
    assert check(APPEND, DELETE).verdict is Verdict.COMPATIBLE


def test_the_strictest_of_several_rules_counts() -> None:
    ours = Overwrite(SCHEMA, (), (), {"k": "1"})
    assert check(ours, Overwrite(SCHEMA, ())).verdict is Verdict.RETRYABLE
    both = check(ours, Overwrite(SCHEMA, (), (), {"k": "2"}))
    assert both.verdict is Verdict.INCOMPATIBLE
    assert "config key 'k'" in both.overlap


@pytest.mark.parametrize("theirs", [Unknown((116,)), Unknown(), DataOverlay(b"")])
def test_what_we_do_not_know_conflicts_with_everything(theirs: object) -> None:
    assert check(APPEND, theirs).verdict is Verdict.INCOMPATIBLE
    assert check(theirs, APPEND).verdict is Verdict.INCOMPATIBLE


def test_known_rows_turn_a_retry_into_a_rebase() -> None:
    assert check(DELETE, DELETE).verdict is Verdict.RETRYABLE
    assert check(DELETE, DELETE, Circumstances(knows_rows=True)).verdict is Verdict.REBASABLE


def test_the_error_names_both_operations_the_version_the_overlap_and_the_remedy() -> None:
    conflict = check(DELETE, DELETE)
    error = conflict_error(conflict, DELETE, DELETE, 7)
    assert isinstance(error, RetryableCommitConflictError)
    text = str(error)
    for part in ("this Delete", "the Delete", "version 7", "fragment 0", "do the change again"):
        assert part in text


def test_an_incompatible_conflict_warns_of_repeating() -> None:
    merge = Merge((), SCHEMA)
    overwrite = Overwrite(SCHEMA, ())
    error = conflict_error(check(merge, overwrite), merge, overwrite, 3)
    assert isinstance(error, CommitConflictError)
    assert "before deciding anew" in str(error)
