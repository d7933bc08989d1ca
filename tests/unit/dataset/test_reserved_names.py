"""Columns cannot have the names of row columns, which scans compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.table.projection import ROW_COLUMNS

WAYS: dict[str, Callable[[Any, str], object]] = {
    "overwrite": lambda data, name: lance_nb.write_dataset(
        pa.table({name: [1]}), data.uri, mode="overwrite"
    ),
    "fragments": lambda data, name: lance_nb.write_fragments(pa.table({name: [1]}), data.uri + "x"),
    "commit": lambda data, name: lance_nb.LanceDataset.commit(
        data.uri, lance_nb.LanceOperation.Overwrite(pa.schema([(name, pa.int64())]), [])
    ),
    "expression": lambda data, name: data.add_columns({name: "v + 1"}),
    "field": lambda data, name: data.add_columns(pa.field(name, pa.int64())),
    "reader": lambda data, name: data.add_columns(pa.table({name: [1, 2]}).to_reader()),
    "rename": lambda data, name: data.alter_columns({"path": "v", "name": name}),
    "merge": lambda data, name: data.merge(pa.table({"v": [1, 2], name: [1, 2]}), "v"),
}


@pytest.fixture
def data(tmp_path: Path) -> Any:
    return lance_nb.write_dataset(pa.table({"v": [1, 2], "s": [{"a": 1}] * 2}), tmp_path / "d")


@pytest.mark.parametrize("name", ROW_COLUMNS)
@pytest.mark.parametrize("way", WAYS)
def test_a_reserved_name_is_refused(data: Any, way: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{name}' is reserved"):
        WAYS[way](data, name)
    assert lance_nb.dataset(data.uri).version == 1


def test_fields_of_structs_may_have_these_names(data: Any) -> None:
    data.alter_columns({"path": "s.a", "name": "_rowid"})
    assert lance_nb.dataset(data.uri).to_table(["s._rowid"]).column(0).to_pylist() == [1, 1]
