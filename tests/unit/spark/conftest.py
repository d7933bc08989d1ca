"""A dataset of several fragments on disk, which other processes see too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{one % 7}" for one in ids]})


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A journal of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    """A hundred rows in ten fragments."""
    uri = str(tmp_path / "rows.lance")
    return lance_nb.write_dataset(rows(0, 100), uri, max_rows_per_file=10)
