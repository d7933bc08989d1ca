from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ReadPlan
from lance_nb.storage import meter


def test_a_scan_is_cut_for_several_cores(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ReadPlan.of(SourceOptions.of({"path": dataset.uri, "columns": "id"}))
    assert plan.parts() == [tuple(range(10))]  # too small to be cut
    monkeypatch.setattr("lance_nb.spark.source.scan._PART_BYTES", 1)
    parts = plan.parts()
    assert 8 <= len(parts) <= 10
    found = [row for part in parts for batch in plan.batches(part) for row in batch["id"].tolist()]
    assert found == list(range(100))


def test_one_column_of_wide_rows_is_read_without_the_others(tmp_path: Path) -> None:
    num_rows, width = 5_000, 384
    values = np.random.default_rng(1).random(num_rows * width, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), width)
    uri = str(tmp_path / "wide.lance")
    lance_nb.write_dataset(pa.table({"id": np.arange(num_rows), "vector": vectors}), uri)
    whole = ReadPlan.of(SourceOptions.of({"path": uri}))
    plans = {
        "columns=": ReadPlan.of(SourceOptions.of({"path": uri, "columns": "id"})),
        "a schema": whole.select(["id"]),
        "all": whole,
    }
    read_bytes = {}
    for name, plan in plans.items():
        before = meter.totals().read_bytes
        batches = [one for part in plan.parts() for one in plan.batches(part)]
        assert sum(sum(one["id"].to_pylist()) for one in batches) == sum(range(num_rows)), name
        read_bytes[name] = meter.totals().read_bytes - before
    assert read_bytes["all"] > values.nbytes
    assert max(read_bytes["columns="], read_bytes["a schema"]) < values.nbytes / 20, read_bytes
