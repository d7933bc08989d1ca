from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer.messages import handle
from lance_nb.explorer.rows import row_detail as module
from lance_nb.explorer.rows.row_detail import (
    BYTES_CHARS,
    MAX_CHILDREN,
    MAX_NODES,
    CellBytesCache,
    clipboard_text,
    row_tree,
)
from lance_nb.explorer.rows.row_page import Window, row_page
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.session import Session
from tests.support.explorer_samples import GIF
from tests.support.fake_dataset import one_table
from tests.support.markup_payloads import PAYLOADS


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


def test_opaque_bytes_are_reported_in_short() -> None:
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


def test_rows_are_lines_of_values_parted_by_tabs() -> None:
    table = pa.table({"a": [1, None], "b\tc": ["x\ty\n", "z"], "v": [[1, 2], None]})
    found = clipboard_text(table)
    assert found.text == "a\tb⇥c\tv\n1\tx⇥y↵\t[1, 2]\nnull\tz\tnull"
    assert found.rows == 2


def test_there_is_an_end(monkeypatch: object) -> None:
    long = pa.table({"a": ["x" * 5000] * 3000})
    found = clipboard_text(long)
    assert len(found.text) <= module.MAX_CHARS
    assert 0 < found.rows < 3000
    assert clipboard_text(pa.table({"a": range(5000)})).rows == module.MAX_ROWS


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([blob, pa.field("raw", pa.binary()), pa.field("id", pa.int64())])
    table = pa.table([[b"fLaC" + bytes(500), None, GIF], [b"abc", GIF, None], [1, 2, 3]], schema)
    return lance_nb.write_dataset(table, tmp_path / "a.lance", data_storage_version="2.1")


def test_blobs_and_values_are_read_in_pieces(dataset: Any) -> None:
    desk = CellBytesCache(Session(dataset))
    found = desk.open(dataset, RowQuery(), 0, 0)
    assert (found.size_bytes, found.media.label, found.read(2, 3)) == (504, "FLAC", b"aC\0")
    assert desk.open(dataset, RowQuery(), 0, 0) is found
    assert desk.open(dataset, RowQuery("id > 1"), 0, 1).media.label == "GIF 3 × 5"
    assert desk.open(dataset, RowQuery("id > 1"), 1, 0).media.label == "GIF 3 × 5"
    assert desk.open(dataset, RowQuery(), 0, 1).media.kind == "bytes"


def test_null_is_nothing(dataset: Any) -> None:
    desk = CellBytesCache(Session(dataset))
    assert desk.open(dataset, RowQuery(), 1, 0) is None
    assert desk.open(dataset, RowQuery(), 2, 1) is None


def test_what_has_no_bytes_is_refused(dataset: Any) -> None:
    desk = CellBytesCache(Session(dataset))
    with pytest.raises(NotSupportedError):
        desk.open(dataset, RowQuery(), 0, 2)
    for row, column in [(9, 0), (9, 1), (0, 9)]:
        with pytest.raises(InvalidInputError):
            desk.open(dataset, RowQuery(), row, column)
    with pytest.raises(InvalidInputError):
        desk.open(one_table(pa.table({"x": [b"a"]})), RowQuery(), 5, 0)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_are_reported_by_their_length_in_the_grid_and_in_a_cell(
    tmp_path: Path, version: str
) -> None:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([[b"x" * 3000, None]], pa.schema([blob]))
    made = lance_nb.write_dataset(table, tmp_path / "b.lance", data_storage_version=version)
    page = row_page(made, Window())
    (column,) = page.columns
    assert (column.type, column.extra["look"]) == ("blob", "binary")
    assert page.buffers[column.buffers[1]] == b"3.0 KB"
    assert column.validity is not None
    handlers = Session(made).handlers()
    at = {"branch": None, "version": 1, "column": 0}
    texts = [
        handle({"id": "1", "type": "cell", "args": at | {"row": row}}, handlers)[0]["result"][
            "text"
        ]
        for row in (0, 1)
    ]
    assert texts == ["3.0 KB", "null"]
