"""Random conditions over every type that a filter takes choose the rows that pylance chooses.

Several fragments, rows deleted, nulls, NaN, signed zeros, ends of ranges. What pylance does not
answer consistently is never generated: ``tests/support/random_predicates`` says what and why.
Expressions of one topic each are compared value by value, as columns.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import ROUNDS
from tests.support.filter_rows import write_filter_dataset
from tests.support.random_predicates import TOPICS, random_expression, random_predicate
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


DOCUMENTS = (
    '{"a": 1, "b": "x", "c": [1, "x", null, true]}', '{"a": {"a": 2.5, "b": [0, 1]}, "a b": "12"}',
    '[1, [2, {"a": 3}], "ï"]', '{"ï": true, "b": null, "a": "true"}', "{}", "[]", "null", '"s"',
    "12", '{"a": -0.5, "0": "z", "c": 1e300}', '{"a": [true, false], "c": "1.5"}', None,
)  # fmt: skip


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A column of JSON documents in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("documents") / "data")
    table = pa.table({"id": range(len(DOCUMENTS)), "j": pa.array(DOCUMENTS, pa.json_())})
    theirs = require_pylance().write_dataset(table, path, data_storage_version="2.2")
    return lance_nb.dataset(path), theirs


def _computed(dataset: Any, expression: str) -> list[str]:
    """Return the values as text, so that NaN and -0.0 are told apart; times as whole numbers."""
    values = dataset.to_table(columns={"v": expression})["v"]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return [repr(one) for one in values.to_pylist()]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_random_expression_is_computed_as_in_pylance(
    both: tuple[Any, Any], documents: tuple[Any, Any], topic: str
) -> None:
    ours, theirs = documents if topic == "json" else both
    num_seeds, num_answered = 50 * ROUNDS, 0
    for seed in range(num_seeds):
        expression = random_expression(topic, seed)
        try:
            expected = _computed(theirs, expression)
        except (ValueError, OSError):
            continue  # some refuse a value of a row, or types that do not go together
        num_answered += 1
        assert _computed(ours, expression) == expected, expression
    assert num_answered > num_seeds / 2
