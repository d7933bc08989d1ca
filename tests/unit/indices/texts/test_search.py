"""Full-text search without an index, and the errors of queries."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError

TEXTS = ["the quick brown fox", "lazy dog", "quick dog quick", "bear", None, "", "quick brown"]


@pytest.fixture
def ds(tmp_path: Path) -> lance_nb.LanceDataset:
    data = pa.table({"id": range(7), "t": TEXTS, "n": range(7)})
    return lance_nb.write_dataset(data, tmp_path / "d.lance", max_rows_per_file=3)


def found(ds: lance_nb.LanceDataset, query: Any, **options: Any) -> dict[int, float]:
    table = ds.to_table(columns=["id"], full_text_query=query, **options)
    return dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True))


def bm25(frequency: int, size: int, holding: int, total: int = 5, tokens: int = 12) -> float:
    weight = log((total - holding + 0.5) / (holding + 0.5) + 1)
    return weight * 2.2 * frequency / (frequency + 1.2 * (0.25 + 0.75 * size * total / tokens))


def test_scores_are_bm25_of_rows_with_words(ds: lance_nb.LanceDataset) -> None:
    expected = {2: bm25(2, 3, 3), 6: bm25(1, 2, 3), 0: bm25(1, 4, 3)}
    scores = found(ds, lance_nb.MatchQuery("Quick", "t"))
    assert scores == pytest.approx(expected)
    assert list(scores) == [2, 6, 0]
    assert found(ds, lance_nb.MatchQuery("quick", "t"), limit=1) == pytest.approx({2: expected[2]})
    doubled = found(ds, lance_nb.MatchQuery("quick", "t", boost=2.0))
    assert doubled == pytest.approx({row: 2 * score for row, score in expected.items()})


def test_queries_of_queries(ds: lance_nb.LanceDataset) -> None:
    quick, dog = (lance_nb.MatchQuery(word, "t") for word in ("quick", "dog"))
    assert sorted(found(ds, quick & dog)) == [2]
    assert sorted(found(ds, quick | dog)) == [0, 1, 2, 6]
    must, must_not = lance_nb.Occur.MUST, lance_nb.Occur.MUST_NOT
    without = lance_nb.BooleanQuery([(must, quick), (must_not, dog)])
    assert sorted(found(ds, without)) == [0, 6]
    less = found(ds, lance_nb.BoostQuery(quick, dog, negative_boost=10.0))
    assert list(less) == [6, 0, 2]
    every = lance_nb.MatchQuery("quick brown", "t", operator=lance_nb.FullTextOperator.AND)
    assert sorted(found(ds, every)) == [0, 6]
    assert sorted(found(ds, lance_nb.PhraseQuery("quick fox", "t"))) == []
    assert sorted(found(ds, lance_nb.PhraseQuery("quick fox", "t", slop=1))) == [0]
    assert sorted(found(ds, {"query": '"brown fox"', "columns": "t"})) == [0]


def test_filters_and_deleted_rows(ds: lance_nb.LanceDataset) -> None:
    quick = lance_nb.MatchQuery("quick", "t")
    assert found(ds, quick, filter="id < 2", limit=1) == {}
    assert list(found(ds, quick, filter="id < 2", limit=1, prefilter=True)) == [0]
    assert found(ds, quick, filter="_score > 10") == {}
    ds.delete("id = 2")
    assert sorted(found(ds, quick)) == [0, 6]
    assert ds.scanner(full_text_query=quick).count_rows() == 2
    scan = ds.scanner(full_text_query=quick, fragments=[ds.get_fragments()[2]])
    assert scan.to_table()["id"].to_pylist() == [6]


def test_plans_name_words_and_columns(ds: lance_nb.LanceDataset) -> None:
    scan = ds.scanner(full_text_query=lance_nb.MatchQuery("Quick", "t"), filter="id > 1")
    line = "  text: 'quick' in column 't', no index: every row is scanned, before the filter"
    assert line in scan.explain_plan().splitlines()
    plan = scan.analyze_plan()
    assert "words in the index: none; 0 postings read, 3 rows ranked, 5 rows scanned" in plan


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("quick", InvalidInputError, "needs an INVERTED index on at least one column"),
        (lance_nb.MatchQuery("a", "n"), InvalidInputError, "column 'n' is int64"),
        (lance_nb.MatchQuery("a", "x"), ColumnNotFoundError, "x"),
        ({"query": "a", "column": "t"}, InvalidInputError, "does not know 'column'"),
        ({"columns": ["t"]}, InvalidInputError, "needs 'query'"),
        (7, InvalidInputError, "not int"),
    ],
)
def test_queries_that_are_refused(
    ds: lance_nb.LanceDataset, query: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ds.scanner(full_text_query=query)


def test_combinations_that_are_refused(ds: lance_nb.LanceDataset) -> None:
    query = lance_nb.MatchQuery("quick", "t")
    with pytest.raises(InvalidInputError, match="include_deleted_rows"):
        ds.scanner(full_text_query=query, include_deleted_rows=True, with_row_id=True)
    with pytest.raises(ValueError, match="_score"):
        ds.scanner(full_text_query=query, filter="_score > 1", prefilter=True)
