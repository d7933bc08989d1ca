from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from lance_nb.explorer import source as module
from lance_nb.explorer.pictures.picture_wall import picture_columns
from lance_nb.explorer.source import (
    blob_columns,
    group_batches,
    scan_groups,
    scanned_source,
)
from tests.support.fake_dataset import small_dataset


def test_fragments_are_taken_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_nb.write_dataset(
        pa.table({"id": range(100)}), tmp_path / "a.lance", max_rows_per_file=10
    )
    dataset.delete("id < 5")
    monkeypatch.setattr(module, "GROUP_ROWS", 35)
    groups = scan_groups(scanned_source(dataset))
    assert [(group.first, group.num_rows, len(group.fragments)) for group in groups] == [
        (0, 35, 4), (35, 40, 4), (75, 20, 2),
    ]  # fmt: skip
    found = pa.Table.from_batches(group_batches(dataset, groups[1], ["id"], "id > 50"))
    assert found["id"].to_pylist() == list(range(51, 80))
    monkeypatch.setattr(module, "GROUP_FRAGMENTS", 3)
    assert len(scan_groups(dataset)) == 4


def test_what_cannot_be_scanned_is_refused() -> None:
    with pytest.raises(NotSupportedError):
        scanned_source(small_dataset())


def test_each_column_is_looked_at_once_for_blobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({f"c{at}": [at] for at in range(300)})
    dataset = lance_nb.write_dataset(table, tmp_path / "wide.lance")
    asked: list[str] = []

    def is_blob(field: Any) -> bool:
        asked.append(field.name)
        return bool(field.name == "c7")

    monkeypatch.setattr(module, "is_blob", is_blob)
    assert blob_columns(dataset) == {"c7"}
    asked.clear()
    picture_columns(dataset)
    assert len(asked) <= 2 * 300  # all columns at once, then the one that has blobs
