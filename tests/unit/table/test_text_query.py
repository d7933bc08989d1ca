"""Full-text queries are checked when they are made."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.table.text_query import PlainText, text_query

MATCH = lance_nb.MatchQuery("a", "t")


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("MatchQuery", (1, "t"), {}, "are texts"),
        ("MatchQuery", ("a", None), {}, "are texts"),
        ("MatchQuery", ("a", "t"), {"boost": -1.0}, "finite and non-negative"),
        ("MatchQuery", ("a", "t"), {"boost": float("nan")}, "finite and non-negative"),
        ("MatchQuery", ("a", "t"), {"fuzziness": -1}, "fuzziness is a number"),
        ("MatchQuery", ("a", "t"), {"operator": "XOR"}, "'AND' or 'OR'"),
        ("PhraseQuery", ("a", "t"), {"slop": -1}, "slop is a number"),
        ("MultiMatchQuery", ("a", []), {}, "a list of names"),
        ("MultiMatchQuery", ("a", "t"), {}, "a list of names"),
        ("MultiMatchQuery", ("a", ["t"]), {"boosts": [1.0, 2.0]}, "2 boosts for 1 columns"),
        ("BooleanQuery", ([],), {}, "at least one should/must"),
        ("BooleanQuery", ([("MUST_NOT", MATCH)],), {}, "at least one should/must"),
        ("BooleanQuery", ([MATCH],), {}, "pairs"),
        ("BooleanQuery", ([("MAY", MATCH)],), {}, "SHOULD, MUST or MUST_NOT"),
        ("BoostQuery", (MATCH, "b"), {}, "not str"),
    ],
)
def test_refused(name: str, arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        getattr(lance_nb, name)(*arguments, **options)


def test_documents_are_rows() -> None:
    assert lance_nb.MatchQuery("a", "t", document_granularity="row").column == "t"
    with pytest.raises(NotSupportedError, match="row"):
        lance_nb.MatchQuery("a", "t", document_granularity="list_element")


def test_queries_are_values() -> None:
    query = (MATCH & lance_nb.PhraseQuery("b c", "t", slop=2)) | MATCH
    assert copy.deepcopy(query) == query
    assert hash(query) == hash(copy.copy(query))
    assert text_query(query) is query


def test_texts() -> None:
    assert text_query("a b") == PlainText("a b", None)
    assert text_query({"query": "a", "columns": ["t"]}) == PlainText("a", ("t",))
    assert PlainText('"a b"', None).phrase == "a b"
    assert PlainText('"a', None).phrase is None


def test_queries_that_are_too_deep() -> None:
    query: Any = MATCH
    for _ in range(40):
        query = lance_nb.BooleanQuery([(lance_nb.Occur.MUST, query)])
    with pytest.raises(InvalidInputError, match="deep"):
        text_query(query)


def test_queries_of_pylance() -> None:
    other = type("MatchQuery", (), {"__module__": "lance.query"})()
    with pytest.raises(NotSupportedError, match=r"use lance_nb\.MatchQuery"):
        text_query(other)
