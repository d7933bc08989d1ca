from __future__ import annotations

import json

import pyarrow as pa

from lance_nb.explorer.models.row_tree import BYTES_CHARS, MAX_CHILDREN, MAX_NODES, row_tree
from tests.unit.explorer.payloads import PAYLOADS


def test_nested_values_are_trees_and_flat_ones_are_lines() -> None:
    row = pa.table(
        {
            "n": [7],
            "s": [{"a": [{"b": "x"}, None], "c": None}],
            "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    number, struct, vector, mapping = row_tree(row)
    assert (number["name"], number["text"], number["look"]) == ("n", "7", "value")
    listed, nothing = struct["children"]
    assert nothing["look"] == "null"
    assert listed["children"][0]["children"][0]["text"] == "x"
    assert vector["text"] == "[1.0, 2.0]"
    assert mapping["children"][0]["children"][1]["text"] == "1"


def test_opaque_bytes_are_told_in_short() -> None:
    (node,) = row_tree(pa.table({"raw": [b"\x07" * 40_000]}))
    assert node["look"] == "bytes"
    assert node["text"].startswith("40.0 KB · 07 07")
    assert len(node["text"]) < BYTES_CHARS


def test_a_tree_is_bounded_however_much_there_is() -> None:
    row = pa.table(
        {
            "long": [[{"x": at} for at in range(100_000)]],
            "text": ["x" * 5_000_000],
            **{f"c{at}": [[["y"] * 50] * 50] for at in range(20)},
        }
    )
    nodes = row_tree(row)
    assert len(nodes[0]["children"]) == MAX_CHILDREN
    assert nodes[0]["more"] == 100_000 - MAX_CHILDREN
    assert len(json.dumps(nodes)) < 200 * MAX_NODES


def test_names_and_values_stay_text() -> None:
    (node,) = row_tree(pa.table({PAYLOADS[37]: [PAYLOADS[37]]}))
    assert "\u202e" not in node["name"] + node["text"]
