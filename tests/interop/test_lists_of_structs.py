"""Fixed-size lists of structs, whose pages count items: pylance writes them, we read them.

pylance 14.0.2 cannot read such a column together with others ("columns of differing lengths"), so
the table that was written is the judge.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 3000
ITEM = pa.struct([("x", pa.int32()), ("y", pa.string())])


def make(dimension: int, *, nulls: bool) -> pa.Table:
    """Build lists with nulls at every level, or none."""
    pick = random.Random(dimension)

    def drop(share: float) -> bool:
        return nulls and pick.random() < share

    def item(at: int) -> Any:
        if drop(0.1):
            return None
        return {"x": None if drop(0.2) else at, "y": None if drop(0.2) else f"text {at}"}

    rows = [None if drop(0.2) else [item(at) for _ in range(dimension)] for at in range(ROWS)]
    return pa.table({"pairs": pa.array(rows, pa.list_(ITEM, dimension)), "id": range(ROWS)})


@pytest.mark.parametrize("nulls", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_lists_of_structs_read_back(tmp_path: Path, dimension: int, nulls: bool) -> None:
    table = make(dimension, nulls=nulls)
    require_pylance().write_dataset(table, str(tmp_path), max_rows_per_file=1100)
    dataset = lance_nb.dataset(tmp_path)

    whole = dataset.to_table()

    whole.validate(full=True)
    assert whole.to_pylist() == table.to_pylist()
    assert dataset.take([5, 2999, 7, 7]).to_pylist() == table.take([5, 2999, 7, 7]).to_pylist()
    window = dataset.to_table(offset=1050, limit=100)
    assert window.to_pylist() == table.slice(1050, 100).to_pylist()
