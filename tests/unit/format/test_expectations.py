from __future__ import annotations

import json

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.expectations import (
    EXPECTATIONS_MAX,
    GATE,
    PREFIX,
    ConfiguredExpectations,
    Expectation,
    free_name,
)

EVERY_KIND = (
    Expectation("a", "check", sql="score BETWEEN 0 AND 1 -- é"),
    Expectation("b", "not_null", column="label"),
    Expectation("c", "unique", columns=("id", "day")),
    Expectation("d", "reference", column="label", uri="s3://b/labels.lance", to="name"),
    Expectation("e", "row_count", minimum=1),
    Expectation("f", "row_count", minimum=0, maximum=5),
    Expectation("g", "drift", column="score", limit=0.25, against="v1"),
)


@pytest.mark.parametrize("one", EVERY_KIND, ids=lambda one: one.name)
def test_every_kind_comes_back_as_it_was(one: Expectation) -> None:
    assert Expectation.from_json(one.name, one.to_json()) == one
    assert one.statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps({"kind": "shell", "sql": "rm"}),
        json.dumps({"kind": ["check"], "sql": "a"}),
        json.dumps({"kind": "check"}),
        json.dumps({"kind": "check", "sql": 7}),
        json.dumps({"kind": "check", "sql": " "}),
        json.dumps({"kind": "check", "sql": "a > 1", "more": 1}),
        json.dumps({"kind": "check", "sql": "a" * 10_001}),
        json.dumps({"kind": "unique", "columns": []}),
        json.dumps({"kind": "unique", "columns": ["a", "a"]}),
        json.dumps({"kind": "unique", "columns": ["a", 1]}),
        json.dumps({"kind": "row_count"}),
        json.dumps({"kind": "row_count", "min": True}),
        json.dumps({"kind": "row_count", "min": 3, "max": 2}),
        json.dumps({"kind": "row_count", "min": -1}),
        '{"kind": "drift", "column": "a", "max": NaN}',
        '{"kind": "drift", "column": "a", "max": Infinity}',
        '{"kind": "drift", "column": "a", "max": 1' + "0" * 400 + "}",
    ],
)
def test_hostile_text_is_refused_with_the_key(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expectation 'x'"):
        Expectation.from_json("x", text)


@pytest.mark.parametrize("name", ["", "a b", "../x", "-a", "a" * 101, "é", "a\n"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="no name for an expectation"):
        Expectation.from_json(name, EVERY_KIND[0].to_json())


def test_what_cannot_be_read_hides_nothing_else() -> None:
    config = {f"{PREFIX}{one.name}": one.to_json() for one in EVERY_KIND}
    config |= {f"{PREFIX}z": "{", "other": "1", GATE: "refuse"}
    found = ConfiguredExpectations.of(config)
    assert list(found.expectations.values()) == list(EVERY_KIND)
    assert list(found.problems) == ["z"]
    assert found.is_gated
    assert not ConfiguredExpectations.of({GATE: "yes"}).is_gated


def test_the_number_is_bounded() -> None:
    text = EVERY_KIND[0].to_json()
    found = ConfiguredExpectations.of({f"{PREFIX}n{n:04}": text for n in range(600)})
    assert len(found.expectations) == EXPECTATIONS_MAX
    assert len(found.problems) == 600 - EXPECTATIONS_MAX


def test_names_are_made_of_statements() -> None:
    assert free_name("score BETWEEN 0 AND 1", set()) == "score-between-0-and-1"
    assert free_name("score BETWEEN 0 AND 1", {"score-between-0-and-1"}).endswith("-2")
    assert free_name("€ < ¥", set()) == "expectation"
    assert len(free_name("x" * 500, set())) == 60
