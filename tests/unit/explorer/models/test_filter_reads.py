from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from lance_nb.explorer.models.filter_reads import filter_reads


def table() -> pa.Table:
    return pa.table({"id": range(4000), "name": ["x"] * 4000, "s": [{"a b": 1}] * 4000})


def test_newer_files_decode_the_columns_of_the_filter_for_every_row(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(table(), tmp_path / "a.lance", max_rows_per_file=1000)
    found = filter_reads(dataset, "id > 10 AND s.`a b` = 1")
    assert found.to_json() == {"columns": ["id", "s.a b"], "rows": 4000, "skipped": None,
                               "fragments": 4}  # fmt: skip


def test_pages_of_the_oldest_files_are_skipped(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    path = tmp_path / "old.lance"
    numbers = pa.table({"id": range(4000)})
    lance.write_dataset(numbers, path, data_storage_version="legacy", max_rows_per_group=500)
    found = filter_reads(lance_nb.dataset(path), "id < 700")
    assert (found.rows, found.skipped) == (1000, 3000)


def test_a_wrong_filter_is_refused(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(table(), tmp_path / "a.lance")
    with pytest.raises(PredicateError):
        filter_reads(dataset, "id <<< 3")
