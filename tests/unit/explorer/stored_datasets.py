"""Small datasets in files, written by us, for the views that look at files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_nb


def table(count: int, first: int = 0) -> pa.Table:
    """Rows with an id, a text and a small vector."""
    ids = np.arange(first, first + count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(count * 4, np.float32)), 4)
    return pa.table({"id": ids, "text": [f"row {one}" for one in ids], "vector": vectors})


def worn_dataset(path: Path) -> Any:
    """Three fragments, rows deleted in the second, a column added and one dropped, a tag."""
    for at in range(3):
        mode = "append" if at else "create"
        lance_nb.write_dataset(table(100, at * 100), path, mode=mode)
    dataset = lance_nb.dataset(path)
    dataset.delete("id >= 100 and id < 130")
    dataset.add_columns({"double": "id * 2"})
    dataset.drop_columns(["text"])
    dataset = lance_nb.dataset(path)
    dataset.tags.create("v1", 2)
    return lance_nb.dataset(path)
