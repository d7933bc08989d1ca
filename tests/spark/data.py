"""Rows of the tests, and how pylance reads what became of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

# PySpark warns of pandas 3, which it uses for sending Arrow; a session holds sockets until its end.
MARKS = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:.*pandas.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
NUM_ROWS = 4_000


def rows(start: int = 0, stop: int = NUM_ROWS) -> pa.Table:
    """Numbers, text and vectors."""
    rng = np.random.default_rng(start)
    ids = np.arange(start, stop)
    values = pa.array(rng.random((stop - start) * 4, dtype=np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(values, 4)
    return pa.table({"id": ids, "name": [f"n{one % 7}" for one in ids], "vector": vectors})


def written(folder: Path, *, stable: bool = False) -> str:
    """Write them as eight fragments."""
    path = str(folder / "rows.lance")
    lance_nb.write_dataset(
        rows(), path, max_rows_per_file=NUM_ROWS // 8, enable_stable_row_ids=stable
    )
    return path


def by_pylance(uri: str) -> pa.Table:
    """Read and validate with pylance."""
    dataset = require_pylance().dataset(uri)
    dataset.validate()
    return dataset.to_table()


def ids_of(uri: str) -> list[int]:
    """Return the ids that pylance sees, in order."""
    return sorted(by_pylance(uri)["id"].to_pylist())
