from __future__ import annotations

import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ReadPlan


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
