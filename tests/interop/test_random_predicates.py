"""Random conditions over every type that a filter takes choose the rows that pylance chooses.

Several fragments, rows deleted, nulls, NaN, signed zeros, ends of ranges. What pylance does not
answer consistently is never generated: ``tests/support/random_predicates`` says what and why.
"""

from __future__ import annotations

from typing import Any

import pytest

import lance_nb
from tests.interop.matrix import ROUNDS
from tests.support.filter_rows import write_filter_dataset
from tests.support.random_predicates import random_predicate
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

BATCH = 25


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same dataset in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("random_predicates") / "data")
    theirs = write_filter_dataset(require_pylance(), path)
    return lance_nb.dataset(path), theirs


def _chosen(dataset: Any, condition: str) -> list[int]:
    found: list[int] = dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
    return found


@pytest.mark.parametrize("batch", range(4 * ROUNDS))
def test_a_random_condition_and_its_negation_choose_the_rows_that_pylance_chooses(
    both: tuple[Any, Any], batch: int
) -> None:
    ours, theirs = both
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        condition = random_predicate(seed)
        expected = _chosen(theirs, condition)
        assert _chosen(ours, condition) == expected, condition
        assert ours.count_rows(condition) == len(expected), condition
        negated = f"NOT ({condition})"
        assert _chosen(ours, negated) == _chosen(theirs, negated), negated


def test_a_seed_is_one_condition_and_conditions_differ() -> None:
    conditions = [random_predicate(seed) for seed in range(100)]
    assert conditions == [random_predicate(seed) for seed in range(100)]
    assert len(set(conditions)) > 90
