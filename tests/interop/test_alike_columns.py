"""Tables of many columns that pylance writes: what is decoded together is what it reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance
from tests.unit.file.test_alike_columns import wide_table

pytestmark = pytest.mark.interop


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    lance = require_pylance()
    table = wide_table()
    options = {"data_storage_version": request.param, "max_rows_per_file": 300}
    lance.write_dataset(pa.concat_tables([table, table.slice(100, 77)]), tmp_path / "d", **options)
    lance.dataset(tmp_path / "d").delete("`integer 1` % 7 = 2")
    return tmp_path / "d"


READS = {
    "scan": lambda ds: ds.to_table(),
    "head": lambda ds: ds.head(5),
    "window": lambda ds: ds.to_table(offset=250, limit=300),
    "filter": lambda ds: ds.to_table(filter="`integer 2` BETWEEN 40 AND 300"),
    "take": lambda ds: ds.take(list(range(1, ds.count_rows(), 13))),
    "some columns": lambda ds: ds.to_table(columns=["words 1", "words 3", "bool 2", "list 1"]),
    "batches": lambda ds: pa.Table.from_batches(list(ds.to_batches(batch_size=50))),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_read_is_that_of_pylance(path: Path, read):
    lance = require_pylance()
    expected = read(lance.dataset(path))
    assert read(lance_nb.dataset(path)).equals(expected)
    assert read(lance_nb.dataset(path)).equals(expected), "of files that are open"


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_of_one_value_keep_their_own_nulls_and_value(tmp_path: Path, version: str) -> None:
    lance = require_pylance()
    nulls = np.random.default_rng(1).random((24, 64)) < 0.4
    table = pa.table(
        {f"number {i}": pa.array(np.full(64, i), mask=nulls[i]) for i in range(12)}
        | {f"text {i}": [f"{i}" * 50] * 64 for i in range(12)}
        | {f"some {i}": pa.array([f"{i}" * 50] * 64, mask=nulls[12 + i]) for i in range(12)}
        | {f"null {i}": pa.nulls(64, pa.int32()) for i in range(6)}
    )
    lance.write_dataset(table, tmp_path / "d", data_storage_version=version)

    ds = lance_nb.dataset(tmp_path / "d")
    assert ds.to_table().equals(table)
    assert ds.head(5).equals(table.slice(0, 5))
    assert ds.take([3, 60, 7]).equals(table.take([3, 60, 7]))
