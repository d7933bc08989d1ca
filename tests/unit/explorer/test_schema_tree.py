from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.explorer.schema_tree import MAX_LINES, schema_tree, type_label


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (pa.int64(), "int64"),
        (pa.float16(), "float16"),
        (pa.list_(pa.float32(), 128), "float32[128]"),
        (pa.list_(pa.string()), "list<string>"),
        (pa.large_list(pa.float64()), "large_list<float64>"),
        (pa.struct([("a", pa.int8()), ("b", pa.int8())]), "struct{2}"),
        (pa.list_(pa.struct([("a", pa.int8())])), "list<struct{1}>"),
        (pa.map_(pa.string(), pa.int32()), "map<string, int32>"),
        (pa.timestamp("us", "UTC"), "timestamp[us, UTC]"),
        (pa.dictionary(pa.int8(), pa.string()), "dictionary<string>"),
    ],
)
def test_types_have_short_names(kind: pa.DataType, label: str) -> None:
    assert type_label(kind) == label


def test_children_follow_their_parents_with_their_depth() -> None:
    inner = pa.struct([pa.field("x", pa.int8(), nullable=False), ("y", pa.string())])
    schema = pa.schema([("a", pa.int64()), ("items", pa.list_(inner)), ("m", inner)])
    lines = [(line.depth, line.name, line.nullable) for line in schema_tree(schema).lines]
    assert lines == [
        (0, "a", True),
        (0, "items", True),
        (1, "x", False),
        (1, "y", True),
        (0, "m", True),
        (1, "x", False),
        (1, "y", True),
    ]


def test_wide_and_deep_schemas_are_bounded() -> None:
    wide = schema_tree(pa.schema([(f"c{at}", pa.int8()) for at in range(2000)]))
    assert (len(wide.lines), wide.hidden) == (MAX_LINES, 2000 - MAX_LINES)
    assert wide.to_json()["columns"] == 2000
    kind = pa.int8()
    for _ in range(200):
        kind = pa.struct([("f", kind)])
    assert len(schema_tree(pa.schema([("deep", kind)])).lines) < 50
    for _ in range(200):
        kind = pa.list_(kind)
    assert len(type_label(kind)) < 1000


def test_field_metadata_is_shown_in_one_bounded_line() -> None:
    noisy = {f"k{at}".encode(): b"\xff\n" * 1000 for at in range(50)}
    tree = schema_tree(pa.schema([pa.field("a", pa.int8(), metadata=noisy)]))
    assert len(tree.lines[0].note) < 400
    assert "\n" not in tree.lines[0].note
