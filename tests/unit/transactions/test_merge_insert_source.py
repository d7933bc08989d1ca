"""The rows of a source: in memory or in a temporary file, the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.transactions.merge_insert_source import SourceRows

TABLE = pa.table({"id": range(1000), "name": [f"n{i}" if i % 5 else None for i in range(1000)]})
ROWS = np.array([999, 0, 500, 500, 3], np.int64)


def reader(rows_per_batch: int = 10) -> pa.RecordBatchReader:
    return TABLE.to_reader(rows_per_batch)


@pytest.mark.parametrize("memory_bytes", [None, 0, 4000, 1 << 30])
def test_rows_come_by_number_in_any_order(tmp_path: Path, memory_bytes: int | None) -> None:
    with SourceRows(reader(), memory_bytes, str(tmp_path)) as source:
        assert bool(list(tmp_path.iterdir())) is (memory_bytes in {0, 4000})
        assert source.num_rows == 1000
        assert source.take(ROWS, ["name", "id"]).equals(TABLE.select(["name", "id"]).take(ROWS))
        assert source.columns(["id"]).equals(TABLE.select(["id"]))
        assert source.take(np.zeros(0, np.int64), ["id"]).num_rows == 0
    assert not list(tmp_path.iterdir())


def test_rows_of_several_batches_are_put_back_in_order(tmp_path: Path) -> None:
    large = pa.concat_tables([TABLE] * 200)
    with SourceRows(large.to_reader(50_000), 1, str(tmp_path)) as source:
        rows = np.random.default_rng(1).permutation(large.num_rows)[:5000]
        assert source.take(rows, ["id"]).equals(large.select(["id"]).take(rows))
        assert source.row_bytes > 8


def test_a_source_that_breaks_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches(100)
        raise KeyboardInterrupt

    batches = pa.RecordBatchReader.from_batches(TABLE.schema, broken())
    with pytest.raises(KeyboardInterrupt):
        SourceRows(batches, 0, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_an_empty_source_has_its_schema() -> None:
    with SourceRows(TABLE.slice(0, 0).to_reader()) as source:
        assert source.num_rows == 0
        assert source.columns(["name"]).schema.names == ["name"]
