from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.explorer.stage.row_sources import (
    check_rows,
    find_rows,
    notebook_variables,
    streamed_source,
    variable_choices,
)

ROWS = pa.table({"id": [1, 2]})


def test_rows_are_found_by_variable_file_or_dataset(tmp_path: Path) -> None:
    assert find_rows("df", {"df": ROWS}) is ROWS
    parquet.write_table(ROWS, tmp_path / "a.parquet")
    assert find_rows(f"{tmp_path}/a.parquet", {}).equals(ROWS)
    lance_nb.write_dataset(ROWS, tmp_path / "b.lance")
    assert find_rows(f"{tmp_path}/b.lance", {}).count_rows() == 2
    with pytest.raises(InvalidInputError, match="neither a variable nor a file"):
        find_rows("nothing", {})
    with pytest.raises(DatasetNotFoundError):
        find_rows(f"{tmp_path}/none.lance", {})


def test_a_name_of_nothing_is_reported_before_anything_is_read(tmp_path: Path) -> None:
    parquet.write_table(ROWS, tmp_path / "a.parquet")
    for name in (f"{tmp_path}/a.parquet", "df", "s3://far/a.csv", "b.lance"):
        check_rows(name, {"df": ROWS})
    with pytest.raises(InvalidInputError, match="neither a variable nor a file"):
        check_rows("dff", {"df": ROWS})
    with pytest.raises(InvalidInputError, match="does not exist in"):
        check_rows(f"{tmp_path}/none.csv", {})


def test_files_and_datasets_are_read_in_parts_and_variables_are_not(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(ROWS, tmp_path / "b.lance")
    assert streamed_source("df", {"df": ROWS}) is None
    assert streamed_source("ds", {"ds": made}) is made
    assert streamed_source("x.parquet", {}) == "x.parquet"
    assert streamed_source("x.csv", {}) is None
    found = streamed_source(f"file://{tmp_path}/b.lance", {})
    assert not isinstance(found, str | None)
    assert found.count_rows() == 2


def test_variables_are_offered_with_what_is_known_of_them() -> None:
    held: dict[str, Any] = {
        "wrong": pa.table({"z": [1]}),
        "frame": pd.DataFrame({"id": [1, 2, 3]}),
        "stream": ROWS.to_reader(),
        "_hidden": ROWS,
        "text": "not rows",
        "kind": pa.Table,
        "fine": ROWS,
    }
    found = variable_choices(held, ROWS.schema)
    assert [one["name"] for one in found] == ["fine", "frame", "stream", "wrong"]
    assert [one["text"] for one in found] == [
        "2 rows", "3 rows", "a stream, read once", "1 row · column 'z' is not in the dataset",
    ]  # fmt: skip
    assert found[1]["kind"] == "DataFrame"


def test_outside_of_a_notebook_there_are_no_variables() -> None:
    assert notebook_variables() == {} or "In" in notebook_variables()
