"""How much of a Parquet file is decoded at a time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from lance_nb.spark.tasks.files import ParquetRows, batch_rows

COUNT = 100_000


@pytest.mark.parametrize(
    ("column", "least", "most"),
    [
        (pa.array(range(COUNT)), 1_048_576, 1_048_576),  # as many as fill a page
        (pa.array(["a" * 300] * COUNT), 200_000, 230_000),  # one value in a dictionary: 64 MB
        (pa.array([f"{at:0300}" for at in range(COUNT)]), 150_000, 230_000),
        (pa.array([b"x" * 9000] * COUNT), 65_536, 65_536),  # no fewer than ever
        (pa.array([[7] * 100] * COUNT), 70_000, 90_000),
    ],
)
def test_a_batch_is_large_and_bounded(
    tmp_path: Path, column: pa.Array, least: int, most: int
) -> None:
    path = str(tmp_path / "rows.parquet")
    parquet.write_table(pa.table({"c": column}), path)
    assert least <= batch_rows(parquet.ParquetFile(path), [0]) <= most
    found = ParquetRows(path, 0, 1, 1).batches().read_all()
    assert found["c"].combine_chunks() == column


def test_row_groups_without_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    parquet.write_table(pa.table({"c": pa.array([], pa.int32())}), path)
    file = parquet.ParquetFile(path)
    groups = list(range(file.num_row_groups))
    assert ParquetRows(path, 0, len(groups), 1).batches().read_all().num_rows == 0
