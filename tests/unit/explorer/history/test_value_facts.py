from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.history.value_facts import FACTS, MAX_CHILDREN, MAX_NODES, tree_of


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    table = pa.table({"id": range(20), "deep": [{"x": {"y": "z"}}] * 20})
    lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=10).delete("id < 3")
    return lance_nb.dataset(tmp_path / "a.lance")


def size(nodes: Any) -> int:
    return sum(1 + size(node.get("children", ())) for node in nodes)


def named(nodes: Any, name: str) -> Any:
    (found,) = (node for node in nodes if node["name"] == name)
    return found


def test_a_transaction_is_a_tree_of_its_operation(dataset: Any) -> None:
    facts = FACTS["transaction"](dataset.transaction(2))
    assert facts.operation == "Delete"
    assert named(facts.nodes, "predicate")["text"] == "id < 3"
    json.dumps(facts.to_json())


def test_a_preview_shows_rows_and_fragments(dataset: Any) -> None:
    stage = dataset.stage().delete("id > 10")
    facts = FACTS["preview"](stage.preview())
    assert FACTS["stage"](stage).rows == (("edit", "delete"),)
    first = named(facts.nodes, "some rows before")["children"][0]["children"]
    assert (first[0]["name"], first[0]["text"]) == ("id", "11")
    fragments = named(facts.nodes, "fragments")["children"][0]["children"]
    assert {one["name"]: one["text"] for one in fragments}["change"] == "changed"
    written = FACTS["write"](stage.staged).nodes
    assert named(written, "fragments changed")["text"] == "1"
    assert named(written, "files written")["text"] == "none"


def test_a_fragment_names_its_files_and_a_schema_its_columns(dataset: Any) -> None:
    files = named(FACTS["fragment"](dataset.get_fragments()[1]).nodes, "data files")
    assert files["children"][0]["name"].endswith(".lance")
    schema = FACTS["schema"](dataset.lance_schema).schema
    assert schema is not None
    assert [line.name for line in schema.lines] == ["id", "deep", "x", "y"]


def test_trees_are_bounded() -> None:
    wide = tree_of({"list": [{"n": at} for at in range(10_000)]})
    assert wide[0]["more"] == 10_000 - MAX_CHILDREN
    many = tree_of({str(at): {str(n): n for n in range(90)} for at in range(90)})
    assert size(many) <= MAX_NODES + 1
    deep: Any = "end"
    for _ in range(1000):
        deep = {"in": deep}
    assert size(tree_of({"deep": deep})) < 20
    (text,) = tree_of({"long": "x" * 10_000})
    assert len(text["text"]) <= 300
