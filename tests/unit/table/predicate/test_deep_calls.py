from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.filter import compile_filter
from lance_nb.table.predicate.sql_text import call_deeply, parse_duckdb
from tests.support.expressions import values_of

SCHEMA = pa.schema([("i", pa.int64()), ("b", pa.bool_())])
COLUMNS = {("i",): pa.chunked_array([[1, 2, 3]]), ("b",): pa.chunked_array([[True, None, False]])}


@pytest.mark.parametrize("depth", [10, 39, 60, 150, 199])
def test_expressions_of_two_hundred_levels_are_read(depth: int) -> None:
    for text in (
        "(" * depth + "i > 1" + ")" * depth,
        "(i = 5 OR " * depth + "i > 1" + ")" * depth,
        "abs(" * depth + "i" + ")" * depth + " > 1",
    ):
        found = compile_filter(text, SCHEMA)
        assert found.mask(COLUMNS, 3).tolist() == [False, True, True], text[:20]
    odd = depth // 2 * 2 + 1
    assert compile_filter("NOT " * odd + "b", SCHEMA).mask(COLUMNS, 3).tolist() == [False] * 2 + [
        True
    ]


def test_more_levels_are_refused() -> None:
    for text in ("(" * 201 + "b" + ")" * 201, "NOT " * 201 + "b"):
        with pytest.raises(PredicateError, match="200 deep"):
            compile_filter(text, SCHEMA)


def test_an_error_deep_down_is_the_same_error() -> None:
    with pytest.raises(PredicateError, match="nope"):
        compile_filter("(" * 150 + "nope > 1" + ")" * 150, SCHEMA)


def test_the_limit_of_calls_is_as_before_and_endless_recursion_ends() -> None:
    before = sys.getrecursionlimit()

    def endless() -> int:
        return endless() + 1

    with pytest.raises(RecursionError):
        call_deeply(endless)
    assert sys.getrecursionlimit() == before


def test_empty_statements_are_left_out() -> None:
    assert [one.sql() for one in parse_duckdb("SELECT 1; ; SELECT 2;")] == ["SELECT 1", "SELECT 2"]
    assert parse_duckdb("") == []


@pytest.mark.parametrize("count", [1, 99, 100, 1500])
def test_a_value_that_only_some_rows_need_is_computed_at_any_depth(count: int) -> None:
    table = pa.table({"i": [1, 2, 3], "z": [0, 0, 0]})
    inner = "10 / (i - 1)" + " + z" * count
    assert values_of(f"i = 1 OR {inner} > 7", table) == [True, True, False]
    text = f"((i = 1 OR {inner} > 7) = true)" + " = true" * 8
    assert values_of(text, table) == [True, True, False]
