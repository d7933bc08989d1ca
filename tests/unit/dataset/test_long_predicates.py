"""Every verb that takes SQL refuses what is nested too deeply, and reads lists of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import PredicateError

pytestmark = [pytest.mark.slow, pytest.mark.mutants]

DEEP = {
    "case": "CASE WHEN b THEN " * 800 + "b" + " ELSE b END" * 800,
    "brackets": "(" * 800 + "b" + ")" * 800,
    "not": "NOT " * 800 + "b",
    "calls": "coalesce(" * 800 + "b" + ", b)" * 800,
}
VERBS: dict[str, Callable[[LanceDataset, str], Any]] = {
    "to_table": lambda ds, sql: ds.to_table(filter=sql),
    "count_rows": lambda ds, sql: ds.count_rows(sql),
    "columns": lambda ds, sql: ds.to_table(columns={"x": sql}),
    "head": lambda ds, sql: ds.head(1, filter=sql),
    "fragment": lambda ds, sql: ds.get_fragments()[0].to_table(filter=sql),
    "delete": lambda ds, sql: ds.delete(sql),
    "update": lambda ds, sql: ds.update({"b": sql}),
    "update where": lambda ds, sql: ds.update({"b": "true"}, where=sql),
    "add_columns": lambda ds, sql: ds.add_columns({"x": sql}),
    "bisect": lambda ds, sql: ds.bisect(sql),
    "stage": lambda ds, sql: ds.stage().delete(sql).preview(),
}


@pytest.fixture
def dataset(tmp_path: Any) -> LanceDataset:
    table = pa.table({"i": range(5), "s": ["v1", "v2", "it's", None, "ü"], "b": [True] * 5})
    return lance_nb.write_dataset(table, str(tmp_path / "data"))


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize("verb", VERBS)
def test_deep_sql_is_refused_with_the_limit(dataset: LanceDataset, verb: str, depth: str) -> None:
    with pytest.raises(PredicateError, match=r"nested more than 200 deep|is nested too deeply"):
        VERBS[verb](dataset, DEEP[depth])
    assert dataset.latest_version == 1


@pytest.mark.parametrize("verb", ["count_rows", "bisect"])
def test_an_endless_chain_of_operators_is_refused(dataset: LanceDataset, verb: str) -> None:
    with pytest.raises(PredicateError, match=r"nested calls to be read"):
        VERBS[verb](dataset, "b" + "::boolean" * 12_000)


def test_flat_chains_of_ten_thousand_conditions_are_read(dataset: LanceDataset) -> None:
    assert dataset.count_rows(" AND ".join(f"i > {-k}" for k in range(1, 10_000))) == 5
    assert dataset.count_rows(" OR ".join(f"i > {k}" for k in range(2, 5000))) == 2
    assert dataset.count_rows(" OR ".join(f"i = {k}" for k in range(1, 10_000))) == 4
    assert dataset.count_rows(" AND ".join(f"s <> 'v{k}'" for k in range(10_000))) == 2


def test_lists_of_a_hundred_thousand_values_are_read(dataset: LanceDataset) -> None:
    numbers = ", ".join(map(str, range(2, 100_002)))
    words = ", ".join(f"'v{k}'" for k in range(100_000))

    assert dataset.count_rows(f"i NOT IN ({numbers})") == 2
    assert dataset.count_rows(f"i NOT IN (NULL, {numbers})") == 0
    assert dataset.count_rows(f"i IN (NULL, {numbers}, 0.5)") == 3
    assert dataset.count_rows(f"s IN ({words}, 'it''s')") == 3


def test_a_chain_of_operators_is_read_at_any_length_that_python_can_hold(
    dataset: LanceDataset,
) -> None:
    assert dataset.count_rows(" + ".join(["i"] * 1000) + " = 3000") == 1
    found = dataset.to_table(columns={"x": " + ".join(["i"] * 1000)})
    assert found["x"].to_pylist() == [0, 1000, 2000, 3000, 4000]
    whens = " ".join(f"WHEN i = {k} THEN {k}" for k in range(1000))
    assert dataset.count_rows(f"CASE {whens} END = 3") == 1
