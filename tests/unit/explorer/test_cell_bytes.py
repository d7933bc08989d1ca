from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer.cell_bytes import CellDesk
from lance_nb.explorer.messages import handle
from lance_nb.explorer.models.row_page import Window, row_page
from lance_nb.explorer.models.row_query import RowQuery
from lance_nb.explorer.session import Session
from tests.unit.explorer.fakes import one_table
from tests.unit.explorer.models.test_media import GIF


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([blob, pa.field("raw", pa.binary()), pa.field("id", pa.int64())])
    table = pa.table([[b"fLaC" + bytes(500), None, GIF], [b"abc", GIF, None], [1, 2, 3]], schema)
    return lance_nb.write_dataset(table, tmp_path / "a.lance", data_storage_version="2.1")


def test_blobs_and_values_are_read_in_pieces(dataset: Any) -> None:
    desk = CellDesk(Session(dataset))
    found = desk.open(dataset, RowQuery(), 0, 0)
    assert (found.size_bytes, found.media.label, found.read(2, 3)) == (504, "FLAC", b"aC\0")
    assert desk.open(dataset, RowQuery(), 0, 0) is found
    assert desk.open(dataset, RowQuery("id > 1"), 0, 1).media.label == "GIF 3 × 5"
    assert desk.open(dataset, RowQuery("id > 1"), 1, 0).media.label == "GIF 3 × 5"
    assert desk.open(dataset, RowQuery(), 0, 1).media.kind == "bytes"


def test_null_is_nothing(dataset: Any) -> None:
    desk = CellDesk(Session(dataset))
    assert desk.open(dataset, RowQuery(), 1, 0) is None
    assert desk.open(dataset, RowQuery(), 2, 1) is None


def test_what_has_no_bytes_is_refused(dataset: Any) -> None:
    desk = CellDesk(Session(dataset))
    with pytest.raises(NotSupportedError):
        desk.open(dataset, RowQuery(), 0, 2)
    for row, column in [(9, 0), (9, 1), (0, 9)]:
        with pytest.raises(InvalidInputError):
            desk.open(dataset, RowQuery(), row, column)
    with pytest.raises(InvalidInputError):
        desk.open(one_table(pa.table({"x": [b"a"]})), RowQuery(), 5, 0)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_are_told_by_their_length_in_the_grid_and_in_a_cell(
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
