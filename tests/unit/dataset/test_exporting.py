"""Rows written to files of other formats and to new datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import lance_nb
from lance_nb.errors import CancelledError, InvalidInputError, PredicateError, StorageError

VECTORS = pa.FixedSizeListArray.from_arrays(np.arange(400, dtype=np.float32), 4)
TABLE = pa.table({"id": range(100), "x": np.arange(100) / 2, "v": VECTORS, "t": ["=1"] * 100})


@pytest.fixture
def ds(tmp_path: Path) -> Any:
    return lance_nb.write_dataset(TABLE, tmp_path / "d.lance", max_rows_per_file=30)


def files(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


READERS: dict[str, Any] = {
    "parquet": parquet.read_table,
    "arrow": feather.read_table,
    "feather": feather.read_table,
    "lance": lambda path: lance_nb.dataset(str(path)).to_table(),
}


@pytest.mark.parametrize("ending", READERS)
def test_every_format_holds_the_rows_of_a_scan(ds: Any, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    seen: list[tuple[int, int]] = []
    found = ds.export(path, ["v", "id"], limit=70, offset=5, progress=lambda *at: seen.append(at))
    assert (found.path, found.num_rows) == (path, 70)
    assert found.size_bytes > 0
    assert READERS[ending](path).equals(TABLE.select(["v", "id"]).slice(5, 70))
    assert seen[0] == (0, 70)
    assert files(tmp_path) == ["d.lance", path.name]


def test_csv_holds_plain_columns_and_names_the_others(ds: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    assert ds.export(path, ["id", "t"], "id >= 98").num_rows == 2
    assert csv.read_csv(path).to_pydict() == {"id": [98, 99], "t": ["'=1", "'=1"]}
    with pytest.raises(InvalidInputError, match="no lists and structs: leave out 'v'"):
        ds.export(tmp_path / "other.csv")
    assert files(tmp_path) == ["d.lance", "out.csv"]


def test_rows_are_chosen_by_id_by_order_or_by_change(ds: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    ds.export(path, ["id"], row_ids=[4294967297, 3, 7])
    assert parquet.read_table(path)["id"].to_pylist() == [31, 3, 7]
    keys = [{"column_name": "x", "ascending": False}]
    ds.export(path, ["id"], order_by=keys, limit=2, overwrite=True)
    assert parquet.read_table(path)["id"].to_pylist() == [99, 98]
    ds.delete("id = 5")
    ds.update({"x": "-1"}, where="id = 8")
    ds.export(tmp_path / "changes.parquet", ["id"], since=1)
    rows = parquet.read_table(tmp_path / "changes.parquet").to_pylist()
    assert {(row["_change"], row["id"]) for row in rows} >= {("removed", 5)}
    for more in ({"row_ids": [1], "since": 1}, {"row_ids": [1], "filter": "id < 3"},
                 {"since": 1, "limit": 3}):  # fmt: skip
        with pytest.raises(InvalidInputError, match="one of these ways"):
            ds.export(tmp_path / "no.parquet", **more)


@pytest.mark.parametrize("ending", ["parquet", "lance"])
def test_what_is_there_stays_and_an_end_leaves_nothing(
    ds: Any, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"out.{ending}"
    path.write_text("mine")
    with pytest.raises(InvalidInputError, match="exists already"):
        ds.export(path)
    path.rename(tmp_path / "kept")
    calls = []

    def cancel(done: int, _total: int) -> None:
        calls.append(done)
        if done:
            raise CancelledError("enough")

    with pytest.raises(CancelledError):
        ds.export(path, progress=cancel)
    assert len(calls) == 2
    with pytest.raises(PredicateError):
        ds.export(path, filter="nope = 1")

    def another(done: int, _total: int) -> None:
        if not done:
            path.write_text("theirs")

    with pytest.raises(InvalidInputError, match="exists already"):
        ds.export(path, progress=another)
    assert path.read_text() == "theirs"
    assert files(tmp_path) == sorted(["d.lance", "kept", path.name])


def test_paths_that_cannot_be_written_are_refused(ds: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must end with one of \.parquet, \.csv"):
        ds.export(tmp_path / "out.xls")
    with pytest.raises(StorageError, match="no/out"):
        ds.export(tmp_path / "no" / "out.parquet")
    ds.export(tmp_path / "out.lance")
    with pytest.raises(InvalidInputError, match="not overwritten"):
        ds.export(tmp_path / "out.lance", overwrite=True)
